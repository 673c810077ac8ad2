import { setImmediate as turn } from 'node:timers/promises'
import { compileGlob, type PathTest } from '../core/glob.ts'
import { firstIndex } from '../core/kit/sorted.ts'
import type { TextEntry, TextFilter, TextSet, Texts } from '../store/index.ts'
import { isInSet } from '../store/texts.ts'
import type { FoundPassage } from './part.ts'
import type { Allows, SearchFilter } from './search-index.ts'

/** `read`: number of documents that are read from the store at once. `judged`: number that are checked between two readings of the clock. */
const together = { read: 5000, judged: 64 }
/** Time slice of checking, in milliseconds. */
const turnMs = 8
/** Maximum number of cached sets. */
const maxSets = 64

/** The part of an index that one caller may see: a set of documents with their statistics. */
export interface VisibleSet {
  readonly set: TextSet
  readonly parts: number
  readonly length: number
  readonly texts: number
  readonly mounts: ReadonlySet<string>
  /** Whether a document is in the set, by the id of its text. */
  has(text: number): boolean
}

interface VisibleDocuments {
  /** The id up to which the documents have been checked. */
  upTo: number
  /** Version of the set. 0: the set has changed since it got its last version. */
  version: number
  first: number
  bits: Uint8Array
  parts: number
  length: number
  readonly counts: Map<string, number>
}

/** The last version of a set. Indexes share a store, whose caches tell sets apart by their versions. */
let versions = 0

/**
 * Tells what callers may see of an index. Keeps the list of indexed documents in memory, without their texts, so that each is checked once
 * for each class of callers. If callers see everything, nothing is kept.
 */
export function createVisibility(texts: Texts) {
  /** The indexed documents, in the order of their ids. */
  let entries: TextEntry[] = []
  let revision = -1
  let opening = -1
  const sets = new Map<string, VisibleDocuments>()
  let queue: Promise<unknown> = Promise.resolve()
  /** The last result of {@link areAllOf}: whether the index of a revision contains only documents of these mounts. */
  let covered: { readonly revision: number; readonly mounts: string; readonly whole: boolean } | undefined

  /** Whether a caller who sees all of these mounts sees the whole index. */
  const isCovered = async (mounts: readonly string[]): Promise<boolean> => {
    const { revision: now, opening } = await texts.size()
    const key = [opening, ...mounts].join('\n')
    if (covered?.revision === now && covered.mounts === key) return covered.whole
    const whole = await areAllOf(texts, mounts)
    covered = { revision: now, mounts: key, whole }
    return whole
  }

  const refresh = async (): Promise<void> => {
    const size = await texts.size()
    if (size.opening === opening && size.revision === revision) return
    if (size.opening !== opening) {
      entries = []
      sets.clear()
      opening = size.opening
    }
    for (;;) {
      const some = await texts.entries(entries.at(-1)?.id ?? 0, together.read)
      for (const entry of some) entries.push(entry)
      if (some.length < together.read) break
      await turn()
    }
    if (entries.length !== size.texts) {
      const there = new Set(await texts.ids())
      const textEntries = entries.filter(({ id }) => !there.has(id))
      entries = entries.filter(({ id }) => there.has(id))
      for (const judged of sets.values()) for (const entry of textEntries) leave(judged, entry)
    }
    revision = size.revision
  }

  const judge = async (judged: VisibleDocuments, allows: Allows, signal: AbortSignal | undefined): Promise<void> => {
    let since = performance.now()
    const first = firstIndex(0, entries.length, (index) => (entries[index]?.id ?? 0) > judged.upTo)
    for (const [at, entry] of entries.slice(first).entries()) {
      if (allows({ uri: entry.key, mount: entry.mount })) enter(judged, entry)
      judged.upTo = entry.id
      if (at % together.judged !== 0 || performance.now() - since < turnMs) continue
      await turn()
      signal?.throwIfAborted()
      since = performance.now()
    }
  }

  const find = async (allows: Allows, signal: AbortSignal | undefined): Promise<VisibleSet> => {
    await refresh()
    const key = callerClassKey(allows)
    const judged = (key === undefined ? undefined : sets.get(key)) ?? empty(entries[0]?.id ?? 0)
    if (key !== undefined) {
      sets.delete(key)
      sets.set(key, judged)
      for (const oldest of sets.keys()) {
        if (sets.size <= maxSets) break
        sets.delete(oldest)
      }
    }
    await judge(judged, allows, signal)
    if (judged.version === 0) judged.version = ++versions
    return visibleOf(judged)
  }

  return {
    /** Returns what a caller may see. `undefined`: the whole index. */
    of: async (allows: Allows | undefined, signal?: AbortSignal): Promise<VisibleSet | undefined> => {
      if (allows === undefined) return undefined
      const { mounts } = allows
      if (mounts !== undefined && [...mounts.values()].every(({ reach }) => reach === 'all')) {
        if (await isCovered([...mounts.keys()])) return undefined
      }
      const search = queue.then(() => {
        signal?.throwIfAborted()
        return find(allows, signal)
      })
      queue = search.catch(() => {})
      return search
    },
  }
}

