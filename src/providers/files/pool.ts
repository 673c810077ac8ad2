import { setMaxListeners } from 'node:events'
import { errorCodeOf, notFound, ResourceError } from '../../core/errors.ts'

/** Reference-counted object, which is closed when its last user closes it. It starts with one user. */
export interface Shared {
  keep(): void
  close(): void
}

interface CallTerms<T> {
  readonly signal: AbortSignal
  /** Kept until the call has ended, even after the caller has aborted: its descriptor is not reused under a running call. */
  readonly hold?: Shared
  /** Receives a result that arrives after the abort. */
  readonly late?: (value: T) => void
}

/** Semaphore for blocking calls, which run in the thread pool of Node. */
export interface Pool {
  /** Rejects at once when the signal aborts; the call itself cannot be stopped, and keeps its slot until it ends. */
  run<T>(call: () => Promise<T>, terms: CallTerms<T>): Promise<T>
}

/**
 * Creates a bounded share of the thread pool. A mount that never answers (NFS, FUSE) blocks its calls forever: with a share of its own, it
 * cannot block those of other providers. The share is half of `UV_THREADPOOL_SIZE` (4 when unset).
 */
export function createPool(limit = Math.max(1, Math.floor(threads() / 2))): Pool {
  let free = limit
  const queue: (() => void)[] = []

  const release = () => {
    const next = queue.shift()
    if (next === undefined) free++
    else next()
  }

  const turn = (signal: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      const take = () => {
        off()
        resolve()
      }
      const off = onAbort(signal, () => {
        queue.splice(queue.indexOf(take), 1)
        reject(signal.reason)
      })
      queue.push(take)
    })

  return {
    run: async <T>(call: () => Promise<T>, { signal, hold, late }: CallTerms<T>) => {
      signal.throwIfAborted()
      if (free > 0) free--
      else await turn(signal)
      hold?.keep()
      const done = new Promise<T>((resolve, reject) => call().then(resolve, reject)).finally(() => {
        release()
        hold?.close()
      })
      return untilAbort(done, signal, late)
    },
  }
}

function threads(): number {
  return Number(process.env.UV_THREADPOOL_SIZE) || 4
}

/** Waits for a result, and rejects when the signal aborts first. */
export function untilAbort<T>(done: Promise<T>, signal: AbortSignal, late?: (value: T) => void): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const stop = () => reject(signal.reason)
    const off = onAbort(signal, stop)
    if (signal.aborted) stop()
    done.then(
      (value) => {
        off()
        if (signal.aborted) late?.(value)
        else resolve(value)
      },
      (error: unknown) => {
        off()
        reject(error)
      },
    )
  })
}

/** Adds an abort listener and returns the function that removes it. */
function onAbort(signal: AbortSignal, listener: () => void): () => void {
  // Many calls may share one signal: Node would warn of a leak at the eleventh listener.
  setMaxListeners(0, signal)
  signal.addEventListener('abort', listener, { once: true })
  return () => signal.removeEventListener('abort', listener)
}

/** Error codes of the file system for a name that this process cannot open. */
const absent = new Set([
  'EACCES',
  'EILSEQ',
  'EINVAL',
  'EISDIR',
  'ELOOP',
  'ENAMETOOLONG',
  'ENODEV',
  'ENOENT',
  'ENOTDIR',
  'ENXIO',
  'EPERM',
  'ESTALE',
])

/** Returns what an operator does about a path that cannot be opened. The text continues the name of the path. Undefined: another error. */
export function adviceOn(error: unknown): string | undefined {
  const code = errorCodeOf(error)
  if (code === 'ENOENT' || code === 'ENOTDIR') return 'does not exist. Create it, or give another path.'
  if (code === 'EACCES' || code === 'EPERM') return 'may not be read by this user. Change its mode or its owner.'
  return undefined
}

/**
 * Converts a failed call's error: `not-found` when nothing can be opened, `unavailable` for errors that may be temporary (EIO, EMFILE). An
 * abort error stays as it is.
 */
export function failure(error: unknown): unknown {
  const code = errorCodeOf(error)
  if (error instanceof ResourceError || code === undefined || code === 'ABORT_ERR') return error
  if (absent.has(code)) return notFound(`the file system says ${code}`)
  return new ResourceError('unavailable', `The file system says ${code}.`, {}, { cause: error })
}
