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
