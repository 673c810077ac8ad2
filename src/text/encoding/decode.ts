/** Names that people write and the Encoding Standard does not know. */
const aliases: Readonly<Record<string, string>> = {
  cp932: 'shift_jis',
  ms932: 'shift_jis',
  eucjp: 'euc-jp',
  jis: 'iso-2022-jp',
  cp936: 'gbk',
  cp949: 'euc-kr',
  uhc: 'euc-kr',
  cp950: 'big5',
}

/** The label of an encoding in the WHATWG Encoding Standard, in lower case: of `CP932` it is `shift_jis`. */
export function labelOf(name: string): string | undefined {
  const label = name.trim().toLowerCase()
  try {
    return new TextDecoder(aliases[label] ?? label).encoding
  } catch {
    return undefined
  }
}

/** Characters of 0x80 to 0x9F in Windows-1252; all other bytes are Latin-1. */
const punctuation = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ'

/**
 * Decodes bytes by the label of an encoding. Removes a byte order mark; malformed bytes become U+FFFD. With `strict`, malformed
 * bytes make the result `undefined`, except a character that the end of the bytes cuts in two.
 */
export function decodeBytes(bytes: Uint8Array, label: string, strict?: 'strict'): string | undefined {
  // Node's decoder of Windows-1252 is one of Latin-1 in some releases (nodejs/node#56542).
  if (label === 'windows-1252') return decodeWestern(bytes, strict)
  // ICU, on which the other decoders are based, knows less of EUC-KR than the standard does.
  if (label === 'euc-kr') return decodeKorean(bytes, strict)
  try {
    const text = new TextDecoder(label, { fatal: strict !== undefined }).decode(bytes, { stream: strict !== undefined })
    // ICU decodes some bytes to C1 controls that the Encoding Standard calls malformed.
    return strict !== undefined && /[\x80-\x9f]/.test(text) ? undefined : text
  } catch {
    return undefined
  }
}

/** Whether bytes that decode are whole characters: the last one is not cut in two. */
export function isWhole(bytes: Uint8Array, label: string): boolean {
  const padded = Buffer.concat([bytes, Buffer.from('\n')])
  return decodeBytes(padded, label, 'strict')?.endsWith('\n') === true
}

function decodeWestern(bytes: Uint8Array, strict?: 'strict'): string | undefined {
  if (strict !== undefined && [0x81, 0x8d, 0x8f, 0x90, 0x9d].some((byte) => bytes.includes(byte))) return undefined
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
  return text.replace(/[\x80-\x9f]/g, (character) => punctuation.charAt(character.charCodeAt(0) - 0x80))
}

/**
 * EUC-KR as in the Encoding Standard, where it is code page 949: the 2350 syllables of KS X 1001, and all other syllables at
 * the remaining positions. Node's `TextDecoder` knows only the first ones, and decodes the others as controls and letters.
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
function decodeKorean(bytes: Uint8Array, strict?: 'strict'): string | undefined {
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
      // A letter after a malformed byte is still a letter.
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
