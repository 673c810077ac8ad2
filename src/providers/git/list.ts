import { completeFromValues } from '../../core/completion.ts'
import { fallbackTo, isResourceError } from '../../core/errors.ts'
import { followAbortFor } from '../../core/kit/abort.ts'
import { createSlices, eventLoopYield, type TimeSlices } from '../../core/kit/event-loop-yield.ts'
import { createLruCache } from '../../core/kit/lru.ts'
import { defined } from '../../core/kit/object.ts'
import { firstIndex } from '../../core/kit/sorted.ts'
import type { FolderBounds } from '../../core/kit/within.ts'
import type { Log } from '../../core/log.ts'
import { comparePaths, isPath, resumeKeyIn } from '../../core/path.ts'
import type { Completion, CompletionRequest, Entry, ListQuery } from '../../core/provider.ts'
import { mimeTypeByName } from '../files/options.ts'
import type { Launcher } from './launch.ts'
import {
  type GitTree,
  isDamagedObjectError,
  isMissingObjectError,
  isTooDeep,
  type ObjectDatabase,
  type TreeEntry,
  type TreeReader,
} from './objects.ts'
import { type LogLine, readLog } from './pages.ts'
import { type CommitResolver, type NameChildren, type NameNode, type Refs, type RefTable, refNameAt } from './refs.ts'
import { completeGitOptions, openRepository } from './repository.ts'

interface TreeDirectory {
  readonly commit: string
  /** The id of the tree, or of the commit in the form `id^{tree}`. */
  readonly tree: string
  /** Path of the directory below the root of the commit: empty, or ending in `/`. */
  readonly inside: string
}

interface GitDirectory {
  readonly tree?: TreeDirectory
  readonly names?: NameNode
}

interface GitItem {
  /** The name; that of a directory ends in `/`. */
  readonly key: string
  readonly node?: NameNode
  readonly entry?: TreeEntry
  readonly page?: Entry
}

/** The children of a directory, in path order. Items are created on demand. */
interface GitItems {
  readonly length: number
  /** Returns the key of an item; empty when the index is out of range. */
  keyAt(index: number): string
  at(index: number): GitItem | undefined
}

type GitDirectories = ReturnType<typeof createGitDirectories>

export function createGitDirectories(
  commits: CommitResolver,
  trees: TreeReader,
  onEntries?: (entries: number) => void,
) {
  const rootOf = (commit: string): TreeDirectory => ({ commit, tree: `${commit}^{tree}`, inside: '' })

  const directoryOf = async (node: NameNode): Promise<GitDirectory> => {
    const commit = node.ref === undefined ? undefined : await commits.at(node.ref)
    return { names: node, ...(commit === undefined ? {} : { tree: rootOf(commit) }) }
  }

  const subtree = (directory: TreeDirectory, entry: TreeEntry): TreeDirectory => ({
    commit: directory.commit,
    tree: entry.oid,
    inside: `${directory.inside}${entry.name}/`,
  })

  const within = async (directory: TreeDirectory, path: string): Promise<TreeDirectory | undefined> => {
    if (path === '') return directory
    const entry = await trees.find(directory.tree, path.slice(0, -1))
    return entry?.kind === 'directory' ? { commit: directory.commit, tree: entry.oid, inside: path } : undefined
  }

  /** Finds the commit that a path begins with. Undefined also for an ambiguous name, and when the commit is missing. */
  const findCommit: CommitResolver['find'] = async (path, table, signal) => {
    try {
      return await commits.find(path, table, signal)
    } catch (error) {
      if (isResourceError(error, 'invalid') || isMissingObjectError(error)) return undefined
      throw error
    }
  }

  return {
    /** Finds the directory at a path that is empty or ends in `/`; undefined when there is none, as for the empty path. */
    find: async (path: string, table: RefTable, signal: AbortSignal): Promise<GitDirectory | undefined> => {
      const names = table.names.nodeAt(path.split('/').slice(0, -1))
      const commit = await findCommit(path, table, signal)
      const tree = commit === undefined ? undefined : await within(rootOf(commit.commit), commit.rest)
      if (tree === undefined && names === undefined) return undefined
      return defined({ tree, names })
    },
    items: async ({ tree, names }: GitDirectory): Promise<GitItems> => {
      const files = tree === undefined ? undefined : await trees.read(tree.tree)
      if (names === undefined || !names.goesOn) return files === undefined ? itemsIn([]) : treeItems(files)
      const slices = createSlices(onEntries)
      const children = await names.children(slices)
      return files === undefined ? refNameItems(names, children) : bothIn(files, names, children, slices)
    },
    enter: async (directory: GitDirectory, { node, entry }: GitItem): Promise<GitDirectory | undefined> => {
      const tree =
        entry?.kind === 'directory' && directory.tree !== undefined ? subtree(directory.tree, entry) : undefined
      if (node === undefined) return tree === undefined ? undefined : { tree }
      const gitDirectory = await directoryOf(node)
      return gitDirectory.tree === undefined && tree !== undefined ? { ...gitDirectory, tree } : gitDirectory
    },
  }
}

