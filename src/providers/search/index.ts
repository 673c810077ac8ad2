import { notFound } from '../../core/errors.ts'
import { followAbortFor, untilAborted } from '../../core/kit/abort.ts'
import { defined, requireKeys } from '../../core/kit/object.ts'
import type { Log } from '../../core/log.ts'
import type { MountReader } from '../../core/mount-reader.ts'
import { comparePaths } from '../../core/path.ts'
import type { Content, Context, Entry, Principal, Provider, ReadRequest, Template } from '../../core/provider.ts'
import type { Scrubber } from '../../core/scrub.ts'
import {
  foundMimeType,
  idleNote,
  type SearchStatus,
  type SearchStatusMount,
  searchStatusMimeType,
  searchStatusPath,
} from '../../core/search-answer.ts'
import type { FeedStatus, IndexFeeder, MountProgress } from '../../core/tool.ts'
import {
  askToCatchUp,
  type IndexedMount,
  type IndexFeed,
  readFeedStatus,
  readLastCurrent,
  startFeed,
} from '../../search/feed.ts'
import { hasParameter } from '../../search/feed-documents.ts'
import type { SearchHit, SearchIndex } from '../../search/search-index.ts'
import type { Store } from '../../store/index.ts'
import {
  allowsFor,
  findHits,
  formatAnswerJson,
  formatAnswerMarkdown,
  formatHit,
  knownMounts,
  type PartKinds,
  sourceTimeoutMs,
} from './answer.ts'
import { freshnessFor, freshnessNotes, partialMounts } from './freshness.ts'
import { completeSearch, maxAfter, parseSearch, type SearchCall, searchParameters } from './query.ts'

export type { FeedStatus, MountProgress } from '../../core/tool.ts'

export interface SearchOptions {
  readonly index: SearchIndex
  readonly store: Store
  /** Name of the index, unique within the store. */
  readonly name: string
  /** The mounts to search. Called at the first use, because all mounts are opened together with this one. */
  readonly mounts: () => readonly IndexedMount[]
  /** Maximum length of the indexed part of a text (its beginning, or the end of a log), in bytes. */
  readonly maxBytes?: number
  readonly maxRows?: number
  /** Interval at which a mount that cannot report changes is compared, in milliseconds. */
  readonly intervalMs?: number
  readonly scrubber?: Scrubber
  readonly log?: Log
}

export type Search = Provider & IndexFeeder

/** Maximum time for which a search waits until the index has every earlier change, in milliseconds. */
const catchUpMs = 10_000

const filters = searchParameters.join(',')
const description =
  'Words are searched in texts, titles and paths; "quoted words" must occur exactly, if there are at most two others. limit: 1-100. mount: an address. ' +
  'mime: text/markdown, text/*. since: 2026-01-31, 7d. minPriority: 0-1. audience: user, assistant. path: a glob. after: `next` ' +
  'of the previous answer. fresh: true waits for the changes before the call. as: json, markdown.'
/** Variables with free text: they have no completion. */
const free = ['path', 'after']
const templates: readonly Template[] = [
  { template: `{?q,${filters}}`, name: 'search', title: 'Search', description, mimeType: foundMimeType, free },
  {
    template: `{+query}{?${filters}}`,
    name: 'search-path',
    title: 'Search, with the words as a path',
    description,
    mimeType: foundMimeType,
    free,
  },
]

/**
 * Search over other mounts. Callers find only documents that they may see: hits, counts, snippets and completions are filtered by the
 * current rules, and scores are relative to the best visible hit.
 *
 * Reading `status.json` returns the progress of the index; reading any other path is a search.
 */
