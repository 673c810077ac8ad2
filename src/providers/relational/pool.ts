import { ResourceError } from '../../core/errors.ts'

export interface PoolOptions<C> {
  /** Opens a connection. Callers that wait for a connection receive its error. It ends soon after the signal aborts. */
  readonly open: (signal: AbortSignal) => Promise<C>
  /** Ends a connection; it has to do so at once, whatever the connection is doing. */
  readonly close: (connection: C) => void
  /** Whether a connection can be used once more. */
  readonly isUsable: (connection: C) => boolean
  /** Makes a connection as new between two uses. Nobody waits for it but the next use; where it fails, the connection is ended. */
  readonly reset?: (connection: C) => Promise<void>
  /** Maximum number of connections. */
  readonly size: number
  /** Time-out of waiting for a connection, in milliseconds. */
  readonly patience: number
  /** After how long without use a connection is ended, in milliseconds. */
  readonly idle: number
}

export interface Pool<C> {
  /**
   * Does something with a connection of its own. The connection is kept for others where the work succeeds, or where it
   * fails and the connection can still be used; where the signal aborts, it is ended at once.
   *
   * @throws ResourceError `unavailable` where none is free in time.
   */
  use<T>(signal: AbortSignal, work: (connection: C) => Promise<T>): Promise<T>
  /** Ends every connection. Running statements fail. */
  close(): void
}

interface Waiting {
  readonly enter: () => void
}

/** A bounded pool of connections with a time-out for waiting callers. */
export function createPool<C>(options: PoolOptions<C>): Pool<C> {
  const { open, close, isUsable, reset, size, patience, idle } = options
  const free = new Map<C, NodeJS.Timeout>()
  const queue = new Set<Waiting>()
  const closing = new AbortController()
  let taken = 0

  /** A place among those that may have a connection. */
  const enter = (signal: AbortSignal): Promise<void> => {
    signal.throwIfAborted()
    if (taken < size) {
      taken++
      return Promise.resolve()
    }
    return new Promise((resolve, reject) => {
      const settle = (then: () => void) => {
        clearTimeout(timer)
        queue.delete(waiting)
        signal.removeEventListener('abort', onAbort)
        then()
      }
      const waiting: Waiting = { enter: () => settle(resolve) }
      const onAbort = () => settle(() => reject(signal.reason))
      const busy = () => new ResourceError('unavailable', `All ${size} connections to the database are in use.`)
      const timer = setTimeout(() => settle(() => reject(busy())), patience)
      queue.add(waiting)
      signal.addEventListener('abort', onAbort)
    })
  }

  const leave = (): void => {
    const [next] = queue
    // Hand the slot directly to the next waiter, so that a new caller cannot take it.
    if (next === undefined) taken--
    else next.enter()
  }

  const takeFree = (): C | undefined => {
    // The one that was used last: the others can go.
    const connection = [...free.keys()].at(-1)
    if (connection === undefined) return undefined
    clearTimeout(free.get(connection))
    free.delete(connection)
    if (isUsable(connection)) return connection
    close(connection)
    return takeFree()
  }

  const keep = (connection: C): void => {
    if (closing.signal.aborted || !isUsable(connection)) {
      close(connection)
      return
    }
    const timer = setTimeout(() => {
      free.delete(connection)
      close(connection)
    }, idle)
    timer.unref()
    free.set(connection, timer)
  }

  const giveBack = async (connection: C): Promise<void> => {
    if (reset === undefined || !isUsable(connection)) return keep(connection)
    const onClose = () => close(connection)
    closing.signal.addEventListener('abort', onClose, { once: true })
    try {
      await reset(connection)
      keep(connection)
    } catch {
      close(connection)
    } finally {
      closing.signal.removeEventListener('abort', onClose)
    }
  }

  return {
    use: async (signal, work) => {
      const either = AbortSignal.any([signal, closing.signal])
      await enter(either)
      let connection: C | undefined
      const onAbort = () => connection !== undefined && close(connection)
      either.addEventListener('abort', onAbort, { once: true })
      try {
        connection = takeFree() ?? (await open(either))
        either.throwIfAborted()
        return await work(connection)
      } finally {
        either.removeEventListener('abort', onAbort)
        if (connection === undefined) leave()
        else if (either.aborted) {
          close(connection)
          leave()
        } else void giveBack(connection).finally(leave)
      }
    },
    close: () => {
      closing.abort(new ResourceError('unavailable', 'The source is closed.'))
      for (const [connection, timer] of free) {
        clearTimeout(timer)
        close(connection)
      }
      free.clear()
    },
  }
}

/**
 * Does something with a connection; once more, where that failed for a reason that passes: a connection that was kept turns out to
 * have ended meanwhile, say.
 */
export function askingAgain<C>(pool: Pool<C>, isPassing: (error: unknown) => boolean) {
  return async <T>(signal: AbortSignal, work: (connection: C) => Promise<T>): Promise<T> => {
    try {
      return await pool.use(signal, work)
    } catch (error) {
      signal.throwIfAborted()
      if (!isPassing(error)) throw error
      return pool.use(signal, work)
    }
  }
}
