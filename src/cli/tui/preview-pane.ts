import { blanks, cellsOf, fitted, line, type Row, span, wrap } from './cells.ts'
import { detailsOf, previewSize } from './places.ts'
import { gutterOf, markedRowsOfLine, type Preview } from './preview.ts'
import type { State } from './state.ts'

/** The right part of the screen: what is told of the chosen resource, and what is in it. */
export function previewPane(state: State, columns: number, height: number): readonly Row[] {
  const details = detailsOf(state)
  const { preview } = state
  if (preview === undefined) return []
  const room = Math.max(0, height - details.length)
  return [...details, ...contentRows(state, preview, columns, room)].slice(0, height)
}

function contentRows(state: State, preview: Preview, columns: number, height: number): readonly Row[] {
  const { shown, failure } = preview
  if (preview.state === 'loading' && shown.lines.length === 0) return [line(columns, span('reading …', 'dim'))]
  const said =
    failure === undefined ? [] : wrap(cellsOf([span(failure, 'error')]), columns).map((row) => fitted(row, columns))
  const text = textRows(state, preview, columns, height - Math.min(said.length, 3))
  return [...text, ...said.slice(0, 3)]
}

function textRows(state: State, { shown, at, words }: Preview, columns: number, height: number): readonly Row[] {
  const { columns: width } = previewSize(state)
  const gutter = gutterOf(shown)
  const rows: Row[] = []
  for (let index = at.line; index < shown.lines.length && rows.length < height; index++) {
    const each = shown.lines[index]
    if (each === undefined) break
    const parts = markedRowsOfLine(each, width, words)
    for (let part = index === at.line ? at.row : 0; part < parts.length && rows.length < height; part++) {
      const number = part === 0 && each.number !== undefined ? `${each.number} `.padStart(gutter) : ''
      const text = parts[part] ?? []
      rows.push(fitted([...fitted(cellsOf([span(number, 'dim')]), gutter), ...text], columns))
    }
  }
  const isEnd = rows.length < height
  if (isEnd && shown.next !== undefined) rows.push(line(columns, span('reading on …', 'dim')))
  return shown.lines.length === 0 && shown.next === undefined ? [fitted(blanks(0), columns)] : rows
}
