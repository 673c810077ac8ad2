/** Sentences that a reader needs twice: those whose subject is "what", "whoever" or "where". Questions are none of them. */
const riddle =
  /(?:^|[.!?:;] )(?:What|Whatever|Whoever|Whichever|Wherever|Where|Who|So many|So long)\b(?![^.!?]*\?)[^.!?]*/

/** The first such sentence of a text, if there is one. */
export function riddleIn(text: string): string | undefined {
  return riddle.exec(text)?.[0].replace(/^[.!?:;] /, '')
}

/** Number of files that may declare a type of one name. */
export const maxSameNames = 3
/** A name that React's users expect in every component. */
const usualName = 'Props'

/** The names of types that more than {@link maxSameNames} files declare: a reader cannot tell which one is meant. */
export function repeatedNames(files: readonly { readonly types: readonly string[] }[]): readonly string[] {
  const counts = new Map<string, number>()
  for (const { types } of files) for (const name of new Set(types)) counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts].flatMap(([name, count]) => (count > maxSameNames && name !== usualName ? [name] : [])).sort()
}
