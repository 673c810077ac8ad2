import { isResourceError } from '../../core/errors.ts'
import { createSlices, type Slices } from '../../core/kit/breath.ts'
import { defined } from '../../core/kit/object.ts'
import { comparePaths } from '../../core/path.ts'
import type { Entry } from '../../core/provider.ts'
import type { Commits } from './commits.ts'
import type { NameChildren, NameNode } from './names.ts'
import { isMissing } from './objects.ts'
import type { RefTable } from './refs.ts'
import type { GitTree, TreeEntry, Trees } from './trees.ts'

/** A directory of a tree, at a commit. */
interface TreeDirectory {
  readonly commit: string
  /** The id of the tree, or of the commit in the form `id^{tree}`. */
  readonly tree: string
  /** Path of the directory below the root of the commit: empty, or ending in `/`. */
  readonly inside: string
}

/** A directory: of a tree, of ref names, or of both when a ref's name is the prefix of another one. */
export interface GitDirectory {
  readonly tree?: TreeDirectory
  readonly names?: NameNode
}

/** A direct child of a directory. `key` is its name; a directory's key ends in `/`. */
export interface GitItem {
  readonly key: string
  /** A directory of names, or a ref. */
  readonly node?: NameNode
  readonly entry?: TreeEntry
  /** A text page. */
  readonly page?: Entry
}

/** The children of a directory, in path order. Items are created on demand: a directory can have a million. */
export interface GitItems {
  readonly length: number
  /** Returns the key of an item; empty when the index is out of range. */
  keyAt(index: number): string
  at(index: number): GitItem | undefined
}

export type GitDirectories = ReturnType<typeof createGitDirectories>

export function createGitDirectories(commits: Commits, trees: Trees, heard?: (entries: number) => void) {
  const rootOf = (commit: string): TreeDirectory => ({ commit, tree: `${commit}^{tree}`, inside: '' })

  /** Returns the directory of a ref, or of a prefix of ref names. */
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
  const findCommit: Commits['find'] = async (path, table, signal) => {
    try {
      return await commits.find(path, table, signal)
    } catch (error) {
      if (isResourceError(error, 'invalid') || isMissing(error)) return undefined
      throw error
    }
  }

  return {
    /** Finds the directory at a path that is empty or ends in `/`; undefined when there is none, as for the empty path. */
    find: async (path: string, table: RefTable, signal: AbortSignal): Promise<GitDirectory | undefined> => {
      const names = table.names.nodeAt(path.split('/').slice(0, -1))
      const found = await findCommit(path, table, signal)
      const tree = found === undefined ? undefined : await within(rootOf(found.commit), found.rest)
      if (tree === undefined && names === undefined) return undefined
      return defined({ tree, names })
    },
    items: async ({ tree, names }: GitDirectory): Promise<GitItems> => {
      const files = tree === undefined ? undefined : await trees.read(tree.tree)
      if (names === undefined || !names.goesOn) return files === undefined ? itemsIn([]) : filesIn(files)
      const slices = createSlices(heard)
      const children = await names.children(slices)
      return files === undefined ? namesIn(names, children) : bothIn(files, names, children, slices)
    },
    /** Returns the child directory of an item; undefined if the item is not a directory. */
    enter: async (directory: GitDirectory, { node, entry }: GitItem): Promise<GitDirectory | undefined> => {
      const tree =
        entry?.kind === 'directory' && directory.tree !== undefined ? subtree(directory.tree, entry) : undefined
      if (node === undefined) return tree === undefined ? undefined : { tree }
      const found = await directoryOf(node)
      return found.tree === undefined && tree !== undefined ? { ...found, tree } : found
    },
  }
}

/** Returns a short list of items, in path order. */
export function itemsIn(items: readonly GitItem[]): GitItems {
  return { length: items.length, keyAt: (index) => items[index]?.key ?? '', at: (index) => items[index] }
}

function filesIn(files: GitTree): GitItems {
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

function namesIn(names: NameNode, { length, keyAt }: NameChildren): GitItems {
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
async function bothIn(files: GitTree, names: NameNode, children: NameChildren, slices: Slices): Promise<GitItems> {
  const hidden = new Uint8Array(files.length)
  for (let i = 0; i < children.length; i++) {
    const name = children.keyAt(i).slice(0, -1)
    const node = names.child(name)
    const [file, directory] = [files.indexOf(name, false), files.indexOf(name, true)]
    if (directory !== -1) hidden[directory] = 1
    if (file !== -1 && node !== undefined && !isBetween(node)) hidden[file] = 1
    if (slices.due()) await slices.rest()
  }
  /** The order of all children: the index of a file, or `-1 - index` for the index of a name. */
  const order = new Int32Array(files.length + children.length)
  let length = 0
  for (let i = 0, j = 0; i < files.length || j < children.length; ) {
    const takesFile =
      j === children.length || (i < files.length && comparePaths(files.keyAt(i), children.keyAt(j)) <= 0)
    if (!takesFile) order[length++] = -1 - j++
    else if (hidden[i++] === 0) order[length++] = i - 1
    if (slices.due()) await slices.rest()
  }
  const [ofFiles, ofNames] = [filesIn(files), namesIn(names, children)]
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

/** Whether a node is only a prefix of ref names, and no ref itself. */
function isBetween({ ref, ambiguous }: NameNode): boolean {
  return ref === undefined && !ambiguous
}
