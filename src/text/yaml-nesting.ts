/**
 * Returns the index at which YAML is nested deeper than a limit: in brackets, or by so many `-` or `?` at the beginning of one line. Undefined if it
 * is not. Call it before a parser that calls itself for each level: where the stack ends while V8 compiles a regular expression, it ends the
 * process in place of throwing. Levels by indentation need not be counted, since so many of them would need a text of megabytes.
 *
 * Brackets in texts count too, as far as they are not closed.
 *
 * @param limit At most 1000.
 */
export function deepNestingIn(text: string, limit: number): number | undefined {
  let depth = 0
  for (const { 0: found, index } of text.matchAll(/[[{\]}]|(?:^|(?<=\n))[ \t]*(?:[-?][ \t]+){1,1001}/g)) {
    if (found === '[' || found === '{') depth++
    else if (found === ']' || found === '}') depth = Math.max(0, depth - 1)
    else if ((found.match(/[-?]/g)?.length ?? 0) > limit) return index
    if (depth > limit) return index
  }
  return undefined
}
