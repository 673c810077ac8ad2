/** Returns a text on one line, cut to a length in characters. */
export function oneLine(text: string, most: number): string {
  return shorten(text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ').trim(), most)
}

/** Cuts a text to a length in characters, with an ellipsis. */
export function shorten(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1).toWellFormed()}…`
}