function itemsIn(items: readonly GitItem[]): GitItems {
  return { length: items.length, keyAt: (index) => items[index]?.key ?? '', at: (index) => items[index] }
}

function treeItems(files: GitTree): GitItems {
  const keyAt = (index: number) => (index < 0 || index >= files.length ? '' : files.keyAt(index))
  return {
    length: files.length,
    keyAt,
    at: (index) => {
      const entry = files.entryAt(index)
      return entry === undefined ? undefined : { key: keyAt(index), entry }
    },
  }
}

function refNameItems(names: NameNode, { length, keyAt }: NameChildren): GitItems {
  return {
    length,
    keyAt: (index) => (index < 0 || index >= length ? '' : keyAt(index)),
    at: (index) => {
      const key = index < 0 || index >= length ? '' : keyAt(index)
      const node = key === '' ? undefined : names.child(key.slice(0, -1))
      return node === undefined ? undefined : { key, node }
    },
  }
}

/**
 * Merges the files of a ref with longer ref names that begin with its name. A ref name hides a file or directory of the same name; a directory
 * that is only a prefix of ref names is merged with a directory of files.
 */
async function bothIn(files: GitTree, names: NameNode, children: NameChildren, slices: TimeSlices): Promise<GitItems> {
  const flags = new Uint8Array(files.length)
  for (let i = 0; i < children.length; i++) {
    const name = children.keyAt(i).slice(0, -1)
    const node = names.child(name)
    const [file, directory] = [files.indexOf(name, false), files.indexOf(name, true)]
    if (directory !== -1) flags[directory] = 1
    if (file !== -1 && node !== undefined && !isBetween(node)) flags[file] = 1
    if (slices.due()) await slices.rest()
  }
  /** The order of all children: the index of a file, or `-1 - index` for the index of a name. */
  const order = new Int32Array(files.length + children.length)
  let length = 0
  for (let i = 0, j = 0; i < files.length || j < children.length; ) {
    const takesFile =
      j === children.length || (i < files.length && comparePaths(files.keyAt(i), children.keyAt(j)) <= 0)
    if (!takesFile) order[length++] = -1 - j++
    else if (flags[i++] === 0) order[length++] = i - 1
    if (slices.due()) await slices.rest()
  }
  const [ofFiles, ofNames] = [treeItems(files), refNameItems(names, children)]
  return {
    length,
    keyAt: (index) => {
      const at = index < length ? order[index] : undefined
      return at === undefined ? '' : at < 0 ? ofNames.keyAt(-1 - at) : ofFiles.keyAt(at)
    },
    at: (index) => {
      const at = index < length ? order[index] : undefined
      if (at === undefined) return undefined
      if (at >= 0) return ofFiles.at(at)
      const item = ofNames.at(-1 - at)
      const shared = item?.node !== undefined && isBetween(item.node)
      const entry = shared ? files.entryAt(files.indexOf(item.key.slice(0, -1), true)) : undefined
      return item === undefined ? undefined : { ...item, ...defined({ entry }) }
    },
  }
}

function isBetween({ ref, ambiguous }: NameNode): boolean {
  return ref === undefined && !ambiguous
}

interface ListerOptions {
  readonly refs: Refs
  readonly directories: GitDirectories
  readonly objects: ObjectDatabase
  readonly datesOf: DatesOf
  readonly pages: (table: RefTable) => readonly Entry[]
}

interface Frame {
  readonly path: string
  readonly entered: GitDirectory
  readonly items: GitItems
  index: number
  /** The rest of the path to resume after, relative to this directory. */
  readonly after: string
}

/** Number of items in the first group to describe, and in the largest. */
const [firstGroup, lastGroup] = [4, 512]

