import { isUtf8 } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { open, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { invalid, notFound, tooLarge, unavailable } from '../../core/errors.ts'
import { createSlices } from '../../core/kit/event-loop-yield.ts'
import { defined } from '../../core/kit/object.ts'
import { isText } from '../../core/kit/utf8.ts'
import { isPath } from '../../core/path.ts'
import type { Content, Entry, Params } from '../../core/provider.ts'
import { decodeBytes, hasZeros } from '../../text/encoding/decode.ts'
import { detectEncoding } from '../../text/encoding/detect.ts'
import { type Folder, statEntry, withFolder } from './directory.ts'
import type { Launcher } from './launch.ts'
import type { ObjectFormat, TreeEntry } from './objects.ts'
import {
  type CommitResolver,
  type IndexRange,
  indexOfRef,
  type NamedCommit,
  type RefList,
  type RefTable,
  rangeBelow,
  refAt,
} from './refs.ts'
import type { GitSettings, Repository } from './repository.ts'

/** Characters that hide adjacent text or control a terminal: control characters, and those that change the writing direction. */
const hiddenCharacters = /[\p{Cc}\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/gu

/** Formats an untrusted name, message or path as one line, cut after `most` characters: hidden and direction-changing ones become `\u{…}`. */
export function escapeLine(text: string, most = 500): string {
  const excerpt = text.length > most ? `${text.slice(0, most)}…` : text
  return excerpt.toWellFormed().replace(hiddenCharacters, escapeCharacter)
}

/** Formats untrusted text of several lines like {@link escapeLine}, but keeps line feeds and tabs. */
export function escapeLines(text: string): string {
  const lines = text.replace(/\r\n/g, '\n').toWellFormed()
  return lines.replace(hiddenCharacters, (c) => (c === '\n' || c === '\t' ? c : escapeCharacter(c)))
}

function escapeCharacter(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`
}

/** Abbreviates an id for display. Twelve digits identify a commit in practice, and can be used in reads. */
export function shortId(oid: string): string {
  return oid.slice(0, 12)
}

/** Decodes the output of a process, up to its last whole line if it was cut. */
export function wholeLines({ bytes, cut }: { readonly bytes: Buffer; readonly cut: boolean }): string {
  return (cut ? bytes.subarray(0, bytes.lastIndexOf(0x0a) + 1) : bytes).toString('utf8')
}

function decodeLines(bytes: Uint8Array): string {
  return decodeBytes(bytes, detectEncoding(bytes) ?? 'utf-8') ?? ''
}

export function cutMark(what: string): string {
  return `[cut: ${what}]`
}

export interface TextPage {
  readonly text: string
  readonly cut: boolean
  readonly version?: string
  readonly immutable?: boolean
}

export const pageMimeType = 'text/plain'

export function textPageContent({ text, cut, version, immutable }: TextPage): Content {
  return {
    text,
    mimeType: pageMimeType,
    ...defined({ version }),
    ...(immutable === true ? { immutable } : {}),
    ...(cut ? { meta: { 'dev.hikidashi/truncated': true } } : {}),
  }
}

interface DifferenceQuery {
  readonly from: string
  readonly to: string
  readonly path?: string
  /** Note after the numbers, such as `compared with the first parent`. */
  readonly note?: string
  readonly advice?: string
}

export type DifferenceSettings = Pick<GitSettings, 'maxBytes' | 'withheld'>

interface FileChange {
  readonly added?: number
  readonly removed?: number
  readonly path: string
  readonly before?: string
}

const maxPatchBytes = 256 * 1024
/** Maximum number of files that are named. */
const maxFiles = 300
const maxNumbersBytes = 4 * 1024 * 1024

/** Lines of a patch that name files. (A removed line can look the same; it is then formatted the same.) */
const fileLines = /^(?:diff --git |--- |\+\+\+ |rename |copy |Binary files ).*$/gm

/** Compares two trees, without any driver, filter or external program. Returns the changes of each file, and the patch, as text. */
export async function readDifference(
  launcher: Launcher,
  { from, to, path, note, advice }: DifferenceQuery,
  { maxBytes, withheld }: DifferenceSettings,
  signal: AbortSignal,
) {
  const ends = ['--end-of-options', from, to, '--', ...(path === undefined ? [] : [path])]
  const plain = ['-r', '-M', '--no-ext-diff', '--no-textconv', '--no-color']
  const limit = Math.min(maxPatchBytes, maxBytes)
  const [numbers, patch] = await Promise.all([
    launcher.run({ args: ['diff-tree', ...plain, '--numstat', '-z', ...ends], limit: maxNumbersBytes, signal }),
    launcher.run({ args: ['diff-tree', ...plain, '--patch', ...ends], limit, signal }),
  ])
  const changes = parseNumbers(numbers.bytes.toString('utf8'))
  const isCut = numbers.cut || patch.cut || changes.length > maxFiles
  const lines = [
    ...(changes.length === 0 ? ['No changes.'] : [summarizeChanges(changes, numbers.cut, note)]),
    ...changes.slice(0, maxFiles).map(formatChange),
    ...(changes.length > maxFiles || numbers.cut
      ? [cutMark(`only ${Math.min(changes.length, maxFiles)} of the changed files are shown`)]
      : []),
  ]
  const end = patch.cut
    ? `${cutMark(`the patch is longer than ${limit} bytes${advice === undefined ? '' : `; ${advice}`}`)}\n`
    : ''
  // git appends a tab to a name that contains a space.
  const patchText = withoutFiles(decodePatch(patch), withheld).replace(fileLines, (line) =>
    escapeLine(line.replace(/\t$/, ''), Number.POSITIVE_INFINITY),
  )
  return { text: `${lines.join('\n')}\n${patchText === '' ? '' : '\n'}${patchText}${end}`, cut: isCut }
}

/** Replaces the changes of the withheld files of a patch by a note, and leaves out their object ids, which are hashes of the contents. */
function withoutFiles(patch: string, withheld: DifferenceSettings['withheld']): string {
  const files = patch.split(/^(?=diff --git )/m).map((file) => {
    const head = file.slice(0, /^(?:@@ |GIT binary patch)/m.exec(file)?.index)
    const names = Array.from(head.matchAll(/^(?:--- |\+\+\+ |rename (?:from|to) )(.*)$/gm), ([, name = '']) => name)
    // A change without lines, or of a binary file, is named on the first line only: twice the same.
    const both = /^diff --git (.*)$/m.exec(head)?.[1] ?? ''
    const paths = [...names, both.slice((both.length + 1) / 2)].map((name) =>
      name.replace(/^"?(?:[ab]\/)?|"?\t?$/g, ''),
    )
    if (!paths.some(withheld)) return file
    return `${head.replace(/^index .*\n/m, '')}[redacted] The changes are withheld: files with this name usually contain secrets.\n`
  })
  return files.join('')
}

/** Decodes a patch as text. File names are UTF-8; the content of each file has its own encoding. */
function decodePatch(patch: { readonly bytes: Buffer; readonly cut: boolean }): string {
  if (isUtf8(patch.bytes) && !patch.bytes.includes(0x1b)) return wholeLines(patch)
  const whole = patch.cut ? patch.bytes.subarray(0, patch.bytes.lastIndexOf(0x0a) + 1) : patch.bytes
  const files = whole.toString('latin1').split(/^(?=diff --git )/m)
  return files
    .map((file) => {
      const bytes = Buffer.from(file, 'latin1')
      const lines = file.search(/^@@ /m)
      if (lines === -1) return bytes.toString('utf8')
      return bytes.subarray(0, lines).toString('utf8') + decodeLines(bytes.subarray(lines))
    })
    .join('')
}

function summarizeChanges(changes: readonly FileChange[], more: boolean, note: string | undefined): string {
  const sum = (of: (change: FileChange) => number | undefined) => changes.reduce((all, one) => all + (of(one) ?? 0), 0)
  const count = `${changes.length}${more ? ' or more' : ''} ${changes.length === 1 ? 'file' : 'files'}`
  const numbers = `+${sum(({ added }) => added)} -${sum(({ removed }) => removed)}`
  return `${count}, ${numbers}${note === undefined ? '' : `, ${note}`}`
}

function formatChange({ added, removed, path, before }: FileChange): string {
  const numbers = added === undefined || removed === undefined ? 'binary' : `+${added} -${removed}`
  return `${numbers} ${before === undefined ? '' : `${escapeLine(before)} → `}${escapeLine(path)}`
}

/** Parses `added TAB removed TAB path NUL`; for a rename, an empty path, then both names, each with a NUL. */
function parseNumbers(text: string): readonly FileChange[] {
  const fields = text.split('\0')
  const changes: FileChange[] = []
  for (let at = 0; at < fields.length; at++) {
    const [added = '', removed = '', ...rest] = (fields[at] ?? '').split('\t')
    if (rest.length === 0) continue
    const counts = added === '-' ? {} : { added: Number(added), removed: Number(removed) }
    const path = rest.join('\t')
    if (path !== '') changes.push({ ...counts, path })
    else {
      changes.push({ ...counts, before: fields[at + 1] ?? '', path: fields[at + 2] ?? '' })
      at += 2
    }
  }
  return changes
}

/** Maximum size of a file to blame, in bytes. */
const maxFileBytes = 1024 * 1024
const maxBlamedBytes = 64 * 1024 * 1024

/** Checks that a file can be blamed: text, and not too large. Returns its encoding. */
export function requireBlamable(bytes: Uint8Array | undefined, size: number, maxBytes: number): string {
  const limit = Math.min(maxFileBytes, maxBytes)
  if (bytes === undefined || size > limit)
    throw tooLarge(`The file has ${size} bytes, and at most ${limit} bytes can be blamed.`, { size, limit })
  if (isText(bytes)) return 'utf-8'
  const encoding = detectEncoding(bytes)
  // git splits lines by bytes, which fails for UTF-16 and UTF-32.
  if (encoding === undefined || hasZeros(encoding))
    throw invalid('The file is not text, or is in UTF-16 or UTF-32, so git cannot blame its lines.', 'unreadable')
  return encoding
}

/**
 * Reads the author of each line of a file, as text: the id, date and author of a commit precede its lines, with the subject the first time;
 * each line has its number.
 */
export async function readBlame(
  launcher: Launcher,
  { commit, path }: { readonly commit: string; readonly path: string },
  title: string,
  encoding: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<TextPage> {
  const output = await launcher.run({
    // git blame has no --end-of-options; the id was resolved by this provider, and the argument after -- is a path.
    args: ['blame', '--porcelain', '--no-textconv', '--encoding=UTF-8', commit, '--', path],
    limit: maxBlamedBytes,
    signal,
  })
  const lines = [title]
  const commits = new Set<string>()
  let length = 0
  let previous: string | undefined
  for (const { oid, number, text, facts } of parseBlame(output.bytes, encoding)) {
    const heading = oid === previous ? [] : [headingOf(oid, facts, !commits.has(oid))]
    const pageLines = [...heading, `${String(number).padStart(6)}  ${text}`]
    previous = oid
    commits.add(oid)
    length += pageLines.reduce((sum, line) => sum + line.length + 1, 0)
    if (length > maxBytes) return { text: `${[...lines, cutMark('the rest of the file')].join('\n')}\n`, cut: true }
    lines.push(...pageLines)
  }
  return { text: `${lines.join('\n')}\n`, cut: output.cut }
}

/**
 * Parses `id original final [count]`, then headers of the commit if it is new, then a tab and the line. The facts of a line are the headers of
 * its commit.
 */
function* parseBlame(output: Buffer, encoding: string) {
  const decode = (line: string, label: string) => {
    const bytes = Buffer.from(line, 'latin1')
    return label === 'utf-8' ? bytes.toString('utf8') : (decodeBytes(bytes, label) ?? '')
  }
  const commits = new Map<string, Map<string, string>>()
  let oid = ''
  let number = 0
  for (const line of output.toString('latin1').split('\n')) {
    const head = /^([0-9a-f]{40,64}) \d+ (\d+)(?: \d+)?$/.exec(line)
    if (line.startsWith('\t')) {
      yield { oid, number, text: decode(line.slice(1), encoding), facts: commits.get(oid) ?? new Map<string, string>() }
    } else if (head !== null) {
      oid = head[1] ?? ''
      number = Number(head[2])
      if (!commits.has(oid)) commits.set(oid, new Map())
    } else {
      const space = line.indexOf(' ')
      if (space !== -1) commits.get(oid)?.set(line.slice(0, space), decode(line.slice(space + 1), 'utf-8'))
    }
  }
}

function headingOf(oid: string, facts: ReadonlyMap<string, string>, first: boolean): string {
  const time = Number(facts.get('author-time')) * 1000
  const date = Math.abs(time) <= 8.64e15 ? new Date(time).toISOString().slice(0, 10) : 'no date'
  const subject = first ? `: ${escapeLine(facts.get('summary') ?? '', 200)}` : ''
  return `${shortId(oid)} ${date} ${escapeLine(facts.get('author') ?? '', 100)}${subject}`
}

interface LogQuery {
  readonly path?: string
  /** Seconds since 1970. */
  readonly since?: number
  /** Seconds since 1970. */
  readonly until?: number
  readonly author?: string
  readonly limit: number
}

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
  const path = pathParameter(params)
  const author = params.get('author')
  if (author !== undefined && (author === '' || author.length > maxAuthor || /\p{Cc}/u.test(author)))
    throw invalid(`The parameter "author" must be 1 to ${maxAuthor} characters of a name or an address.`, 'parameter', {
      parameter: 'author',
    })
  const since = params.get('since')
  const until = params.get('until')
  return {
    limit: parseLimit(params.get('limit'), maxCommits),
    ...defined({ path, author }),
    ...(since === undefined ? {} : { since: parseTime('since', since, Date.now()) }),
    ...(until === undefined ? {} : { until: parseTime('until', until, Date.now()) }),
  }
}

function pathParameter(params: Params): string | undefined {
  const path = params.get('path')
  if (path === undefined || (path !== '' && isPath(path))) return path
  throw invalid(
    'The parameter "path" is not a path. Write one such as src/main.ts, or src/ for a directory.',
    'parameter',
    {
      parameter: 'path',
    },
  )
}

function parseLimit(text: string | undefined, most: number): number {
  if (text === undefined) return Math.min(defaultLimit, most)
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= most) return limit
  throw invalid(`The parameter "limit" must be a whole number from 1 to ${most}.`, 'parameter', {
    parameter: 'limit',
    limit: most,
  })
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
      const refs = at === undefined ? '' : ` (${at.map((name) => escapeLine(name)).join(', ')})`
      return `${shortId(oid)} ${date} ${escapeLine(author, 100)}${refs}: ${escapeLine(subject, 200)}`
    }),
    ...(lines.length === 0 ? ['No commits.'] : []),
    ...(cut
      ? [
          cutMark(
            `only the first ${lines.length} commits are shown; ask for others with limit=, since=, until=, author= or path=`,
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
 * @throws ResourceError `invalid` (reason `parameter`) for anything else.
 */
export function parseTime(name: string, text: string, now: number): number {
  const back = relative.exec(text)
  if (back !== null) return Math.max(0, Math.floor(now / 1000) - Number(back[1]) * (units[back[2] ?? ''] ?? 0))
  const [whole, day, minutes = '00:00', seconds = ':00', zone = 'Z'] = absolute.exec(text) ?? []
  const time = whole === undefined ? Number.NaN : Date.parse(`${day}T${minutes}${seconds}${zone}`)
  if (!Number.isNaN(time)) return Math.max(0, Math.floor(time / 1000))
  throw invalid(
    `The parameter "${name}" is not a time. Write one such as 2026-11-21, 2026-11-21T10:00:00Z or "2 weeks".`,
    'parameter',
    { parameter: name },
  )
}

const maxShown = 1000
const maxRefPageBytes = 8 * 1024 * 1024
/** Exit code of git after a fatal error. */
const gitFailed = 128

const maxNamedMissing = 20

/**
 * Reads the branches, or the tags, as text: one line each, newest first, `name id date subject`. Refs whose object is missing have no date, and
 * are named at the end.
 *
 * @param isThere Whether the object of a ref, and for an annotated tag the object that it leads to, is in the repository.
 */
export async function readRefPage(
  launcher: Launcher,
  refsDir: string,
  kind: 'branches' | 'tags',
  table: RefTable,
  isThere: (oid: string) => Promise<boolean>,
  signal: AbortSignal,
): Promise<TextPage> {
  const folder = kind === 'branches' ? 'refs/heads/' : 'refs/tags/'
  const { refs, names } = table
  const range = rangeBelow(refs, folder)
  const lines: string[] = []
  const lacking: string[] = []
  let isCut = false
  const ask = async (allows: readonly number[]) =>
    launcher.run({
      args: [
        'for-each-ref',
        '--sort=refname',
        '--sort=-creatordate',
        `--count=${maxShown + 1}`,
        // The date and subject of an annotated tag, or of the commit of a branch or lightweight tag.
        '--format=%(refname)%00%(objectname)%00%(creatordate:iso-strict)%00%(subject)%00%(*objectname)',
        '--end-of-options',
        folder.slice(0, -1),
      ],
      gitDir: refsDir,
      limit: maxRefPageBytes,
      signal,
      quiet: true,
      allows: [...allows],
    })
  if (range.start < range.end) {
    await writeRefs(refsDir, refs, range)
    let output = await ask([gitFailed])
    if (output.code === gitFailed) {
      // git ends at the first ref whose object is missing.
      const missing = new Set<number>()
      for (let index = range.start; index < range.end; index++) {
        const { name, oid } = refAt(refs, index)
        if (await isThere(oid)) continue
        missing.add(index)
        lacking.push(`${escapeLine(names.shortest(name))} ${shortId(oid)}`)
      }
      await writeRefs(refsDir, refs, range, missing)
      output = await ask([])
    }
    isCut = output.cut
    for (const line of wholeLines(output).split('\n')) {
      const [name = '', oid = '', date = '', subject = '', peeled = ''] = line.split('\0')
      // A concurrent request may have written other refs.
      if (indexOfRef(refs, name) === -1) continue
      if (lines.length === maxShown) {
        isCut = true
        break
      }
      const mark = name === table.branch ? '* ' : '  '
      const called = escapeLine(names.shortest(name))
      lines.push(
        `${mark}${called} ${shortId(peeled === '' ? oid : peeled)} ${date} ${escapeLine(subject, 200)}`.trimEnd(),
      )
    }
  }
  const text = [
    refTitle(kind, table),
    ...lines,
    ...(lines.length + lacking.length === 0 ? [`No ${kind}.`] : []),
    ...(isCut ? [cutMark(`only the first ${lines.length} ${kind} are shown`)] : []),
    ...(lacking.length === 0 ? [] : [`Their objects are missing in the repository (${kind}: ${lacking.length}):`]),
    ...lacking.slice(0, maxNamedMissing).map((one) => `  ${one}`),
    ...(lacking.length > maxNamedMissing
      ? [cutMark(`only the first ${maxNamedMissing} of these ${kind} are shown`)]
      : []),
  ]
  return { text: `${text.join('\n')}\n`, cut: isCut, version: table.fingerprint }
}

/** Writes refs into a git directory of the provider's own, in which git sees only those that are served. */
async function writeRefs(
  refsDir: string,
  refs: RefList,
  { start, end }: IndexRange,
  without: ReadonlySet<number> = new Set(),
): Promise<void> {
  const slices = createSlices()
  // Two concurrent requests write two files; the last one wins.
  const temporaryFile = join(refsDir, `packed-refs.${randomUUID()}`)
  const file = await open(temporaryFile, 'wx', 0o600)
  try {
    let lines = ''
    for (let i = start; i < end; i++) {
      if (without.has(i)) continue
      const { name, oid } = refAt(refs, i)
      lines += `${oid} ${name}\n`
      if (!slices.due()) continue
      await file.write(lines)
      lines = ''
      await slices.rest()
    }
    await file.write(lines)
  } finally {
    await file.close()
  }
  await rename(temporaryFile, join(refsDir, 'packed-refs'))
}

function refTitle(kind: 'branches' | 'tags', { head, branch }: RefTable): string {
  if (kind === 'tags') return 'Tags, newest first.'
  if (branch !== undefined && head === undefined)
    return `Branches. HEAD is on ${escapeLine(branch)}, which has no commits yet.`
  if (branch !== undefined) return 'Branches, newest first. HEAD is on the one with a *.'
  return `Branches, newest first.${head === undefined ? '' : ` HEAD is detached at ${shortId(head.oid)}.`}`
}

const maxBytes = 4 * 1024 * 1024

/**
 * Creates a reader of the state of the working tree compared with the index and `HEAD`.
 *
 * It runs `git status` in the git directory of the provider's own, with the index of the repository. So no filter, monitor or hook of the
 * repository runs, its index is not written, and submodules are not entered. The effect of a filter on a file is unknown: such a file shows as modified when
 * its time has changed.
 */
export function createStatusReader({ launcher, mirror, anchors }: Repository) {
  /** The last read that began. Reads run one at a time, because they share the links to a split index. */
  let turn: Promise<unknown> = Promise.resolve()

  const run = async (table: RefTable, signal: AbortSignal): Promise<TextPage> => {
    const current = await anchors.current()
    const { workTree } = current
    if (workTree === undefined) throw notFound('a bare repository has no status')
    const stats = await statEntry(current.gitDir, 'index')
    if (stats !== undefined && !stats.isFile()) throw unavailable('The index of the repository is not a file.')
    await mirror.linkIndex(current.gitDir)
    const { bytes, cut } = await launcher.run({
      args: [
        'status',
        '--porcelain=v1',
        '-z',
        '--ignore-submodules=all',
        '--untracked-files=normal',
        '--no-ahead-behind',
      ],
      cwd: workTree.shared,
      env: { GIT_WORK_TREE: '.', GIT_INDEX_FILE: `${current.gitDir.shared}/index` },
      limit: maxBytes,
      signal,
    })
    const lines: StatusLine[] = []
    const slices = createSlices()
    for (const line of parseStatus(bytes.toString('utf8'))) {
      if (line.staged !== '?' || (await isThere(workTree, line.path))) lines.push(line)
      if (slices.due()) await slices.rest()
    }
    return formatStatus(lines, cut, table)
  }

  return (table: RefTable, signal: AbortSignal): Promise<TextPage> => {
    const mine = turn.then(() => run(table, signal))
    turn = mine.catch(() => {})
    return mine
  }
}

/** Whether a file is in the working tree itself. git also lists files behind a symbolic link that has just replaced a directory. */
async function isThere(workTree: Folder, path: string): Promise<boolean> {
  const segments = path.replace(/\/$/, '').split('/')
  const last = segments.pop() ?? ''
  const stats = await withFolder(workTree, segments, (folder) => statEntry(folder, last)).catch(() => undefined)
  return stats !== undefined
}

interface StatusLine {
  readonly staged: string
  readonly unstaged: string
  readonly path: string
  readonly before?: string
}

const maxPaths = 1000

const words: Readonly<Record<string, string>> = {
  A: 'added',
  C: 'copied',
  D: 'deleted',
  M: 'modified',
  R: 'renamed',
  T: 'type changed',
}

/** Parses `git status --porcelain=v1 -z`: `XY path NUL`, and after a renamed path its old name. */
function parseStatus(text: string): readonly StatusLine[] {
  const fields = text.split('\0')
  fields.pop()
  const lines: StatusLine[] = []
  for (let at = 0; at < fields.length; at++) {
    const field = fields[at] ?? ''
    const [staged = ' ', unstaged = ' '] = field
    const path = field.slice(3)
    const renamed = staged === 'R' || staged === 'C' || unstaged === 'R' || unstaged === 'C'
    lines.push({ staged, unstaged, path, ...(renamed ? { before: fields[++at] ?? '' } : {}) })
  }
  return lines
}

function formatStatus(lines: readonly StatusLine[], isStatusCut: boolean, table: RefTable): TextPage {
  const isConflict = ({ staged, unstaged }: StatusLine) => /U|^AA$|^DD$/.test(staged + unstaged)
  const called = ({ path, before }: StatusLine) =>
    `${before === undefined ? '' : `${escapeLine(before)} → `}${escapeLine(path)}`
  const group = (heading: string, keep: (line: StatusLine) => boolean, format: (line: StatusLine) => string) => {
    const statusLines = lines.filter(keep)
    return statusLines.length === 0 ? [] : [`${heading}:`, ...statusLines.map((line) => `  ${format(line)}`)]
  }
  const tracked = (line: StatusLine) => line.staged !== '?' && !isConflict(line)
  const groups = [
    ...group('Conflicts', isConflict, called),
    ...group(
      'Staged',
      (line) => tracked(line) && line.staged !== ' ',
      (line) => `${words[line.staged] ?? line.staged} ${called(line)}`,
    ),
    ...group(
      'Not staged',
      (line) => tracked(line) && line.unstaged !== ' ',
      (line) => `${words[line.unstaged] ?? line.unstaged} ${called(line)}`,
    ),
    ...group('Untracked', ({ staged }) => staged === '?', called),
  ]
  const isCut = isStatusCut || groups.length > maxPaths
  const text = [
    describeHead(table),
    ...(groups.length === 0 ? ['Nothing has changed.'] : groups.slice(0, maxPaths)),
    ...(isCut ? [cutMark('more paths')] : []),
  ]
  return { text: `${text.join('\n')}\n`, cut: isCut }
}

function describeHead({ head, branch }: RefTable): string {
  const on = branch?.replace(/^refs\/heads\//, '')
  if (head === undefined)
    return on === undefined ? 'HEAD is on no commit.' : `On ${escapeLine(on)}, which has no commits yet.`
  return on === undefined
    ? `HEAD is detached at ${shortId(head.oid)}.`
    : `On ${escapeLine(on)} at ${shortId(head.oid)}.`
}

interface Plan {
  readonly entry?: Entry
  readonly write: (params: Params) => Promise<TextPage>
}

type Find = (rest: string, table: RefTable, signal: AbortSignal) => Promise<Plan>

export function createTextPages(repository: Repository, commits: CommitResolver) {
  const { launcher, objects, trees, config, location, mirror, settings } = repository
  const { maxBytes, maxCommits, withheld } = settings
  const tipsOf = createTips(commits)
  const readStatus = location.workTree === undefined ? undefined : createStatusReader(repository)

  const named = async (text: string, table: RefTable, signal: AbortSignal): Promise<NamedCommit> => {
    const commit = await commits.named(text, table, signal)
    if (commit === undefined) throw notFound('no such ref or commit')
    return commit
  }

  const writeLog = async (params: Params, table: RefTable, signal: AbortSignal): Promise<TextPage> => {
    const query = parseLogQuery(params, maxCommits)
    const ref = params.get('ref')
    if (ref === undefined && table.head === undefined)
      return {
        text: table.branch === undefined ? 'HEAD is on no commit here.\n' : 'HEAD has no commits yet.\n',
        cut: false,
        version: table.fingerprint,
      }
    const { commit, spelled } = await named(ref ?? 'HEAD', table, signal)
    const about = query.path === undefined ? '' : `, ${escapeLine(query.path)}`
    const title = `Log of ${escapeLine(spelled)} at ${shortId(commit)}${about}, newest first.`
    const log = await readLog(launcher, commit, query, maxBytes, signal)
    return { ...formatLog(title, log, await tipsOf(table)), version: table.fingerprint }
  }

  const writeBlame = async (
    at: NamedCommit,
    path: string,
    entry: TreeEntry,
    signal: AbortSignal,
  ): Promise<TextPage> => {
    const { bytes, size } = await objects.read(entry.oid, maxBytes)
    const encoding = requireBlamable(bytes, size, maxBytes)
    const title = `Blame of ${escapeLine(path)} at ${escapeLine(at.spelled)} (${shortId(at.commit)}).`
    const page = await readBlame(launcher, { commit: at.commit, path }, title, encoding, maxBytes, signal)
    return { ...page, immutable: at.fixed }
  }

  const families: Readonly<Record<string, Find>> = {
    commits: async (rest, table, signal) => {
      const { commit, fixed } = await named(rest, table, signal)
      const settingsOf = { format: config.format, maxBytes, withheld, shallow: repository.shallow() }
      return {
        write: async () => ({ ...(await readCommit(launcher, commit, settingsOf, signal)), immutable: fixed }),
      }
    },
    diff: async (rest, table, signal) => {
      const from = await commits.find(rest, table, signal)
      if (from === undefined) throw notFound('no such ref or commit')
      const to = await named(from.rest, table, signal)
      return { write: (params) => writeDifference(repository, { from, to }, params, signal) }
    },
    blame: async (rest, table, signal) => {
      const at = await commits.find(rest, table, signal)
      if (at === undefined || at.rest === '' || at.rest.endsWith('/')) throw notFound('no such file')
      const entry = await trees.find(`${at.commit}^{tree}`, at.rest)
      if (entry?.kind !== 'file') throw notFound('no such file')
      return { write: () => writeBlame(at, at.rest, entry, signal) }
    },
  }

  const isThere = async (oid: string) => (await objects.info(`${oid}^{}`)) !== undefined

  const single = (path: string, table: RefTable, signal: AbortSignal): Plan | undefined => {
    const entry = entries(table).find((one) => one.path === path)
    if (entry === undefined) return undefined
    if (path === 'branches' || path === 'tags')
      return { entry, write: () => readRefPage(launcher, mirror.refsDir, path, table, isThere, signal) }
    if (path === 'status' && readStatus !== undefined) return { entry, write: () => readStatus(table, signal) }
    return { entry, write: (params) => writeLog(params, table, signal) }
  }

  const entries = ({ fingerprint, head, branch }: RefTable): readonly Entry[] => [
    {
      path: 'branches',
      ...pageMetadata('Branches', 'Every branch with its latest commit, newest first.'),
      version: fingerprint,
    },
    { path: 'log', ...pageMetadata('Log', 'The latest commits of HEAD, a line each.'), version: fingerprint },
    // The status compares with HEAD: there is none if HEAD is not served.
    ...(readStatus === undefined || (head === undefined && branch === undefined)
      ? []
      : [{ path: 'status', ...pageMetadata('Status', 'The changes in the working tree since the last commit.') }]),
    { path: 'tags', ...pageMetadata('Tags', 'Every tag with its commit, newest first.'), version: fingerprint },
  ]

  const plan = async (path: string, table: RefTable, signal: AbortSignal): Promise<Plan | undefined> => {
    const slash = path.indexOf('/')
    if (slash === -1) {
      // A bare repository has no status, and no branch of that name may take its place.
      const plan = single(path, table, signal)
      if (plan === undefined && path === 'status')
        throw notFound(readStatus === undefined ? 'a bare repository has no status' : 'without HEAD there is no status')
      return plan
    }
    const family = families[path.slice(0, slash)]
    return Object.hasOwn(families, path.slice(0, slash)) ? family?.(path.slice(slash + 1), table, signal) : undefined
  }

  return {
    /** The listed pages, in path order. */
    entries,
    /** Returns the entry of a page; undefined when the path is not that of a page. Throws `not-found` when the subject of the page is missing. */
    stat: async (path: string, table: RefTable, signal: AbortSignal): Promise<Entry | undefined> => {
      const pagePlan = await plan(path, table, signal)
      return pagePlan === undefined ? undefined : (pagePlan.entry ?? { path, mimeType: pageMimeType })
    },
    read: async (path: string, params: Params, table: RefTable, signal: AbortSignal): Promise<Content | undefined> => {
      const pagePlan = await plan(path, table, signal)
      return pagePlan === undefined ? undefined : textPageContent(await pagePlan.write(params))
    },
  }
}

function adviseDiff(from: string, to: string): string {
  return `see one file with diff/${shortId(from)}/${shortId(to)}?path=PATH`
}

async function writeDifference(
  { launcher, settings }: Repository,
  { from, to }: { readonly from: NamedCommit; readonly to: NamedCommit },
  params: Params,
  signal: AbortSignal,
): Promise<TextPage> {
  const path = pathParameter(params)
  const isOfFile = path !== undefined && !path.endsWith('/')
  const advice = isOfFile ? undefined : adviseDiff(from.commit, to.commit)
  const query = { from: from.commit, to: to.commit, ...defined({ path, advice }) }
  const difference = await readDifference(launcher, query, settings, signal)
  const about = path === undefined ? '' : `, ${escapeLine(path)}`
  const ends = [from, to].map(({ spelled, commit }) => `${escapeLine(spelled)} (${shortId(commit)})`)
  return {
    text: `Diff ${ends.join(' → ')}${about}\n${difference.text}`,
    cut: difference.cut,
    immutable: from.fixed && to.fixed,
  }
}

function pageMetadata(title: string, description: string) {
  return { title, description, mimeType: pageMimeType }
}

const maxRefs = 1000

function createTips(commits: CommitResolver) {
  const marksByTable = new WeakMap<RefTable, ReadonlyMap<string, readonly string[]>>()
  return async (table: RefTable): Promise<ReadonlyMap<string, readonly string[]>> => {
    const cachedMarks = marksByTable.get(table)
    if (cachedMarks !== undefined) return cachedMarks
    const marks = new Map<string, string[]>()
    const mark = (commit: string | undefined, name: string) => {
      if (commit !== undefined) marks.set(commit, [...(marks.get(commit) ?? []), name])
    }
    if (table.head !== undefined) mark(await commits.at(table.head), 'HEAD')
    const count = Math.min(table.refs.length, maxRefs)
    const refs = Array.from({ length: count }, (_, index) => refAt(table.refs, index))
    const ids = await Promise.all(refs.map((ref) => commits.at(ref)))
    for (const [index, { name }] of refs.entries()) mark(ids[index], table.names.shortest(name))
    marksByTable.set(table, marks)
    return marks
  }
}

/** The id of the empty tree, which git knows without storing it. */
const emptyTree: Readonly<Record<ObjectFormat, string>> = {
  sha1: '4b825dc642cb6eb9a060e54bf8d69288fbee4904',
  sha256: '6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321',
}

const maxMessageBytes = 64 * 1024

/**
 * Reads one commit as text: its id, parents, people and dates; its message, indented; the changes of each file; the patch. A merge is compared
 * with its first parent.
 */
async function readCommit(
  launcher: Launcher,
  commit: string,
  settings: DifferenceSettings & { readonly format: ObjectFormat; readonly shallow: ReadonlySet<string> },
  signal: AbortSignal,
): Promise<TextPage> {
  const head = await launcher.run({
    args: [
      'log',
      '--max-count=1',
      '--format=%P%n%an <%ae> %aI%n%cn <%ce> %cI%n%B',
      '--encoding=UTF-8',
      '--end-of-options',
      commit,
      '--',
    ],
    limit: maxMessageBytes,
    signal,
  })
  const [parentIds, author, committer, ...message] = head.bytes.toString('utf8').split('\n')
  if (parentIds === undefined || author === undefined || committer === undefined) throw notFound('no such commit')
  const parents = parentIds.split(' ').filter((id) => id !== '')
  const lines = [
    `commit ${commit}`,
    ...(parents.length === 0 ? [] : [`${parents.length === 1 ? 'parent' : 'parents'} ${parents.join(' ')}`]),
    `author ${escapeLine(author)}`,
    ...(committer === author ? [] : [`committer ${escapeLine(committer)}`]),
    '',
    ...escapeLines(message.join('\n').trimEnd())
      .split('\n')
      .map((line) => (line === '' ? '' : `    ${line}`)),
    ...(head.cut ? [cutMark(`the message is longer than ${maxMessageBytes} bytes`)] : []),
    '',
  ]
  const [parent] = parents
  if (parent === undefined && settings.shallow.has(commit))
    return {
      text: `${[...lines, 'Its parents, and so its changes, are not in this shallow clone.'].join('\n')}\n`,
      cut: head.cut,
    }
  const difference = await readDifference(
    launcher,
    {
      from: parent ?? emptyTree[settings.format],
      to: commit,
      advice: parent === undefined ? `read its files as ${shortId(commit)}/PATH` : adviseDiff(parent, commit),
      ...(parents.length > 1 ? { note: 'compared with the first parent' } : {}),
    },
    settings,
    signal,
  )
  return { text: `${lines.join('\n')}\n${difference.text}`, cut: head.cut || difference.cut }
}
