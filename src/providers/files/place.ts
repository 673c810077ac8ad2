import { setMaxListeners } from 'node:events'
import type { BigIntStats } from 'node:fs'
import * as fs from 'node:fs'
import {
  errorCodeOf,
  invalid,
  isResourceError,
  notFound,
  overReadLimitError,
  ResourceError,
  tooLarge,
  unavailable,
} from '../../core/errors.ts'
import { sleep } from '../../core/kit/abort.ts'
import { eventLoopYield } from '../../core/kit/event-loop-yield.ts'
import { headBytes, isText, wholeCharacters } from '../../core/kit/utf8.ts'
import type { Log } from '../../core/log.ts'
import type { ByteRange, Context } from '../../core/provider.ts'

/** A file or directory that was found. On Linux a descriptor (`O_PATH`) holds it open, which stays valid when its name changes. */
export interface Place extends RefCounted {
  /** A file system path of this file or directory; its children are at `${at}/${name}`. */
  readonly at: string
  readonly stats: BigIntStats
  /** Whether the place is known to be on a local file system, so that calls on it answer at once. */
  readonly local: boolean
  /** The kernel's number of the mounted file system that contains the place, if known. */
  readonly mount: string | undefined
  /** Present if `at` is a plain path: runs a call on it, and rejects if a directory on the way may have been replaced meanwhile. */
  readonly steady?: <T>(call: () => Promise<T>, signal: AbortSignal) => Promise<T>
}

export interface ReadHandle {
  /** Reads into a part of the buffer from a position in the file. Returns the number of bytes read; 0 at the end. */
  read(
    buffer: Uint8Array,
    at: { offset: number; length: number; position: number },
    signal: AbortSignal,
  ): Promise<number>
  stat(signal: AbortSignal): Promise<BigIntStats>
  close(): void
}

interface Steps {
  /** Whether a directory is expected. On Linux its mount is then looked up. */
  readonly directory: boolean
  /** With `directory`, on Linux: whether anything else, a symbolic link included, is refused as if it did not exist. */
  readonly only?: boolean
  /** Whether to follow a symbolic link. Used only to find its target, which is not opened for reading. */
  readonly follow?: boolean
}

/** Access to a root and its contents. Errors are `not-found`, `unavailable`, or the reason of an abort. */
export interface RootAccess {
  /** The path at which the root was opened, without symbolic links. The root may have moved since. */
  readonly real: string
  /**
   * Returns the current root. On Linux it is opened again by its path when it was deleted, or its mount has changed. Throws `unavailable` when it is
   * gone.
   */
  root(signal: AbortSignal): Promise<Place>
  /** Opens a child of a directory. Opens a symbolic link itself, not its target, unless `follow` is set. */
  child(parent: Place, name: string, steps: Steps, signal: AbortSignal): Promise<Place>
  /** Returns the current path of a place relative to the root; undefined or `not-found` when it lies outside or is deleted. */
  where(place: Place, signal: AbortSignal): Promise<string | undefined>
  open(place: Place, signal: AbortSignal): Promise<ReadHandle>
  close(): void
}

/** Reference-counted object, which is closed when its last user closes it. It starts with one user. */
export interface RefCounted {
  keep(): void
  close(): void
}

interface CallTerms<T> {
  readonly signal: AbortSignal
  /** Held open until the call has ended, even if the caller aborts, so that its descriptor is not reused during the call. */
  readonly hold?: RefCounted
  readonly late?: (value: T) => void
}

