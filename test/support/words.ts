/** Sentences that begin with a word such as "what", "whoever" or "where", and so need a second reading. Questions do not match. */
const riddle =
  /(?:^|[.!?:;] )(?:What|Whatever|Whoever|Whichever|Wherever|Where|Who|So many|So long)\b(?![^.!?]*\?)[^.!?]*/

/** Returns the first sentence of a text that begins with a word such as "what", "whoever" or "where", if there is one. */
export function riddleIn(text: string): string | undefined {
  return riddle.exec(text)?.[0].replace(/^[.!?:;] /, '')
}

/** Maximum number of files that may declare a type with the same name. */
export const maxSameNames = 3
/** A type name that every component of a React application usually has. */
const usualName = 'Props'

/** Returns the type names that more than {@link maxSameNames} files declare, so that a reader cannot tell which type is meant. */
export function repeatedNames(files: readonly { readonly types: readonly string[] }[]): readonly string[] {
  const counts = new Map<string, number>()
  for (const { types } of files) for (const name of new Set(types)) counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts].flatMap(([name, count]) => (count > maxSameNames && name !== usualName ? [name] : [])).sort()
}
