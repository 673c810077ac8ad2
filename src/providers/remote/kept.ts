import { isResourceError, ResourceError } from '../../core/errors.ts'
import { followFor, untilAborted } from '../../core/kit/abort.ts'

/** Something of a server that takes long to fetch, kept for a while. */
export interface Kept<T> {
  /**
   * Returns the current value. Single-flight: concurrent callers share one fetch, and a caller that aborts does not end it.
   *
   * @throws ResourceError the error of the fetch; `unavailable` when it takes longer than the time-out.
   */
  current(signal: AbortSignal): Promise<T>
  /** Fetches the value again, and returns it with the previous one. */
  renew(signal: AbortSignal): Promise<{ readonly before: T | undefined; readonly now: T }>
  /** Value of the last fetch, however old; undefined before the first. */
  readonly last: T | undefined
  /** Whether changes are notified, so that the cached value stays valid without a check. */
  told: boolean
}

interface KeptOptions<T> {
  readonly fetch: () => Promise<T>
  /** How long it is valid, in milliseconds. */
  readonly refresh: number
  /** Maximum time that a caller waits, in milliseconds. It also ends a deadlock with a server that waits for us. */
  readonly patience: number
}

export function createKept<T>({ fetch, refresh, patience }: KeptOptions<T>): Kept<T> {
  let last: { readonly value: T; readonly from: number } | undefined
  let fetching: Promise<T> | undefined

  const begin = (): Promise<T> => {
    const from = performance.now()
    const own = fetch().then((value) => {
      last = { value, from }
      return value
    })
    fetching = own
    const end = () => {
      if (fetching === own) fetching = undefined
    }
    own.then(end, end)
    return own
  }

  const waitFor = async (work: Promise<T>, signal: AbortSignal): Promise<T> => {
    const own = followFor(signal, patience)
    try {
      return await untilAborted(work, own.signal)
    } catch (error) {
      signal.throwIfAborted()
      if (isResourceError(error) || !own.signal.aborted) throw error
      if (last !== undefined) return last.value
      throw new ResourceError('unavailable', 'The server is still being listed.', { retryAfter: 2 })
    } finally {
      own.release()
    }
  }

  const kept: Kept<T> = {
    told: false,
    get last() {
      return last?.value
    },
    current: async (signal) => {
      signal.throwIfAborted()
      if (last !== undefined && (kept.told || performance.now() - last.from < refresh)) return last.value
      return waitFor(fetching ?? begin(), signal)
    },
    renew: async (signal) => {
      // A fetch in progress may have read the data before the change.
      await fetching?.catch(() => {})
      signal.throwIfAborted()
      const before = last?.value
      return { before, now: await untilAborted(fetching ?? begin(), signal) }
    },
  }
  return kept
}
