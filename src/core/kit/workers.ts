import { Worker } from 'node:worker_threads'
import { unavailable } from '../errors.ts'

/** Resource limits of one child process, as {@link limitedCommand} sets them. */
export interface ChildLimits {
  /**
   * Maximum memory that the process may allocate, in bytes (RLIMIT_DATA of setrlimit(2), Linux 4.7 and newer), without
   * memory-mapped files. `Infinity`: unlimited.
   */
  readonly memoryBytes: number
  /** Maximum processor time of the process, in seconds (RLIMIT_CPU). Undefined: unlimited. */
  readonly cpuSeconds?: number
  /** Maximum size of a file that the process may write, in bytes (RLIMIT_FSIZE). Undefined: unlimited. */
  readonly fileBytes?: number
}

const mebibyte = 1024 * 1024
const gibibyte = 1024 * mebibyte

/** Memory of `git cat-file` in addition to the objects that it holds, in bytes. */
const catFileBaseBytes = 128 * mebibyte
/**
 * Number of copies of an object that `git cat-file` may hold at once, such as its base, the result, and the part of the
 * pack that it reads.
 */
const catFileCopies = 8
const gitFileBytes = mebibyte

/** The limits of the child processes with which the server reads its sources, by kind. */
export const childLimits = {
  git: (timeoutMs: number): ChildLimits => ({
    memoryBytes: gibibyte,
    cpuSeconds: Math.ceil(timeoutMs / 1000) + 1,
    fileBytes: gitFileBytes,
  }),
  /** Limits of a long-lived `git cat-file`, which holds objects of at most `maxBytes`. */
  gitObjects: (maxBytes: number): ChildLimits => ({
    memoryBytes: catFileBaseBytes + catFileCopies * maxBytes,
    fileBytes: gitFileBytes,
  }),
  /**
   * @param baseBytes Data memory of such a process that has no file open. It depends on the version of Node: some
   * versions of V8 reserve half a gigabyte of addresses as data.
   */
  sqlite: (baseBytes: number): ChildLimits => ({ memoryBytes: baseBytes + 512 * mebibyte, fileBytes: 0 }),
  screen: (timeoutMs: number, maxBytes: number): ChildLimits => ({
    memoryBytes: 2 * gibibyte,
    cpuSeconds: Math.ceil(timeoutMs / 1000) + 1,
    // Twice the limit, so that a picture that is too large can be told from a program that fails.
    fileBytes: 2 * maxBytes,
  }),
  ocr: (timeoutMs: number): ChildLimits => ({
    memoryBytes: gibibyte,
    cpuSeconds: Math.ceil(timeoutMs / 1000) + 1,
    fileBytes: 0,
  }),
  /**
   * Limits of the command of a remote mount, with the processes that it starts. Only their memory is limited, by
   * watching it (process-group.ts): such programs live long, and may reserve more addresses than they use.
   */
  remoteCommand: (): Pick<ChildLimits, 'memoryBytes'> => ({ memoryBytes: 4 * gibibyte }),
} as const

/**
 * Maximum size of the young generation of a thread's heap, in MiB. By default V8 lets it grow to 48 MiB and keeps that
 * memory.
 */
export const youngGenerationMb = 6

interface WorkerLimits {
  /** Maximum size of the thread's JavaScript heap (the old generation of V8), in MiB. Beyond it, Node ends the thread. */
  readonly memoryMb: number
  /**
   * Time-out of one job, in milliseconds. A thread that exceeds it is ended. On a busy machine a job has up to four times as long:
   * until this process has used this much CPU time.
   */
  readonly timeoutMs: number
}

/** The limits of the worker threads that handle foreign input. */
export const workerLimits = {
  /** Limits of the thread that extracts the text of documents and workbooks. An operator can set another time-out. */
  documents: { memoryMb: 256, timeoutMs: 20_000 },
  /** Limits of the thread that searches texts for secrets. */
  redaction: { memoryMb: 512, timeoutMs: 5000 },
  /** Limits of the thread that parses settings files. An operator can set another time-out. */
  settings: { memoryMb: 512, timeoutMs: 5000 },
} as const satisfies Readonly<Record<string, WorkerLimits>>

