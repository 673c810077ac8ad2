import { Worker } from 'node:worker_threads'
import { unavailable } from '../errors.ts'

/** Resource limits of one child process. The child sets them itself before it begins to work. */
export interface ChildLimits {
  /** Maximum memory that it may allocate, in bytes (RLIMIT_DATA of setrlimit(2), Linux 4.7 and newer). Memory-mapped files do not count. */
  readonly memoryBytes: number
  /** Maximum processor time, in seconds (RLIMIT_CPU). Undefined for a long-lived process. */
  readonly cpuSeconds?: number
  /** Maximum size of a file that it may write, in bytes (RLIMIT_FSIZE). Undefined for programs of the operator. */
  readonly fileBytes?: number
}

const mebibyte = 1024 * 1024
const gibibyte = 1024 * mebibyte

/** Memory of `git cat-file` besides the objects that it holds, in bytes. */
const catFileBase = 128 * mebibyte
/** Maximum number of copies of an object that `git cat-file` holds at once: its base, the result, and the part of the pack that it reads. */
const catFileCopies = 8
/** Maximum size of a file that git may write, in bytes: it has nothing to write. */
const gitFileBytes = mebibyte

/**
 * The limits of every kind of child process that the server starts. docs/limits.md lists them for operators. The parameters are
 * the settings that a limit depends on.
 */
export const childLimits = {
  /** A git process that answers one request. */
  git: (timeoutMs: number): ChildLimits => ({
    memoryBytes: gibibyte,
    cpuSeconds: Math.ceil(timeoutMs / 1000) + 1,
    fileBytes: gitFileBytes,
  }),
  /** A long-lived `git cat-file`, which holds objects of at most `maxBytes`. */
  gitObjects: (maxBytes: number): ChildLimits => ({
    memoryBytes: catFileBase + catFileCopies * maxBytes,
    fileBytes: gitFileBytes,
  }),
  /** The process that reads an SQLite file. Node itself takes about 100 MiB of its memory. */
  sqlite: (): ChildLimits => ({ memoryBytes: 512 * mebibyte, fileBytes: 0 }),
  /** A program that captures the display and writes one picture. */
  screen: (timeoutMs: number, maxBytes: number): ChildLimits => ({
    memoryBytes: 2 * gibibyte,
    cpuSeconds: Math.ceil(timeoutMs / 1000) + 1,
    // Twice the limit, so a picture that is too large can be told from a program that fails.
    fileBytes: 2 * maxBytes,
  }),
  /**
   * The command of a remote mount, with all processes that it starts. Their memory is watched (process-group.ts): the operator
   * chooses the programs, they live long, and may reserve more addresses than they use. Time and files are not limited.
   */
  remoteCommand: (): Pick<ChildLimits, 'memoryBytes'> => ({ memoryBytes: 4 * gibibyte }),
} as const

/**
 * Maximum size of the young generation of a thread, in MiB. By default V8 lets it grow to 48 MiB and keeps them, which
 * saved no measurable CPU in a thread that handles one job after the other.
 */
export const youngGenerationMb = 6

/** Limits of one worker thread. */
interface WorkerLimits {
  /** Maximum memory of its JavaScript (the old generation of V8), in MiB. Beyond it, Node ends the thread. */
  readonly memoryMb: number
  /**
   * Time-out of one job, in milliseconds. Beyond it, the thread is ended. On a busy machine a job has up to four times as long: until this
   * process has used this much CPU time.
   */
  readonly deadlineMs: number
}

/**
 * The limits of every kind of worker thread that handles foreign input. A later job starts another thread. Two other threads, of
 * the store and of folder watches, have no limits: they run only code of this project on data that it bounds itself.
 */
export const workerLimits = {
  /** Extracts the text of documents, and of the sheets of workbooks. An operator can set another time-out. */
  documents: { memoryMb: 256, deadlineMs: 20_000 },
  /** Searches a part of a text, of half a megabyte, for secrets. */
  redaction: { memoryMb: 512, deadlineMs: 5000 },
  /** Parses a settings file. An operator can set another time-out. */
  settings: { memoryMb: 512, deadlineMs: 5000 },
} as const satisfies Readonly<Record<string, WorkerLimits>>

/** Memory of PDFium in the thread that reads documents, in bytes: V8 does not count WebAssembly towards the limit of a thread. */
export const pdfiumMemoryBytes = 256 * mebibyte

/** POSIX counts `ulimit -f` in blocks of 512 bytes, and every shell counts `ulimit -d` in KiB. */
const [blockBytes, kibibyte] = [512, 1024]

/**
 * Returns a command that sets its own limits with a POSIX shell, and then replaces the shell by the program: the process keeps
 * its id, file descriptors and environment. A limit that the system or the shell does not support is left out.
 *
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
    `-d ${Math.ceil(memoryBytes / kibibyte)}`,
    // No core dump of a child that dies of its limits.
    '-c 0',
    ...(cpuSeconds === undefined ? [] : [`-t ${cpuSeconds}`]),
    ...(fileBytes === undefined ? [] : [`-f ${Math.ceil(fileBytes / blockBytes)}`]),
  ]
  const script = [...options.map((option) => `ulimit ${option} 2>/dev/null`), 'exec "$@"'].join('; ')
  return { program: shell, args: ['-c', script, 'sh', program, ...args] }
}

/** Why a job has no result: it took too long, or the worker died of it. */
export type Failure = 'late' | 'crashed'

export type TaskOutcome<Result> = { readonly result: Result } | { readonly failure: Failure }

const maxWaiting = 1000
/** Time after which an idle worker is ended, in milliseconds. */
const idleMs = 10_000
const startMs = 60_000
/** Maximum number of time-outs that a job may take on a busy machine. */
const patience = 4

interface Task<Job, Result> {
  readonly job: Job
  readonly settle: (outcome: TaskOutcome<Result>) => void
}

/**
 * Runs jobs one after the other in a worker thread, so that none of them holds up this one.
 *
 * @param file The file that the worker runs. It posts `ready` once it is, and then one answer for each job, in order.
 */
export function createHost<Job, Result>(file: string, { deadlineMs, memoryMb }: WorkerLimits) {
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
    /**
     * @throws ResourceError `unavailable` when too many jobs are waiting. An abort of the signal rejects with its reason; the
     * job itself is still finished if it has begun.
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
    resourceLimits: { maxOldGenerationSizeMb: memoryMb, maxYoungGenerationSizeMb: youngGenerationMb },
  })
  started.stdout.resume()
  started.stderr.resume()
  return started
}
