/** The length of the well-formed character at an index; 0 where there is none (Unicode 16, table 3-7). */
function characterAt(bytes: Uint8Array, at: number): number {
  const lead = bytes[at] ?? 0
  if (lead < 0x80) return 1
  if (lead < 0xc2 || lead > 0xf4) return 0
  const length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
  const second = bytes[at + 1] ?? 0
  const from = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80
  const to = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf
  if (second < from || second > to) return 0
  for (let i = 2; i < length; i++) if (((bytes[at + i] ?? 0) & 0xc0) !== 0x80) return 0
  return length
}

/** How many characters beyond ASCII bytes have as UTF-8, and how many bytes are part of none. */
function examine(bytes: Uint8Array): { readonly good: number; readonly bad: number } {
  let good = 0
  let bad = 0
  for (let at = 0; at < bytes.length; ) {
    const length = characterAt(bytes, at)
    if (length > 1) good++
    // A character may be cut in two at the end.
    if (length === 0 && at < bytes.length - 3) bad++
    at += length || 1
  }
  return { good, bad }
}

/** Whether bytes must be UTF-8, though a few are damaged: of 20 characters beyond ASCII no more than one. */
export function isDamagedUtf8(bytes: Uint8Array): boolean {
  const { good, bad } = examine(bytes)
  return good >= 10 && bad * 20 <= good
}

/** Whether bytes can be part of a text in UTF-8 that has damaged bytes in it. */
export function isMostlyUtf8(bytes: Uint8Array): boolean {
  return examine(bytes).bad * 10 <= bytes.length
}

/**
 * The bytes with a `?` for each that is part of no character. Their number stays the same, so that a place in the one is the
 * same place in the other.
 */
export function repairUtf8(bytes: Uint8Array): Buffer {
  const repaired = Buffer.from(bytes)
  for (let at = 0; at < bytes.length; ) {
    const length = characterAt(bytes, at)
    if (length === 0) repaired[at] = 0x3f
    at += length || 1
  }
  return repaired
}
