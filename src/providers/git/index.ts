import { notFound, unavailable } from '../../core/errors.ts'
import { defined, requireKeys } from '../../core/kit/object.ts'
import { metaKeys } from '../../core/meta.ts'
import type { Content, Context, Entry, Provider, ReadRequest, Template } from '../../core/provider.ts'
import { directoryMimeType } from '../../core/view.ts'
import { untilAbort } from '../files/place.ts'
import { fileSystemError } from './launch.ts'
import {
  createCompleter,
  createDateFinder,
  createGitDirectories,
  createGitLister,
  dateKey,
  describeFile,
} from './list.ts'

import { createBlobReader, isMissingObjectError } from './objects.ts'
import { createTextPages, pageMimeType } from './pages.ts'
import { type CommitResolver, createCommitResolver, type RefTable } from './refs.ts'
import { completeGitOptions, type GitOptions, openRepository, type Repository } from './repository.ts'

import { createRepositoryWatch, type ReadStatus } from './watch.ts'

export type { GitOptions } from './repository.ts'

/** Maximum age of the refs in an answer, in milliseconds; longer with very many refs. */
const maxAgeMs = 1000
/** Maximum time that a listing waits for the dates of files, in milliseconds. */
const datesTimeoutMs = 2000
const restartIntervalMs = 1000
/** Maximum number of attempts at an answer while branches move and their old commits are pruned. */
const attempts = 10

/**
 * Provider of the history of a git repository: files at any branch, tag or commit, and the log, commits, diffs, blame, branches, tags and the state
 * of the working tree as text.
 *
 * It lists the files at `HEAD`, below `HEAD/`, and the text pages. A prefix that names any other ref or commit lists its files. A file's version is
 * its object id.
 *
 * Nothing of the repository runs: no hook, filter, driver or setting. Only commits reachable from the served refs are visible. See
 * docs/providers/git.md.
 *
 * @throws ResourceError `invalid` when there is no git, or no repository; the message says what to do.
 */
export async function git(options: GitOptions): Promise<Provider> {
  requireKeys('git({ repository })', options, { repository: 'a string' })
  return createGit(options, {})
}

/** Does the same as {@link git}, with additional options for tests. */
export async function createGit(
  options: GitOptions,
  tuning: {
    readonly maxAgeMs?: number
    readonly dateBudgetMs?: number
    /** Receives the number of refs, or of names in a tree, that each time slice has processed. */
    readonly onEntries?: (entries: number) => void
  },
): Promise<Provider> {
  const settings = { ...completeGitOptions(options), ...defined({ onEntries: tuning.onEntries }) }
  const repository = await openRepository(settings, tuning.maxAgeMs ?? maxAgeMs).catch((error: unknown) => {
    throw fileSystemError(error)
  })
  const { launcher, objects, trees, refs, shallow, config } = repository
  const commits = createCommitResolver(launcher, objects, config.format === 'sha1' ? 40 : 64)
  const directories = createGitDirectories(commits, trees, tuning.onEntries)
  const pages = createTextPages(repository, commits)
  const readBlob = createBlobReader(launcher, objects, settings.maxBytes)
  const { maxCommits, timeoutMs } = settings
  const budgetMs = tuning.dateBudgetMs ?? Math.min(datesTimeoutMs, timeoutMs)
  const datesOf = createDateFinder(launcher, maxCommits, budgetMs, shallow)
  const list = createGitLister({ refs, directories, objects, datesOf, pages: pages.entries })
  const complete = createCompleter(launcher, commits, directories, tuning.onEntries)
  const closing = new AbortController()
  const steadily = createSteadily(repository)

  const signalOf = ({ signal }: Context): AbortSignal => {
    signal.throwIfAborted()
    if (closing.signal.aborted) throw unavailable('The git provider is closed.')
    return signal
  }

  /** Waits for the result of a call, unless its caller aborts. Converts errors of the file system. */
  const answered = async <T>(work: Promise<T>, signal: AbortSignal): Promise<T> => {
    try {
      return await untilAbort(work, signal)
    } catch (error) {
      throw fileSystemError(error)
    }
  }

  const stat = async (path: string, table: RefTable, signal: AbortSignal): Promise<Entry> => {
    if (path === '') throw notFound()
    if (path.endsWith('/')) {
      if ((await directories.find(path, table, signal)) === undefined) throw notFound()
      return { path, mimeType: directoryMimeType }
    }
    const page = await pages.stat(path, table, signal)
    if (page !== undefined) return page
    const { at, entry } = await locate(await commits.find(path, table, signal), trees)
    const dates = await datesOf(at.commit)
    return describeFile(objects, path, entry, dates.get(dateKey(entry.oid, at.rest)))
  }

  const readPath = async (request: ReadRequest, table: RefTable, signal: AbortSignal): Promise<Content> => {
    const { path, params, range } = request
    if (path === '' || path.endsWith('/')) throw notFound('a directory')
    const page = await pages.read(path, params, table, signal)
    if (page !== undefined) return page
    const { at, entry } = await locate(await commits.find(path, table, signal), trees)
    const content = await readBlob(entry, range, signal)
    const meta = { [metaKeys.commit]: at.commit }
    return { ...content, meta, ...(at.fixed ? { immutable: true } : {}) }
  }

  const readStatus: ReadStatus = async (table, signal) => {
    const content = await answered(pages.read('status', new Map(), table, signal), signal)
    if (content === undefined || !('text' in content)) throw notFound('no status')
    return content.text
  }

  return {
    list: async function* (query, context) {
      const signal = signalOf(context)
      const entries = list(query, signal)
      try {
        for (;;) {
          signalOf(context)
          const next = await answered(entries.next(), signal)
          if (next.done === true) return
          yield next.value
        }
      } catch (error) {
        if (!isMissingObjectError(error)) throw error
        throw repository.config.partial ? unfetched(error) : missingDirectory(error)
      }
    },
    stat: async (path, context) => {
      const signal = signalOf(context)
      return answered(
        steadily((table) => stat(path, table, signal)),
        signal,
      )
    },
    read: async (request, context) => {
      const signal = signalOf(context)
      const content = steadily((table) => readPath(request, table, signal))
      return [await answered(content, signal)]
    },
    templates: async () => templates,
    complete: async (request, context) => {
      const signal = signalOf(context)
      const completion = steadily((table) => complete(request, table, signal)).catch((error: unknown) => {
        if (isMissingObjectError(error)) return { values: [], total: 0, hasMore: false }
        throw error
      })
      return answered(completion, signal)
    },
    // Only pages lie at the root, and of all commits only `HEAD` is listed.
    isListed: (path) => !path.includes('/') || path.startsWith('HEAD/'),
    ...(settings.watch ? createRepositoryWatch(repository, readStatus, closing.signal) : {}),
    close: async () => {
      closing.abort()
      objects.close()
      await repository.close()
    },
  }
}

