import { invalid, type ResourceError, unavailable } from '../../core/errors.ts'
import { singleFlight } from '../../core/kit/abort.ts'
import { defined } from '../../core/kit/object.ts'
import type { Log } from '../../core/log.ts'
import type { Scrubber } from '../../core/scrub.ts'
import type { StoreOutcome } from '../../core/tool.ts'
import type { Collection } from '../../store/store.ts'
import type { TagList } from './list.ts'
import { type Analysis, mapTexts, type NewAnalysis, parseAnalysis, parseZonedTime } from './record.ts'
import { formatRow, hashAnalysis, idFromDigest, type ParsedRow, parseRow, termsOf } from './row.ts'

export type { StoreOutcome } from '../../core/tool.ts'

/** Limits of the stored results. Beyond them, the results that were written least recently are removed. */
export interface ResultLimits {
  readonly records?: number
  readonly bytes?: number
  /** Maximum time since the last write, in milliseconds. */
  readonly age?: number
}

export interface WriteOptions {
  /** Lifetime of an analysis without an expiry time, in milliseconds. Default: for ever. */
  readonly ttl?: number
  readonly keep?: ResultLimits
  /** Maximum size of an analysis as JSON, with some facts for listings, in bytes. Default 1 MiB. */
  readonly maxBytes?: number
  /** The language of an analysis that does not name one. Default `en`. */
  readonly language?: string
  /** Removes known secrets before an analysis is stored. */
  readonly scrubber?: Scrubber
  readonly log?: Log
}

export type ResultWriter = ReturnType<typeof createResultWriter>

const defaultMaxBytes = 1024 * 1024
const attempts = 16
/** Interval at which the limits are checked while results are written, in milliseconds. */
const evictIntervalMs = 1000
/** Tolerated lead of a writer's clock, in milliseconds. */
const maxAheadMs = 24 * 3_600_000

