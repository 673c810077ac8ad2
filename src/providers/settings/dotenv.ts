import { looksOpaque } from '../../secrets/opaque.ts'
import type { Budget } from './limits.ts'
import { linesOf } from './lines.ts'
import { type Entry, type Scalar, type Tree, textNode } from './tree.ts'

const assignment = /^[ \t]*(#[ \t]*)?(?:export[ \t]+)?([A-Za-z_][\w.-]*)[ \t]*(?:=|:[ \t])[ \t]*/

/**
 * Reads dotenv: `NAME=value`, with or without `export`, values in `'`, `"` or `` ` `` over several lines. Nothing is expanded. An unquoted
 * value reaches to the end of its line, including any `#`: programs differ in what they take for a comment. Other lines are
 * unknown.
 */
export function parseDotenv(text: string, budget: Budget): Tree {
  const entries: Entry[] = []
  const commented: Entry[] = []
  const unknown: { start: number; end: number }[] = []
  let until = 0
  for (const line of linesOf(text)) {
    if (line.start < until || line.text.trim() === '') continue
    const [head, comment, key = ''] = assignment.exec(line.text) ?? []
    const end = line.start + line.text.trimEnd().length
    if (head === undefined || looksOpaque(key)) {
      if (head !== undefined || !/^\s*#/.test(line.text)) unknown.push({ start: line.start, end })
      continue
    }
    budget.enter(1, line.start)
    const from = line.start + head.length
    const value = (comment === undefined ? quotedValue(text, from) : undefined) ?? plainValue(text, from, end)
    if (comment === undefined) entries.push({ key, value })
    else commented.push({ key, value })
    until = value.end
  }
  return { root: { kind: 'table', entries }, commented, unknown }
}

function plainValue(text: string, start: number, lineEnd: number): Scalar {
  const end = Math.max(start, lineEnd)
  return textNode(text.slice(start, end), { start, end, writing: 'plain' })
}

/** A value in quotes; `undefined` where they are not closed, or something else than a comment follows. */
function quotedValue(text: string, from: number): Scalar | undefined {
  const quote = text[from]
  if (quote !== '"' && quote !== "'" && quote !== '`') return undefined
  let end = from + 1
  while (end < text.length && text[end] !== quote) end += quote === '"' && text[end] === '\\' ? 2 : 1
  if (end >= text.length || !/^[ \t]*(?:[ \t]#.*)?(?:[\r\n]|$)/.test(text.slice(end + 1, end + 1024))) return undefined
  const inner = text.slice(from + 1, end)
  return textNode(quote === '"' ? unescapeText(inner) : inner, { start: from + 1, end, writing: 'inside' })
}

const escapes: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' }

function unescapeText(text: string): string {
  return text.replace(/\\([nrt"\\])/g, (_, sign: string) => escapes[sign] ?? sign)
}