/**
 * Semaphore for blocking calls: a bounded share of the thread pool of Node, by default half of its threads. So a mount that does not answer (NFS,
 * FUSE) cannot block the whole pool.
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
      const promise = new Promise<T>((resolve, reject) => call().then(resolve, reject)).finally(() => {
        release()
        hold?.close()
      })
      return untilAbort(promise, signal, late)
    },
  }
}

export type Pool = ReturnType<typeof createPool>

function threads(): number {
  return Number(process.env.UV_THREADPOOL_SIZE) || 4
}

/** Waits for a result, and rejects when the signal aborts first. `late` receives a result that arrives after the abort. */
export function untilAbort<T>(promise: Promise<T>, signal: AbortSignal, late?: (value: T) => void): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const stop = () => reject(signal.reason)
    const off = onAbort(signal, stop)
    if (signal.aborted) stop()
    promise.then(
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
export function pathErrorAdvice(error: unknown): string | undefined {
  const code = errorCodeOf(error)
  if (code === 'ENOENT' || code === 'ENOTDIR') return 'does not exist. Create it, or give another path.'
  if (code === 'EACCES' || code === 'EPERM') return 'cannot be read by this user. Change its mode or its owner.'
  return undefined
}

/**
 * Converts a failed call's error: `not-found` when nothing can be opened, `unavailable` for errors that may be temporary (EIO, EMFILE).
 * Returns an abort error, and one without an error code, unchanged.
 */
export function toFileError(error: unknown): unknown {
  const code = errorCodeOf(error)
  if (error instanceof ResourceError || code === undefined || code === 'ABORT_ERR') return error
  if (absent.has(code)) return notFound(`the file system reports ${code}`)
  return new ResourceError('unavailable', `The file system reports ${code}.`, {}, { cause: error })
}

/** Error codes for a lack of memory, descriptors or the like in this process or the system. */
const lacks = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'ENOBUFS', 'EAGAIN'])
const maxLogged = 1000

/** Logs a name in a directory that the file system fails on. Throws an error that does not concern this name alone. */
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

export interface PermitOptions {
  readonly hardlinks: boolean
  readonly allowMounts: boolean
}

/**
 * Returns the kind of a file that may be served: regular file or directory. Undefined for devices, sockets and FIFOs, for a deleted file, and,
 * unless the options permit them, for a file with several names and for everything on another device than the root.
 */
export function servableKind(
  stats: BigIntStats,
  device: bigint,
  options: PermitOptions,
): 'file' | 'directory' | undefined {
  if (stats.dev !== device && !options.allowMounts) return undefined
  if (stats.isDirectory()) return 'directory'
  if (!stats.isFile() || stats.nlink === 0n) return undefined
  // A second name may lie anywhere on the device, under other permissions.
  return stats.nlink === 1n || options.hardlinks ? 'file' : undefined
}

export type MaybeStats = fs.BigIntStats | undefined

/**
 * Returns the stats of one child of a directory, without following links; undefined when it is missing or inaccessible.
 *
 * @throws ResourceError `unavailable` when the file system fails.
 */
export async function statFile(place: Place, name: string, pool: Pool, signal: AbortSignal): Promise<MaybeStats> {
  signal.throwIfAborted()
  return place.local ? statFileSync(place, name) : lookInPool(place, [name], pool, signal).then(([stats]) => stats)
}

/**
 * Returns the stats of several children of a directory. On a local file system the calls run on this thread, which is faster,
 * until they turn out to be slow. The pool then does the rest.
 *
 * @param leaveOut Called with a name that the file system fails on. Its stats are then undefined. By default the error is thrown.
 */
export async function statFiles(
  place: Place,
  names: readonly string[],
  pool: Pool,
  signal: AbortSignal,
  leaveOut: LeaveOut = rethrow,
): Promise<readonly MaybeStats[]> {
  const allStats: MaybeStats[] = []
  const start = performance.now()
  while (place.local && allStats.length < names.length) {
    // Calls that take this long probably wait for the disk.
    if (allStats.length % 8 === 0 && performance.now() - start > 5) break
    const name = names[allStats.length] ?? ''
    try {
      allStats.push(statFileSync(place, name))
    } catch (error) {
      leaveOut(name, error)
      allStats.push(undefined)
    }
  }
  if (eventLoopYield.due()) await eventLoopYield.take()
  signal.throwIfAborted()
  if (allStats.length === names.length) return allStats
  return allStats.concat(await lookInPool(place, names.slice(allStats.length), pool, signal, leaveOut))
}

