import { isResourceError, unavailable } from '../core/errors.ts'
import { followAbort, sleep, withResolvers } from '../core/kit/abort.ts'
import { defined } from '../core/kit/object.ts'
import type { Change, Degradation, Entry, Provider } from '../core/provider.ts'

export interface PolledOptions {
  /** Interval from the end of one poll to the beginning of the next, in milliseconds. Default 30,000. It varies by up to a fifth. */
  readonly intervalMs?: number
  /** Maximum interval while the source does not answer, in milliseconds. Default ten intervals. */
  readonly maxIntervalMs?: number
  /** Maximum number of compared entries. A poll of a source with more is `unavailable`. Default 100,000. */
  readonly limit?: number
  /** Yields the entries to compare. Default: all listed entries. */
  readonly look?: (signal: AbortSignal) => AsyncIterable<Entry>
}

const principal = { id: 'hikidashi-poll', roles: [] }

/**
 * Adds `watch` to a source without it, by polling: it lists the source periodically, and compares the version of each entry, or else its
 * size, time and title. While the source does not answer, the interval doubles each time. A provider with `watch` is returned unchanged.
 */
export function polled(provider: Provider, options: PolledOptions = {}): Provider {
  if (provider.watch !== undefined) return provider
  const { intervalMs = 30_000, maxIntervalMs, limit = 100_000 } = options
  const entries = options.look ?? ((signal: AbortSignal) => provider.list({}, { principal, signal }))

  const look = async (signal: AbortSignal): Promise<Map<string, string>> => {
    const texts = new Map<string, string>()
    for await (const entry of entries(signal)) {
      signal.throwIfAborted()
      if (texts.size >= limit)
        throw unavailable(
          `The source has more than ${limit} entries, too many to compare. Remove "poll", or serve fewer.`,
        )
      texts.set(entry.path, entryStamp(entry))
    }
    return texts
  }

  const looking = createPoller({ intervalMs, ...defined({ maxIntervalMs }), look, changesOf: diffStamps })
  return {
    ...provider,
    watch: looking.watch,
    catchUp: looking.catchUp,
    listsChanges: () => options.look === undefined,
    lookedAt: () => looking.lookedAt,
    degraded: (): Degradation | undefined => (looking.away ? 'unavailable' : provider.degraded?.()),
  }
}

function entryStamp({ version, size, modified, title }: Entry): string {
  return version ?? `${size} ${modified} ${title}`
}

function* diffStamps(before: ReadonlyMap<string, string>, now: ReadonlyMap<string, string>): Generator<Change> {
  for (const [path, stamp] of now) {
    const earlier = before.get(path)
    if (earlier === undefined) yield { path, listed: true }
    else if (earlier !== stamp) yield { path }
  }
  for (const path of before.keys()) if (!now.has(path)) yield { path, listed: true }
}

interface PollerOptions<T> {
  /** Pause between two polls, in milliseconds. It varies by up to a fifth. */
  readonly intervalMs: number
  /** Longest pause while the source does not answer, in milliseconds. Default ten intervals. */
  readonly maxIntervalMs?: number
  /** Waits for a pause, or less if something hints at a change. Default: the whole pause. */
  readonly wait?: (ms: number, signal: AbortSignal) => Promise<void>
  /** Throws ResourceError if the source does not answer: the pauses then become longer. */
  look(signal: AbortSignal, before: T | undefined): Promise<T>
  changesOf(before: T, now: T): Iterable<Change>
}

export interface Poller {
  watch(signal: AbortSignal): Promise<AsyncIterable<Change>>
  /** Polls now ({@link Provider.catchUp}). Calls during a poll share the next one. */
  catchUp(): Promise<boolean>
  /** The beginning of the last poll that the source answered, in milliseconds since 1970. */
  readonly lookedAt: number | undefined
  /** Whether the source did not answer the last poll. */
  readonly away: boolean
}

export function createPoller<T>(options: PollerOptions<T>): Poller {
  const { intervalMs, maxIntervalMs = intervalMs * 10, wait = sleep, look, changesOf } = options
  let away = false
  let lookedAt: number | undefined
  let isWatching = false
  const createQuestion = () => withResolvers<boolean>()
  /** Calls that wait for the next poll. */
  let next = createQuestion()
  let isAsked = false
  let hurry = () => {}

  const takeQuestion = () => {
    const question = next
    next = createQuestion()
    isAsked = false
    // A rejection that no caller waits for must not end the process.
    question.promise.catch(() => {})
    return question
  }

  const follow = async function* (first: T, signal: AbortSignal): AsyncGenerator<Change> {
    let previous = first
    let pauseMs = intervalMs
    while (!signal.aborted) {
      const pause = followAbort(signal)
      hurry = pause.abort
      // The random part spreads the polls of replicas that started at the same time.
      if (!isAsked) await wait(pauseMs * (0.8 + Math.random() * 0.4), pause.signal)
      pause.release()
      if (signal.aborted) return
      const question = takeQuestion()
      const start = Date.now()
      try {
        const now = await look(signal, previous)
        yield* changesOf(previous, now)
        previous = now
        lookedAt = start
        pauseMs = intervalMs
        away = false
        question.resolve(true)
      } catch (error) {
        question.reject(unavailable('The source does not answer.', {}, error))
        if (signal.aborted) return
        if (!isResourceError(error)) throw error
        away = true
        pauseMs = Math.min(pauseMs * 2, maxIntervalMs)
      }
    }
  }

  const followUntilOver = async function* (first: T, signal: AbortSignal): AsyncGenerator<Change> {
    isWatching = true
    try {
      yield* follow(first, signal)
    } finally {
      isWatching = false
      takeQuestion().resolve(false)
    }
  }

  return {
    watch: async (signal) => {
      const start = Date.now()
      const first = await look(signal, undefined)
      lookedAt = start
      away = false
      return followUntilOver(first, signal)
    },
    catchUp: async () => {
      if (!isWatching) return false
      isAsked = true
      hurry()
      return next.promise
    },
    get lookedAt() {
      return lookedAt
    },
    get away() {
      return away
    },
  }
}