/** Memory of PDFium in the thread that reads documents, in bytes: V8 does not count WebAssembly towards the limit of a thread. */
export const pdfiumMemoryBytes = 256 * mebibyte

/** POSIX counts `ulimit -f` in blocks of 512 bytes; shells count `ulimit -d` in KiB. */
const [blockBytes, kibibyte] = [512, 1024]

/**
 * Returns a command that sets its own limits with a POSIX shell, and then replaces the shell by the program. A limit
 * that the system or the shell does not support is left out.
 * @param shell The path of a POSIX shell.
 * @param program An absolute path.
 */
export function limitedCommand(
  shell: string,
  program: string,
  args: readonly string[],
  { memoryBytes, cpuSeconds, fileBytes }: ChildLimits,
) {
  const options = [
    ...(memoryBytes === Number.POSITIVE_INFINITY ? [] : [`-d ${Math.ceil(memoryBytes / kibibyte)}`]),
    // No core dump of a child that dies of its limits.
    '-c 0',
    ...(cpuSeconds === undefined ? [] : [`-t ${cpuSeconds}`]),
    ...(fileBytes === undefined ? [] : [`-f ${Math.ceil(fileBytes / blockBytes)}`]),
  ]
  const script = [...options.map((option) => `ulimit ${option} 2>/dev/null`), 'exec "$@"'].join('; ')
  return { program: shell, args: ['-c', script, 'sh', program, ...args] }
}

/** `late`: the job exceeded its time-out; `crashed`: the worker ended, or was closed. */
export type TaskFailure = 'late' | 'crashed'

export type TaskOutcome<Result> = { readonly result: Result } | { readonly failure: TaskFailure }

const maxWaiting = 1000
/** Time after which an idle worker is ended, in milliseconds. */
const idleMs = 10_000
const startMs = 60_000
/** Maximum duration of a job on a busy machine, as a multiple of its time-out. */
const busyFactor = 4

interface Task<Job, Result> {
  readonly job: Job
  readonly settle: (outcome: TaskOutcome<Result>) => void
}

/**
 * Creates a runner of jobs, which runs them one after the other in a worker thread.
 * @param file The file that the worker runs. It posts `ready` when it can take jobs, and then one answer for each job,
 * in order.
 */
export function createTaskWorker<Job, Result>(file: string, { timeoutMs, memoryMb }: WorkerLimits) {
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
    const last = performance.now() + busyFactor * timeoutMs
    const look = () => {
      const { user, system } = process.cpuUsage(before)
      const remainingMs = Math.min(timeoutMs - (user + system) / 1000, last - performance.now())
      if (remainingMs <= 0) end('late')
      else watch(Math.max(remainingMs, 10), look)
    }
    watch(timeoutMs, look)
  }

  /** If the worker has not become ready, the waiting jobs fail, too. */
  const end = (failure: TaskFailure) => {
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
    /**
     * Runs a job. If the signal aborts, it rejects with the reason of the signal; a job that has begun still runs to
     * its end.
     * @throws ResourceError `unavailable` when too many jobs are waiting.
     */
    run: (job: Job, signal: AbortSignal): Promise<TaskOutcome<Result>> =>
      new Promise((resolve, reject) => {
        signal.throwIfAborted()
        if (waiting.length >= maxWaiting) throw unavailable('Too many tasks wait for a worker.')
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
    /** Ends the worker. The next job starts another. */
    close: (): void => {
      ready = false
      end('crashed')
    },
  }
}

/**
 * The environment is empty. Output is discarded, so that nothing that a library prints ends up among the messages on
 * stdout.
 */
function startWorker(file: string, memoryMb: number): Worker {
  const started = new Worker(file, {
    env: {},
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: memoryMb, maxYoungGenerationSizeMb: youngGenerationMb },
  })
  started.stdout.resume()
  started.stderr.resume()
  return started
}
