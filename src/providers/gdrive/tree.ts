import { eventLoopYield } from '../../core/kit/event-loop-yield.ts'
import { changedPaths, firstIndex } from '../../core/kit/sorted.ts'
import { comparePaths } from '../../core/path.ts'
import { type DriveFile, folderType, isServed, shortcutType } from './model.ts'
import type { ShortcutPolicy } from './options.ts'
import type { DriveRoots } from './scan.ts'

/** A served file, at its own path or at that of a shortcut to it. */
export interface FileAtPath {
  /** The ids of the parent folders, and the id of the file or of the shortcut to it. */
  readonly path: string
  readonly name: string
  readonly file: DriveFile
}

export interface DriveTree {
  /** The served files, in path order. */
  readonly entries: readonly FileAtPath[]
  /** The paths of folders, by id. */
  readonly folders: ReadonlyMap<string, string>
  /** The names of folders, by path. */
  readonly titles: ReadonlyMap<string, string>
}

const maxDepth = 100

/** Builds the tree of the files by their folders. A folder has one path: a shortcut stands for it only if it has no path of its own. */
export async function buildTree(
  files: ReadonlyMap<string, DriveFile>,
  { anchors, shared }: Pick<DriveRoots, 'anchors' | 'shared'>,
  shortcuts: ShortcutPolicy,
): Promise<DriveTree> {
  const children = new Map<string, DriveFile[]>()
  const tops: DriveFile[] = []
  for (const file of files.values()) {
    if (eventLoopYield.due()) await eventLoopYield.take()
    if (shared && file.top === true && !files.has(file.parent ?? '')) tops.push(file)
    if (file.parent === undefined) continue
    const siblings = children.get(file.parent)
    if (siblings === undefined) children.set(file.parent, [file])
    else siblings.push(file)
  }

  const entries: FileAtPath[] = []
  const folders = new Map<string, string>()
  const titles = new Map<string, string>()
  const ids = new Set<string>()
  const links: { readonly path: string; readonly depth: number; readonly file: DriveFile }[] = []
  const waiting: { readonly id: string; readonly path: string; readonly name: string; readonly depth: number }[] = []

  const place = (file: DriveFile, path: string, depth: number): void => {
    const { id, name, type } = file
    if (file.trashed || depth > maxDepth) return
    if (type === folderType) waiting.push({ id, path: `${path}${id}/`, name, depth: depth + 1 })
    else if (type === shortcutType) links.push({ path, depth, file })
    else if (isServed(file)) {
      ids.add(id)
      entries.push({ path: path + id, name, file })
    }
  }
  const descend = async (): Promise<void> => {
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const { id, path, name, depth } = next
      if (folders.has(id)) continue
      folders.set(id, path)
      titles.set(path, name)
      for (const child of children.get(id) ?? []) {
        if (eventLoopYield.due()) await eventLoopYield.take()
        place(child, path, depth)
      }
    }
  }

  for (const { id, path, name = '' } of anchors) waiting.push({ id, path, name, depth: 0 })
  for (const top of tops) place(top, '', 0)
  await descend()
  links.sort((a, b) => comparePaths(a.path + a.file.id, b.path + b.file.id))
  // The list grows during the loop: a folder reached by a shortcut may contain more shortcuts.
  for (const { path, depth, file } of shortcuts === 'none' ? [] : links) {
    const target = files.get(file.target ?? '')
    if (target === undefined || target.trashed) continue
    const { id, type } = target
    if (type === folderType) {
      if (shortcuts !== 'anywhere' || folders.has(id)) continue
      waiting.push({ id, path: `${path}${file.id}/`, name: file.name, depth: depth + 1 })
      await descend()
    } else if (isServed(target) && (shortcuts === 'anywhere' || ids.has(id)))
      entries.push({ path: path + file.id, name: file.name, file: target })
  }
  // Ids are ASCII, so string order is byte order.
  entries.sort((a, b) => (a.path < b.path ? -1 : 1))
  return { entries, folders, titles }
}

/** Returns the index of the first entry at or after a path; with `behind`, after it. */
export function indexFrom({ entries }: Pick<DriveTree, 'entries'>, path: string, behind = false): number {
  return firstIndex(0, entries.length, (index) => {
    const order = comparePaths(entries[index]?.path ?? '', path)
    return order > 0 || (order === 0 && !behind)
  })
}

export function fileAt(tree: DriveTree, path: string): FileAtPath | undefined {
  const fileAtPath = tree.entries[indexFrom(tree, path)]
  return fileAtPath?.path === path ? fileAtPath : undefined
}

export function diffDriveTrees(before: DriveTree, now: DriveTree): Iterable<string> {
  return changedPaths(before.entries, now.entries, ({ path }) => path, isSameFile)
}

function isSameFile(a: FileAtPath, b: FileAtPath): boolean {
  if (a.name !== b.name) return false
  if (a.file === b.file) return true
  const facts = ['id', 'type', 'size', 'modified', 'version', 'link', 'revision', 'readers'] as const
  return facts.every((fact) => a.file[fact] === b.file[fact])
}
