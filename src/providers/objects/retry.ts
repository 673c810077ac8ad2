import { sleep } from '../../core/sleep.ts'

/** How often something is tried at most, and how long the waits between are at the longest: of the first, and of any. */
const attempts = 3
const [firstWait, longestWait] = [200, 2000]

/**
 * Does something again while it may come out otherwise, up to three times, after waits that are random, so that many callers do not
 * come back at once. A value that is not answered is released.
 */
export async function retrying<T>(
  work: () => Promise<T>,
  again: (outcome: { readonly value: T } | { readonly error: unknown }) => boolean,
  signal: AbortSignal,
  release: (value: T) => void,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    let outcome: { readonly value: T } | { readonly error: unknown }
    try {
      outcome = { value: await work() }
    } catch (error) {
      outcome = { error }
    }
    if (attempt === attempts || signal.aborted || !again(outcome)) {
      if ('error' in outcome) throw outcome.error
      return outcome.value
    }
    if ('value' in outcome) release(outcome.value)
    await sleep(Math.random() * Math.min(firstWait * 2 ** attempt, longestWait), signal)
  }
}
