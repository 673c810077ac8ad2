import { isResourceError } from '../core/errors.ts'
import { sleep } from '../core/kit/abort.ts'
import { defined } from '../core/kit/object.ts'
import type { Log } from '../core/log.ts'
import type { Freshness, MountIndexState, MountProgress } from '../core/tool.ts'
import { createComparer } from './feed-compare.ts'
import type { ReadingSettings } from './feed-documents.ts'
import { createFeedCounts, createGapTracker } from './feed-progress.ts'
import { createTasks } from './feed-steps.ts'
import type { SearchIndex } from './search-index.ts'

export interface MountFeedOptions extends Pick<ReadingSettings, 'mount' | 'way' | 'scrubber'> {
  readonly index: SearchIndex
  /** Maximum length of the indexed beginning of a text, in bytes. */
  readonly maxBytes: number
  /** Interval of comparisons if the source cannot report changes, in milliseconds. Default 60,000. */
  readonly intervalMs: number
  /** Maximum number of indexed parts of one entry, such as rows of a table. Default 10,000. */
  readonly maxParts: number
  /** Maximum number of pending documents. Default 50,000. */
  readonly window?: number
  readonly log: Log
}

const firstWaitMs = 500
const maxWaitMs = 60_000
const defaultWindow = 50_000

/**
 * Keeps the index of a mount equal to its source: compares the listing with the index, reads new and changed documents, and then follows
 * announced changes. Temporary failures are retried; nothing is removed from the index because a source does not answer.
 */
export function createMountFeed(options: MountFeedOptions) {
  const { mount, intervalMs, window = defaultWindow, log } = options
  const tasks = createTasks()
  const counts = createFeedCounts()
  const gaps = createGapTracker(options)
  const { compare, renewHeard, forgetFailures } = createComparer({ ...options, window, tasks, counts, gaps })
  let state: MountIndexState = 'waiting'
  let since = Date.now()
  /** Whether `run` waits for changes. */
  let isIdle = false
  /** The beginning of the last comparison of everything, in milliseconds since 1970. */
  let comparedAt: number | undefined

  const enter = (next: MountIndexState): void => {
    if (state === next) return
    state = next
    since = Date.now()
  }

  const work = async (signal: AbortSignal): Promise<void> => {
    await renewHeard(signal)
    for (let next = tasks.nextDirectory(); next !== undefined; next = tasks.nextDirectory()) {
      enter('comparing')
      const start = Date.now()
      await compare(next, signal)
      tasks.done([next])
      if (next === '') comparedAt = start
    }
    await renewHeard(signal)
  }

  const waiters = createWaiters()

  /** When the source last reported no fault of its watch, in milliseconds since 1970. */
  let heardAt = Date.now()
  const currentUntil = (): number | undefined => {
    const degraded = mount.degraded()
    if (degraded !== 'lost' && degraded !== 'unavailable') heardAt = Date.now()
    if (comparedAt === undefined) return undefined
    if (mount.watch === undefined) return comparedAt
    return mount.lookedAt() ?? heardAt
  }

  const run = async (signal: AbortSignal): Promise<void> => {
    let waitMs = firstWaitMs
    tasks.hear([{}])
    enter('comparing')
    await mount.watch?.(tasks.hear, signal).catch(() => false)
    while (!signal.aborted) {
      try {
        await work(signal)
        enter('current')
        waitMs = firstWaitMs
        isIdle = tasks.isIdle()
        if (isIdle) waiters.settle(!tasks.hasLater())
        const untilNext = mount.watch === undefined ? intervalMs : undefined
        const isDue = await tasks.wait(signal, tasks.hasLater() ? firstWaitMs * 4 : untilNext)
        isIdle = false
        if (isDue) tasks.due(mount.watch === undefined)
      } catch (error) {
        isIdle = false
        waiters.settle(false)
        if (signal.aborted) break
        const kind = isResourceError(error) ? error.kind : 'internal'
        if (state !== 'unavailable') log('warn', 'a mount cannot be indexed now', { mount: mount.address, kind, error })
        enter('unavailable')
        forgetFailures()
        tasks.putBack()
        await sleep(waitMs, signal)
        waitMs = Math.min(waitMs * 2, maxWaitMs)
      }
    }
    isIdle = false
    waiters.settle(false)
    enter('waiting')
  }

  const freshnessOf = (isCounted?: (path: string) => boolean): Freshness => {
    const facts = { state, currentUntil: currentUntil(), ...defined({ isCounted }) }
    return measureFreshness(tasks.pending(), counts.progress(), facts)
  }

  return {
    address: mount.address,
    run,
    /**
     * Returns how far the index is behind the source.
     *
     * @param isCounted Whether a path counts. By default all paths count.
     */
    freshnessOf,
    /**
     * Indexes every change that was finished before the call, as far as the source reports or lists it. Resolves to whether that succeeded.
     */
    catchUp: async (signal: AbortSignal): Promise<boolean> => {
      tasks.due(false)
      try {
        const isReported = (await mount.catchUp?.(signal)) === true
        tasks.hear(isReported ? [] : [{}])
      } catch {
        return false
      }
      if (isIdle && tasks.isIdle()) return !tasks.hasLater()
      return waiters.wait(signal)
    },
    progress: (): MountProgress => ({
      address: mount.address,
      state,
      since,
      ...counts.progress(),
      indexed: counts.indexed(),
      ...freshnessOf(),
      changes: mount.watch === undefined ? 'compared' : 'watched',
      ...defined({ degraded: mount.degraded() }),
      ...gaps.progress(),
    }),
  }
}

/** Callers that wait until the changes reported so far are indexed. */
function createWaiters() {
  const waiting: ((isDone: boolean) => void)[] = []
  return {
    settle: (isDone: boolean): void => {
      for (const resolve of waiting.splice(0)) resolve(isDone)
    },
    /** Resolves to whether the changes are indexed; to `false` when the signal aborts. */
    wait: (signal: AbortSignal): Promise<boolean> =>
      new Promise((resolve) => {
        waiting.push(resolve)
        signal.addEventListener('abort', () => resolve(false), { once: true })
      }),
  }
}

interface FreshnessFacts {
  readonly state: MountIndexState
  /** Time up to which changes are indexed if none are pending, in milliseconds since 1970. Undefined before the first comparison. */
  readonly currentUntil: number | undefined
  readonly isCounted?: (path: string) => boolean
}

function measureFreshness(
  work: readonly (readonly [path: string, since: number])[],
  { looked, of = looked }: { readonly looked: number; readonly of?: number },
  { state, currentUntil, isCounted }: FreshnessFacts,
): Freshness {
  const isDirectory = (path: string) => path === '' || path.endsWith('/')
  const pending = work.filter(([path]) => isDirectory(path) || isCounted?.(path) !== false)
  const documents = pending.filter(([path]) => !isDirectory(path)).length
  const uncompared = state === 'comparing' ? of - looked : 0
  const asOf = currentUntil && pending.reduce((least, [, since]) => Math.min(least, since), currentUntil)
  const isCountable = isCounted === undefined || state === 'current'
  return { ...(isCountable ? { pending: documents + uncompared } : {}), ...defined({ asOf }) }
}

export type MountFeed = ReturnType<typeof createMountFeed>
