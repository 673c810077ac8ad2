import { defined } from '../../core/kit/defined.ts'
import { firstIndex } from '../../core/kit/first-index.ts'
import { comparePaths, resumeIn } from '../../core/path.ts'
import type { Entry, ListQuery } from '../../core/provider.ts'
import { createBreath } from '../files/breath.ts'
import { mimeTypeOf } from '../files/media.ts'
import { isDamaged } from './batch.ts'
import type { Dates } from './dates.ts'
import type { FileDates } from './dates-walk.ts'
import type { Objects } from './objects.ts'
import { type Item, type Items, itemsIn, type Place, type Places } from './places.ts'
import type { Refs, RefTable } from './refs.ts'
import { isTooDeep, type TreeEntry } from './trees.ts'

interface Lister {
  list(query: ListQuery, signal: AbortSignal): AsyncGenerator<Entry>
}

interface ListerOptions {
  readonly refs: Refs
  readonly places: Places
  readonly objects: Objects
  readonly dates: Dates
  /** The text pages at the root, in path order. */
  readonly pages: (table: RefTable) => readonly Entry[]
}

/** A directory that is being listed. */
interface Frame {
  /** Its path: empty, or ending in `/`. */
  readonly path: string
  readonly place: Place
  readonly items: Items
  /** Index of the next item. */
  index: number
  /** The rest of the path to resume after, relative to this directory. */
  readonly after: string
}

/** Sizes of the groups in which file sizes are requested. They grow, because the caller may want only the first file. */
const [firstGroup, lastGroup] = [4, 512]

/** Lists the pages and the files at `HEAD`, or the contents of a prefix: the files of any commit, or names of refs. */
export function createLister({ refs, places, objects, dates, pages }: ListerOptions): Lister {
  const frameOf = (path: string, place: Place, items: Items, after: string): Frame => {
    const index = after === '' ? 0 : indexAfter(items, after)
    // The directory that `after` lies in comes before it, and holds the names after it.
    const inside = items.keyAt(index - 1)
    const enters = inside.endsWith('/') && after.startsWith(inside)
    return { path, place, items, index: enters ? index - 1 : index, after }
  }

  /** The items of the root: `HEAD` as a directory, and the pages. */
  const rootItems = (table: RefTable): Items =>
    itemsIn([
      ...(table.head === undefined ? [] : [{ key: 'HEAD/' }]),
      ...pages(table).map((page) => ({ key: page.path, page })),
    ])

  const enter = async (frame: Frame, item: Item, table: RefTable, signal: AbortSignal): Promise<Frame | undefined> => {
    const path = `${frame.path}${item.key}`
    const place = path === 'HEAD/' ? await places.find(path, table, signal) : await places.enter(frame.place, item)
    if (place === undefined || isTooDeep(place.tree?.inside ?? '')) return undefined
    const after = frame.after.startsWith(item.key) ? frame.after.slice(item.key.length) : ''
    return frameOf(path, place, await places.items(place), after)
  }

  const entriesOf = async (
    frame: Frame,
    items: readonly Item[],
    known: FileDates | undefined,
  ): Promise<readonly Entry[]> => {
    const found = await Promise.all(
      items.map(async ({ key, page, entry }): Promise<readonly Entry[]> => {
        if (page !== undefined) return [page]
        const inside = `${frame.place.tree?.inside ?? ''}${key}`
        if (entry === undefined || isTooDeep(inside)) return []
        return [await describeFile(objects, `${frame.path}${key}`, entry, known?.get(inside))]
      }),
    )
    return found.flat()
  }

  return {
    list: async function* ({ prefix = '', after }, signal) {
      const rest = resumeIn(prefix, after)
      if (rest === undefined) return
      const table = await refs.table()
      const start = prefix === '' ? {} : await places.find(prefix, table, signal)
      if (start === undefined) return
      const first = prefix === '' ? rootItems(table) : await places.items(start)
      // For many refs at once, dates would take a walk each.
      const isDated = start.names === undefined || !start.names.goesOn
      const frames: Frame[] = [frameOf(prefix, start, first, rest)]
      const breath = createBreath()
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
          const commit = isDated ? frame.place.tree?.commit : undefined
          const known = commit === undefined ? undefined : await dates.of(commit)
          for (const entry of await entriesOf(frame, group, known)) {
            yield entry
            signal.throwIfAborted()
          }
        }
        if (breath.due()) await breath.take()
      }
    },
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
    ...defined({ mimeType }),
    ...(found === undefined ? {} : { size: found.size }),
    ...defined({ modified }),
  }
}

/** Objects of a partial clone can be missing, and damaged ones have no size: the others are listed anyway. */
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

/** Returns consecutive items from an index on that are no directories, at most `size`; the first may be of any kind. */
function groupAt(items: Items, first: number, size: number): readonly Item[] {
  const group: Item[] = []
  for (let item = items.at(first); item !== undefined && group.length < size; item = items.at(first + group.length)) {
    if (group.length > 0 && item.key.endsWith('/')) break
    group.push(item)
  }
  return group
}

/** Binary search for the first item after a path. Returns its index. */
function indexAfter(items: Items, path: string): number {
  return firstIndex(0, items.length, (index) => comparePaths(items.keyAt(index), path) > 0)
}
