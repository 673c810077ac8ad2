/** Scripts without spaces between words: their text is split into pairs of characters. */
const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}ー々〆]+/gu
const han = /^\p{Script=Han}$/u
// Bounded, because normalisation takes quadratic time in the number of marks after a character.
const words = /[\p{L}\p{N}\p{M}_]{1,64}/gu
const parts = /\p{Lu}+(?!\p{Ll})|\p{Lu}?[\p{Ll}\p{Lo}\p{M}]+|\p{N}+/gu

/**
 * The terms of a text, in order: words in small letters and without their endings, the parts of identifiers, and of scripts without
 * spaces each pair of characters and each Han character.
 */
export function termsIn(text: string): readonly string[] {
  return wordsIn(text).flatMap(termsOf)
}

/** The words of a text. `termsOf` returns the terms of each. */
export function wordsIn(text: string): readonly string[] {
  return text.match(words) ?? []
}

/** Cache of the terms of words, because most words repeat. */
const remembered = new Map<string, readonly string[]>()
const most = { words: 50_000, length: 24 }

export function termsOf(word: string): readonly string[] {
  const known = remembered.get(word)
  if (known !== undefined) return known
  const terms = [...allTerms(word)]
  if (word.length > most.length) return terms
  if (remembered.size >= most.words) remembered.clear()
  remembered.set(word, terms)
  return terms
}

function* allTerms(found: string): Generator<string> {
  const word = /^[a-z]+$/.test(found) ? found : found.normalize('NFKC')
  let rest = word
  for (const [run] of word.matchAll(unspaced)) {
    yield* pairsOf(run)
    rest = rest.replace(run, ' ')
  }
  for (const [one] of rest.matchAll(/[^ ]+/g)) yield* wordTerms(one)
}

function* wordTerms(word: string): Generator<string> {
  const pieces = [...word.matchAll(parts)].map(([part]) => part)
  if (pieces.length > 1) yield stem(word.replaceAll('_', '').toLowerCase())
  for (const piece of pieces) yield stem(piece.toLowerCase())
}

function* pairsOf(run: string): Generator<string> {
  const characters = [...run]
  for (const [index, character] of characters.entries()) {
    if (han.test(character)) yield character
    const next = characters[index + 1]
    if (next !== undefined) yield character + next
  }
}

/** Removes the most frequent endings of English words, so that different forms of a word are equal. */
function stem(word: string): string {
  if (word.length < 5 || !/^[a-z]+$/.test(word)) return word
  const bare = word.replace(/(?:ing|ies|ed|es|s)$/, '')
  return bare.length < 3 ? word : bare.replace(/(.)\1$/, '$1').replace(/[ey]$/, '')
}
