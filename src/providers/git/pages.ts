import { notFound } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import type { Content, Entry, Params } from '../../core/provider.ts'
import { type Commits, formatLog, type NamedCommit, parseLogQuery, pathIn, readLog } from './commits.ts'
import type { Launcher } from './launch.ts'
import type { ObjectFormat } from './objects.ts'
import {
  contentOf,
  cutMark,
  type DifferenceSettings,
  manyLines,
  oneLine,
  pageType,
  readBlame,
  readDifference,
  requireBlamable,
  shortId,
  type TextPage,
} from './page-text.ts'
import { refAt } from './ref-list.ts'
import { type RefTable, readRefPage } from './refs.ts'
import type { Repository } from './repository.ts'
import { createStatusReader } from './status.ts'
import type { TreeEntry } from './trees.ts'

/** A page that was found, with the function that writes it. */
interface Plan {
  readonly entry?: Entry
  readonly write: (params: Params) => Promise<TextPage>
}

type Find = (rest: string, table: RefTable, signal: AbortSignal) => Promise<Plan>

/** The text pages: git's output about the history. */
export function createPages(repository: Repository, commits: Commits) {
  const { launcher, objects, trees, config, location, mirror, settings } = repository
  const { maxBytes, maxCommits, withheld } = settings
  const tipsOf = createTips(commits)
  const readStatus = location.workTree === undefined ? undefined : createStatusReader(repository)

  const named = async (text: string, table: RefTable, signal: AbortSignal): Promise<NamedCommit> => {
    const found = await commits.named(text, table, signal)
    if (found === undefined) throw notFound('no such ref or commit')
    return found
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
    const about = query.path === undefined ? '' : `, ${oneLine(query.path)}`
    const title = `Log of ${oneLine(spelled)} at ${shortId(commit)}${about}, newest first.`
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
    const encoding = requireBlamable(bytes, size)
    const title = `Blame of ${oneLine(path)} at ${oneLine(at.spelled)} (${shortId(at.commit)}).`
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

  const single = (path: string, table: RefTable, signal: AbortSignal): Plan | undefined => {
    const entry = entries(table).find((one) => one.path === path)
    if (entry === undefined) return undefined
    if (path === 'branches' || path === 'tags')
      return { entry, write: () => readRefPage(launcher, mirror.refsDir, path, table, signal) }
    if (path === 'status' && readStatus !== undefined) return { entry, write: () => readStatus(table, signal) }
    return { entry, write: (params) => writeLog(params, table, signal) }
  }

  const entries = ({ fingerprint, head, branch }: RefTable): readonly Entry[] => [
    {
      path: 'branches',
      ...describe('Branches', 'Every branch with its latest commit, newest first.'),
      version: fingerprint,
    },
    { path: 'log', ...describe('Log', 'The latest commits of HEAD, a line each.'), version: fingerprint },
    // The status compares with HEAD, which may not be served.
    ...(readStatus === undefined || (head === undefined && branch === undefined)
      ? []
      : [{ path: 'status', ...describe('Status', 'The changes in the working tree since the last commit.') }]),
    { path: 'tags', ...describe('Tags', 'Every tag with its commit, newest first.'), version: fingerprint },
  ]

  const plan = async (path: string, table: RefTable, signal: AbortSignal): Promise<Plan | undefined> => {
    const slash = path.indexOf('/')
    if (slash === -1) {
      // A bare repository has no status, and no branch of that name may take its place.
      const found = single(path, table, signal)
      if (found === undefined && path === 'status') throw notFound('a bare repository has no status')
      return found
    }
    const family = families[path.slice(0, slash)]
    return Object.hasOwn(families, path.slice(0, slash)) ? family?.(path.slice(slash + 1), table, signal) : undefined
  }

  return {
    /** The listed pages, in path order. */
    entries,
    /** Returns the entry of a page; undefined when the path is that of a file. Throws `not-found` when the subject of the page is missing. */
    stat: async (path: string, table: RefTable, signal: AbortSignal): Promise<Entry | undefined> => {
      const found = await plan(path, table, signal)
      return found === undefined ? undefined : (found.entry ?? { path, mimeType: pageType })
    },
    read: async (path: string, params: Params, table: RefTable, signal: AbortSignal): Promise<Content | undefined> => {
      const found = await plan(path, table, signal)
      return found === undefined ? undefined : contentOf(await found.write(params))
    },
  }
}

/** Writes the difference of two commits, or of one path in them. */
async function writeDifference(
  { launcher, settings }: Repository,
  { from, to }: { readonly from: NamedCommit; readonly to: NamedCommit },
  params: Params,
  signal: AbortSignal,
): Promise<TextPage> {
  const path = pathIn(params)
  const query = { from: from.commit, to: to.commit, ...defined({ path }) }
  const difference = await readDifference(launcher, query, settings, signal)
  const about = path === undefined ? '' : `, ${oneLine(path)}`
  const ends = [from, to].map(({ spelled, commit }) => `${oneLine(spelled)} (${shortId(commit)})`)
  return {
    text: `Diff ${ends.join(' → ')}${about}\n${difference.text}`,
    cut: difference.cut,
    immutable: from.fixed && to.fixed,
  }
}

function describe(title: string, description: string) {
  return { title, description, mimeType: pageType }
}

/** Maximum number of refs shown. */
const maxRefs = 1000

/** Creates a function that returns the shortest names of the refs at each commit. */
function createTips(commits: Commits) {
  const known = new WeakMap<RefTable, ReadonlyMap<string, readonly string[]>>()
  return async (table: RefTable): Promise<ReadonlyMap<string, readonly string[]>> => {
    const found = known.get(table)
    if (found !== undefined) return found
    const marks = new Map<string, string[]>()
    const mark = (commit: string | undefined, name: string) => {
      if (commit !== undefined) marks.set(commit, [...(marks.get(commit) ?? []), name])
    }
    if (table.head !== undefined) mark(await commits.at(table.head), 'HEAD')
    const shown = Math.min(table.refs.length, maxRefs)
    const refs = Array.from({ length: shown }, (_, index) => refAt(table.refs, index))
    const ids = await Promise.all(refs.map((ref) => commits.at(ref)))
    for (const [index, { name }] of refs.entries()) mark(ids[index], table.names.shortest(name))
    known.set(table, marks)
    return marks
  }
}

/** The id of the empty tree, which git knows without storing it. */
const emptyTree: Readonly<Record<ObjectFormat, string>> = {
  sha1: '4b825dc642cb6eb9a060e54bf8d69288fbee4904',
  sha256: '6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321',
}

/** Maximum length of a commit message, in bytes. */
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
    `author ${oneLine(author)}`,
    ...(committer === author ? [] : [`committer ${oneLine(committer)}`]),
    '',
    ...manyLines(message.join('\n').trimEnd())
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
      ...(parents.length > 1 ? { note: 'compared with the first parent' } : {}),
    },
    settings,
    signal,
  )
  return { text: `${lines.join('\n')}\n${difference.text}`, cut: head.cut || difference.cut }
}
