import { sleep } from '../../core/kit/sleep.ts'

/** Maximum number of attempts, and the maximum of the first wait and of any wait between them, in milliseconds. */
const attempts = 3
const [firstWait, longestWait] = [200, 2000]

/**
 * Runs work up to three times, with random waits between the attempts, so that many callers do not retry at once. Releases values that are not
 * returned.
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
