import { parse, TomlDate, TomlError } from 'smol-toml'
import {
  createParseFault,
  createTextScalar,
  jsonNumber,
  type NodeCounter,
  type Scalar,
  type SettingsNode,
  type SettingsTree,
  type TableEntry,
} from './tree.ts'

type Table = Map<string, TomlValue>
type TomlValue = Table | TomlValue[] | Scalar

/**
 * Parses TOML. smol-toml validates and decodes the text, but gives no positions of values, so this parser reads them a second time.
 * When the two differ, the file is refused.
 */
export function parseToml(text: string, counter: NodeCounter): SettingsTree {
  checkTomlNesting(text, counter)
  let expected: unknown
  try {
    expected = parse(text, { integersAsBigInt: true, maxDepth: 200 })
  } catch (error) {
    if (error instanceof TomlError)
      throw createParseFault('This is not valid TOML.', offsetOf(text, error.line, error.column))
    throw error
  }
  const root = readToml(text)
  if (!means(root, expected))
    throw createParseFault('This syntax of TOML is not supported. Write the value in another form.', 0)
  return { root: convertTomlValue(root, 1, counter) }
}

/** Limits the nesting, because the parser recurses for each bracket. Brackets in texts and comments are counted, too. */
function checkTomlNesting(text: string, counter: NodeCounter): void {
  let depth = 0
  for (const { 0: bracket, index } of text.matchAll(/[[{\]}]|\n/g)) {
    if (bracket === '\n') continue
    if (bracket === '[' || bracket === '{') {
      if (++depth > 500) throw createParseFault('It is nested too deeply to be read.', index, 500)
    } else depth = Math.max(0, depth - 1)
  }
  counter.enter(0, 0)
}

function offsetOf(text: string, line: number, column: number): number {
  let start = 0
  for (let count = 1; count < line; count++) {
    const next = text.indexOf('\n', start)
    if (next === -1) break
    start = next + 1
  }
  return Math.min(text.length, start + Math.max(0, column - 1))
}

function convertTomlValue(value: TomlValue, depth: number, counter: NodeCounter): SettingsNode {
  counter.enter(depth, 0)
  if (Array.isArray(value))
    return { kind: 'list', items: value.map((item) => convertTomlValue(item, depth + 1, counter)) }
  if (!(value instanceof Map)) return value
  const entries = Array.from(
    value,
    ([key, member]): TableEntry => ({ key, value: convertTomlValue(member, depth + 1, counter) }),
  )
  return { kind: 'table', entries }
}

/** Whether our result agrees with that of the library in names, texts and numbers of members. */
function means(value: TomlValue, expected: unknown): boolean {
  if (value instanceof Map) {
    if (typeof expected !== 'object' || expected === null || Array.isArray(expected) || expected instanceof TomlDate)
      return false
    const members = Object.entries(expected)
    return (
      members.length === value.size &&
      members.every(([key, member]) => {
        const own = value.get(key)
        return own !== undefined && means(own, member)
      })
    )
  }
  if (Array.isArray(value))
    return (
      Array.isArray(expected) && expected.length === value.length && value.every((item, i) => means(item, expected[i]))
    )
  if (typeof expected === 'string') return value.text === expected && value.writing === 'inside'
  return typeof expected !== 'object'
    ? value.writing === 'quoted'
    : expected instanceof TomlDate && value.writing === 'quoted'
}

