import { fold, wordsOf } from '../../core/kit/matching.ts'
import type { Resource } from '../../core/view.ts'
import { type Cell, cellsOf, type Row, span } from './cells.ts'

/** A query for names: all its words must occur, regardless of case and width. */
export interface Needle {
  readonly key: string
  readonly words: readonly string[]
}

/** Returns `undefined` for a text without words. */
export function needleOf(text: string): Needle | undefined {
  const words = wordsOf(text)
  return words.length === 0 ? undefined : { key: words.join(' '), words }
}

const folded = new WeakMap<Resource, string>()

export function matches(resource: Resource, { words }: Needle): boolean {
  const text = folded.get(resource) ?? fold(`${resource.name}\n${resource.title ?? ''}`)
  folded.set(resource, text)
  return words.every((word) => text.includes(word))
}

/** Marks the cells in which the words occur. */
export function marked(cells: Row, words: readonly string[]): Row {
  if (words.length === 0 || cells.length === 0) return cells
  // Folding changes lengths: each unit of the folded text is of one cell.
  let text = ''
  const cellAt: number[] = []
  for (const [index, cell] of cells.entries()) {
    const piece = fold(cell.text)
    for (let unit = 0; unit < piece.length; unit++) cellAt.push(index)
    text += piece
  }
  const hit = new Set<number>()
  for (const word of words)
    for (let at = text.indexOf(word); at >= 0 && word !== ''; at = text.indexOf(word, at + word.length))
      for (let unit = at; unit < at + word.length; unit++) hit.add(cellAt[unit] ?? -1)
  return hit.size === 0 ? cells : cells.map((cell, index): Cell => (hit.has(index) ? { ...cell, style: 'mark' } : cell))
}

/** A text with the words of a filter marked in it. */
export function markedText(text: string, needle: Needle | undefined): Row {
  return marked(cellsOf([span(text)]), needle?.words ?? [])
}

/** Returns the words that a search has marked in a hit. */
export function wordsIn(pieces: readonly { readonly text: string; readonly marked: boolean }[]): readonly string[] {
  const words = pieces.flatMap((piece) => (piece.marked ? [fold(piece.text).trim()] : []))
  return [...new Set(words)].filter((word) => word !== '')
}
