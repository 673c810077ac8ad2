import { signal } from '@preact/signals'

/** Current text of the live region. */
export const announced = signal('')

/** Minimum time between two announcements, in milliseconds: a screen reader reads the last of those that come together. */
const apart = 1000

let last = Number.NEGATIVE_INFINITY
let timer: ReturnType<typeof setTimeout> | undefined

/** Says a sentence to those who cannot see that something has changed. */
export function announce(sentence: string): void {
  clearTimeout(timer)
  timer = setTimeout(
    () => {
      last = performance.now()
      // The same sentence a second time is said only where it is another text.
      announced.value = announced.value === sentence ? `${sentence}\u00a0` : sentence
    },
    Math.max(0, last + apart - performance.now()),
  )
}
