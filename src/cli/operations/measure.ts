import { createMeasurements, type Measurements } from '../../core/measurements.ts'
import { providers } from '../../providers/index.ts'
import type { Local } from './local.ts'
import { packageVersion } from './version.ts'

/** Measurements of this process, until `end` is called. */
export interface Measuring {
  readonly measurements: Measurements
  end(): void
}

/** Measures this process, where that is served: by a mount of its own, or at `/metrics`. */
export async function startMeasuring({ config, mounts }: Local): Promise<Measuring | undefined> {
  const { metrics = false } = config?.http ?? {}
  const isMounted = mounts.some(({ config: mount }) => mount.provider === 'metrics' && mount.source === 'self')
  if (metrics === false && !isMounted) return undefined
  const { measureProcess } = await providers.metrics()
  const { measure, end } = measureProcess()
  const measurements = createMeasurements()
  const labels = { version: packageVersion(), node: process.version }
  const help = 'Which hikidashi this is, on which Node.'
  measurements.add(measure)
  measurements.add(() => [{ name: 'hikidashi_build_info', type: 'gauge', help, samples: [{ labels, value: 1 }] }])
  return { measurements, end }
}
