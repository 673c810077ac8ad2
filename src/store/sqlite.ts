import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { isResourceError, ResourceError } from '../core/errors.ts'
import { coalesceRuns } from '../core/kit/once.ts'
import { youngGenerationMb } from '../core/kit/workers.ts'
import type { Log } from '../core/log.ts'
import { type AsPromises, createChangeQueue, type Engine } from './engine.ts'
import type { SqliteStore } from './options.ts'
import { bugError, notLoadedError, storeError } from './rules.ts'
import { loadFaultOf } from './sqlite/codes.ts'
import type { SqliteOperations, WorkerMessage, WorkerRequest } from './sqlite/operations.ts'
import type { CollectionChange } from './sqlite/rows.ts'

/** Interval at which the file is checked for writes of other processes while there is a listener, in milliseconds. */
const checkIntervalMs = 150

const writing: ReadonlySet<string> = new Set(['put', 'delete', 'evict', 'dropLease'])

/** Opens a store in a file. A thread reads and writes the file. */
export async function openSqlite({ file, orMemory = false }: SqliteStore['sqlite'], log: Log): Promise<Engine> {
  const thread = createThread({ file, orMemory }, (message) => log('warn', message))
  const engine = engineOver(thread)
  try {
    await thread.ask('open', [])
  } catch (error) {
    if (!isResourceError(error, 'unavailable')) {
      await engine.close()
      throw error
    }
    log('warn', error.message, { file })
  }
  return engine
}

function engineOver(thread: ReturnType<typeof createThread>): Engine {
  let onLook: () => void = () => {}
  const ask = <Name extends keyof SqliteOperations>(name: Name) =>
    ((...values: readonly unknown[]) => {
      const answer = thread.ask(name, values)
      if (writing.has(name)) answer.then(onLook, () => {})
      return answer
    }) as AsPromises<SqliteOperations>[Name]

  const watching = createWatching(ask('changes'))
  onLook = watching.look
  return {
    get: ask('get'),
    put: ask('put'),
    delete: ask('delete'),
    list: ask('list'),
    similar: ask('similar'),
    size: ask('size'),
    evict: ask('evict'),
    takeLease: ask('takeLease'),
    renewLease: ask('renewLease'),
    dropLease: ask('dropLease'),
    textsPut: ask('textsPut'),
    textsRemove: ask('textsRemove'),
    textsList: ask('textsList'),
    textsEntries: ask('textsEntries'),
    textsIds: ask('textsIds'),
    textsMimeTypes: ask('textsMimeTypes'),
    textsCounts: ask('textsCounts'),
    textsFind: ask('textsFind'),
    textsWeigh: ask('textsWeigh'),
    textsRead: ask('textsRead'),
    textsSize: ask('textsSize'),
    textsUnembedded: ask('textsUnembedded'),
    textsEmbed: ask('textsEmbed'),
    textsVectors: ask('textsVectors'),
    watch: watching.watch,
    close: async () => {
      watching.close()
      await thread.close()
    },
  }
}

/** Polls for changes of other processes while a listener exists, and reports changes of this process at once. */
function createWatching(changes: AsPromises<SqliteOperations>['changes']) {
  /** The known revision of each collection. An unknown collection counts as changed entirely. */
  const revisions = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined

  const news = createChangeQueue(() => {
    const collections = new Set(news.collections)
    for (const name of revisions.keys()) if (!collections.has(name)) revisions.delete(name)
    if (collections.size === 0) {
      clearTimeout(timer)
      timer = undefined
    } else timer ??= setTimeout(tick, checkIntervalMs)
  })

  const tick = () => {
    look()
    timer = setTimeout(tick, checkIntervalMs)
  }
  const take = ({ collection, revision, keys }: CollectionChange) => {
    revisions.set(collection, revision)
    news.tell(collection, keys)
  }
  const lookAround = coalesceRuns(async () => {
    const sinceRevisions = Object.fromEntries(news.collections.map((name) => [name, revisions.get(name) ?? -1]))
    try {
      for (const changed of await changes(sinceRevisions)) take(changed)
    } catch {
      // The next check reports all changes in between.
    }
  })
  const look = () => {
    if (news.collections.length > 0) void lookAround()
  }

  return {
    /** Checks now. If a check is running, checks once more after it. */
    look,
    watch: async (collection: string, signal: AbortSignal) => {
      const announcements = news.listen(collection, signal)
      if (!revisions.has(collection)) {
        try {
          const [now] = await changes({ [collection]: -1 })
          // A concurrent listener may have set a later revision, which must not be overwritten.
          if (!revisions.has(collection)) revisions.set(collection, now?.revision ?? 0)
        } catch {
          // Once the file answers again, everything in it counts as changed.
        }
      }
      return announcements
    },
    close: () => news.close(),
  }
}

