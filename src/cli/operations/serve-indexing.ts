import { searchesOf } from '../../config/searches.ts'
import type { Catalog } from '../../core/catalog.ts'
import { sleep } from '../../core/kit/abort.ts'
import type { Log } from '../../core/log.ts'
import type { MountProgress, Search } from '../../providers/search/index.ts'
import type { Io } from '../terminal/io.ts'
import { createProgress, type ProgressOptions } from '../terminal/progress.ts'
import { isDone, progressOf } from './indexing.ts'

/** Interval at which the progress of the indexes is checked, in milliseconds. */
const lookIntervalMs = 250
/** Minimum duration of indexing that is reported, in milliseconds. */
const minToldMs = 1000

export interface ServeIndexingOptions extends Pick<ProgressOptions, 'line' | 'now' | 'env'> {
  readonly io: Pick<Io, 'saysToTerminal' | 'out'>
  readonly log: Log
  /** Whether the log is for programs: then each line is an event of the log, on a terminal too. */
  readonly isStructured: boolean
  readonly signal: AbortSignal
}

/**
 * Reports the progress of the first indexing until it is done: on a terminal in its last line, elsewhere as a log event every few
 * seconds. Durations below a second are not reported. Resolves when it is done, or when the signal aborts.
 */
export async function tellIndexing(catalog: Pick<Catalog, 'mounts'>, options: ServeIndexingOptions): Promise<void> {
  const { io, log, isStructured, signal, now = Date.now, ...rest } = options
  const searches = searchesOf(catalog)
  if (searches.length === 0) return
  const begun = now()
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
      const mounts = await mountsOf(searches.map(({ provider }) => provider))
      // The fault of a search that cannot be opened is reported elsewhere.
      if (mounts === undefined) return
      const { done, total } = progressOf(mounts)
      if (mounts.length > 0 && mounts.every(isDone)) {
        progress.end()
        const seconds = Math.round((now() - begun) / 1000)
        if (now() - begun >= minToldMs) log('info', 'everything is indexed', { documents: done, seconds })
        return
      }
      progress.set({ done, total })
      await sleep(lookIntervalMs, signal)
    }
  } finally {
    progress.end()
  }
}

/** The progress of all mounts, each once. `undefined`: a search cannot be opened. */
async function mountsOf(searches: readonly Search[]): Promise<readonly MountProgress[] | undefined> {
  try {
    const found = await Promise.all(searches.map((search) => search.feedStatus()))
    return [...new Map(found.flatMap((status) => status?.mounts ?? []).map((mount) => [mount.address, mount])).values()]
  } catch {
    return undefined
  }
}
