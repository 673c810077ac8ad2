import { join } from 'node:path'
import { createSlices } from '../../core/kit/breath.ts'
import { isPath } from '../../core/path.ts'
import type { Change } from '../../core/provider.ts'
import type { Handles, WatchHandle } from '../files/watch-handles.ts'
import { entriesOf, type Folder, LinkError, openIn } from './folder.ts'
import type { Launcher } from './launch.ts'
import { shortName } from './names.ts'
import { compareRefs, isSameId, nameAt, oidAt } from './ref-list.ts'
import type { RefTable } from './refs.ts'
import { isAbove, type Repository } from './repository.ts'

/** Kind of an event: a change of the refs, or of the index. */
export type GitEvent = 'refs' | 'index'

/** Names in a git directory whose changes affect the refs. git replaces each of these files as a whole. */
const telling = new Set(['HEAD', 'packed-refs', 'shallow', 'refs', 'reftable'])
/** Maximum number of ref directories to watch. */
const maxDirectories = 4096

/** The watched directories of a repository: those of `HEAD`, refs and the index. */
export function createDirectories(
  { location, anchors, settings }: Repository,
  handles: Handles,
  heard: (what: GitEvent) => void,
) {
  const { gitDir, commonDir } = location
  /** The ref directories that are watched, with those above and below them. */
  const wanted = [...settings.patterns, 'refs/heads']
  const all = new Map<string, { readonly identity: string; readonly handle: WatchHandle | undefined }>()
  /** Directories with an event that may mean that they were replaced. */
  let doubtful = new Set<string>()

  const hear = (directory: string, name: string | undefined) => {
    if (name?.endsWith('.lock') === true) return
    const isTop = directory === gitDir || directory === commonDir
    const tells = name === undefined || !isTop || telling.has(name)
    if (tells) {
      doubtful.add(name === undefined ? directory : join(directory, name))
      heard('refs')
    }
    if (name === undefined || (name === 'index' && directory === gitDir)) heard('index')
  }

  const listen = (directory: string, { at, identity }: Folder, doubts: ReadonlySet<string>) => {
    const known = all.get(directory)
    // A directory without a handle could not be watched because of a limit: try again.
    if (known?.handle !== undefined && known.identity === identity && !doubts.has(directory)) return
    const handle = handles.open({ at }, (name) => hear(directory, name), known?.handle)
    // A watch that could not be replaced stays open: close it.
    if (handle === undefined) known?.handle?.close()
    all.set(directory, { identity, handle })
  }

  const forget = (directory: string) => {
    all.get(directory)?.handle?.close()
    all.delete(directory)
  }

  return {
    /** Watches all directories that exist now. Drops the watches of deleted or replaced ones. */
    follow: async (): Promise<void> => {
      const doubts = doubtful
      doubtful = new Set()
      handles.retry()
      const seen = new Set<string>()
      /** Watches a directory before it is read, so that later changes raise an event. */
      const see = (directory: string, folder: Folder): boolean => {
        if (seen.size >= maxDirectories) return false
        seen.add(directory)
        listen(directory, folder, doubts)
        return true
      }
      const descend = async (parent: Folder, directory: string, last: string, name: string): Promise<void> => {
        const folder = await openDirectory(parent, last)
        if (folder === undefined) return
        try {
          if (!see(directory, folder)) return
          for (const child of await directoriesIn(folder)) {
            const path = `${name}/${child}`
            if (wanted.some((one) => isAbove(path, one) || isAbove(one, path)))
              await descend(folder, join(directory, child), child, path)
          }
        } finally {
          folder.close()
        }
      }
      const current = await anchors.current()
      see(gitDir, current.gitDir)
      if (commonDir !== gitDir) see(commonDir, current.commonDir)
      await descend(current.commonDir, join(commonDir, 'refs'), 'refs', 'refs')
      await descend(current.commonDir, join(commonDir, 'reftable'), 'reftable', 'reftable')
      if (commonDir !== gitDir) await descend(current.gitDir, join(gitDir, 'reftable'), 'reftable', 'reftable')
      for (const directory of all.keys()) if (!seen.has(directory)) forget(directory)
    },
    /** Whether the watched git directory is still the current one. */
    isSame: async (): Promise<boolean> => all.get(gitDir)?.identity === (await anchors.current()).gitDir.identity,
    close: () => {
      for (const directory of all.keys()) forget(directory)
    },
  }
}

/** Opens a subdirectory; undefined for anything but a directory. */
async function openDirectory(parent: Folder, name: string): Promise<Folder | undefined> {
  try {
    return await openIn(parent, name)
  } catch (error) {
    if (error instanceof LinkError) return undefined
    throw error
  }
}

async function directoriesIn(directory: Folder): Promise<readonly string[]> {
  const entries = await entriesOf(directory)
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
}

type ChangedFiles = ReturnType<typeof createChangedFiles>