function readToml(text: string): Table {
  const root: Table = new Map()
  let current = root
  let at = text.startsWith('\ufeff') ? 1 : 0

  const skip = (pattern: RegExp) => {
    pattern.lastIndex = at
    at += pattern.exec(text)?.[0].length ?? 0
  }
  const blanks = () => skip(/[ \t]*/y)
  const space = () => skip(/(?:[ \t\r\n]|#[^\n]*)*/y)

  const readKey = (): readonly string[] => {
    const keys: string[] = []
    for (;;) {
      blanks()
      if (text[at] === '"' || text[at] === "'") keys.push(readText().text)
      else {
        const start = at
        skip(/[^\s.=\]]+/y)
        keys.push(text.slice(start, at))
      }
      blanks()
      if (text[at] !== '.') return keys
      at++
    }
  }

  const readText = (): Scalar => {
    const quote = text[at] === '"' ? '"' : "'"
    const triple = text.startsWith(quote.repeat(3), at)
    const start = at + (triple ? 3 : 1)
    let end = start
    for (; end < text.length; end++) {
      if (quote === '"' && text[end] === '\\') end++
      else if (triple ? text.startsWith(quote.repeat(3), end) : text[end] === quote) break
    }
    // Up to two quotes may be directly before the closing ones.
    if (triple) while (text[end + 3] === quote) end++
    at = end + (triple ? 3 : 1)
    const raw = text.slice(start, end).replace(triple ? /^\r?\n/ : /^(?!)/, '')
    return createTextScalar(quote === '"' ? unescapeText(raw) : raw, { start, end, writing: 'inside' })
  }

  const readValue = (): TomlValue => {
    const opening = text[at]
    if (opening === '"' || opening === "'") return readText()
    if (opening === '[') return readList()
    if (opening === '{') return readInline()
    const start = at
    skip(/[^,\]}#\r\n]+/y)
    const lexeme = text.slice(start, at).trimEnd()
    if (isNoDay(lexeme)) throw createParseFault('This date does not exist.', start)
    return {
      kind: 'scalar',
      text: lexeme,
      json: scalarToJson(lexeme),
      start,
      end: start + lexeme.length,
      writing: 'quoted',
    }
  }

  const readList = (): TomlValue[] => {
    const items: TomlValue[] = []
    at++
    for (space(); text[at] !== ']' && at < text.length; space()) {
      items.push(readValue())
      space()
      if (text[at] === ',') at++
    }
    at++
    return items
  }

  const readInline = (): Table => {
    const table: Table = new Map()
    at++
    for (space(); text[at] !== '}' && at < text.length; space()) {
      assign(table)
      space()
      if (text[at] === ',') at++
    }
    at++
    return table
  }

  const assign = (table: Table) => {
    const keys = readKey()
    at++
    blanks()
    const value = readValue()
    const last = keys.at(-1)
    if (last !== undefined) descend(table, keys.slice(0, -1)).set(last, value)
  }

  for (space(); at < text.length; space()) {
    if (text[at] !== '[') {
      assign(current)
      continue
    }
    const many = text.startsWith('[[', at)
    at += many ? 2 : 1
    const keys = readKey()
    at += many ? 2 : 1
    current = many ? append(root, keys) : descend(root, keys)
  }
  return root
}

/** Returns the table at a path (of a list of tables, the last one). Creates it if it is missing. */
function descend(table: Table, keys: readonly string[]): Table {
  let current = table
  for (const key of keys) {
    const member = current.get(key)
    const next = Array.isArray(member) ? member.at(-1) : member
    if (next instanceof Map) current = next
    else {
      const table: Table = new Map()
      current.set(key, table)
      current = table
    }
  }
  return current
}

function append(root: Table, keys: readonly string[]): Table {
  const parent = descend(root, keys.slice(0, -1))
  const key = keys.at(-1) ?? ''
  const list = parent.get(key)
  const table: Table = new Map()
  if (Array.isArray(list)) list.push(table)
  else parent.set(key, [table])
  return table
}

const escapes: Readonly<Record<string, string>> = { b: '\b', t: '\t', n: '\n', f: '\f', r: '\r', e: '\x1b' }

function unescapeText(text: string): string {
  return text.replace(
    // A backslash at the end of a line joins it with the next text.
    /\\(?:[ \t]*\r?\n\s*|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|(.))/gs,
    (_, short, long, byte, sign) => {
      const digits: string | undefined = short ?? long ?? byte
      if (digits === undefined) return sign === undefined ? '' : (escapes[sign] ?? sign)
      const code = Number.parseInt(digits, 16)
      return code <= 0x10ffff ? String.fromCodePoint(code) : ''
    },
  )
}

/** Converts a value to JSON: a boolean, a number if JSON has it, else a text. `+inf` becomes `inf`, `-nan` becomes `nan`; a time gets seconds. */
function scalarToJson(lexeme: string): string {
  if (lexeme === 'true' || lexeme === 'false') return lexeme
  if (/^[+-]?(?:inf|nan)$/.test(lexeme)) return JSON.stringify(lexeme.replace(/^\+|^[+-](?=nan)/, ''))
  const time = toRfc3339Time(lexeme)
  if (time !== undefined) return JSON.stringify(time)
  const plain = lexeme.replaceAll('_', '').replace(/^\+/, '')
  if (/^0[xob]/.test(plain)) return jsonNumber(String(BigInt(plain))) ?? JSON.stringify(lexeme)
  return jsonNumber(plain) ?? JSON.stringify(lexeme)
}

/** Returns a date or time with `T` between both, with seconds, and with `Z` in upper case; `undefined` for any other value. */
function toRfc3339Time(lexeme: string): string | undefined {
  const [, date, time, seconds = ':00', zone = ''] =
    /^(?:(\d{4}-\d\d-\d\d)(?:[Tt ]|$))?(\d\d:\d\d)?(:\d\d(?:\.\d+)?)?([Zz]|[+-]\d\d:\d\d)?$/.exec(lexeme) ?? []
  if (time === undefined) return date
  return `${date === undefined ? '' : `${date}T`}${time}${seconds}${zone.toUpperCase()}`
}

/** Whether a date names a day that its month does not have: the library takes 30 February for a day in March. */
function isNoDay(lexeme: string): boolean {
  const [, year, month, day] = /^(\d{4})-(\d\d)-(\d\d)/.exec(lexeme) ?? []
  if (year === undefined) return false
  // `Date.UTC` takes years below 100 for those from 1900 on; 400 years later each month has the same days.
  return Number(day) > new Date(Date.UTC(Number(year) + 400, Number(month), 0)).getUTCDate()
}
