import { fold, wordsOf } from '../../core/kit/matching.ts'
import type { Resource } from '../../core/view.ts'
import { displayWidth, escapeText } from '../terminal/text.ts'

/** Meaning of a piece of text, which determines its style. */
export type Style =
  | 'plain'
  | 'dim'
  | 'bold'
  | 'folder'
  | 'heading'
  | 'code'
  | 'key'
  | 'string'
  | 'number'
  | 'mark'
  | 'changed'
  | 'picked'
  | 'error'
  | 'bar'
  | 'title'

export interface StyledSpan {
  readonly text: string
  readonly style: Style
}

/** A grapheme cluster with its style. */
export interface Cell extends Cluster {
  readonly style: Style
  /** Set on the selected line: `firm` if its pane has the focus, otherwise `faint`. */
  readonly selected?: 'firm' | 'faint'
}

export type Row = readonly Cell[]

export const span = (text: string, style: Style = 'plain'): StyledSpan => ({ text, style })

const blank: Cell = { text: ' ', width: 1, sure: true, style: 'plain' }
const more: Cell = { text: '…', width: 1, sure: false, style: 'dim' }

export function cellsOf(spans: readonly StyledSpan[]): Row {
  return spans.flatMap(({ text, style }) => clustersOf(text).map((cluster) => ({ ...cluster, style })))
}

export function columnsOf(cells: Row): number {
  return cells.reduce((sum, { width }) => sum + width, 0)
}

/**
 * Pads or cuts a row to exactly `columns` columns. A cut is marked with `…`, and leaves out a wide character of which only half
 * would fit. `keep`: the end of the row that remains.
 */
export function fitted(cells: Row, columns: number, keep: 'start' | 'end' = 'start'): Row {
  if (columns <= 0) return []
  const width = columnsOf(cells)
  if (width <= columns) return [...cells, ...blanks(columns - width)]
  const kept: Cell[] = []
  let left = columns - 1
  for (const cell of keep === 'start' ? cells : [...cells].reverse()) {
    if (cell.width > left) break
    kept.push(cell)
    left -= cell.width
  }
  return keep === 'start' ? [...kept, more, ...blanks(left)] : [...blanks(left), more, ...kept.reverse()]
}

export function blanks(count: number): Row {
  return Array.from({ length: Math.max(0, count) }, () => blank)
}

/** A line of spans, cut or padded to a number of columns. */
export function line(columns: number, ...spans: readonly StyledSpan[]): Row {
  return fitted(cellsOf(spans), columns)
}

/** Puts two parts at the ends of one line. The left part is cut first. */
export function sides(columns: number, left: readonly StyledSpan[], right: readonly StyledSpan[]): Row {
  const end = cellsOf(right)
  const room = columns - columnsOf(end)
  return room < 1 ? fitted(end, columns) : [...fitted(cellsOf(left), room), ...end]
}

export function selected(row: Row, how: 'firm' | 'faint'): Row {
  return row.map((cell) => ({ ...cell, selected: how }))
}

/**
 * Cuts a line into rows with a maximum number of columns. A row ends at a blank if its last half has one, else at any character.
 * The blank at a cut is not drawn. An empty line is one row, and a wide character is never cut in two.
 */
export function wrap(cells: Row, columns: number): readonly Row[] {
  const most = Math.max(2, columns)
  const rows: Row[] = []
  let row: Cell[] = []
  let width = 0
  for (const cell of cells) {
    if (width + cell.width > most) {
      const isBlank = cell.text === ' '
      const blankAt = isBlank ? -1 : row.findLastIndex(({ text }) => text === ' ')
      const cut = blankAt + 1 > row.length / 2 ? blankAt + 1 : row.length
      rows.push(row.slice(0, cut))
      row = row.slice(cut)
      width = columnsOf(row)
      if (isBlank) continue
    }
    row.push(cell)
    width += cell.width
  }
  return [...rows, row]
}

/** A grapheme cluster, drawn by a terminal as one character: a base with its marks, or an emoji of several parts. */
interface Cluster {
  readonly text: string
  /** Number of columns: 1 or 2. */
  readonly width: number
  /** Whether the cluster is part of the escape of a character that must not reach the terminal. */
  readonly escaped?: true
  /** Whether all terminals agree on the width. If not, the painter sets the position of the cursor after the cluster. */
  readonly sure: boolean
}

/** Maximum number of marks on one base (UAX #15, stream-safe text). Further marks begin a new cluster. */
const maxMarks = 30
const tabStop = 4

