import type { ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { ResourceError } from '../../core/errors.ts'
import { childLimits } from '../../core/kit/child-limits.ts'
import { spawnLimited } from '../program.ts'
import type { Answer, Question } from './child.ts'
import { away } from './failures.ts'

/**
 * A process that has the file open. SQLite blocks its caller, and only the end of the process stops an endless statement; a
 * thread would block this process.
 */
export interface Reader {
  /** Throws only ResourceErrors. */
  ask(name: Question['name'], values: readonly unknown[]): Promise<unknown>
  isUsable(): boolean
  /** Kills the process at once. */
  close(): void
}

/** Additional time after SQLite's own time-out for locks before a process is killed, in milliseconds: it must also start. */
const startMs = 30_000

interface ReaderOptions {
  readonly file: string
  readonly statementTimeoutMs: number
  readonly lockTimeoutMs: number
}

/**
 * Starts a process that opens the file.
 *
 * @throws ResourceError `unavailable`, with the reason `refused` if only an operator can solve the problem.
 */
export async function startReader(options: ReaderOptions, signal: AbortSignal): Promise<Reader> {
  signal.throwIfAborted()
  const { file, statementTimeoutMs, lockTimeoutMs } = options
  const child = startProcess()
  const waiting = new Map<number, (answer: Answer | undefined) => void>()
  let last = 0
  let ended = false

  const end = () => {
    ended = true
    for (const settle of waiting.values()) settle(undefined)
    waiting.clear()
  }
  child.on('message', (answer: Answer) => waiting.get(answer.id)?.(answer))
  child.on('error', end)
  child.on('exit', end)
  child.on('disconnect', end)

  const close = () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    end()
  }
  const ask = (name: Question['name'], values: readonly unknown[], most: number): Promise<unknown> =>
    new Promise((resolve, reject) => {
      if (ended) return reject(away('The process that reads the database has ended.'))
      const id = ++last
      const settle = (answer: Answer | undefined) => {
        clearTimeout(timer)
        waiting.delete(id)
        if (waiting.size === 0) hold(child, false)
        if (answer === undefined) return reject(away('The process that reads the database has ended.'))
        if ('result' in answer) return resolve(answer.result)
        const { kind, message, detail } = answer.failed
        reject(new ResourceError(kind, message, detail))
      }
      const timer = setTimeout(() => {
        waiting.delete(id)
        reject(away('The database took longer than a statement may take.'))
        close()
      }, most)
      waiting.set(id, settle)
      hold(child, true)
      child.send({ id, name, values } satisfies Question, (error) => {
        if (error !== null) settle(undefined)
      })
    })

  const onAbort = () => close()
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    await ask('open', [file, lockTimeoutMs], startMs + lockTimeoutMs + statementTimeoutMs)
  } catch (error) {
    close()
    signal.throwIfAborted()
    throw error
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
  return {
    ask: (name, values) => ask(name, values, statementTimeoutMs + lockTimeoutMs),
    isUsable: () => !ended && waiting.size === 0,
    close,
  }
}

/** While a request is running, the child process keeps this process alive. */
function hold(child: ChildProcess, isBusy: boolean): void {
  if (isBusy) {
    child.ref()
    child.channel?.ref()
  } else {
    child.unref()
    child.channel?.unref()
  }
}

/** Maximum size of the JavaScript heap of the process, in MiB: the rest of its memory is for SQLite. */
const heapMb = 128

/**
 * Starts a child process that inherits neither the environment nor file descriptors. Exceeding its memory limit ends the process
 * or the statement. Its TypeScript source needs a loader when it is not built and Node.js does not run TypeScript.
 */
function startProcess(): ChildProcess {
  const code = new URL(import.meta.url.endsWith('.ts') ? './child.ts' : './child.js', import.meta.url)
  const needsLoader = code.pathname.endsWith('.ts') && !('typescript' in process.features)
  const { SystemRoot } = process.env
  const loader = needsLoader ? ['--import', import.meta.resolve('tsx/esm')] : []
  const args = [`--max-old-space-size=${heapMb}`, ...loader, fileURLToPath(code)]
  return spawnLimited(process.execPath, args, childLimits.sqlite(), {
    env: SystemRoot === undefined ? {} : { SystemRoot },
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
}
