/** Why a task was not run: there are too many of its own kind, or too many at all. */
export type Crowded = 'share' | 'busy'

/**
 * Lets so many tasks run at once, and so many wait; refuses the rest at once. Whoever has a share of it takes turns with the
 * others, however many tasks it brings.
 */
export interface Gate {
  /**
   * Runs a task when its turn comes.
   *
   * @param share Whose share it is taken of.
   */
  run<T>(task: () => Promise<T>, share?: string): Promise<{ readonly value: T } | { readonly refused: Crowded }>
  /** How many run, and how many wait, just now. */
  readonly running: number
  readonly waiting: number
}

export interface GateSize {
  readonly concurrent: number
  readonly waiting: number
}

interface Share {
  running: number
  readonly queue: (() => void)[]
}

/** @param most What one share may have of it. By default all. */
export function createGate(concurrent: number, waiting: number, most: GateSize = { concurrent, waiting }): Gate {
  let running = 0
  let queued = 0
  /** Those that have something running or waiting. The one whose turn is next comes first. */
  const shares = new Map<string, Share>()

  const enter = (key: string, share: Share): void => {
    running++
    share.running++
    // Whoever had a turn goes behind the others.
    shares.delete(key)
    shares.set(key, share)
  }

  const leave = (key: string, share: Share): void => {
    running--
    share.running--
    // Whoever came while it ran goes before it, too.
    shares.delete(key)
    if (share.running > 0 || share.queue.length > 0) shares.set(key, share)
    admit()
  }

  const nextInTurn = (): readonly [string, Share] | undefined => {
    for (const [key, share] of shares)
      if (share.queue.length > 0 && share.running < most.concurrent) return [key, share]
    return undefined
  }

  /** Lets in who waits, as long as there is room. */
  const admit = (): void => {
    while (queued > 0 && running < concurrent) {
      const next = nextInTurn()
      if (next === undefined) return
      queued--
      enter(...next)
      next[1].queue.shift()?.()
    }
  }

  return {
    run: async (task, key = '') => {
      let share = shares.get(key)
      if (share === undefined) {
        share = { running: 0, queue: [] }
        shares.set(key, share)
      }
      const own = share
      if (running < concurrent && own.running < most.concurrent) enter(key, own)
      else {
        const refused = own.queue.length >= most.waiting ? 'share' : queued >= waiting ? 'busy' : undefined
        if (own.running === 0 && own.queue.length === 0 && refused !== undefined) shares.delete(key)
        // Where one share is the whole, it is nobody's in particular.
        if (refused !== undefined) return { refused: most.waiting < waiting ? refused : 'busy' }
        queued++
        await new Promise<void>((resolve) => own.queue.push(resolve))
      }
      try {
        return { value: await task() }
      } finally {
        leave(key, own)
      }
    },
    get running() {
      return running
    },
    get waiting() {
      return queued
    },
  }
}
