import { isDeepStrictEqual } from 'node:util'
import { parse, stringify, TomlError } from 'smol-toml'
import { failed } from '../terminal/exit.ts'
import { json } from './json.ts'
import {
  eolOf,
  formatError,
  type Host,
  isObject,
  type Json,
  type Path,
  type SettingsEditor,
  valueAt,
  withValueAt,
} from './types.ts'
import { yaml } from './yaml.ts'

/**
 * Edits TOML by tables: a table is appended to the file, or removed with its subtables. Comments between two tables belong to the
 * second one.
 */
const toml: SettingsEditor = {
  parse: (text) => (text.trim() === '' ? undefined : parsed(text)),
  set: (text, path, value) => {
    const eol = eolOf(text)
    const block = rendered(path, value).replaceAll('\n', eol)
    const old = tablesOf(text).find((table) => isWithin(table.path, path))
    if (old !== undefined) {
      // Also remove the subtables, which follow the table.
      const rest = cut(text.slice(old.end), path)
      return text.slice(0, old.start) + (text[old.end - 1] === '\n' ? block : block.trimEnd()) + rest
    }
    if (text.trim() === '') return block
    return `${text}${text.endsWith('\n') ? '' : eol}${eol}${block}`
  },
  remove: (text, path) => {
    const after = cut(text, path)
    if (after !== text) return after
    throw formatError(text, undefined, `${path.join('.')} is not a separate table. Remove it by hand.`)
  },
  show: rendered,
}

function parsed(text: string): unknown {
  try {
    return parse(text)
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    const lines = text.split('\n').slice(0, error.line - 1)
    const offset = lines.reduce((sum, line) => sum + line.length + 1, 0) + error.column - 1
    throw formatError(text, offset, 'this is not TOML. Fix it first.')
  }
}

function rendered(path: Path, value: Json): string {
  const whole = path.reduceRight<Json>((inner, key) => ({ [key]: inner }), value)
  return `${stringify(whole).trim()}\n`
}

const isWithin = (path: readonly string[], outer: Path) => outer.every((key, i) => path[i] === key)

/** Removes the table at a path and its subtables, each with the blank line before it. */
function cut(text: string, path: Path): string {
  return tablesOf(text)
    .filter((table) => isWithin(table.path, path))
    .reduceRight((rest, { start, end }) => {
      const blank = /(?<=^|\n)\r?\n$/.exec(rest.slice(0, start))?.[0].length ?? 0
      return rest.slice(0, start - blank) + rest.slice(end)
    }, text)
}

/** Returns the tables with a header, in order: each from the line of its header to the end of its last line with content. */
function tablesOf(text: string) {
  const headers = headersOf(text)
  return headers.map(({ path, start }, i) => ({
    path,
    start,
    end: endOfTable(text, start, headers[i + 1]?.start ?? text.length),
  }))
}

function endOfTable(text: string, start: number, limit: number): number {
  const lines = text.slice(start, limit).split(/(?<=\n)/)
  while (lines.length > 1 && /^\s*(?:#|$)/.test(lines.at(-1) ?? '')) lines.pop()
  return start + lines.join('').length
}

/** Matches the tokens of TOML, because a line that begins inside a value is not a header. */
const token =
  /#[^\n]*|"""(?:\\[\s\S]|(?!""")[^\\])*"{3,5}|'''(?:(?!''')[\s\S])*'{3,5}|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|[[\]{}]|\n|[^#"'[\]{}\n]+/gy

function headersOf(text: string) {
  const headers: { path: readonly string[]; start: number }[] = []
  let depth = 0
  let line = 0
  let isHeader = false
  for (const { 0: word, index } of text.matchAll(token)) {
    if (word === '\n' && (depth === 0 || isHeader)) {
      if (isHeader) headers.push({ path: pathOf(text.slice(line, index)), start: line })
      ;[depth, isHeader, line] = [0, false, index + 1]
    } else if (word === '[' || word === '{') {
      isHeader ||= depth === 0 && text.slice(line, index).trim() === ''
      depth++
    } else if (word === ']' || word === '}') depth--
  }
  if (isHeader) headers.push({ path: pathOf(text.slice(line)), start: line })
  return headers
}

/** Returns the keys in the header of a table, parsed by the TOML parser itself. */
function pathOf(header: string): readonly string[] {
  const path: string[] = []
  let inner: unknown = parse(header.trim())
  while (isObject(inner)) {
    const [key] = Object.keys(inner)
    if (key === undefined) break
    path.push(key)
    inner = inner[key]
  }
  return path
}

const formats: Readonly<Record<Host['format'], SettingsEditor>> = { json, toml, yaml }

/** Wraps a format for commands: errors name the file, and an edit that would change anything else is refused. */
export function formatOf(host: Host, file: string): SettingsEditor {
  const format = formats[host.format]
  const named = <T>(work: () => T): T => {
    try {
      return work()
    } catch (error) {
      if (error instanceof Error && error.name === 'FormatError') throw failed(`${file}${error.message}`)
      throw error
    }
  }
  const checked = (text: string, path: Path, value: Json | undefined, after: string): string => {
    const expected = plain(withValueAt(format.parse(text) ?? {}, path, value))
    if (!isDeepStrictEqual(plain(parsedOrNothing(format, after)), expected))
      throw failed(`${file} has a form that cannot be edited safely. Add the entry by hand: --print shows it.`)
    return after
  }
  return {
    parse: (text) => named(() => format.parse(text)),
    set: (text, path, value) => named(() => checked(text, path, value, format.set(text, path, value))),
    remove: (text, path) =>
      named(() => (valueAt(format.parse(text), path) === undefined ? text : removed(format, text, path, file))),
    show: format.show,
  }
}

/** Parses an edited text, or returns undefined if the edit broke its syntax. */
function parsedOrNothing(format: SettingsEditor, text: string): unknown {
  try {
    return format.parse(text)
  } catch (error) {
    if (error instanceof Error && error.name === 'FormatError') return undefined
    throw error
  }
}

function removed(format: SettingsEditor, text: string, path: Path, file: string): string {
  const after = format.remove(text, path)
  const is = plain(format.parse(after) ?? {})
  const expected = plain(withValueAt(format.parse(text), path, undefined))
  // A container that became empty may be removed, as in TOML, or may remain.
  const container = path.slice(0, -1)
  const without = plain(withValueAt(expected, container, undefined))
  if (isDeepStrictEqual(is, expected) || (isEmpty(valueAt(expected, container)) && isDeepStrictEqual(is, without)))
    return after
  throw failed(`${file} has a form that cannot be edited safely. Remove the entry by hand.`)
}

const isEmpty = (value: unknown) => typeof value === 'object' && value !== null && Object.keys(value).length === 0

/** Copies a value without the prototypes and classes of the parsers, which would make equal values differ. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]))
}
