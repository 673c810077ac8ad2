import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  statSync,
} from 'node:fs'
import { basename, dirname } from 'node:path'
import { pathToFileURL } from 'node:url'
import { DatabaseSync } from '@photostructure/sqlite'
import { refusedError, replacedFileError, unavailableError } from './errors.ts'

/**
 * How a file is read. `locked`: with the locks of SQLite. `still`: without locks, because no process that writes a log has the
 * file open, and SQLite would create a log to read it; instead, the file is checked for changes before and after.
 */
type LockMode = 'locked' | 'still'

const [headerLength, magic] = [100, 'SQLite format 3\0']
/**
 * Maximum size of a value in a statement, in bytes: more than any answered value (see `pieceOf`). The length of a longer stored
 * value can still be queried.
 */
const maxComputedBytes = 64 * 1024 * 1024
const companions = ['-wal', '-shm', '-journal']
/** Age below which a file may change again without a new modification time, in milliseconds. */
const unsettledMs = 50

/**
 * Opens a file only for reading: nothing is written, and nothing is created beside it. It is opened only once: after a replacement another
 * process opens the new file.
 *
 * @param isLinkless Whether to refuse a path with symbolic links. Its folders were checked before the process started; links that appear later
 * are found on Linux.
 * @throws ResourceError `unavailable`, with the fault `refused` for anything but a regular file with a database; errors of
 *   SQLite and of the file system.
 */
export function openDatabaseFile(file: string, lockTimeoutMs: number, isLinkless = false) {
  const identity = identify(file)
  const isLogged = checkHeader(file, identity)
  const way = wayOf(file, isLogged)
  const trace = way === 'still' ? traceOf(file) : ''
  const { href } = pathToFileURL(file)
  // A write-ahead log is shared through a file to which readers also write, unless they are told not to.
  const location = `${href}?mode=ro&readonly_shm=1${way === 'still' ? '&immutable=1' : ''}`
  const database = new DatabaseSync(location, {
    readOnly: true,
    timeout: lockTimeoutMs,
    defensive: true,
    enableDoubleQuotedStringLiterals: false,
    readBigInts: true,
    returnArrays: true,
    limits: { length: maxComputedBytes },
  })
  checkDescriptor(identity)
  database.exec('pragma query_only = on; pragma trusted_schema = off; pragma cell_size_check = on')
  database.exec('pragma temp_store = memory; pragma mmap_size = 0')

  /**
   * Checks that the file is still the opened one. Call this before and after a transaction, but never in one: it opens and
   * closes the file, which releases the locks of SQLite.
   *
   * @throws ResourceError `unavailable` (fault `stale`) if the file was replaced or has changed.
   */
  const check = (): void => {
    if (identify(file) !== identity) throw replacedFileError()
    if (isLinkless) checkFolder(file)
    if (way === 'still') {
      if (traceOf(file) !== trace) throw replacedFileError()
    } else if (!isLogged && checkHeader(file, identity)) throw replacedFileError()
  }
  const version = database.prepare('pragma data_version')
  return {
    database,
    check,
    /** Returns a text that changes when the file, or possibly its content, does. Read within a transaction. */
    stamp: (): string => `${identity} ${process.pid} ${String(version.get())} ${trace}`,
  }
}

export type OpenDatabaseFile = ReturnType<typeof openDatabaseFile>

/** Returns the identity of a file, which a rename does not change. @throws ResourceError `unavailable` unless there is a regular file. */
function identify(file: string): string {
  const stats = lstatSync(file, { bigint: true, throwIfNoEntry: false })
  if (stats === undefined) throw unavailableError('The file of the database does not exist. Correct the path.')
  if (stats.isSymbolicLink())
    throw refusedError('The path of the database is a symbolic link. Name the file that it leads to.')
  if (!stats.isFile()) throw refusedError('The path of the database is not a regular file. Correct the path.')
  return `${stats.dev}:${stats.ino}`
}

/** Reads the header of a file. Returns whether its writers use a write-ahead log. */
function checkHeader(file: string, identity: string): boolean {
  const bytes = Buffer.alloc(headerLength)
  const descriptor = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  let length: number
  try {
    const stats = fstatSync(descriptor, { bigint: true })
    if (`${stats.dev}:${stats.ino}` !== identity) throw replacedFileError()
    length = readSync(descriptor, bytes, 0, headerLength, 0)
  } finally {
    closeSync(descriptor)
  }
  // An empty file is a database without content.
  if (length === 0) return false
  if (length < headerLength || bytes.toString('latin1', 0, magic.length) !== magic)
    throw refusedError('The file is not a database of SQLite, or it is encrypted.')
  return bytes[18] === 2 || bytes[19] === 2
}

function wayOf(file: string, isLogged: boolean): LockMode {
  const sizes = new Map<string, number>()
  for (const end of companions) {
    const stats = lstatSync(`${file}${end}`, { throwIfNoEntry: false })
    if (stats === undefined) continue
    if (!stats.isFile()) throw refusedError('The log or journal of the database is not a regular file. Remove it.')
    sizes.set(end, stats.size)
  }
  if (!isLogged || sizes.has('-shm')) return 'locked'
  if ((sizes.get('-wal') ?? 0) === 0) return 'still'
  throw unavailableError(
    'The database has a write-ahead log that was never applied. Open it once with a program that may write to it.',
  )
}

/** Returns a text that changes when the file, its log or its journal does. */
function traceOf(file: string): string {
  const traces = ['', ...companions].map((end) => {
    const stats = lstatSync(`${file}${end}`, { bigint: true, throwIfNoEntry: false })
    if (stats === undefined) return ''
    waitUntilSettled(Number(stats.mtimeMs))
    return `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeNs}:${stats.ctimeNs}`
  })
  return traces.join(' ')
}

function waitUntilSettled(modified: number): void {
  const ageMs = Date.now() - modified
  if (ageMs < 0 || ageMs >= unsettledMs) return
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, unsettledMs - ageMs)
}

/** Checks, on Linux, that the file and its log, as SQLite has opened them, are in the folder of the path, so no link has led elsewhere. */
function checkFolder(file: string): void {
  if (process.platform !== 'linux') return
  for (const name of readdirSync('/proc/self/fd')) {
    const path = linkAt(`/proc/self/fd/${name}`)
    if (path !== undefined && basename(path).startsWith(basename(file)) && dirname(path) !== dirname(file))
      throw replacedFileError()
  }
}

function linkAt(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    // The descriptor with which the folder was read is closed.
    return undefined
  }
}

/** Checks, on Linux, that SQLite has opened the examined file, and not one that has replaced it meanwhile. */
function checkDescriptor(identity: string): void {
  if (process.platform !== 'linux') return
  const isOurs = readdirSync('/proc/self/fd').some((name) => {
    const stats = statSync(`/proc/self/fd/${name}`, { bigint: true, throwIfNoEntry: false })
    return stats !== undefined && `${stats.dev}:${stats.ino}` === identity
  })
  if (!isOurs) throw replacedFileError()
}
