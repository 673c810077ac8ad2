import { fallbackTo, isResourceError } from '../../core/errors.ts'
import { followFor } from '../../core/kit/abort.ts'
import { createSlices } from '../../core/kit/breath.ts'
import { createRecent } from '../../core/kit/lru.ts'
import { defined } from '../../core/kit/object.ts'
import type { Within } from '../../core/kit/within.ts'
import type { Log } from '../../core/log.ts'
import type { Launcher } from './launch.ts'
import { completeOptions } from './options.ts'
import { openRepository } from './repository.ts'

/** A file that a commit wrote. `time` is the commit time, in milliseconds since 1970. */
interface FileChange {
  readonly time: number
  /** The id of the new content. */
  readonly oid: string
  readonly path: string
}

interface HistoryQuery {
  readonly commit: string
  /** Arguments of `git log` besides the format: which commits. */
  readonly args: readonly string[]
  /** Commits whose parents are missing. They are left out, because all their files would seem to be new. */
  readonly shallow: ReadonlySet<string>
}

/**
 * Passes the files that the commits of a history wrote to `take`, newest first, until that returns `false`. A merge has written those in
 * which it differs from all its parents.
 */
async function readHistory(
  launcher: Launcher,
  { commit, args, shallow }: HistoryQuery,
  take: (change: FileChange) => boolean,
  signal: AbortSignal,
): Promise<void> {
  const format = [
    '-z',
    '--raw',
    '-c',
    '--no-renames',
    '--no-abbrev',
    '--no-ext-diff',
    '--no-textconv',
    '--format=%H %ct',
  ]
  let time = Number.NaN
  let isLeftOut = false
  /** The id of the content of the path that comes next. */
  let oid: string | undefined
  const read = createFieldReader((field) => {
    if (oid !== undefined) {
      const change = { time, oid, path: field }
      oid = undefined
      return isLeftOut || /^0+$/.test(change.oid) || take(change)
    }
    // A line feed comes before the changes of a commit. Each has a colon, an id and a mode for each parent, and an id and a mode more.
    const text = field.replace(/^\n/, '')
    const parents = /^:+/.exec(text)?.[0].length ?? 0
    if (parents > 0) oid = text.split(' ')[2 * parents + 1] ?? ''
    else if (text !== '') {
      const [id = '', seconds] = text.split(' ')
      time = Number(seconds) * 1000
      isLeftOut = shallow.has(id)
    }
    return true
  })
  await launcher.pipe({ args: ['log', ...format, ...args, '--end-of-options', commit, '--'], signal }, read)
}

/** Creates a function that splits chunks into NUL-terminated texts and passes each to `take`. Returns whether `take` wants more. */
function createFieldReader(take: (field: string) => boolean): (chunk: Buffer) => boolean {
  let rest: Buffer = Buffer.alloc(0)
  return (chunk) => {
    const all = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    let start = 0
    for (let end = all.indexOf(0); end !== -1; end = all.indexOf(0, start)) {
      if (!take(all.toString('utf8', start, end))) return false
      start = end + 1
    }
    rest = all.subarray(start)
    return true
  }
}

/** The times when the files at a commit were last written, by their {@link dateKey}, in milliseconds since 1970. Files without a known date are missing. */
export type FileDates = Pick<PathMap<number>, 'get' | 'size'>

/** Returns the key of the date of a file: the id of its content, and its path. */
export function dateKey(oid: string, path: string): string {
  return `${oid}/${path}`
}

/** Returns the dates of the files at a commit: for each the time of the newest commit that gave it the content that it has there. */
export type DatesOf = (commit: string) => Promise<FileDates>

/** Maximum number of files at a commit that get a date, and of cached dates over all commits. Those of the last commit are always cached. */
const maxDates = 500_000

/**
 * Finds the dates of all files at a commit in one walk through its history. If the commit of the last walk is among its ancestors, it goes back
 * only to that.
 *
 * @param maxCommits Maximum number of commits to examine. A file that none of them wrote has no date.
 * @param budgetMs Time-out of a walk, in milliseconds; the dates found until then are kept.
 */
