import { place } from '../state/place.ts'

interface Lines {
  readonly first: number
  readonly last: number
}

/** The lines that a permalink marks: `12`, or `12-20`. */
export function rangeOf(text: string | undefined): Lines | undefined {
  const [, from, to] = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(text ?? '') ?? []
  if (from === undefined) return undefined
  const [first, last] = [Number(from), Number(to ?? from)]
  return first <= last ? { first, last } : { first: last, last: first }
}

/** Returns the marked lines after a click on a line number. With Shift: from the marked line to this one. */
export function lineFor(number: number, isExtended: boolean): string | undefined {
  const now = rangeOf(place.value.line)
  if (isExtended && now !== undefined) return `${Math.min(now.first, number)}-${Math.max(now.last, number)}`
  return place.value.line === String(number) ? undefined : String(number)
}

/** The line number that was clicked. `undefined`: something else was clicked. */
export function numberAt({ target }: Event): number | undefined {
  // The number is before the code, which is a separate element.
  if (!(target instanceof HTMLElement) || !target.classList.contains('line')) return undefined
  const number = Number(target.dataset.n)
  return Number.isSafeInteger(number) ? number : undefined
}
