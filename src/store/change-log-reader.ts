import { sleep } from '../core/kit/abort.ts'
import type { Log } from '../core/log.ts'
import type { Change, ChangedKind } from '../core/provider.ts'
import type { Collection, Row } from './store.ts'

export interface ReaderOptions {
  readonly rows: Collection
  /** The name of this process: rows whose keys begin with it are its own, and are not told. */
  readonly origin: string
  /** How long a row is kept, in milliseconds. */
  readonly keepMs: number
  readonly log: Log
  readonly signal: AbortSignal
  readonly tell: (source: string, changes: readonly Change[]) => void
  /** Tells of every source that everything may have changed. */
  readonly tellAll: () => void
}

/** Reads the log of changes from where it was. */
export interface Reader {
  /** Reads what is new. A call during a read shares the next one. Rejects while the store does not answer. */
  read(): Promise<void>
  /** Reads until that succeeds. */
  readUntilDone(signal: AbortSignal): Promise<void>
  /** Whether the last read failed. */
  readonly behind: boolean
}

/** Maximum number of rows that are read to catch up. Beyond it, everything counts as changed. */
const maxRows = 5000
/** Number of rows of the first query. Each later one asks for four times as many, up to the most. */
const firstRows = 4
const mostRows = 500
/** The first and the longest pause after a failure, in milliseconds (backoff). */
const retryMs = { first: 100, longest: 2000 }

export function createReader({ rows, origin, keepMs, log, signal: closing, tell, tellAll }: ReaderOptions): Reader {
  /** The newest revision that was read, and when it was. Undefined until the log has been read for the first time. */
  let last: { readonly revision: number; readonly seenAt: number } | undefined
  let readAt = Number.NEGATIVE_INFINITY
  let behind = false

  /** Reads the rows after a revision, oldest first. Undefined where not all of them are there. */
  const rowsAfter = async (after: { readonly revision: number; readonly seenAt: number }) => {
    const found: Row[] = []
    for (let limit: number = firstRows; ; limit = Math.min(limit * 4, mostRows)) {
      const oldest = found.at(-1)
      const page = await rows.list({
        newest: true,
        limit,
        values: true,
        ...(oldest === undefined ? {} : { before: oldest.revision }),
      })
      const known = page.findIndex(({ revision }) => revision <= after.revision)
      found.push(...(known < 0 ? page : page.slice(0, known)))
      // The last row may have been evicted because of its age, and for no other reason: else the table has lost rows.
      const isEvicted = performance.now() - after.seenAt > keepMs / 2
      if (known >= 0) return page[known]?.revision === after.revision || isEvicted ? found.reverse() : undefined
      if (page.length < limit) return after.revision === 0 || isEvicted ? found.reverse() : undefined
      if (found.length > maxRows) return undefined
    }
  }

  const newestRevision = async () => (await rows.list({ newest: true, limit: 1 }))[0]?.revision ?? 0

  const read = async (): Promise<void> => {
    const now = performance.now()
    if (last === undefined) {
      last = { revision: await newestRevision(), seenAt: performance.now() }
      // Those who have followed from before do not know the changes until now.
      if (behind) tellAll()
    } else {
      const newer = await rowsAfter(last)
      if (newer === undefined || now - readAt > keepMs / 2) {
        last = { revision: await newestRevision(), seenAt: performance.now() }
        tellAll()
      } else {
        const newest = newer.at(-1)
        if (newest !== undefined) last = { revision: newest.revision, seenAt: performance.now() }
        for (const row of newer)
          if (!row.key.startsWith(origin)) for (const [source, changes] of changesIn(row.value)) tell(source, changes)
      }
    }
    readAt = now
    if (behind) log('info', 'the changes of the other replicas are read again')
    behind = false
  }

  /** The read that runs, and the one that begins after it: it covers all who ask until then. */
  let running: Promise<void> | undefined
  let next: Promise<void> | undefined
  const readOnce = (): Promise<void> => {
    if (running !== undefined) {
      next ??= running
        .catch(() => {})
        .then(() => {
          next = undefined
          return readOnce()
        })
      return next
    }
    running = read()
      .catch((error: unknown) => {
        if (!behind && !closing.aborted)
          log('warn', 'the changes of the other replicas cannot be read just now', { error })
        behind = true
        throw error
      })
      .finally(() => {
        running = undefined
      })
    return running
  }

  /** Reads until it succeeds. */
  const readUntilDone = async (signal: AbortSignal): Promise<void> => {
    for (let wait: number = retryMs.first; !signal.aborted; wait = Math.min(wait * 2, retryMs.longest)) {
      try {
        return await readOnce()
      } catch {
        await sleep(wait * (0.5 + Math.random()), signal)
      }
    }
  }

  return {
    read: readOnce,
    readUntilDone,
    get behind() {
      return behind
    },
  }
}

/** Maximum number of changes of one source in one row. Beyond it, the row says that everything of the source may have changed. */
const maxChanges = 10_000

/** The changes of sources, as the value of a row: JSON of `{ source: [change, …] }`. */
export function rowValueOf(changes: ReadonlyMap<string, readonly Change[]>): Uint8Array {
  const entries = Array.from(changes, ([source, some]) => [source, some.length > maxChanges ? [{}] : some] as const)
  return Buffer.from(JSON.stringify(Object.fromEntries(entries)))
}

/** Parses the value of a row. A newer version may write members that this one does not know: they are left out. */
function* changesIn(value: Uint8Array): Generator<readonly [source: string, changes: readonly Change[]]> {
  const parsed = parse(value)
  if (typeof parsed !== 'object' || parsed === null) return
  for (const [source, changes] of Object.entries(parsed))
    if (Array.isArray(changes)) yield [source, changes.map(changeOf)]
}

/** A change that cannot be understood counts as one of everything. */
function changeOf(value: unknown): Change {
  if (typeof value !== 'object' || value === null) return {}
  const { path, listed, of, aliases } = value as Readonly<Record<string, unknown>>
  if (path !== undefined && typeof path !== 'string') return {}
  if (of !== undefined && !isKind(of)) return {}
  return {
    ...(path === undefined ? {} : { path }),
    ...(listed === true ? { listed } : {}),
    ...(of === undefined ? {} : { of }),
    ...(Array.isArray(aliases) ? { aliases: aliases.map(String) } : {}),
  }
}

function isKind(value: unknown): value is ChangedKind {
  return value === 'prompts' || value === 'tools'
}

function parse(value: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(value).toString())
  } catch {
    return undefined
  }
}
