import { join } from 'node:path'
import { type MessagePort, Worker } from 'node:worker_threads'
import { type ErrorKind, type ResourceError, unavailable } from '../../core/errors.ts'
import { withResolvers } from '../../core/kit/abort.ts'
import type { Log } from '../../core/log.ts'
import type { Change, Degradation } from '../../core/provider.ts'
import type { OpenedRoot } from './root.ts'
import type { PermitOptions } from './stats.ts'
import type { VisibilityOptions } from './visibility.ts'

/**
 * Lets lists take from memory the facts that a watch confirms to be unchanged. The kernel queues an event with the change that causes it, so
 * once the thread of the watch has handled all queued events, each directory without an event is unchanged. Confirmed facts are
 * used no longer than `reconcile`, since some changes have no event: a write through a memory map or another hard link.
 */

/** Updates about directories, by identity: true if the directory is newly watched or has changed, false if it is not watched any more. */
export type Dues = readonly (readonly [identity: string, watched: boolean])[]

export type Ledger = ReturnType<typeof createLedger>

/** Collects the updates about directories for the main thread. Runs in the watch thread. */
export function createLedger() {
  /** Directories that the main thread believes to be watched. */
  const told = new Set<string>()
  const dues = new Map<string, boolean>()
  return {
    /** Records that a directory is watched from now on, or may have changed. */
    touch: (identity: string) => void dues.set(identity, true),
    /** Records that a directory is not watched any more. */
    lose: (identity: string): void => {
      // The main thread needs no update about a directory that it does not know.
      if (told.has(identity)) dues.set(identity, false)
      else dues.delete(identity)
    },
    /** Returns what was recorded since the last call. */
    take: (): Dues => {
      const taken = [...dues]
      dues.clear()
      for (const [identity, watched] of taken) {
        if (watched) told.add(identity)
        else told.delete(identity)
      }
      return taken
    },
  }
}

/**
 * Returns the state of a directory by its identity: a number that differs after any change in it; undefined when the directory has no
 * reliable watch. It is the state at the time of the request.
 */
export type Confirmed = (identity: string) => number | undefined

export type Confirmations = ReturnType<typeof createConfirmations>

/** Bounds of the wait for an answer, and the time to examine one file, in milliseconds. After the wait, examining the files is faster. */
const [shortestWaitMs, longestWaitMs, lookMs] = [5, 50, 0.005]

/**
 * The states of the directories of one watch, in the main thread.
 *
 * @param send Requests the updates of the watch thread, which sends them once it has handled all queued events.
 */
export function createConfirmations(send: () => void) {
  const states = new Map<string, number>()
  let changes = 0
  let closed = false
  const createQuestion = () => withResolvers<boolean>()
  type Question = ReturnType<typeof createQuestion>
  let asked: Question | undefined
  /**
   * The next request, shared by all callers that come while another request is pending: the answer to that one may not cover the
   * changes that they know of.
   */
  let next: Question | undefined

  const begin = (question: Question): Question => {
    asked = question
    send()
    return question
  }

  return {
    /**
     * Asks the watch thread which directories are unchanged. Resolves to undefined if it does not answer in time: then examine the files.
     *
     * @param files Number of files to examine without an answer. The time-out is the time that this takes, within bounds.
     */
    ask: async (files = 0): Promise<Confirmed | undefined> => {
      if (closed) return undefined
      const question = asked === undefined ? begin(createQuestion()) : (next ?? createQuestion())
      if (question !== asked) next = question
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<false>((resolve) => {
        timer = setTimeout(resolve, Math.min(longestWaitMs, Math.max(shortestWaitMs, files * lookMs)), false)
      })
      const isAnswered = await Promise.race([question.promise, late])
      clearTimeout(timer)
      return isAnswered && !closed ? (identity) => states.get(identity) : undefined
    },
    /** Handles the answer of the thread. */
    answered: (dues: Dues): void => {
      for (const [identity, watched] of dues) {
        if (watched) states.set(identity, ++changes)
        else states.delete(identity)
      }
      const answered = asked
      asked = undefined
      if (next !== undefined) begin(next)
      next = undefined
      answered?.resolve(true)
    },
    close: (): void => {
      closed = true
      states.clear()
      asked?.resolve(false)
      next?.resolve(false)
    },
  }
}

/** Options of a watch. Plain data: it is sent to another thread. */
export interface WatchOptions extends VisibilityOptions, PermitOptions {
  readonly root: OpenedRoot
  readonly gitignore: boolean
  readonly worktrees: boolean
  readonly symlinks: 'deny' | 'beneath'
  readonly portable: boolean
  /** Time from the end of one round, in which everything is compared, to the beginning of the next, in milliseconds. */
  readonly reconcile: number
  /** Maximum number of directories with a file system watch. */
  readonly watches: number
  /** Whether one watch of the system covers the whole root. */
  readonly recursive: boolean
}

/** Message that begins a watch. The port carries {@link Request}s to the thread; closing it ends the watch. */
export interface ToThread {
  readonly options: WatchOptions
  readonly port: MessagePort
}

/** Requests the next changes (`more`), or the updates about directories (`dues`). */
export type Request = 'more' | 'dues'

export type FromThread =
  | { readonly armed: true }
  | { readonly changes: readonly Change[] }
  | { readonly dues: Dues }
  | { readonly log: Parameters<Log> }
  | { readonly degraded: Degradation | undefined }
  | { readonly failed: { readonly kind: ErrorKind; readonly message: string; readonly cause: string } }

interface Thread {
  readonly worker: Worker
  users: number
  /** Error that ended the thread, if it failed. */
  failure: unknown
}

/** Time that the thread outlives its last user, in milliseconds. */
const lingerMs = 2000

/** The thread shared by all mounts of the process: each thread takes 10 MB. It ends with its users, and does not keep the process alive. */
let thread: Thread | undefined

/**
 * Begins a watch in the shared watch thread.
 *
 * @param lost Called when the thread has ended, for any reason.
 * @returns A function that releases this user. The creator of the port closes it.
 */
export function beginInThread(message: ToThread, lost: (failure: unknown) => void): () => void {
  const mine = thread ?? startThread()
  thread = mine
  mine.users++
  const ended = () => lost(mine.failure)
  mine.worker.once('exit', ended)
  mine.worker.postMessage(message, [message.port])
  let released = false
  return () => {
    if (released) return
    released = true
    mine.worker.off('exit', ended)
    mine.users--
    const stop = () => {
      if (mine.users > 0 || thread !== mine) return
      thread = undefined
      void mine.worker.terminate()
    }
    if (mine.users === 0) setTimeout(stop, lingerMs).unref()
  }
}

function startThread(): Thread {
  const worker = startWorker()
  const mine: Thread = { worker, users: 0, failure: undefined }
  worker.unref()
  worker.setMaxListeners(0)
  // The event `exit` follows.
  worker.on('error', (error) => {
    mine.failure = error
  })
  worker.on('exit', () => {
    if (thread === mine) thread = undefined
  })
  return mine
}

export function threadEnded(cause: unknown): ResourceError {
  return unavailable('The thread that watches files has ended.', {}, cause)
}

function startWorker(): Worker {
  const file = join(import.meta.dirname, '../../../dist/providers/files/watch-worker.js')
  // The thread allocates few large short-lived objects: a small young generation is collected early.
  const settings = { name: 'hikidashi-files', execArgv: [], resourceLimits: { maxYoungGenerationSizeMb: 4 } }
  try {
    return new Worker(file, settings)
  } catch (error) {
    // The system refuses to start another thread.
    throw threadEnded(error)
  }
}
