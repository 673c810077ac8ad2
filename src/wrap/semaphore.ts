import type { ResourceError } from '../core/errors.ts'

/**
 * A semaphore with a bounded queue. Each way to get a slot returns the function that releases it.
 *
 * @param concurrent Number of slots.
 * @param waiting Maximum length of the queue.
 */
export function createSemaphore(concurrent: number, waiting: number) {
  let inside = 0
  const queue = new Set<() => void>()
  const leave = () => {
    const [next] = queue
    if (next === undefined) inside--
    // Hand the slot directly to the next waiter, so that a new caller cannot take it.
    else next()
  }
  return {
    take: (): (() => void) | undefined => {
      if (inside >= concurrent) return undefined
      inside++
      return leave
    },
    wait: (signal: AbortSignal, patience: number, full: () => ResourceError): Promise<() => void> =>
      new Promise((resolve, reject) => {
        if (queue.size >= waiting) return reject(full())
        const settle = (then: () => void) => {
          clearTimeout(timer)
          queue.delete(enter)
          signal.removeEventListener('abort', onAbort)
          then()
        }
        const enter = () => settle(() => resolve(leave))
        const onAbort = () => settle(() => reject(signal.reason))
        const timer = setTimeout(() => settle(() => reject(full())), patience)
        queue.add(enter)
        signal.addEventListener('abort', onAbort)
      }),
  }
}
