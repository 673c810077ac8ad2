import { invalid } from '../../core/errors.ts'
import { createRecent } from '../../core/kit/lru.ts'
import { defined } from '../../core/kit/object.ts'
import { isPath } from '../../core/path.ts'
import type { Params } from '../../core/provider.ts'
import type { Launcher } from './launch.ts'
import { missing, type Objects } from './objects.ts'
import { cutMark, oneLine, shortId, type TextPage } from './page-text.ts'
import type { Ref } from './ref-list.ts'
import type { RefTable } from './refs.ts'

/** A commit that is served, with the name by which a path refers to it. */
export interface NamedCommit {
  /** The full id of the commit. */
  readonly commit: string
  /** The name of the commit in paths: `HEAD`, `main`, `refs/heads/log`, or an id. */
  readonly spelled: string
  /** Whether the name is the full id, so that it always means the same commit. */
  readonly fixed: boolean
}

/** Resolves the names of commits in paths. Finds only commits that are reachable from served refs. */
export interface Commits {
  /**
   * Finds the commit that a path begins with, and the rest of the path. Undefined when the path begins with none.
   *
   * @throws ResourceError `invalid` (reason `ambiguous-ref`) for the name of both a branch and a tag, `not-found` (see `isMissing`) when the
   * object of the ref is missing.
   */
  find(
    path: string,
    table: RefTable,
    signal: AbortSignal,
  ): Promise<(NamedCommit & { readonly rest: string }) | undefined>
  /** Like `find`, but the name must be the whole text. */
  named(text: string, table: RefTable, signal: AbortSignal): Promise<NamedCommit | undefined>
  /** Returns the commit of a ref; undefined for a tag of another object. */
  at(ref: Pick<Ref, 'oid'>): Promise<string | undefined>
}

/** Minimum number of digits of an abbreviated id. */
const fewestDigits = 7
const maxCandidates = 64