export type Visibility = ReturnType<typeof createVisibility>

/** Returns the key of a class of callers. Undefined if their visibility may change at any time. */
function callerClassKey({ mounts }: Allows): string | undefined {
  if (mounts === undefined) return undefined
  const keys: string[][] = []
  for (const [mount, { reach, callers }] of mounts) {
    if (reach === 'some' && callers === undefined) return undefined
    keys.push([mount, reach, reach === 'some' ? (callers ?? '') : ''])
  }
  return JSON.stringify(keys)
}

function empty(first: number): VisibleDocuments {
  return { upTo: 0, version: 0, first, bits: new Uint8Array(0), parts: 0, length: 0, counts: new Map() }
}

function enter(judged: VisibleDocuments, { id, mount, parts, length }: TextEntry): void {
  const bit = id - judged.first
  if (bit >> 3 >= judged.bits.length) {
    const grown = new Uint8Array(Math.max(1024, 2 * ((bit >> 3) + 1)))
    grown.set(judged.bits)
    judged.bits = grown
  }
  judged.bits[bit >> 3] = (judged.bits[bit >> 3] ?? 0) | (1 << (bit & 7))
  adjustTotals(judged, mount, 1, parts, length)
}

function leave(judged: VisibleDocuments, { id, mount, parts, length }: TextEntry): void {
  if (!isInSet(judged, id)) return
  const bit = id - judged.first
  judged.bits[bit >> 3] = (judged.bits[bit >> 3] ?? 0) & ~(1 << (bit & 7))
  adjustTotals(judged, mount, -1, -parts, -length)
}

function adjustTotals(judged: VisibleDocuments, mount: string, texts: number, parts: number, length: number): void {
  judged.version = 0
  judged.parts += parts
  judged.length += length
  const count = (judged.counts.get(mount) ?? 0) + texts
  if (count > 0) judged.counts.set(mount, count)
  else judged.counts.delete(mount)
}

/** A copy of the current state: later entries are not in it. */
function visibleOf({ version, first, bits, parts, length, counts }: VisibleDocuments): VisibleSet {
  const set = { version, first, bits: bits.slice() }
  const texts = [...counts.values()].reduce((sum, count) => sum + count, 0)
  return { set, texts, parts, length, mounts: new Set(counts.keys()), has: (text) => isInSet(set, text) }
}

/** Whether the index contains only documents of these mounts, of which none lies under another. */
async function areAllOf(texts: Texts, mounts: readonly string[]): Promise<boolean> {
  for (let after = ''; ; ) {
    const [next] = await texts.list({ after, limit: 1 })
    if (next === undefined) return true
    const mount = mounts.find((address) => next.key === address || next.key.startsWith(`${address}/`))
    if (mount === undefined) return false
    // Other URIs may lie between an address and those below it: `a`, `a-b/c`, `a/b`.
    after = next.key === mount ? mount : `${mount}/\u{10ffff}`
  }
}

/** Creates the test whether a passage passes the whole filter. The store applies only a part of it. */
export function createPassageFilter(where: SearchFilter = {}): (found: FoundPassage) => boolean {
  const { mounts, mimeType, audience, minPriority, since, path } = where
  const glob: PathTest = path === undefined ? () => true : remembered(compileGlob(path))
  return ({ facts, mount, path: own }) => {
    if (mounts !== undefined && !mounts.includes(mount)) return false
    if (mimeType !== undefined && !isOfType(facts.mimeType, mimeType)) return false
    const { audience: audiences = [], priority, modified } = facts
    if (audience !== undefined && audiences.length > 0 && !audiences.includes(audience)) return false
    if (minPriority !== undefined && !(priority !== undefined && priority >= minPriority)) return false
    if (since !== undefined && !(modified !== undefined && modified >= since)) return false
    return glob(own)
  }
}

/** Returns a test that remembers its result for each path. */
function remembered(test: PathTest): PathTest {
  const verdicts = new Map<string, boolean>()
  return (path) => {
    const matches = verdicts.get(path) ?? test(path)
    verdicts.set(path, matches)
    return matches
  }
}

function isOfType(type: string | undefined, typePattern: string): boolean {
  if (typePattern.endsWith('/*')) return type?.startsWith(typePattern.slice(0, -1)) === true
  return type === typePattern
}

/** Returns the part of a filter that the store applies. It has no globs. */
export function toTextFilter(where: SearchFilter | undefined): TextFilter | undefined {
  if (where === undefined) return undefined
  const { path: _, since, ...rest } = where
  const filter = { ...rest, ...(since === undefined ? {} : { since: Math.floor(since) }) }
  return Object.values(filter).every((value) => value === undefined) ? undefined : filter
}
