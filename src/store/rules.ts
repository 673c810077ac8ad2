import { type ErrorReason, invalid, ResourceError } from '../core/errors.ts'
import { defined } from '../core/kit/object.ts'
import type { Engine } from './engine.ts'
import type { NewRow, RowQuery, WholeRow } from './store.ts'
import type { CheckedText, NewText, PartQuery, Texts } from './texts.ts'

/** Limits that both engines share, in bytes unless noted. */
export const storeLimits = {
  name: 255,
  key: 1024,
  term: 256,
  /** Maximum number of terms of one row. */
  terms: 4096,
  value: 64 * 1024 * 1024,
  /** Maximum number of rows of one answer. */
  rows: 10_000,
  /** Maximum number of terms that `similar` uses, and of rows for each. */
  similarTerms: 512,
  similarRows: 2000,
  /** Maximum length of the key of a text, in bytes. */
  textKey: 8192,
  /** Maximum number of texts of one `put`, and of ids and terms of one request. */
  texts: 1000,
  ids: 10_000,
  queryTerms: 4096,
  found: 1_000_000,
  vector: 65_536,
  /** Size of a store in memory, in bytes. */
  memory: 512 * 1024 * 1024,
} as const

/** The collection whose notifications name released leases. It has no rows. */
export const leasesCollection = 'leases'

export function checkCollection(name: string): void {
  checkText(name, 'name of a collection', storeLimits.name)
  if (name === leasesCollection) throw valueError(`The name ${leasesCollection} is reserved for the store.`, 'argument')
}

export function checkLease(name: string, ttlMs: number): void {
  checkText(name, 'name of a lease', storeLimits.key)
  if (!(Number.isFinite(ttlMs) && ttlMs >= 1))
    throw valueError('A lease must last for at least a millisecond.', 'argument')
}

export function checkKey(key: string): void {
  checkText(key, 'key', storeLimits.key)
}

/**
 * Checks a row, and returns it complete, with each term once.
 *
 * @throws ResourceError `invalid`.
 */
export function normalizeRow({ key, value, expires, terms = [] }: NewRow): WholeRow {
  checkKey(key)
  if (value.byteLength > storeLimits.value)
    throw valueError(`A value may have at most ${storeLimits.value} bytes.`, 'too-large')
  if (expires !== undefined && !Number.isSafeInteger(expires))
    throw valueError('The expiry of a row must be a whole number of milliseconds.', 'argument')
  const each = normalizeTerms(terms)
  if (each.length > storeLimits.terms)
    throw valueError(`A row may have at most ${storeLimits.terms} terms.`, 'too-many')
  return { key, value, terms: each, ...defined({ expires }) }
}

export function normalizeTerms(terms: readonly string[]): readonly string[] {
  for (const term of terms) checkText(term, 'term', storeLimits.term)
  return [...new Set(terms)]
}

/** Checks a query, and returns it with a limit of at most `storeLimits.rows`. */
export function normalizeQuery(query: RowQuery): RowQuery {
  if (query.prefix !== undefined && query.prefix !== '') checkText(query.prefix, 'prefix', storeLimits.key)
  // The position at which a listing continues need not be a key.
  if (query.after !== undefined && query.after !== '') checkText(query.after, 'key', 4 * storeLimits.key)
  if (query.term !== undefined) checkText(query.term, 'term', storeLimits.term)
  return { ...query, limit: normalizeLimit(query.limit) }
}

/** Checks a limit, and returns it, at most `storeLimits.rows`. */
export function normalizeLimit(limit: number): number {
  if (!(Number.isInteger(limit) && limit >= 0)) throw valueError('A limit must be a whole number.', 'argument')
  return Math.min(limit, storeLimits.rows)
}

function checkText(text: string, what: string, most: number): void {
  if (text === '') throw valueError(`The ${what} is empty.`, 'argument')
  if (!text.isWellFormed() || text.includes('\0'))
    throw valueError(`The ${what} contains NUL or a lone surrogate, which cannot be stored.`, 'argument')
  if (Buffer.byteLength(text) > most) throw valueError(`The ${what} has more than ${most} bytes.`, 'too-large')
}

/** Why a store could not do an operation, as `detail.fault` of the error. */
export type StoreFault = 'gone' | 'busy' | 'full' | 'read-only' | 'damaged'

/** The remedy for a store that cannot be written, as the end of a sentence. */
export const moveStoreAdvice = 'keep the store elsewhere: "store" in the configuration, or the variable XDG_STATE_HOME.'

