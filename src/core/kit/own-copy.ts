/** Maximum length of a substring that V8 copies, in UTF-16 units. A longer substring refers to the text from which it was cut. */
const maxCopiedUnits = 12
const latin1 = /^[\0-\xff]*$/

/** Returns a copy of a substring, for caches: the substring itself would keep the whole text in memory. */
export function ownCopy(piece: string): string {
  if (piece.length <= maxCopiedUnits) return piece
  const encoding = latin1.test(piece) ? 'latin1' : 'utf16le'
  return Buffer.from(piece, encoding).toString(encoding)
}
