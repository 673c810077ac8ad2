import { ResourceError } from '../core/errors.ts'
import type { Form, Format } from './formats.ts'

/** Job of the worker. */
export interface ReadingJob {
  readonly format: Format
  /** `csv`: each sheet of a workbook by itself. */
  readonly form: Form | 'csv'
  readonly bytes: Uint8Array
  readonly limits: ReadingLimits
}

export interface ReadingLimits {
  /** The longest reading, in characters. */
  readonly characters: number
  /** The most that is unpacked of a document, in bytes. */
  readonly unpacked: number
}

export interface Reading {
  readonly text: string
  /** Title from the document. */
  readonly title?: string
  /** How many pages, slides or sheets it has. */
  readonly parts?: number
  /** The sheets of a workbook, where each was asked for. */
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
  | { readonly kind: 'invalid' | 'too-large'; readonly reason: string; readonly message: string }

/** Why a document has no reading. The message is for the client. */
export function unreadable(message: string, reason: 'damaged' | 'encrypted' | 'no-text'): ResourceError {
  return new ResourceError('invalid', message, { reason })
}

export function tooMuch(message: string): ResourceError {
  return new ResourceError('too-large', message, { reason: 'too-large' })
}
