import { type ErrorReason, ResourceError, tooLarge } from '../core/errors.ts'

/** Documents that have a reading as text. */
export type DocumentFormat = 'pdf' | 'docx' | 'xlsx' | 'pptx' | 'html' | 'ipynb'

/** Form of a reading. A PDF has only text: its headings and tables are unknown. */
export type ReadingForm = 'text' | 'markdown'

const types: Readonly<Record<string, DocumentFormat>> = {
  'application/pdf': 'pdf',
  'text/html': 'html',
  'application/xhtml+xml': 'html',
  'application/x-ipynb+json': 'ipynb',
}

const extensions: Readonly<Record<string, DocumentFormat>> = {
  pdf: 'pdf',
  docx: 'docx',
  docm: 'docx',
  dotx: 'docx',
  xlsx: 'xlsx',
  xlsm: 'xlsx',
  xltx: 'xlsx',
  pptx: 'pptx',
  pptm: 'pptx',
  ppsx: 'pptx',
  html: 'html',
  htm: 'html',
  xhtml: 'html',
  ipynb: 'ipynb',
}

/** The format of a document, by the extension of its path, or else by its MIME type. */
export function formatOf(path: string, mimeType: string | undefined): DocumentFormat | undefined {
  const extension = /\.(\w{3,5})$/.exec(path)?.[1]?.toLowerCase() ?? ''
  if (Object.hasOwn(extensions, extension)) return extensions[extension]
  const type = mimeType?.split(';')[0]?.trim().toLowerCase() ?? ''
  return Object.hasOwn(types, type) ? types[type] : officeFormat(type)
}

function officeFormat(type: string): DocumentFormat | undefined {
  if (!type.includes('openxmlformats-officedocument')) return undefined
  if (type.includes('wordprocessingml')) return 'docx'
  if (type.includes('spreadsheetml')) return 'xlsx'
  return type.includes('presentationml') ? 'pptx' : undefined
}

/** The forms that documents of a format can be read as. */
export function formsOf(format: DocumentFormat): readonly ReadingForm[] {
  return format === 'pdf' ? ['text'] : ['text', 'markdown']
}

/** Job of the worker. */
export interface ReadingJob {
  readonly format: DocumentFormat
  /** `csv`: each sheet of a workbook by itself. */
  readonly form: ReadingForm | 'csv'
  readonly bytes: Uint8Array
  readonly limits: ReadingLimits
}

export interface ReadingLimits {
  /** Maximum length of a reading, in characters. */
  readonly characters: number
  /** Maximum number of unpacked bytes of a document. */
  readonly unpacked: number
}

export interface Reading {
  readonly text: string
  /** Title from the document. */
  readonly title?: string
  /** Number of pages, slides or sheets. */
  readonly parts?: number
  /** The sheets of a workbook, if each was requested. */
  readonly sheets?: readonly SheetText[]
}

/** A sheet as CSV (RFC 4180), with `\n` between rows: the values as they are shown. */
export interface SheetText {
  readonly name: string
  readonly text: string
}

/** Answer of the worker: a reading, or the kind, reason and message of a ResourceError. */
export type ReadingAnswer =
  | { readonly reading: Reading }
  | { readonly kind: 'invalid' | 'too-large'; readonly reason: ErrorReason; readonly message: string }

/** Returns the error for a document without a reading. The message is for the client. */
export function unreadable(message: string, reason: 'damaged' | 'encrypted' | 'no-text' | 'encoding'): ResourceError {
  return new ResourceError('invalid', message, { reason })
}

export function tooMuch(message: string): ResourceError {
  return tooLarge(message)
}