export function search(options: SearchOptions): Search {
  requireKeys('search({ index, store, name, mounts })', options, {
    index: 'an object',
    store: 'an object',
    name: 'a string',
    mounts: 'a function',
  })
  const { index, store, name, log = () => {} } = options
  let fed: readonly IndexedMount[] | undefined
  let readers: ReadonlyMap<string, MountReader> | undefined
  let feeding: IndexFeed | undefined
  const fedMounts = () => {
    fed ??= options.mounts()
    return fed
  }
  const mounts = () => {
    readers ??= new Map(fedMounts().map(({ mount }) => [mount.address, mount]))
    return readers
  }
  const feedStatus = () => feeding?.status() ?? readFeedStatus(store, name)

  const partsOf = createPartsOf((address) => mounts().get(address))

  const catchUp = ({ where }: SearchCall, signal: AbortSignal): Promise<boolean> =>
    inTime(signal, (time) => feeding?.catchUp(where.mounts, time) ?? askToCatchUp(store, name, where.mounts, time))

  const answer = async (call: SearchCall, { principal, signal }: Context): Promise<Content> => {
    const isFresh = call.fresh ? await catchUp(call, signal) : undefined
    signal.throwIfAborted()
    const searchable = await knownMounts(mounts(), signal)
    const allows = allowsFor(searchable, principal)
    const searched = { index, mounts: searchable, isCurrent: (address: string) => feeding?.isCurrent(address) ?? false }
    // The state before the search: the hits are at least as new.
    const status = await feedStatus()
    // If no process feeds the index, its last stored state says how old the index is.
    const last = status === undefined ? await readLastCurrent(store, name, fedMounts()) : undefined
    const lastStatus =
      last === undefined ? status : { told: last.at, mounts: last.mounts.map((one) => ({ ...one, asOf: last.at })) }
    const { asOf, pending } = freshnessFor(principal, {
      mounts: [...mounts().values()].filter(({ address }) => call.where.mounts?.includes(address) !== false),
      here: (address, isCounted) => feeding?.freshnessOf(address, isCounted),
      stored: lastStatus,
    })
    const finding = await findHits(searched, call, allows, signal)
    const partsHere = onceEach((address) => partsOf(address, signal))
    const format = async (hit: SearchHit) => {
      const path = mounts().get(hit.mount)?.pathOf(hit.uri) ?? ''
      return formatHit(hit, finding.best, await partsHere(hit.mount), path)
    }
    const next = call.after + call.limit
    const report = {
      ...statusFor(principal, mounts(), lastStatus),
      ...(status === undefined ? { indexing: 'stopped' as const } : {}),
    }
    const whole = {
      query: call.text,
      hits: await Promise.all(finding.hits.map(format)),
      ...(finding.more && next <= maxAfter ? { next: String(next) } : {}),
      notes: [...finding.notes, ...notesOf(report, call.where.mounts), ...freshnessNotes(pending, isFresh)],
      ...defined({ total: finding.total, fallback: finding.fallback, fresh: isFresh, pending }),
      ...(asOf === undefined ? {} : { asOf: new Date(asOf).toISOString() }),
      ...partialMounts(report, call.where.mounts),
    }
    return call.as === 'markdown'
      ? { text: formatAnswerMarkdown(whole), mimeType: 'text/markdown' }
      : { text: formatAnswerJson(whole), mimeType: foundMimeType }
  }

  const readStatus = async ({ principal }: Context): Promise<Content> => {
    const status = statusFor(principal, mounts(), await feedStatus())
    const isWhole = [...mounts().values()].every((mount) => mount.reach(principal) === 'all')
    const whole = { ...status, ...(isWhole ? await describeIndex(index) : {}) }
    return { text: `${JSON.stringify(whole, undefined, 2)}\n`, mimeType: statusEntry.mimeType }
  }

  return {
    list: async function* ({ prefix = '', after }, { signal }): AsyncGenerator<Entry> {
      signal.throwIfAborted()
      const isAfter = after === undefined || comparePaths(statusEntry.path, after) > 0
      if (statusEntry.path.startsWith(prefix) && isAfter) yield statusEntry
    },
    stat: async (path, { signal }) => {
      signal.throwIfAborted()
      if (path !== statusEntry.path) throw notFound('a search lists nothing but its status')
      return statusEntry
    },
    read: async ({ path, params }: ReadRequest, context) => {
      context.signal.throwIfAborted()
      if (path === statusEntry.path && params.size === 0) return [await readStatus(context)]
      const text = path === '' ? params.get('q') : path
      // Words neither in the path nor in `q`, or words in both, are no search.
      if (text === undefined || (path !== '' && params.has('q'))) throw notFound('nothing is searched for')
      return [await answer(parseSearch(text, params), context)]
    },
    templates: async () => templates,
    complete: async (request, { principal, signal }) => {
      const readers = await knownMounts(mounts(), signal)
      return completeSearch(request, { index, mounts: readers, allows: allowsFor(readers, principal), signal })
    },
    close: async () => {
      await feeding?.close()
      await index.close()
    },
    feed: () => {
      const { maxBytes, maxRows, intervalMs, scrubber } = options
      feeding ??= startFeed({
        index,
        store,
        name,
        mounts: fedMounts(),
        log,
        ...defined({ maxBytes, maxParts: maxRows, intervalMs, scrubber }),
      })
    },
    feedStatus,
    currentAt: async () => (await readLastCurrent(store, name, fedMounts()))?.at,
  }
}

/** Waits for `catchUp`, for at most {@link catchUpMs}. Resolves to its answer, or to false after that time. */
async function inTime(signal: AbortSignal, catchUp: (time: AbortSignal) => Promise<boolean>): Promise<boolean> {
  const time = followAbortFor(signal, catchUpMs)
  try {
    return await untilAborted(catchUp(time.signal), time.signal)
  } catch (error) {
    if (!time.signal.aborted) throw error
    return false
  } finally {
    time.release()
  }
}

async function describeIndex(index: SearchIndex) {
  const [{ documents, passages }, embedding] = await Promise.all([index.size(), index.embedding()])
  return { documents, passages, ...defined({ embedding }) }
}

