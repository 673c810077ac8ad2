import { createRowParser, type TextOperations } from '../engine.ts'
import type { PartQuery, TextSet, WeightedTerm } from '../texts.ts'
import { createLookupCache, createTextParts, type SortedIds, type TextParts } from './cache.ts'
import { type Database, parseJsonList } from './database.ts'
import { filterSql, type TextStatements } from './statements.ts'

const sifted = 2000
const frequent = 50_000

export const parseTextCollection = createRowParser({
  id: Number,
  revision: Number,
  texts: Number,
  parts: Number,
  length: Number,
  bytes: Number,
})

export type TextCollection = ReturnType<typeof parseTextCollection>

function tokenOf(home: number, term: string): string {
  return `${home}~${term}`
}

/** The tokens of terms that are joined with spaces: each term with the number of its collection before it. */
export function termTokens(home: number, terms: string): string {
  return terms === '' ? '' : `${home}~${terms.replaceAll(' ', ` ${home}~`)}`
}

/** Packs sorted ids: four bytes for each id, or eight if the last one needs more. */
function idsOfList(ids: readonly number[]): SortedIds {
  return (ids.at(-1) ?? 0) > 0xffff_ffff ? Float64Array.from(ids) : new Uint32Array(ids)
}

/** Looks up terms in the index: the ids of the parts that have a term, and how many there are. */
function createLookup(statements: TextStatements) {
  const lookupCache = createLookupCache()
  const owners = createTextParts(
    (after, limit) => parseJsonList(statements.partOwners.get(after, limit)?.owners) as readonly TextParts[],
    () => Number(statements.howMany.get()?.n),
  )
  const tokensOf = (home: TextCollection, { term, prefix }: WeightedTerm) =>
    `"${tokenOf(home.id, term)}"${prefix === true ? ' *' : ''}`
  const lookUp = (match: string): SortedIds =>
    idsOfList(parseJsonList(statements.ids.get(match)?.ids) as readonly number[])
  const idsOf = (home: TextCollection, match: string, among: TextSet | undefined) => {
    if (among === undefined) return lookupCache.ids(home, match, () => lookUp(match))
    return lookupCache.chosen(home, `${among.version} ${match}`, () => chosenOf(home, match, among))
  }
  const chosenOf = (home: TextCollection, match: string, among: TextSet) => {
    owners.refresh(home)
    return owners.within(lookUp(match), among)
  }
  const totalsOf = (home: TextCollection, tokens: readonly string[], beginnings: readonly string[]) =>
    lookupCache.counts(home, tokens, (unknown) => {
      const countsByToken = new Map<string, number>()
      const shared = beginnings.filter((beginning) => unknown.some((token) => token.startsWith(beginning)))
      for (const beginning of shared)
        for (const [token, count] of statements.countsFrom(beginning, `${beginning}\u{10ffff}`))
          countsByToken.set(String(token), Number(count))
      const single = unknown.filter((token) => !shared.some((beginning) => token.startsWith(beginning)))
      const counts = single.length === 0 ? [] : parseJsonList(statements.counts.get(JSON.stringify(single))?.counts)
      for (const [index, token] of single.entries()) countsByToken.set(token, Number(counts[index]))
      return unknown.map((token) => countsByToken.get(token) ?? 0)
    })
  const countsAmong = (
    home: TextCollection,
    tokens: readonly string[],
    among: TextSet,
    beginnings: readonly string[],
  ) => {
    const [before, from] = [`${among.version} `, `${among.version} `.length]
    const find = (unknown: readonly string[]) => {
      const plain = unknown.map((token) => token.slice(from))
      const totals = totalsOf(home, plain, beginnings)
      return plain.map((token, index) => {
        const total = totals[index] ?? 0
        if (total === 0) return 0
        return (total > frequent ? chosenOf(home, `"${token}"`, among) : idsOf(home, `"${token}"`, among)).length
      })
    }
    return lookupCache.counts(
      home,
      tokens.map((token) => before + token),
      find,
    )
  }

  const listsOf = (home: TextCollection, { terms, among }: PartQuery): readonly WeightedIds[] =>
    terms.map((term) => ({ weight: term.weight, ids: idsOf(home, tokensOf(home, term), among) }))
  const countsOf = (
    home: TextCollection,
    terms: readonly string[],
    among: TextSet | undefined,
    beginnings: readonly string[],
  ) => {
    const tokens = terms.map((term) => tokenOf(home.id, term))
    const shared = beginnings.map((beginning) => tokenOf(home.id, beginning))
    return among === undefined ? totalsOf(home, tokens, shared) : countsAmong(home, tokens, among, shared)
  }
  /** With a single term all parts are equally good, so only as many are looked up as are requested. */
  const firstOf = (home: TextCollection, term: WeightedTerm, limit: number): readonly number[] =>
    parseJsonList(statements.firstIds.get(tokensOf(home, term), limit)?.ids) as readonly number[]

  return { countsOf, listsOf, firstOf }
}

