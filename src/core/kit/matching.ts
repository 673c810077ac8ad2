/** A text as it is compared: one width, one case, composed (Unicode NFKC). */
export function fold(text: string): string {
  return text.normalize('NFKC').toLowerCase()
}

/** The words of a filter as they are looked for. */
export function wordsOf(filter: string | undefined): readonly string[] {
  return fold(filter ?? '')
    .split(/\s+/)
    .filter((word) => word !== '')
}
