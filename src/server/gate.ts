/** Lets so many tasks run at once, and so many wait; refuses the rest at once. */
export interface Gate {
  /** Runs a task when its turn comes. `undefined`: too many are waiting already, and the task did not run. */
  run<T>(task: () => Promise<T>): Promise<{ readonly value: T } | undefined>
  /** How many wait just now. */
  readonly waiting: number
}

export function createGate(concurrent: number, waiting: number): Gate {
  let running = 0
  const queue: (() => void)[] = []
  return {
    run: async (task) => {
      if (running >= concurrent) {
        if (queue.length >= waiting) return undefined
        await new Promise<void>((resolve) => queue.push(resolve))
      } else running++
      try {
        return { value: await task() }
      } finally {
        // The place goes straight to the next one, so that nobody who just came can take it.
        const next = queue.shift()
        if (next === undefined) running--
        else next()
      }
    },
    get waiting() {
      return queue.length
    },
  }
}
