import { sleep } from '../core/kit/abort.ts'
import { defined, jsonIn } from '../core/kit/object.ts'
import type { Log } from '../core/log.ts'
import type { Change, ChangedKind } from '../core/provider.ts'
import type { Collection, Row } from './store.ts'

export interface ReaderOptions {
  readonly rows: Collection
  /** The name of this process: rows whose keys begin with it are its own, and are skipped. */
  readonly origin: string
  /** How long a row is kept, in milliseconds. */
  readonly keepMs: number
  readonly log: Log
  readonly signal: AbortSignal
  readonly tell: (source: string, changes: readonly Change[]) => void
  /** Notifies, for every source, that everything may have changed. */
  readonly tellAll: () => void
}

/** Maximum number of rows that are read to catch up. Beyond it, everything counts as changed. */
const maxRows = 5000
/** Number of rows of the first query. Each later query asks for four times as many. */
const firstRows = 4
const mostRows = 500
/** The first and the longest pause after a failure, in milliseconds (backoff). */
const retryMs = { first: 100, longest: 2000 }

/** Repeats work with pauses until it succeeds, or the signal aborts. */
export async function retryUntilDone(work: () => Promise<unknown>, signal: AbortSignal): Promise<void> {
  for (let wait: number = retryMs.first; !signal.aborted; wait = Math.min(wait * 2, retryMs.longest)) {
    try {
      await work()
      return
    } catch {
      await sleep(wait * (0.5 + Math.random()), signal)
    }
  }
}

/** Creates a reader of the log of changes. The first read finds the newest row; each later one tells the changes since the last read. */
export function createChangeLogReader({ rows, origin, keepMs, log, signal: closing, tell, tellAll }: ReaderOptions) {
  /** The newest revision that was read, and the time of the read. Undefined before the first read. */
  let last: { readonly revision: number; readonly seenAt: number } | undefined
  let readAt = Number.NEGATIVE_INFINITY
  let behind = false

  /** Reads the rows after a revision, oldest first. Undefined if some of them are missing, or there are too many. */
  const rowsAfter = async (after: { readonly revision: number; readonly seenAt: number }) => {
    const newRows: Row[] = []
    for (let limit: number = firstRows; ; limit = Math.min(limit * 4, mostRows)) {
      const oldest = newRows.at(-1)
      const page = await rows.list({
        newest: true,
        limit,
        values: true,
        ...(oldest === undefined ? {} : { before: oldest.revision }),
      })
      const index = page.findIndex(({ revision }) => revision <= after.revision)
      newRows.push(...(index < 0 ? page : page.slice(0, index)))
      // Rows are removed after a time, so the last read row may be missing for its age alone.
      const isEvicted = performance.now() - after.seenAt > keepMs / 2
      if (index >= 0) return page[index]?.revision === after.revision || isEvicted ? newRows.reverse() : undefined
      if (page.length < limit) return after.revision === 0 || isEvicted ? newRows.reverse() : undefined
      if (newRows.length > maxRows) return undefined
    }
  }

  const newestRevision = async () => (await rows.list({ newest: true, limit: 1 }))[0]?.revision ?? 0

  const readChanges = async (): Promise<void> => {
    const now = performance.now()
    if (last === undefined) {
      last = { revision: await newestRevision(), seenAt: performance.now() }
      // An earlier read failed, so followers may have missed changes.
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
    running = readChanges()
      .catch((error: unknown) => {
        if (!behind && !closing.aborted) log('warn', 'the changes of the other replicas cannot be read now', { error })
        behind = true
        throw error
      })
      .finally(() => {
        running = undefined
      })
    return running
  }

  return {
    /** Reads new rows. A call during a read shares the next read. Rejects while the store does not answer. */
    read: readOnce,
    get behind() {
      return behind
    },
  }
}

/** Maximum number of changes of one source in one row. Beyond it, everything of the source counts as changed. */
const maxChanges = 10_000

/** The changes of sources, as the value of a row: JSON of `{ source: [change, …] }`. */
export function rowValueOf(changes: ReadonlyMap<string, readonly Change[]>): Uint8Array {
  const entries = Array.from(changes, ([source, some]) => [source, some.length > maxChanges ? [{}] : some] as const)
  return Buffer.from(JSON.stringify(Object.fromEntries(entries)))
}

/** Parses the value of a row. Unknown members of a newer version are ignored. */
function* changesIn(value: Uint8Array): Generator<readonly [source: string, changes: readonly Change[]]> {
  const json = jsonIn(Buffer.from(value).toString())
  if (typeof json !== 'object' || json === null) return
  for (const [source, changes] of Object.entries(json))
    if (Array.isArray(changes)) yield [source, changes.map(changeOf)]
}

/** An invalid change counts as "everything". */
function changeOf(value: unknown): Change {
  if (typeof value !== 'object' || value === null) return {}
  const { path, listed, of, aliases } = value as Readonly<Record<string, unknown>>
  if (path !== undefined && typeof path !== 'string') return {}
  if (of !== undefined && !isKind(of)) return {}
  return {
    ...defined({ path, of }),
    ...(listed === true ? { listed } : {}),
    ...(Array.isArray(aliases) ? { aliases: aliases.map(String) } : {}),
  }
}

function isKind(value: unknown): value is ChangedKind {
  return value === 'prompts' || value === 'tools'
}