function rethrow(_: string, error: unknown): never {
  throw error
}

export function statFileSync(place: Place, name: string): MaybeStats {
  try {
    return fs.lstatSync(`${place.at}/${name}`, { bigint: true, throwIfNoEntry: false })
  } catch (error) {
    return nothingOr(error)
  }
}

async function lookInPool(
  place: Place,
  names: readonly string[],
  pool: Pool,
  signal: AbortSignal,
  leaveOut: LeaveOut = rethrow,
) {
  const size = Math.ceil(names.length / 4)
  const parts = Array.from({ length: Math.ceil(names.length / size) }, (_, i) => names.slice(i * size, (i + 1) * size))
  const one = (name: string): Promise<MaybeStats> =>
    fs.promises
      .lstat(`${place.at}/${name}`, { bigint: true })
      .catch(nothingOr)
      .catch((error: unknown) => {
        leaveOut(name, error)
        return undefined
      })
  const all = async (part: readonly string[]) => {
    const allStats: MaybeStats[] = []
    for (const name of part) allStats.push(await one(name))
    return allStats
  }
  const statsOfParts = await Promise.all(parts.map((part) => pool.run(() => all(part), { signal, hold: place })))
  return statsOfParts.flat()
}

function nothingOr(error: unknown): undefined {
  const meaning = toFileError(error)
  if (!isResourceError(meaning, 'not-found')) throw meaning
}

let identity = { user: -1, groups: new Set<bigint>() }

/** Returns the user and groups of this process, which may drop privileges while it runs. */
function currentIdentity(): typeof identity {
  const user = process.geteuid?.() ?? 0
  if (user !== identity.user) {
    const ids = [...(process.getgroups?.() ?? []), process.getegid?.() ?? 0]
    identity = { user, groups: new Set(ids.map(BigInt)) }
  }
  return identity
}

/**
 * Whether the mode of a file lets this process read it (a directory: read and search it). If not, an access control list may still allow it,
 * which only access(2) can tell.
 */
export function modeAllowsReading(stats: BigIntStats): boolean {
  const rights = stats.isDirectory() ? 0o5n : 0o4n
  const everybody = rights * 0o111n
  if ((stats.mode & everybody) === everybody) return true
  const { user, groups } = currentIdentity()
  if (user === 0) return true
  const shift = stats.uid === BigInt(user) ? 6n : groups.has(stats.gid) ? 3n : 0n
  return ((stats.mode >> shift) & rights) === rights
}

/** Returns a version stamp of a file or directory. Two states within one tick of the file system's clock may have the same stamp. */
export function versionStamp(stats: BigIntStats): string {
  const { mtimeNs, ctimeNs, size, ino } = stats
  return `${mtimeNs.toString(36)}.${ctimeNs.toString(36)}.${size.toString(36)}.${ino.toString(36)}`
}

/** Whether two stats have the same {@link versionStamp}. */
export function hasSameStamp(a: BigIntStats, b: BigIntStats): boolean {
  return a.mtimeNs === b.mtimeNs && a.ctimeNs === b.ctimeNs && a.size === b.size && a.ino === b.ino
}

/** Upper bound of the clock tick of file systems, in milliseconds: two changes within one tick (4 to 10 ms) leave the same stamp. */
export const tickMs = 20

/**
 * Whether the last change was long enough before a time (ms since 1970) that any later change gives another stamp. Content read before that may be
 * stale although the stamp is unchanged. A time of change in the future is ignored.
 *
 * @param time Time at which the stats were taken, or when that is not known, a time before it.
 * @param until Time after the stats were taken. A thread that waits for the processor may take them much later than `time`.
 */
