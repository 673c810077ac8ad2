/** A metric with what was measured of it, as the exposition format of Prometheus has it. */
export interface Measured {
  /** By the conventions of Prometheus: `process_cpu_seconds_total`. */
  readonly name: string
  readonly type: 'counter' | 'gauge'
  /** A sentence that says what it is. */
  readonly help: string
  readonly samples: readonly MeasuredSample[]
}

export interface MeasuredSample {
  /** Few, with few values each, none of which comes from a client. */
  readonly labels?: Readonly<Record<string, string>>
  readonly value: number
}

/** What a process measures of itself: whoever knows something adds it, whoever tells it reads all. */
export interface Measurements {
  /** Adds what is asked whenever somebody reads. Answers what takes it out again. */
  add(measure: () => readonly Measured[]): () => void
  /** Everything, as it is now: each name once, in the order in which it was added. */
  read(): readonly Measured[]
}

export function createMeasurements(): Measurements {
  const measures = new Set<() => readonly Measured[]>()
  return {
    add: (measure) => {
      // A function of its own: what is added twice is taken out twice.
      const own = () => measure()
      measures.add(own)
      return () => void measures.delete(own)
    },
    read: () => {
      const byName = new Map<string, Measured>()
      for (const measure of measures)
        for (const measured of measure()) {
          const known = byName.get(measured.name)
          byName.set(measured.name, known ? { ...known, samples: [...known.samples, ...measured.samples] } : measured)
        }
      return [...byName.values()]
    },
  }
}
