/** Converts the value of a metric's sample in JSON to a number. A value that is not finite is a text there: `+Inf`, `-Inf`, `NaN`. */
export function parseSampleValue(value: unknown): number {
  if (value === '+Inf') return Number.POSITIVE_INFINITY
  return value === '-Inf' ? Number.NEGATIVE_INFINITY : Number(value)
}

/** Formats a number as Prometheus writes it: `1.5`, `+Inf`, `-Inf`, `NaN`. */
export function formatSampleValue(value: number): string {
  if (Number.isFinite(value) || Number.isNaN(value)) return String(value)
  return value > 0 ? '+Inf' : '-Inf'
}
