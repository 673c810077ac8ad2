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