export function createCommits(launcher: Launcher, objects: Objects, idLength: number): Commits {
  /** Cache of whether a commit is reachable, by the fingerprint of the refs and the commit id. */
  const reachable = createRecent<{ readonly yes: boolean }>(50_000)
  const asking = new Map<string, Promise<boolean>>()

  const at: Commits['at'] = async ({ oid }) => {
    const found = await objects.info(`${oid}^{commit}`)
    return found?.oid
  }

  /** Like {@link at}, but throws when the object of the ref may have been pruned since the refs were read: see `isMissing`. */
  const stillAt = async (ref: Pick<Ref, 'oid'>): Promise<string | undefined> => {
    const commit = await at(ref)
    if (commit === undefined && (await objects.info(ref.oid)) === undefined) throw missing(ref.oid)
    return commit
  }

  /** Whether a commit is a served tip or an ancestor of one. */
  const isReachable = async (commit: string, table: RefTable): Promise<boolean> => {
    const key = `${table.fingerprint} ${commit}`
    const known = reachable.get(key)
    if (known !== undefined) return known.yes
    const asked = asking.get(key) ?? walk(commit, table).finally(() => asking.delete(key))
    asking.set(key, asked)
    return asked
  }

  /** Finds out whether a commit is a served tip or an ancestor of one, and caches the answer. */
  const walk = async (commit: string, { isTip, tips, fingerprint }: RefTable): Promise<boolean> => {
    let yes: boolean | undefined = await isTip(commit)
    if (!yes) yes = await isBehind(commit, tips())
    // A broken ref must not hide everything: retry with the refs that lead to commits.
    yes ??= await isBehind(commit, commitsAt(tips()))
    if (yes !== undefined) reachable.set(`${fingerprint} ${commit}`, { yes })
    return yes ?? false
  }

  const commitsAt = async function* (tips: AsyncIterable<string>): AsyncGenerator<string> {
    for await (const oid of tips) {
      const commit = await at({ oid })
      if (commit !== undefined) yield commit
    }
  }

  /** Whether a commit is an ancestor of one of the ends: git prints it if it is not. Undefined when an object is missing. */
  const isBehind = async (commit: string, ends: AsyncIterable<string>): Promise<boolean | undefined> => {
    const lines: string[] = []
    for await (const end of ends) lines.push(`^${end}\n`)
    if (lines.length === 0) return false
    const input = `${commit}\n${lines.join('')}`
    // Not --ignore-missing: a pruned commit that is still cached here would then seem to be an ancestor of the tips.
    const args = ['rev-list', '--max-count=1', '--stdin']
    // Several callers may share the answer, so no caller's signal aborts it.
    const signal = new AbortController().signal
    const { bytes, code } = await launcher.run({ args, input, limit: 1000, signal, allows: [128] })
    return code === 0 ? bytes.length === 0 : undefined
  }

  /** Finds a commit by its id or an abbreviation. */
  const byId = async (digits: string, table: RefTable, signal: AbortSignal): Promise<string | undefined> => {
    if (digits.length === idLength) {
      const found = await objects.info(digits)
      return found?.type === 'commit' && (await isReachable(digits, table)) ? digits : undefined
    }
    const args = ['rev-parse', `--disambiguate=${digits}`]
    const { bytes } = await launcher.run({ args, limit: 100_000, signal })
    const candidates = bytes.toString('latin1').split('\n').slice(0, -1)
    if (candidates.length > maxCandidates) return undefined
    const served: string[] = []
    // Only served commits can make an abbreviation ambiguous, because the others must look absent.
    for (const candidate of candidates) {
      const found = await objects.info(candidate)
      if (found?.type === 'commit' && (await isReachable(candidate, table))) served.push(candidate)
    }
    return served.length === 1 ? served[0] : undefined
  }

  const find: Commits['find'] = async (path, table, signal) => {
    const slash = path.indexOf('/')
    const first = slash === -1 ? path : path.slice(0, slash)
    const behind = slash === -1 ? '' : path.slice(slash + 1)
    if (first === 'HEAD') {
      const commit = table.head === undefined ? undefined : await stillAt(table.head)
      return commit === undefined ? undefined : { commit, spelled: first, fixed: false, rest: behind }
    }
    const isId = /^[0-9a-f]+$/.test(first) && first.length >= fewestDigits && first.length <= idLength
    if (!isId || first.length < idLength) {
      const found = table.names.find(path)
      if (found === 'ambiguous')
        throw invalid(
          'This is the name of a branch and of a tag. Write refs/heads/… or refs/tags/… before it.',
          'ambiguous-ref',
        )
      if (found !== undefined) {
        const commit = await stillAt(found.ref)
        const spelled = found.rest === '' ? path.replace(/\/$/, '') : path.slice(0, -found.rest.length - 1)
        return commit === undefined ? undefined : { commit, spelled, fixed: false, rest: found.rest }
      }
    }
    if (!isId) return undefined
    const commit = await byId(first, table, signal)
    return commit === undefined ? undefined : { commit, spelled: first, fixed: first.length === idLength, rest: behind }
  }

  return {
    find,
    at,
    named: async (text, table, signal) => {
      if (text === '' || text.endsWith('/') || !isPath(text)) return undefined
      const found = await find(text, table, signal)
      return found?.rest === '' ? found : undefined
    },
  }
}

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
  const path = pathIn(params)
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

/** @throws ResourceError `invalid` for a parameter "path" that is no path. */
export function pathIn(params: Params): string | undefined {
  const path = params.get('path')
  if (path === undefined || (path !== '' && isPath(path))) return path
  throw invalid('The parameter "path" is not a path: write src/main.ts, or src/ for a directory.', 'path')
}

function parseLimit(text: string | undefined, most: number): number {
  if (text === undefined) return Math.min(defaultLimit, most)
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= most) return limit
  throw invalid(`The parameter "limit" is a whole number from 1 to ${most}.`, 'limit', { limit: most })
}

/** Reads a commit and its ancestors, newest first, in the order of `git log`. `cut` tells whether there are more. */
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
): TextPage {
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
