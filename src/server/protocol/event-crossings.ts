import { createHash } from 'node:crypto'
import { invalid, isResourceError } from '../../core/errors.ts'
import { defined, isObject, jsonIn, objectOf, objectsIn } from '../../core/kit/object.ts'
import { formatSampleValue, parseSampleValue } from '../../core/kit/sample-value.ts'
import type { JsonObject } from '../../core/tool.ts'
import type { CallOptions, ChangeReader, View } from '../../core/view.ts'
import type { EventReader, Occurrence } from './event-reader.ts'

export interface CrossingFilter {
  /** URI of series or of a query, without a time. */
  readonly uri: string
  readonly isBeyond: (value: number) => boolean
}

/** The steps at which series are read, in seconds. */
const steps = [1, 5, 15, 60, 300]
const coarsest = 300
/** Maximum number of points of a series in one read. */
const maxPoints = 120
/** Length of the time before a new subscription in which the latest sample of each series is searched, in seconds. */
const baselineSeconds = 600
/** Number of characters of the key of a series. */
const keyLength = 6
/** Maximum number of keys in a position. */
const maxKeys = 200

/** The state of an evaluation. Clients get it as a part of the position. */
interface Evaluated {
  /** Time of the last evaluated points, in seconds since 1970. */
  readonly at: number
  /** Keys of the series whose last value was beyond the threshold. */
  readonly beyond: readonly string[]
  /** Whether more samples are known that were not evaluated yet. */
  readonly isBehind: boolean
}

interface Point {
  readonly time: number
  readonly value: number
  readonly key: string
  readonly labels: JsonObject
}

interface Crossing {
  readonly point: Point
  readonly after: Evaluated
}

/**
 * Finds the points at which a series came to be beyond the threshold. Before its first point, a series counts as not beyond it.
 *
 * @param limit Maximum number of crossings. When there are more, the state is that after the last one.
 */
export function findCrossings(
  points: readonly Point[],
  { at, beyond: keys }: Evaluated,
  isBeyond: (value: number) => boolean,
  limit: number,
): { readonly crossings: readonly Crossing[]; readonly after: Evaluated } {
  const fresh = points.filter(({ time }) => time > at).sort((a, b) => a.time - b.time)
  const beyond = new Set(keys)
  const crossings: Crossing[] = []
  let position = at
  for (const [index, point] of fresh.entries()) {
    const before = fresh[index - 1]?.time
    if (before !== undefined && before < point.time) position = before
    const isNew = !beyond.delete(point.key)
    if (!isBeyond(point.value)) continue
    if (isNew && crossings.length === limit)
      return { crossings, after: crossings.at(-1)?.after ?? { at, beyond: keys, isBehind: true } }
    // Add the key at the end, because the keys that were added longest ago are dropped first.
    beyond.add(point.key)
    if (isNew) crossings.push({ point, after: { at: position, beyond: [...beyond].slice(-maxKeys), isBehind: true } })
  }
  return { crossings, after: { at: fresh.at(-1)?.time ?? at, beyond: [...beyond].slice(-maxKeys), isBehind: false } }
}

/** Reads crossings: evaluates the samples of series whenever their source has reported new ones. */
export function createCrossingReader(view: View, reader: ChangeReader, { uri, isBeyond }: CrossingFilter): EventReader {
  const evaluate = async (state: Evaluated, limit: number, read: typeof readSeries, { signal }: CallOptions) => {
    const now = Date.now() / 1000
    const second = Math.floor(now)
    const end = second + 1
    const from = Math.min(Math.max(state.at, end - coarsest * maxPoints), now)
    const step = steps.find((one) => end - from <= one * maxPoints) ?? coarsest
    const { points, isPartial } = await read(view, uri, { start: Math.floor(from / step) * step, end, step }, signal)
    const { crossings, after } = findCrossings(points, { ...state, at: from }, isBeyond, limit)
    const isUnchanged = after.at === from && crossings.length === 0
    // More samples of the current second may still arrive, so the point at its end is read again.
    const at = after.at > now ? second : isUnchanged ? Math.max(from, second) : after.at
    const isBehind = after.isBehind || step > 1
    return { crossings, after: { ...after, at, isBehind }, isPartial: isPartial || from > state.at }
  }
  const begin = async (options: CallOptions): Promise<Evaluated> => {
    const state = { at: Date.now() / 1000 - baselineSeconds, beyond: [], isBehind: false }
    const { after, isPartial } = await evaluate(state, Number.POSITIVE_INFINITY, readSeries, options)
    if (isPartial)
      throw invalid('"uri" has too many series. Match fewer of them, or aggregate them in a query.', 'argument')
    return { ...after, isBehind: false }
  }
  const occurrenceOf = (position: string, { point, after }: Crossing): Occurrence => {
    const { labels, time, value } = point
    const id = createHash('sha256')
      .update(JSON.stringify([uri, labels, time]))
      .digest('base64url')
      .slice(0, 22)
    const jsonValue = Number.isFinite(value) ? value : formatSampleValue(value)
    return {
      id,
      time: time * 1000,
      data: { uri, labels, value: jsonValue },
      position: () => positionOf(position, after),
    }
  }

  return {
    follow: reader.follow,
    now: async (options = {}) => {
      // The position of the changes comes first: a sample that arrives in between is evaluated twice. In the other order it would be lost.
      const position = await reader.now(options)
      return positionOf(position, await begin(options))
    },
    since: async (cursor, { limit, maxAgeMs }, options = {}) => {
      const { position, state } = parsePosition(cursor)
      const page = await reader.since(position, { limit: 1000 }, options)
      if (state === undefined) {
        const after = await begin(options)
        return { occurrences: [], position: positionOf(page.position, after), gap: true, more: false }
      }
      if (page.changes.length === 0 && !page.gap && !state.isBehind)
        return { occurrences: [], position: positionOf(page.position, state), gap: false, more: false }
      const { crossings, after, isPartial } = await evaluate(state, limit, readSeriesIfThere, options)
      const oldest = maxAgeMs === undefined ? Number.NEGATIVE_INFINITY : Date.now() - maxAgeMs
      const young = crossings.filter(({ point }) => point.time * 1000 >= oldest)
      return {
        occurrences: young.map((one) => occurrenceOf(page.position, one)),
        position: positionOf(page.position, after),
        gap: page.gap || isPartial || young.length < crossings.length,
        more: page.more || after.isBehind,
      }
    },
  }
}

