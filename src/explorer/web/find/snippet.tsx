import './snippet.css'
import '../preview/text.css'
import { useEffect, useState } from 'preact/hooks'
import { type FoundHit, splitAtMarks } from '../../../core/search-answer.ts'
import type { HighlightedLine } from '../preview/model/lines.ts'
import { delimiterOf, parseCsv } from '../preview/model/rows.ts'
import { highlight } from '../preview/workers.ts'
import { MarkedText } from '../shell/fields.tsx'
import { escapeInvisible } from '../words/texts.ts'

type Found = Pick<FoundHit, 'snippet' | 'heading'>

/** The text of a hit, by its type as a table, code with line numbers, Markdown or plain text. */
export function Snippet({ hit, language }: { readonly hit: FoundHit; readonly language: string | undefined }) {
  const type = hit.mimeType?.split(';', 1)[0]?.trim()
  const table = type === 'text/csv' || type === 'text/tab-separated-values' ? tableIn(hit, type) : undefined
  if (table !== undefined) return <SmallTable {...table} />
  if (language !== undefined) return <SmallCode hit={hit} language={language} />
  if (type === 'text/markdown') return <SmallMarkdown hit={hit} />
  return (
    <p class="hit-snippet">
      <MarkedText pieces={splitAtMarks(hit.snippet)} />
    </p>
  )
}

export function snippetMatches({ snippet: { text, marks } }: Found): readonly string[] {
  return [...new Set(marks.map(([start, end]) => text.slice(start, end).toLowerCase()))].filter((word) => word !== '')
}

/** A text in which words are marked. The words are in lower case, and match in any case. */
export function MarkedWords({ text, words }: { readonly text: string; readonly words: readonly string[] }) {
  const lower = text.toLowerCase()
  const marks: (readonly [number, number])[] = []
  for (let at = 0; lower.length === text.length && at < text.length; ) {
    const next = words
      .map((word) => ({ start: lower.indexOf(word, at), length: word.length }))
      .filter(({ start }) => start !== -1)
      .sort((a, b) => a.start - b.start || b.length - a.length)[0]
    if (next === undefined) break
    at = next.start + next.length
    marks.push([next.start, at])
  }
  return <MarkedText pieces={splitAtMarks({ text, marks })} />
}

/** Maximum numbers of shown rows and columns of a hit, and of characters of a cell. */
const [maxRows, maxColumns, maxCell] = [4, 8, 80]

/** Returns the indexes of at most {@link maxColumns} columns to show: the first ones, and those that have the words. */
export function shownColumns(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  words: readonly string[],
): readonly number[] {
  const all = head.map((_, column) => column)
  const hasWords = (column: number) =>
    rows.some((row) => words.some((word) => row[column]?.toLowerCase().includes(word) === true))
  const rowIndexes = all.slice(1).filter(hasWords)
  const others = all.filter((column) => !rowIndexes.includes(column))
  return [...others.slice(0, Math.max(1, maxColumns - rowIndexes.length)), ...rowIndexes]
    .slice(0, maxColumns)
    .sort((a, b) => a - b)
}

/** Number of characters before the first of the words in the excerpt of a long cell. */
const before = 12

/** Returns a cell. Of a cell over {@link maxCell}, returns the part that begins shortly before the first of the words, or the beginning. */
export function cellExcerpt(cell: string, words: readonly string[]): string {
  if (cell.length <= maxCell) return cell
  const lower = cell.toLowerCase()
  const positions = words.map((word) => lower.indexOf(word)).filter((at) => at !== -1)
  const from = positions.length === 0 ? 0 : Math.max(0, Math.min(...positions) - before)
  return `${from > 0 ? '…' : ''}${cell.slice(from, from + maxCell)}${from + maxCell < cell.length ? '…' : ''}`
}

interface SnippetTable {
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
  readonly words: readonly string[]
}

