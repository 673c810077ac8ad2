import { gunzipSync, gzipSync } from 'node:zlib'
import { isResourceError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Store } from '../../store/store.ts'
import type { History, Sample } from './history.ts'

export interface KeepOptions {
  readonly store: Store
  /** Under which name. Processes that share one have one history. */
  readonly name: string
  /** In seconds. */
  readonly keep: number
  readonly history: History
  readonly log?: Log
}

export interface Kept {
  /** Writes a sample, sooner or later; one that cannot be written is lost to the next process, and to nobody else. */
  write(sample: Sample): void
  end(): Promise<void>
}

/** So many samples are read at once. */
const page = 500
/** So many samples wait for a store that is slow; then the oldest of them are given up. */
const mostWaiting = 100

/** Keeps a history in a store, and fills it with what is there already. What is too old goes by itself. */
export async function keepHistory({ store, name, keep, history, log = () => {} }: KeepOptions): Promise<Kept> {
  const rows = store.collection(`metrics/${name}`)
  const missing = (error: unknown) => {
    if (!isResourceError(error)) throw error
    log('warn', 'measurements cannot be kept just now', { error })
  }
  try {
    for (let after: string | undefined; ; ) {
      const found = await rows.list({ limit: page, values: true, ...(after === undefined ? {} : { after }) })
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

/** Times in the order of their texts. */
const keyOf = (time: number) =>
  Math.round(time * 1000)
    .toString()
    .padStart(16, '0')

/** A sample that was written, by whichever version: one that is none is passed over. */
function sampleIn(value: Uint8Array): Sample | undefined {
  try {
    const sample = JSON.parse(gunzipSync(value, { maxOutputLength: 16 * 1024 * 1024 }).toString()) as Partial<Sample>
    return typeof sample.time === 'number' && Array.isArray(sample.metrics) ? (sample as Sample) : undefined
  } catch {
    return undefined
  }
}