export function createResultWriter(records: Collection, tags: TagList, options: WriteOptions) {
  const { ttl, keep = {}, maxBytes = defaultMaxBytes, language = 'en', scrubber, log = () => {} } = options
  let timer: NodeJS.Timeout | undefined
  let evicted = 0

  const evicting = singleFlight(() =>
    records.evict(boundsOf(keep)).finally(() => {
      evicted = performance.now()
    }),
  )

  const evictSoon = (): void => {
    if (timer !== undefined) return
    const waitMs = Math.max(0, evicted + evictIntervalMs - performance.now())
    timer = setTimeout(() => void evictPending(), evicted === 0 ? 0 : waitMs)
    timer.unref()
  }
  const evictPending = async (): Promise<void> => {
    if (timer === undefined) return
    clearTimeout(timer)
    timer = undefined
    // The next write tries again.
    await evicting.run().catch((error) => log('warn', 'old results could not be removed', { error }))
  }

  const clean = (value: NewAnalysis): NewAnalysis => {
    if (scrubber === undefined) return value
    if (value.id !== undefined && scrubber.scrub(value.id) !== value.id)
      throw invalid('id: It contains a secret. Use another id.', 'argument', { field: 'id' })
    const { prompt, votes, consensus, tags } = value
    const texts = { prompt, votes, consensus, ...defined({ tags }) }
    return { ...value, ...(mapTexts(texts, (text) => scrubber.scrub(text)) as typeof texts) }
  }

  /** Returns the analysis to store, completed from the one that is stored under its id. */
  const complete = (newAnalysis: NewAnalysis, previous: ParsedRow | undefined): Analysis => {
    const now = Date.now()
    const created = newAnalysis.created === undefined ? now : (parseZonedTime(newAnalysis.created) ?? now)
    if (created > now + maxAheadMs) throw wrongTime('created', 'It must be at most a day in the future.')
    const before = previous?.head
    const times = before === undefined ? undefined : { created: before.created, expires: before.expires }
    const end =
      newAnalysis.expires === undefined
        ? ttl === undefined
          ? undefined
          : created + ttl
        : parseZonedTime(newAnalysis.expires)
    const expires = newAnalysis.expires === undefined && times !== undefined ? times.expires : timeText(end)
    if (expires !== undefined && (parseZonedTime(expires) ?? 0) <= now)
      throw newAnalysis.expires === undefined && newAnalysis.created !== undefined
        ? wrongTime('created', 'It is so long ago that the result would expire at once. Write "expires", too.')
        : wrongTime('expires', 'It must be in the future, or the result would expire at once.')
    const { id, expires: _, ...rest } = newAnalysis
    const analysis = {
      ...rest,
      language: newAnalysis.language ?? language,
      totalCost: newAnalysis.totalCost ?? sumOf(newAnalysis.votes),
      created:
        newAnalysis.created === undefined && times !== undefined ? times.created : new Date(created).toISOString(),
      ...defined({ expires }),
      tags: newAnalysis.tags ?? before?.tags ?? [],
    }
    return withFixedKeyOrder({ id: id ?? idFromDigest(hashAnalysis(analysis)), ...analysis })
  }

  const prepare = (value: unknown): Analysis => complete(clean(parseAnalysis(value)), undefined)

  const write = async (newAnalysis: NewAnalysis): Promise<StoreOutcome> => {
    for (let attempt = 0; attempt < attempts; attempt++) {
      const fresh = complete(newAnalysis, undefined)
      const row = await records.get(fresh.id)
      const previous = row === undefined ? undefined : parseRow(row)
      // With the same content, omitted members keep their stored values; other content gets its own times.
      const isSame = previous !== undefined && previous.head.digest === hashAnalysis(fresh)
      const analysis = isSame ? complete({ ...newAnalysis, id: fresh.id }, previous) : fresh
      const value = formatRow(analysis)
      if (previous !== undefined && Buffer.from(previous.row.value).equals(value))
        return storedOf(analysis, 'unchanged')
      requireSize(value, maxBytes)
      const end = analysis.expires === undefined ? undefined : parseZonedTime(analysis.expires)
      // Write the tags first, so that a result is never without its tags.
      await tags.note(analysis.tags, end)
      const newRow = await records.put(
        { key: analysis.id, value, terms: termsOf(analysis), ...defined({ expires: end }) },
        previous === undefined ? { absent: true } : { revision: previous.row.revision },
      )
      if (newRow === undefined) continue
      evictSoon()
      return storedOf(analysis, previous === undefined ? 'created' : 'replaced')
    }
    throw unavailable('Too many callers write this result at once. Try again later.', { reason: 'busy' })
  }

  return {
    put: async (value: unknown): Promise<StoreOutcome> => write(clean(parseAnalysis(value))),
    /** Returns the analysis as it would be stored if its id were new. */
    prepare,
    /** @throws ResourceError `invalid` if the analysis is malformed or too large. */
    check: (value: unknown): void => requireSize(formatRow(prepare(value)), maxBytes),
    delete: (id: string): Promise<boolean> => records.delete(id),
    evict: evicting.run,
    /** Waits for a running check of the limits, and runs a scheduled one at once. */
    close: async (): Promise<void> => {
      // A running check may not know the last write.
      while (evicting.running !== undefined || timer !== undefined) {
        await evicting.running?.catch(() => {})
        await evictPending()
      }
    },
  }
}

function requireSize({ byteLength: size }: Uint8Array, limit: number): void {
  if (size > limit)
    throw invalid(`The analysis must have at most ${limit} bytes, and has ${size}.`, 'too-large', { limit, size })
}

function wrongTime(field: 'created' | 'expires', why: string): ResourceError {
  return invalid(`${field}: ${why}`, 'argument', { field })
}

/** The last time that ISO 8601 can write with a year of four digits, in milliseconds since 1970. */
const lastTimeMs = Date.UTC(10_000, 0) - 1

function timeText(time: number | undefined): string | undefined {
  return time === undefined ? undefined : new Date(Math.min(time, lastTimeMs)).toISOString()
}

/** Returns the total cost, rounded to 12 decimals so that the order of the votes has no effect. */
function sumOf(votes: NewAnalysis['votes']): number {
  return Math.round(votes.reduce((sum, { cost = 0 }) => sum + cost, 0) * 1e12) / 1e12
}

function boundsOf({ records: rows, bytes, age }: ResultLimits) {
  return defined({ rows, bytes, age })
}

function storedOf({ id, created, expires }: Analysis, status: StoreOutcome['status']): StoreOutcome {
  return { id, status, created, ...defined({ expires }) }
}

/** Returns an analysis with its members in a fixed order, so that equal analyses have the same JSON. */
function withFixedKeyOrder(analysis: Analysis): Analysis {
  const { id, prompt, taskType, language, rounds, consensus, thresholds, votes, totalCost, ...rest } = analysis
  const { created, expires, tags } = rest
  const head = { id, prompt, taskType, language, rounds, consensus, thresholds, votes, totalCost, created }
  return { ...head, ...defined({ expires }), tags }
}
