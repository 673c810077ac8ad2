import { signal } from '@preact/signals'

/** Current text of the live region. */
export const announced = signal('')

/** Minimum time between two announcements, in milliseconds: if several arrive together, a screen reader reads only the last. */
const apart = 1000

let last = Number.NEGATIVE_INFINITY
let timer: ReturnType<typeof setTimeout> | undefined

/** Announces a sentence to readers who cannot see a change. */
export function announce(sentence: string): void {
  clearTimeout(timer)
  timer = setTimeout(
    () => {
      last = performance.now()
      // A screen reader repeats the same sentence only if its text differs.
      announced.value = announced.value === sentence ? `${sentence}\u00a0` : sentence
    },
    Math.max(0, last + apart - performance.now()),
  )
}

/** Copies a text to the clipboard. Returns whether that worked. */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return copyBySelection(text)
  }
}

/** Copies by a selection, which works without a secure context, unlike the clipboard API. */
function copyBySelection(text: string): boolean {
  const field = document.createElement('textarea')
  field.value = text
  field.setAttribute('readonly', '')
  field.className = 'copy-field'
  const before = document.activeElement
  document.body.append(field)
  field.select()
  const done = document.execCommand('copy')
  field.remove()
  if (before instanceof HTMLElement) before.focus()
  return done
}
