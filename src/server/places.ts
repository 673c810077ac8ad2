/** Why there is no slot: the share is exhausted, or the whole semaphore. */
export type Crowded = 'share' | 'busy'

export interface PlaceCount {
  /** Maximum number of claims that hold a slot at once. */
  readonly concurrent: number
  /** Maximum number of claims that wait for one. */
  readonly waiting: number
}

/** A fair semaphore with a bounded queue: shares take turns, however many claims each of them has. */
export interface Places {
  /** Returns at once: a claim with a slot, a claim that waits for one, or the reason for a refusal. */
  take(share: string): Claim | { readonly refused: Crowded }
  /** Number of claims that hold a slot, and that wait for one, at the moment. */
  readonly taken: number
  readonly waiting: number
}

export interface Claim {
  /** Resolves when the claim gets its slot; undefined when it has one already. After `leave`, it may never resolve. */
  readonly entered: Promise<void> | undefined
  /** Releases the slot, or leaves the queue. Further calls do nothing. */
  leave(): void
}

interface Share {
  running: number
  readonly queue: Set<() => void>
}

/** @param most Limits of one share. Default: those of the semaphore. */
export function createPlaces({ concurrent, waiting }: PlaceCount, most: PlaceCount = { concurrent, waiting }): Places {
  let running = 0
  let queued = 0
  /** The shares with running or waiting claims, in the order of their turns. */
  const shares = new Map<string, Share>()

  const enter = (key: string, share: Share): void => {
    running++
    share.running++
    // A share that had its turn goes to the end.
    shares.delete(key)
    shares.set(key, share)
  }

  const leave = (key: string, share: Share): void => {
    running--
    share.running--
    // Shares that came while it ran go before it, too.
    shares.delete(key)
    if (share.running > 0 || share.queue.size > 0) shares.set(key, share)
    admit()
  }

  const nextInTurn = (): readonly [string, Share] | undefined => {
    for (const [key, share] of shares) if (share.queue.size > 0 && share.running < most.concurrent) return [key, share]
    return undefined
  }

  /** Admits waiting claims while there are free slots. */
  const admit = (): void => {
    while (queued > 0 && running < concurrent) {
      const next = nextInTurn()
      if (next === undefined) return
      const [admitted] = next[1].queue
      if (admitted === undefined) return
      queued--
      next[1].queue.delete(admitted)
      enter(...next)
      admitted()
    }
  }

  return {
    take: (key) => {
      const share: Share = shares.get(key) ?? { running: 0, queue: new Set() }
      let left = false
      const leaveOnce = () => {
        if (left) return
        left = true
        leave(key, share)
      }
      if (running < concurrent && share.running < most.concurrent) {
        enter(key, share)
        return { entered: undefined, leave: leaveOnce }
      }
      if (share.queue.size >= most.waiting || queued >= waiting) {
        // When a share may use the whole semaphore, the semaphore itself is exhausted.
        const own = share.queue.size >= most.waiting && most.waiting < waiting
        return { refused: own ? 'share' : 'busy' }
      }
      queued++
      shares.set(key, share)
      let admitted: (() => void) | undefined
      const entered = new Promise<void>((resolve) => {
        admitted = resolve
        share.queue.add(resolve)
      })
      return {
        entered,
        leave: () => {
          if (admitted === undefined || !share.queue.delete(admitted)) return leaveOnce()
          left = true
          queued--
          if (share.running === 0 && share.queue.size === 0) shares.delete(key)
        },
      }
    },
    get taken() {
      return running
    },
    get waiting() {
      return queued
    },
  }
}