/** The names of a ref, with its old and new commit. */
interface Moved {
  readonly names: readonly string[]
  readonly from: string | undefined
  readonly to: string | undefined
}

/** Maximum number of changed files that are reported one by one; above it, their directory is reported. */
const maxFiles = 1000
const maxBytes = 512 * 1024
/** Maximum number of commit pairs compared file by file; a fetch can move a thousand branches at once. */
const maxCompared = 32

/**
 * Creates a function that returns the files that differ between two commits; undefined when there are too many, or git cannot tell. `listed`:
 * only one of the two has the file.
 */
export function createChangedFiles(launcher: Launcher, signal: AbortSignal) {
  return async (from: string, to: string) => {
    const { bytes, code, cut } = await launcher.run({
      args: ['diff-tree', '-r', '--no-renames', '--name-status', '-z', '--end-of-options', from, to, '--'],
      limit: maxBytes,
      signal,
      // An old commit may be pruned already.
      allows: [128],
      quiet: true,
    })
    const fields = bytes.toString('utf8').split('\0').slice(0, -1)
    if (code !== 0 || cut || fields.length > 2 * maxFiles) return undefined
    const files: { readonly path: string; readonly listed: boolean }[] = []
    for (let at = 0; at + 1 < fields.length; at += 2) {
      const path = fields[at + 1] ?? ''
      if (isPath(path)) files.push({ path, listed: fields[at] === 'A' || fields[at] === 'D' })
    }
    return files
  }
}

/**
 * Returns the changes of resources after refs have moved. Paths that name a commit by its id are not among them: their content never changes.
 */
export async function changesBetween(
  before: RefTable,
  after: RefTable,
  changedFiles: ChangedFiles,
): Promise<readonly Change[]> {
  const moved = await movedBetween(before, after)
  const changes: Change[] = pagesBetween(before, after, moved)
  const compared = new Map<string, ReturnType<ChangedFiles>>()
  const compare = ({ from, to }: Moved): ReturnType<ChangedFiles> => {
    if (from === undefined || to === undefined) return Promise.resolve(undefined)
    const known = compared.get(`${from} ${to}`)
    if (known !== undefined || compared.size >= maxCompared) return known ?? Promise.resolve(undefined)
    const found = changedFiles(from, to)
    compared.set(`${from} ${to}`, found)
    return found
  }
  for (const one of moved) {
    const found = await compare(one)
    for (const name of one.names) {
      changes.push({ path: `commits/${name}` }, { path: `blame/${name}/` })
      // Only the files at HEAD are listed; other subscriptions match by directory.
      const files = found ?? [{ path: '', listed: true }]
      for (const { path, listed } of files)
        changes.push({ path: `${name}/${path}`, ...(listed && name === 'HEAD' ? { listed } : {}) })
    }
  }
  return changes
}

/** Returns the refs that moved. Both tables are sorted by name. */
async function movedBetween(before: RefTable, after: RefTable): Promise<readonly Moved[]> {
  const slices = createSlices()
  const [from, to] = [before.head?.oid, after.head?.oid]
  const moved: Moved[] = from === to ? [] : [{ names: ['HEAD'], from, to }]
  const [old, now] = [before.refs, after.refs]
  for (let i = 0, j = 0; i < old.length || j < now.length; ) {
    const order = i === old.length ? 1 : j === now.length ? -1 : compareRefs(old, i, now, j)
    if (order !== 0 || !isSameId(old, i, now, j))
      moved.push({
        names: namesOf(order <= 0 ? nameAt(old, i) : nameAt(now, j)),
        from: order <= 0 ? oidAt(old, i) : undefined,
        to: order >= 0 ? oidAt(now, j) : undefined,
      })
    if (order <= 0) i++
    if (order >= 0) j++
    if (slices.due()) await slices.rest()
  }
  return moved
}

/**
 * Returns the names of a ref in paths: the full name, and the short name. The short name is included even if another ref has it too,
 * because it names this ref again after the other one is deleted.
 */
function namesOf(ref: string): readonly string[] {
  const short = shortName(ref)
  return short === undefined ? [ref] : [ref, short]
}

function pagesBetween(before: RefTable, after: RefTable, moved: readonly Moved[]): Change[] {
  const switched = before.branch !== after.branch
  if (moved.length === 0 && !switched) return []
  const touches = (...begins: readonly string[]) =>
    moved.some(({ names: [name = ''] }) => begins.some((begin) => name.startsWith(begin)))
  return [
    { path: 'log' },
    // Any two refs can be compared, so every diff may have changed.
    ...(moved.length === 0 ? [] : [{ path: 'diff/' }]),
    ...(switched || touches('HEAD', 'refs/heads/') ? [{ path: 'branches' }] : []),
    ...(touches('refs/tags/') ? [{ path: 'tags' }] : []),
  ]
}
