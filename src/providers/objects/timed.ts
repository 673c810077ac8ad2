import { ResourceError } from '../../core/errors.ts'
import { followFor } from '../../core/kit/abort.ts'
import { untilAbort } from '../files/pool.ts'
import type { ObjectStore } from './store.ts'
import { silent } from './ways.ts'

/**
 * Wraps a store with a time-out of each answer in milliseconds, whatever the store waits for: a socket, credentials, a retry, the rest of a
 * body. A call that takes longer is aborted, and throws `unavailable`.
 */
export function timed(store: ObjectStore, ms: number): ObjectStore {
  return {
    ...store,
    page: (query, signal) => once(ms, signal, (own) => store.page(query, own)),
    head: (key, signal) => once(ms, signal, (own) => store.head(key, own)),
    link: (details, seconds, signal) => once(ms, signal, (own) => store.link(details, seconds, own)),
    get: async (query, signal) => {
      const watch = createWatch(ms, signal)
      try {
        const body = await watch.run((own) => store.get(query, own))
        return {
          ...body,
          bytes: () => watch.run(() => body.bytes()).finally(watch.end),
          discard: () => {
            watch.end()
            body.discard()
          },
        }
      } catch (error) {
        watch.end()
        throw error
      }
    },
  }
}

async function once<T>(ms: number, signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const watch = createWatch(ms, signal)
  try {
    return await watch.run(work)
  } catch (error) {
    // Only an answer with content may throw these symbols.
    throw typeof error === 'symbol' ? new ResourceError('unavailable', silent) : error
  } finally {
    watch.end()
  }
}

function createWatch(ms: number, signal: AbortSignal) {
  const own = followFor(signal, ms)
  return {
    run: async <T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> => {
      try {
        return await untilAbort(work(own.signal), own.signal)
      } catch (error) {
        signal.throwIfAborted()
        throw own.signal.aborted ? tooLate(ms) : error
      }
    },
    end: own.release,
  }
}

function tooLate(ms: number): ResourceError {
  return new ResourceError(
    'unavailable',
    `The store did not answer within ${ms} ms. Look at whether it can be reached from here, or raise "timeout".`,
  )
}