export function isSettled(stats: BigIntStats, time: number, withinMs = tickMs, until = time): boolean {
  for (const changed of [Number(stats.mtimeMs), Number(stats.ctimeMs)])
    if (changed >= time - withinMs && changed <= until + withinMs) return false
  return true
}

const maxDirectories = 2000
const maxFacts = 10_000
/** How long a directory must be unchanged before its times are trusted, in milliseconds: FAT, for example, counts time in steps of 2 s. */
export const settledMs = 3000

/**
 * Cache of facts about the names in directories of local file systems, such as that there is no `.gitignore`. A fact is valid until the times of the
 * directory change, as they do when a name is added.
 */
export function createDirectoryFacts(clock: Pick<DateConstructor, 'now'> = Date) {
  const directories = new Map<bigint, { readonly stats: BigIntStats; readonly facts: Set<string> }>()

  const of = ({ stats, local }: Place): Set<string> | undefined => {
    const directory = local ? directories.get(stats.ino) : undefined
    return directory !== undefined && directory.stats.dev === stats.dev && hasSameStamp(directory.stats, stats)
      ? directory.facts
      : undefined
  }

  return {
    of,
    /** Records a fact that was found after the stats of the place were taken. */
    note: (directory: Place, fact: string): void => {
      const { stats, local } = directory
      if (!local || !isSettled(stats, clock.now(), settledMs)) return
      const facts = of(directory) ?? new Set()
      if (directories.size >= maxDirectories) directories.clear()
      // Clients can request any name, so the set must be bounded.
      if (facts.size >= maxFacts) facts.clear()
      directories.set(stats.ino, { stats, facts: facts.add(fact) })
    },
  }
}

interface Bytes {
  readonly bytes: Buffer
  readonly start: number
  readonly head: Buffer
  readonly stats: BigIntStats
}

const chunkBytes = 1024 * 1024
const attempts = 6

/**
 * Reads a file, or a range of it, as it was at one moment.
 *
 * Times and size are compared before and after; when they differ, the file is read again, with at most six attempts. A file that only grows, like a
 * log, is read up to its size when the read began. A file of which only `ctime` changes is accepted when two reads are equal.
 *
 * @param limit Maximum number of bytes read.
 * @throws ResourceError `too-large` above the limit, `invalid` (reason `range`) for a range that begins beyond the end, `unavailable` for a file that
 * does not stop changing, {@link overReadLimitError} for more bytes than `most`.
 */
export async function readStable(
  handle: ReadHandle,
  range: ByteRange | undefined,
  limit: number,
  { signal, most = limit }: Pick<Context, 'signal' | 'most'>,
): Promise<Bytes> {
  let previous: Bytes | undefined
  for (let attempt = 0; attempt < attempts; attempt++) {
    let stats = await handle.stat(signal)
    let quiet = isQuiet(stats)
    if (!quiet) {
      await sleep(tickMs + 1, signal)
      signal.throwIfAborted()
      stats = await handle.stat(signal)
      quiet = isQuiet(stats)
    }
    const { start, end } = rangeWithin(range, Number(stats.size), limit)
    if (end - start > most) throw overReadLimitError(end - start)
    const bytes = await readPart(handle, start, end, range === undefined, signal)
    const hasHead = start === 0 && (range === undefined || bytes.length >= headBytes)
    const head = hasHead ? bytes.subarray(0, headBytes) : await readPart(handle, 0, headBytes, false, signal)
    const stableBytes: Bytes = { bytes: bytes.subarray(0, end - start), start, head, stats }
    const after = await handle.stat(signal)
    if (quiet && bytes.length === end - start && hasSameStamp(after, stats)) return stableBytes
    const complete = stableBytes.bytes.length === end - start
    if (complete && previous !== undefined && hasGrown(previous, stableBytes)) return stableBytes
    if (complete && previous !== undefined && isUntouched(previous, stableBytes, after)) return stableBytes
    previous = stableBytes
  }
  throw unavailable('The file changes faster than it can be read. Try again later.')
}

