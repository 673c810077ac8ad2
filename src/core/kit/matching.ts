/** Returns a text in the form in which texts are compared: composed and of one width (Unicode NFKC), in lower case. */
export function foldText(text: string): string {
  return text.normalize('NFKC').toLowerCase()
}

/** Returns the words of a filter text, each in the form of {@link foldText}. */
export function splitFilterWords(filter: string | undefined): readonly string[] {
  return foldText(filter ?? '')
    .split(/\s+/)
    .filter((word) => word !== '')
}

/**
 * Returns a function that compiles a regular expression at its first call. Building the sets of Unicode properties
 * (`\p{L}`) when a file is loaded delays the start.
 */
export function lazyPattern(source: string, flags: string): () => RegExp {
  let pattern: RegExp | undefined
  return () => {
    pattern ??= new RegExp(source, flags)
    return pattern
  }
}
