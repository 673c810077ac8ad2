import { afterSubtree, comparePaths } from './path.ts'
import type { Entry, ListQuery } from './provider.ts'

/** What lies directly in a directory: an entry, or a directory (whose path ends in `/`), with its title where the source has one. */
export type Child = { readonly path: string; readonly entry?: Entry; readonly title?: string }

export type List = (query: ListQuery) => AsyncIterable<Entry>

/** So many entries of one directory are passed over one by one before the listing is asked to seek behind it. */
const patience = 16

/**
 * Yields what lies directly in `directory` (empty, or ends in `/`), in path order, strictly after the child `after`.
 *
 * Directories are found by skip-scan: the first path below one names it, and the listing then resumes behind everything
 * in it. So the cost is one seek per large directory, however much it holds. A source that yields directories is not
 * asked to seek at all.
 */
export async function* children(list: List, directory: string, after?: string): AsyncGenerator<Child> {
  let from = after?.endsWith('/') ? afterSubtree(after) : after
  let last = after
  for (;;) {
    let skipped = 0
    let seek: string | undefined
    const query = { prefix: directory, shallow: true }
    for await (const entry of list(from === undefined ? query : { ...query, after: from })) {
      // A mount that is one resource does not lie in itself.
      if (entry.path === directory) continue
      const slash = entry.path.indexOf('/', directory.length)
      if (slash === -1) {
        yield { path: entry.path, entry }
        skipped = 0
        continue
      }
      const path = entry.path.slice(0, slash + 1)
      if (path !== last) {
        last = path
        skipped = 0
        // What is named like a directory may be all that the source tells of one.
        yield entry.path === path && entry.title !== undefined ? { path, title: entry.title } : { path }
      } else if (++skipped > patience) {
        seek = afterSubtree(path)
        // A name can begin with what afterSubtree ends in: the listing then goes on one by one.
        if (from === undefined || comparePaths(seek, from) > 0) break
        seek = undefined
      }
    }
    if (seek === undefined) return
    from = seek
  }
}

/**
 * A listing that yields only what `keep` keeps. Where a directory is closed (nothing below it is kept), the listing seeks
 * behind it once some of it was passed over: what it costs does not tell how much is in there.
 */
export function filtered(
  list: List,
  keep: (entry: Entry) => boolean,
  isClosed: (directory: string) => boolean = () => false,
): List {
  return async function* (query) {
    let after = query.after
    for (;;) {
      let skipped = 0
      let seek: string | undefined
      for await (const entry of list(after === undefined ? query : { ...query, after })) {
        if (keep(entry)) {
          skipped = 0
          yield entry
        } else if (++skipped > patience) {
          const closed = closedAbove(entry.path, isClosed)
          skipped = 0
          if (closed === undefined) continue
          seek = afterSubtree(closed)
          // A name can begin with what afterSubtree ends in: the listing then goes on one by one.
          if (after === undefined || comparePaths(seek, after) > 0) break
          seek = undefined
        }
      }
      if (seek === undefined) return
      after = seek
    }
  }
}

/**
 * The widest closed directory that a path lies in. Whatever is below a closed one is closed too, so it is found by
 * halving: a path may have thousands of segments. For paths of as many segments as many directories are judged, whether one
 * of them is closed or not: the time does not tell.
 */
export function closedAbove(path: string, isClosed: (directory: string) => boolean): string | undefined {
  const ends: number[] = []
  for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) ends.push(at + 1)
  const directory = (index: number) => path.slice(0, ends[index])
  const { length } = ends
  let open = 0
  for (let step = 2 ** Math.floor(Math.log2(length)); step >= 1; step /= 2) {
    const more = open + step
    if (!isClosed(directory((more - 1) % length)) && more <= length) open = more
  }
  return open < length ? directory(open) : undefined
}