const sentences: Readonly<Record<StoreFault, string>> = {
  gone: 'The store does not answer. The next request tries it again.',
  busy: 'The store has been busy with other requests for too long. Try again later.',
  full: 'The disk of the store is full. Free some space. A restart of hikidashi is not needed.',
  'read-only': `This user may not write to the store. Let this user write to its folder, without a restart of hikidashi, or ${moveStoreAdvice}`,
  damaged: 'The store is damaged, and could not be created again. Check its disk.',
}

/** Sentences for codes whose remedy differs from that of other causes of the same fault. */
const sentencesOfCodes: Readonly<Record<string, string>> = {
  memory: `The store in memory is full. To use a disk, ${moveStoreAdvice}`,
  'SQLSTATE 25006':
    'The server of the store takes no writes: it is a standby, or set to read-only. Name its primary server in "store".',
  'SQLSTATE 42501':
    'The user of the store lacks a right in its database. Grant this user the rights on the schema of the store.',
  'no version':
    'The schema of the store is damaged: its table "meta" has no version. Restore it, or name another schema.',
  EROFS: `The store is on a file system that is mounted read-only. To change that, ${moveStoreAdvice}`,
}

/** @param code The code of the cause in the engine's own list, such as `SQLITE_FULL`: never text of the engine. */
export function storeError(reason: StoreFault, code?: string): ResourceError {
  const sentence = sentencesOfCodes[code ?? ''] ?? sentences[reason]
  const text = code === undefined ? sentence : `${sentence} (${code})`
  return new ResourceError(reason === 'damaged' ? 'internal' : 'unavailable', text, { fault: reason })
}

/** Returns the error for a store whose SQLite cannot be loaded. @param why The end of the sentence. */
export function notLoadedError(why: string): ResourceError {
  return new ResourceError('unavailable', `SQLite cannot be loaded: ${why}`, { fault: 'platform' })
}

/** Returns the error for a bug in this program: the engine rejects the request as invalid. */
export function bugError(code: string): ResourceError {
  return new ResourceError(
    'internal',
    `The store rejects a request as invalid (${code}). This is a bug in hikidashi: please report it.`,
  )
}

/** Returns the error for a value that cannot be stored, a query that cannot be answered, or a fault of the configuration. */
export function valueError(message: string, reason: ErrorReason): ResourceError {
  return invalid(message, reason)
}

/** Form of a term that both engines accept unchanged. */
const termText = /^[0-9A-Za-z!._\u0080-\uffff]+$/
const termsText = /^[0-9A-Za-z!._ \u0080-\uffff]+$/

/** Texts over an engine: the code that both engines share. */
export function createEngineTexts(engine: Engine, name: string, open: () => void): Texts {
  return {
    put: async (texts) => {
      open()
      if (texts.length > storeLimits.texts)
        throw valueError(`At most ${storeLimits.texts} texts are put at once.`, 'too-many')
      const checkedTexts = texts.map(checkNew)
      // If a key occurs twice, the last text counts, as if they were put one after the other.
      const last = [...new Map(checkedTexts.map((text) => [text.key, text])).values()]
      if (last.length > 0) await engine.textsPut(name, last)
    },
    remove: async (keys) => {
      open()
      for (const key of keys) checkText(key, 'key', storeLimits.textKey)
      while (keys.length > 0 && (await engine.textsRemove(name, keys)));
    },
    list: async (query) => {
      open()
      const { prefix = '', after = '' } = query
      if (prefix !== '') checkText(prefix, 'prefix', storeLimits.textKey)
      if (after !== '') checkText(after, 'key', 4 * storeLimits.textKey)
      return engine.textsList(name, { ...query, limit: normalizeLimit(query.limit) })
    },
    entries: async (after, limit) => {
      open()
      return engine.textsEntries(name, after, normalizeLimit(limit))
    },
    ids: async () => {
      open()
      return engine.textsIds(name)
    },
    mimeTypes: async (among) => {
      open()
      return engine.textsMimeTypes(name, among)
    },
    counts: async (terms, among, beginnings = []) => {
      open()
      checkTextTerms(terms)
      checkTextTerms(beginnings)
      return terms.length === 0 ? [] : engine.textsCounts(name, terms, among, beginnings)
    },
    find: async (query) => {
      open()
      return query.terms.length === 0 ? [] : engine.textsFind(name, checkTextQuery(query))
    },
    weigh: async (query) => {
      open()
      return query.terms.length === 0 ? [] : engine.textsWeigh(name, checkTextQuery(query))
    },
    read: async (ids) => {
      open()
      if (ids.length > storeLimits.ids)
        throw valueError(`At most ${storeLimits.ids} parts are read at once.`, 'too-many')
      return ids.length === 0 ? [] : engine.textsRead(name, ids)
    },
    size: async (model) => {
      open()
      return engine.textsSize(name, model)
    },
    unembedded: async (model, after, limit) => {
      open()
      checkText(model, 'model', storeLimits.key)
      return engine.textsUnembedded(name, model, after, normalizeLimit(limit))
    },
    embed: async (model, vectors) => {
      open()
      checkText(model, 'model', storeLimits.key)
      if (vectors.some(({ vector }) => vector.byteLength > storeLimits.vector || vector.byteLength === 0))
        throw valueError(`A vector must have 1 to ${storeLimits.vector} bytes.`, 'too-large')
      if (vectors.length > 0) await engine.textsEmbed(name, model, vectors)
    },
    vectors: async (model, after, limit) => {
      open()
      checkText(model, 'model', storeLimits.key)
      return engine.textsVectors(name, model, after, normalizeLimit(limit))
    },
  }
}

