import { type ErrorKind, isResourceError, unavailable } from '../core/errors.ts'
import { followAbort, untilAborted } from '../core/kit/abort.ts'
import { createGroupedIterable, iterateGroups } from '../core/kit/groups.ts'
import { requireProvider } from '../core/kit/object.ts'
import type { Log } from '../core/log.ts'
import type { Content, Context, Entry, ListQuery, Provider, ReadRequest } from '../core/provider.ts'
import { createBreaker, createSemaphore } from './slots.ts'

export interface LimitedOptions {
  /** Time-out of one answer, one group of entries of a list or one chunk of a stream, in milliseconds. Default 30,000. */
  readonly timeoutMs?: number
  /** Maximum number of concurrent requests. Default 32. */
  readonly concurrent?: number
  /** Maximum number of further requests that wait. Default 256. */
  readonly waiting?: number
  /** Number of failures in a row that opens the circuit breaker. Default 5. */
  readonly failures?: number
  /** First pause of the circuit breaker, in milliseconds. Default 1,000. */
  readonly pauseMs?: number
  /** Default 60,000. */
  readonly maxPauseMs?: number
  readonly log?: Log
  readonly observe?: (outcome: SourceOutcome) => void
}

/** How a request ended: with an answer, with an error of this kind, or in another way (`ended`), such as an abort by the caller. */
export type SourceOutcome = 'ok' | ErrorKind | 'ended'

const defaults = { timeoutMs: 30_000, concurrent: 32, waiting: 256, failures: 5, pauseMs: 1000, maxPauseMs: 60_000 }

/**
 * Limits requests to a source by a time-out, a semaphore and a circuit breaker. After several failures in a row the breaker opens; after a
 * pause one request tries the source. A refused request is `unavailable`, and says when to retry (`retryAfter`, in seconds). Time-outs and
 * errors `unavailable` without `retryAfter` count as failures. Calls of tools have no time-out.
 */
export function limited(provider: Provider, options: LimitedOptions = {}): Provider {
  requireProvider('limited(provider, options)', provider)
  const { timeoutMs, concurrent, waiting, failures, pauseMs, maxPauseMs } = { ...defaults, ...options }
  const breaker = createBreaker({ failures, pauseMs, maxPauseMs })
  const learn = createLearner(breaker, options)
  const { takeSlot, enter } = createAdmission(createSemaphore(concurrent, waiting), breaker, timeoutMs, pauseMs)

  const ask = async <T>(
    context: Context,
    work: (context: Context) => Promise<T>,
    continued?: (answer: T, release: () => void) => T | undefined,
  ): Promise<T> => {
    const leave = await enter(context)
    const own = followAbort(context.signal)
    const timer = setTimeout(
      () => own.abort(unavailable(`The source did not answer within ${timeoutMs} ms. Try again later.`)),
      timeoutMs,
    )
    let streaming: T | undefined
    try {
      // The signal may have aborted just as a slot became free.
      own.signal.throwIfAborted()
      const answer = await untilAborted(work({ ...context, signal: own.signal }), own.signal)
      learn(undefined)
      streaming = continued?.(answer, own.release)
      return streaming ?? answer
    } catch (error) {
      learn(error)
      throw error
    } finally {
      clearTimeout(timer)
      if (streaming === undefined) own.release()
      leave()
    }
  }

  /** Like `ask`, without the time-out: a tool may run as long as its caller waits. */
  const askLong = async <T>(context: Context, work: (context: Context) => Promise<T>): Promise<T> => {
    const leave = await enter(context)
    try {
      const answer = await work(context)
      learn(undefined)
      return answer
    } catch (error) {
      learn(context.signal.aborted ? context.signal.reason : error)
      throw error
    } finally {
      leave()
    }
  }

  const readResource = async (request: ReadRequest, context: Context) =>
    ask(
      context,
      async (inner) => provider.read(request, inner),
      (contents, release) =>
        contents.some((content) => 'stream' in content)
          ? contents.map((content) => timedStream(content, timeoutMs, release))
          : undefined,
    )

  /** A listing holds a slot while the source works on a group of entries, not while the caller uses it. */
  const groups = async function* (query: ListQuery, context: Context): AsyncGenerator<readonly Entry[], void> {
    const own = followAbort(context.signal)
    const { signal } = own
    const entries = iterateGroups(provider.list(query, { ...context, signal }))
    const watch = createStopwatch(timeoutMs, own)
    let isKnown = false
    let isWaiting = true
    let isDone = false
    try {
      for (;;) {
        isWaiting = true
        const leave = await (isKnown ? takeSlot(own) : enter(own))
        isWaiting = false
        let next: IteratorResult<readonly Entry[], void>
        try {
          next = await watch.time(() => entries.next())
        } finally {
          leave()
        }
        if (!isKnown) learn(undefined)
        isKnown = true
        isDone = next.done === true
        if (next.done) return
        yield next.value
      }
    } catch (error) {
      // A refused request has not reached the source.
      if (!isWaiting) learn(error)
      throw error
    } finally {
      watch.stop()
      own.release()
      // Do not wait for a source that hangs.
      if (!isDone) void Promise.resolve(entries.return?.()).catch(() => {})
    }
  }

  return {
    ...provider,
    list: (query, context) => createGroupedIterable(() => groups(query, context), context.signal),
    read: readResource,
    ...limitedVerbs(provider, ask, askLong),
    failing: learn.failing,
    degraded: () => (breaker.open ? 'unavailable' : provider.degraded?.()),
  }
}

