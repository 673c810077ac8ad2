/** Normalised discounted cumulative gain of the first ten results: 1 if all relevant documents come first. */
export function ndcg(found: readonly string[], relevant: ReadonlySet<string>): number {
  const gain = found.slice(0, 10).reduce((sum, id, at) => sum + (relevant.has(id) ? 1 / Math.log2(at + 2) : 0), 0)
  let ideal = 0
  for (let at = 0; at < Math.min(10, relevant.size); at++) ideal += 1 / Math.log2(at + 2)
  return gain / ideal
}

/** The share of the relevant documents that are among the first `count` results. */
export function recall(
  found: readonly string[],
  relevant: ReadonlySet<string>,
  count = Number.POSITIVE_INFINITY,
): number {
  return found.slice(0, count).filter((id) => relevant.has(id)).length / relevant.size
}

export const mean = (values: readonly number[]) =>
  values.length === 0 ? Number.NaN : values.reduce((sum, value) => sum + value, 0) / values.length

/** Number of samples of a bootstrap. */
const samples = 1000

/** The 95 % interval of the mean of values: bootstrap over the questions, with the same samples in each run. */
export function intervalOf(values: readonly number[]): readonly [low: number, high: number] {
  let state = 1
  const draw = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return values[Math.floor((state / 2 ** 32) * values.length)] ?? 0
  }
  const means = Array.from({ length: samples }, () => mean(values.map(draw))).sort((a, b) => a - b)
  return [means[Math.floor(0.025 * samples)] ?? 0, means[Math.floor(0.975 * samples)] ?? 0]
}

/** Whether a question is in the half of its set on which no constant is chosen. It depends only on the id, so it never changes. */
export function isHeldBack(id: string): boolean {
  let hash = 0x811c9dc5
  for (let at = 0; at < id.length; at++) hash = Math.imul(hash ^ id.charCodeAt(at), 0x01000193)
  return ((hash >>> 16) & 1) === 1
}
