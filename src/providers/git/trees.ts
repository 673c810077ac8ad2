import { createRecent } from '../../core/kit/lru.ts'
import type { Found } from './batch-reader.ts'
import { type Objects, wholeBytes } from './objects.ts'
import { createSlices } from './slices.ts'
import { parseTree, type Tree, type TreeEntry } from './tree-format.ts'

export interface Trees {
  /** Reads a tree by its id, or by the id of a commit in the form `id^{tree}`. */
  read(name: string): Promise<Tree>
  /** Finds the entry at a path below a tree; undefined when there is none. The path is not empty, and has no final `/`. */
  find(name: string, path: string): Promise<TreeEntry | undefined>
}

/** Maximum size of a tree, in bytes (about a million names). */
const maxTree = 64 * 1024 * 1024
/**
 * Maximum total size of the cached trees in bytes, and maximum number of commits whose tree ids are cached. The newest tree is always cached.
 */
const maxRememberedBytes = 64 * 1024 * 1024
const maxRememberedNames = 10_000
/** Maximum depth, and maximum length of a path below a commit (in UTF-16 units), that is served. */
const maxDepth = 256
const maxPath = 4096

export function createTrees(objects: Objects, idBytes: number, heard?: (entries: number) => void): Trees {
  const known = createRecent<Tree>(maxRememberedBytes, ({ weight }) => weight)
  /** The ids of trees by the name that was requested (the id of a commit). */
  const ids = createRecent<string>(maxRememberedNames)

  /** Single-flight: many concurrent calls read the same few trees. */
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

/** Whether a path below a commit is too long or too deep to be served. */
export function isTooDeep(path: string): boolean {
  return path.length > maxPath || path.split('/').length > maxDepth
}

/** Copies the contents of an object if they are a small slice of a large chunk of output. */
function ownBytes(object: Found): Buffer {
  const bytes = wholeBytes(object)
  return bytes.buffer.byteLength > 2 * bytes.length ? Buffer.from(bytes) : bytes
}

/** Returns the entry with a name, directory or not. */
function entryIn(tree: Tree, name: string): TreeEntry | undefined {
  const index = tree.indexOf(name, false)
  return tree.entryAt(index === -1 ? tree.indexOf(name, true) : index)
}
