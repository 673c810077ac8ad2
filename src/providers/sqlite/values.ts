import type { Value } from '../relational/source.ts'
import type { KnownKey } from './catalog.ts'
import { type Affinity, quoteName } from './names.ts'

/** A value as a statement answers it, and as one is bound. */
export type Cell = string | bigint | number | null | Uint8Array

/** Of a longer value not even the beginning is read: SQLite would have to take in all of it. */
const longest = 16 * 2 ** 20

/**
 * A column as a value of its own kind: numbers as they are; texts as bytes, in the encoding of the database, with a letter before
 * them, since a text may have a NUL in it; bytes as hexadecimal digits, with another letter. Of one that is longer than so many
 * bytes, its length and its beginning.
 */
export function pieceOf(column: string, most: number): string {
  const name = quoteName(column)
  const start = (piece: string) => `CASE WHEN octet_length(${name}) > ${longest} THEN '' ELSE ${piece} END`
  // A character has up to four bytes.
  const letters = start(`substr(${name}, 1, ${Math.max(1, Math.floor(most / 4))})`)
  const digits = start(`hex(substr(${name}, 1, ${most}))`)
  return `CASE typeof(${name})
    WHEN 'text' THEN CASE WHEN octet_length(${name}) > ${most}
      THEN CAST('c' || octet_length(${name}) || ':' || ${letters} AS BLOB) ELSE CAST('t' || ${name} AS BLOB) END
    WHEN 'blob' THEN CASE WHEN octet_length(${name}) > ${most}
      THEN 'd' || octet_length(${name}) || ':' || ${digits} ELSE 'b' || hex(${name}) END
    ELSE ${name} END`
}

/** Makes values out of what such a column answered. */
export function createDecoder(encoding: string) {
  const decoder = new TextDecoder(encoding.toLowerCase())
  return {
    valueOf: (cell: Cell): Value => {
      if (cell === null) return { json: 'null' }
      if (typeof cell === 'bigint') return { json: isSafe(cell) ? String(cell) : JSON.stringify(String(cell)) }
      if (typeof cell === 'number') return { json: Number.isFinite(cell) ? realOf(cell) : JSON.stringify(String(cell)) }
      const isText = typeof cell !== 'string'
      const told = isText ? decoder.decode(cell) : cell
      const isCut = told[0] === 'c' || told[0] === 'd'
      const from = isCut ? told.indexOf(':') + 1 : 1
      const json = JSON.stringify(isText ? told.slice(from) : base64Of(told.slice(from)))
      return isCut ? { json, cut: Number(told.slice(1, from - 1)) } : { json }
    },
    /** A part of a key as a text; no other part has the same one. */
    keyOf: (cell: Cell, { affinity }: KnownKey): string => {
      if (cell === null) return ''
      if (typeof cell === 'bigint') return String(cell)
      if (typeof cell === 'number') return realOf(cell)
      if (typeof cell === 'string') return `x'${cell.slice(1)}'`
      const text = decoder.decode(cell).slice(1)
      return boundOf(text, affinity) === text ? text : `'${text.replaceAll("'", "''")}'`
    },
  }
}

function isSafe(whole: bigint): boolean {
  return whole <= BigInt(Number.MAX_SAFE_INTEGER) && whole >= BigInt(Number.MIN_SAFE_INTEGER)
}

/** A real number, which shows that it is one. */
function realOf(value: number): string {
  const text = Object.is(value, -0) ? '-0' : String(value)
  return /^-?\d+$/.test(text) ? `${text}.0` : text
}

function base64Of(digits: string): string {
  return Buffer.from(digits, 'hex').toString('base64')
}

const [smallest, largest] = [-(2n ** 63n), 2n ** 63n - 1n]

/** Parses a part of a key for a column: `x'00'` is bytes, `'7'` is a string, and `7` is a string when the column holds text. */
export function boundOf(text: string, affinity: Affinity): Cell {
  if (/^x'(?:[0-9A-F]{2})*'$/.test(text)) return Uint8Array.from(Buffer.from(text.slice(2, -1), 'hex'))
  if (/^'(?:[^']|'')*'$/.test(text)) return text.slice(1, -1).replaceAll("''", "'")
  if (affinity === 'text') return text
  if (/^-?(?:0|[1-9]\d{0,18})$/.test(text)) {
    const whole = BigInt(text)
    return whole >= smallest && whole <= largest ? whole : text
  }
  if (/^-?\d+(?:\.\d+)?(?:e[+-]\d+)?$/.test(text)) return Number(text)
  return text
}
