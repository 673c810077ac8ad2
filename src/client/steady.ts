import { setTimeout as sleep } from 'node:timers/promises'
import { isResourceError, type ResourceError } from '../core/errors.ts'
import type { Connection } from './connection.ts'
import { statusOf, unavailable } from './errors.ts'
import { createFeed, type Feed, type Told } from './feed.ts'
import type { Link } from './link.ts'

/** A feed that outlives the streams and connections that it came by. */
export interface SteadyFeed {
  /** What the server agreed to tell, so far. */
  readonly agreed: Told
  /**
   * Asks the server for what is wanted by now, and resolves to what it agreed to.
   *
   * @throws ResourceError where nothing could be agreed on, or the connection is lost just now.
   */
  ask(): Promise<Told>
  close(): void
}

export interface SteadyOptions {
  /** What is wanted just now. */
  readonly wanted: () => Told
  readonly hear: Parameters<Connection['hear']>[0]
  /** Something may have been missed: nobody knows what. */
  readonly onGap: () => void
  /** So many failures in a row are the end of it; a refusal is so at once. */
  readonly maxFailures: number
}

const firstRetry = 250
const lastRetry = 30_000
/** A feed that held for so long was no failure, in milliseconds. */
const stable = 30_000

/**
 * What a server stops telling, because a stream or the whole connection was lost, is asked for anew, with longer and longer
 * pauses: first on the connection that there is, then on another one. A connection that ends while nothing is wanted is
 * over.
 */
export function createSteadyFeed(link: Link, options: SteadyOptions): SteadyFeed {
  const { closing, log } = link
  const { wanted, hear, onGap, maxFailures } = options
  let agreed: Told = { uris: new Set(), list: false, prompts: false }
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
    const { uris, list, prompts } = wanted()
    return uris.size === 0 && !list && !prompts
  }
  const watchEnd = (connection: Connection) =>
    void connection.ended.then(() => {
      if (connection === link.connection && !recovering && isIdle()) giveUp(unavailable('The connection has ended.'))
    })
  watchEnd(link.connection)

  // One thing is asked of the server at a time.
  let last: Promise<unknown> = Promise.resolve()
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const turn = last.then(work)
    last = turn.catch(() => {})
    return turn
  }

  const begin = (connection: Connection): Feed => {
    feed?.close()
    connection.hear(hear)
    since = Date.now()
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
    // Whoever asks while another one waits for its turn is asked for with it.
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
    if (Date.now() - since >= stable) failures = 0
    if (!isIdle()) log('warn', 'the server tells of no more changes: it is asked anew', {})
    for (let isFirst = true; !closing.aborted && !isIdle(); isFirst = false) {
      if (failures >= maxFailures) {
        giveUp(unavailable(`The connection was lost ${failures} times in a row, and is not opened again.`))
        break
      }
      const pause = Math.min(lastRetry, firstRetry * 2 ** failures++) * (0.5 + Math.random() / 2)
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

/** Whether the server wants nothing to do with this client, so that asking again is of no use. */
function isRefusal(error: unknown): error is ResourceError {
  return isResourceError(error) && [401, 403].includes(Number(error.detail.status ?? statusOf(error.cause)))
}
