import { type ChildProcess, spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { ResourceError } from '../../core/errors.ts'
import { doneOnce } from '../../core/kit/once.ts'
import { residentBytes } from '../../core/kit/process-group.ts'
import { type ChildLimits, childLimits } from '../../core/kit/workers.ts'
import { findShell, spawnLimited } from '../program.ts'
import type { ChildAnswer, ChildRequest } from './child.ts'
import { memoryError, refusedError, unavailableError } from './errors.ts'

export const startTimeoutMs = 30_000
const maxErrorText = 4000
/** Interval at which the memory of a working process is checked where the system does not limit it, in milliseconds. */
const memoryIntervalMs = 250

export type ReaderProcess = ReturnType<typeof converse>

export async function startReaderProcess(): Promise<ReaderProcess> {
  if ('deno' in process.versions)
    throw refusedError('Databases of SQLite cannot be read with Deno. Run hikidashi with Node or Bun.')
  return converse(childLimits.sqlite(await measureBase()))
}

/** Whether the system limits the memory of a process (RLIMIT_DATA). */
const isLimited = () => process.platform === 'linux' && findShell() !== undefined

/** Returns the data memory of a reader process before it opens a file, in bytes, measured once; 0 if the system does not limit it. */
const measureBase = doneOnce(async (): Promise<number> => {
  if (!isLimited()) return 0
  const measured = converse(childLimits.sqlite(Number.POSITIVE_INFINITY))
  try {
    return (await measured.ask('measure', [], startTimeoutMs)) as number
  } finally {
    measured.close()
  }
})

/** Starts a process, and returns the functions that send it requests and end it. SQLite blocks its caller: only the end of the process stops an endless statement. */
function converse(limits: ChildLimits) {
  const child = launch(limits)
  guard(child)
  const waiting = new Map<number, (answer: ChildAnswer | { readonly cause: string }) => void>()
  let last = 0
  let errorText = ''
  let cause: string | undefined

  const end = (why: string) => {
    cause ??= why
    for (const settle of waiting.values()) settle({ cause })
    waiting.clear()
  }
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errorText = (errorText + text).slice(-maxErrorText)
  })
  child.on('message', (answer: ChildAnswer) => waiting.get(answer.id)?.(answer))
  child.on('error', (error: NodeJS.ErrnoException) => {
    if (child.pid === undefined) end(`it cannot be started (${error.code ?? 'unknown'})`)
  })
  child.on('disconnect', () => child.kill('SIGKILL'))
  child.on('close', (code, signal) => end(causeOf(code, signal, errorText)))

  const close = (why = 'it was closed') => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    end(why)
  }
  const checkMemory = async () => {
    const usedBytes = child.pid === undefined ? 0 : ((await residentBytes(child.pid)) ?? 0)
    if (usedBytes > limits.memoryBytes) close(outOfMemory)
  }
  let memoryTimer: NodeJS.Timeout | undefined
  /** While a request is running, the child process keeps this process alive. */
  const hold = (isBusy: boolean) => {
    const set = isBusy ? 'ref' : 'unref'
    for (const held of [child, child.channel, child.stderr as Socket | null]) held?.[set]?.()
    clearInterval(memoryTimer)
    if (isBusy && !isLimited()) memoryTimer = setInterval(() => void checkMemory(), memoryIntervalMs)
  }

  return {
    /** Sends a request, and waits for the answer at most this number of milliseconds. */
    ask: (name: ChildRequest['name'], values: readonly unknown[], mostMs: number): Promise<unknown> =>
      new Promise((resolve, reject) => {
        if (cause !== undefined) return reject(endedFor(cause, name))
        const id = ++last
        const settle = (answer: ChildAnswer | { readonly cause: string }) => {
          clearTimeout(timer)
          waiting.delete(id)
          if (waiting.size === 0) hold(false)
          if ('cause' in answer) return reject(endedFor(answer.cause, name))
          if ('result' in answer) return resolve(answer.result)
          const { kind, message, detail } = answer.failed
          reject(new ResourceError(kind, message, detail))
        }
        const timer = setTimeout(() => {
          waiting.delete(id)
          reject(unavailableError('The statement exceeded its time-out. Raise "statementTimeout", or try again.'))
          close('a statement exceeded its time-out')
        }, mostMs)
        waiting.set(id, settle)
        hold(true)
        child.send({ id, name, values } satisfies ChildRequest, (error) => {
          if (error !== null) child.kill('SIGKILL')
        })
      }),
    isUsable: () => cause === undefined && child.exitCode === null && child.signalCode === null && waiting.size === 0,
    close: () => close(),
  }
}

const outOfMemory = 'it exceeded its memory limit'

function causeOf(code: number | null, signal: NodeJS.Signals | null, errorText: string): string {
  // Before they abort, V8 reports a lack of memory, and libstdc++ the exception `bad_alloc`, on standard error.
  if (/out of memory|bad_alloc/i.test(errorText)) return outOfMemory
  if (signal === 'SIGKILL') return 'it was killed by SIGKILL, as the system does when memory is short'
  return signal === null ? `its exit code was ${code}` : `it was killed by ${signal}`
}

/** Returns the error for a process that has ended. If a statement took too much memory, the request is at fault, not the database. */
function endedFor(cause: string, name: ChildRequest['name']): ResourceError {
  const isAtFault = cause === outOfMemory && name !== 'open' && name !== 'measure'
  return isAtFault ? memoryError() : unavailableError(`The process that reads the database has ended: ${cause}.`)
}

/** Maximum size of the JavaScript heap of the process, in MiB: the rest of its memory is for SQLite. */
const heapMb = 128

/**
 * Starts a child process that inherits neither the environment nor file descriptors.
 */
function launch(limits: ChildLimits): ChildProcess {
  const code = join(import.meta.dirname, '../../../dist/providers/sqlite/child.js')
  const { SystemRoot } = process.env
  const args = [`--max-old-space-size=${heapMb}`, code]
  return spawnLimited(process.execPath, args, limits, {
    env: SystemRoot === undefined ? {} : { SystemRoot },
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
}

/**
 * Makes the child end with this process, also in the middle of a statement: a shell reads from this process, and kills the child when the
 * input ends without a line. Without a shell it does nothing.
 */
function guard(child: ChildProcess): void {
  const shell = findShell()
  if (shell === undefined || child.pid === undefined) return
  const script = 'trap "" INT TERM HUP; read -r line || kill -9 "$1"'
  const watching = spawn(shell, ['-c', script, 'sh', String(child.pid)], {
    stdio: ['pipe', 'ignore', 'ignore'],
    env: {},
  })
  const input = watching.stdin as Socket | null
  watching.on('error', () => {})
  input?.on('error', () => {})
  watching.unref()
  // In Bun, streams of processes have no such method.
  input?.unref?.()
  child.once('exit', () => input?.end('\n'))
}
