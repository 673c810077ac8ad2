import type { ChildProcess } from 'node:child_process'
import { isResourceError, ResourceError } from '../../core/errors.ts'
import { createAnswerReader, type Found } from './batch-reader.ts'
import { endProcess } from './launch.ts'
import { isOutOfMemory, tooMuchMemory } from './launch-failures.ts'

/** One long-lived `git cat-file`, which answers request after request. */
export interface Batch {
  /** How long the request at the head has been waiting for its answer, in milliseconds; 0 where there is none. */
  readonly delay: () => number
  /**
   * Asks for an object by its id, or by `id^{type}`. `undefined` where there is none.
   *
   * @param limit The contents of an object of more bytes than this are left out.
   * @throws ResourceError `unavailable` where git dies over this request twice, or does not answer in time; `too-large` where
   * it needs more memory for the object than it may use.
   */
  ask(name: string, limit: number): Promise<Found | undefined>
  /** Ends the process; the next request starts a new one. Requests that wait are asked again. */
  restart(): void
  close(): void
}

export interface BatchOptions {
  /** `--batch` answers with contents, `--batch-check` with the facts alone. */
  readonly mode: '--batch' | '--batch-check'
  readonly start: (args: readonly string[]) => ChildProcess
  readonly timeoutMs: number
}

interface Request {
  readonly name: string
  readonly limit: number
  readonly resolve: (found: Found | undefined) => void
  readonly reject: (error: unknown) => void
  /** How often git died over it. */
  deaths: number
}

/** So much of what git writes about a failure is kept, in characters. */
const maxComplaint = 2000
/** An object over the limit is read to its end and thrown away up to so many bytes; then a new process is cheaper. */
const drains = 4 * 1024 * 1024
/** After so long without a request, the process is ended: it holds packs open, even deleted ones. In milliseconds. */
const idleMs = 60_000

export function createBatch({ mode, start, timeoutMs }: BatchOptions): Batch {
  const waiting: Request[] = []
  let child: ChildProcess | undefined
  let timer: NodeJS.Timeout | undefined
  let closed = false
  let headSince = 0
  let unsent = ''

  /** Requests of one turn of the event loop go out together: each write is a system call. */
  const send = () => {
    if (unsent !== '') child?.stdin?.write(unsent)
    unsent = ''
  }

  /** The request at the head has so long for its answer; without one, the process has so long to live. */
  const check = () => {
    timer = undefined
    if (child === undefined) return
    const idle = waiting.length === 0
    const left = headSince + (idle ? idleMs : timeoutMs) - performance.now()
    if (left > 0) arm(left)
    else if (idle) restart()
    else giveUp()
  }

  /** One timer for many answers: when it fires, it sees how long the present request has been at the head. */
  const arm = (ms: number) => {
    timer = setTimeout(check, Math.min(ms, timeoutMs)).unref()
  }

  /** Called whenever another request is at the head, or none. */
  const watch = () => {
    headSince = performance.now()
    if (timer === undefined && child !== undefined) arm(timeoutMs)
  }

  const giveUp = () => {
    waiting.shift()?.reject(new ResourceError('unavailable', `git cat-file did not answer within ${timeoutMs} ms.`))
    restart()
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
        if (found.size <= drains) return watch()
        restart()
      },
      // What nobody asked for: whatever comes behind it cannot be told from it.
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

  /** Ends a process that died, or has to. What it still owed is asked of a new one. */
  const end = (ended: ChildProcess, complaint: string) => {
    endProcess(ended)
    if (child !== ended) return
    child = undefined
    const [head] = waiting
    if (head !== undefined && isOutOfMemory(complaint)) {
      waiting.shift()
      head.reject(tooMuchMemory())
    } else if (head !== undefined && ++head.deaths > 1) {
      waiting.shift()
      head.reject(damaged('git cat-file ended over an object.'))
    }
    if (waiting.length > 0 && !closed) launch()
    else watch()
  }

  const restart = () => {
    const ended = child
    child = undefined
    if (ended !== undefined) endProcess(ended)
    if (waiting.length > 0 && !closed) launch()
    else watch()
  }

  return {
    delay: () => (waiting.length === 0 ? 0 : performance.now() - headSince),
    ask: (name, limit) =>
      new Promise((resolve, reject) => {
        if (closed) return reject(new ResourceError('unavailable', 'The git provider is closed.'))
        waiting.push({ name, limit, resolve, reject, deaths: 0 })
        if (child === undefined) return launch()
        if (unsent === '') process.nextTick(send)
        unsent += `${name}\n`
        if (waiting.length === 1) watch()
      }),
    restart,
    close: () => {
      closed = true
      clearTimeout(timer)
      for (const { reject } of waiting.splice(0))
        reject(new ResourceError('unavailable', 'The git provider is closed.'))
      restart()
    },
  }
}

const damagedReason = 'damaged-object'

/** An object that cannot be what its id says. */
export function damaged(message: string): ResourceError {
  return new ResourceError('unavailable', `${message} It is damaged: see git fsck.`, { reason: damagedReason })
}

export function isDamaged(error: unknown): boolean {
  return isResourceError(error, 'unavailable') && error.detail.reason === damagedReason
}
