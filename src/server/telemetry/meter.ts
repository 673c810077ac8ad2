import type { MetricFamily } from '../../core/log.ts'

/** The counters and gauges with their meanings. Each meaning follows "The number of". Counters only grow. */
export const meterNames = {
  requests: 'requests that came over HTTP',
  refusedRate: 'requests over the rate limit of a principal (429)',
  refusedShare: 'requests over the number that a principal may have in flight (429)',
  refusedBusy: 'requests that came when the queue was full (503)',
  refusedSessions: 'sessions that were not opened, since there were too many (503)',
  refusedBody: 'requests with a body that was too long (413)',
  refusedUri: 'requests for a path that was too long with its query (414)',
  refusedHeaders: 'requests with headers that were too long (431)',
  refusedTokens: 'requests with an invalid token, over the limit of an address (429)',
  pausedPipelines: 'pauses in reading a connection with too many requests in flight',
  cutPipelines: 'connections that were cut because far too many requests were in flight on them',
  refusedConnects: 'connections that were turned away, since too many came from one address (429)',
  refusedConnections: 'connections that were closed at once, since there were too many',
  late: 'requests whose head or body took too long (408)',
  inFlight: 'requests in progress',
  waiting: 'waiting requests',
  connections: 'open connections',
  sessions: 'open sessions of the revisions before 2026-07-28',
} as const

export type MeterName = keyof typeof meterNames

export type Meter = ReturnType<typeof createMeter>

export function createMeter() {
  const names = Object.keys(meterNames) as MeterName[]
  const counts = new Map<MeterName, number>()
  const gauges = new Map<MeterName, () => number>()
  return {
    count: (name: MeterName, by = 1) => void counts.set(name, (counts.get(name) ?? 0) + by),
    /** Registers a function that reads the current value of a gauge. */
    gauge: (name: MeterName, readValue: () => number) => void gauges.set(name, readValue),
    read: (): Readonly<Record<MeterName, number>> =>
      Object.fromEntries(names.map((name) => [name, gauges.get(name)?.() ?? counts.get(name) ?? 0])) as Record<
        MeterName,
        number
      >,
  }
}

const gauges: Readonly<Partial<Record<MeterName, string>>> = {
  inFlight: 'hikidashi_requests_in_flight',
  waiting: 'hikidashi_requests_waiting',
  connections: 'hikidashi_connections',
  sessions: 'hikidashi_sessions',
}

/** Converts a meter to metrics, by the conventions of Prometheus: refusals are one metric, with the reason as its label. */
export function metricsOfMeter(meter: Meter): readonly MetricFamily[] {
  const counts = meter.read()
  const names = Object.keys(meterNames) as MeterName[]
  const refusals = names.filter((name) => name.startsWith('refused'))
  const others = names.filter((name) => !name.startsWith('refused'))
  return [
    ...others.map((name): MetricFamily => {
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

function snake(name: string): string {
  return name.replace(/(?!^)[A-Z]/g, '_$&').toLowerCase()
}
