import { invalid } from '../../core/errors.ts'

/** A time range, in seconds since 1970, and the distance between points, in seconds. */
export interface Span {
  readonly start: number
  readonly end: number
  readonly step: number
}

/** One time, in seconds since 1970. */
export interface Moment {
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
/** The year 10000: a later time is a mistake, such as milliseconds. */
const lastTime = 253_402_300_800

/** Maximum number of points of a series: the limit of Prometheus. */
export const mostSteps = 11_000

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
 * @param now In seconds since 1970.
 * @throws ResourceError `invalid` (reason `time`) for anything else.
 */
export function parseTime(name: string, text: string, now: number): number {
  const time = relativeTime(text, now) ?? unixTime(text) ?? calendarTime(text)
  if (time !== undefined && time >= 0 && time < lastTime) return time
  throw invalid(
    `The parameter "${name}" is no time: write one such as -1h, -7d, now, 2026-11-21T10:00:00Z or 1795255200 (Unix seconds).`,
    'time',
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
 * @throws ResourceError `invalid` (reason `step`) for anything else, and for less than a millisecond.
 */
export function parseStep(text: string): number {
  const step = parseDuration(text) ?? unixTime(text)
  if (step !== undefined && step >= 0.001) return step
  throw invalid('The parameter "step" is no duration: write one such as 15s, 5m or 1h.', 'step')
}

const niceSteps = [
  ...[1, 2, 5, 10, 15, 20, 30],
  ...[1, 2, 3, 5, 10, 15, 20, 30].map((minutes) => minutes * 60),
  ...[1, 2, 3, 4, 6, 8, 12].map((hours) => hours * 3600),
]

/**
 * Chooses a step: no finer than the samples, and coarse enough for at most `most` points. It is a round number of seconds, minutes, hours or
 * days.
 */
export function chooseStep(seconds: number, interval: number, most: number): number {
  const least = seconds / most
  if (least <= interval) return interval
  return niceSteps.find((step) => step >= least) ?? Math.ceil(least / 86_400) * 86_400
}

/** Rejects a span that ends before it begins, or has too many points. */
export function checkSpan(span: Span): Span {
  const { start, end, step } = span
  if (end <= start) throw invalid('The range ends before it begins: "start" must be before "end".', 'time')
  const steps = (end - start) / step
  if (steps <= mostSteps) return span
  throw invalid(
    `That would be ${Math.ceil(steps)} points for each series, and there can be ${mostSteps}: ask for a step of at least ${formatDuration(chooseStep(end - start, 1, mostSteps - 1))}, or for a shorter range.`,
    'step',
    { limit: mostSteps },
  )
}

/** Formats a duration in the largest unit of which it is a whole multiple: `15s`, `5m`, `2h`, `7d`. */
export function formatDuration(seconds: number): string {
  for (const unit of ['d', 'h', 'm', 's'] as const) {
    const size = units[unit] ?? 1
    if (seconds >= size && Number.isInteger(seconds / size)) return `${seconds / size}${unit}`
  }
  return seconds < 60 ? `${Math.round(seconds * 1000)}ms` : `${Math.round(seconds)}s`
}

/** Formats a time as RFC 3339 in UTC, with fractions of a second only if they are not zero. */
export function formatTime(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace('.000Z', 'Z')
}