/** Throws ResourceError `invalid` for a URI with a time or a form of its own. */
export function checkSeriesUri(uri: string): void {
  const names = uri
    .split('?')
    .slice(1)
    .join('?')
    .split('&')
    .map((pair) => pair.split('=')[0] ?? '')
  const own = names.find((name) => ['start', 'end', 'step', 'as'].includes(name))
  if (own !== undefined)
    throw invalid(`"uri" must not have ${own}, because the subscription follows the latest samples.`, 'argument')
}

interface Span {
  readonly start: number
  readonly end: number
  readonly step: number
}

const noSeries = () =>
  invalid(
    '"uri" must be series or a query of a mount of metrics, such as metrics://m/series/up or metrics://m/query?query=up.',
    'argument',
  )

/** @throws ResourceError `invalid` for a resource that is not a series. */
async function readSeries(view: View, uri: string, { start, end, step }: Span, signal: AbortSignal | undefined) {
  const options = defined({ signal })
  const queryUri = `${uri}${uri.includes('?') ? '&' : '?'}start=${start}&end=${end}&step=${step}`
  const { contents } = await view.read(queryUri, options).catch(async (error: unknown) => {
    // Other resources do not know the parameters of time.
    if (isResourceError(error, 'invalid') && error.detail.reason === 'query') throw noSeries()
    if (isResourceError(error, 'not-found') && (await view.stat?.(uri, options)) !== undefined) throw noSeries()
    throw error
  })
  const [content] = contents
  const object = objectOf(content !== undefined && 'text' in content ? jsonIn(content.text) : undefined)
  if (!Array.isArray(object.series)) throw noSeries()
  return { points: objectsIn(object.series).flatMap(pointsIn), isPartial: object.omitted !== undefined }
}

/** Does the same as {@link readSeries}, but returns no points if the series no longer exist, or may no longer be seen. */
function readSeriesIfThere(...args: Parameters<typeof readSeries>): ReturnType<typeof readSeries> {
  return readSeries(...args).catch((error: unknown) => {
    if (isResourceError(error, 'not-found')) return { points: [], isPartial: false }
    throw error
  })
}

function pointsIn({ labels, points }: Readonly<Record<string, unknown>>): readonly Point[] {
  if (!isObject(labels) || !Array.isArray(points)) throw noSeries()
  const labelPairs = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1))
  const key = createHash('sha256').update(JSON.stringify(labelPairs)).digest('base64url').slice(0, keyLength)
  return points.map((pair: unknown) => {
    const [time, value] = Array.isArray(pair) ? (pair as readonly unknown[]) : []
    return { time: Number(time), value: parseSampleValue(value), key, labels: Object.fromEntries(labelPairs) }
  })
}

const separator = '~'

function positionOf(position: string, { at, beyond, isBehind }: Evaluated): string {
  return [position, String(at), beyond.join(''), isBehind ? '1' : '0'].join(separator)
}

/** Parses a position. The state is undefined if the text has no valid one. */
function parsePosition(text: string): { readonly position: string; readonly state: Evaluated | undefined } {
  const [position = '', at = '', keys = '', isBehind = ''] = text.split(separator)
  const isState = /^\d{1,12}(\.\d{1,9})?$/.test(at) && /^[01]$/.test(isBehind) && keys.length <= keyLength * maxKeys
  if (!isState) return { position, state: undefined }
  const beyond = keys.match(new RegExp(`.{${keyLength}}`, 'g')) ?? []
  return { position, state: { at: Number(at), beyond, isBehind: isBehind === '1' } }
}
