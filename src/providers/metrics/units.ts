import { invalid } from '../../core/errors.ts'
import { formatSampleValue } from '../../core/kit/sample-value.ts'

const unitNames: ReadonlySet<string> = new Set([
  ...['seconds', 'milliseconds', 'microseconds', 'nanoseconds', 'minutes', 'hours', 'days'],
  ...['bytes', 'bits', 'ratio', 'percent', 'celsius', 'kelvin', 'meters', 'volts', 'amperes', 'joules', 'watts'],
  ...['grams', 'hertz'],
])

const endings = /_(?:total|sum|bucket|created|max|min)$/

/** Returns the unit in the name of a metric. Undefined: the name has no unit, or is that of a count or a date. */
export function unitIn(name: string): string | undefined {
  if (/_count$|(?:start_time|boot_time|timestamp|date)_seconds$/.test(name)) return undefined
  const last = name.replace(endings, '').split(/[_.]/).at(-1) ?? ''
  return unitNames.has(last) ? last : undefined
}

/** Returns the names under which metadata may describe a metric: its own, and that without a suffix such as `_bucket` or `_total`. */
export function familyNames(name: string): readonly string[] {
  const base = name.replace(/_(?:bucket|count|sum|total|created|info)$/, '')
  return base === name ? [name] : [name, base]
}

interface Scale {
  readonly symbol: string
  readonly size: number
}

const scales = (...pairs: readonly (readonly [symbol: string, size: number])[]): readonly Scale[] =>
  pairs.map(([symbol, size]) => ({ symbol, size }))

