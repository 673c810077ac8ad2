import { classOf, word } from '../text/characters.ts'
import { fold } from '../text/fold.ts'
import type { Ranker } from './rank.ts'
import type { Snippet } from './search-index.ts'

/** Maximum length of a snippet without the ellipses, and maximum length of the text before the first mark. */
const units = { most: 240, before: 40 }
/** Maximum distance in which the beginning of a cut word is searched. */
const widestWord = 32

type Range = readonly [start: number, end: number]

/** The stretch of a text that contains most of the terms, with their positions. Without terms: the beginning. */
export function snippetOf(text: string, ranker: Ranker): Snippet {
  const folded = fold(text)
  const matches = ranker.matches(folded)
  const marks = matches.map(({ start, end, term }) => {
    const from = folded.origin(start)
    // A range within the folding of one character ends with that character.
    return { term, from, to: Math.max(endOf(folded.origin(end), from, text), from + 1) }
  })
  const first = marks[bestStart(marks, ranker)]
  const from = first === undefined ? 0 : startOf(text, first.from)
  const to = endAt(text, from)
  const head = from > 0 ? '… ' : ''
  const tail = to < text.length ? ' …' : ''
  const inside = marks.flatMap(({ from: start, to: end }): readonly Range[] =>
    start >= from && end <= to ? [[start - from + head.length, end - from + head.length]] : [],
  )
  // Line ends are kept, because code is shown as such.
  const body = text.slice(from, to).replace(/(?!\n)[\s\p{Cc}]/gu, ' ')
  return { text: `${head}${body}${tail}`, marks: merged(inside) }
}

function endOf(end: number, from: number, text: string): number {
  return end > from ? end : from + ((text.codePointAt(from) ?? 0) > 0xffff ? 2 : 1)
}

/** The match at which the snippet should begin: the first of the matches with the greatest total weight of terms in the stretch after them. */
function bestStart(marks: readonly { readonly term: number; readonly from: number }[], { terms }: Ranker): number {
  const counts = new Int32Array(terms.length)
  const length = units.most - units.before
  let best = 0
  let most = -1
  let sum = 0
  let next = 0
  for (const [index, mark] of marks.entries()) {
    for (let ahead = marks[next]; ahead !== undefined && ahead.from < mark.from + length; ahead = marks[++next]) {
      const count = (counts[ahead.term] ?? 0) + 1
      counts[ahead.term] = count
      // A repeated term adds a little: a stretch with many occurrences is better than one with a single one.
      sum += (terms[ahead.term]?.weight ?? 0) * (count === 1 ? 1 : 0.1)
    }
    if (sum > most + 1e-9) {
      most = sum
      best = index
    }
    const count = counts[mark.term] ?? 0
    counts[mark.term] = count - 1
    sum -= (terms[mark.term]?.weight ?? 0) * (count === 1 ? 1 : 0.1)
  }
  return best
}

/** A little before the match, at the beginning of a sentence or line if there is one near, else of a word. */
function startOf(text: string, match: number): number {
  if (match <= units.before) return 0
  const before = text.slice(match - units.before, match)
  const sentence = Math.max(...['\n', '。', '. '].map((end) => before.lastIndexOf(end) + (end === '. ' ? 2 : 1)))
  if (sentence > 1) return match - units.before + sentence
  return wordStart(text, match - units.before, match)
}

/** The next position at which neither a word nor a character is cut. */
function wordStart(text: string, from: number, most: number): number {
  let at = from
  if (isLow(text, at)) at++
  if (!isWord(text, at - 1)) return at
  for (let step = 0; step < widestWord && at < most && isWord(text, at); step++) at++
  return isLow(text, at) ? at + 1 : at
}

function endAt(text: string, from: number): number {
  const most = from + units.most
  if (most >= text.length) return text.length
  let at = most
  for (let step = 0; step < widestWord && isWord(text, at - 1) && isWord(text, at); step++) at--
  return isLow(text, at) ? at - 1 : at
}

function isLow(text: string, at: number): boolean {
  const unit = text.charCodeAt(at)
  return unit >= 0xdc00 && unit <= 0xdfff
}

function isWord(text: string, at: number): boolean {
  return at >= 0 && at < text.length && classOf(text.charCodeAt(at)) === word
}

/** Marks that touch are merged. */
function merged(ranges: readonly Range[]): readonly Range[] {
  const ordered = [...ranges].sort((a, b) => a[0] - b[0] || a[1] - b[1])
  const result: [number, number][] = []
  for (const [start, end] of ordered) {
    const last = result.at(-1)
    if (last !== undefined && start <= last[1]) last[1] = Math.max(last[1], end)
    else result.push([start, end])
  }
  return result
}
