import { isUtf8 } from 'node:buffer'
import type { ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { isResourceError, notFound, ResourceError, unavailable } from '../../core/errors.ts'
import { createSlices, eventLoopYield, sortInSlices, type TimeSlices } from '../../core/kit/event-loop-yield.ts'
import { createLruCache } from '../../core/kit/lru.ts'
import { headBytes, isText, wholeCharacters } from '../../core/kit/utf8.ts'
import { segmentFault } from '../../core/path.ts'
import type { ByteRange, Content } from '../../core/provider.ts'
import { mimeTypeOfFile } from '../files/options.ts'
import { rangeWithin } from '../files/place.ts'
import { endProcess, isOutOfMemory, type Launcher, memoryError, missingObjectFault } from './launch.ts'

export type CatFileQueue = ReturnType<typeof createCatFileQueue>

interface Request {
  readonly name: string
  readonly limit: number
  readonly resolve: (found: BatchObject | undefined) => void
  readonly reject: (error: unknown) => void
  deaths: number
}

const maxComplaint = 2000
/** Maximum number of bytes of an object over the limit that are read and discarded; above it a new process is cheaper. */
const maxDiscardedBytes = 4 * 1024 * 1024
/** Time without a request after which the process is ended, in milliseconds: it holds packs open, even deleted ones. */
const idleMs = 60_000

/** `--batch` returns contents, `--batch-check` only metadata. */
type Mode = '--batch' | '--batch-check'

export function createCatFileQueue(mode: Mode, start: (args: readonly string[]) => ChildProcess, timeoutMs: number) {
  const waiting: Request[] = []
  let child: ChildProcess | undefined
  let timer: NodeJS.Timeout | undefined
  let closed = false
  let headSince = 0
  let unsent = ''

  /** Writes the requests of one turn of the event loop together. */
  const send = () => {
    if (unsent !== '') child?.stdin?.write(unsent)
    unsent = ''
  }

  /** Checks the time-out of the first request, or with an empty queue the idle time-out of the process. */
  const check = () => {
    timer = undefined
    if (child === undefined) return
    const idle = waiting.length === 0
    const remainingMs = headSince + (idle ? idleMs : timeoutMs) - performance.now()
    if (remainingMs > 0) return arm(remainingMs)
    if (!idle) waiting.shift()?.reject(unavailable(`git cat-file did not answer within ${timeoutMs} ms.`))
    restart()
  }

  const arm = (ms: number) => {
    timer = setTimeout(check, Math.min(ms, timeoutMs)).unref()
  }

  const watch = () => {
    headSince = performance.now()
    if (timer === undefined && child !== undefined) arm(timeoutMs)
  }

  const launch = () => {
    let started: ChildProcess
    let complaint = ''
    try {
      started = start(['cat-file', mode])
    } catch (error) {
      for (const { reject } of waiting.splice(0)) reject(error)
      return
    }
    child = started
    const reader = createAnswerReader(mode === '--batch', {
      limit: () => waiting[0]?.limit ?? 0,
      answer: (object) => {
        waiting.shift()?.resolve(object)
        watch()
      },
      tooLarge: (object) => {
        waiting.shift()?.resolve(object)
        if (object.size <= maxDiscardedBytes) return watch()
        restart()
      },
      // After output in another format, later answers could not be matched to requests.
      broken: () => end(started, complaint),
    })
    started.stdout?.on('data', (chunk: Buffer) => {
      if (child === started) reader(chunk)
    })
    started.stderr?.setEncoding('utf8').on('data', (text: string) => {
      complaint = (complaint + text).slice(-maxComplaint)
    })
    started.once('error', () => end(started, complaint))
    started.once('close', () => end(started, complaint))
    unsent = waiting.map(({ name }) => `${name}\n`).join('')
    send()
    watch()
  }

  const end = (childProcess: ChildProcess, complaint: string) => {
    if (child !== childProcess) return endProcess(childProcess)
    const fault = recordProcessDeath(waiting[0], complaint)
    if (fault !== undefined) waiting.shift()?.reject(fault)
    restart()
  }

  const restart = (): void => {
    const childProcess = child
    child = undefined
    if (childProcess !== undefined) endProcess(childProcess)
    if (waiting.length > 0 && !closed) launch()
    else watch()
  }

  return {
    /** Returns how long the first request of the queue has waited for its answer, in milliseconds; 0 when the queue is empty. */
    delay: () => (waiting.length === 0 ? 0 : performance.now() - headSince),
    /**
     * Requests an object by its id, or by `id^{type}`. Returns undefined when it does not exist.
     *
     * @param limit Maximum size in bytes of contents to return; those of a larger object are left out.
     * @throws ResourceError `unavailable` when git dies over this request twice or times out; `too-large` when git needs more memory for the
     * object than it may use.
     */
    ask: (name: string, limit: number): Promise<BatchObject | undefined> =>
      new Promise((resolve, reject) => {
        if (closed) return reject(closedError())
        waiting.push({ name, limit, resolve, reject, deaths: 0 })
        if (child === undefined) return launch()
        if (unsent === '') process.nextTick(send)
        unsent += `${name}\n`
        if (waiting.length === 1) watch()
      }),
    /** Ends the process; the next request starts a new one. Waiting requests are sent again. */
    restart,
    close: (): void => {
      closed = true
      clearTimeout(timer)
      for (const { reject } of waiting.splice(0)) reject(closedError())
      restart()
    },
  }
}

const closedError = () => unavailable('The git provider is closed.')

function recordProcessDeath(head: Request | undefined, complaint: string): ResourceError | undefined {
  if (head === undefined) return undefined
  if (isOutOfMemory(complaint)) return memoryError()
  return ++head.deaths > 1 ? damagedObjectError('git cat-file ended while it read an object.') : undefined
}

const damagedFault = 'damaged-object'

/** Returns the error for a damaged object: its bytes do not match its id, or git ends when it reads the object. */
export function damagedObjectError(message: string): ResourceError {
  return unavailable(`${message} The repository may be damaged: run git fsck there.`, { fault: damagedFault })
}

export function isDamagedObjectError(error: unknown): boolean {
  return isResourceError(error, 'unavailable') && error.detail.fault === damagedFault
}

interface AnswerEvents {
  readonly limit: () => number
  readonly answer: (found: BatchObject | undefined) => void
  /** Called for an object larger than the limit. Its bytes follow and are skipped. */
  readonly tooLarge: (found: BatchObject) => void
  readonly broken: () => void
}

const maxHeaderBytes = 1024

/**
 * Creates a parser of the output of `git cat-file --batch` or `--batch-check`, which gets chunks of any size: `id type size`, and with
 * `contents` the bytes and a line feed; or `name missing`.
 */
export function createAnswerReader(contents: boolean, events: AnswerEvents): (chunk: Buffer) => void {
  let header = ''
  let current: BatchObject | undefined
  let gathered: { readonly bytes: Buffer; filled: number } | undefined
  /** Number of bytes to skip: the line feed after an object, or a whole object that is too large. */
  let skip = 0
  let over = false

  const begin = (line: string) => {
    const match = /^([0-9a-f]{40,64}) (\w+) (\d+)$/.exec(line)
    if (match === null) {
      if (/ (?:missing|ambiguous)$/.test(line)) return events.answer(undefined)
      over = true
      return events.broken()
    }
    const [, oid = '', type = '', length = ''] = match
    const facts: BatchObject = { oid, type, size: Number(length) }
    if (!contents) return events.answer(facts)
    if (facts.size > events.limit()) {
      skip = facts.size + 1
      return events.tooLarge(facts)
    }
    current = facts
  }

  const finish = (object: BatchObject, bytes: Buffer) => {
    current = undefined
    gathered = undefined
    skip = 1
    events.answer({ ...object, bytes })
  }

  const gather = (object: BatchObject, chunk: Buffer, at: number): number => {
    if (gathered === undefined && chunk.length - at >= object.size) {
      finish(object, chunk.subarray(at, at + object.size))
      return object.size
    }
    gathered ??= { bytes: Buffer.allocUnsafe(object.size), filled: 0 }
    const copied = chunk.copy(gathered.bytes, gathered.filled, at)
    gathered.filled += copied
    if (gathered.filled === object.size) finish(object, gathered.bytes)
    return copied
  }

  return (chunk) => {
    for (let at = 0; at < chunk.length && !over; ) {
      if (skip > 0) {
        const passed = Math.min(skip, chunk.length - at)
        skip -= passed
        at += passed
      } else if (current !== undefined) {
        at += gather(current, chunk, at)
      } else {
        const end = chunk.indexOf(0x0a, at)
        header += chunk.toString('latin1', at, end === -1 ? chunk.length : end)
        at = end === -1 ? chunk.length : end + 1
        if (end === -1 && header.length <= maxHeaderBytes) return
        const line = header
        header = ''
        begin(line)
      }
    }
  }
}

export interface BatchObject {
  readonly oid: string
  readonly type: string
  readonly size: number
  /** Undefined when only the metadata was requested, or when the object is over the limit. */
  readonly bytes?: Buffer
}

export type ObjectFormat = 'sha1' | 'sha256'

/** Maximum number of processes that return contents, started on demand; one more returns sizes and types. */
const readers = 3
/** Time in milliseconds after which a process that is busy with one object gets no further requests, unless the others are busy for longer. */
const busyTimeoutMs = 60
const maxFacts = 50_000
const hashPieceBytes = 1024 * 1024
const maxTooMuch = 1000
const maxKeptBytes = 32 * 1024 * 1024
const maxKeptObjectBytes = 4 * 1024 * 1024

export function createObjectDatabase(launcher: Launcher, format: ObjectFormat, timeoutMs: number) {
  const make = (mode: '--batch' | '--batch-check') => createCatFileQueue(mode, launcher.start, timeoutMs)
  const contents = Array.from({ length: readers }, () => make('--batch'))
  const checker = make('--batch-check')
  const cache = createLruCache<BatchObject>(maxFacts)
  /** Objects that exceed git's memory limit: git would die over each of them again. */
  const tooMuch = createLruCache<{ readonly error: ResourceError }>(maxTooMuch)
  const contentCache = createLruCache<BatchObject>(maxKeptBytes, ({ size }) => size + 200)

  /**
   * One process does most of the work, because it caches the base objects of deltas. Another one takes over while the first is busy with a
   * large object.
   */
  const readiest = (): CatFileQueue => {
    const quick = contents.find((batch) => batch.delay() < busyTimeoutMs)
    return quick ?? contents.reduce((best, batch) => (batch.delay() < best.delay() ? batch : best))
  }

  const check = async (name: string, { bytes, oid, type, size }: BatchObject): Promise<void> => {
    if (bytes === undefined) return
    const hash = createHash(format).update(`${type} ${size}\0`)
    for (let at = 0; at < bytes.length; at += hashPieceBytes) {
      hash.update(bytes.subarray(at, at + hashPieceBytes))
      if (eventLoopYield.due()) await eventLoopYield.take()
    }
    if (hash.digest('hex') !== oid || (oid !== name && !name.includes('^')))
      throw damagedObjectError(`The contents of the object ${oid} do not match its id.`)
  }

  return {
    /** Returns the type and size of an object. `name` is an id, or `id^{type}`. Undefined when it does not exist. */
    info: async (name: string): Promise<BatchObject | undefined> => {
      const remembered = cache.get(name)
      if (remembered !== undefined) return remembered
      const object = await checker.ask(name, 0)
      if (object !== undefined) cache.set(name, object)
      return object
    },
    /**
     * Reads an object of at most `limit` bytes; for a larger one, only its metadata. Verifies the contents against the id. With `keep`, small
     * contents are cached.
     *
     * @throws ResourceError `not-found` (see {@link isMissingObjectError}) when it does not exist, `unavailable` for a damaged object, `too-large`
     * when git needs more memory for the object than it may use.
     */
    read: async (name: string, limit: number, keep = false): Promise<BatchObject> => {
      const remembered = contentCache.get(name)
      if (remembered !== undefined && remembered.size <= limit) return remembered
      const facts = cache.get(name)
      if (facts !== undefined && facts.size > limit) return facts
      const failure = tooMuch.get(name)
      if (failure !== undefined) throw failure.error
      const object = await readiest()
        .ask(name, limit)
        .catch((error: unknown) => {
          if (isResourceError(error, 'too-large')) tooMuch.set(name, { error })
          throw error
        })
      if (object === undefined) throw missingObjectError(name)
      await check(name, object)
      cache.set(name, { oid: object.oid, type: object.type, size: object.size })
      // A copy: the bytes may be a slice of a larger chunk of output.
      if (keep && object.bytes !== undefined && object.size <= maxKeptObjectBytes)
        contentCache.set(name, { ...object, bytes: Buffer.from(object.bytes) })
      return object
    },
    /** Restarts the processes, so that they see the packs that are on disk now. */
    restart: (): void => {
      for (const batch of [...contents, checker]) batch.restart()
    },
    close: (): void => {
      for (const batch of [...contents, checker]) batch.close()
      cache.clear()
      contentCache.clear()
    },
  }
}

export type ObjectDatabase = ReturnType<typeof createObjectDatabase>

export function missingObjectError(name: string): ResourceError {
  return new ResourceError('not-found', `the object ${name} is not in the repository`, { fault: missingObjectFault })
}

/** Whether an error means a missing object: it may have been packed or pruned meanwhile, or never fetched. */
export function isMissingObjectError(error: unknown): boolean {
  return isResourceError(error) && error.detail.fault === missingObjectFault
}

/** Returns the contents of an object. @throws ResourceError `not-found` if the object was over the limit, so that it has none. */
export function wholeBytes({ oid, bytes }: BatchObject): Buffer {
  if (bytes !== undefined) return bytes
  throw notFound(`the object ${oid} is too large for an object of its kind`)
}

const kinds: readonly TreeKind[] = ['file', 'directory', 'link', 'submodule']
const [file, directory, link, submodule] = [0, 1, 2, 3] as const
/** Minimum size of an entry without its id, in bytes: `40000 a` and a NUL. */
const fewestBytes = 8

/** The entries of a tree in typed arrays: the offset of each name in the bytes of the tree, and its kind. */
interface Columns {
  readonly bytes: Buffer
  readonly length: number
  readonly starts: Uint32Array
  readonly kinds: Uint8Array
}

/**
 * Parses a tree object: a sequence of `mode name NUL id`. The result keeps the bytes, and decodes entries on demand.
 *
 * Trees are untrusted, so their order is checked, and some names are left out: those that no path can hold (`..`, with a slash, with a control
 * character, not UTF-8), `.git` in any letter case, and its alias on Windows. Of entries with the same name one is kept: a file, if there is one.
 */
export async function parseTree(oid: string, bytes: Buffer, idBytes: number, slices: TimeSlices): Promise<GitTree> {
  const blob = await readColumns(bytes, idBytes, slices)
  const columns = await withoutTwins(await inPathOrder(blob, slices), slices)
  const nameAt = (index: number): string => {
    const start = columns.starts[index] ?? 0
    return bytes.toString('utf8', start, bytes.indexOf(0, start))
  }
  const kindAt = (index: number): TreeKind => kinds[columns.kinds[index] ?? file] ?? 'file'
  return {
    oid,
    length: columns.length,
    weight: bytes.length + 5 * columns.length + 200,
    keyAt: (index) => (columns.kinds[index] === directory ? `${nameAt(index)}/` : nameAt(index)),
    entryAt: (index): TreeEntry | undefined => {
      if (index < 0 || index >= columns.length) return undefined
      const end = bytes.indexOf(0, columns.starts[index] ?? 0) + 1
      return { name: nameAt(index), kind: kindAt(index), oid: bytes.toString('hex', end, end + idBytes) }
    },
    indexOf: (name, isDirectory) =>
      name.includes('\0') ? -1 : indexIn(columns, Buffer.from(`${name}\0`), 0, isDirectory),
  }
}

async function readColumns(bytes: Buffer, idBytes: number, slices: TimeSlices): Promise<Columns> {
  const room = Math.ceil(bytes.length / (fewestBytes + idBytes))
  const columns = { bytes, starts: new Uint32Array(room), kinds: new Uint8Array(room) }
  let length = 0
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(0x20, at)
    const nul = bytes.indexOf(0, space)
    const end = nul + 1 + idBytes
    if (space === -1 || nul === -1 || end > bytes.length) break
    const kind = parseEntryKind(bytes, at, space)
    if (kind !== undefined && isServed(bytes, space + 1, nul)) {
      columns.starts[length] = space + 1
      columns.kinds[length] = kind
      length++
    }
    at = end
    if (slices.due()) await slices.rest()
  }
  return { ...columns, length }
}

