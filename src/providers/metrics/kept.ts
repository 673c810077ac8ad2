import { gunzipSync, gzipSync } from 'node:zlib'
import { isResourceError } from '../../core/errors.ts'
import { defined } from '../../core/kit/defined.ts'
import type { Log } from '../../core/log.ts'
import type { Store } from '../../store/store.ts'
import type { History, Sample } from './history.ts'

export interface KeepOptions {
  readonly store: Store
  /** Name of the history in the store. Processes with the same name share one history. */
  readonly name: string
  /** Retention time, in seconds. */
  readonly keep: number
  readonly history: History
  readonly log?: Log
}

export interface Kept {
  /** Writes a sample in the background; a failed write loses the sample only for later processes. */
  write(sample: Sample): void
  end(): Promise<void>
}

/** Number of samples per read. */
const page = 500
/** Maximum number of samples that wait for a slow store; above it the oldest are dropped. */
const mostWaiting = 100

/** Persists a history in a store, and loads the samples already there. Old samples expire by themselves. */
export async function keepHistory({ store, name, keep, history, log = () => {} }: KeepOptions): Promise<Kept> {
  const rows = store.collection(`metrics/${name}`)
  const missing = (error: unknown) => {
    if (!isResourceError(error)) throw error
    log('warn', 'measurements cannot be kept just now', { error })
  }
  try {
    for (let after: string | undefined; ; ) {
      const found = await rows.list({ limit: page, values: true, ...defined({ after }) })
      for (const { value } of found) {
        const sample = sampleIn(value)
        if (sample !== undefined) history.add(sample)
      }
      after = found.at(-1)?.key
      if (found.length < page) break
    }
  } catch (error) {
    missing(error)
  }

  const waiting: Sample[] = []
  let writing: Promise<void> | undefined
  const writeAll = async (): Promise<void> => {
    for (let sample = waiting.shift(); sample !== undefined; sample = waiting.shift()) {
      const { time } = sample
      const value = gzipSync(JSON.stringify(sample))
      await rows.put({ key: keyOf(time), value, expires: Math.round((time + keep) * 1000) }).catch(missing)
    }
  }
  return {
    write: (sample) => {
      waiting.push(sample)
      if (waiting.length > mostWaiting) waiting.shift()
      writing ??= writeAll().finally(() => {
        writing = undefined
      })
    },
    end: async () => {
      await writing
    },
  }
}

/** Formats a time so that text order is time order. */
const keyOf = (time: number) =>
  Math.round(time * 1000)
    .toString()
    .padStart(16, '0')

/** Parses a stored sample of any version of this program; undefined when it is invalid. */
function sampleIn(value: Uint8Array): Sample | undefined {
  try {
    const sample = JSON.parse(gunzipSync(value, { maxOutputLength: 16 * 1024 * 1024 }).toString()) as Partial<Sample>
    return typeof sample.time === 'number' && Array.isArray(sample.metrics) ? (sample as Sample) : undefined
  } catch {
    return undefined
  }
}
