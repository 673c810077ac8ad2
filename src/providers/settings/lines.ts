import { looksLikeRandomToken } from '../../secrets/keys.ts'
import {
  createTextScalar,
  type NodeCounter,
  type Scalar,
  type SettingsNode,
  type SettingsTree,
  type TableEntry,
} from './tree.ts'

interface Line {
  readonly text: string
  readonly start: number
}

function* linesWithStart(text: string): Generator<Line> {
  let start = 0
  for (const match of text.matchAll(/\r\n|\r|\n/g)) {
    yield { text: text.slice(start, match.index), start }
    start = match.index + match[0].length
  }
  if (start < text.length) yield { text: text.slice(start), start }
}

interface Draft {
  readonly start: number
  end: number
  readonly indent: number
  /** Whether the key has a value. */
  present: boolean
}

/**
 * Parses INI as git, systemd, Python and Windows write it: `[section]`, `key = value` or `key: value`, comments after `;` or
 * `#`. Sections are tables, and are not nested. A repeated key is a list; a key without a value is `null`. Indented lines after
 * a key continue its value. A comment after a value belongs to the value, because programs differ in that.
 */
export function parseIni(text: string, counter: NodeCounter): SettingsTree {
  const sections = new Map<string, Map<string, Draft[]>>()
  const keysOf = (name: string) => {
    const keys = sections.get(name) ?? new Map<string, Draft[]>()
    sections.set(name, keys)
    return keys
  }
  let keys = keysOf('')
  let last: Draft | undefined
  for (const line of linesWithStart(text)) {
    const bare = line.text.trim()
    if (bare === '' || /^[;#]/.test(bare)) continue
    const head = /^\[([^\]]*)\][ \t]*(?:[;#].*)?$/.exec(bare)?.[1]
    if (head !== undefined) {
      counter.enter(1, line.start)
      keys = keysOf(head.trim())
      last = undefined
      continue
    }
    const indent = line.text.length - line.text.trimStart().length
    if (last !== undefined && indent > last.indent) {
      last.end = line.start + line.text.trimEnd().length
      last.present = true
      continue
    }
    counter.enter(2, line.start)
    const { key, from } = splitIni(line.text)
    const end = line.start + line.text.trimEnd().length
    last = {
      start: from === undefined ? end : Math.min(end, line.start + from),
      end,
      indent,
      present: from !== undefined,
    }
    const drafts = keys.get(key)
    if (drafts === undefined) keys.set(key, [last])
    else drafts.push(last)
  }
  const entries: TableEntry[] = []
  for (const [name, allDrafts] of sections)
    if (name === '') entries.push(...toTableEntries(allDrafts, text))
    else entries.push({ key: name, value: { kind: 'table', entries: toTableEntries(allDrafts, text) } })
  return { root: { kind: 'table', entries } }
}

/** Splits a line at its first `=`, or else at its first `:`, because a key may contain colons (`//registry/:_authToken=…`). */
function splitIni(line: string): { readonly key: string; readonly from: number | undefined } {
  const equals = line.indexOf('=')
  const at = equals === -1 ? line.indexOf(':') : equals
  if (at === -1) return { key: line.trim(), from: undefined }
  const blanks = /^[ \t]*/.exec(line.slice(at + 1))?.[0].length ?? 0
  return { key: line.slice(0, at).trim(), from: at + 1 + blanks }
}

function toTableEntries(keys: ReadonlyMap<string, readonly Draft[]>, text: string): readonly TableEntry[] {
  return Array.from(keys, ([key, drafts]) => {
    const values = drafts.map((draft) => iniValue(draft, text))
    const [first, second] = values
    const value: SettingsNode = first === undefined || second !== undefined ? { kind: 'list', items: values } : first
    return { key, value }
  })
}

/** Returns a value without the quotes around it; several lines without their indentation. */
function iniValue({ start, end, present }: Draft, text: string): Scalar {
  if (!present) return { kind: 'scalar', text: '', json: 'null', start, end, writing: 'plain' }
  const raw = text.slice(start, end)
  if (/[\r\n]/.test(raw)) {
    const lines = raw.split(/\r\n|\r|\n/).map((line) => line.trim())
    return createTextScalar(lines.join('\n').trim(), { start, end, writing: 'plain' })
  }
  const inner = /^(["'])(.*)\1$/.exec(raw)?.[2]
  if (inner === undefined) return createTextScalar(raw, { start, end, writing: 'plain' })
  return createTextScalar(inner, { start: start + 1, end: end - 1, writing: 'inside' })
}

/**
 * Parses properties as Java does: `key=value`, `key:value` or `key value`, comments after `#` or `!`, lines joined by a final
 * `\`, escapes such as `\uXXXX`. Keys are flat, including their dots. Of a repeated key, the last value applies.
 */
export function parseProperties(text: string, counter: NodeCounter): SettingsTree {
  const entries: TableEntry[] = []
  let joined: Line | undefined
  for (const line of linesWithStart(text)) {
    if (joined === undefined && /^\s*(?:[#!]|$)/.test(line.text)) continue
    const start: number = joined?.start ?? line.start
    const whole: Line = { text: text.slice(start, line.start + line.text.length), start }
    // Of an odd number of backslashes at the end, the last one joins the lines.
    if (/(?<!\\)(?:\\\\)*\\$/.test(line.text)) {
      joined = whole
      continue
    }
    joined = undefined
    counter.enter(1, start)
    entries.push(splitProperty(whole))
  }
  if (joined !== undefined) entries.push(splitProperty(joined))
  return { root: { kind: 'table', entries } }
}

function splitProperty({ text, start }: Line): TableEntry {
  const match = /^(\s*)((?:\\[\s\S]|[^\\\s=:])*)([ \t\f]*(?:[=:][ \t\f]*)?)/.exec(text)
  const [head = '', , key = ''] = match ?? []
  const raw = text.slice(head.length)
  const span = { start: start + head.length, end: start + text.length, writing: 'plain' } as const
  return { key: unescapeProperty(key), value: createTextScalar(unescapeProperty(raw), span) }
}

const propertyEscapes: Readonly<Record<string, string>> = { t: '\t', n: '\n', r: '\r', f: '\f' }

function unescapeProperty(text: string): string {
  return text
    .replace(/\\(?:\r\n|\r|\n)[ \t\f]*/g, '')
    .replace(/\\(?:u([0-9a-fA-F]{4})|([\s\S]))/g, (_, digits, sign) =>
      digits === undefined ? (propertyEscapes[sign] ?? sign) : String.fromCharCode(Number.parseInt(digits, 16)),
    )
    .toWellFormed()
}

const assignment = /^\ufeff?[ \t]*(#[ \t]*)?(?:export[ \t]+)?([A-Za-z_][\w.-]*)[ \t]*(?:=|:[ \t])[ \t]*/

/**
 * Parses dotenv as `dotenv` and `node --env-file` do: `NAME=value`, with or without `export`, values in `'`, `"` or `` ` `` over
 * several lines. Nothing is expanded. An unquoted value ends at a `#`; its span goes to the end of the line, because other programs
 * take the rest for a part of the value. Commented assignments are `commented`; lines that are neither these nor comments are `unknown`.
 */
export function parseDotenv(text: string, counter: NodeCounter): SettingsTree {
  const entries: TableEntry[] = []
  const commented: TableEntry[] = []
  const unknown: { start: number; end: number }[] = []
  let until = 0
  for (const line of linesWithStart(text)) {
    if (line.start < until || line.text.trim() === '') continue
    const [head, comment, key = ''] = assignment.exec(line.text) ?? []
    const end = line.start + line.text.trimEnd().length
    if (head === undefined || looksLikeRandomToken(key)) {
      if (head !== undefined || !/^\s*#/.test(line.text)) unknown.push({ start: line.start, end })
      continue
    }
    counter.enter(1, line.start)
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
  const [value = ''] = text.slice(start, end).split('#')
  return createTextScalar(value.trimEnd(), { start, end, writing: 'plain' })
}

/** A quoted value, with nothing but a comment after it. A quote after a backslash is a part of it, unless it is the last one. */
const quoted = /(?:'((?:\\'|[^'])*)'|"((?:\\"|[^"])*)"|`((?:\\`|[^`])*)`)[ \t]*(?:#.*)?(?=[\r\n]|$)/y

function quotedValue(text: string, from: number): Scalar | undefined {
  quoted.lastIndex = from
  const [, single, double, back] = quoted.exec(text) ?? []
  const inner = single ?? double ?? back
  if (inner === undefined) return undefined
  const lines = inner.replaceAll('\r\n', '\n')
  const end = from + 1 + inner.length
  return createTextScalar(double === undefined ? lines : unescapeText(lines), {
    start: from + 1,
    end,
    writing: 'inside',
  })
}

const escapes: Readonly<Record<string, string>> = { n: '\n', r: '\r' }

function unescapeText(text: string): string {
  return text.replace(/\\([nr"])/g, (_, sign: string) => escapes[sign] ?? sign)
}