/** Returns the entries in path order; the same object if git stored them so. */
async function inPathOrder(columns: Columns, slices: TimeSlices): Promise<Columns> {
  let isSorted = true
  for (let i = 1; i < columns.length && isSorted; i++) {
    isSorted = compareEntries(columns, i - 1, i) <= 0
    if (slices.due()) await slices.rest()
  }
  if (isSorted) return columns
  const indices: number[] = []
  for (let i = 0; i < columns.length; i++) {
    indices.push(i)
    if (slices.due()) await slices.rest()
  }
  return select(columns, await sortInSlices(indices, (a, b) => compareEntries(columns, a, b), slices), slices)
}

async function withoutTwins(columns: Columns, slices: TimeSlices): Promise<Columns> {
  const { bytes, length, starts } = columns
  const indexes: number[] = []
  for (let i = 0; i < length; i++) {
    const isDirectory = columns.kinds[i] === directory
    const isTwin =
      (i > 0 && compareEntries(columns, i - 1, i) === 0) ||
      (isDirectory && indexIn(columns, bytes, starts[i] ?? 0, false) !== -1)
    if (!isTwin) indexes.push(i)
    if (slices.due()) await slices.rest()
  }
  return indexes.length === length ? columns : select(columns, indexes, slices)
}

async function select(columns: Columns, indices: readonly number[], slices: TimeSlices): Promise<Columns> {
  const starts = new Uint32Array(indices.length)
  const kindColumn = new Uint8Array(indices.length)
  for (const [position, index] of indices.entries()) {
    starts[position] = columns.starts[index] ?? 0
    kindColumn[position] = columns.kinds[index] ?? file
    if (slices.due()) await slices.rest()
  }
  return { bytes: columns.bytes, length: indices.length, starts, kinds: kindColumn }
}

