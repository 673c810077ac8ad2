/**
 * The share of its volume that a test runs: its random cases, rounds, clients or entries. A tenth by default, so that `npm test`
 * is quick, and a quarter in continuous integration; `HIKIDASHI_VOLUME=full` (or another number) runs all of it.
 */
export const volume: number = shareOf(process.env.HIKIDASHI_VOLUME ?? '0.1')

/** Whether what costs much, and shows little that other tests do not show, is tried too: in continuous integration it is. */
export const isThorough = volume >= 0.25

function shareOf(text: string): number {
  const share = text === 'full' ? 1 : Number(text)
  if (!(share > 0)) throw new Error(`HIKIDASHI_VOLUME must be "full" or a number above 0, not ${JSON.stringify(text)}.`)
  return share
}

/**
 * The share of a count that this run does. Only for a count that could as well be another one: never for one that a limit, or
 * the behaviour under test, depends on.
 *
 * @param least What the test needs in order to show anything at all.
 */
export function volumeOf(full: number, least = 1): number {
  return Math.max(least, Math.ceil(full * volume))
}

/**
 * The share of cases that this run tries, in their order and spread evenly over all of them; in full volume, all. Which ones follows
 * from the name of the row: in each run the same, and in another row of the same cases others.
 *
 * @param least How many the test needs in order to show anything at all.
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

/** Whether a row, by its number, is tried in a place of several: in full volume in each of them, otherwise in its share of them, in turn. */
export function hasTurn(row: number, place: number, places: number, share: number = volume): boolean {
  const behind = (((place - row) % places) + places) % places
  return behind < Math.max(1, Math.ceil(places * share))
}

/** FNV-1a in 32 bits, with its upper half mixed into the lower: the lowest bits alone follow from the lowest ones of each byte. */
function hash(text: string): number {
  let sum = 0x811c9dc5
  for (const byte of new TextEncoder().encode(text)) sum = Math.imul(sum ^ byte, 0x01000193)
  return (sum ^ (sum >>> 16)) >>> 0
}