/** Lists the pages and the files at `HEAD`, or the contents of a prefix: the files of any commit, or names of refs. */
export function createGitLister({ refs, directories, objects, datesOf, pages }: ListerOptions) {
  const frameOf = (path: string, entered: GitDirectory, items: GitItems, after: string): Frame => {
    const index = after === '' ? 0 : indexAfter(items, after)
    // The directory that contains `after` sorts before it, but may hold names after it, so it is entered once more.
    const inside = items.keyAt(index - 1)
    const enters = inside.endsWith('/') && after.startsWith(inside)
    return { path, entered, items, index: enters ? index - 1 : index, after }
  }

  const rootItems = (table: RefTable): GitItems =>
    itemsIn([
      ...(table.head === undefined ? [] : [{ key: 'HEAD/' }]),
      ...pages(table).map((page) => ({ key: page.path, page })),
    ])

  const enter = async (
    frame: Frame,
    item: GitItem,
    table: RefTable,
    signal: AbortSignal,
  ): Promise<Frame | undefined> => {
    const path = `${frame.path}${item.key}`
    const entered =
      path === 'HEAD/' ? await directories.find(path, table, signal) : await directories.enter(frame.entered, item)
    if (entered === undefined || isTooDeep(entered.tree?.inside ?? '')) return undefined
    const after = frame.after.startsWith(item.key) ? frame.after.slice(item.key.length) : ''
    return frameOf(path, entered, await directories.items(entered), after)
  }

  const entriesOf = async (
    frame: Frame,
    items: readonly GitItem[],
    dates: FileDates | undefined,
  ): Promise<readonly Entry[]> => {
    const pages = await Promise.all(
      items.map(async ({ key, page, entry }): Promise<readonly Entry[]> => {
        if (page !== undefined) return [page]
        const inside = `${frame.entered.tree?.inside ?? ''}${key}`
        if (entry === undefined || isTooDeep(inside)) return []
        return [await describeFile(objects, `${frame.path}${key}`, entry, dates?.get(dateKey(entry.oid, inside)))]
      }),
    )
    return pages.flat()
  }

  return async function* list({ prefix = '', after }: ListQuery, signal: AbortSignal): AsyncGenerator<Entry> {
    const rest = resumeKeyIn(prefix, after)
    if (rest === undefined) return
    const table = await refs.table()
    const start = prefix === '' ? {} : await directories.find(prefix, table, signal)
    if (start === undefined) return
    const first = prefix === '' ? rootItems(table) : await directories.items(start)
    // A list of several refs has no dates, because each ref would take a walk of its own.
    const isDated = start.names === undefined || !start.names.goesOn
    const frames: Frame[] = [frameOf(prefix, start, first, rest)]
    let size = firstGroup
    for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
      signal.throwIfAborted()
      const { items, index } = frame
      const item = items.at(index)
      if (item === undefined) frames.pop()
      else if (item.key.endsWith('/')) {
        frame.index++
        const child = await enter(frame, item, table, signal)
        if (child !== undefined) frames.push(child)
      } else {
        const group = groupAt(items, index, size)
        frame.index += group.length
        size = Math.min(size * 2, lastGroup)
        const commit = isDated ? frame.entered.tree?.commit : undefined
        const dates = commit === undefined ? undefined : await datesOf(commit)
        for (const entry of await entriesOf(frame, group, dates)) {
          yield entry
          signal.throwIfAborted()
        }
      }
      if (eventLoopYield.due()) await eventLoopYield.take()
    }
  }
}

export async function describeFile(
  objects: ObjectDatabase,
  path: string,
  { name, kind, oid }: TreeEntry,
  modified: number | undefined,
): Promise<Entry> {
  const mimeType = mimeTypeOfEntry(name, kind)
  const object = kind === 'submodule' ? undefined : await infoOf(objects, oid)
  return {
    path,
    version: oid,
    ...defined({ mimeType, size: object?.size, modified }),
  }
}

/** Returns the type and size of an object; undefined for a missing or damaged one, so that the other files are still listed. */
async function infoOf(objects: ObjectDatabase, oid: string) {
  try {
    return await objects.info(oid)
  } catch (error) {
    if (isDamagedObjectError(error)) return undefined
    throw error
  }
}

function mimeTypeOfEntry(name: string, kind: TreeEntry['kind']): string | undefined {
  if (kind === 'link') return 'inode/symlink'
  return kind === 'submodule' ? 'text/plain' : mimeTypeByName(name)
}

