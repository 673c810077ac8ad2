import { Worker } from 'node:worker_threads'
import { ResourceError } from '../../core/errors.ts'
import { failure } from '../rules.ts'
import type { Message, Question } from './worker.ts'

/** The worker thread that has a store's file open. SQLite blocks its caller: it waits for the disk, and for other processes. */
interface Thread {
  ask(name: Question['name'], values: readonly unknown[]): Promise<unknown>
  /** Ends it, after all requests are answered. */
  close(): Promise<void>
}

interface ThreadOptions {
  readonly file: string
  readonly warn: (message: string) => void
}

/** Time-out of a request, in milliseconds. A request that has not begun by then is dropped. */
const waitMs = 10_000
/** Maximum number of waiting requests. */
const mostWaiting = 10_000

interface Waiting {
  readonly question: Question
  readonly settle: (message: Extract<Message, { id: number }>) => void
  readonly fail: (error: ResourceError) => void
}

export function createThread({ file, warn }: ThreadOptions): Thread {
  const waiting = new Map<number, Waiting>()
  let worker: Worker | undefined
  let last = 0
  let closing: Promise<void> | undefined

  const end = () => {
    worker = undefined
    for (const { fail } of waiting.values()) fail(failure('gone'))
    waiting.clear()
  }

  const start = (): Worker => {
    const started = startWorker(file)
    started.on('message', (message: Message) => {
      if ('warning' in message) return warn(message.warning)
      if ('leaving' in message) return follow(started)
      const asked = waiting.get(message.id)
      waiting.delete(message.id)
      if (waiting.size === 0) started.unref()
      asked?.settle(message)
    })
    started.on('error', () => {})
    started.on('exit', () => {
      if (worker === started) end()
    })
    return started
  }

  /** A worker that leaves has answered all requests that it began: the next worker takes the rest. */
  const follow = (left: Worker) => {
    if (worker !== left) return
    worker = undefined
    left.unref()
    if (waiting.size === 0) return
    worker = start()
    for (const { question } of waiting.values()) worker.postMessage(question)
  }

  const ask: Thread['ask'] = (name, values) =>
    new Promise((resolve, reject) => {
      if (waiting.size >= mostWaiting) return reject(failure('busy'))
      worker ??= start()
      worker.ref()
      const id = ++last
      const timer = setTimeout(() => reject(failure('busy')), waitMs)
      const question: Question = { id, name, values, deadline: Date.now() + waitMs }
      waiting.set(id, {
        question,
        settle: (message) => {
          clearTimeout(timer)
          if (!('failed' in message)) return resolve(message.result)
          const { kind, message: text, detail } = message.failed
          reject(new ResourceError(kind, text, detail))
        },
        fail: (error) => {
          clearTimeout(timer)
          reject(error)
        },
      })
      worker.postMessage(question)
    })

  return {
    ask: async (name, values) => {
      if (closing !== undefined) throw failure('gone', 'closed')
      return ask(name, values)
    },
    close: () => {
      closing ??= (async () => {
        if (worker === undefined) return
        await ask('close', []).catch(() => {})
        await worker?.terminate()
      })()
      return closing
    },
  }
}

/**
 * Starts the worker without an environment. Its TypeScript source needs a loader when it is not built and Node does not run
 * TypeScript.
 */
function startWorker(file: string): Worker {
  const settings = { name: 'hikidashi-store', workerData: file, env: {}, execArgv: [] }
  const code = new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js', import.meta.url)
  if (!code.pathname.endsWith('.ts') || 'typescript' in process.features) return new Worker(code, settings)
  const loader = import.meta.resolve('tsx/esm/api')
  return new Worker(
    `import(${JSON.stringify(loader)}).then((tsx) => (tsx.register(), import(${JSON.stringify(code.href)})))`,
    { ...settings, eval: true },
  )
}
