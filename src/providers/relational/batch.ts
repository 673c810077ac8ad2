import type { ObjectName } from './model.ts'

type Load<T> = (names: readonly ObjectName[], signal: AbortSignal) => Promise<readonly T[]>

interface Waiting<T> {
  readonly name: ObjectName
  readonly settle: (outcome: { readonly value: T | undefined } | { readonly error: unknown }) => void
}

/** Maximum number of names per query, and of concurrent queries. */
const [most, concurrent] = [200, 2]

/**
 * Batches concurrent requests into queries for many objects. A request that arrives while queries run waits for the next query:
 * no answer is older than its request.
 */
export function createBatcher<T extends ObjectName>(load: Load<T>) {
  const queue = new Set<Waiting<T>>()
  /** Callback of a batch for a waiting request that is aborted. */
  const leaving = new WeakMap<Waiting<T>, () => void>()
  let running = 0
  let planned = false

  const flush = (): void => {
    planned = false
    while (queue.size > 0 && running < concurrent) void run([...queue].slice(0, most))
  }

  const plan = (): void => {
    if (planned) return
    planned = true
    setImmediate(flush)
  }

  /** Runs the query of a batch. It is aborted when no caller waits for it any more. */
  const run = async (batch: readonly Waiting<T>[]): Promise<void> => {
    running++
    const gone = new AbortController()
    let left = batch.length
    for (const one of batch) {
      queue.delete(one)
      leaving.set(one, () => {
        if (--left === 0) gone.abort()
      })
    }
    try {
      const names = new Map(batch.map(({ name }) => [identityOf(name), name]))
      const found = await load([...names.values()], gone.signal)
      const byName = new Map(found.map((one) => [identityOf(one), one]))
      for (const { name, settle } of batch) settle({ value: byName.get(identityOf(name)) })
    } catch (error) {
      for (const { settle } of batch) settle({ error })
    } finally {
      running--
      if (queue.size > 0) plan()
    }
  }
  return {
    /** Returns the object of a name; `undefined` when it does not exist. Rejects with the reason of the signal once it aborts. */
    ask: (name: ObjectName, signal: AbortSignal): Promise<T | undefined> =>
      new Promise((resolve, reject) => {
        signal.throwIfAborted()
        const waiting: Waiting<T> = {
          name,
          settle: (outcome) => {
            signal.removeEventListener('abort', leave)
            if ('error' in outcome) reject(outcome.error)
            else resolve(outcome.value)
          },
        }
        const leave = () => {
          queue.delete(waiting)
          leaving.get(waiting)?.()
          reject(signal.reason)
        }
        signal.addEventListener('abort', leave, { once: true })
        queue.add(waiting)
        plan()
      }),
  }
}

/** Returns a text that identifies a name. */
export function identityOf({ schema, name }: ObjectName): string {
  return JSON.stringify([schema, name])
}
