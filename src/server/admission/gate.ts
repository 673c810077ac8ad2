import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { type ErrorReason, ResourceError } from '../../core/errors.ts'
import { withResolvers } from '../../core/kit/abort.ts'

/** Handle of a running task. */
export interface TaskHandle {
  /**
   * Resolves when there is memory for a large content. Await it before fetching one.
   *
   * @throws ResourceError `unavailable` when too many tasks wait for that already.
   */
  room(): Promise<void>
  /**
   * Resolves when there is memory for a large content, in a turn of the event loop of its own. Await it before writing one.
   *
   * @throws ResourceError as `room` does.
   */
  turn(): Promise<void>
}

/** Maximum number of large answers that are made at once. */
const largeSlots = 4
/** How long a large answer keeps its slot while its reader does not take it, in milliseconds. */
const maxKeptMs = 3000
/** How long a large task lets small ones go first, in milliseconds. */
const smallFirstMs = 20

/**
 * Limits how many tasks run and how many wait, and refuses the rest at once. A task that turns out to be large continues in a second
 * semaphore with few slots.
 *
 * @param most Limits of one share. Default: no limits of its own.
 */
export function createGate(concurrent: number, waiting: number, most: SlotCount = { concurrent, waiting }) {
  const small = createSemaphore({ concurrent, waiting }, most)
  const isShared = most.concurrent < concurrent
  const large = createSemaphore(
    { concurrent: Math.min(largeSlots, concurrent), waiting },
    { concurrent: Math.min(isShared ? largeSlots / 2 : largeSlots, most.concurrent), waiting: most.waiting },
  )
  let last: Promise<void> = Promise.resolve()

  /** Resolves in a turn of the event loop of its own, if possible one in which no small task runs. */
  const turn = (): Promise<void> => {
    last = last.then(async () => {
      const start = performance.now()
      do await nextTurn()
      while (small.count.running > 0 && performance.now() - start < smallFirstMs)
    })
    return last
  }

  return {
    /**
     * Runs a task when its turn comes, or refuses it at once.
     *
     * @param share Key of the share that the task belongs to.
     * @param taken Resolves when the reader has taken the answer: until then a large task keeps its slot, for at most three seconds.
     */
    run: async <T>(
      task: (pass: TaskHandle) => Promise<T>,
      share = '',
      taken?: () => Promise<unknown>,
    ): Promise<{ readonly value: T } | { readonly refused: NoSlotReason }> => {
      const first = small.take(share)
      if ('refused' in first) return first
      let second: Claim | undefined
      let isOver = false

      /** @param keep Whether the task keeps its small slot until it has a large one. */
      const enlarge = async (keep: boolean): Promise<void> => {
        // Nobody waits for the answer any more.
        if (isOver) throw largeAnswerLimitError()
        if (second === undefined) {
          const claim = large.take(share)
          if ('refused' in claim) throw largeAnswerLimitError()
          second = claim
          if (!keep) first.leave()
        }
        await second.entered
        first.leave()
        await turn()
      }

      try {
        await first.entered
        return { value: await task({ room: () => enlarge(false), turn: () => enlarge(true) }) }
      } finally {
        isOver = true
        first.leave()
        if (second !== undefined && taken !== undefined)
          void Promise.race([taken(), sleep(maxKeptMs, undefined, { ref: false })]).finally(second.leave)
        else second?.leave()
      }
    },
    /** Number of tasks that run, including large ones. */
    get running() {
      return small.count.running + large.count.running
    },
    get waiting() {
      return small.count.waiting + large.count.waiting
    },
  }
}

export type Gate = ReturnType<typeof createGate>

function largeAnswerLimitError(): ResourceError {
  return new ResourceError('unavailable', 'Too many large answers are in flight. Try again later.', { retryAfter: 1 })
}

/** Why there is no slot: the share is exhausted, or the whole semaphore. */
export type NoSlotReason = Extract<ErrorReason, 'share' | 'busy'>

interface SlotCount {
  /** Maximum number of claims that hold a slot at once. */
  readonly concurrent: number
  /** Maximum number of claims that wait for a slot. */
  readonly waiting: number
}

interface Claim {
  /** Resolves when the claim gets its slot; undefined if it has one already. After `leave`, it may never resolve. */
  readonly entered: Promise<void> | undefined
  leave(): void
}

interface Share {
  running: number
  /** Admit the waiting claims, the oldest first. */
  readonly queue: (() => void)[]
}

/**
 * A fair semaphore with a bounded queue: shares take turns.
 *
 * @param most Limits of one share.
 */
function createSemaphore({ concurrent, waiting }: SlotCount, most: SlotCount) {
  const count = { running: 0, waiting: 0 }
  /** The shares with running or waiting claims, in the order of their turns. */
  const shares = new Map<string, Share>()

  const settle = (key: string, share: Share, claims: 1 | -1): void => {
    count.running += claims
    share.running += claims
    shares.delete(key)
    if (share.running + share.queue.length > 0) shares.set(key, share)
  }

  /** Admits waiting claims while there are free slots. */
  const admit = (): void => {
    for (const [key, share] of shares) {
      if (count.waiting === 0 || count.running >= concurrent) return
      if (share.queue.length === 0 || share.running >= most.concurrent) continue
      count.waiting--
      const enter = share.queue.shift()
      settle(key, share, 1)
      enter?.()
    }
  }

  return {
    count,
    /** Returns at once: a claim, or the reason for a refusal. */
    take: (key: string): Claim | { readonly refused: NoSlotReason } => {
      const share = shares.get(key) ?? { running: 0, queue: [] }
      let waiter: ReturnType<typeof withResolvers<void>> | undefined
      if (count.running < concurrent && share.running < most.concurrent) settle(key, share, 1)
      else if (share.queue.length >= most.waiting || count.waiting >= waiting) {
        // When a share may use the whole semaphore, the semaphore itself is exhausted.
        return { refused: share.queue.length >= most.waiting && most.waiting < waiting ? 'share' : 'busy' }
      } else {
        waiter = withResolvers<void>()
        count.waiting++
        share.queue.push(waiter.resolve)
        shares.set(key, share)
      }
      let hasLeft = false
      const leave = () => {
        if (hasLeft) return
        hasLeft = true
        const at = waiter === undefined ? -1 : share.queue.indexOf(waiter.resolve)
        if (at >= 0) {
          share.queue.splice(at, 1)
          count.waiting--
          if (share.running + share.queue.length === 0) shares.delete(key)
        } else {
          settle(key, share, -1)
          admit()
        }
      }
      return { entered: waiter?.promise, leave }
    },
  }
}
