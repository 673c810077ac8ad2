import { invalid } from '../../core/errors.ts'

const units: Readonly<Record<string, number>> = {
  minute: 60,
  hour: 3600,
  day: 86_400,
  week: 7 * 86_400,
  month: 30 * 86_400,
  year: 365 * 86_400,
}

const absolute = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(:\d{2})?(?:\.\d+)?)?(Z|[+-]\d{2}:\d{2})?$/
const relative = /^(\d{1,5})[ .+-]?(minute|hour|day|week|month|year)s?(?:[ .+-]ago)?$/

/**
 * Parses a time as seconds since 1970: `2026-11-21`, `2026-11-21T10:00`, with seconds and a time zone (default UTC), or relative to now: `3
 * days`, `2 weeks ago`. git's own parser accepts any text as some time.
 *
 * @throws ResourceError `invalid` (reason `time`) for anything else.
 */
export function parseTime(name: string, text: string, now: number): number {
  const back = relative.exec(text)
  if (back !== null) return Math.max(0, Math.floor(now / 1000) - Number(back[1]) * (units[back[2] ?? ''] ?? 0))
  const [whole, day, minutes = '00:00', seconds = ':00', zone = 'Z'] = absolute.exec(text) ?? []
  const time = whole === undefined ? Number.NaN : Date.parse(`${day}T${minutes}${seconds}${zone}`)
  if (!Number.isNaN(time)) return Math.max(0, Math.floor(time / 1000))
  throw invalid(`The parameter "${name}" is no time: write 2026-11-21, 2026-11-21T10:00:00Z or "2 weeks".`, 'time')
}
