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

/**
 * A regular expression that is compiled at its first use. Node checks each literal when it loads the file, and building the sets of
 * Unicode properties (`\p{L}`) takes a start 3 ms: this is for those that most starts never use.
 */
export function patternOf(source: string, flags: string): () => RegExp {
  let pattern: RegExp | undefined
  return () => {
    pattern ??= new RegExp(source, flags)
    return pattern
  }
}