function compareEntries({ bytes, starts, kinds: all }: Columns, i: number, j: number): number {
  return compareNames(bytes, starts[i] ?? 0, all[i] === directory, bytes, starts[j] ?? 0, all[j] === directory)
}

/** Compares two NUL-terminated names as parts of paths: a directory has a final `/`. */
function compareNames(a: Buffer, from: number, isDirA: boolean, b: Buffer, start: number, isDirB: boolean): number {
  for (let k = 0; ; k++) {
    const [x, y] = [a[from + k] ?? 0, b[start + k] ?? 0]
    if (x !== 0 && x === y) continue
    const [p, q] = [x === 0 ? nameEndByte(isDirA) : x, y === 0 ? nameEndByte(isDirB) : y]
    return p - q
  }
}

/** Returns the value that stands for the end of a name: `/` for a directory, and for a file a value before all bytes. */
function nameEndByte(isDirectory: boolean): number {
  return isDirectory ? 0x2f : -1
}

function indexIn(columns: Columns, name: Buffer, start: number, isDirectory: boolean): number {
  let [low, high] = [0, columns.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    const isDir = columns.kinds[middle] === directory
    const order = compareNames(columns.bytes, columns.starts[middle] ?? 0, isDir, name, start, isDirectory)
    if (order === 0) return middle
    if (order < 0) low = middle + 1
    else high = middle
  }
  return -1
}

