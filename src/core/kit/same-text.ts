import { timingSafeEqual } from 'node:crypto'

/** Whether a value is the expected text. The time of the comparison does not depend on the place of the first difference. */
export function isSameText(value: unknown, expected: string): boolean {
  if (typeof value !== 'string') return false
  const [a, b] = [Buffer.from(value), Buffer.from(expected)]
  return a.length === b.length && timingSafeEqual(a, b)
}
