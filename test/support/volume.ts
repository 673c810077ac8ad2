/**
 * The share of its volume that a test runs: random cases, rounds, clients or entries. A tenth by default, so that `npm test` is
 * quick; `HIKIDASHI_VOLUME=full` (or another number) sets it.
 */
export const volume: number = shareOf(process.env.HIKIDASHI_VOLUME ?? '0.1')

/** Whether expensive tests that add little run too: where no test may be skipped, as in continuous integration, and in a larger volume. */
export const isThorough = volume >= 0.25 || (process.env.HIKIDASHI_REQUIRE ?? '') !== ''

function shareOf(text: string): number {
  const share = text === 'full' ? 1 : Number(text)
  if (!(share > 0)) throw new Error(`HIKIDASHI_VOLUME must be "full" or a number above 0, not ${JSON.stringify(text)}.`)
  return share
}

/**
 * Returns the share of a count for this run. Not for a count on which a limit or the tested behaviour depends.
 * @param least The smallest count with which the test is meaningful.
 */
export function volumeOf(full: number, least = 1): number {
  return Math.max(least, Math.ceil(full * volume))
}

/**
 * Returns the cases for this run, in order and spread evenly; in full volume, all. The name of the row decides which ones, so
 * each run has the same.
 * @param least The smallest number of cases with which the test is meaningful.
 */
export function someOf<T>(row: string, cases: readonly T[], least = 1, share: number = volume): readonly T[] {
  const count = Math.max(least, Math.ceil(cases.length * share))
  if (count >= cases.length) return cases
  const first = hash(row) % cases.length
  const chosen = new Set(
    Array.from({ length: count }, (_, i) => (first + Math.floor((i * cases.length) / count)) % cases.length),
  )
  return cases.filter((_, i) => chosen.has(i))
}

/**
 * Whether a row, by its number, is tested at one of several places: in full volume at each of them, otherwise at its share of
 * them, in turn.
 */
export function hasTurn(row: number, place: number, places: number, share: number = volume): boolean {
  const behind = (((place - row) % places) + places) % places
  return behind < Math.max(1, Math.ceil(places * share))
}

/** FNV-1a in 32 bits, with its upper half mixed into the lower one, whose lowest bits are weak. */
function hash(text: string): number {
  let sum = 0x811c9dc5
  for (const byte of new TextEncoder().encode(text)) sum = Math.imul(sum ^ byte, 0x01000193)
  return (sum ^ (sum >>> 16)) >>> 0
}
