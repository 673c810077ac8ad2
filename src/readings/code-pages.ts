import { decodeBytes, encodingLabel } from '../text/encoding/decode.ts'

/** Names of the encodings of code pages, where they do not follow from the number. */
const encodings: Readonly<Record<number, string>> = {
  866: 'ibm866',
  874: 'windows-874',
  932: 'shift_jis',
  936: 'gb18030',
  949: 'euc-kr',
  950: 'big5',
  10000: 'macintosh',
  10001: 'shift_jis',
  10007: 'x-mac-cyrillic',
  20866: 'koi8-r',
  21866: 'koi8-u',
  65001: 'utf-8',
}

/** Code pages by the character set of a font in Windows. */
const codePages: Readonly<Record<number, number>> = {
  77: 10_000,
  78: 10_001,
  128: 932,
  129: 949,
  134: 936,
  136: 950,
  161: 1253,
  162: 1254,
  163: 1258,
  177: 1255,
  178: 1256,
  186: 1257,
  204: 1251,
  222: 874,
  238: 1250,
}

/** Code pages by the languages of Windows ([MS-LCID]): the lowest ten bits are the language, the others its country. */
const languages: Readonly<Record<number, number>> = {
  1: 1256,
  2: 1251,
  4: 936,
  5: 1250,
  8: 1253,
  13: 1255,
  14: 1250,
  17: 932,
  18: 949,
  21: 1250,
  24: 1250,
  25: 1251,
  26: 1250,
  27: 1250,
  28: 1250,
  30: 874,
  31: 1254,
  32: 1256,
  34: 1251,
  35: 1251,
  36: 1250,
  37: 1257,
  38: 1257,
  39: 1257,
  41: 1256,
  42: 1258,
  47: 1251,
  // Traditional Chinese: of Taiwan, Hong Kong and Macao.
  1028: 950,
  3076: 950,
  5124: 950,
  // Serbian in Cyrillic letters.
  3098: 1251,
}

/** The bytes from 0x80 on in code pages of DOS, for which there are no decoders. */
const dos: Readonly<Record<number, string>> = {
  437: 'ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u00a0',
  850: 'ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒáíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐└┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u00ad±‗¾¶§÷¸°¨·¹³²■\u00a0',
}

/** Returns the code page of the character set of a font in Windows; `undefined` for an unknown set. */
export function codePageOfCharset(charset: number): number | undefined {
  return codePages[charset]
}

/** Returns the code page of texts in a language of Windows ([MS-LCID]); 1252 (Western Europe) for a language that is not in the table. */
export function codePageOfLanguage(language: number): number {
  return languages[language] ?? languages[language & 0x3ff] ?? 1252
}

/** Decodes bytes in a code page of Windows, DOS or the Mac, or of ISO 8859. In an unknown code page, bytes other than ASCII become U+FFFD. */
export function decodeCodePage(bytes: Buffer, codePage: number): string {
  if (bytes.every((byte) => byte < 0x80)) return bytes.toString('latin1')
  const upper = dos[codePage]
  if (upper !== undefined)
    return bytes.toString('latin1').replace(/[\x80-\xff]/g, (byte) => upper.charAt(byte.charCodeAt(0) - 0x80))
  const isWindows = codePage >= 1250 && codePage <= 1258
  const label = encodings[codePage] ?? (isWindows ? `windows-${codePage}` : `iso-8859-${codePage - 28_590}`)
  return decodeRun(bytes, label) ?? bytes.toString('latin1').replace(/[\x80-\xff]/g, '\ufffd')
}

const decoders = new Map<string, InstanceType<typeof TextDecoder>>()

/** Returns `undefined` for an unknown encoding. Decoders are cached, because a document has very many runs of text. */
function decodeRun(bytes: Buffer, label: string): string | undefined {
  const decoder = decoders.get(label)
  if (decoder !== undefined) return decoder.decode(bytes)
  if (label !== 'windows-1252' && label !== 'euc-kr' && encodingLabel(label) !== undefined)
    decoders.set(label, new TextDecoder(label, { ignoreBOM: true }))
  return decodeBytes(bytes, label)
}
