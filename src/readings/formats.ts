import type { DocumentFormat, ReadingForm } from '../core/documents.ts'
import { type ErrorReason, ResourceError } from '../core/errors.ts'

export {
  type DocumentFormat,
  documentFormatOf,
  namesEncodings,
  type ReadingForm,
  readingFormsOf,
} from '../core/documents.ts'

export interface ReadingJob {
  readonly format: DocumentFormat
  /** `csv`: each sheet of a workbook by itself. `picture`: one page of a PDF, drawn. */
  readonly form: ReadingForm | 'csv' | 'picture'
  /** The index of the page for `picture`, from 0. */
  readonly page?: number
  /** The texts of pages of a PDF that OCR has read, by index. If given (even empty), a PDF that holds only pictures is not an error. */
  readonly ocr?: ReadonlyMap<number, string>
  readonly bytes: Uint8Array
  readonly limits: ReadingLimits
}

export interface ReadingLimits {
  /** Maximum length of a reading, in characters. */
  readonly characters: number
  readonly unpacked: number
}

export interface Reading {
  readonly text: string
  readonly title?: string
  readonly parts?: number
  /** The sheets of a workbook, if each was requested. */
  readonly sheets?: readonly SheetText[]
  /** Whether a PDF has text apart from the texts of OCR. */
  readonly hasText?: boolean
  /** Indexes of the pages of a PDF that OCR may read, from 0: pages that hold only pictures, or whose text is wrong. */
  readonly pictures?: readonly number[]
  /** The picture, if a page was requested. */
  readonly picture?: Picture
}

/** A picture of a page: a portable graymap (PGM), and its resolution. */
export interface Picture {
  readonly pgm: Uint8Array
  readonly dpi: number
}

/** A sheet as CSV (RFC 4180), with `\n` between rows: the values as they are shown. */
export interface SheetText {
  readonly name: string
  readonly text: string
}

export type ReadingAnswer =
  | { readonly reading: Reading }
  | { readonly kind: 'invalid' | 'too-large'; readonly reason: ErrorReason; readonly message: string }

/** Returns the error for a document that cannot be read. The message is for the client. */
export function unreadableError(message: string, reason: 'unreadable' | 'withheld' = 'unreadable'): ResourceError {
  return new ResourceError('invalid', message, { reason })
}

/** `fault` of the error for a PDF that holds only pictures. With the second one, OCR may still read the PDF later. */
export const [scanFault, scanWaitingFault] = ['scan', 'scan-waiting']

export const onlyPicturesMessage = 'The document contains no text, only pictures: its pages may have been scanned.'
