import type { ObjectName } from './model.ts'

type Load<T> = (names: readonly ObjectName[], signal: AbortSignal) => Promise<readonly T[]>

interface Waiting<T> {
  readonly name: ObjectName
  readonly settle: (outcome: { readonly value: T | undefined } | { readonly error: unknown }) => void
}

/** So many names go into one query, and so many queries are under way at once. */
const [most, concurrent] = [200, 2]

/**
 * Joins what is asked for at the same time into queries for many objects. Whoever asks while queries are under way waits for
 * the next one, which then answers all of them: no answer is older than its question.
 */
export function createBatcher<T extends ObjectName>(load: Load<T>) {
  const queue = new Set<Waiting<T>>()
  /** What to do for a batch when one who waits for it goes away. */
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

  /** The query of a batch goes on while anybody waits for it. */
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
    /** What there is of a name, `undefined` where it is not there. Rejects with the reason of the signal once it aborts. */
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

/** One text for a name. */
export function identityOf({ schema, name }: ObjectName): string {
  return JSON.stringify([schema, name])
}