/** Returns at most `size` items from an index on, up to the next directory. The first item may be of any kind. */
function groupAt(items: GitItems, first: number, size: number): readonly GitItem[] {
  const group: GitItem[] = []
  for (let item = items.at(first); item !== undefined && group.length < size; item = items.at(first + group.length)) {
    if (group.length > 0 && item.key.endsWith('/')) break
    group.push(item)
  }
  return group
}

function indexAfter(items: GitItems, path: string): number {
  return firstIndex(0, items.length, (index) => comparePaths(items.keyAt(index), path) > 0)
}

const maxValues = 100
const maxRecent = 1000
const maxLogBytes = 1024 * 1024
const nothing: Completion = { values: [], total: 0, hasMore: false }

/** Creates the completer of refs (`ref`, `from`, `to`), ids of the latest commits (`sha`), paths at a ref, and authors. */
export function createCompleter(
  launcher: Launcher,
  commits: CommitResolver,
  directories: GitDirectories,
  onEntries?: (entries: number) => void,
) {
  const logs = createLruCache<readonly LogLine[]>(16)

  const recent = async (ref: string | undefined, table: RefTable, signal: AbortSignal): Promise<readonly LogLine[]> => {
    const commit = await commits.named(ref ?? 'HEAD', table, signal)
    if (commit === undefined) return []
    const logLines = logs.get(commit.commit)
    if (logLines !== undefined) return logLines
    const { lines } = await readLog(launcher, commit.commit, { limit: maxRecent }, maxLogBytes, signal)
    logs.set(commit.commit, lines)
    return lines
  }

  const refs = async (value: string, table: RefTable): Promise<Completion> => {
    const slices = createSlices(onEntries)
    const offered = offers(value)
    if (table.head !== undefined) offered.take('HEAD')
    for (let i = 0; i < table.refs.length; i++) {
      offered.take(table.names.shortest(refNameAt(table.refs, i)))
      if (slices.due()) await slices.rest()
    }
    return offered.completion()
  }

  const paths = async (value: string, ref: string | undefined, table: RefTable, signal: AbortSignal) => {
    const directory = value.slice(0, value.lastIndexOf('/') + 1)
    const at = ref ?? 'HEAD'
    if (!isPath(directory) || at === '' || at.endsWith('/') || !isPath(at)) return nothing
    const entered = await directories.find(`${at}/${directory}`, table, signal)
    if (entered === undefined) return nothing
    const items = await directories.items(entered)
    // Items without an entry are longer ref names, which are not paths at this ref.
    const slices = createSlices(onEntries)
    const offered = offers(value)
    for (let i = 0; i < items.length; i++) {
      const item = items.at(i)
      if (item?.entry !== undefined) offered.take(`${directory}${item.key}`)
      if (slices.due()) await slices.rest()
    }
    return offered.completion()
  }

  return async (
    { argument, arguments: filled }: CompletionRequest,
    table: RefTable,
    signal: AbortSignal,
  ): Promise<Completion> => {
    const { name, value } = argument
    const ref = filled.get('ref') ?? filled.get('to')
    switch (name) {
      case 'ref':
      case 'from':
      case 'to':
        return refs(value, table)
      case 'path':
        return paths(value, ref, table, signal)
      case 'sha': {
        const lines = await recent(undefined, table, signal)
        return chosen(
          lines.map(({ oid }) => oid),
          value,
        )
      }
      case 'author': {
        const lines = await recent(ref, table, signal)
        return chosen(byFrequency(lines.map(({ author }) => author)), value)
      }
      default:
        return nothing
    }
  }
}

function offers(text: string): { take(value: string): void; completion(): Completion } {
  const typed = text.toLowerCase()
  const values: string[] = []
  let total = 0
  return {
    take: (value) => {
      if (!value.toLowerCase().startsWith(typed)) return
      total++
      if (values.length < maxValues) values.push(value)
    },
    completion: () => ({ values, total, hasMore: total > values.length }),
  }
}

function chosen(values: readonly string[], typed: string): Completion {
  return completeFromValues(values.filter((value) => value.toLowerCase().startsWith(typed.toLowerCase())))
}

function byFrequency(values: readonly string[]): readonly string[] {
  const counts = new Map<string, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return [...counts].sort(([, a], [, b]) => b - a).map(([value]) => value)
}

