import { parentPort, workerData } from 'node:worker_threads'
import { isResourceError } from '../../core/errors.ts'
import type { SqliteStore } from '../options.ts'
import { fileErrorReason, maxOpenAttempts, type OpenFile, openFile, toStoreError, type WarnOperator } from './file.ts'
import type { SqliteOperations, WorkerMessage, WorkerRequest } from './operations.ts'

const port = parentPort
const say = (message: WorkerMessage) => port?.postMessage(message)
const keeper = createKeeper(workerData as SqliteStore['sqlite'], (warning) => say({ warning }))

function performRequest({ name, values }: WorkerRequest): unknown {
  if (name === 'close') return keeper.close()
  return keeper.perform((operations) => {
    if (name === 'open') return undefined
    const operation = operations[name] as (...values: readonly unknown[]) => unknown
    return operation(...values)
  })
}

/** How long a discarded connection is kept, or a file that cannot be opened is not tried again, in milliseconds. */
const staleMs = 250
let isLeaving = false

function leave(): void {
  keeper.close()
  say({ leaving: true })
  port?.close()
}

port?.on('message', (questions: readonly WorkerRequest[]) => {
  for (const question of questions) {
    const { id } = question
    try {
      say({ id, result: performRequest(question) })
    } catch (thrown) {
      const { kind, message, detail } = toStoreError(thrown)
      say({ id, failed: { kind, message, detail } })
    }
  }
  if (isLeaving || !keeper.isStale) return
  isLeaving = true
  setTimeout(leave, staleMs)
})

/** Keeps the file of a store: opens it at the first use, opens it again after it was lost, and replaces it if it is damaged. */
export function createKeeper(place: SqliteStore['sqlite'], warn: WarnOperator) {
  let open: OpenFile | undefined
  let isStale = false
  /** The fault for which the file could not be opened. */
  let refusal: unknown

  const close = () => {
    if (open !== undefined) isStale = true
    open?.close()
    open = undefined
  }
  const current = (): OpenFile => {
    if (open !== undefined && !open.isCurrent()) close()
    if (open === undefined && refusal !== undefined) throw refusal
    try {
      open ??= openFile(place, warn)
      return open
    } catch (error) {
      isStale = true
      refusal = error
      throw error
    }
  }
  /** Whether the file can still be used after an error. */
  const isTransientError = (error: unknown) => {
    const reason = fileErrorReason(error)
    return reason === 'busy' || reason === 'full' || (isResourceError(error) && reason === undefined)
  }
  return {
    /** @throws only ResourceError. */
    perform: <Result>(act: (operations: SqliteOperations) => Result): Result => {
      for (let look = 1; ; look++) {
        try {
          return act(current().operations)
        } catch (error) {
          const isDamaged = fileErrorReason(error) === 'damaged'
          if (isDamaged && look === maxOpenAttempts - 1) open?.putAside()
          const isInMemory = open?.isInMemory
          if (!isTransientError(error)) close()
          if (!isDamaged || look === maxOpenAttempts) throw toStoreError(error, isInMemory)
        }
      }
    },
    /**
     * Whether a connection was discarded. The library frees its statements and descriptors by garbage collection or with the thread, so a
     * new thread is needed.
     */
    get isStale() {
      return isStale
    },
    close,
  }
}