/** Maximum time for which the worker answers none of the waiting requests, in milliseconds. */
const requestTimeoutMs = 10_000
/**
 * Calls `giveUp` when the worker has answered nothing for {@link requestTimeoutMs} after a request. Returns a function that ends the wait.
 *
 * @param answeredAtMs Returns when the worker answered last.
 */
function waitForWork(answeredAtMs: () => number, giveUp: () => void): () => void {
  const askedAtMs = performance.now()
  let timer: NodeJS.Timeout
  let isOver = false
  const look = () => {
    if (isOver) return
    const leftMs = Math.max(askedAtMs, answeredAtMs()) + requestTimeoutMs - performance.now()
    if (leftMs > 0) wait(leftMs)
    else giveUp()
  }
  const wait = (ms: number) => {
    // An answer that has arrived is taken first, even if this thread was busy for longer.
    timer = setTimeout(() => setImmediate(look), ms)
  }
  wait(requestTimeoutMs)
  return () => {
    isOver = true
    clearTimeout(timer)
  }
}

/** Maximum number of waiting requests. */
const mostWaiting = 10_000

interface Waiting {
  readonly question: WorkerRequest
  readonly settle: (message: Extract<WorkerMessage, { id: number }>) => void
  readonly fail: (error: ResourceError) => void
}

/** The worker thread that has a store's file open, because SQLite blocks its caller. */
function createThread(place: SqliteStore['sqlite'], warn: (message: string) => void) {
  const waiting = new Map<number, Waiting>()
  let worker: Worker | undefined
  let unsent: WorkerRequest[] = []
  let last = 0
  let answeredAtMs = 0
  let closing: Promise<void> | undefined
  /** The reason for which no worker can run in this process. */
  let unusable: ResourceError | undefined

  const end = () => {
    worker = undefined
    unsent = []
    for (const { fail } of waiting.values()) fail(unusable ?? storeError('gone'))
    waiting.clear()
  }

  const start = (): Worker => {
    const started = startStoreWorker(place)
    started.on('message', (message: WorkerMessage) => {
      if ('warning' in message) return warn(message.warning)
      if ('leaving' in message) return follow(started)
      answeredAtMs = performance.now()
      const waiter = waiting.get(message.id)
      waiting.delete(message.id)
      if (waiting.size === 0) started.unref()
      waiter?.settle(message)
    })
    started.on('error', (error) => {
      const why = loadFaultOf(error)
      if (why !== undefined) unusable = notLoadedError(why)
    })
    started.on('exit', () => {
      if (worker === started) end()
    })
    return started
  }

  /** Handles the exit of a worker. The next worker gets the requests that it has not begun. */
  const follow = (endedWorker: Worker) => {
    if (worker !== endedWorker) return
    worker = undefined
    endedWorker.unref()
    unsent = []
    if (waiting.size === 0) return
    worker = start()
    worker.postMessage([...waiting.values()].map(({ question }) => question))
  }

  const post = (questions: readonly WorkerRequest[]) => {
    try {
      worker?.postMessage(questions)
    } catch {
      const [first, ...others] = questions
      if (others.length > 0) for (const question of questions) post([question])
      else if (first !== undefined) waiting.get(first.id)?.fail(bugError('a value cannot be copied'))
    }
  }
  const send = (question: WorkerRequest) => {
    if (unsent.push(question) > 1) return
    queueMicrotask(() => {
      const questions = unsent
      unsent = []
      if (questions.length > 0) post(questions)
    })
  }

  const ask = (name: WorkerRequest['name'], values: readonly unknown[]): Promise<unknown> =>
    new Promise((resolve, reject) => {
      if (waiting.size >= mostWaiting) return reject(storeError('busy'))
      worker ??= start()
      worker.ref()
      const id = ++last
      const release = waitForWork(
        () => answeredAtMs,
        () => reject(storeError('busy')),
      )
      const question: WorkerRequest = { id, name, values }
      waiting.set(id, {
        question,
        settle: (message) => {
          release()
          if (!('failed' in message)) return resolve(message.result)
          const { kind, message: text, detail } = message.failed
          reject(new ResourceError(kind, text, detail))
        },
        fail: (error) => {
          release()
          reject(error)
        },
      })
      send(question)
    })

  return {
    ask: async (name: WorkerRequest['name'], values: readonly unknown[]) => {
      if (closing !== undefined) throw storeError('gone', 'closed')
      if (unusable !== undefined) throw unusable
      return ask(name, values)
    },
    /** Ends the worker after all requests are answered. */
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

/** Starts the worker, without environment variables. */
function startStoreWorker(place: SqliteStore['sqlite']): Worker {
  const settings = {
    name: 'hikidashi-store',
    workerData: place,
    env: {},
    execArgv: [],
    resourceLimits: { maxYoungGenerationSizeMb: youngGenerationMb },
  }
  return new Worker(join(import.meta.dirname, '../../dist/store/sqlite/worker.js'), settings)
}