/**
 * Returns the requested range within a resource of `size` bytes, of which at most `limit` are read at once.
 *
 * @throws ResourceError `invalid` (reason `range`, with `size`) for a malformed range or one that begins after the end,
 * `too-large` (with `size` and `limit`) for one that is longer than the limit.
 */
export function rangeWithin(
  range: ByteRange | undefined,
  size: number,
  limit: number,
): { readonly start: number; readonly end: number } {
  const { start, end: lastByte = size } = range ?? { start: 0 }
  const end = Math.min(lastByte, size)
  if (![start, lastByte].every(Number.isSafeInteger) || start < 0 || lastByte < start)
    throw invalid(
      'A byte range must be two whole numbers, of which the first is not larger than the second.',
      'range',
      { size },
    )
  if (start > 0 && start >= size)
    throw invalid(`The range begins after the end of the resource, which has ${size} bytes.`, 'range', { size })
  if (end - start <= limit) return { start, end }
  const what = range === undefined ? 'The resource' : 'The range'
  throw tooLarge(
    `${what} has ${end - start} bytes, and at most ${limit} are read at once. ` +
      `Ask for a part of it: ?bytes=0-${limit - 1}, or ?lines=1-200 for text.`,
    { size, limit },
  )
}

function hasGrown(before: Bytes, after: Bytes): boolean {
  if (after.stats.size <= before.stats.size || after.bytes.length < before.bytes.length) return false
  return after.bytes.subarray(0, before.bytes.length).equals(before.bytes)
}

/** Whether a file was only renamed or given other permissions between two reads, which changes only `ctime`. */
function isUntouched(before: Bytes, bytes: Bytes, after: BigIntStats): boolean {
  const { mtimeNs, size } = before.stats
  const same = [bytes.stats, after].every((stats) => stats.mtimeNs === mtimeNs && stats.size === size)
  return same && isQuiet(before.stats) && bytes.bytes.equals(before.bytes)
}

/** Whether a file was last modified more than a tick of the clock ago. A modification time in the future is accepted, too. */
function isQuiet({ mtimeMs }: BigIntStats): boolean {
  return Math.abs(Date.now() - Number(mtimeMs)) > tickMs
}

/** @param beyond Whether to try to read one byte more: a file that grew is then longer than its size said. */
async function readPart(handle: ReadHandle, start: number, end: number, beyond: boolean, signal: AbortSignal) {
  const buffer = Buffer.allocUnsafe(end - start + (beyond ? 1 : 0))
  let length = 0
  while (length < buffer.length) {
    const part = { offset: length, length: Math.min(chunkBytes, buffer.length - length), position: start + length }
    const count = await handle.read(buffer, part, signal)
    length += count
    // A short read means the end of the file only if all expected bytes have been read; before that it is merely short.
    if (count === 0 || (count < part.length && length >= end - start)) break
  }
  return buffer.subarray(0, length)
}

interface TextRange {
  readonly text: string
  readonly start: number
  readonly end: number
}

/**
 * Decodes bytes of a file as text; undefined when they are binary. A range is text only when the start of the file is too, and is then cut to
 * whole characters.
 */
export function decodeTextRange({ bytes, start, head }: Omit<Bytes, 'stats'>, whole: boolean): TextRange | undefined {
  const { from, to } = whole ? { from: 0, to: bytes.length } : wholeCharacters(bytes)
  const part = bytes.subarray(from, to)
  if (!isText(part) || (part.length === 0 && bytes.length > 0)) return undefined
  if (!whole && !isText(head.subarray(0, wholeCharacters(head).to))) return undefined
  const mark = start === 0 && part[0] === 0xef && part[1] === 0xbb && part[2] === 0xbf ? 3 : 0
  return { text: part.toString('utf8', mark), start: start + from + mark, end: start + to }
}