export function createDates(
  launcher: Launcher,
  maxCommits: number,
  budgetMs: number,
  shallow: () => ReadonlySet<string>,
): DatesOf {
  const known = createRecent<FileDates>(maxDates, ({ size }) => size + 1000)
  const walking = new Map<string, Promise<FileDates>>()
  let latest: string | undefined
  let depth = shallow()

  const filesAt = async (commit: string, signal: AbortSignal) => {
    const files = createPathMap<true>()
    const read = createFieldReader((field) => {
      const tab = field.indexOf('\t')
      files.set(dateKey(field.slice(field.lastIndexOf(' ', tab) + 1, tab), field.slice(tab + 1)), true)
      return files.size < maxDates
    })
    await launcher.pipe({ args: ['ls-tree', '-r', '-z', '--full-tree', '--end-of-options', commit], signal }, read)
    return files
  }

  const isAncestor = async (ancestor: string, commit: string, signal: AbortSignal): Promise<boolean> => {
    const args = ['merge-base', '--is-ancestor', ancestor, commit]
    return (await launcher.run({ args, limit: 1000, signal, allows: [1, 128], quiet: true })).code === 0
  }

  const find = async (commit: string): Promise<FileDates> => {
    const signal = AbortSignal.timeout(budgetMs)
    const dates = createPathMap<number>()
    try {
      const files = await filesAt(commit, signal)
      const isAhead = latest !== undefined && (await isAncestor(latest, commit, signal))
      const before = isAhead && latest !== undefined ? known.get(latest) : undefined
      const args = [`--max-count=${maxCommits}`, ...(before === undefined ? [] : [`^${latest}`])]
      const take = ({ time, oid, path }: FileChange): boolean => {
        const key = dateKey(oid, path)
        if (files.delete(key)) dates.set(key, time)
        return files.size > 0
      }
      await readHistory(launcher, { commit, args, shallow: shallow() }, take, signal)
      const slices = createSlices()
      for (const key of before === undefined ? [] : files.keys()) {
        const time = before?.get(key)
        if (time !== undefined) dates.set(key, time)
        if (slices.due()) await slices.rest()
      }
    } catch (error) {
      // Time-out or end of the available history (a partial clone): the dates found so far are valid.
      if (!signal.aborted && !isResourceError(error)) throw error
    }
    known.set(commit, dates)
    latest = commit
    return dates
  }

  return async (commit) => {
    if (depth !== shallow()) {
      // The history was deepened or made shallower.
      depth = shallow()
      latest = undefined
      known.clear()
    }
    const found = known.get(commit)
    if (found !== undefined) return found
    const walked = walking.get(commit) ?? find(commit).finally(() => walking.delete(commit))
    walking.set(commit, walked)
    return walked
  }
}

type PathMap<V> = ReturnType<typeof createPathMap<V>>

const maxParts = 256
/** Maximum number of paths in a single map. */
const maxUndivided = 16_384

/**
 * A map of paths that never blocks the event loop for long as it grows: it is split into several maps. A single map of a million keys is
 * rehashed in one step when it is full, which takes 80 ms.
 */
function createPathMap<V>() {
  let maps: readonly Map<string, V>[] = [new Map()]
  let size = 0
  const mapFor = (path: string) => maps[hash(path) % maps.length] as Map<string, V>
  const divide = () => {
    const [all] = maps
    maps = Array.from({ length: maxParts }, () => new Map())
    for (const [path, value] of all ?? []) mapFor(path).set(path, value)
  }
  return {
    get size() {
      return size
    },
    get: (path: string) => mapFor(path).get(path),
    set: (path: string, value: V): void => {
      if (size === maxUndivided && maps.length === 1) divide()
      const map = mapFor(path)
      if (!map.has(path)) size++
      map.set(path, value)
    },
    delete: (path: string): boolean => {
      const had = mapFor(path).delete(path)
      if (had) size--
      return had
    },
    keys: function* (): Generator<string> {
      for (const map of maps) yield* map.keys()
    },
  }
}

/** Hashes the last characters, because the first ones are often the same. Not negative. */
function hash(path: string): number {
  let value = 0
  for (let i = Math.max(0, path.length - 32); i < path.length; i++) value = (value * 31 + path.charCodeAt(i)) | 0
  return (value ^ (value >>> 8) ^ (value >>> 16)) >>> 0
}

interface ActivityOptions {
  /** Path of the repository, as in the provider's options. */
  readonly repository: string
  /** As in the provider's options. */
  readonly within?: Within
  /** Maximum number of commits to count, newest first. Default 1000. */
  readonly maxCommits?: number
  /** Time-out of the count, in milliseconds. Default 3000. */
  readonly timeoutMs?: number
  readonly log?: Log
  readonly signal?: AbortSignal
}

/**
 * Counts how often each file was changed, by path, in the newest commits reachable from `HEAD`, without merges. As with the provider, nothing
 * of the repository runs. Returns undefined when git, a repository or a commit is missing, or on a time-out.
 */
export async function countActivity(options: ActivityOptions): Promise<ReadonlyMap<string, number> | undefined> {
  const { maxCommits = 1000, timeoutMs = 3000, log, repository, within } = options
  const settings = completeOptions({ repository, refs: ['HEAD'], watch: false, timeoutMs, ...defined({ log, within }) })
  const { signal, release } = followFor(options.signal ?? [], timeoutMs)
  try {
    return await countIn(settings, maxCommits, signal)
  } finally {
    release()
  }
}

async function countIn(
  settings: ReturnType<typeof completeOptions>,
  maxCommits: number,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, number> | undefined> {
  const repository = await openRepository(settings, 0).catch(fallbackTo(undefined))
  if (repository === undefined) return undefined
  try {
    const { launcher, refs, shallow } = repository
    const { head } = await refs.table()
    if (head === undefined) return undefined
    const counts = new Map<string, number>()
    const query = { commit: head.oid, args: ['--no-merges', `--max-count=${maxCommits}`], shallow: shallow() }
    const count = ({ path }: FileChange): boolean => {
      counts.set(path, (counts.get(path) ?? 0) + 1)
      return true
    }
    await readHistory(launcher, query, count, signal)
    return counts
  } catch (error) {
    // The count has timed out, or a partial clone lacks its history.
    if (signal.aborted || isResourceError(error)) return undefined
    throw error
  } finally {
    repository.objects.close()
    await repository.close()
  }
}
