/** A text in the form that it is compared in, and where each of its UTF-16 units comes from. */
export interface Folded {
  readonly text: string
  /** Returns the position in the original at which the unit at `index` begins. For the length of `text`: the length of the original. */
  origin(index: number): number
}

/** Maximum number of combining marks that are normalized with one character: sorting them takes quadratic time. */
const mostMarks = 16

const mark = /^[\p{M}\uff9e\uff9f\u1160-\u11ff\ud7b0-\ud7fb]$/u

/**
 * Folds different spellings into one: NFKC, so full and half width, ligatures and composed characters are equal. Capitals stay,
 * because words are split at them. Linear in the length of the text.
 */
export function fold(text: string): Folded {
  const first = runOfStable(text, 0)
  if (first === text.length) return { text, origin: (index) => index }
  const parts: string[] = [text.slice(0, first)]
  /** Positions at which the offset between folded text and original changes: from `at` on, units come from `from` on. */
  const at: number[] = [0]
  const from: number[] = [0]
  let length = first
  for (let index = first; index < text.length; ) {
    const stable = runOfStable(text, index)
    if (stable > index) {
      parts.push(text.slice(index, stable))
      at.push(length)
      from.push(index)
      length += stable - index
      index = stable
      continue
    }
    const end = endOfCluster(text, index)
    const folded = text.slice(index, end).normalize('NFKC')
    parts.push(folded)
    for (let unit = 0; unit < folded.length; unit++) {
      at.push(length + unit)
      from.push(index)
    }
    length += folded.length
    index = end
  }
  at.push(length)
  from.push(text.length)
  return { text: parts.join(''), origin: (index) => originOf(at, from, index) }
}

/** Binary search for the last entry at or before the index. */
function originOf(at: readonly number[], from: readonly number[], index: number): number {
  let low = 0
  let high = at.length - 1
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if ((at[middle] ?? 0) <= index) low = middle
    else high = middle - 1
  }
  return (from[low] ?? 0) + index - (at[low] ?? 0)
}

/** Finds the next character that is not one of the frequent ones that NFKC does not change, unless a combining mark follows. */
const unstable = /[^\0-\x7f\u3001\u3002\u300c-\u300f\u3041-\u3096\u30a1-\u30fe\u4e00-\u9fff\uac00-\ud7a3]/g

/** The length of the folded part of a text: it ends before a character that composes with the following one. */
function runOfStable(text: string, start: number): number {
  // V8 runs through a string in a regular expression much faster than unit by unit.
  unstable.lastIndex = start
  if (!unstable.test(text)) return text.length
  const index = unstable.lastIndex - 1
  return index > start && isMark(text, index) ? index - 1 : index
}

function isMark(text: string, index: number): boolean {
  const point = text.codePointAt(index) ?? 0
  return point >= 0x300 && mark.test(String.fromCodePoint(point))
}

/** Returns the end of a character with its combining marks. */
function endOfCluster(text: string, start: number): number {
  let index = start + widthAt(text, start)
  for (let marks = 0; marks < mostMarks && index < text.length && isMark(text, index); marks++)
    index += widthAt(text, index)
  return index
}

/** Length of the character in UTF-16 units. */
export function widthAt(text: string, index: number): 1 | 2 {
  return (text.codePointAt(index) ?? 0) > 0xffff ? 2 : 1
}

/** Kinds of characters for the index. Scripts without spaces between words are cut into bigrams. */
export const other = 0
export const word = 1
export const han = 2
/** Kana, Hangul, and the scripts of South East Asia that are written without spaces. */
const syllable = 3

type CharacterClass = typeof other | typeof word | typeof han | typeof syllable

const hanText = /[\p{Script=Han}々〆〇]/u
// The marks that lengthen or repeat a kana are in several scripts, or in none.
const syllableText =
  /[\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}ー゛゜ゝゞヽヾ]/u
const wordText = /[\p{L}\p{N}\p{M}]/u

let table: Uint8Array | undefined

/** The class of a code point. */
export function classOf(point: number): CharacterClass {
  if (point > 0xffff) return classify(point)
  table ??= Uint8Array.from({ length: 0x10000 }, (_, each) =>
    each >= 0xd800 && each < 0xe000 ? other : classify(each),
  )
  return table[point] as CharacterClass
}

function classify(point: number): CharacterClass {
  const text = String.fromCodePoint(point)
  if (hanText.test(text)) return han
  if (!wordText.test(text) && point !== 0x309b && point !== 0x309c) return other
  return syllableText.test(text) ? syllable : word
}
