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
  /** Undefined as long as none of its claims has had to wait. */
  queue: Queue | undefined
}

/** A claim that waits. It holds its function no longer than that: a finished request must not be kept in memory by a queue. */
interface Waiter {
  admit: (() => void) | undefined
}

/** A queue whose members may leave it anywhere. A `Set` would keep finished requests in memory; see `Bag`. */
class Queue {
  #waiters: Waiter[] = []
  /** Index of the first one that may still wait. */
  #first = 0
  size = 0

  push(waiter: Waiter): void {
    // Those that have left are removed when they are the most.
    if (this.#waiters.length > 2 * this.size + 16) {
      this.#waiters = this.#waiters.filter(({ admit }) => admit !== undefined)
      this.#first = 0
    }
    this.#waiters.push(waiter)
    this.size++
  }

  /** Removes the first one, and returns its function. */
  shift(): (() => void) | undefined {
    while (this.#first < this.#waiters.length) {
      const waiter = this.#waiters[this.#first++]
      const admit = waiter?.admit
      if (waiter !== undefined && this.delete(waiter)) return admit
    }
    return undefined
  }

  /** Whether it was there. */
  delete(waiter: Waiter): boolean {
    if (waiter.admit === undefined) return false
    waiter.admit = undefined
    this.size--
    return true
  }
}

/** @param most Limits of one share. Default: those of the semaphore. */
export function createPlaces({ concurrent, waiting }: PlaceCount, most: PlaceCount = { concurrent, waiting }): Places {
  let running = 0
  let queued = 0
  /** The shares with running or waiting claims, in the order of their turns. */
  const shares = new Map<string, Share>()

  const toEnd = (key: string, share: Share): void => {
    // One that is alone is there already: each change of a map costs memory.
    if (shares.size === 1 && shares.has(key)) return
    shares.delete(key)
    shares.set(key, share)
  }

  const enter = (key: string, share: Share): void => {
    running++
    share.running++
    // A share that had its turn goes to the end.
    toEnd(key, share)
  }

  const leave = (key: string, share: Share): void => {
    running--
    share.running--
    // Shares that came while it ran go before it, too.
    if (share.running > 0 || waits(share)) toEnd(key, share)
    else shares.delete(key)
    admit()
  }

  const nextInTurn = (): readonly [string, Share] | undefined => {
    for (const [key, share] of shares) if (waits(share) && share.running < most.concurrent) return [key, share]
    return undefined
  }

  /** Admits waiting claims while there are free slots. */
  const admit = (): void => {
    while (queued > 0 && running < concurrent) {
      const next = nextInTurn()
      if (next === undefined) return
      const admitNext = next[1].queue?.shift()
      if (admitNext === undefined) return
      queued--
      enter(...next)
      admitNext()
    }
  }

  return {
    take: (key) => {
      const share: Share = shares.get(key) ?? { running: 0, queue: undefined }
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
      const queue = share.queue ?? new Queue()
      share.queue = queue
      if (queue.size >= most.waiting || queued >= waiting) {
        // When a share may use the whole semaphore, the semaphore itself is exhausted.
        const own = queue.size >= most.waiting && most.waiting < waiting
        return { refused: own ? 'share' : 'busy' }
      }
      queued++
      shares.set(key, share)
      const waiter: Waiter = { admit: undefined }
      const entered = new Promise<void>((resolve) => {
        waiter.admit = resolve
      })
      queue.push(waiter)
      return {
        entered,
        leave: () => {
          if (!queue.delete(waiter)) return leaveOnce()
          left = true
          queued--
          if (share.running === 0 && queue.size === 0) shares.delete(key)
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

function waits({ queue }: Share): boolean {
  return queue !== undefined && queue.size > 0
}
