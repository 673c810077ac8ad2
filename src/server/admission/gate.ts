import { setTimeout as sleep } from 'node:timers/promises'
import { type ErrorReason, ResourceError } from '../../core/errors.ts'

/** Handle of a running task. */
export interface Pass {
  /**
   * Await it before fetching a large content: resolves when there is memory for it. Meanwhile the task occupies no slot.
   *
   * @throws ResourceError `unavailable` when too many tasks wait for that already.
   */
  room(): Promise<void>
  /**
   * Await it before writing a large content, whether it waited for `room` or not: resolves in a turn of the event loop that no
   * other large task gets.
   *
   * @throws ResourceError as `room` does.
   */
  turn(): Promise<void>
  /** Await it between pieces of a large content: resolves as `turn` does. */
  breath(): Promise<void>
}

/** A task from its admission to its end. */
export interface Running extends Pass {
  /** Resolves when the task may begin; undefined when it may at once. */
  readonly entered: Promise<void> | undefined
  end(): void
}

/** Slots of the lane of large tasks. Each task costs the event loop some milliseconds per megabyte, and several times its size in memory. */
const largeSlots = 4
/** How long a large answer keeps its slot while its reader does not take it, in milliseconds. */
const maxKeptMs = 3000
/** How long a large task lets small ones go first, in milliseconds. */
const smallFirstMs = 20

/**
 * A semaphore with a queue: limits how many tasks run and how many wait, and refuses the rest at once. Shares take turns, however
 * many tasks each brings. A task that turns out to be large continues in a lane of its own with few slots, so that small tasks do
 * not wait for it.
 *
 * @param most Limits of one share. Default: no limits of its own.
 */
export function createGate(concurrent: number, waiting: number, most: SlotCount = { concurrent, waiting }) {
  const slots = createSlots({ concurrent, waiting }, most)
  const shared = most.concurrent < concurrent
  const lane = createSlots(
    { concurrent: Math.min(largeSlots, concurrent), waiting },
    { concurrent: Math.min(shared ? largeSlots / 2 : largeSlots, most.concurrent), waiting: most.waiting },
  )
  let last: Promise<void> = Promise.resolve()
  /** Number of tasks that keep a slot while they wait for the lane. */
  let idle = 0

  /** Resolves in a turn of the event loop of its own, if possible one in which no small task runs. */
  const turn = (): Promise<void> => {
    last = last.then(async () => {
      const begun = performance.now()
      do await new Promise((resolve) => setImmediate(resolve))
      while (slots.count.taken > idle && performance.now() - begun < smallFirstMs)
    })
    return last
  }

  const keepIdle = (claim: Claim): Claim => {
    idle++
    let left = false
    return {
      entered: claim.entered,
      leave: () => {
        if (!left) idle--
        left = true
        claim.leave()
      },
    }
  }

  /**
   * Admits a task at once, or refuses it. Its caller waits for `entered` before the work, and calls `end` after it.
   *
   * @param share Key of the share that the task belongs to.
   * @param taken Resolves when the reader has taken the answer: until then a large task keeps its slot in the lane, for at most three seconds. So
   * nobody can hold many large answers in memory by not reading them.
   */
  const enter = (share = '', taken?: () => Promise<unknown>): Running | { readonly refused: Crowded } => {
    const first = slots.take(share)
    if ('refused' in first) return first
    let claim: Claim = first
    let isLarge = false
    let ended = false

    /** @param keep Whether the task keeps its slot until it has one in the lane: its content is in memory already. */
    const enterLane = async (keep: boolean): Promise<void> => {
      // The caller is gone.
      if (ended) throw tooMuch()
      if (isLarge) return claim.entered
      const next = lane.take(share)
      if ('refused' in next) throw tooMuch()
      isLarge = true
      const own = keep ? keepIdle(claim) : claim
      claim = both(own, next)
      if (!keep) own.leave()
      await next.entered
      own.leave()
    }

    return {
      entered: first.entered,
      room: () => enterLane(false).then(turn),
      turn: () => enterLane(true).then(turn),
      breath: turn,
      end: () => {
        ended = true
        const { leave } = claim
        if (!isLarge || taken === undefined) leave()
        else void Promise.race([taken(), sleep(maxKeptMs, undefined, { ref: false })]).finally(leave)
      },
    }
  }

  return {
    enter,
    /** Runs a task when its turn comes. The other parameters are those of `enter`. */
    run: async <T>(
      task: (pass: Pass) => Promise<T>,
      share?: string,
      taken?: () => Promise<unknown>,
    ): Promise<{ readonly value: T } | { readonly refused: Crowded }> => {
      const running = enter(share, taken)
      if ('refused' in running) return running
      try {
        await running.entered
        return { value: await task(running) }
      } finally {
        running.end()
      }
    },
    /** Number of tasks that run, and that wait, at the moment, including the lane of large ones. */
    get running() {
      return slots.count.taken + lane.count.taken
    },
    get waiting() {
      return slots.count.waiting + lane.count.waiting
    },
  }
}