function missingDirectory(cause: unknown) {
  const message = 'A directory of the list is missing in the repository. List again, or run git fsck there.'
  return unavailable(message, {}, cause)
}

function unfetched(cause: unknown) {
  const message = 'An object is not in this partial clone. Run there: git fetch --refetch --no-filter.'
  return unavailable(message, {}, cause)
}

/**
 * Creates a function that calls `work` with the current refs, and again when the repository was replaced, or an object is missing: a branch
 * may have moved, and its old commits been pruned. After a second missing object, it tries again only if the refs have moved meanwhile.
 */
function createSteadily({ refs, anchors, objects, config }: Repository) {
  let restarted = Number.NEGATIVE_INFINITY
  return async <T>(work: (table: RefTable) => Promise<T>): Promise<T> => {
    let table = await refs.table()
    for (let attempt = 1; ; attempt++) {
      try {
        const answer = await work(table)
        if (await anchors.isSame()) return answer
        if (attempt >= attempts) throw unavailable('The repository is replaced repeatedly. Try again later.')
        table = await refs.table(performance.now())
      } catch (error) {
        if (!isMissingObjectError(error)) throw error
        const now = performance.now()
        const newer = await refs.table(now)
        const hasMoved = newer.fingerprint !== table.fingerprint
        if (attempt > 1 && (!hasMoved || attempt >= attempts)) throw config.partial ? unfetched(error) : error
        table = newer
        if (now - restarted > restartIntervalMs) {
          restarted = now
          objects.restart()
        }
      }
    }
  }
}

async function locate(at: Awaited<ReturnType<CommitResolver['find']>>, trees: Repository['trees']) {
  const entry = at === undefined || at.rest === '' ? undefined : await trees.find(`${at.commit}^{tree}`, at.rest)
  if (at === undefined || entry === undefined || entry.kind === 'directory') throw notFound()
  return { at, entry }
}

/** Names of refs may contain slashes, hence `{+ref}`. */
const templates: readonly Template[] = [
  {
    template: '{+ref}/{+path}',
    name: 'File at a ref',
    title: 'A file as it is at a branch, tag or commit',
    description:
      'ref is HEAD, a branch, a tag, or a commit id; refs/heads/… and refs/tags/… always work. A path that ends in / is a directory.',
  },
  {
    template: 'log{?path,since,until,author,limit,ref}',
    free: ['since', 'until', 'limit'],
    name: 'Log',
    title: 'The history of a ref, or of a path at it',
    description:
      'Commits, newest first, a line each: id, date, author, refs, subject. since and until take 2026-11-21 or "2 weeks"; author a part of a name or address; limit is 100 by default.',
    mimeType: pageMimeType,
  },
  {
    template: 'commits/{sha}',
    name: 'Commit',
    title: 'One commit: message, author, changes, patch',
    description: 'sha is a commit id, or its first seven or more digits, as logs show them.',
    mimeType: pageMimeType,
  },
  {
    template: 'diff/{+from}/{+to}{?path}',
    name: 'Diff',
    title: 'Changes between two refs or commits',
    description: 'The changed files with numbers of lines, and the patch; with a path, only for that path.',
    mimeType: pageMimeType,
  },
  {
    template: 'blame/{+ref}/{+path}',
    name: 'Blame',
    title: 'The last commit and author of each line of a file',
    mimeType: pageMimeType,
  },
]
