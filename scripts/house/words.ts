/** Sentences that a reader needs twice: those whose subject is "what", "whoever" or "where". Questions are none of them. */
const riddle =
  /(?:^|[.!?:;] )(?:What|Whatever|Whoever|Whichever|Wherever|Where|Who|So many|So long)\b(?![^.!?]*\?)[^.!?]*/

/** The first such sentence of a text, if there is one. */
export function riddleIn(text: string): string | undefined {
  return riddle.exec(text)?.[0].replace(/^[.!?:;] /, '')
}