/** Creates a cache of the kinds of parts that each mount can return. A mount that does not answer is asked again later. */
function createPartsOf(mountAt: (address: string) => MountReader | undefined) {
  const parts = new Map<string, Promise<PartKinds>>()
  /** All callers share the answer, so the abort of one of them does not cancel the question. */
  const ask = async (mount: MountReader): Promise<PartKinds> => {
    const { signal } = new AbortController()
    const [lines, as] = await Promise.all([hasParameter(mount, 'lines', signal), hasParameter(mount, 'as', signal)])
    return { lines, as }
  }
  return async (address: string, signal: AbortSignal): Promise<PartKinds> => {
    const mount = mountAt(address)
    if (mount === undefined) return { lines: false, as: false }
    const answer = parts.get(address) ?? ask(mount)
    parts.set(address, answer)
    answer.catch(() => parts.delete(address))
    const waiting = followAbortFor(signal, sourceTimeoutMs)
    return untilAborted(answer, waiting.signal)
      .catch(() => ({ lines: true, as: true }))
      .finally(waiting.release)
  }
}

function onceEach<T>(ask: (name: string) => Promise<T>): (name: string) => Promise<T> {
  const answers = new Map<string, Promise<T>>()
  return (name) => {
    const answer = answers.get(name) ?? ask(name)
    answers.set(name, answer)
    return answer
  }
}

/** Returns the progress of an index, as a principal may see it: numbers only of mounts that the principal sees completely. */
function statusFor(
  principal: Principal,
  mounts: ReadonlyMap<string, MountReader>,
  status: FeedStatus | undefined,
): SearchStatus {
  const progress = new Map(status?.mounts.map((mount) => [mount.address, mount]))
  return {
    indexing: status === undefined ? 'stopped' : 'running',
    mounts: [...mounts.values()].flatMap((mount) => {
      const reach = mount.reach(principal)
      return reach === 'none' ? [] : [mountStatus(mount, progress.get(mount.address), reach === 'all')]
    }),
  }
}

function mountStatus(
  { address, title }: MountReader,
  progress: MountProgress | undefined,
  whole: boolean,
): SearchStatusMount {
  const mountFacts = { address, ...defined({ title }) }
  if (progress === undefined) return { ...mountFacts, state: 'waiting' }
  const { state, since, looked, of, indexed, changes, degraded, partial, firstPages, pending, asOf } = progress
  return {
    ...mountFacts,
    state,
    ...(whole
      ? {
          since: new Date(since).toISOString(),
          looked,
          ...defined({ of }),
          indexed,
          ...defined({ partial, firstPages, pending }),
          ...(asOf === undefined ? {} : { asOf: new Date(asOf).toISOString() }),
        }
      : {}),
    changes,
    ...defined({ degraded }),
  }
}

function notesOf({ indexing, mounts }: SearchStatus, addresses: readonly string[] | undefined): readonly string[] {
  const notes = mounts.flatMap((mount) => {
    const { address, state } = mount
    if (addresses !== undefined && !addresses.includes(address)) return []
    if (state === 'unavailable') return [`${address} does not answer now: its hits may be out of date.`]
    const limits = limitsOf(mount)
    return state === 'current' ? limits : [...limits, `${address} is still being indexed: there may be more to find.`]
  })
  if (indexing === 'running') return notes
  const partialNotes = mounts.flatMap((mount) => (addresses?.includes(mount.address) === false ? [] : limitsOf(mount)))
  return mounts.length === 0 ? [] : [...partialNotes, idleNote]
}

function limitsOf({ address, partial, firstPages }: SearchStatusMount): readonly string[] {
  const tables = (count: number) => (count === 1 ? 'one table' : `${count.toLocaleString('en')} tables`)
  const notes: string[] = []
  const { entries, limit, texts, maxBytes, scans, waitingScans: waiting = 0 } = partial ?? {}
  if (entries !== undefined && limit !== undefined)
    notes.push(`Of ${tables(entries)} of ${address}, only the first ${limit.toLocaleString('en')} rows are searched.`)
  if (texts !== undefined && maxBytes !== undefined) {
    const long = texts === 1 ? 'one long text' : `${texts.toLocaleString('en')} long texts`
    notes.push(
      `Of ${long} of ${address}, only the beginning is searched (of logs the end), at most ${maxBytes.toLocaleString('en')} bytes of each.`,
    )
  }
  if (scans !== undefined) {
    const pages = scans === 1 ? 'One document' : `${scans.toLocaleString('en')} documents`
    const until =
      waiting === 0 ? '' : ` OCR will read ${waiting === scans ? '' : `${waiting.toLocaleString('en')} of `}them.`
    notes.push(
      `${pages} of ${address} ${scans === 1 ? 'has' : 'have'} pages that hold only pictures or unreadable text, which are not searched.${until}`,
    )
  }
  if (firstPages !== undefined)
    notes.push(`Of ${tables(firstPages)} of ${address} without a key, only the first page of rows is searched.`)
  return notes
}

const statusEntry = {
  path: searchStatusPath,
  title: 'Status of the search',
  description: 'The searched mounts, and the progress of their index.',
  mimeType: searchStatusMimeType,
}
