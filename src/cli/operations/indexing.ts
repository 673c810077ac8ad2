import { searchesOf } from '../../config/plan.ts'
import type { Catalog } from '../../core/catalog.ts'
import { sleep } from '../../core/kit/abort.ts'
import type { Log } from '../../core/log.ts'
import type { MountProgress, Search } from '../../providers/search/index.ts'
import type { Io } from '../terminal/io.ts'
import { createProgress, type ProgressOptions } from '../terminal/progress.ts'

const intervalMs = 100
/** Time in milliseconds after which an index is searched although no process feeds it. */
const feedTimeoutMs = 20_000

/** Resolves when each mount is indexed or does not answer, or when no process has fed the index for a while. */
export async function waitForIndex(search: Search, io: Pick<Io, 'saysToTerminal' | 'say' | 'out'>): Promise<void> {
  search.feed()
  const start = performance.now()
  const progress = createProgress(io, { what: 'Waiting for the index', besideOutput: true, writeLine: io.say })
  try {
    for (;;) {
      const now = await search.feedStatus()
      if (now?.mounts.every(isDone)) return
      if (now === undefined && performance.now() - start > feedTimeoutMs) return
      if (now !== undefined) progress.set(progressOf(now.mounts))
      await new Promise((resolve) => setTimeout(resolve, intervalMs))
    }
  } finally {
    progress.end()
  }
}

function isDone({ state }: MountProgress): boolean {
  return state === 'current' || state === 'unavailable'
}

function progressOf(mounts: readonly MountProgress[]) {
  const comparedCount = mounts.reduce((sum, mount) => sum + mount.looked, 0)
  const isCounted = mounts.every((mount) => mount.of !== undefined || isDone(mount))
  const total = mounts.reduce((sum, mount) => sum + (mount.of ?? mount.looked), 0)
  return { done: comparedCount, total: isCounted ? total : undefined, what: 'documents indexed' }
}

const lookIntervalMs = 250
/** Shorter indexing is not reported. In milliseconds. */
const minToldMs = 1000

export interface ServeIndexingOptions extends Pick<ProgressOptions, 'line' | 'now' | 'env'> {
  readonly io: Pick<Io, 'saysToTerminal' | 'out'>
  readonly log: Log
  /** Whether the log is for programs. Progress then goes to the log, on a terminal too. */
  readonly isStructured: boolean
  readonly signal: AbortSignal
}

/**
 * Reports the progress of the first indexing: on a terminal in its last line, elsewhere in the log. Resolves when the
 * indexing is done, when the signal aborts, or if a search cannot be opened.
 */
export async function reportIndexing(catalog: Pick<Catalog, 'mounts'>, options: ServeIndexingOptions): Promise<void> {
  const { io, log, isStructured, signal, now = Date.now, ...rest } = options
  const searches = searchesOf(catalog)
  if (searches.length === 0) return
  const start = now()
  const progress = createProgress(
    { ...io, saysToTerminal: io.saysToTerminal && !isStructured },
    {
      ...{ ...rest, now, what: 'documents indexed', done: 0 },
      besideOutput: true,
      writeLine: (text) => log('info', text),
    },
  )
  try {
    while (!signal.aborted) {
      const mounts = await readMountProgress(searches.map(({ provider }) => provider))
      if (mounts === undefined) return
      const { done, total } = progressOf(mounts)
      if (mounts.length > 0 && mounts.every(isDone)) {
        progress.end()
        const seconds = Math.round((now() - start) / 1000)
        if (now() - start >= minToldMs) log('info', 'everything is indexed', { documents: done, seconds })
        return
      }
      progress.set({ done, total })
      await sleep(lookIntervalMs, signal)
    }
  } finally {
    progress.end()
  }
}

async function readMountProgress(searches: readonly Search[]): Promise<readonly MountProgress[] | undefined> {
  try {
    const statuses = await Promise.all(searches.map((search) => search.feedStatus()))
    return [
      ...new Map(statuses.flatMap((status) => status?.mounts ?? []).map((mount) => [mount.address, mount])).values(),
    ]
  } catch {
    return undefined
  }
}
