import { setMaxListeners } from 'node:events'
import { notFound, ResourceError } from '../../core/errors.ts'

/** Something that is closed when its last user is done with it. It starts with one user. */
export interface Shared {
  keep(): void
  close(): void
}

export interface CallTerms<T> {
  readonly signal: AbortSignal
  /** Kept until the call has ended, even where the caller has gone: its descriptor is not reused below a running call. */
  readonly hold?: Shared
  /** Takes a result that came after the abort. */
  readonly late?: (value: T) => void
}

/** Runs calls that block (they go to the thread pool of Node), so many at a time. */
export interface Pool {
  /** Rejects at once when the signal aborts; the call itself cannot be stopped, and keeps its place until it ends. */
  run<T>(call: () => Promise<T>, terms: CallTerms<T>): Promise<T>
}

/**
 * A bounded share of the thread pool. A mount that never answers (NFS, FUSE) keeps its calls for ever: with a share of
 * its own, it cannot keep those of other providers. The share is half of `UV_THREADPOOL_SIZE` (4 where it is not set).
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

/** What a call answers, unless the signal aborts first. */
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

/** Answers what takes the listener away again. */
function onAbort(signal: AbortSignal, listener: () => void): () => void {
  // Many calls may share one signal: Node would warn of a leak at the eleventh.
  setMaxListeners(0, signal)
  signal.addEventListener('abort', listener, { once: true })
  return () => signal.removeEventListener('abort', listener)
}

/** What the file system says when a name leads to nothing that this process may open. */
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

/** The code of a file system error, such as `ENOENT`. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/**
 * What a failed call means: `not-found` where nothing can be opened, `unavailable` for everything that may pass (EIO,
 * EMFILE). An abort stays what it is.
 */
export function failure(error: unknown): unknown {
  const code = codeOf(error)
  if (error instanceof ResourceError || code === undefined || code === 'ABORT_ERR') return error
  if (absent.has(code)) return notFound(`the file system says ${code}`)
  return new ResourceError('unavailable', `The file system says ${code}.`, {}, { cause: error })
}
