import { ResourceError } from '../../core/errors.ts'

interface PoolOptions<C> {
  /** Opens a connection. Callers that wait for a connection receive its error. It ends soon after the signal aborts. */
  readonly open: (signal: AbortSignal) => Promise<C>
  /** Closes a connection at once, whatever it is doing. */
  readonly close: (connection: C) => void
  /** Whether a connection can be used again. */
  readonly isUsable: (connection: C) => boolean
  /** Resets a connection between two uses. Only the next use waits for it. If it fails, the connection is closed. */
  readonly reset?: (connection: C) => Promise<void>
  /** Maximum number of connections. */
  readonly size: number
  /** Time-out of waiting for a connection, in milliseconds. */
  readonly patience: number
  /** Idle time after which a connection is closed, in milliseconds. */
  readonly idle: number
}

export interface Pool<C> {
  /**
   * Runs work with a connection of its own. Afterwards the connection is kept for others, if it can still be used. If the
   * signal aborts, it is closed at once.
   *
   * @throws ResourceError `unavailable` if none is free in time.
   */
  use<T>(signal: AbortSignal, work: (connection: C) => Promise<T>): Promise<T>
  /** Closes every connection. Running statements fail. */
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

  /** Takes one of the slots for connections, or waits for one. */
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
    // Take the connection that was used last, so that the others become idle and close.
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

/** Runs work with a connection, and once more after a temporary failure: a kept connection may have ended meanwhile. */
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
