import { completionOf } from '../../core/completion.ts'
import { breath, createSlices } from '../../core/kit/breath.ts'
import { createRecent } from '../../core/kit/lru.ts'
import { defined } from '../../core/kit/object.ts'
import { firstIndex } from '../../core/kit/sorted.ts'
import { comparePaths, isPath, resumeIn } from '../../core/path.ts'
import type { Completion, CompletionRequest, Entry, ListQuery } from '../../core/provider.ts'
import { mimeTypeOf } from '../files/media.ts'
import { isDamaged } from './batch.ts'
import { type Commits, type LogLine, readLog } from './commits.ts'
import { type GitDirectories, type GitDirectory, type GitItem, type GitItems, itemsIn } from './directories.ts'
import { type DatesOf, dateKey, type FileDates } from './history.ts'
import type { Launcher } from './launch.ts'
import type { Objects } from './objects.ts'
import { nameAt } from './ref-list.ts'
import type { Refs, RefTable } from './refs.ts'
import { isTooDeep, type TreeEntry } from './trees.ts'

interface ListerOptions {
  readonly refs: Refs
  readonly directories: GitDirectories
  readonly objects: Objects
  readonly datesOf: DatesOf
  /** The text pages at the root, in path order. */
  readonly pages: (table: RefTable) => readonly Entry[]
}

/** A directory that is being listed. */
interface Frame {
  /** Path of the directory: empty, or ending in `/`. */
  readonly path: string
  readonly entered: GitDirectory
  readonly items: GitItems
  /** Index of the next item. */
  index: number
  /** The rest of the path to resume after, relative to this directory. */
  readonly after: string
}

/** Number of files in the first and in the largest group to describe. Groups grow, because the caller may want only the first file. */
const [firstGroup, lastGroup] = [4, 512]

/** Lists the pages and the files at `HEAD`, or the contents of a prefix: the files of any commit, or names of refs. */
export function createLister({ refs, directories, objects, datesOf, pages }: ListerOptions) {
  const frameOf = (path: string, entered: GitDirectory, items: GitItems, after: string): Frame => {
    const index = after === '' ? 0 : indexAfter(items, after)
    // The directory that `after` lies in comes before it, and holds the names after it.
    const inside = items.keyAt(index - 1)
    const enters = inside.endsWith('/') && after.startsWith(inside)
    return { path, entered, items, index: enters ? index - 1 : index, after }
  }

  /** Returns the items of the root: `HEAD` as a directory, and the pages. */
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
    known: FileDates | undefined,
  ): Promise<readonly Entry[]> => {
    const found = await Promise.all(
      items.map(async ({ key, page, entry }): Promise<readonly Entry[]> => {
        if (page !== undefined) return [page]
        const inside = `${frame.entered.tree?.inside ?? ''}${key}`
        if (entry === undefined || isTooDeep(inside)) return []
        return [await describeFile(objects, `${frame.path}${key}`, entry, known?.get(dateKey(entry.oid, inside)))]
      }),
    )
    return found.flat()
  }

  return async function* list({ prefix = '', after }: ListQuery, signal: AbortSignal): AsyncGenerator<Entry> {
    const rest = resumeIn(prefix, after)
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
        const known = commit === undefined ? undefined : await datesOf(commit)
        for (const entry of await entriesOf(frame, group, known)) {
          yield entry
          signal.throwIfAborted()
        }
      }
      if (breath.due()) await breath.take()
    }
  }
}

/** Returns the entry of a file, a link or a submodule. */
export async function describeFile(
  objects: Objects,
  path: string,
  { name, kind, oid }: TreeEntry,
  modified: number | undefined,
): Promise<Entry> {
  const mimeType = mimeTypeOfEntry(name, kind)
  const found = kind === 'submodule' ? undefined : await infoOf(objects, oid)
  return {
    path,
    version: oid,
    ...defined({ mimeType, size: found?.size, modified }),
  }
}

/** Returns the type and size of an object; undefined for a missing or damaged one, so that the other files are still listed. */
async function infoOf(objects: Objects, oid: string) {
  try {
    return await objects.info(oid)
  } catch (error) {
    if (isDamaged(error)) return undefined
    throw error
  }
}

function mimeTypeOfEntry(name: string, kind: TreeEntry['kind']): string | undefined {
  if (kind === 'link') return 'inode/symlink'
  return kind === 'submodule' ? 'text/plain' : mimeTypeOf(name)
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

/** Binary search for the first item after a path. Returns its index. */
function indexAfter(items: GitItems, path: string): number {
  return firstIndex(0, items.length, (index) => comparePaths(items.keyAt(index), path) > 0)
}

const maxValues = 100
/** Maximum number of latest commits to propose, with their authors. */
const maxRecent = 1000
const maxLogBytes = 1024 * 1024
const nothing: Completion = { values: [], total: 0, hasMore: false }

/** Creates the completer of refs (`ref`, `from`, `to`), ids of the latest commits (`sha`), paths at a ref, and authors. */
export function createCompleter(
  launcher: Launcher,
  commits: Commits,
  directories: GitDirectories,
  heard?: (entries: number) => void,
) {
  /** Cache of the latest commits, by the id of the newest one. */
  const logs = createRecent<readonly LogLine[]>(16)

  const recent = async (ref: string | undefined, table: RefTable, signal: AbortSignal): Promise<readonly LogLine[]> => {
    const found = await commits.named(ref ?? 'HEAD', table, signal)
    if (found === undefined) return []
    const known = logs.get(found.commit)
    if (known !== undefined) return known
    const { lines } = await readLog(launcher, found.commit, { limit: maxRecent }, maxLogBytes, signal)
    logs.set(found.commit, lines)
    return lines
  }

  const refs = async (value: string, table: RefTable): Promise<Completion> => {
    const slices = createSlices(heard)
    const offered = offers(value)
    if (table.head !== undefined) offered.take('HEAD')
    for (let i = 0; i < table.refs.length; i++) {
      offered.take(table.names.shortest(nameAt(table.refs, i)))
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
    const slices = createSlices(heard)
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

/** Collects the values that begin with the typed text, in any letter case. */
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

/** Returns the values that begin with the typed text, in any letter case. */
function chosen(values: readonly string[], typed: string): Completion {
  return completionOf(values.filter((value) => value.toLowerCase().startsWith(typed.toLowerCase())))
}

function byFrequency(values: readonly string[]): readonly string[] {
  const counts = new Map<string, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return [...counts].sort(([, a], [, b]) => b - a).map(([value]) => value)
}
