import { createRecent } from '../../core/recent.ts'
import type { Found } from './batch-reader.ts'
import { type Objects, wholeBytes } from './objects.ts'
import { createSlices } from './slices.ts'
import { parseTree, type Tree, type TreeEntry } from './tree-format.ts'

export interface Trees {
  /** A tree by its id, or by that of a commit as `id^{tree}`. */
  read(name: string): Promise<Tree>
  /** What is at a path below a tree; `undefined` where nothing is. The path is not empty, and has no `/` at its end. */
  find(name: string, path: string): Promise<TreeEntry | undefined>
}

/** A tree of more bytes than this (about a million names) is not read. */
const maxTree = 64 * 1024 * 1024
/** Trees of so many bytes are remembered, by about as many ids. The newest one is, whatever it has. */
const maxRememberedBytes = 64 * 1024 * 1024
const maxRememberedNames = 10_000
/** Deeper than this nothing is served, nor at a longer path below a commit (in UTF-16 units). */
const maxDepth = 256
const maxPath = 4096

export function createTrees(objects: Objects, idBytes: number, heard?: (entries: number) => void): Trees {
  const known = createRecent<Tree>(maxRememberedBytes, ({ weight }) => weight)
  /** The ids of trees that were asked for by the id of a commit. */
  const ids = createRecent<string>(maxRememberedNames)

  /** Many calls at once want the same few trees. */
  const loading = new Map<string, Promise<Tree>>()

  const load = async (name: string): Promise<Tree> => {
    const object = await objects.read(name, maxTree)
    const tree = known.get(object.oid) ?? (await parseTree(object.oid, ownBytes(object), idBytes, createSlices(heard)))
    known.set(object.oid, tree)
    if (name !== object.oid) ids.set(name, object.oid)
    return tree
  }

  const read: Trees['read'] = async (name) => {
    const remembered = known.get(ids.get(name) ?? name)
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

/** The contents of an object in memory of their own: they may be a small part of a large piece of output. */
function ownBytes(object: Found): Buffer {
  const bytes = wholeBytes(object)
  return bytes.buffer.byteLength > 2 * bytes.length ? Buffer.from(bytes) : bytes
}

/** The entry of a name, be it a directory or not. */
function entryIn(tree: Tree, name: string): TreeEntry | undefined {
  const index = tree.indexOf(name, false)
  return tree.entryAt(index === -1 ? tree.indexOf(name, true) : index)
}
