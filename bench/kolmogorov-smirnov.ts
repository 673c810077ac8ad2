/**
 * The two-sample Kolmogorov-Smirnov test. `distance` is the largest distance between the two empirical distributions, and `p` the probability
 * of such a distance if both samples have the same distribution (asymptotic series with Stephens' correction).
 */
export function compareSamples(a: readonly number[], b: readonly number[]): { distance: number; p: number } {
  const x = [...a].sort((one, other) => one - other)
  const y = [...b].sort((one, other) => one - other)
  let distance = 0
  for (let i = 0, j = 0; i < x.length && j < y.length; ) {
    const at = Math.min(x[i] ?? 0, y[j] ?? 0)
    while (i < x.length && (x[i] ?? 0) <= at) i++
    while (j < y.length && (y[j] ?? 0) <= at) j++
    distance = Math.max(distance, Math.abs(i / x.length - j / y.length))
  }
  const size = Math.sqrt((x.length * y.length) / (x.length + y.length))
  const scaled = (size + 0.12 + 0.11 / size) * distance
  // The series does not converge for a distance near 0, for which the probability is 1.
  if (scaled < 0.2) return { distance, p: 1 }
  let sum = 0
  for (let k = 1; k <= 100; k++) sum += (k % 2 === 1 ? 2 : -2) * Math.exp(-2 * k * k * scaled * scaled)
  return { distance, p: Math.min(1, Math.max(0, sum)) }
}
