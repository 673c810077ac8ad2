import { isUtf8 } from 'node:buffer'

/** Whether bytes are text: valid UTF-8 without NUL. */
export function isText(bytes: Uint8Array): boolean {
  return !bytes.includes(0) && isUtf8(bytes)
}

/** Whether the byte at an index continues a character that began before it. */
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
