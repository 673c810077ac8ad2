import { type ErrorReason, invalid, ResourceError } from '../core/errors.ts'
import { defined } from '../core/kit/object.ts'
import type { NewRow, RowQuery } from './store.ts'

/** Limits that both engines share, in bytes unless noted. */
export const limits = {
  name: 255,
  key: 1024,
  term: 256,
  /** Terms of one row. */
  terms: 4096,
  value: 64 * 1024 * 1024,
  /** Maximum number of rows of one answer. */
  rows: 10_000,
  /** Maximum number of terms that `similar` uses, and of rows for each. */
  similarTerms: 512,
  similarRows: 2000,
  /** The key of a text. */
  textKey: 8192,
  /** Maximum number of texts of one `put`, of ids and terms of one request, and of its results. */
  texts: 1000,
  ids: 10_000,
  queryTerms: 4096,
  found: 1_000_000,
  vector: 65_536,
} as const

/** The collection whose notifications name released leases. It has no rows. */
export const leases = 'leases'

/** A row in the form of an engine: complete, with each term once. */
export interface WholeRow {
  readonly key: string
  readonly value: Uint8Array
  readonly expires?: number
  readonly terms: readonly string[]
}

export function checkCollection(name: string): void {
  checkText(name, 'name of a collection', limits.name)
  if (name === leases) throw refused(`The name ${leases} is the store's own.`, 'name')
}

export function checkLease(name: string, ttlMs: number): void {
  checkText(name, 'name of a lease', limits.key)
  if (!(Number.isFinite(ttlMs) && ttlMs >= 1)) throw refused('A lease lasts for a millisecond or more.', 'ttl')
}

export function checkKey(key: string): void {
  checkText(key, 'key', limits.key)
}

export function checkRow({ key, value, expires, terms = [] }: NewRow): WholeRow {
  checkKey(key)
  if (value.byteLength > limits.value) throw refused(`A value has at most ${limits.value} bytes.`, 'too-large')
  if (expires !== undefined && !Number.isSafeInteger(expires))
    throw refused('When a row expires is a whole number of milliseconds.', 'expires')
  const each = checkTerms(terms)
  if (each.length > limits.terms) throw refused(`A row has at most ${limits.terms} terms.`, 'terms')
  return { key, value, terms: each, ...defined({ expires }) }
}

/** The terms without duplicates. */
export function checkTerms(terms: readonly string[]): readonly string[] {
  for (const term of terms) checkText(term, 'term', limits.term)
  return [...new Set(terms)]
}

export function checkQuery(query: RowQuery): RowQuery {
  if (query.prefix !== undefined && query.prefix !== '') checkText(query.prefix, 'prefix', limits.key)
  // The position at which a listing continues need not be a key: every string that sorts is valid.
  if (query.after !== undefined && query.after !== '') checkText(query.after, 'key', 4 * limits.key)
  if (query.term !== undefined) checkText(query.term, 'term', limits.term)
  return { ...query, limit: checkLimit(query.limit) }
}

export function checkLimit(limit: number): number {
  if (!(Number.isInteger(limit) && limit >= 0)) throw refused('A limit is a whole number.', 'limit')
  return Math.min(limit, limits.rows)
}

export function checkText(text: string, what: string, most: number): void {
  if (text === '') throw refused(`The ${what} is empty.`, 'empty')
  if (!text.isWellFormed() || text.includes('\0')) throw refused(`The ${what} has characters that no text has.`, 'text')
  if (Buffer.byteLength(text) > most) throw refused(`The ${what} has more than ${most} bytes.`, 'too-long')
}

/** The first text, by UTF-8 bytes, after everything that begins with a prefix. `undefined`: there is none. */
export function endOf(prefix: string): string | undefined {
  const points = [...prefix]
  for (let last = points.pop(); last !== undefined; last = points.pop()) {
    const point = last.codePointAt(0) ?? 0
    if (point < 0x10ffff) return points.join('') + String.fromCodePoint(point === 0xd7ff ? 0xe000 : point + 1)
  }
  return undefined
}

/** Why a store could not do an operation, as `detail.reason`. */
export type Reason = 'gone' | 'busy' | 'full' | 'read-only' | 'damaged'

const sentences: Readonly<Record<Reason, string>> = {
  gone: 'The store does not answer. It is asked again the next time.',
  busy: 'The store is busy with others for too long. Try again.',
  full: 'The store has no room left. Free some space where it lies: it goes on by itself.',
  'read-only': 'The store may not be written to. Let this user write where it lies: it goes on by itself.',
  damaged: 'The store is damaged, and could not be begun anew.',
}

/** @param code The code of the cause in the engine's own list, such as `SQLITE_FULL`: never text of the engine. */
export function failure(reason: Reason, code?: string): ResourceError {
  const text = code === undefined ? sentences[reason] : `${sentences[reason]} (${code})`
  return new ResourceError(reason === 'damaged' ? 'internal' : 'unavailable', text, { reason })
}

/** Returns the error for a bug in this program: the engine rejects the request as invalid. */
export function fault(code: string): ResourceError {
  return new ResourceError('internal', `The store does not understand what is asked of it. (${code})`)
}

/** Returns the error for a value that cannot be stored, or a query that cannot be answered. */
export function refused(message: string, reason: ErrorReason): ResourceError {
  return invalid(message, reason)
}