export type Gate = ReturnType<typeof createGate>

/** Combines two slots that are released together. */
function both(one: Claim, other: Claim): Claim {
  return {
    entered: other.entered,
    leave: () => {
      one.leave()
      other.leave()
    },
  }
}

function tooMuch(): ResourceError {
  return new ResourceError('unavailable', 'too many large answers are in flight', { retryAfter: 1 })
}

/** Why there is no slot: the share is exhausted, or the whole semaphore. */
export type Crowded = Extract<ErrorReason, 'share' | 'busy'>

interface SlotCount {
  /** Maximum number of claims that hold a slot at once. */
  readonly concurrent: number
  /** Maximum number of claims that wait for one. */
  readonly waiting: number
}

interface Claim {
  /** Resolves when the claim gets its slot; undefined when it has one already. After `leave`, it may never resolve. */
  readonly entered: Promise<void> | undefined
  /** Releases the slot, or leaves the queue. Further calls do nothing. */
  leave(): void
}

interface Share {
  running: number
  /** Undefined as long as none of its claims has had to wait. */
  queue: Set<Waiter> | undefined
}

/** A claim that waits. The tables of a `Set` live longer than its members, so a member must not keep its request in memory after that. */
interface Waiter {
  admit: (() => void) | undefined
}

/**
 * A fair semaphore with a bounded queue: shares take turns, however many claims each of them has.
 *
 * @param most Limits of one share.
 */
function createSlots({ concurrent, waiting }: SlotCount, most: SlotCount) {
  const count = { taken: 0, waiting: 0 }
  /** The shares with running or waiting claims, in the order of their turns. */
  const shares = new Map<string, Share>()

  /** Counts a claim that gets its slot (1), or releases it (-1). Its share goes to the end of the turns: shares that came while it ran go before it. */
  const settle = (key: string, share: Share, claims: 1 | -1): void => {
    count.taken += claims
    share.running += claims
    shares.delete(key)
    if (share.running + (share.queue?.size ?? 0) > 0) shares.set(key, share)
  }

  const nextInTurn = (): readonly [string, Share] | undefined => {
    for (const each of shares) if (each[1].queue?.size && each[1].running < most.concurrent) return each
    return undefined
  }

  /** Admits waiting claims while there are free slots. */
  const admit = (): void => {
    while (count.waiting > 0 && count.taken < concurrent) {
      const next = nextInTurn()
      const [waiter] = next?.[1].queue ?? []
      if (next === undefined || waiter === undefined) return
      count.waiting--
      next[1].queue?.delete(waiter)
      settle(...next, 1)
      waiter.admit?.()
      waiter.admit = undefined
    }
  }

  return {
    /** Number of claims that hold a slot, and that wait for one, at the moment. */
    count,
    /** Returns at once: a claim with a slot, a claim that waits for one, or the reason for a refusal. */
    take: (key: string): Claim | { readonly refused: Crowded } => {
      const share: Share = shares.get(key) ?? { running: 0, queue: undefined }
      let waiter: Waiter | undefined
      let left = false
      const leave = () => {
        if (left) return
        left = true
        if (waiter !== undefined && share.queue?.delete(waiter)) {
          waiter.admit = undefined
          count.waiting--
          if (share.running === 0 && share.queue.size === 0) shares.delete(key)
          return
        }
        settle(key, share, -1)
        if (count.waiting > 0) admit()
      }
      if (count.taken < concurrent && share.running < most.concurrent) {
        settle(key, share, 1)
        return { entered: undefined, leave }
      }
      const queue = share.queue ?? new Set()
      share.queue = queue
      if (queue.size >= most.waiting || count.waiting >= waiting) {
        // When a share may use the whole semaphore, the semaphore itself is exhausted.
        const own = queue.size >= most.waiting && most.waiting < waiting
        return { refused: own ? 'share' : 'busy' }
      }
      count.waiting++
      shares.set(key, share)
      const entered = new Promise<void>((resolve) => {
        waiter = { admit: resolve }
        queue.add(waiter)
      })
      return { entered, leave }
    },
  }
}
