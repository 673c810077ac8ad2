import { Worker } from 'node:worker_threads'
import type { ResourceError } from '../../core/errors.ts'
import { childLimits } from '../../core/kit/workers.ts'
import { createCatalog } from './catalog.ts'
import { failureOf, isLost, stale } from './errors.ts'
import { openFile } from './file.ts'
import { createOperations, type Operations } from './operations.ts'

/** Request to the child process. `open` comes first, with the file, the lock time-out, and whether the path of the file must be free of links. */
export interface Question {
  readonly id: number
  readonly name: keyof Operations | 'open'
  readonly values: readonly unknown[]
}

export type ChildAnswer =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly failed: Pick<ResourceError, 'kind' | 'message' | 'detail'> }

let operations: Operations | undefined

function answer({ name, values }: Question): unknown {
  if (name === 'open') {
    const [file, lockTimeoutMs, isLinkless] = values as [string, number, boolean]
    const opened = openFile(file, lockTimeoutMs, isLinkless)
    operations = createOperations(opened, createCatalog(opened.database))
    // This first read throws if the file cannot be read.
    return operations.fingerprint()
  }
  if (operations === undefined) throw stale()
  const operation = operations[name] as (...values: readonly unknown[]) => unknown
  return operation(...values)
}

process.on('message', (question: Question) => {
  const { id, name } = question
  try {
    process.send?.({ id, result: answer(question) } satisfies ChildAnswer)
  } catch (thrown) {
    // A process that opens the file again may find it undamaged, or another file at its path.
    const { kind, message, detail } = failureOf(thrown)
    const told = isLost(thrown) && name !== 'open' ? { ...detail, reason: 'stale' as const } : detail
    process.send?.({ id, failed: { kind, message, detail: told } } satisfies ChildAnswer)
  }
})

// Ignore signals, which a terminal sends to both processes: the parent process ends this one.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
process.on('disconnect', () => process.exit())

/**
 * SQLite blocks the main thread while it works. So another thread checks whether the parent process still exists, and how much
 * memory is in use. The system refuses more memory where it can (see `childLimits`); elsewhere this thread ends the process.
 */
const watchdog = `
const { memoryBytes } = require('node:worker_threads').workerData
const parent = process.ppid
setInterval(() => {
  if (process.ppid !== parent || process.memoryUsage.rss() > memoryBytes) process.kill(process.pid, 'SIGKILL')
}, 100)`
if (process.platform !== 'win32')
  new Worker(watchdog, { eval: true, env: {}, execArgv: [], workerData: childLimits.sqlite() }).unref()
