import { parentPort, workerData } from 'node:worker_threads'
import type { ResourceError } from '../../core/errors.ts'
import { failureOf } from './failures.ts'
import { checkInTime, createKeeper } from './keeper.ts'
import type { SqliteOperations } from './operations.ts'

/** Request to the worker thread. `open` opens the file, as every other request does too; `close` is the last request. */
export interface Question {
  readonly id: number
  readonly name: keyof SqliteOperations | 'open' | 'close'
  readonly values: readonly unknown[]
  /** Deadline by the clock: after it no caller waits for the answer. */
  readonly deadline: number
}

/** Message of the worker: an answer, a warning for the operator, or that it ends and another worker should take the rest. */
export type Message =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly failed: Pick<ResourceError, 'kind' | 'message' | 'detail'> }
  | { readonly warning: string }
  | { readonly leaving: true }

const port = parentPort
const say = (message: Message) => port?.postMessage(message)
const keeper = createKeeper(String(workerData), (warning) => say({ warning }))

function answer({ name, values, deadline }: Question): unknown {
  if (name === 'close') return keeper.close()
  checkInTime(deadline)
  return keeper.perform((operations) => {
    if (name === 'open') return undefined
    const operation = operations[name] as (...values: readonly unknown[]) => unknown
    return operation(...values)
  })
}

/** How long a connection that was given up is kept, or a file that cannot be opened is not tried again, in milliseconds. */
const staleMs = 250
let isLeaving = false

function leave(): void {
  keeper.close()
  say({ leaving: true })
  port?.close()
}

port?.on('message', (question: Question) => {
  const { id } = question
  try {
    say({ id, result: answer(question) })
  } catch (thrown) {
    const { kind, message, detail } = failureOf(thrown)
    say({ id, failed: { kind, message, detail } })
  }
  if (isLeaving || !keeper.isStale) return
  isLeaving = true
  setTimeout(leave, staleMs)
})
