import { invalid, notFound } from '../../core/errors.ts'
import { defined } from '../../core/kit/defined.ts'
import { isPath } from '../../core/path.ts'
import type { Content, Entry, Params } from '../../core/provider.ts'
import { readBlame, requireBlamable } from './blame.ts'
import { readCommit } from './commit-page.ts'
import type { Commits, Named } from './commits.ts'
import { readDifference } from './difference.ts'
import { formatLog, parseLogQuery, readLog } from './log.ts'
import { readRefPage } from './ref-page.ts'
import type { RefTable } from './refs.ts'
import type { Repository } from './repository.ts'
import { createStatus } from './status.ts'
import { contentOf, oneLine, type Page, pageType, shortId } from './text.ts'
import { createTips } from './tips.ts'
import type { TreeEntry } from './tree-format.ts'

/** The text pages: git's output about the history. */
export interface Pages {
  /** The listed pages, in path order. */
  entries(table: RefTable): readonly Entry[]
  /** Returns the entry of a page; undefined when the path belongs to a file. Throws `not-found`. */
  stat(path: string, table: RefTable, signal: AbortSignal): Promise<Entry | undefined>
  read(path: string, params: Params, table: RefTable, signal: AbortSignal): Promise<Content | undefined>
}

/** A page that was found, with the function that writes it. */
interface Plan {
  readonly entry?: Entry
  readonly write: (params: Params) => Promise<Page>
}

type Find = (rest: string, table: RefTable, signal: AbortSignal) => Promise<Plan>

export function createPages(repository: Repository, commits: Commits): Pages {
  const { launcher, objects, trees, config, location, shadow, settings } = repository
  const { maxBytes, maxCommits } = settings
  const tips = createTips(commits)
  const { workTree } = location
  const { anchors, lend } = repository
  const status =
    workTree === undefined ? undefined : createStatus({ launcher, folder: shadow.folder, anchors, lend, ...config })

  const named = async (text: string, table: RefTable, signal: AbortSignal): Promise<Named> => {
    const found = await commits.named(text, table, signal)
    if (found === undefined) throw notFound('no such ref or commit')
    return found
  }

  const writeLog = async (params: Params, table: RefTable, signal: AbortSignal): Promise<Page> => {
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
    return { ...formatLog(title, log, await tips.at(table)), version: table.fingerprint }
  }

  const writeBlame = async (at: Named, path: string, entry: TreeEntry, signal: AbortSignal): Promise<Page> => {
    const { bytes, size } = await objects.read(entry.oid, maxBytes)
    const encoding = requireBlamable(bytes, size)
    const title = `Blame of ${oneLine(path)} at ${oneLine(at.spelled)} (${shortId(at.commit)}).`
    const page = await readBlame(launcher, { commit: at.commit, path, title, encoding, maxBytes }, signal)
    return { ...page, immutable: at.fixed }
  }

  const families: Readonly<Record<string, Find>> = {
    commits: async (rest, table, signal) => {
      const { commit, fixed } = await named(rest, table, signal)
      const settingsOf = { format: config.format, maxBytes, shallow: repository.shallow() }
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
      return { entry, write: () => readRefPage(launcher, shadow.refsDir, path, table, signal) }
    if (path === 'status' && status !== undefined) return { entry, write: () => status.read(table, signal) }
    return { entry, write: (params) => writeLog(params, table, signal) }
  }

  const entries: Pages['entries'] = ({ fingerprint, head, branch }) => [
    {
      path: 'branches',
      ...describe('Branches', 'Every branch with its latest commit, newest first.'),
      version: fingerprint,
    },
    { path: 'log', ...describe('Log', 'The latest commits of HEAD, a line each.'), version: fingerprint },
    // The status compares with HEAD, which may not be served.
    ...(status === undefined || (head === undefined && branch === undefined)
      ? []
      : [{ path: 'status', ...describe('Status', 'What has changed in the working tree since the last commit.') }]),
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
    entries,
    stat: async (path, table, signal) => {
      const found = await plan(path, table, signal)
      return found === undefined ? undefined : (found.entry ?? { path, mimeType: pageType })
    },
    read: async (path, params, table, signal) => {
      const found = await plan(path, table, signal)
      return found === undefined ? undefined : contentOf(await found.write(params))
    },
  }
}

/** Writes the difference of two commits, or of one path in them. */
async function writeDifference(
  { launcher, settings }: Repository,
  { from, to }: { readonly from: Named; readonly to: Named },
  params: Params,
  signal: AbortSignal,
): Promise<Page> {
  const path = params.get('path')
  if (path !== undefined && (path === '' || !isPath(path)))
    throw invalid('The parameter "path" is not a path: write src/main.ts, or src/ for a directory.', 'path')
  const query = { from: from.commit, to: to.commit, ...defined({ path }) }
  const difference = await readDifference(launcher, query, settings.maxBytes, signal)
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
