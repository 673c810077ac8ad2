import { setTimeout as sleep } from 'node:timers/promises'
import { isResourceError, type ResourceError } from '../core/errors.ts'
import type { Connection, Link } from './connection.ts'
import { statusOf, unavailable } from './errors.ts'
import { createFeed, type Feed, type Told } from './feed.ts'

/** A feed that outlives the streams and connections that carry it. */
interface SteadyFeed {
  /** The set of changes that the server has agreed to so far. */
  readonly agreed: Told
  /**
   * Asks the server for the set that is wanted now, and resolves to the set that it agreed to.
   *
   * @throws ResourceError when the server agrees to nothing, or the connection is being reopened.
   */
  ask(): Promise<Told>
  close(): void
}

interface SteadyOptions {
  /** Returns the set of changes that is wanted now. */
  readonly wanted: () => Told
  readonly hear: Parameters<Connection['hear']>[0]
  /** Called when changes may have been missed. Nobody knows which. */
  readonly onGap: () => void
  /** Maximum number of failures in a row. The feed ends after them; after a refusal it ends at once. */
  readonly maxFailures: number
}

const firstRetryMs = 250
const maxRetryMs = 30_000
/** A feed that held for this time resets the count of failures, in milliseconds. */
const stableMs = 30_000

/**
 * Creates a feed that is restored after its stream or connection was lost, with exponential backoff: first on the same
 * connection, then on a new one. A connection that ends while nothing is wanted is not reopened.
 */
export function createSteadyFeed(link: Link, options: SteadyOptions): SteadyFeed {
  const { closing, log } = link
  const { wanted, hear, onGap, maxFailures } = options
  let agreed: Told = { uris: new Set(), list: false, prompts: false, tools: false }
  let feed: Feed | undefined
  let since = 0
  let failures = 0
  let recovering = false
  let over: ResourceError | undefined

  const giveUp = (reason: ResourceError) => {
    over ??= reason
    link.giveUp(reason)
  }
  const isIdle = () => {
    const { uris, list, prompts, tools } = wanted()
    return uris.size === 0 && !list && !prompts && !tools
  }
  const watchEnd = (connection: Connection) =>
    void connection.ended.then(() => {
      if (connection === link.connection && !recovering && isIdle()) giveUp(unavailable('The connection has ended.'))
    })
  watchEnd(link.connection)

  // A mutex: one request to the server at a time.
  let last: Promise<unknown> = Promise.resolve()
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const turn = last.then(work)
    last = turn.catch(() => {})
    return turn
  }

  const begin = (connection: Connection): Feed => {
    feed?.close()
    connection.hear(hear)
    since = performance.now()
    const begun = createFeed(connection, () => {
      if (feed === begun) void recover()
    })
    feed = begun
    return begun
  }
  const askOn = async (opened: Feed): Promise<Told> => {
    agreed = await opened.ask(wanted())
    return agreed
  }

  let next: Promise<Told> | undefined
  const ask = (): Promise<Told> => {
    // Callers that come while a request waits for its turn share it.
    next ??= inTurn(async () => {
      next = undefined
      if (over !== undefined) throw over
      if (recovering) throw unavailable('The connection to the server was lost, and is being opened again. Try again.')
      return askOn(feed ?? begin(link.connection))
    })
    return next
  }

  const recover = async (): Promise<void> => {
    if (recovering || closing.aborted) return
    recovering = true
    if (performance.now() - since >= stableMs) failures = 0
    if (!isIdle()) log('warn', 'the server tells of no more changes: it is asked anew', {})
    for (let isFirst = true; !closing.aborted && !isIdle(); isFirst = false) {
      if (failures >= maxFailures) {
        giveUp(unavailable(`The connection was lost ${failures} times in a row, and is not opened again.`))
        break
      }
      const pause = Math.min(maxRetryMs, firstRetryMs * 2 ** failures++) * (0.5 + Math.random() / 2)
      await sleep(pause, undefined, { signal: closing }).catch(() => {})
      if (closing.aborted) return
      if (isIdle()) break
      try {
        await inTurn(async () => askOn(begin(isFirst && !link.connection.isOver ? link.connection : await reopen())))
        if (feed?.isLost === true) continue
        recovering = false
        const silent = [...wanted().uris].filter((uri) => !agreed.uris.has(uri)).length
        if (silent > 0) log('warn', 'the server does not tell of some resources any more', { resources: silent })
        log('info', 'the server tells of changes again', {})
        return onGap()
      } catch (error) {
        if (closing.aborted) return
        if (isRefusal(error)) {
          giveUp(error)
          break
        }
        log('warn', 'the server does not come back: it is asked again later', { error })
      }
    }
    recovering = false
    feed?.close()
    feed = undefined
    if (link.connection.isOver) giveUp(unavailable('The connection has ended.'))
  }
  const reopen = async (): Promise<Connection> => {
    const connection = await link.reopen()
    watchEnd(connection)
    return connection
  }

  return {
    get agreed() {
      return agreed
    },
    ask,
    close: () => {
      feed?.close()
      feed = undefined
    },
  }
}

/** Whether the server refuses this client, so that a retry is of no use. */
function isRefusal(error: unknown): error is ResourceError {
  return isResourceError(error) && [401, 403].includes(Number(error.detail.status ?? statusOf(error.cause)))
}
