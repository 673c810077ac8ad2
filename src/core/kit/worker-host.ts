import { Worker } from 'node:worker_threads'
import { ResourceError } from '../errors.ts'

interface HostOptions {
  /** The file that the worker runs. It posts `ready` once it is, and then one answer for each job, in order. */
  readonly file: string
  /**
   * Time-out of one job, in milliseconds. On a busy machine a job has up to four times as long: until this process has used this
   * much CPU time.
   */
  readonly deadlineMs: number
  /** Maximum memory of the worker, in MiB. */
  readonly memoryMb: number
}

/** Why a job has no result: it took too long, or the worker died of it. */
export type Failure = 'late' | 'crashed'

export type Outcome<Result> = { readonly result: Result } | { readonly failure: Failure }

/** Runs jobs one after the other in a worker thread, so that none of them holds up this one. */
interface Host<Job, Result> {
  /**
   * @throws ResourceError `unavailable` when too many jobs are waiting. An abort of the signal rejects with its reason; the
   * job itself is still finished if it has begun.
   */
  run(job: Job, signal: AbortSignal): Promise<Outcome<Result>>
  /** Ends the worker. The next job starts another. */
  close(): void
}

const maxWaiting = 1000
/** Time after which an idle worker is ended, in milliseconds. */
const idleMs = 30_000
const startMs = 60_000
/** Maximum number of time-outs that a job may take on a busy machine. */
const patience = 4

interface Task<Job, Result> {
  readonly job: Job
  readonly settle: (outcome: Outcome<Result>) => void
}

export function createHost<Job, Result>({ file, deadlineMs, memoryMb }: HostOptions): Host<Job, Result> {
  const waiting: Task<Job, Result>[] = []
  let worker: Worker | undefined
  let ready = false
  let current: Task<Job, Result> | undefined
  let timer: NodeJS.Timeout | undefined

  const watch = (ms: number, then: () => void) => {
    clearTimeout(timer)
    timer = setTimeout(then, ms)
  }

  const watchJob = () => {
    const before = process.cpuUsage()
    const last = performance.now() + patience * deadlineMs
    const look = () => {
      const { user, system } = process.cpuUsage(before)
      const left = Math.min(deadlineMs - (user + system) / 1000, last - performance.now())
      if (left <= 0) end('late')
      else watch(Math.max(left, 10), look)
    }
    watch(deadlineMs, look)
  }

  /** Ends the worker, and settles its job. If the worker never became ready, the waiting jobs fail, too. */
  const end = (failure: Failure) => {
    clearTimeout(timer)
    if (!ready) for (const task of waiting.splice(0)) task.settle({ failure })
    const [dead, task] = [worker, current]
    worker = undefined
    ready = false
    current = undefined
    dead?.removeAllListeners()
    // Ignore errors of a worker that is being terminated.
    dead?.on('error', () => {})
    void dead?.terminate()
    task?.settle({ failure })
    next()
  }

  const start = () => {
    const started = startWorker(file, memoryMb)
    worker = started
    started.on('message', (message: unknown) => {
      if (message === 'ready') ready = true
      else {
        const task = current
        current = undefined
        task?.settle({ result: message as Result })
      }
      next()
    })
    started.on('error', () => end('crashed'))
    started.on('exit', () => end('crashed'))
    watch(startMs, () => end('crashed'))
  }

  const next = () => {
    if (current !== undefined) return
    if (waiting.length === 0) {
      if (worker === undefined) return
      worker.unref()
      watch(idleMs, () => end('late'))
      timer?.unref()
      return
    }
    if (worker === undefined) return start()
    if (!ready) return
    current = waiting.shift()
    worker.ref()
    watchJob()
    worker.postMessage(current?.job)
  }

  return {
    run: (job, signal) =>
      new Promise((resolve, reject) => {
        signal.throwIfAborted()
        if (waiting.length >= maxWaiting)
          throw new ResourceError('unavailable', 'Too much is waiting to be looked through.')
        const task: Task<Job, Result> = {
          job,
          settle: (outcome) => {
            signal.removeEventListener('abort', stop)
            resolve(outcome)
          },
        }
        const stop = () => {
          const at = waiting.indexOf(task)
          if (at !== -1) waiting.splice(at, 1)
          reject(signal.reason)
        }
        signal.addEventListener('abort', stop, { once: true })
        waiting.push(task)
        next()
      }),
    close: () => {
      ready = false
      end('crashed')
    },
  }
}

/**
 * A worker without an environment, whose output goes nowhere: nothing that a library prints can end up among the messages
 * on stdout. Sources that run as they are, as in tests, need a loader on Node 20.
 */
function startWorker(file: string, memoryMb: number): Worker {
  const source = file.endsWith('.ts')
  const started = new Worker(source ? `require('tsx/cjs/api').register(); require(${JSON.stringify(file)})` : file, {
    eval: source,
    env: {},
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: memoryMb },
  })
  started.stdout.resume()
  started.stderr.resume()
  return started
}