/** Returns at most {@link maxRows} complete rows of a hit in a CSV file, those with the words first. `undefined`: no complete row, or no column names. */
export function tableIn(hit: Found, type: string): SnippetTable | undefined {
  const { snippet, heading = '' } = hit
  const delimiter = delimiterOf(heading, type)
  const [head] = parseCsv(heading, delimiter)
  if (head === undefined || head.length < 2) return undefined
  const words = snippetMatches(hit)
  const rows = snippet.text
    .replace(/^… | …$/g, '')
    .split('\n')
    .flatMap((line) => [...parseCsv(line, delimiter)])
    .filter((row) => row.length === head.length && row.join() !== head.join())
  const isFound = (row: readonly string[]) => words.some((word) => row.join('\n').toLowerCase().includes(word))
  const bestRows = [...rows.filter(isFound), ...rows.filter((row) => !isFound(row))].slice(0, maxRows)
  return bestRows.length === 0 ? undefined : { head, rows: bestRows, words }
}

function SmallTable({ head, rows, words }: SnippetTable) {
  const columns = shownColumns(head, rows, words)
  return (
    <div class="hit-table">
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column} scope="col">
                {escapeInvisible(head[column] ?? '')}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {columns.map((column) => (
                <td key={column}>
                  <MarkedWords text={cellExcerpt(row[column] ?? '', words)} words={words} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function SmallCode({ hit, language }: { readonly hit: FoundHit; readonly language: string }) {
  const { text, line } = hit.snippet
  const words = snippetMatches(hit)
  const lines = text.replace(/^… | …$/g, '').split('\n')
  const [tokens, setTokens] = useState<readonly HighlightedLine[]>()
  useEffect(() => {
    let isLeft = false
    void highlight(lines.join('\n'), language).then((lines) => {
      if (!isLeft) setTokens(lines)
    })
    return () => {
      isLeft = true
    }
  }, [text, language])
  return (
    <div class="hit-snippet hit-code mono">
      {lines.map((one, index) => (
        <div key={index} class="hit-line" data-n={line === undefined ? '' : line + index}>
          <code>
            {(tokens?.[index] ?? [[one, ''] as const]).map(([piece, kind], at) => (
              <span key={at} class={kind}>
                <MarkedWords text={piece} words={words} />
              </span>
            ))}
          </code>
        </div>
      ))}
    </div>
  )
}

/** Lines of Markdown without its syntax. */
function SmallMarkdown({ hit }: { readonly hit: FoundHit }) {
  const words = snippetMatches(hit)
  const lines = hit.snippet.text.split('\n').filter((line) => line.trim() !== '' && !/^[\s|:-]+$/.test(line))
  return (
    <div class="hit-snippet">
      {lines.map((line, index) => {
        const [, signs = '', rest = line] = /^\s*(#{1,6} |[-*+] |\d+[.)] |> )(.*)$/.exec(line) ?? []
        const cells = rest.trim().startsWith('|') ? rest.split('|').slice(1, -1) : undefined
        const text = cells === undefined ? rest : cells.map((cell) => cell.trim()).join('  ·  ')
        const kind = signs.startsWith('#') ? 'md-heading' : /^[-*+\d]/.test(signs) ? 'md-item' : 'md-text'
        return (
          <p key={index} class={kind}>
            {parseInlineMarkdown(text).map(({ text: piece, style }, at) => (
              <span key={at} class={style}>
                <MarkedWords text={piece} words={words} />
              </span>
            ))}
          </p>
        )
      })}
    </div>
  )
}

/** Splits a line of Markdown into plain, strong and code pieces. `style` is a CSS class. Of a link only its text stays. */
export function parseInlineMarkdown(text: string): readonly { readonly text: string; readonly style: string }[] {
  const pieces: { text: string; style: string }[] = []
  let at = 0
  const signs = /\*\*([^*]{1,200})\*\*|`([^`]{1,200})`|!?\[([^\]]{0,200})\]\([^)\s]{1,500}\)/g
  for (const match of text.matchAll(signs)) {
    pieces.push({ text: text.slice(at, match.index), style: '' })
    const [whole, strong, code, link = ''] = match
    pieces.push({
      text: strong ?? code ?? link,
      style: strong === undefined ? (code === undefined ? '' : 'mono') : 'md-strong',
    })
    at = match.index + whole.length
  }
  pieces.push({ text: text.slice(at), style: '' })
  return pieces.filter((piece) => piece.text !== '')
}
