import type { ChildProcess } from 'node:child_process'
import { isResourceError, type ResourceError, unavailable } from '../../core/errors.ts'
import { endProcess } from './launch.ts'
import { isOutOfMemory, tooMuchMemory } from './launch-failures.ts'

export type Batch = ReturnType<typeof createBatch>

interface Request {
  readonly name: string
  readonly limit: number
  readonly resolve: (found: BatchObject | undefined) => void
  readonly reject: (error: unknown) => void
  /** Number of processes that died over this request. */
  deaths: number
}

/** Maximum number of characters of git's error output that are stored. */
const maxComplaint = 2000
/** Maximum number of bytes of an object over the limit that are read and discarded; above it a new process is cheaper. */
const maxDiscardedBytes = 4 * 1024 * 1024
/** Time without a request after which the process is ended, in milliseconds: it holds packs open, even deleted ones. */
const idleMs = 60_000

/** `--batch` returns contents, `--batch-check` only metadata. */
type Mode = '--batch' | '--batch-check'

/** A long-lived `git cat-file` process that answers a queue of requests. */
export function createBatch(mode: Mode, start: (args: readonly string[]) => ChildProcess, timeoutMs: number) {
  const waiting: Request[] = []
  let child: ChildProcess | undefined
  let timer: NodeJS.Timeout | undefined
  let closed = false
  let headSince = 0
  let unsent = ''

  /** Writes the requests of one turn of the event loop together: each write is a system call. */
  const send = () => {
    if (unsent !== '') child?.stdin?.write(unsent)
    unsent = ''
  }

  /** Checks the time-out of the first request, or with an empty queue the idle time-out of the process. */
  const check = () => {
    timer = undefined
    if (child === undefined) return
    const idle = waiting.length === 0
    const left = headSince + (idle ? idleMs : timeoutMs) - performance.now()
    if (left > 0) return arm(left)
    if (!idle) waiting.shift()?.reject(unavailable(`git cat-file did not answer within ${timeoutMs} ms.`))
    restart()
  }

  /** One timer serves many answers: when it fires, `check` reads how long the current first request has waited. */
  const arm = (ms: number) => {
    timer = setTimeout(check, Math.min(ms, timeoutMs)).unref()
  }

  /** Starts the time-out. Called when the first request of the queue changes, or the queue becomes empty. */
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
      answer: (found) => {
        waiting.shift()?.resolve(found)
        watch()
      },
      tooLarge: (found) => {
        waiting.shift()?.resolve(found)
        if (found.size <= maxDiscardedBytes) return watch()
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

  /** Ends a process that died or must die. Its open requests go to a new process. */
  const end = (ended: ChildProcess, complaint: string) => {
    if (child !== ended) return endProcess(ended)
    const fault = faultOf(waiting[0], complaint)
    if (fault !== undefined) waiting.shift()?.reject(fault)
    restart()
  }

  const restart = (): void => {
    const ended = child
    child = undefined
    if (ended !== undefined) endProcess(ended)
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

/** Returns the error of the request over which a process died, unless a new process may still answer it. */
function faultOf(head: Request | undefined, complaint: string): ResourceError | undefined {
  if (head === undefined) return undefined
  if (isOutOfMemory(complaint)) return tooMuchMemory()
  return ++head.deaths > 1 ? damaged('git cat-file ended over an object.') : undefined
}

const damagedReason = 'damaged-object'

/** Returns the error for an object whose bytes do not match its id. */
export function damaged(message: string): ResourceError {
  return unavailable(`${message} It is damaged: see git fsck.`, { reason: damagedReason })
}

export function isDamaged(error: unknown): boolean {
  return isResourceError(error, 'unavailable') && error.detail.reason === damagedReason
}

interface AnswerEvents {
  /** Returns the maximum number of bytes of the next object to keep. */
  readonly limit: () => number
  readonly answer: (found: BatchObject | undefined) => void
  /** Called for an object larger than the limit. Its bytes follow and are skipped. */
  readonly tooLarge: (found: BatchObject) => void
  /** Called when the output is not in git's format. */
  readonly broken: () => void
}

/** Maximum length of the first line of an answer: an id, a type and a size, or a name and an error. */
const maxHeaderBytes = 1024

/**
 * Parses the output of `git cat-file --batch` or `--batch-check`, in chunks of any size: `id type size`, and with contents the bytes and a
 * line feed; or `name missing`.
 */
export function createAnswerReader(contents: boolean, events: AnswerEvents): (chunk: Buffer) => void {
  let header = ''
  /** The object whose bytes are being collected. */
  let current: BatchObject | undefined
  let gathered: { readonly bytes: Buffer; filled: number } | undefined
  /** Number of bytes to skip: the line feed after an object, or a whole object that is too large. */
  let skip = 0
  let over = false

  const begin = (line: string) => {
    const found = /^([0-9a-f]{40,64}) (\w+) (\d+)$/.exec(line)
    if (found === null) {
      if (/ (?:missing|ambiguous)$/.test(line)) return events.answer(undefined)
      over = true
      return events.broken()
    }
    const [, oid = '', type = '', length = ''] = found
    const facts: BatchObject = { oid, type, size: Number(length) }
    if (!contents) return events.answer(facts)
    if (facts.size > events.limit()) {
      skip = facts.size + 1
      return events.tooLarge(facts)
    }
    current = facts
  }

  const finish = (found: BatchObject, bytes: Buffer) => {
    current = undefined
    gathered = undefined
    skip = 1
    events.answer({ ...found, bytes })
  }

  /** Takes the available bytes of the current object, and returns their number. Most objects arrive in one chunk: no copy is made. */
  const gather = (found: BatchObject, chunk: Buffer, at: number): number => {
    if (gathered === undefined && chunk.length - at >= found.size) {
      finish(found, chunk.subarray(at, at + found.size))
      return found.size
    }
    gathered ??= { bytes: Buffer.allocUnsafe(found.size), filled: 0 }
    const copied = chunk.copy(gathered.bytes, gathered.filled, at)
    gathered.filled += copied
    if (gathered.filled === found.size) finish(found, gathered.bytes)
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

/** The answer of git for one object. `bytes` is undefined when only the metadata was requested, or when the object is over the limit. */
export interface BatchObject {
  readonly oid: string
  readonly type: string
  readonly size: number
  readonly bytes?: Buffer
}