/** Reads the mode of an entry, in octal digits, and returns its kind; undefined for a mode that git does not write. */
function parseEntryKind(bytes: Buffer, start: number, end: number): number | undefined {
  const length = end - start
  if (length !== 5 && length !== 6) return undefined
  let mode = 0
  for (let at = start; at < end; at++) {
    const digit = (bytes[at] ?? 0) - 0x30
    if (digit < 0 || digit > 7) return undefined
    mode = mode * 8 + digit
  }
  if (mode === 0o40000) return directory
  if (length === 5) return undefined
  if (mode === 0o120000) return link
  if (mode === 0o160000) return submodule
  return mode >> 9 === 0o100 ? file : undefined
}

/** Whether a name is served. Plain ASCII names need no decoding. */
function isServed(bytes: Buffer, start: number, end: number): boolean {
  const first = bytes[start] ?? 0
  let plain = end > start && first !== 0x2e && first !== 0x67 && first !== 0x47
  for (let at = start; at < end && plain; at++) {
    const byte = bytes[at] ?? 0
    plain = byte >= 0x20 && byte < 0x7f && byte !== 0x2f
  }
  if (plain) return true
  const name = bytes.toString('utf8', start, end)
  // A replacement character comes from invalid UTF-8, unless the text itself contains one.
  if (name.includes('\ufffd') && !isUtf8(bytes.subarray(start, end))) return false
  return segmentFault(name) === undefined && !/^(?:\.git|git~1)$/i.test(name)
}

