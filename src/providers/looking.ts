import { isResourceError } from '../core/errors.ts'
import { sleep } from '../core/kit/abort.ts'
import type { Change } from '../core/provider.ts'

interface LookingOptions<T> {
  /** Pause between two polls, in milliseconds. */
  readonly interval: number
  /** Throws ResourceError if the source does not answer: the pauses then become longer. */
  look(signal: AbortSignal): Promise<T>
  changesOf(before: T, now: T): Iterable<Change>
}

export interface Looking {
  watch(signal: AbortSignal): Promise<AsyncIterable<Change>>
  /** Whether the source did not answer the last poll. */
  readonly away: boolean
}

/** Longest pause while the source does not answer, in intervals. */
const longest = 8

/** Reports changes of a source: polls it at an interval, and compares it with its previous state. */
export function createLooking<T>({ interval, look, changesOf }: LookingOptions<T>): Looking {
  let away = false

  const follow = async function* (first: T, signal: AbortSignal): AsyncGenerator<Change> {
    let known = first
    let waits = 1
    while (!signal.aborted) {
      // Spreads the polls of replicas that started at the same time.
      await sleep(interval * waits * (0.9 + Math.random() * 0.2), signal)
      if (signal.aborted) return
      try {
        const now = await look(signal)
        yield* changesOf(known, now)
        known = now
        waits = 1
        away = false
      } catch (error) {
        if (signal.aborted) return
        if (!isResourceError(error)) throw error
        away = true
        waits = Math.min(waits * 2, longest)
      }
    }
  }

  return {
    watch: async (signal) => {
      const first = await look(signal)
      away = false
      return follow(first, signal)
    },
    get away() {
      return away
    },
  }
}