/** Creates the operations that find parts by their terms. */
export function createPartSearch(
  database: Database,
  statements: TextStatements,
  find: (name: string) => TextCollection | undefined,
): Pick<TextOperations, 'textsCounts' | 'textsFind' | 'textsWeigh'> {
  const { countsOf, listsOf, firstOf } = createLookup(statements)

  /** Returns the best parts whose texts pass the filter, with their sums of weights. */
  const sift = (home: TextCollection, query: PartQuery): readonly Scored[] => {
    const { where, limit } = query
    const lists = listsOf(home, query)
    if (where === undefined) return weighedOf(lists, limit)
    const passed: Scored[] = []
    const all = weighedOf(lists, Number.POSITIVE_INFINITY)
    const { sql, values } = filterSql(where)
    for (let start = 0; start < all.length && passed.length < limit; start += sifted) {
      const some = all.slice(start, start + sifted)
      const row = database.prepare(sql).get(JSON.stringify(some.map(({ id }) => id)), ...values)
      const ids = new Set(parseJsonList(row?.ids) as readonly number[])
      passed.push(...some.filter(({ id }) => ids.has(id)))
    }
    return passed.slice(0, limit)
  }

  return {
    textsCounts: (name, terms, among, beginnings = []) => {
      const home = find(name)
      return home === undefined ? terms.map(() => 0) : countsOf(home, terms, among, beginnings)
    },
    textsFind: (name, query) => {
      const home = find(name)
      if (home === undefined) return []
      const { terms, where, among, limit } = query
      const [only] = terms
      if (only !== undefined && terms.length === 1 && where === undefined && among === undefined)
        return firstOf(home, only, limit)
      if (where === undefined) return bestIds(listsOf(home, query), limit)
      return sift(home, query).map(({ id }) => id)
    },
    textsWeigh: (name, query) => {
      const home = find(name)
      if (home === undefined) return []
      const candidates = sift(home, query)
      const texts = parseJsonList(statements.textsOfParts.get(JSON.stringify(candidates.map(({ id }) => id)))?.texts)
      return (texts as readonly (readonly [number, string, string, number])[]).map(([at, key, mount, parts]) => {
        const { id = 0, sum = 0 } = candidates[at] ?? {}
        return { id, weight: sum, key, mount, parts }
      })
    },
  }
}

/** Ids in ascending order (as FTS5 returns them), and the weight of every one of them: more than 0. */
export interface WeightedIds {
  readonly weight: number
  readonly ids: ArrayLike<number> & Iterable<number>
}

/** Width of a window of ids that are summed up together. */
const span = 1 << 14
const sums = new Float64Array(span)
const touched = new Uint16Array(span)

/** Returns the ids with the greatest sums of weights; equal sums by ascending id. */
export function bestIds(lists: readonly WeightedIds[], limit: number): readonly number[] {
  return weighedOf(lists, limit).map(({ id }) => id)
}

/** Returns the ids with the greatest sums of weights, and these sums. */
function weighedOf(lists: readonly WeightedIds[], limit: number): readonly Scored[] {
  const best = createBest(limit)
  const at = new Uint32Array(lists.length)
  for (let start = leastOf(lists, at); start < Number.POSITIVE_INFINITY; start = leastOf(lists, at)) {
    const end = start + span
    let count = 0
    for (let index = 0; index < lists.length; index++) {
      const list = lists[index]
      if (list === undefined) continue
      const { weight, ids } = list
      let next = at[index] ?? 0
      for (; next < ids.length; next++) {
        const id = ids[next] ?? 0
        if (id >= end) break
        const offset = id - start
        const sum = sums[offset] ?? 0
        if (sum === 0) touched[count++] = offset
        sums[offset] = sum + weight
      }
      at[index] = next
    }
    for (let index = 0; index < count; index++) {
      const offset = touched[index] ?? 0
      best.add(start + offset, sums[offset] ?? 0)
      sums[offset] = 0
    }
  }
  return best.take()
}

function leastOf(lists: readonly WeightedIds[], at: Uint32Array): number {
  let least = Number.POSITIVE_INFINITY
  for (const [index, { ids }] of lists.entries()) least = Math.min(least, ids[at[index] ?? 0] ?? least)
  return least
}

/** Keeps the best: a heap with the worst one on top. */
function createBest(limit: number) {
  const heap: Scored[] = []
  /** The sum of the worst, once the heap is full. */
  let least = limit > 0 ? -1 : Number.POSITIVE_INFINITY
  /** Of equal sums, the one with the greater id is worse. */
  const isWorse = (a: Scored, b: Scored) => a.sum < b.sum || (a.sum === b.sum && a.id > b.id)

  const rise = (scored: Scored): void => {
    let at = heap.length
    heap.push(scored)
    for (let above = (at - 1) >> 1; at > 0; at = above, above = (at - 1) >> 1) {
      const other = heap[above]
      if (other === undefined || !isWorse(scored, other)) break
      heap[at] = other
    }
    heap[at] = scored
  }

  const sink = (scored: Scored): void => {
    let at = 0
    for (;;) {
      const left = heap[2 * at + 1]
      const right = heap[2 * at + 2]
      if (left === undefined) break
      const isRight = right !== undefined && isWorse(right, left)
      const child = isRight ? right : left
      if (!isWorse(child, scored)) break
      heap[at] = child
      at = 2 * at + (isRight ? 2 : 1)
    }
    heap[at] = scored
  }

  return {
    add: (id: number, sum: number): void => {
      if (sum < least) return
      const scored = { id, sum }
      const worst = heap[0]
      if (heap.length < limit) rise(scored)
      else if (worst !== undefined && isWorse(worst, scored)) sink(scored)
      if (heap.length === limit) least = heap[0]?.sum ?? least
    },
    take: (): readonly Scored[] => heap.sort((a, b) => b.sum - a.sum || a.id - b.id),
  }
}

interface Scored {
  readonly id: number
  readonly sum: number
}
