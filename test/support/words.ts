/** Sentences that begin with a word such as "what", "whoever" or "where", and so need a second reading. Questions do not match. */
const riddle =
  /(?:^|[.!?:;] )(?:What|Whatever|Whoever|Whichever|Wherever|Where|Who|So many|So long)\b(?![^.!?]*\?)[^.!?]*/

/** Returns the first sentence of a text that begins with a word such as "what", "whoever" or "where", if there is one. */
export function riddleIn(text: string): string | undefined {
  return riddle.exec(text)?.[0].replace(/^[.!?:;] /, '')
}

/** Maximum number of files that may declare a type or a function with the same name. */
export const maxSameNames = 3
/** `Props`: each component of the explorer has them. `define` and `open`: each command and each source has one, which a table loads by this name. */
const usualNames: readonly string[] = ['Props', 'define', 'open']

/** Returns the names of types and functions that more than {@link maxSameNames} files declare, so that a reader cannot tell which is meant. */
export function repeatedNames(files: readonly { readonly declarations: readonly string[] }[]): readonly string[] {
  const counts = new Map<string, number>()
  for (const { declarations } of files)
    for (const name of new Set(declarations)) counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts]
    .flatMap(([name, count]) => (count > maxSameNames && !usualNames.includes(name) ? [name] : []))
    .sort()
}
