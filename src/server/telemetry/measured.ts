import type { Measured } from '../../core/measurements.ts'
import { type Meter, type MeterName, meterNames } from './meter.ts'

/** Metrics of a current state, by their names; all others are counters. */
const gauges: Readonly<Partial<Record<MeterName, string>>> = {
  inFlight: 'hikidashi_requests_in_flight',
  waiting: 'hikidashi_requests_waiting',
  connections: 'hikidashi_connections',
}

/** Converts a meter to metrics, by the conventions of Prometheus: refusals are one metric, with the reason as its label. */
export function measureMeter(meter: Meter): readonly Measured[] {
  const counts = meter.read()
  const names = Object.keys(meterNames) as MeterName[]
  const refusals = names.filter((name) => name.startsWith('refused'))
  const others = names.filter((name) => !name.startsWith('refused'))
  return [
    ...others.map((name): Measured => {
      const gauge = gauges[name]
      return {
        name: gauge ?? `hikidashi_${snake(name)}_total`,
        type: gauge === undefined ? 'counter' : 'gauge',
        help: `The number of ${meterNames[name]}.`,
        samples: [{ value: counts[name] }],
      }
    }),
    {
      name: 'hikidashi_refused_total',
      type: 'counter',
      help: 'The number of requests and connections that were refused, by the reason.',
      samples: refusals.map((name) => ({
        labels: { reason: snake(name.slice('refused'.length)) },
        value: counts[name],
      })),
    },
  ]
}

/** Converts `InFlight` to `in_flight`. */
function snake(name: string): string {
  return name.replace(/(?!^)[A-Z]/g, '_$&').toLowerCase()
}