const mark = /[\p{Mn}\p{Me}\u1161-\u11ff]/u
const skinTone = /[\u{1f3fb}-\u{1f3ff}]/u
const joiners = /[\u200c\u200d]/
const selector = /[\ufe00-\ufe0f\u{e0100}-\u{e01ef}]/u
const pictograph = /\p{Extended_Pictographic}/u
const regional = /[\u{1f1e6}-\u{1f1ff}]/u
const agreed = /^[\x20-\x7e\u3041-\u3096\u30a1-\u30fa\u30fc\u3001-\u3003\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff5e]$/
const plain = /^[\x20-\x7e]*$/
const dotted = '\u25cc'

const ascii: readonly Cluster[] = Array.from({ length: 128 }, (_, code) => ({
  text: String.fromCharCode(code),
  width: 1,
  sure: true,
}))

/** A cluster that following characters may join. */
interface Open {
  text: string
  width: number
  marks: number
  last: string
  readonly base: string
}

/**
 * Splits a line of text into grapheme clusters, in linear time. Control and invisible characters become visible escapes; a tab
 * becomes spaces to the next stop.
 */
export function clustersOf(text: string): readonly Cluster[] {
  if (plain.test(text)) return Array.from(text, (character) => ascii[character.charCodeAt(0)] ?? escapeMark)
  const clusters: Cluster[] = []
  let column = 0
  let open: Open | undefined
  const add = (cluster: Cluster): void => {
    clusters.push(cluster)
    column += cluster.width
  }
  const end = (): void => {
    if (open !== undefined) add(closed(open))
    open = undefined
  }
  const show = (character: string): void => {
    end()
    for (const piece of escapeText(character)) add({ text: piece, width: 1, escaped: true, sure: true })
  }
  for (const character of text) {
    if (open !== undefined && grows(open, character)) continue
    if (character === '\t') {
      end()
      for (let left = tabStop - (column % tabStop); left > 0; left--) add(ascii[0x20] ?? escapeMark)
    } else if (joiners.test(character) || selector.test(character)) showNumber(show, character)
    else if (escapeText(character) !== character) show(character)
    else {
      end()
      open = begun(character)
    }
  }
  end()
  return clusters
}

/** Begins a cluster. A mark without a base is drawn on a dotted circle, as the Unicode Standard does. */
function begun(character: string): Open {
  if (mark.test(character)) return { text: dotted + character, width: 1, marks: 1, last: character, base: dotted }
  const width = skinTone.test(character) ? 2 : Math.max(1, displayWidth(character))
  return { text: character, width, marks: 0, last: character, base: character }
}

const escapeMark: Cluster = { text: '?', width: 1, sure: true }

/** Shows the number of a joiner or selector that has no character to act on, since it is invisible. */
function showNumber(show: (character: string) => void, character: string): void {
  const code = (character.codePointAt(0) ?? 0).toString(16)
  for (const piece of code.length > 4 ? `\\u{${code}}` : `\\u${code}`) show(piece)
}

/** Adds a character to a cluster, if terminals draw it with the characters before it. Returns whether it was added. */
function grows(open: Open, character: string): boolean {
  const take = (width = open.width): true => {
    open.text += character
    open.width = width
    open.marks++
    open.last = character
    return true
  }
  if (open.marks >= maxMarks) return false
  if (selector.test(character)) {
    // A selector after a selector is shown as an escape, because data can be hidden in such sequences.
    if (selector.test(open.last)) return false
    return take(character === '\ufe0f' && /\p{Emoji}/u.test(open.base) ? 2 : open.width)
  }
  if (joiners.test(character)) return plain.test(open.base) || joiners.test(open.last) ? false : take()
  if (open.last === '\u200d' && pictograph.test(character) && pictograph.test(open.base)) return take()
  if (regional.test(character)) return regional.test(open.base) && open.marks === 0 ? take(2) : false
  if (skinTone.test(character)) return pictograph.test(open.base) ? take() : false
  return mark.test(character) ? take() : false
}

function closed({ text, width }: Open): Cluster {
  return { text, width, sure: agreed.test(text) }
}

/** A filter for names: all its words must occur, regardless of case and width. */
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
  // Folding changes lengths, so `cellAt` has the cell of each UTF-16 unit of the folded text.
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

/** Returns the cells of a text, with the words of a filter marked. */
export function markedText(text: string, needle: Needle | undefined): Row {
  return marked(cellsOf([span(text)]), needle?.words ?? [])
}

/** Returns the words that a search has marked in a hit. */
export function wordsIn(pieces: readonly { readonly text: string; readonly marked: boolean }[]): readonly string[] {
  const words = pieces.flatMap((piece) => (piece.marked ? [fold(piece.text).trim()] : []))
  return [...new Set(words)].filter((word) => word !== '')
}
