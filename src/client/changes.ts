import { setTimeout as sleep } from 'node:timers/promises'
import { isResourceError, type ResourceError } from '../core/errors.ts'
import type { Connection, ServerLink } from './connection.ts'
import { errorHttpStatus, unavailableError } from './errors.ts'
import { createNotificationFeed, type NotificationFeed } from './feed.ts'
import {
  type ChangeSet,
  createListeners,
  emptyChangeSet,
  isEmptyChangeSet,
  type NotificationBatch,
} from './listeners.ts'

/** The subscriptions of the listeners of one server. They share one feed. */
export type RemoteChanges = ReturnType<typeof createRemoteChanges>

/** Maximum number of URIs that all subscriptions of a view listen to together. */
const maxUris = 10_000
/** Changes within this time, in milliseconds, are joined into one notification without duplicates. */
const joinMs = 10

/**
 * Creates the subscriptions of a view of a server. When changes may have been missed because a connection was lost, every listener is
 * notified that everything it listens to has changed.
 *
 * @param maxFailures Number of failures in a row after which the link ends.
 */
export function createRemoteChanges(link: ServerLink, maxFailures: number) {
  let changedUris = new Set<string>()
  let kinds: Omit<NotificationBatch, 'uris'> = { listed: false }
  let timer: NodeJS.Timeout | undefined

  const tell = (): void => {
    timer = undefined
    const batch = { ...kinds, uris: [...changedUris] }
    changedUris = new Set()
    kinds = { listed: false }
    listeners.tell(batch)
  }
  const collect = (uris: Iterable<string>, more: Partial<Omit<NotificationBatch, 'uris'>> = {}): void => {
    for (const uri of uris) changedUris.add(uri)
    kinds = { ...kinds, ...more }
    timer ??= setTimeout(tell, joinMs)
  }
  const listeners = createListeners({
    ask: () => feed.ask(),
    agreed: () => feed.agreed,
    shrink: () => {
      if (!link.closing.aborted)
        feed
          .ask()
          .catch((error: unknown) => link.log('debug', 'a server cannot be asked for fewer notifications', { error }))
    },
    maxUris,
    onFault: (error) => link.log('error', 'a change could not be delivered', { error }),
  })
  const feed = createSteadyFeed(link, {
    wanted: listeners.wanted,
    hear: (method, { uri }) => {
      const kind = listChange(method)
      if (kind !== undefined) collect([], kind)
      if (method === 'notifications/resources/updated' && typeof uri === 'string') collect(listeners.concernedBy(uri))
    },
    onGap: () => collect(listeners.wanted().uris, { listed: true, prompts: true, tools: true }),
    maxFailures,
  })

  return {
    open: listeners.open,
    close: () => {
      clearTimeout(timer)
      listeners.clear()
      feed.close()
    },
  }
}

function listChange(method: string): Partial<Omit<NotificationBatch, 'uris'>> | undefined {
  if (method === 'notifications/resources/list_changed') return { listed: true }
  if (method === 'notifications/prompts/list_changed') return { prompts: true }
  return method === 'notifications/tools/list_changed' ? { tools: true } : undefined
}

interface SteadyOptions {
  /** Returns the set of changes that the listeners want now. */
  readonly wanted: () => ChangeSet
  readonly hear: Parameters<Connection['hear']>[0]
  /** Called when changes may have been missed. It is not known which. */
  readonly onGap: () => void
  /** Maximum number of failures in a row. The feed ends after them; after a refusal it ends at once. */
  readonly maxFailures: number
}

const firstRetryMs = 250
const maxRetryMs = 30_000
/** After a feed has lasted this long, in milliseconds, the count of failures starts again at 0. */
const stableMs = 30_000

/**
 * Creates a feed that outlives the streams and connections that carry it. After a loss it is restored with exponential backoff: first on
 * the same connection if that is still open, then on a new one.
 */