function checkNew(text: NewText): CheckedText {
  const { key, version, edition, labels, value, parts } = text
  checkText(key, 'key', storeLimits.textKey)
  checkText(labels.mount, 'mount', storeLimits.textKey)
  for (const plain of [version, value, labels.mimeType ?? '', ...(labels.audience ?? [])]) checkPlain(plain)
  const numbers = [labels.priority ?? 0, labels.modified ?? 0]
  if (!Number.isSafeInteger(edition) || !numbers.every(Number.isFinite) || !Number.isSafeInteger(numbers[1]))
    throw valueError(
      'The edition and the time of a text must be whole numbers, and its priority a finite number.',
      'argument',
    )
  return {
    ...text,
    parts: parts.map((part) => {
      checkPlain(part.value)
      if (!Number.isSafeInteger(part.length) || part.length < 0)
        throw valueError('A length must be a whole number.', 'argument')
      if (part.terms.length > storeLimits.terms)
        throw valueError(`A part may have at most ${storeLimits.terms} terms.`, 'too-many')
      return { value: part.value, length: part.length, terms: joinTerms(part.terms) }
    }),
  }
}

/** Joins terms with spaces. One check of the joined text takes less time than a check of each term. */
function joinTerms(terms: readonly string[]): string {
  const all = terms.join(' ')
  const isFine = termsText.test(all) && all.isWellFormed() && countTerms(all) === terms.length
  if (terms.length > 0 && !isFine) checkTextTerms(terms)
  return all
}

/** Counts the terms of a text, which are separated by single spaces. -1: a term is empty or too long. */
function countTerms(text: string): number {
  let count = 0
  for (let from = 0; from <= text.length; count++) {
    const at = text.indexOf(' ', from)
    const end = at === -1 ? text.length : at
    if (end === from || end - from > storeLimits.term) return -1
    from = end + 1
  }
  return count
}

/** Throws for a text that is too long, or has NUL, which PostgreSQL cannot store, or a lone surrogate. */
function checkPlain(text: string): void {
  if (text.includes('\0') || !text.isWellFormed())
    throw valueError('The text contains NUL or a lone surrogate, which cannot be stored.', 'argument')
  if (isLonger(text, storeLimits.value))
    throw valueError(`A value may have at most ${storeLimits.value} bytes.`, 'too-large')
}

/** Whether a text has more than `maxBytes` bytes in UTF-8. */
function isLonger(text: string, maxBytes: number): boolean {
  return text.length > maxBytes || (text.length * 3 > maxBytes && Buffer.byteLength(text) > maxBytes)
}

function checkTextTerms(terms: readonly string[]): void {
  if (terms.length > storeLimits.queryTerms)
    throw valueError(`A request may have at most ${storeLimits.queryTerms} terms.`, 'too-many')
  for (const term of terms) {
    if (!termText.test(term) || !term.isWellFormed())
      throw valueError(
        'The term contains a character that is not allowed. Use letters, digits, "!", ".", "_" and characters from U+0080 on.',
        'argument',
      )
    if (term.length > storeLimits.term)
      throw valueError(`The term has more than ${storeLimits.term} characters.`, 'too-large')
  }
}

function checkTextQuery(query: PartQuery): PartQuery {
  checkTextTerms(query.terms.map(({ term }) => term))
  if (query.terms.some(({ weight }) => !Number.isSafeInteger(weight) || weight < 1))
    throw valueError('A weight must be a whole number from 1.', 'argument')
  if (!(Number.isInteger(query.limit) && query.limit >= 0))
    throw valueError('A limit must be a whole number.', 'argument')
  return { ...query, limit: Math.min(query.limit, storeLimits.found) }
}

/** The bytes of the key, the version and the values of a text and its parts, in UTF-8, without labels and terms. */
export function textByteSize({ key, version, value, parts }: CheckedText): number {
  const own = Buffer.byteLength(key) + Buffer.byteLength(version) + Buffer.byteLength(value)
  return parts.reduce((sum, part) => sum + Buffer.byteLength(part.value), own)
}
