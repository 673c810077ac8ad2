import type { Measurements } from '../core/measurements.ts'
import type { ProviderName } from '../providers/index.ts'
import type { Outcome } from '../wrap/limited.ts'

/** Counts what comes of the questions to a mount, where something is measured. Its address is not told: it may be a path. */
export function observed(
  provider: ProviderName,
  { measurements, place = 0 }: { readonly measurements?: Measurements; readonly place?: number },
): { readonly observe?: (outcome: Outcome) => void } {
  if (measurements === undefined) return {}
  const counts = new Map<Outcome, number>()
  measurements.add(() => [
    {
      name: 'hikidashi_source_answers_total',
      type: 'counter',
      help: 'What came of the questions to a source: by its mount (its place among all) and outcome.',
      samples: [...counts].map(([outcome, value]) => ({
        labels: { mount: String(place), provider, outcome: outcome.replace('-', '_') },
        value,
      })),
    },
  ])
  return { observe: (outcome) => void counts.set(outcome, (counts.get(outcome) ?? 0) + 1) }
}
