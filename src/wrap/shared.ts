import { createAutoResetEvent, followAbort, sleep, untilAborted } from '../core/kit/abort.ts'
import { doneOnce } from '../core/kit/once.ts'
import type { Change, Provider } from '../core/provider.ts'
import type { SharedChanges, SharedLease } from '../core/shared.ts'

interface SharedOptions {
  readonly changes: SharedChanges
  /** The name of the source at every replica: its address. */
  readonly source: string
  /** Whether its watch polls the source. Then one replica at a time watches it, and notifies the others. */
  readonly isPolled: boolean
}

/** Interval at which a replica that does not watch a polled source tries to take it over, in milliseconds. */
const takeOverIntervalMs = 2000

/**
 * Shares the changes of a source among replicas: each replica reports the changes that any of them sees. One replica at a time, the one
 * with the lease, polls a source that must be polled. If that replica dies, another one takes over, and everything counts as changed. While
 * the database of the replicas does not answer, each of them polls. A source that caches copies ({@link Provider.renew}) drops them before
 * it answers if another replica has notified of a change.
 */
export function shared(provider: Provider, options: SharedOptions): Provider {
  const { changes, source } = options
  const { watch, renew } = provider
  const current = renew === undefined ? provider : alwaysCurrent(provider, renew, options)
  if (watch === undefined) return current
  // Another replica may watch the source, so this one cannot tell what has been polled.
  const { catchUp: _, lookedAt: __, ...rest } = current
  return {
    ...rest,
    watch: async (signal) => {
      const queue = createQueue()
      const endController = new AbortController()
      const end = () => endController.abort()
      signal.addEventListener('abort', end, { once: true })
      if (signal.aborted) end()
      endController.signal.addEventListener('abort', queue.end, { once: true })
      const stopFollowing = await changes.follow(source, queue.add)
      if (endController.signal.aborted) stopFollowing()
      else endController.signal.addEventListener('abort', stopFollowing, { once: true })
      try {
        const begin = options.isPolled ? watchInTurn : watchAlways
        const { ended: over } = await begin(watch, {
          ...options,
          queue,
          signal: endController.signal,
          isCopied: renew !== undefined,
        })
        over.then(queue.end, queue.fail)
        return queue.take(async () => {
          end()
          await over.catch(() => {})
        })
      } catch (error) {
        end()
        throw error
      }
    },
    degraded: () => current.degraded?.() ?? (changes.behind ? 'lost' : undefined),
  }
}

type Watch = NonNullable<Provider['watch']>

interface Watching extends SharedOptions {
  readonly isCopied: boolean
  readonly queue: ReturnType<typeof createQueue>
  readonly signal: AbortSignal
}

/** Watches the source, and notifies the other replicas. Resolves when the watch has begun. */
async function watchAlways(watch: Watch, watching: Watching) {
  const { changes, source, queue, signal, isCopied } = watching
  const own = await watch(signal)
  let ownChanges: Change[] = []
  let telling = Promise.resolve()
  const tell = async (): Promise<void> => {
    const some = ownChanges
    ownChanges = []
    const published = changes.publish(source, some)
    // A client that this replica notifies may read at another replica, which must drop its copies first.
    if (isCopied) await published
    queue.add(some)
  }
  const follow = async (): Promise<void> => {
    for await (const change of own) {
      if (ownChanges.push(change) === 1) telling = telling.then(tell)
    }
    await telling
  }
  return { ended: follow() }
}

/** Watches the source while this replica has the lease, or while the store cannot give one. Resolves when the watch has begun. */
async function watchInTurn(watch: Watch, watching: Watching) {
  const { changes, source, queue, signal } = watching
  let lease: SharedLease | undefined
  let own: AbortController | undefined
  const take = (): Promise<SharedLease | 'taken' | 'unknown'> =>
    changes.lease(source).then(
      (lease) => lease ?? 'taken',
      () => 'unknown',
    )
  const begin = async (): Promise<void> => {
    const run = new AbortController()
    const stop = () => run.abort()
    signal.addEventListener('abort', stop, { once: true })
    own = run
    const { ended } = await watchAlways(watch, { ...watching, signal: run.signal })
    ended
      .then(() => run.signal.aborted || queue.end(), queue.fail)
      .finally(() => signal.removeEventListener('abort', stop))
    // The source may have changed before this watch began: for the other replicas everything counts as changed.
    void changes.publish(source, [{}])
  }
  const end = async (): Promise<void> => {
    own?.abort()
    own = undefined
    await lease?.release().catch(() => {})
    lease = undefined
  }
  const turn = async (isFirst: boolean): Promise<() => Promise<void>> => {
    const answer = await take()
    if (answer === 'taken') {
      await end()
      return () => sleep(takeOverIntervalMs, signal)
    }
    const sharedLease = answer === 'unknown' ? undefined : answer
    lease = sharedLease
    if (own === undefined) {
      await begin()
      if (!isFirst) queue.add([{}])
    }
    return sharedLease === undefined
      ? () => sleep(takeOverIntervalMs, signal)
      : () => untilOver(sharedLease.signal, signal)
  }
  const goOn = async (first: () => Promise<void>): Promise<void> => {
    try {
      for (let wait = first; ; wait = await turn(false)) {
        await wait()
        if (signal.aborted) return
      }
    } finally {
      await end()
    }
  }
  try {
    return { ended: goOn(await turn(true)) }
  } catch (error) {
    await end()
    throw error
  }
}

async function untilOver(one: AbortSignal, other: AbortSignal): Promise<void> {
  const either = followAbort(one, other)
  await untilAborted(new Promise<void>(() => {}), either.signal).catch(() => {})
  either.release()
}

/** Maximum number of waiting changes. Beyond it, everything counts as changed. */
const maxWaiting = 10_000

function createQueue() {
  let waiting: Change[] = []
  let hasEnded = false
  let failure: { readonly error: unknown } | undefined
  const event = createAutoResetEvent()

  return {
    add: (changes: readonly Change[]): void => {
      if (waiting.length + changes.length > maxWaiting) waiting = [{}]
      else waiting.push(...changes)
      event.set()
    },
    end: (): void => {
      hasEnded = true
      event.set()
    },
    fail: (error: unknown): void => {
      failure ??= { error }
      event.set()
    },
    /** Yields the added changes. Calls `over` at the end, or when the reader leaves. */
    take: async function* (over: () => Promise<void>): AsyncGenerator<Change> {
      try {
        for (;;) {
          const some = waiting
          waiting = []
          yield* some
          if (failure !== undefined) throw failure.error
          if (hasEnded) return
          if (waiting.length === 0) await event.wait()
        }
      } finally {
        await over()
      }
    },
  }
}

function alwaysCurrent(provider: Provider, renew: () => void, { changes, source }: SharedOptions): Provider {
  const follow = doneOnce(() => changes.follow(source, renew))
  const catchUp = async (): Promise<void> => {
    try {
      await follow()
      await changes.catchUp()
    } catch {
      renew()
    }
  }
  const { stat, complete } = provider
  return {
    ...provider,
    list: async function* (query, context) {
      await catchUp()
      yield* provider.list(query, context)
    },
    read: (request, context) => catchUp().then(() => provider.read(request, context)),
    ...(stat && { stat: (path, context) => catchUp().then(() => stat(path, context)) }),
    ...(complete && { complete: (request, context) => catchUp().then(() => complete(request, context)) }),
    close: async () => {
      const stop = await follow.begun()?.catch(() => undefined)
      stop?.()
      await provider.close?.()
    },
  }
}