function createSteadyFeed(link: ServerLink, options: SteadyOptions) {
  const { closing, log } = link
  const { wanted, hear, onGap, maxFailures } = options
  let agreed = emptyChangeSet
  let feed: NotificationFeed | undefined
  let since = 0
  let failures = 0
  let recovering = false
  let over: ResourceError | undefined

  const giveUp = (reason: ResourceError) => {
    over ??= reason
    link.giveUp(reason)
  }
  const isIdle = () => isEmptyChangeSet(wanted())
  const watchEnd = (connection: Connection) =>
    void connection.ended.then(() => {
      if (connection === link.connection && !recovering && isIdle())
        giveUp(unavailableError('The connection has ended.'))
    })
  watchEnd(link.connection)

  // A mutex: one request to the server at a time.
  let last: Promise<unknown> = Promise.resolve()
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const turn = last.then(work)
    last = turn.catch(() => {})
    return turn
  }

  const begin = (connection: Connection): NotificationFeed => {
    feed?.close()
    connection.hear(hear)
    since = performance.now()
    const notificationFeed = createNotificationFeed(connection, () => {
      if (feed === notificationFeed) void recover()
    })
    feed = notificationFeed
    return notificationFeed
  }
  const askOn = async (useFeed: NotificationFeed): Promise<ChangeSet> => {
    agreed = await useFeed.ask(wanted())
    return agreed
  }

  let next: Promise<ChangeSet> | undefined
  const ask = (): Promise<ChangeSet> => {
    // Callers that come while a request waits for its turn share it.
    next ??= inTurn(async () => {
      next = undefined
      if (over !== undefined) throw over
      if (recovering)
        throw unavailableError('The connection to the server was lost, and is being opened again. Try again.')
      return askOn(feed ?? begin(link.connection))
    })
    return next
  }

  const recover = async (): Promise<void> => {
    if (recovering || closing.aborted) return
    recovering = true
    if (performance.now() - since >= stableMs) failures = 0
    if (!isIdle()) log('warn', 'the connection for changes was lost: connecting again', {})
    for (let isFirst = true; !closing.aborted && !isIdle(); isFirst = false) {
      if (failures >= maxFailures) {
        giveUp(unavailableError(`The connection failed ${failures} times in a row. Connect again.`))
        break
      }
      const pauseMs = Math.min(maxRetryMs, firstRetryMs * 2 ** failures++) * (0.5 + Math.random() / 2)
      await sleep(pauseMs, undefined, { signal: closing }).catch(() => {})
      if (closing.aborted) return
      if (isIdle()) break
      try {
        await inTurn(async () => askOn(begin(isFirst && !link.connection.isOver ? link.connection : await reopen())))
        if (feed?.isLost === true) continue
        recovering = false
        const silent = [...wanted().uris].filter((uri) => !agreed.uris.has(uri)).length
        if (silent > 0)
          log('warn', 'the server does not report changes of some resources any more', { resources: silent })
        log('info', 'the server reports changes again', {})
        return onGap()
      } catch (error) {
        if (closing.aborted) return
        if (isRefusal(error)) {
          giveUp(error)
          break
        }
        log('warn', 'the server cannot be reached: trying again later', { error })
      }
    }
    recovering = false
    feed?.close()
    feed = undefined
    if (link.connection.isOver) giveUp(unavailableError('The connection has ended.'))
  }
  const reopen = async (): Promise<Connection> => {
    const connection = await link.reopen()
    watchEnd(connection)
    return connection
  }

  return {
    get agreed(): ChangeSet {
      return agreed
    },
    /**
     * Requests the wanted set of changes from the server, and resolves to the set that the server agreed to.
     *
     * @throws ResourceError when the request fails, or the connection is over or being reopened.
     */
    ask,
    close: () => {
      feed?.close()
      feed = undefined
    },
  }
}

/** Whether the server refuses this client, so that a retry is of no use. */
function isRefusal(error: unknown): error is ResourceError {
  return isResourceError(error) && [401, 403].includes(Number(error.detail.status ?? errorHttpStatus(error.cause)))
}
