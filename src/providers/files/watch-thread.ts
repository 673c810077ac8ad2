import { type MessagePort, Worker } from 'node:worker_threads'
import type { ErrorKind } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Change, Degradation } from '../../core/provider.ts'
import type { WatchOptions } from './watch-run.ts'

/** Begins a watch. On its port anything asks for the next changes, and to close it ends the watch. */
export interface ToThread {
  readonly options: WatchOptions
  readonly port: MessagePort
}

export type FromThread =
  | { readonly armed: true }
  | { readonly changes: readonly Change[] }
  | { readonly log: Parameters<Log> }
  | { readonly degraded: Degradation | undefined }
  | { readonly failed: { readonly kind: ErrorKind; readonly message: string; readonly cause: string } }

interface Thread {
  readonly worker: Worker
  users: number
  /** Why it ended, where it did so by itself. */
  failure: unknown
}

/** How long the thread outlives its last user, in milliseconds. */
const linger = 2000

/** There is one for all mounts of the process: each would take 10 MB. It ends with its users, and keeps no process alive. */
let thread: Thread | undefined

/**
 * Begins a watch in the thread for watches.
 *
 * @param lost Called when the thread is no more, for whatever reason.
 * @returns What takes this user away again. The port is closed by whoever made it.
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
  // Nothing that it makes lives short and is large: what is left over is collected early.
  const settings = { name: 'hikidashi-files', execArgv: [], resourceLimits: { maxYoungGenerationSizeMb: 4 } }
  if (extension === 'js' || 'typescript' in process.features) return new Worker(file, settings)
  // From its source, on a Node that reads no TypeScript by itself.
  const code = `import(${JSON.stringify(import.meta.resolve('tsx/esm/api'))}).then(({ register }) => {
    register()
    return import(${JSON.stringify(file.href)})
  })`
  return new Worker(code, { ...settings, eval: true })
}
