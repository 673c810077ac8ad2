import { afterSubtree, comparePaths } from './path.ts'
import type { Entry, ListQuery } from './provider.ts'

/** A direct child of a directory: an entry, or a directory (whose path ends in `/`), with its title if the source has one. */
export type Child = { readonly path: string; readonly entry?: Entry; readonly title?: string }

export type ListEntries = (query: ListQuery) => AsyncIterable<Entry>

/** Number of entries of one directory that are skipped one by one before the listing is restarted after the directory. */
const maxSkipped = 16

/**
 * Yields the direct children of `directory` (empty, or ends in `/`), in path order, strictly after the child `after`.
 * Directories are found by skip-scan: the first path below one reveals it, and the listing then resumes after
 * everything in it. A source that yields directories does not have to seek.
 */
export async function* iterateChildren(list: ListEntries, directory: string, after?: string): AsyncGenerator<Child> {
  let from = after?.endsWith('/') ? afterSubtree(after) : after
  let last = after
  for (;;) {
    let skipped = 0
    let seek: string | undefined
    const query = { prefix: directory, shallow: true }
    for await (const entry of list(from === undefined ? query : { ...query, after: from })) {
      // A mount that is a single resource is not its own child.
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
        // A source may yield a directory itself, with its title.
        yield entry.path === path && entry.title !== undefined ? { path, title: entry.title } : { path }
      } else if (++skipped > maxSkipped) {
        seek = afterSubtree(path)
        // A name can begin with the suffix of afterSubtree: the listing then continues one by one.
        if (from === undefined || comparePaths(seek, from) > 0) break
        seek = undefined
      }
    }
    if (seek === undefined) return
    from = seek
  }
}

/**
 * Returns a listing that yields only entries that pass `keep`. In a closed directory (nothing below it passes), the listing seeks
 * to its end after some entries, so the cost does not reveal how many entries are in there.
 */
export function filterListing(
  list: ListEntries,
  keep: (entry: Entry) => boolean,
  isClosed: (directory: string) => boolean = () => false,
): ListEntries {
  return async function* (query) {
    let after = query.after
    for (;;) {
      let skipped = 0
      let seek: string | undefined
      for await (const entry of list(after === undefined ? query : { ...query, after })) {
        if (keep(entry)) {
          skipped = 0
          yield entry
        } else if (++skipped > maxSkipped) {
          const closed = closedAncestor(entry.path, isClosed)
          skipped = 0
          if (closed === undefined) continue
          seek = afterSubtree(closed)
          // A name can begin with the suffix of afterSubtree: the listing then continues one by one.
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
 * Returns the widest closed directory that a path lies in, if any. Everything below a closed directory is closed too, so a binary search
 * finds it: a path may have thousands of segments. Paths with equally many segments always take equally many checks, so the time
 * does not reveal whether a directory is closed.
 */
export function closedAncestor(path: string, isClosed: (directory: string) => boolean): string | undefined {
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