interface FileChange {
  /** Commit time, in milliseconds since 1970. */
  readonly time: number
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
  let oid: string | undefined
  const fieldReader = createFieldReader((field) => {
    if (oid !== undefined) {
      const change = { time, oid, path: field }
      oid = undefined
      return isLeftOut || /^0+$/.test(change.oid) || take(change)
    }
    // A line feed comes before the changes of a commit. Each change has a colon for each parent, then the modes and the ids of all versions.
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
  await launcher.pipe({ args: ['log', ...format, ...args, '--end-of-options', commit, '--'], signal }, fieldReader)
}

/** Creates a function that splits chunks into NUL-terminated texts, passes each to `take`, and returns whether `take` wants more. */
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
type FileDates = Pick<PathMap<number>, 'get' | 'size'>

export function dateKey(oid: string, path: string): string {
  return `${oid}/${path}`
}

/** Returns the dates of the files at a commit: for each the time of the newest commit that gave it the content that it has there. */
type DatesOf = (commit: string) => Promise<FileDates>

/** Maximum number of files of a commit that get a date, and of cached dates. */
const maxDates = 500_000

/**
 * Finds the dates of the files at a commit in one walk through its history. If the commit of the last walk is among its ancestors, the walk goes back
 * only to that one.
 *
 * @param maxCommits Maximum number of commits to examine. A file that none of them wrote has no date.
 * @param budgetMs Time-out of a walk, in milliseconds; the dates found until then are kept.
 */
export function createDateFinder(
  launcher: Launcher,
  maxCommits: number,
  budgetMs: number,
  shallow: () => ReadonlySet<string>,
): DatesOf {
  const cache = createLruCache<FileDates>(maxDates, ({ size }) => size + 1000)
  const walking = new Map<string, Promise<FileDates>>()
  let latest: string | undefined
  let depth = shallow()

  const filesAt = async (commit: string, signal: AbortSignal) => {
    const files = createPathMap<true>()
    const fieldReader = createFieldReader((field) => {
      const tab = field.indexOf('\t')
      files.set(dateKey(field.slice(field.lastIndexOf(' ', tab) + 1, tab), field.slice(tab + 1)), true)
      return files.size < maxDates
    })
    await launcher.pipe(
      { args: ['ls-tree', '-r', '-z', '--full-tree', '--end-of-options', commit], signal },
      fieldReader,
    )
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
      const before = isAhead && latest !== undefined ? cache.get(latest) : undefined
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
    cache.set(commit, dates)
    latest = commit
    return dates
  }

  return async (commit) => {
    if (depth !== shallow()) {
      depth = shallow()
      latest = undefined
      cache.clear()
    }
    const dates = cache.get(commit)
    if (dates !== undefined) return dates
    const walked = walking.get(commit) ?? find(commit).finally(() => walking.delete(commit))
    walking.set(commit, walked)
    return walked
  }
}

type PathMap<V> = ReturnType<typeof createPathMap<V>>

const maxParts = 256
const maxUndivided = 16_384

/**
 * Creates a map of paths that is split into several maps when it grows: a single map of a million keys is rehashed in one step, which blocks the
 * event loop.
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

function hash(path: string): number {
  let value = 0
  for (let i = Math.max(0, path.length - 32); i < path.length; i++) value = (value * 31 + path.charCodeAt(i)) | 0
  return (value ^ (value >>> 8) ^ (value >>> 16)) >>> 0
}

interface ActivityOptions {
  readonly repository: string
  readonly within?: FolderBounds
  /** Maximum number of commits to count, newest first. Default 1000. */
  readonly maxCommits?: number
  /** Time-out of the count, in milliseconds. Default 3000. */
  readonly timeoutMs?: number
  readonly log?: Log
  readonly signal?: AbortSignal
}

/**
 * Counts how often each file was changed, by path, in the newest commits reachable from `HEAD`, without merges. Returns undefined when git, a
 * repository or a commit is missing, or on a time-out.
 */
export async function countActivity(options: ActivityOptions): Promise<ReadonlyMap<string, number> | undefined> {
  const { maxCommits = 1000, timeoutMs = 3000, log, repository, within } = options
  const settings = completeGitOptions({
    repository,
    refs: ['HEAD'],
    watch: false,
    timeoutMs,
    ...defined({ log, within }),
  })
  const { signal, release } = followAbortFor(options.signal ?? [], timeoutMs)
  try {
    return await countIn(settings, maxCommits, signal)
  } finally {
    release()
  }
}

async function countIn(
  settings: ReturnType<typeof completeGitOptions>,
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