type TreeKind = 'file' | 'directory' | 'link' | 'submodule'

export interface TreeEntry {
  readonly name: string
  readonly kind: TreeKind
  readonly oid: string
}

export interface GitTree {
  readonly oid: string
  /** Number of entries, which are in path order, without duplicates. */
  readonly length: number
  /** Approximate memory use, in bytes. */
  readonly weight: number
  /** Returns the name of an entry; a directory's name ends in `/`. */
  keyAt(index: number): string
  entryAt(index: number): TreeEntry | undefined
  /** Returns the index of the directory, or of the other entry, with a name; -1 when there is none. */
  indexOf(name: string, isDirectory: boolean): number
}

const maxTreeBytes = 64 * 1024 * 1024
const maxRememberedBytes = 64 * 1024 * 1024
const maxRememberedNames = 10_000
const maxDepth = 256
/** Maximum length of a served path below a commit, in UTF-16 code units. */
const maxPath = 4096

export function createTreeReader(objects: ObjectDatabase, idBytes: number, onEntries?: (entries: number) => void) {
  const cache = createLruCache<GitTree>(maxRememberedBytes, ({ weight }) => weight)
  const ids = createLruCache<string>(maxRememberedNames)

  const loading = new Map<string, Promise<GitTree>>()

  const load = async (name: string): Promise<GitTree> => {
    const object = await objects.read(name, maxTreeBytes)
    const tree =
      cache.get(object.oid) ?? (await parseTree(object.oid, ownBytes(object), idBytes, createSlices(onEntries)))
    cache.set(object.oid, tree)
    if (name !== object.oid) ids.set(name, object.oid)
    return tree
  }

  const readTree = async (name: string): Promise<GitTree> => {
    const remembered = cache.get(ids.get(name) ?? name)
    if (remembered !== undefined) return remembered
    const tree = loading.get(name) ?? load(name).finally(() => loading.delete(name))
    loading.set(name, tree)
    return tree
  }

  return {
    read: readTree,
    /** Finds the entry at a path below a tree; undefined when there is none. The path is not empty, and has no final `/`. */
    find: async (name: string, path: string): Promise<TreeEntry | undefined> => {
      if (isTooDeep(path)) return undefined
      const segments = path.split('/')
      let at = name
      for (const [index, segment] of segments.entries()) {
        const entry = entryIn(await readTree(at), segment)
        if (entry === undefined || index === segments.length - 1) return entry
        if (entry.kind !== 'directory') return undefined
        at = entry.oid
      }
      return undefined
    },
  }
}

