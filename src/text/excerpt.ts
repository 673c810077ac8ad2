/** Returns a text on one line, cut to `most` UTF-16 units as by {@link shorten}. */
export function oneLine(text: string, most: number): string {
  return shorten(text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ').trim(), most)
}

/** Cuts a text to `most` UTF-16 units, including an ellipsis at the cut. */
export function shorten(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1).toWellFormed()}…`
}

/**
 * Estimates the number of tokens of a text in a language model, without a tokenizer. Counting stops beyond `most`, which also bounds its
 * time.
 */
export function estimateTokens(text: string, most = Number.POSITIVE_INFINITY): number {
  return walk(text, most).tokens
}

/** Returns the length of the longest beginning of a text with at most about `most` tokens, in UTF-16 units. It ends at a character boundary. */
export function lengthOfTokens(text: string, most: number): number {
  return walk(text, most).length
}

const perWideCharacter = 0.85
const perOtherCharacter = 0.6

function walk(text: string, most: number): { readonly tokens: number; readonly length: number } {
  let tokens = 0
  let length = 0
  // The runs are short, so that a cut between two of them is exact enough, and no step takes quadratic time.
  for (const [run] of text.matchAll(/[A-Za-z]{1,16}|[0-9]{1,3}|[ \t]{1,16}|\r?\n|./gsu)) {
    const cost = costOf(run)
    if (tokens + cost > most) return { tokens: Math.ceil(tokens + cost), length }
    tokens += cost
    length += run.length
  }
  return { tokens: Math.ceil(tokens), length }
}

function costOf(run: string): number {
  const code = run.codePointAt(0) ?? 0
  if (/^[A-Za-z]/.test(run)) return Math.max(1, run.length / 4.5)
  if (/^[0-9]/.test(run)) return 1
  // A space belongs to the next word.
  if (run === ' ') return 0.05
  if (/^[ \t]/.test(run)) return 0.6
  if (code < 0x80) return run.endsWith('\n') ? 0.5 : 0.7
  return code >= 0x2e80 ? perWideCharacter : perOtherCharacter
}
