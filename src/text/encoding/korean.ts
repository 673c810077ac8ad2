/**
 * EUC-KR as the Encoding Standard has it, which is code page 949: the 2350 syllables of KS X 1001, and all others in the
 * places between. Node's `TextDecoder` knows the first only, and reads the others as controls and letters.
 */

const [firstSyllable, lastSyllable] = [0xac00, 0xd7a3]
let table: Uint16Array | undefined

/** Returns the character of each pair of bytes; 0 for an invalid pair. */
function pairs(): Uint16Array {
  if (table !== undefined) return table
  const made = new Uint16Array(0x10000)
  const decoder = new TextDecoder('euc-kr')
  const known = new Set<number>()
  for (let lead = 0xa1; lead <= 0xfe; lead++)
    for (let trail = 0xa1; trail <= 0xfe; trail++) {
      const text = decoder.decode(Uint8Array.of(lead, trail))
      const code = text.charCodeAt(0)
      if (text.length !== 1 || code === 0xfffd || (code >= 0xe000 && code <= 0xf8ff)) continue
      made[lead * 0x100 + trail] = code
      known.add(code)
    }
  // The syllables missing from KS X 1001 follow in Unicode order, around its square.
  let syllable = firstSyllable
  for (let lead = 0x81; lead <= 0xc6; lead++)
    for (let trail = 0x41; trail <= 0xfe; trail++) {
      const inSquare = lead >= 0xa1 && trail >= 0xa1
      if (inSquare || (trail > 0x5a && trail < 0x61) || (trail > 0x7a && trail < 0x81)) continue
      while (known.has(syllable)) syllable++
      if (syllable <= lastSyllable) made[lead * 0x100 + trail] = syllable++
    }
  table = made
  return made
}

/** Decodes EUC-KR; see `decodeBytes` for what `strict` means. */
export function decodeKorean(bytes: Uint8Array, strict?: 'strict'): string | undefined {
  const meaning = pairs()
  const codes = new Uint16Array(bytes.length)
  let length = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0
    const trail = bytes[at + 1]
    let code = byte
    if (byte >= 0x80) {
      if (trail === undefined && strict !== undefined) break
      code = meaning[byte * 0x100 + (trail ?? 0)] ?? 0
      if (code === 0 && strict !== undefined) return undefined
      // A letter behind a malformed byte is a letter still.
      if (code !== 0 || (trail ?? 0) >= 0x80) at++
      if (code === 0) code = 0xfffd
    }
    codes[length++] = code
  }
  let text = ''
  for (let from = 0; from < length; from += 8192)
    text += String.fromCharCode(...codes.subarray(from, Math.min(length, from + 8192)))
  return text
}
