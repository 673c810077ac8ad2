import {
  type ChangeSet,
  type ChangeStream,
  createChangeStreamManager,
  createListeners,
  emptyChangeSet,
  isEmptyChangeSet,
  type Listeners,
} from '../../../client/listeners.ts'
import type { WireObject } from '../../../client/wire.ts'
import { ResourceError } from '../../../core/errors.ts'
import { withResolvers } from '../../../core/kit/abort.ts'
import { objectOf } from '../../../core/kit/object.ts'
import type { Subscription, ViewChange } from '../../../core/view.ts'
import { type Endpoint, requestStream } from './request.ts'

/** A change. `missed`: the stream was interrupted, so everything may have changed. */
export interface PageChange extends ViewChange {
  readonly missed?: true
}

/**
 * State of the stream: `off`, without listeners; `opening`; `live`; `lost`, the stream broke off or was refused, and is retried;
 * `paused`, by the page.
 */
export type ChangesState = 'off' | 'opening' | 'live' | 'lost' | 'paused'

/** The subscriptions of the page over one stream, because a browser opens at most six connections to a server across all tabs. */
export interface PageSubscriptions {
  open(listener: (change: PageChange) => void): Subscription
  /** Closes the stream, as while the page is hidden. */
  pause(): void
  /** Opens the stream again. If there was one before the pause, listeners are notified with `missed`. */
  resume(): void
  retry(): void
  close(): void
}

interface ChangesOptions {
  onState?(state: ChangesState): void
  /** Delays before the retries of a lost stream, in milliseconds. The last delay repeats. */
  readonly waitsMs?: readonly number[]
  readonly joiningMs?: number
}

/** Maximum number of URIs in one subscription: the default limit of a hikidashi server. */
const maxUris = 1000
/** Number of URIs without a listener that even a small stream may keep: the visible rows change often. */
const spareUris = 50

function oneAtATime(work: () => Promise<void>, isOver: () => boolean): () => Promise<void> {
  let isRunning = false
  let isAskedAgain = false
  return async () => {
    if (isRunning) {
      isAskedAgain = true
      return
    }
    isRunning = true
    try {
      do {
        isAskedAgain = false
        await work()
      } while (isAskedAgain && !isOver())
    } finally {
      isRunning = false
    }
  }
}

/** Creates the timer of the next attempt to open the stream. `waits` are the delays of retries, in milliseconds. */
function createTimer(run: () => void, waits: readonly number[]) {
  let timer: ReturnType<typeof setTimeout> | undefined
  let failures = 0
  let isBackingOff = false
  const plan = (wait: number) => {
    clearTimeout(timer)
    timer = setTimeout(() => {
      isBackingOff = false
      run()
    }, wait)
  }
  return {
    /** Whether a retry is waiting. */
    get isBackingOff(): boolean {
      return isBackingOff
    },
    plan,
    /** Plans a retry, with a longer delay after each failure. */
    backOff: () => {
      isBackingOff = true
      failures++
      plan(waits[Math.min(failures, waits.length) - 1] ?? 4000)
    },
    reset: () => {
      failures = 0
    },
    cancel: () => clearTimeout(timer),
  }
}

function throwLater(error: unknown): void {
  queueMicrotask(() => {
    throw error
  })
}

