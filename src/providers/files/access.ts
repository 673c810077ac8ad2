import { setMaxListeners } from 'node:events'
import type { BigIntStats } from 'node:fs'
import { errorCodeOf, isResourceError, notFound, ResourceError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'

/**
 * A file or directory that was found, held open so that access checks and reads refer to the same object. On Linux it is a descriptor
 * (`O_PATH`): it stays valid when its name changes.
 */
export interface Place extends Shared {
  /** A file system path that opens exactly this object; its children are at `${at}/${name}`. */
  readonly at: string
  /** Stats of the place at the time when it was found. */
  readonly stats: BigIntStats
  /** Whether the place is on a local file system, so that calls on it answer at once. */
  readonly local: boolean
  /** The kernel's number of the mounted file system that contains the place, if known. */
  readonly mount: string | undefined
}

/** A file that is open for reading. */
export interface ReadHandle {
  /** Fills a part of the buffer from a position in the file. Returns the number of bytes read; 0 at the end. */
  read(
    buffer: Uint8Array,
    at: { offset: number; length: number; position: number },
    signal: AbortSignal,
  ): Promise<number>
  stat(signal: AbortSignal): Promise<BigIntStats>
  /** Stats of the same file from before it was opened. Undefined if its path may have led to another file meanwhile. */
  readonly found?: BigIntStats
  close(): void
}

interface Steps {
  /** Whether a directory is expected. If so, its mount is checked before everything else. */
  readonly directory: boolean
  /**
   * Whether anything but a directory, a symbolic link included, is refused as if it did not exist. The refusal comes at once, so that the time
   * does not reveal that the name exists.
   */
  readonly only?: boolean
  /** Whether to follow a symbolic link, wherever it leads. Used only to find the target, which is not opened for reading. */
  readonly follow?: boolean
}

/** Access to a root and its contents. Every method throws `not-found` or `unavailable`, or the reason of the abort. */
export interface Places {
  /** The path at which the root was opened, without symbolic links. The root may have moved since. */
  readonly real: string
  /**
   * Returns the current root. It is opened again by its path, without following symbolic links, when it was deleted, when its file system is
   * unmounted, and when another one is mounted over it. Throws `unavailable` when it is gone.
   */
  root(signal: AbortSignal): Promise<Place>
  /** Opens a child of a directory. Opens a symbolic link itself, not its target, unless `follow` is set. */
  child(parent: Place, name: string, steps: Steps, signal: AbortSignal): Promise<Place>
  /** Returns the current path of a place relative to the root; undefined when it lies outside or is deleted. */
  where(place: Place, signal: AbortSignal): Promise<string | undefined>
  /** Opens a regular file for reading. */
  open(place: Place, signal: AbortSignal): Promise<ReadHandle>
  close(): void
}

/** Reference-counted object, which is closed when its last user closes it. It starts with one user. */
export interface Shared {
  keep(): void
  close(): void
}

interface CallTerms<T> {
  readonly signal: AbortSignal
  /** Held open until the call has ended, even if the caller aborts, so that its descriptor is not reused during the call. */
  readonly hold?: Shared
  /** Receives a result that arrives after the abort. */
  readonly late?: (value: T) => void
}

/**
 * Semaphore for blocking calls: a bounded share of the thread pool of Node. A mount that never answers (NFS, FUSE) blocks its calls forever:
 * with a share of its own, it cannot block those of other providers. The share is half of `UV_THREADPOOL_SIZE` (4 when unset).
 */
export function createPool(limit = Math.max(1, Math.floor(threads() / 2))) {
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
    /** Runs a call. Rejects at once when the signal aborts; the call itself cannot be stopped, and keeps its slot until it ends. */
    run: async <T>(call: () => Promise<T>, { signal, hold, late }: CallTerms<T>): Promise<T> => {
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

export type Pool = ReturnType<typeof createPool>

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

/** Returns advice on a path that cannot be opened, as the rest of a sentence that begins with the path. Undefined for other errors. */
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

/** Error codes for what this process or the system lacks. All other unknown errors are about one file or directory. */
const lacks = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'ENOBUFS', 'EAGAIN'])
/** Maximum number of names for which it is recorded that they were logged. */
const maxLogged = 1000

/** Leaves out one name in a directory that the file system fails on, and logs it once. Throws every error that is not about this name alone. */
export type LeaveOut = (path: string, error: unknown) => void

export function createLeaveOut(log: Log): LeaveOut {
  const logged = new Set<string>()
  return (path, error) => {
    const code = isResourceError(error, 'unavailable') ? errorCodeOf(error.cause) : undefined
    if (code === undefined || lacks.has(code)) throw error
    if (logged.has(path)) return
    if (logged.size >= maxLogged) logged.clear()
    logged.add(path)
    log('warn', 'the file system fails on a name: it is left out', { path, error: code })
  }
}
