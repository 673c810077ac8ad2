export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** Writes a message to the operator's log. Message and fields must not contain contents, tokens or secrets. */
export type Log = (level: LogLevel, message: string, fields?: Readonly<Record<string, unknown>>) => void

/** A metric with its samples, as in the exposition format of Prometheus. */
export interface MetricFamily {
  /** Name by the conventions of Prometheus: `process_cpu_seconds_total`. */
  readonly name: string
  readonly type: 'counter' | 'gauge'
  readonly help: string
  readonly samples: readonly MeasuredSample[]
}

interface MeasuredSample {
  /** Few labels, with few values each, none of which comes from a client. */
  readonly labels?: Readonly<Record<string, string>>
  readonly value: number
}

export function createMetricsRegistry() {
  const measures = new Set<() => readonly MetricFamily[]>()
  return {
    /** Adds a function that measures at each read. Returns a function that removes it again. */
    add: (measure: () => readonly MetricFamily[]): (() => void) => {
      // Wrap the function, so that one that is added twice has to be removed twice.
      const own = () => measure()
      measures.add(own)
      return () => void measures.delete(own)
    },
    /** Returns all current metrics: each name once, in the order in which it was added. */
    read: (): readonly MetricFamily[] => {
      const byName = new Map<string, MetricFamily>()
      for (const measure of measures)
        for (const measured of measure()) {
          const family = byName.get(measured.name)
          byName.set(
            measured.name,
            family ? { ...family, samples: [...family.samples, ...measured.samples] } : measured,
          )
        }
      return [...byName.values()]
    },
  }
}

export type MetricsRegistry = ReturnType<typeof createMetricsRegistry>