export function createPageSubscriptions(endpoint: Endpoint, options: ChangesOptions = {}): PageSubscriptions {
  const { onState = () => {}, waitsMs = [500, 1000, 2000, 4000], joiningMs = 50 } = options
  /** Callers that wait until the latest additions are subscribed, to learn what the server agreed to. */
  let waiting: ((told: ChangeSet) => void)[] = []
  let isPaused = false
  let isClosed = false
  /** Whether changes may have been missed, of which the listeners are not notified yet. */
  let isGap = false
  let state: ChangesState = 'off'

  const setState = (next: ChangesState) => {
    if (next === state) return
    state = next
    onState(next)
  }
  const timer = createTimer(() => void settle(), waitsMs)
  const backOff = () => {
    if (!isClosed) timer.backOff()
    if (stream.told !== undefined) return
    isGap = true
    setState('lost')
  }
  const stream = createChangeStreamManager(
    (changes) => openChangeStream(endpoint, changes, listeners),
    () => {
      if (!isPaused && !isClosed) backOff()
    },
    spareUris,
  )

  const reopen = async () => {
    if (isPaused || isClosed) return stream.close()
    const those = waiting
    waiting = []
    const want = listeners.wanted()
    // If the stream is lost, callers are told that everything was agreed to, because the stream will be opened again.
    let changes = want
    try {
      if (state !== 'lost' && stream.told === undefined && !isEmptyChangeSet(want)) setState('opening')
      changes = await stream.ask(want)
      if (isPaused || isClosed) return stream.close()
      if (isEmptyChangeSet(want)) return setState('off')
      timer.reset()
      setState('live')
      if (isGap) listeners.tell({ uris: [...want.uris], listed: true, prompts: true, missed: true })
      isGap = false
    } catch {
      if (!isPaused) backOff()
    } finally {
      for (const resolve of those) resolve(changes)
    }
  }

  /** Opens a stream for the wanted URIs. Additions meanwhile are handled right after. */
  const settle = oneAtATime(reopen, () => isClosed)

  const ask = (): Promise<ChangeSet> => {
    const settled = new Promise<ChangeSet>((resolve) => waiting.push(resolve))
    if (!timer.isBackingOff && !isPaused && !isClosed) timer.plan(joiningMs)
    return settled
  }
  const listeners = createListeners({
    ask,
    agreed: () => stream.told ?? emptyChangeSet,
    shrink: () => void ask(),
    maxUris,
    onFault: throwLater,
  })

  return {
    open: listeners.open,
    pause: () => {
      isPaused = true
      isGap = isGap || stream.told !== undefined
      timer.cancel()
      stream.close()
      setState('paused')
    },
    resume: () => {
      if (!isPaused) return
      isPaused = false
      setState('opening')
      timer.plan(0)
    },
    retry: () => {
      if (timer.isBackingOff) timer.plan(0)
    },
    close: () => {
      isClosed = true
      timer.cancel()
      stream.close()
      listeners.clear()
      for (const resolve of waiting) resolve(emptyChangeSet)
    },
  }
}

/** A stream that is silent for this long, in milliseconds, is dead: the server sends a heartbeat every 15 seconds. */
const silenceTimeoutMs = 50_000

/**
 * Resolves when the server has acknowledged the stream.
 *
 * @throws ResourceError if the stream is refused, or ends before the acknowledgement.
 */
function openChangeStream(
  endpoint: Endpoint,
  requestedChanges: ChangeSet,
  { tell }: Pick<Listeners, 'tell'>,
): Promise<ChangeStream> {
  const controller = new AbortController()
  const { signal } = controller
  let timer: ReturnType<typeof setTimeout> | undefined
  const onSign = () => {
    clearTimeout(timer)
    timer = setTimeout(() => controller.abort(), silenceTimeoutMs)
  }
  const notifications = {
    ...(requestedChanges.uris.size > 0 ? { resourceSubscriptions: [...requestedChanges.uris] } : {}),
    ...(requestedChanges.list ? { resourcesListChanged: true } : {}),
    ...(requestedChanges.prompts ? { promptsListChanged: true } : {}),
  }

  const { promise: ended, resolve: end } = withResolvers<void>()
  return new Promise((acknowledge, refuse) => {
    const follow = async () => {
      onSign()
      try {
        for await (const message of requestStream(
          endpoint,
          'subscriptions/listen',
          { notifications },
          signal,
          onSign,
        )) {
          // The server answers the request itself only when it ends the stream.
          if ('result' in message || 'error' in message) break
          const params = objectOf(message.params)
          if (message.method === 'notifications/subscriptions/acknowledged') {
            const agreement = agreedOf(objectOf(params.notifications))
            acknowledge({ asked: requestedChanges.uris.size, told: agreement, ended, close: () => controller.abort() })
          } else if (message.method === 'notifications/resources/updated' && typeof params.uri === 'string')
            tell({ uris: [params.uri], listed: false })
          else if (message.method === 'notifications/resources/list_changed') tell({ uris: [], listed: true })
          else if (message.method === 'notifications/prompts/list_changed')
            tell({ uris: [], listed: false, prompts: true })
        }
        refuse(new ResourceError('unavailable', 'The server does not report changes now.'))
      } catch (error) {
        refuse(error)
      } finally {
        clearTimeout(timer)
        controller.abort()
        end()
      }
    }
    void follow()
  })
}

function agreedOf({ resourceSubscriptions, resourcesListChanged, promptsListChanged }: WireObject): ChangeSet {
  const uris = Array.isArray(resourceSubscriptions) ? resourceSubscriptions : []
  return {
    uris: new Set(uris.filter((uri) => typeof uri === 'string')),
    list: resourcesListChanged === true,
    prompts: promptsListChanged === true,
    tools: false,
  }
}
