import { invalid } from '../../core/errors.ts'
import { defined } from '../../core/kit/defined.ts'
import { isPath } from '../../core/path.ts'
import type { Params } from '../../core/provider.ts'
import type { Launcher } from './launch.ts'
import { cutMark, oneLine, type Page, shortId } from './text.ts'

/** Parameters of a log. Times are in seconds since 1970. */
interface LogQuery {
  readonly path?: string
  readonly since?: number
  readonly until?: number
  readonly author?: string
  readonly limit: number
}

/** One commit of a log. */
export interface LogLine {
  readonly oid: string
  /** Commit time (ISO 8601, with the committer's time zone). */
  readonly date: string
  readonly author: string
  readonly subject: string
}

const defaultLimit = 100
/** Maximum length of the author's name or text to search for, in characters. */
const maxAuthor = 500

/** @throws ResourceError `invalid` for an invalid parameter. */
export function parseLogQuery(params: Params, maxCommits: number): LogQuery {
  const path = params.get('path')
  if (path !== undefined && (path === '' || !isPath(path)))
    throw invalid('The parameter "path" is not a path: write src/main.ts, or src/ for a directory.', 'path')
  const author = params.get('author')
  if (author !== undefined && (author === '' || author.length > maxAuthor || /\p{Cc}/u.test(author)))
    throw invalid(`The parameter "author" is a part of a name or address of 1 to ${maxAuthor} characters.`, 'author')
  const since = params.get('since')
  const until = params.get('until')
  return {
    limit: parseLimit(params.get('limit'), maxCommits),
    ...defined({ path, author }),
    ...(since === undefined ? {} : { since: parseTime('since', since, Date.now()) }),
    ...(until === undefined ? {} : { until: parseTime('until', until, Date.now()) }),
  }
}

function parseLimit(text: string | undefined, most: number): number {
  if (text === undefined) return Math.min(defaultLimit, most)
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= most) return limit
  throw invalid(`The parameter "limit" is a whole number from 1 to ${most}.`, 'limit', { limit: most })
}

/** Reads a commit and its ancestors, newest first, in the order of `git log`. `cut`: there are more. */
export async function readLog(
  launcher: Launcher,
  commit: string,
  query: LogQuery,
  maxBytes: number,
  signal: AbortSignal,
): Promise<{ readonly lines: readonly LogLine[]; readonly cut: boolean }> {
  const { path, since, until, author, limit } = query
  const args = [
    'log',
    '-z',
    '--format=%H%n%cI%n%an%n%s',
    '--encoding=UTF-8',
    `--max-count=${limit + 1}`,
    ...(since === undefined ? [] : [`--max-age=${since}`]),
    ...(until === undefined ? [] : [`--min-age=${until}`]),
    // A fixed string instead of a regular expression: an untrusted pattern can run forever.
    ...(author === undefined ? [] : ['--fixed-strings', '--regexp-ignore-case', `--author=${author}`]),
    '--end-of-options',
    commit,
    '--',
    ...(path === undefined ? [] : [path]),
  ]
  const { bytes, cut } = await launcher.run({ args, limit: maxBytes, signal })
  const records = bytes.toString('utf8').split('\0')
  // The text after the last NUL is empty or an incomplete record.
  records.pop()
  const lines = records.slice(0, limit).map((record): LogLine => {
    const [oid = '', date = '', author = '', subject = ''] = record.split('\n')
    return { oid, date, author, subject }
  })
  return { lines, cut: cut || records.length > limit }
}

/** Formats a log as text: one line per commit, `id date author: subject`. `marks`: names of the refs at a commit. */
export function formatLog(
  title: string,
  { lines, cut }: { readonly lines: readonly LogLine[]; readonly cut: boolean },
  marks: ReadonlyMap<string, readonly string[]>,
): Page {
  const text = [
    title,
    ...lines.map(({ oid, date, author, subject }) => {
      const at = marks.get(oid)
      const refs = at === undefined ? '' : ` (${at.map((name) => oneLine(name)).join(', ')})`
      return `${shortId(oid)} ${date} ${oneLine(author, 100)}${refs}: ${oneLine(subject, 200)}`
    }),
    ...(lines.length === 0 ? ['No commits.'] : []),
    ...(cut
      ? [
          cutMark(
            `there are more commits than the ${lines.length} shown; ask with limit=, since=, until=, author= or path=`,
          ),
        ]
      : []),
  ]
  return { text: `${text.join('\n')}\n`, cut }
}

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