const plain: Scale = { symbol: '', size: 1 }
const decimal = [...scales(['T', 1e12], ['G', 1e9], ['M', 1e6], ['k', 1e3]), plain]
const small = scales(['m', 1e-3], ['µ', 1e-6], ['n', 1e-9])
const binary = scales(['TiB', 2 ** 40], ['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10], ['B', 1])
const durations = scales(
  ...([
    ['d', 86_400],
    ['h', 3600],
    ['min', 60],
    ['s', 1],
    ['ms', 1e-3],
    ['µs', 1e-6],
    ['ns', 1e-9],
  ] as const),
)
const shares = scales(['%', 0.01])

const symbols: Readonly<Record<string, string>> = {
  ...{ bits: 'bit', percent: '%', celsius: '°C', kelvin: 'K', meters: 'm', volts: 'V', amperes: 'A' },
  ...{ joules: 'J', watts: 'W', grams: 'g', hertz: 'Hz' },
}

export function createValueFormat(unit: string | undefined) {
  const symbol = unit === undefined ? '' : (symbols[unit] ?? '')
  const all = scalesOf(unit, symbol)
  const scaleFor = (size: number): Scale => {
    const one = all.find((scale) => scale.size === 1)
    if (size === 0) return one ?? all[0] ?? plain
    return all.find((scale) => size >= scale.size * 0.99995) ?? all.at(-1) ?? plain
  }
  const inScale = (value: number, scale: Scale, significant: number) => {
    const digits = String(Number((value / scale.size).toPrecision(significant)))
    const ending = scale.symbol + symbol
    return /^(?:|[TGMk]|%)$/.test(ending) ? digits + ending : `${digits} ${ending}`
  }
  return {
    /** Whether the steps between the marks of an axis are powers of 2. */
    binary: unit === 'bytes',
    /** Formats one value with at most four significant digits: `1.5 MiB`, `12 ms`, `1.234k`. */
    format: (value: number): string => {
      if (!Number.isFinite(value)) return formatSampleValue(value)
      return inScale(value, scaleFor(Math.abs(value)), 4)
    },
    /** Formats the marks of an axis at distance `apart`: all in one scale, with enough digits to differ. */
    formatMarks: (values: readonly number[], apart: number): readonly string[] => {
      const size = Math.max(...values.map(Math.abs))
      const scale = scaleFor(size)
      const digits = Math.max(4, Math.min(17, Math.ceil(Math.log10(size / apart)) + 2))
      return values.map((value) => (value === 0 ? '0' : inScale(value, scale, digits)))
    },
  }
}

export type ValueFormat = ReturnType<typeof createValueFormat>

function scalesOf(unit: string | undefined, symbol: string): readonly Scale[] {
  if (unit === 'bytes') return binary
  if (unit === 'seconds') return durations
  if (unit === 'ratio') return shares
  if (unit === 'percent' || unit === 'celsius') return [plain]
  return symbol === '' ? decimal : [...decimal, ...small]
}

/** A time range, in seconds since 1970, and the distance between points, in seconds. */
export interface TimeSpan {
  readonly start: number
  readonly end: number
  readonly step: number
}

/** One time, in seconds since 1970. */
export interface Instant {
  readonly at: number
}

const units: Readonly<Record<string, number>> = {
  ms: 0.001,
  s: 1,
  m: 60,
  h: 3600,
  d: 86_400,
  w: 7 * 86_400,
  y: 365 * 86_400,
}

const durationPattern = /^(?:\d{1,9}(?:ms|[smhdwy]))+$/
const absolute = /^(\d{4}-\d{2}-\d{2})(?:[Tt ](\d{2}:\d{2})(:\d{2}(?:\.\d{1,9})?)?)?([Zz]|[+-]\d{2}:\d{2})?$/
/** Start of the year 10000 as Unix time, in seconds. A later time is a mistake, such as milliseconds instead of seconds. */
const lastTimeSeconds = 253_402_300_800

/** Maximum number of points of a series: the limit of Prometheus. */
export const maxSeriesPoints = 11_000

/** Parses a duration in Prometheus syntax to seconds: `30s`, `5m`, `1h30m`, `7d`. Undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  if (text.length > 40 || !durationPattern.test(text)) return undefined
  let sum = 0
  for (const [, digits, unit = ''] of text.matchAll(/(\d+)(ms|[smhdwy])/g)) sum += Number(digits) * (units[unit] ?? 0)
  return sum
}

/**
 * Parses a time to seconds since 1970: relative (`-1h`, `now`, `now-7d`), RFC 3339 (`2026-11-21T10:00:00Z`; default zone UTC; the time of day
 * is optional), or Unix seconds.
 *
 * @param now The current time, in seconds since 1970.
 * @throws ResourceError `invalid` (reason `parameter`) for anything else.
 */
export function parseTime(name: string, text: string, now: number): number {
  const time = relativeTime(text, now) ?? unixTime(text) ?? calendarTime(text)
  if (time !== undefined && time >= 0 && time < lastTimeSeconds) return time
  throw invalid(
    `The parameter "${name}" is not a time. Write one such as -1h, -7d, now, 2026-11-21T10:00:00Z or 1795255200 (Unix seconds).`,
    'parameter',
    { parameter: name },
  )
}

function relativeTime(text: string, now: number): number | undefined {
  if (text === 'now') return now
  const back = /^(?:now)?-(\w+)$/.exec(text)?.[1]
  const seconds = back === undefined ? undefined : parseDuration(back)
  return seconds === undefined ? undefined : Math.max(0, now - seconds)
}

function unixTime(text: string): number | undefined {
  return /^\d{1,12}(?:\.\d{1,9})?$/.test(text) ? Number(text) : undefined
}

function calendarTime(text: string): number | undefined {
  const [whole, day, minutes = '00:00', seconds = ':00', zone = 'Z'] = absolute.exec(text) ?? []
  const time = whole === undefined ? Number.NaN : Date.parse(`${day}T${minutes}${seconds}${zone.toUpperCase()}`)
  // Date would accept February 30 as a day in March.
  const isDay = new Date(`${day}T00:00:00Z`).getUTCDate() === Number(day?.slice(8))
  return Number.isNaN(time) || !isDay ? undefined : time / 1000
}

/**
 * Parses a step to seconds: a duration (`30s`), or a number of seconds.
 *
 * @throws ResourceError `invalid` (reason `parameter`) for anything else, and for less than a millisecond.
 */
export function parseStep(text: string): number {
  const step = parseDuration(text) ?? unixTime(text)
  if (step !== undefined && step >= 0.001) return step
  throw invalid('The parameter "step" must be a duration of at least 1 ms, such as 15s, 5m or 1h.', 'parameter', {
    parameter: 'step',
  })
}

const niceSteps = [
  ...[1, 2, 5, 10, 15, 20, 30],
  ...[1, 2, 3, 5, 10, 15, 20, 30].map((minutes) => minutes * 60),
  ...[1, 2, 3, 4, 6, 8, 12].map((hours) => hours * 3600),
]

/**
 * Chooses the step of a span of some seconds: the interval of the samples, if that makes at most `most` points; otherwise a round number of
 * seconds, minutes, hours or days that does.
 */
export function chooseStep(seconds: number, intervalSeconds: number, most: number): number {
  const least = seconds / most
  if (least <= intervalSeconds) return intervalSeconds
  return niceSteps.find((step) => step >= least) ?? Math.ceil(least / 86_400) * 86_400
}

/** Returns the span. @throws ResourceError `invalid` (reason `parameter`) if the span is empty or has more than {@link maxSeriesPoints} points. */
export function requireSpan(span: TimeSpan): TimeSpan {
  const { start, end, step } = span
  if (end <= start)
    throw invalid('The time range is empty: "start" must be before "end".', 'parameter', { parameter: 'start' })
  const steps = (end - start) / step
  if (steps <= maxSeriesPoints) return span
  throw invalid(
    `The range has ${Math.ceil(steps)} points for each series, and at most ${maxSeriesPoints} are allowed. Ask for a step of at least ${formatDuration(chooseStep(end - start, 1, maxSeriesPoints - 1))}, or for a shorter range.`,
    'parameter',
    { parameter: 'step', limit: maxSeriesPoints },
  )
}

/** Formats a duration in the largest unit of which it is a whole multiple: `15s`, `5m`, `2h`, `7d`; otherwise in rounded milliseconds or seconds. */
export function formatDuration(seconds: number): string {
  for (const unit of ['d', 'h', 'm', 's'] as const) {
    const size = units[unit] ?? 1
    if (seconds >= size && Number.isInteger(seconds / size)) return `${seconds / size}${unit}`
  }
  return seconds < 60 ? `${Math.round(seconds * 1000)}ms` : `${Math.round(seconds)}s`
}

/** Formats a time as RFC 3339 in UTC, with fractions of a second only if they are not zero. */
export function formatUnixTime(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace('.000Z', 'Z')
}
