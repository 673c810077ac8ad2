import { setTimeout as sleep } from 'node:timers/promises'
import { ResourceError } from '../core/errors.ts'
import { type Claim, type Crowded, createPlaces, type PlaceCount } from './places.ts'

export type { Crowded } from './places.ts'

/**
 * Lets so many tasks run at once, and so many wait; refuses the rest at once. Whoever has a share of it takes turns with the
 * others, however many tasks it brings. A task that turns out to be large goes on in a lane of its own, a few at once, so that
 * small ones do not wait for it.
 */
export interface Gate {
  /**
   * Runs a task when its turn comes.
   *
   * @param share Whose share it is taken of.
   */
  run<T>(
    task: (pass: Pass) => Promise<T>,
    share?: string,
  ): Promise<{ readonly value: T } | { readonly refused: Crowded }>
  /** How many run, and how many wait, just now; in the lane of large ones too. */
  readonly running: number
  readonly waiting: number
}

/** What a task is let in with. */
export interface Pass {
  /**
   * To be waited for before anything large is brought: resolves when there is room for it in memory. Meanwhile the task takes
   * no place of others.
   *
   * @throws ResourceError `unavailable` where too many wait for that already.
   */
  room(): Promise<void>
  /**
   * To be waited for before anything large is written, whether there was room for it or it came by surprise: resolves in a
   * turn of the event loop that no other large one is given.
   *
   * @throws ResourceError as `room` does.
   */
  turn(): Promise<void>
  /** To be waited for between pieces of something large: resolves as `turn` does. */
  breath(): Promise<void>
  /**
   * To be told when the answer is taken by its reader: until then a large one keeps its place in the lane, though for three
   * seconds at most. So nobody has many of them in memory at once by not reading them.
   */
  until(taken: Promise<unknown>): void
}

/** So many large tasks run at once. Each costs the event loop some milliseconds for each megabyte, and several times its size in memory. */
const large = 4
/** How long a large answer keeps its place while its reader does not take it, in milliseconds. */
const longestKept = 3000
/** How long a large task lets small ones go first, in milliseconds. */
const patience = 20

/** @param most What one share may have of it. By default all. */
export function createGate(concurrent: number, waiting: number, most: PlaceCount = { concurrent, waiting }): Gate {
  const places = createPlaces({ concurrent, waiting }, most)
  const shared = most.concurrent < concurrent
  const lane = createPlaces(
    { concurrent: Math.min(large, concurrent), waiting },
    { concurrent: Math.min(shared ? large / 2 : large, most.concurrent), waiting: most.waiting },
  )
  let last: Promise<void> = Promise.resolve()
  /** Those that keep a place while they wait for the lane. */
  let idle = 0

  /** Resolves in a turn of the event loop of its own, if it can be one in which nothing small is at work. */
  const turn = (): Promise<void> => {
    last = last.then(async () => {
      const begun = performance.now()
      do await new Promise((resolve) => setImmediate(resolve))
      while (places.taken > idle && performance.now() - begun < patience)
    })
    return last
  }

  const keepIdle = (place: Claim): Claim => {
    idle++
    let left = false
    return {
      ...place,
      leave: () => {
        if (!left) idle--
        left = true
        place.leave()
      },
    }
  }

  return {
    run: async (task, share = '') => {
      const first = places.take(share)
      if ('refused' in first) return first
      let claim: Claim = first
      let isLarge = false
      let ended = false
      let kept: Promise<unknown> | undefined
      /** @param keep Whether it keeps its place until it is in. */
      const enterLane = async (keep: boolean): Promise<void> => {
        // Whoever asked is gone.
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
      const pass: Pass = {
        room: async () => {
          await enterLane(false)
          await turn()
        },
        turn: async () => {
          // It is in memory already: until it is its turn, nobody else takes its place.
          await enterLane(true)
          await turn()
        },
        breath: turn,
        until: (taken) => {
          kept = taken
        },
      }
      try {
        if (first.entered !== undefined) await first.entered
        return { value: await task(pass) }
      } finally {
        ended = true
        if (!isLarge || kept === undefined) claim.leave()
        else void Promise.race([kept, sleep(longestKept, undefined, { ref: false })]).finally(claim.leave)
      }
    },
    get running() {
      return places.taken + lane.taken
    },
    get waiting() {
      return places.waiting + lane.waiting
    },
  }
}

/** Two places that are left together. */
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
  return new ResourceError('unavailable', 'too many large answers are waited for', { retryAfter: 1 })
}
