import { base64Of } from '../../core/entry.ts'

/** Key of the pieces of a {@link JsonText}. */
export const jsonTextKey = Symbol('json')

/** The member `resources` of a result as JSON that is written already, in UTF-8: the items of the array, in pieces between which commas are missing. */
export interface JsonText {
  readonly [jsonTextKey]: readonly Buffer[]
  /** Returns the same value as objects. */
  toJSON(): readonly unknown[]
}

export function isJsonText(value: unknown): value is JsonText {
  return typeof value === 'object' && value !== null && jsonTextKey in value
}

/** Key of the bytes of a {@link BlobStream}. */
export const blobStreamKey = Symbol('blob')

/** The member `blob` of a content whose bytes are read while the answer is sent. Only `replyLong` writes it. */
export interface BlobStream {
  readonly [blobStreamKey]: AsyncIterable<Uint8Array>
  readonly length: number
}

export function blobStreamOf({ stream, length }: { stream: AsyncIterable<Uint8Array>; length: number }): BlobStream {
  return { [blobStreamKey]: stream, length }
}

export function isBlobStream(value: unknown): value is BlobStream {
  return typeof value === 'object' && value !== null && blobStreamKey in value
}

/** Key of the bytes of a {@link BlobBytes}. */
const blobBytesKey = Symbol('bytes')

/** The member `blob` of a content before it is base64: a long one is encoded right into the answer, without a string of all of it. */
interface BlobBytes {
  readonly [blobBytesKey]: Uint8Array
  /** Returns it in base64. */
  toJSON(): string
}

export function blobBytesOf(bytes: Uint8Array): BlobBytes {
  return { [blobBytesKey]: bytes, toJSON: () => base64Of(bytes) }
}

export function bytesOfBlob(value: unknown): Uint8Array | undefined {
  return typeof value === 'object' && value !== null && blobBytesKey in value
    ? (value as BlobBytes)[blobBytesKey]
    : undefined
}

/** Returns the length of bytes in base64. */
export function base64Length(bytes: number): number {
  return 4 * Math.ceil(bytes / 3)
}

/** The forms of a blob that the caller can send, besides base64. */
export interface BlobForms {
  /** {@link BlobStream}, for a content that is read while it is sent. */
  readonly streams?: boolean
  /** {@link BlobBytes}, for a long content. */
  readonly bytes?: boolean
}
