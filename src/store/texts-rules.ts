import type { Engine } from './engine.ts'
import { checkLimit, checkText, limits, refused } from './rules.ts'
import type { CheckedText, NewText, PartQuery, Texts } from './texts.ts'

/** Form of a term that both engines accept unchanged. */
const termText = /^[0-9A-Za-z!._\u0080-\uffff]+$/
const termsText = /^[0-9A-Za-z!._ \u0080-\uffff]+$/

/** Texts over an engine: the code that both engines share. */
export function textsOf(engine: Engine, name: string, open: () => void): Texts {
  return {
    put: async (texts) => {
      open()
      if (texts.length > limits.texts) throw refused(`At most ${limits.texts} texts are put at once.`, 'too-many')
      const checked = texts.map(checkNew)
      // If a key occurs twice, the last text counts, as if they were put one after the other.
      const last = [...new Map(checked.map((text) => [text.key, text])).values()]
      if (last.length > 0) await engine.textsPut(name, last)
    },
    remove: async (keys) => {
      open()
      for (const key of keys) checkText(key, 'key', limits.textKey)
      while (keys.length > 0 && (await engine.textsRemove(name, keys)));
    },
    list: async (query) => {
      open()
      const { prefix = '', after = '' } = query
      if (prefix !== '') checkText(prefix, 'prefix', limits.textKey)
      if (after !== '') checkText(after, 'key', 4 * limits.textKey)
      return engine.textsList(name, { ...query, limit: checkLimit(query.limit) })
    },
    entries: async (after, limit) => {
      open()
      return engine.textsEntries(name, after, checkLimit(limit))
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
      checkTerms(terms)
      checkTerms(beginnings)
      return terms.length === 0 ? [] : engine.textsCounts(name, terms, among, beginnings)
    },
    find: async (query) => {
      open()
      return query.terms.length === 0 ? [] : engine.textsFind(name, checkQuery(query))
    },
    weigh: async (query) => {
      open()
      return query.terms.length === 0 ? [] : engine.textsWeigh(name, checkQuery(query))
    },
    read: async (ids) => {
      open()
      if (ids.length > limits.ids) throw refused(`At most ${limits.ids} parts are read at once.`, 'too-many')
      return ids.length === 0 ? [] : engine.textsRead(name, ids)
    },
    size: async (model) => {
      open()
      return engine.textsSize(name, model)
    },
    unembedded: async (model, after, limit) => {
      open()
      checkText(model, 'model', limits.key)
      return engine.textsUnembedded(name, model, after, checkLimit(limit))
    },
    embed: async (model, vectors) => {
      open()
      checkText(model, 'model', limits.key)
      if (vectors.some(({ vector }) => vector.byteLength > limits.vector || vector.byteLength === 0))
        throw refused(`A vector has at most ${limits.vector} bytes.`, 'too-large')
      if (vectors.length > 0) await engine.textsEmbed(name, model, vectors)
    },
    vectors: async (model, after, limit) => {
      open()
      checkText(model, 'model', limits.key)
      return engine.textsVectors(name, model, after, checkLimit(limit))
    },
  }
}

function checkNew(text: NewText): CheckedText {
  const { key, version, edition, labels, value, parts } = text
  checkText(key, 'key', limits.textKey)
  checkText(labels.mount, 'mount', limits.textKey)
  for (const plain of [version, value, labels.mimeType ?? '', ...(labels.audience ?? [])]) checkPlain(plain)
  const numbers = [labels.priority ?? 0, labels.modified ?? 0]
  if (!Number.isSafeInteger(edition) || !numbers.every(Number.isFinite) || !Number.isSafeInteger(numbers[1]))
    throw refused('The numbers of a text are none.', 'number')
  return {
    ...text,
    parts: parts.map((part) => {
      checkPlain(part.value)
      if (!Number.isSafeInteger(part.length) || part.length < 0) throw refused('A length is a whole number.', 'number')
      if (part.terms.length > limits.terms) throw refused(`A part has at most ${limits.terms} terms.`, 'terms')
      return { value: part.value, length: part.length, terms: joined(part.terms) }
    }),
  }
}

/** Joins terms with spaces. One look at all of them takes less time than one at each. */
function joined(terms: readonly string[]): string {
  const all = terms.join(' ')
  const isFine = termsText.test(all) && all.isWellFormed() && wordsIn(all) === terms.length
  if (terms.length > 0 && !isFine) checkTerms(terms)
  return all
}

/** The number of words between single spaces; -1 if one of them is empty or too long for a term. */
function wordsIn(text: string): number {
  let count = 0
  for (let from = 0; from <= text.length; count++) {
    const at = text.indexOf(' ', from)
    const end = at === -1 ? text.length : at
    if (end === from || end - from > limits.term) return -1
    from = end + 1
  }
  return count
}

/** PostgreSQL cannot store NUL, and neither engine can store a lone surrogate. */
function checkPlain(text: string): void {
  if (text.includes('\0') || !text.isWellFormed()) throw refused('The text has characters that no text has.', 'text')
  if (text.length > limits.value) throw refused(`A value has at most ${limits.value} bytes.`, 'too-large')
}

function checkTerms(terms: readonly string[]): void {
  if (terms.length > limits.queryTerms) throw refused(`There are at most ${limits.queryTerms} terms.`, 'terms')
  for (const term of terms) {
    if (!termText.test(term) || !term.isWellFormed()) throw refused('The term has characters that none has.', 'term')
    if (term.length > limits.term) throw refused(`The term has more than ${limits.term} characters.`, 'too-long')
  }
}

function checkQuery(query: PartQuery): PartQuery {
  checkTerms(query.terms.map(({ term }) => term))
  if (query.terms.some(({ weight }) => !Number.isSafeInteger(weight) || weight < 1))
    throw refused('A weight is a whole number from 1.', 'weight')
  if (!(Number.isInteger(query.limit) && query.limit >= 0)) throw refused('A limit is a whole number.', 'limit')
  return { ...query, limit: Math.min(query.limit, limits.found) }
}

/** Returns the size of a text in bytes, without its terms. */
export function bytesOf({ key, version, value, parts }: CheckedText): number {
  const own = Buffer.byteLength(key) + Buffer.byteLength(version) + Buffer.byteLength(value)
  return parts.reduce((sum, part) => sum + Buffer.byteLength(part.value), own)
}
