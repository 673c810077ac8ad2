import { quoteName } from './sql.ts'

/** Types whose texts are JSON as they are. */
const plain = new Set(['bool', 'int2', 'int4', 'oid', 'json', 'jsonb'])
const floats = new Set(['float4', 'float8'])
const times = new Set(['timestamp', 'timestamptz'])
const texts = new Set(['text', 'varchar', 'bpchar'])

/** A column as a text. */
export function textOf(column: string): string {
  return `${quoteName(column)}::text`
}

/** A column as a text of at most so many bytes: its beginning, where it is longer. */
export function pieceOf(column: string, type: string, most: number): string {
  const name = quoteName(column)
  if (type === 'bytea')
    return `pg_catalog.encode(CASE WHEN pg_catalog.octet_length(${name}) > ${most} THEN pg_catalog.substring(${name}, 1, ${most}) ELSE ${name} END, 'base64')`
  // A character has up to four bytes.
  const start = `pg_catalog.left(${textOf(column)}, ${Math.max(1, Math.floor(most / 4))})`
  return `CASE WHEN ${lengthOf(column, type)} > ${most} THEN ${start} ELSE ${textOf(column)} END`
}

/** The length of a column in bytes, where it is more than so many. */
export function sizeOf(column: string, type: string, most: number): string {
  const length = lengthOf(column, type)
  return `CASE WHEN ${length} > ${most} THEN ${length} END`
}

function lengthOf(column: string, type: string): string {
  // Of these it is known without fetching them.
  const isStored = type === 'bytea' || texts.has(type)
  return `pg_catalog.octet_length(${isStored ? quoteName(column) : textOf(column)})`
}

/** A text of the database as a fragment of JSON, without loss. The beginning of a value is a string, whatever its type. */
export function jsonOf(text: string | null, type: string, isCut: boolean): string {
  if (text === null) return 'null'
  if (isCut) return JSON.stringify(type === 'bytea' ? text.replaceAll('\n', '') : text)
  if (plain.has(type)) return text
  if (floats.has(type)) return /^-?\d/.test(text) ? text : JSON.stringify(text)
  if (type === 'bytea') return JSON.stringify(text.replaceAll('\n', ''))
  if (times.has(type)) return JSON.stringify(isoOf(text))
  return JSON.stringify(text)
}

/** `2026-11-21 18:00:00+00` as ISO 8601 has it. Values without an ISO form (infinity, years before Christ) stay unchanged. */
function isoOf(text: string): string {
  const match = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)(\+00)?$/.exec(text)
  return match === null ? text : `${match[1]}T${match[2]}${match[3] === undefined ? '' : 'Z'}`
}
