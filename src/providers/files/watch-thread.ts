import { type MessagePort, Worker } from 'node:worker_threads'
import type { ErrorKind } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Change, Degradation } from '../../core/provider.ts'
import type { Dues } from './watch-confirm.ts'
import type { WatchOptions } from './watch-run.ts'

/** Begins a watch. Messages on its port are {@link Request}s, and closing it ends the watch. */
export interface ToThread {
  readonly options: WatchOptions
  readonly port: MessagePort
}

/** Asks for the next changes, or for what has changed for the lists. */
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
const linger = 2000

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
    if (mine.users === 0) setTimeout(stop, linger).unref()
  }
}

function startThread(): Thread {
  const worker = createWorker()
  const mine: Thread = { worker, users: 0, failure: undefined }
  worker.unref()
  worker.setMaxListeners(0)
  // `exit` follows.
  worker.on('error', (error) => {
    mine.failure = error
  })
  worker.on('exit', () => {
    if (thread === mine) thread = undefined
  })
  return mine
}

function createWorker(): Worker {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  const file = new URL(`./watch-worker.${extension}`, import.meta.url)
  // The thread allocates few large short-lived objects: a small young generation is collected early.
  const settings = { name: 'hikidashi-files', execArgv: [], resourceLimits: { maxYoungGenerationSizeMb: 4 } }
  if (extension === 'js' || 'typescript' in process.features) return new Worker(file, settings)
  // Node versions that do not load TypeScript themselves run the source through tsx.
  const code = `import(${JSON.stringify(import.meta.resolve('tsx/esm/api'))}).then(({ register }) => {
    register()
    return import(${JSON.stringify(file.href)})
  })`
  return new Worker(code, { ...settings, eval: true })
}
