import { isUtf8 } from 'node:buffer'

/** Whether bytes are text: valid UTF-8 without NUL. */
export function isText(bytes: Uint8Array): boolean {
  return !bytes.includes(0) && isUtf8(bytes)
}

/** Number of bytes at the start of a resource that decide whether its parts are text. */
export const headBytes = 8192

/**
 * Whether the head of a resource begins a text. NULs may stand only at its end: a log ends in NULs if space was reserved for it, or if the
 * machine stopped while it was written.
 */
export function isTextHead(head: Uint8Array): boolean {
  const text = beforeNul(head)
  const isEmpty = text.length === 0 && head.length > 0
  const rest = head.subarray(text.length)
  return !isEmpty && rest.every((byte) => byte === 0) && isText(text.subarray(0, wholeCharacters(text).to))
}

export function beforeNul<B extends Uint8Array>(bytes: B): B {
  const nul = bytes.indexOf(0)
  return nul === -1 ? bytes : (bytes.subarray(0, nul) as B)
}

export function isContinuation(bytes: Uint8Array, index: number): boolean {
  return ((bytes[index] ?? 0) & 0xc0) === 0x80
}

/**
 * Returns the range of whole characters in a part of a UTF-8 text: from the first that begins in it to the last that ends in it, as
 * indices into the part. For bytes that are not UTF-8 it may leave out up to three at either end.
 */
export function wholeCharacters(bytes: Uint8Array): { readonly from: number; readonly to: number } {
  let from = 0
  while (from < 3 && from < bytes.length && isContinuation(bytes, from)) from++
  let last = bytes.length - 1
  while (last > from && last > bytes.length - 4 && isContinuation(bytes, last)) last--
  const lead = bytes[last] ?? 0
  const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1
  // Leave out an incomplete last character, and a lone continuation byte.
  return { from, to: last >= from && last + length > bytes.length ? last : bytes.length }
}

/** Returns the bytes of a text in UTF-8, as characters from 0 to 255. */
export function toBinaryString(text: string): string {
  return /[^\0-\x7f]/.test(text) ? Buffer.from(text).toString('latin1') : text
}