type Caller = Pick<Context, 'signal'>

function createAdmission(
  slots: ReturnType<typeof createSemaphore>,
  breaker: ReturnType<typeof createBreaker>,
  timeoutMs: number,
  pauseMs: number,
) {
  const takeSlot = async (caller: Caller): Promise<() => void> =>
    slots.take() ??
    slots.wait(caller.signal, timeoutMs, () =>
      retryLaterError('Too many requests wait for this source. Try again later.', pauseMs),
    )

  const requireAnswering = (leave: () => void): (() => void) => {
    const waitMs = breaker.admit()
    if (waitMs <= 0) return leave
    leave()
    throw retryLaterError(
      'The source failed several times in a row, so it gets no requests for a moment. Try again later.',
      waitMs,
    )
  }

  return {
    takeSlot,
    /** Returns the function that releases the slot. */
    enter: async (caller: Caller): Promise<() => void> => {
      caller.signal.throwIfAborted()
      return requireAnswering(await takeSlot(caller))
    },
  }
}

type RunWithinLimits = <T>(context: Context, work: (context: Context) => Promise<T>) => Promise<T>

function limitedVerbs(provider: Provider, ask: RunWithinLimits, askLong: RunWithinLimits): Partial<Provider> {
  const { stat, templates, complete, prompts, tools } = provider
  const completePrompt = prompts?.complete
  return {
    ...(stat && { stat: (path, context) => ask(context, (own) => stat(path, own)) }),
    ...(templates && { templates: (context) => ask(context, (own) => templates(own)) }),
    ...(complete && { complete: (request, context) => ask(context, (own) => complete(request, own)) }),
    ...(prompts && {
      prompts: {
        ...prompts,
        list: (context) => ask(context, (own) => prompts.list(own)),
        get: (request, context) => ask(context, (own) => prompts.get(request, own)),
        ...(completePrompt && { complete: (request, context) => ask(context, (own) => completePrompt(request, own)) }),
      },
    }),
    ...(tools && {
      tools: {
        list: (context) => ask(context, (own) => tools.list(own)),
        call: (request, context) => askLong(context, (own) => tools.call(request, own)),
      },
    }),
  }
}

const retryLaterError = (message: string, waitMs: number) =>
  unavailable(message, { retryAfter: Math.max(1, Math.ceil(waitMs / 1000)) })

function createLearner(breaker: ReturnType<typeof createBreaker>, options: LimitedOptions) {
  const { log = () => {}, observe = () => {} } = options
  let failing: string | undefined
  const learn = (error: unknown): void => {
    const wasOpen = breaker.open
    observe(error === undefined ? 'ok' : isResourceError(error) ? error.kind : 'ended')
    if (isResourceError(error, 'unavailable') && error.detail.retryAfter === undefined) {
      breaker.failed()
      failing = error.message
    } else if (error === undefined || (isResourceError(error) && error.kind !== 'unavailable')) {
      breaker.succeeded()
      failing = undefined
    }
    // The caller aborted, the source asked for a pause, or this process has a bug: none of them is a failure of the source.
    else breaker.abandoned()
    if (breaker.open !== wasOpen)
      log(
        'warn',
        breaker.open
          ? 'a source failed several times in a row: it gets no requests for a moment'
          : 'the source answers again',
      )
  }
  return Object.assign(learn, { failing: () => failing })
}

/** Aborts `own` if a step takes longer than `timeoutMs`. Steps share one timer, so the abort may come an eighth later. */
function createStopwatch(timeoutMs: number, own: AbortController) {
  const { signal } = own
  let start: number | undefined
  let give: (error: unknown) => void = () => {}
  const look = () => {
    if (start === undefined || performance.now() - start < timeoutMs) return
    own.abort(unavailable(`The source did not answer within ${timeoutMs} ms. Try again later.`))
  }
  const onAbort = () => give(signal.reason)
  signal.addEventListener('abort', onAbort)
  const timer = setInterval(look, Math.max(1, Math.ceil(timeoutMs / 8)))
  return {
    time: <T>(step: () => Promise<T>): Promise<T> =>
      new Promise<T>((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason)
        start = performance.now()
        give = reject
        const finish = () => {
          start = undefined
        }
        step().then(
          (value) => {
            finish()
            resolve(value)
          },
          (error: unknown) => {
            finish()
            reject(error)
          },
        )
      }),
    stop: () => {
      clearInterval(timer)
      signal.removeEventListener('abort', onAbort)
    },
  }
}

/** Returns a content whose stream fails if the source takes longer than `timeoutMs` for a chunk. */
function timedStream(content: Content, timeoutMs: number, release: () => void): Content {
  if (!('stream' in content)) return content
  const { stream } = content
  const pieces = async function* () {
    const watch = createStopwatch(timeoutMs, new AbortController())
    const reader = stream[Symbol.asyncIterator]()
    let isDone = false
    try {
      for (;;) {
        const next = await watch.time(() => reader.next())
        isDone = next.done === true
        if (next.done) return
        yield next.value
      }
    } finally {
      watch.stop()
      release()
      if (!isDone) void Promise.resolve(reader.return?.()).catch(() => {})
    }
  }
  return { ...content, stream: pieces() }
}
