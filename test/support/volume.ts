/**
 * The share of its volume that a test runs: its random cases, rounds, clients or entries. A tenth by default, so that `npm test`
 * is quick; `HIKIDASHI_VOLUME=full` (or another number) runs all of it, as continuous integration does.
 */
export const volume: number = shareOf(process.env.HIKIDASHI_VOLUME ?? '0.1')

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
