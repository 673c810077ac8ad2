import { tooLarge } from '../core/errors.ts'
import type { ReadingForm } from './formats.ts'

/**
 * Writes a document, block by block, as plain text or as Markdown. The text of a block comes from `plain`, `link` and similar functions,
 * which escape or mark up text.
 */
export type DocumentWriter = ReturnType<typeof createDocumentWriter>

type Block = 'item' | 'row' | 'other'

/** @param limit Maximum number of characters. A method that would write more throws ResourceError `too-large`. */
export function createDocumentWriter(form: ReadingForm, limit: number) {
  const pieces: string[] = []
  const markdown = form === 'markdown'
  let length = 0
  let last: Block | undefined
  let quotes = 0
  let lastQuotes = 0

  const add = (text: string) => {
    length += text.length
    if (length > limit) throw tooLarge(`The document has more than ${limit} characters of text.`)
    pieces.push(text)
  }
  const write = (kind: Block, text: string) => {
    const markOf = (depth: number) => (markdown ? '> '.repeat(Math.min(depth, 20)) : '')
    const mark = markOf(quotes)
    // The space between two blocks is quoted as deeply as the less quoted of them.
    const between = markOf(Math.min(quotes, lastQuotes)).trimEnd()
    lastQuotes = quotes
    if (last !== undefined) add(last === kind && kind !== 'other' ? '\n' : `\n${between}\n`)
    add(mark === '' ? text : text.replace(/^/gm, mark))
    last = kind
  }
  const wrap = (mark: string) => (text: string) => {
    const bare = text.trim()
    return !markdown || bare === '' ? text : text.replace(bare, () => `${mark}${bare}${mark}`)
  }

  return {
    /** Returns text of the document, in Markdown with its special characters escaped. */
    plain: (text: string): string => (markdown ? text.replace(/[\\`*_[\]<>|]/g, '\\$&') : text),
    link: (text: string, target: string | undefined): string => {
      const isUsable =
        target !== undefined && target.length < 2000 && !/^\s*(?:javascript|data|vbscript):/i.test(target)
      return markdown && isUsable && text.trim() !== ''
        ? `[${text.trim()}](<${target.replace(/[<>\s]/g, encodeURI)}>)`
        : text
    },
    strong: wrap('**'),
    emphasis: wrap('*'),
    /** Returns code within a line. Its special characters are not escaped. */
    code: (text: string): string =>
      markdown && text.trim() !== '' && !text.includes('`') ? `\`${text.replace(/\s+/g, ' ')}\`` : text,
    formula: (tex: string): string => (markdown ? `$${tex}$` : tex),
    /** Returns a picture without an address in Markdown, and its alternative text in plain text. */
    image: (alternative: string): string => (markdown && alternative !== '' ? `![${alternative}]()` : alternative),
    heading: (level: number, text: string) => {
      const line = collapseAsciiWhitespace(text)
      if (line !== '') write('other', markdown ? `${'#'.repeat(Math.min(level, 6))} ${line}` : line)
    },
    paragraph: (text: string) => {
      const trimmed = text.replace(/[ \t]+$/gm, '').replace(/^\n+|\s+$/g, '')
      if (trimmed === '') return
      // Escape characters that would begin a Markdown block; keep line breaks as hard breaks.
      write(
        'other',
        markdown ? trimmed.replace(/^(\s*)([#+-]|\d+[.)])(?=\s|$)/gm, '$1\\$2').replace(/\n/g, '\\\n') : trimmed,
      )
    },
    /** Writes an item of a list, from depth 0 on. Without a number it has a bullet. */
    item: (depth: number, number: number | undefined, text: string) => {
      const indent = '  '.repeat(Math.min(depth, 20)) + (number === undefined ? '' : ' '.repeat(Math.min(depth, 20)))
      const line = collapseAsciiWhitespace(text)
      if (line !== '') write('item', `${indent}${number === undefined ? '-' : `${number}.`} ${line}`)
    },
    /** Writes a row of a table. Rows that follow each other are one table, whose first row is its head. */
    row: (cells: readonly string[]) => {
      const lines = cells.map(collapseAsciiWhitespace)
      if (!markdown) return write('row', lines.join('\t').trimEnd())
      const isHead = last !== 'row'
      write('row', `| ${lines.join(' | ')} |`)
      if (isHead) add(`\n|${' --- |'.repeat(lines.length)}`)
    },
    /** Writes lines of code or preformatted text. */
    block: (text: string) => {
      const trimmed = text.replace(/^\n+|\s+$/g, '')
      const fence = '`'.repeat(Math.max(3, ...(trimmed.match(/`+/g) ?? []).map((run) => run.length + 1)))
      if (trimmed !== '') write('other', markdown ? `${fence}\n${trimmed}\n${fence}` : trimmed)
    },
    document: (text: string) => {
      if (text.trim() !== '') write('other', text.trimEnd())
    },
    /** Ends a table or list, so that the next row or item begins another. */
    end: () => {
      if (last !== undefined) last = 'other'
    },
    quote: (change: 1 | -1) => {
      quotes = Math.max(0, quotes + change)
      if (last !== undefined) last = 'other'
    },
    finish: (): string => (pieces.length === 0 ? '' : `${pieces.join('')}\n`),
  }
}

export function collapseWhitespace(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}

function collapseAsciiWhitespace(text: string): string {
  return text.replace(/[ \t\n\r\f]+/g, ' ').trim()
}
