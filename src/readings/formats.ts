import type { DocumentFormat, ReadingForm } from '../core/documents.ts'
import { type ErrorReason, ResourceError, tooLarge } from '../core/errors.ts'

export { type DocumentFormat, formatOf, formsOf, namesEncodings, type ReadingForm } from '../core/documents.ts'

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
export function unreadableError(message: string, reason: 'unreadable' | 'withheld' = 'unreadable'): ResourceError {
  return new ResourceError('invalid', message, { reason })
}

export function tooMuch(message: string): ResourceError {
  return tooLarge(message)
}
