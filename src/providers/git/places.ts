import { isResourceError } from '../../core/errors.ts'
import { comparePaths } from '../../core/path.ts'
import type { Entry } from '../../core/provider.ts'
import type { Commits } from './commits.ts'
import type { NameNode } from './names.ts'
import { isMissing } from './objects.ts'
import type { RefTable } from './refs.ts'
import type { TreeEntry, Trees } from './trees.ts'

/** A directory of a tree, at a commit. */
export interface TreePlace {
  readonly commit: string
  /** The id of the tree, or that of the commit as `id^{tree}`. */
  readonly tree: string
  /** Where it is below the root of the commit: empty, or ends in `/`. */
  readonly inside: string
}

/** A directory: of a tree, of names of refs, or of both, where a ref is called what another one begins with. */
export interface Place {
  readonly tree?: TreePlace
  readonly names?: NameNode
}

/** What is directly in a directory. `key` is its name; for a directory, with a `/` behind it. */
export interface Item {
  readonly key: string
  /** A directory of names, or a ref. */
  readonly node?: NameNode
  readonly entry?: TreeEntry
  /** A resource that is no file. */
  readonly page?: Entry
}

/** What is in a place, in path order. Large directories are looked at again and again: nothing is made of them at once. */
export interface Items {
  readonly keys: readonly string[]
  at(index: number): Item | undefined
}

export interface Places {
  /** What a path that is empty or ends in `/` leads to; `undefined` where nothing is. The empty path has no place. */
  find(path: string, table: RefTable, signal: AbortSignal): Promise<Place | undefined>
  items(place: Place): Promise<Items>
  /** What one of the directories in a place leads to. */
  enter(place: Place, item: Item): Promise<Place | undefined>
}

export function createPlaces(commits: Commits, trees: Trees): Places {
  const rootOf = (commit: string): TreePlace => ({ commit, tree: `${commit}^{tree}`, inside: '' })

  /** The place of a ref, or of names that go on. */
  const placeOf = async (node: NameNode): Promise<Place> => {
    const commit = node.ref === undefined ? undefined : await commits.at(node.ref)
    return { names: node, ...(commit === undefined ? {} : { tree: rootOf(commit) }) }
  }

  const subtree = (place: TreePlace, entry: TreeEntry): TreePlace => ({
    commit: place.commit,
    tree: entry.oid,
    inside: `${place.inside}${entry.name}/`,
  })

  const within = async (place: TreePlace, path: string): Promise<TreePlace | undefined> => {
    if (path === '') return place
    const entry = await trees.find(place.tree, path.slice(0, -1))
    return entry?.kind === 'directory' ? { commit: place.commit, tree: entry.oid, inside: path } : undefined
  }

  const itemsOf = async (place: TreePlace | undefined): Promise<Items> => {
    if (place === undefined) return itemsIn([])
    const { keys, entries } = await trees.read(place.tree)
    return {
      keys,
      at: (index) => {
        const [key, entry] = [keys[index], entries[index]]
        return key === undefined || entry === undefined ? undefined : { key, entry }
      },
    }
  }

  /** A name that could mean two refs leads nowhere, and so does one whose commit is not there. */
  const findCommit: Commits['find'] = async (path, table, signal) => {
    try {
      return await commits.find(path, table, signal)
    } catch (error) {
      if (isResourceError(error, 'invalid') || isMissing(error)) return undefined
      throw error
    }
  }

  return {
    find: async (path, table, signal) => {
      const names = table.names.nodeAt(path.split('/').slice(0, -1))
      const found = await findCommit(path, table, signal)
      const tree = found === undefined ? undefined : await within(rootOf(found.commit), found.rest)
      if (tree === undefined && names === undefined) return undefined
      return { ...(tree === undefined ? {} : { tree }), ...(names === undefined ? {} : { names }) }
    },
    items: async ({ tree, names }) => {
      const files = await itemsOf(tree)
      if (names === undefined || names.below.size === 0) return files
      // What a ref is called hides what a file or directory of another one is: the longest name counts.
      const all = files.keys.flatMap((_, index) => files.at(index) ?? [])
      const left = all.filter(({ key, entry }) => {
        const node = names.below.get(entry?.name ?? '')
        return node === undefined || (isBetween(node) && !key.endsWith('/'))
      })
      const called = names.keys().flatMap((key): readonly Item[] => {
        const node = names.below.get(key.slice(0, -1))
        if (node === undefined) return []
        const entry = isBetween(node) ? all.find((item) => item.key === key)?.entry : undefined
        return [{ key, node, ...(entry === undefined ? {} : { entry }) }]
      })
      return itemsIn([...left, ...called].sort((a, b) => comparePaths(a.key, b.key)))
    },
    enter: async (place, { node, entry }) => {
      const tree = entry?.kind === 'directory' && place.tree !== undefined ? subtree(place.tree, entry) : undefined
      if (node === undefined) return tree === undefined ? undefined : { tree }
      const found = await placeOf(node)
      return found.tree === undefined && tree !== undefined ? { ...found, tree } : found
    },
  }
}

/** A few items, in path order. */
export function itemsIn(items: readonly Item[]): Items {
  return { keys: items.map(({ key }) => key), at: (index) => items[index] }
}

/** Whether nothing is called what leads to a node: names only begin like it. */
function isBetween({ ref, ambiguous }: NameNode): boolean {
  return ref === undefined && !ambiguous
}
