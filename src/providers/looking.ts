import { isResourceError } from '../core/errors.ts'
import { sleep } from '../core/kit/abort.ts'
import type { Change } from '../core/provider.ts'

export interface LookingOptions<T> {
  /** From the end of one look to the beginning of the next, in milliseconds. */
  readonly interval: number
  /** Throws ResourceError where the source does not answer: it is looked at again, less and less often. */
  look(signal: AbortSignal): Promise<T>
  changesOf(before: T, now: T): Iterable<Change>
}

export interface Looking {
  watch(signal: AbortSignal): Promise<AsyncIterable<Change>>
  /** Whether the source did not answer when it was last looked at. */
  readonly away: boolean
}

/** The longest wait while the source does not answer, in looks. */
const longest = 8

/** Tells of changes by looking at a source once in an interval, and comparing it with what it was. */
export function createLooking<T>({ interval, look, changesOf }: LookingOptions<T>): Looking {
  let away = false

  const follow = async function* (first: T, signal: AbortSignal): AsyncGenerator<Change> {
    let known = first
    let waits = 1
    while (!signal.aborted) {
      // Many replicas that began at once do not ask at once.
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
