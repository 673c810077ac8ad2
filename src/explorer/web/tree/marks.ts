import { fold } from '../../../browse/matching.ts'

/** A letter with the marks that follow it, also those that half-width kana have: together they fold to one. */
const letters = /.[\p{M}\uff9e\uff9f]*/gsu

/**
 * Returns the ranges of the words of a filter in a text: half-open, in UTF-16 units, in order, not overlapping. It matches as the filter
 * does, regardless of width and composition of letters.
 *
 * @param words Folded.
 */
export function marksOf(text: string, words: readonly string[]): readonly (readonly [start: number, end: number])[] {
  if (words.length === 0) return []
  /** For each unit of the folded text, where the letter that it came from begins and ends. */
  const starts: number[] = []
  const ends: number[] = []
  let folded = ''
  for (const { 0: letter, index } of text.matchAll(letters)) {
    const part = fold(letter)
    folded += part
    for (let unit = 0; unit < part.length; unit++) {
      starts.push(index)
      ends.push(index + letter.length)
    }
  }
  const found: (readonly [number, number])[] = []
  for (const word of words)
    for (let at = folded.indexOf(word); at !== -1; at = folded.indexOf(word, at + word.length))
      found.push([starts[at] ?? 0, ends[at + word.length - 1] ?? text.length])
  return joined(found)
}

function joined(marks: readonly (readonly [number, number])[]): readonly (readonly [number, number])[] {
  const sorted = [...marks].sort(([a], [b]) => a - b)
  const result: [number, number][] = []
  for (const [start, end] of sorted) {
    const last = result.at(-1)
    if (last !== undefined && start <= last[1]) last[1] = Math.max(last[1], end)
    else result.push([start, end])
  }
  return result
}

/** A text in pieces, the marked ones among them. */
export function piecesOf(
  text: string,
  words: readonly string[],
): readonly { readonly text: string; readonly isMarked: boolean }[] {
  const pieces: { readonly text: string; readonly isMarked: boolean }[] = []
  let from = 0
  for (const [start, end] of marksOf(text, words)) {
    if (start > from) pieces.push({ text: text.slice(from, start), isMarked: false })
    pieces.push({ text: text.slice(start, end), isMarked: true })
    from = end
  }
  if (from < text.length || pieces.length === 0) pieces.push({ text: text.slice(from), isMarked: false })
  return pieces
}
