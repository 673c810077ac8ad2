/**
 * The seeds of a run: `HIKIDASHI_SEED` is the first of them (otherwise it is always the same), `HIKIDASHI_SEEDS` says how many
 * there are (otherwise one).
 */
export function seeds(): readonly number[] {
  const first = numberOf('HIKIDASHI_SEED', 1)
  return Array.from({ length: numberOf('HIKIDASHI_SEEDS', 1) }, (_, i) => first + i)
}

function numberOf(name: string, otherwise: number): number {
  const given = process.env[name]
  if (given === undefined) return otherwise
  const number = Number(given)
  if (!Number.isSafeInteger(number) || number < 1) throw new Error(`${name} is not a number: ${given}`)
  return number
}
