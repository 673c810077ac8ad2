import { decodeKorean } from './korean.ts'

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
  // ICU, which the others stand on, knows less of EUC-KR than the standard does.
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
