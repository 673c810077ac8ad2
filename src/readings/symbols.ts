import { codePoint } from 'dingbat-to-unicode'

/** Fonts that show a symbol for each character, other than the Unicode character in the document. */
const symbolFont = /^(?:wingdings(?: [23])?|webdings|symbol)$/i

export function isSymbolFont(font: string): boolean {
  return symbolFont.test(font.trim())
}

/** Returns the character that a font shows for a code. A symbol font has codes from 0x20 or from 0xF020. U+FFFD: the symbol is unknown. */
export function decodeSymbol(font: string, code: number): string {
  if (!Number.isInteger(code) || code < 0 || code > 0x10ffff) return '\ufffd'
  // Documents may hold the codes of such fonts in the private use area.
  const own = code >= 0xf000 && code <= 0xf0ff ? code - 0xf000 : code
  if (own <= 0x20 || code === own + 0xf000 || isSymbolFont(font))
    return own <= 0x20 ? ' ' : (codePoint(font.trim(), own)?.string ?? '\ufffd')
  return String.fromCodePoint(code).toWellFormed()
}

/** Decodes a text if its font is one of symbols; returns any other text unchanged. */
export function decodeSymbols(text: string, font: string): string {
  if (!isSymbolFont(font)) return text
  return Array.from(text, (character) => {
    const code = character.codePointAt(0) ?? 0
    return code < 0x100 || (code >= 0xf000 && code <= 0xf0ff) ? decodeSymbol(font, code) : character
  }).join('')
}
