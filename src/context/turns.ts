import { ResourceError } from '../core/errors.ts'

/** A fair semaphore: shares take turns, however many tasks each brings. */
export interface Turns {
  /**
   * Runs a task when its turn comes.
   *
   * @param share The share of the task.
   * @throws ResourceError `unavailable` if the signal aborts before that.
   */
  run<T>(share: string, signal: AbortSignal | undefined, task: () => Promise<T>): Promise<T>
}

export function createTurns(most: number): Turns {
  /** Queues by share. The first share gets the next slot. */
  const waiting = new Map<string, Set<() => void>>()
  let running = 0

  const pass = () => {
    for (const [share, queue] of waiting) {
      waiting.delete(share)
      const [next] = queue
      if (next === undefined) continue
      queue.delete(next)
      if (queue.size > 0) waiting.set(share, queue)
      return next()
    }
    running--
  }

  const wait = (share: string, signal: AbortSignal | undefined) =>
    new Promise<void>((resolve, reject) => {
      const queue = waiting.get(share) ?? new Set()
      const go = () => {
        signal?.removeEventListener('abort', leave)
        resolve()
      }
      const leave = () => {
        queue.delete(go)
        reject(stopped())
      }
      signal?.addEventListener('abort', leave, { once: true })
      waiting.set(share, queue.add(go))
    })

  return {
    run: async (share, signal, task) => {
      if (signal?.aborted === true) throw stopped()
      if (running >= most) await wait(share, signal)
      else running++
      try {
        return await task()
      } finally {
        pass()
      }
    },
  }
}

/** Returns the error of a task whose caller has gone. */
export function stopped(): ResourceError {
  return new ResourceError('unavailable', 'It was stopped.')
}
