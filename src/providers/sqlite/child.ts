import { readFileSync } from 'node:fs'
import type { ResourceError } from '../../core/errors.ts'
import { loadFaultOf } from '../../store/sqlite/codes.ts'
import { isWorthReopening, refusedError, replacedFileError, translateSqliteError } from './errors.ts'
import type { DatabaseOperations } from './operations.ts'

export interface ChildRequest {
  readonly id: number
  /** `measure` asks for the data memory of the process, in bytes. Before an operation, `open` opens the file. */
  readonly name: keyof DatabaseOperations | 'open' | 'measure'
  /** For `open`: the file, the lock time-out, and whether the path of the file must be free of links. */
  readonly values: readonly unknown[]
}

export type ChildAnswer =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly failed: Pick<ResourceError, 'kind' | 'message' | 'detail'> }

let operations: DatabaseOperations | undefined

async function loadReaderModules() {
  try {
    const [{ openDatabaseFile }, { createDatabaseCatalog }, { createDatabaseOperations }] = await Promise.all([
      import('./file.ts'),
      import('./catalog.ts'),
      import('./operations.ts'),
    ])
    return { openDatabaseFile, createDatabaseCatalog, createDatabaseOperations }
  } catch (error) {
    const fault = loadFaultOf(error)
    if (fault === undefined) throw error
    throw refusedError(`SQLite cannot be loaded: ${fault}`)
  }
}

/** Returns the data memory of this process, which RLIMIT_DATA limits, in bytes. */
function dataBytes(): number {
  const kibibytes = /^VmData:\s+(\d+) kB$/m.exec(readStatus())?.[1]
  if (kibibytes === undefined)
    throw refusedError('The memory of a process cannot be measured on this system. Mount /proc (proc(5)).')
  return Number(kibibytes) * 1024
}

function readStatus(): string {
  try {
    return readFileSync('/proc/self/status', 'latin1')
  } catch {
    return ''
  }
}

async function answerRequest({ name, values }: ChildRequest): Promise<unknown> {
  if (name === 'open' || name === 'measure') {
    const { openDatabaseFile, createDatabaseCatalog, createDatabaseOperations } = await loadReaderModules()
    if (name === 'measure') return dataBytes()
    const [file, lockTimeoutMs, isLinkless] = values as [string, number, boolean]
    const databaseFile = openDatabaseFile(file, lockTimeoutMs, isLinkless)
    operations = createDatabaseOperations(databaseFile, createDatabaseCatalog(databaseFile.database))
    // This first read throws if the file cannot be read.
    return operations.fingerprint()
  }
  if (operations === undefined) throw replacedFileError()
  const operation = operations[name] as (...values: readonly unknown[]) => unknown
  return operation(...values)
}

process.on('message', async (question: ChildRequest) => {
  const { id, name } = question
  try {
    process.send?.({ id, result: await answerRequest(question) } satisfies ChildAnswer)
  } catch (thrown) {
    // A process that opens the file again may find it undamaged, or another file at its path.
    const { kind, message, detail } = translateSqliteError(thrown)
    const errorDetail = isWorthReopening(thrown) && name !== 'open' ? { ...detail, fault: 'stale' } : detail
    process.send?.({ id, failed: { kind, message, detail: errorDetail } } satisfies ChildAnswer)
  }
})

// Ignore signals, which a terminal sends to both processes: the parent process ends this one.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
process.on('disconnect', () => process.exit())
