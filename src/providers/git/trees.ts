import { createRecent } from '../../core/recent.ts'
import { indexAfter } from '../files/order.ts'
import { type Objects, wholeBytes } from './objects.ts'
import { parseTree } from './tree-format.ts'

/** What a name in a tree is: a file, a directory, a symbolic link, or the commit of a submodule. */
export type TreeKind = 'file' | 'directory' | 'link' | 'submodule'

export interface TreeEntry {
  readonly name: string
  readonly kind: TreeKind
  readonly oid: string
}

/** One directory, as git stores it. */
export interface Tree {
  readonly oid: string
  /** In path order, each name once. Directories have a `/` behind their name here. */
  readonly keys: readonly string[]
  readonly entries: readonly TreeEntry[]
}

export interface Trees {
  /** A tree by its id, or by that of a commit as `id^{tree}`. */
  read(name: string): Promise<Tree>
  /** What is at a path below a tree; `undefined` where nothing is. The path is not empty, and has no `/` at its end. */
  find(name: string, path: string): Promise<TreeEntry | undefined>
}

/** A tree of more bytes than this (about a million names) is not read. */
const maxTree = 64 * 1024 * 1024
/** So many names are remembered, over all trees. */
const maxNames = 200_000
/** Deeper than this nothing is served, nor at a longer path below a commit (in UTF-16 units). */
const maxDepth = 256
const maxPath = 4096

export function createTrees(objects: Objects, idBytes: number): Trees {
  const known = createRecent<Tree>(maxNames, ({ keys }) => keys.length + 1)

  /** Many calls at once want the same few trees. */
  const loading = new Map<string, Promise<Tree>>()

  const load = async (name: string): Promise<Tree> => {
    const object = await objects.read(name, maxTree)
    const tree = known.get(object.oid) ?? parseTree(object.oid, wholeBytes(object), idBytes)
    known.set(object.oid, tree)
    if (name !== object.oid) known.set(name, tree)
    return tree
  }

  const read: Trees['read'] = async (name) => {
    const remembered = known.get(name)
    if (remembered !== undefined) return remembered
    let loaded = loading.get(name)
    if (loaded === undefined) {
      loaded = load(name).finally(() => loading.delete(name))
      loading.set(name, loaded)
    }
    return loaded
  }

  return {
    read,
    find: async (name, path) => {
      if (isTooDeep(path)) return undefined
      const segments = path.split('/')
      let at = name
      for (const [index, segment] of segments.entries()) {
        const entry = entryIn(await read(at), segment)
        if (entry === undefined || index === segments.length - 1) return entry
        if (entry.kind !== 'directory') return undefined
        at = entry.oid
      }
      return undefined
    },
  }
}

/** Whether a path below a commit is longer, or has more segments, than what is served. */
export function isTooDeep(path: string): boolean {
  return path.length > maxPath || path.split('/').length > maxDepth
}

/** The entry of a name. A file and a directory of one name (no tree of git's own making has both) are the first of them. */
function entryIn(tree: Tree, name: string): TreeEntry | undefined {
  const indices = [indexOf(tree.keys, name), indexOf(tree.keys, `${name}/`)]
  const index = indices.find((at) => at !== -1)
  return index === undefined ? undefined : tree.entries[index]
}

function indexOf(keys: readonly string[], key: string): number {
  const index = indexAfter(keys, key) - 1
  return keys[index] === key ? index : -1
}