export type TreeReader = ReturnType<typeof createTreeReader>

export function isTooDeep(path: string): boolean {
  return path.length > maxPath || path.split('/').length > maxDepth
}

/** Returns the contents of an object, copied if they would otherwise keep a much larger chunk of output in memory. */
function ownBytes(object: BatchObject): Buffer {
  const bytes = wholeBytes(object)
  return bytes.buffer.byteLength > 2 * bytes.length ? Buffer.from(bytes) : bytes
}

function entryIn(tree: GitTree, name: string): TreeEntry | undefined {
  const index = tree.indexOf(name, false)
  return tree.entryAt(index === -1 ? tree.indexOf(name, true) : index)
}

interface BlobPart {
  readonly bytes: Buffer
  readonly start: number
  readonly head: Buffer
  readonly size: number
  /** Whether the file, or at least its head, is text. */
  readonly isText: boolean
}

/**
 * Creates a function that reads the content of a file, a link or a submodule. The content of a link is its target path, and the link is never
 * followed; the content of a submodule is the id of its commit. It throws `too-large` above the limit, `invalid` (reason `range`) for a range
 * that begins beyond the end, and `not-found` for an object that is not in the repository.
 */
export function createBlobReader(launcher: Launcher, objects: ObjectDatabase, maxBytes: number) {
  const readPart = async (oid: string, range: ByteRange | undefined, signal: AbortSignal): Promise<BlobPart> => {
    const object = await objects.read(oid, maxBytes, range !== undefined)
    if (object.type !== 'blob') throw notFound('not a file')
    const { size, bytes } = object
    const { start, end } = rangeWithin(range, size, maxBytes)
    if (bytes !== undefined) {
      const head = bytes.subarray(0, headBytes)
      const isWhole = range === undefined
      return {
        bytes: bytes.subarray(start, end),
        start,
        head,
        size,
        isText: isWhole ? isText(bytes) : isText(head.subarray(0, wholeCharacters(head).to)),
      }
    }
    return readFar(launcher, oid, { start, end, size }, signal)
  }

  return async (
    { name, kind, oid }: TreeEntry,
    range: ByteRange | undefined,
    signal: AbortSignal,
  ): Promise<Content> => {
    if (kind === 'submodule') return submoduleContent(oid)
    const part = await readPart(oid, range, signal)
    const text = decodeBlobPart(part, range === undefined)
    const where = text ?? { start: part.start, end: part.start + part.bytes.length }
    const byName = { text: text !== undefined, head: part.head }
    return {
      version: oid,
      size: part.size,
      mimeType: kind === 'link' ? 'inode/symlink' : mimeTypeOfFile(name, byName),
      ...(range === undefined ? {} : { range: { start: where.start, end: where.end } }),
      ...(text === undefined ? { bytes: part.bytes } : { text: text.text }),
    }
  }
}

