import { isResourceError } from '../../core/errors.ts'
import { failure } from '../failure.ts'
import { failureOf, reasonOf } from './failures.ts'
import { looks, type OpenFile, openFile, type Warn } from './file.ts'
import type { SqliteOperations } from './operations.ts'

/** The file of a store, whatever becomes of it: opened when it is needed, again where it was lost, repaired where it is damaged. */
export interface Keeper {
  /** @throws ResourceError and nothing else. */
  perform<Result>(act: (operations: SqliteOperations) => Result): Result
  /**
   * Whether a connection was given up. The library frees its statements, and so its descriptors, when they are collected
   * as garbage or with their thread: it is time for another one.
   */
  readonly isStale: boolean
  close(): void
}

export function createKeeper(file: string, warn: Warn): Keeper {
  let open: OpenFile | undefined
  let isStale = false
  /** Why it could not be opened. It is not tried again here. */
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
      open ??= openFile(file, warn)
      return open
    } catch (error) {
      isStale = true
      refusal = error
      throw error
    }
  }
  /** After these the file is as good as before. Anything else may be over once it is opened again. */
  const isPassing = (error: unknown) => {
    const reason = reasonOf(error)
    return reason === 'busy' || reason === 'full' || (isResourceError(error) && reason === undefined)
  }
  return {
    perform: (act) => {
      for (let look = 1; ; look++) {
        try {
          return act(current().operations)
        } catch (error) {
          const isDamaged = reasonOf(error) === 'damaged'
          if (isDamaged && look === looks - 1) open?.putAside()
          if (!isPassing(error)) close()
          if (!isDamaged || look === looks) throw failureOf(error)
        }
      }
    },
    get isStale() {
      return isStale
    },
    close,
  }
}

/** A time at which a question is not worth an answer any more. */
export function checkInTime(deadline: number): void {
  if (Date.now() > deadline) throw failure('busy')
}
