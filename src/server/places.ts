/** Why there is no place: there are too many of the own kind, or too many at all. */
export type Crowded = 'share' | 'busy'

export interface PlaceCount {
  /** So many may have a place at once. */
  readonly concurrent: number
  /** So many more may wait for one. */
  readonly waiting: number
}

/** So many places, and so many who may wait for one. Whoever has a share takes turns with the others, however many it brings. */
export interface Places {
  /** Answers at once: a place, or one that is to come, or why there is none. */
  take(share: string): Claim | { readonly refused: Crowded }
  /** How many have a place, and how many wait, just now. */
  readonly taken: number
  readonly waiting: number
}

export interface Claim {
  /** Resolves when the place is there; `undefined`: it is already. After `leave`, it may never. */
  readonly entered: Promise<void> | undefined
  /** Gives the place back, or waits for it no longer. The second time, nothing happens. */
  leave(): void
}

interface Share {
  running: number
  readonly queue: Set<() => void>
}

/** @param most What one share may have of it. By default all. */
export function createPlaces({ concurrent, waiting }: PlaceCount, most: PlaceCount = { concurrent, waiting }): Places {
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
    if (share.running > 0 || share.queue.size > 0) shares.set(key, share)
    admit()
  }

  const nextInTurn = (): readonly [string, Share] | undefined => {
    for (const [key, share] of shares) if (share.queue.size > 0 && share.running < most.concurrent) return [key, share]
    return undefined
  }

  /** Lets in who waits, as long as there is room. */
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
        // Where one share is the whole, it is nobody's in particular.
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