function submoduleContent(oid: string): Content {
  return {
    text: `Submodule at commit ${oid}, whose files are in a repository of their own.\n`,
    version: oid,
    mimeType: 'text/plain',
  }
}

/** Reads a range of a file that is too large to hold: the bytes before its end are streamed through. */
async function readFar(
  launcher: Launcher,
  oid: string,
  { start, end, size }: { readonly start: number; readonly end: number; readonly size: number },
  signal: AbortSignal,
): Promise<BlobPart> {
  const head: Buffer[] = []
  const pieces: Buffer[] = []
  let at = 0
  await launcher.pipe({ args: ['cat-file', 'blob', '--end-of-options', oid], signal }, (chunk) => {
    if (at < headBytes) head.push(chunk.subarray(0, headBytes - at))
    if (at < end && at + chunk.length > start) pieces.push(chunk.subarray(Math.max(0, start - at), end - at))
    at += chunk.length
    return at < Math.max(end, headBytes)
  })
  const bytes = Buffer.concat(pieces)
  if (bytes.length !== end - start)
    throw unavailable('A file could not be read to its end. Run git fsck in the repository.')
  const beginning = Buffer.concat(head)
  return { bytes, start, head: beginning, size, isText: isText(beginning.subarray(0, wholeCharacters(beginning).to)) }
}

/** Decodes a part as text, cut to whole characters; undefined when it is binary. */
function decodeBlobPart({ bytes, start, isText: is }: BlobPart, whole: boolean) {
  const { from, to } = whole ? { from: 0, to: bytes.length } : wholeCharacters(bytes)
  const part = bytes.subarray(from, to)
  // A whole file was examined already.
  if (!is || !(whole || isText(part)) || (part.length === 0 && bytes.length > 0)) return undefined
  return { text: part.toString('utf8'), start: start + from, end: start + to }
}
