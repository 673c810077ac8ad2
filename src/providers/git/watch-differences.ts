import { isPath } from '../../core/path.ts'
import type { Change } from '../../core/provider.ts'
import type { Launcher } from './launch.ts'
import { shortName } from './names.ts'
import { compareRefs, isSameId, nameAt, oidAt } from './ref-list.ts'
import type { RefTable } from './refs.ts'
import { createSlices } from './slices.ts'

/** A file that differs between two commits. `listed`: only one of the two has it. */
export interface ChangedFile {
  readonly path: string
  readonly listed: boolean
}

/** Returns the files that differ between two commits; undefined when there are too many, or git cannot tell. */
export type ChangedFiles = (from: string, to: string) => Promise<readonly ChangedFile[] | undefined>

/** The names of a ref, with its old and new commit. */
interface Moved {
  readonly names: readonly string[]
  readonly from: string | undefined
  readonly to: string | undefined
}

/** Maximum number of files notified one by one; above it, their directory is notified. */
const maxFiles = 1000
const maxBytes = 512 * 1024
/** Maximum number of commit pairs compared file by file; a fetch can move a thousand branches at once. */
const maxCompared = 32

export function createChangedFiles(launcher: Launcher, signal: AbortSignal): ChangedFiles {
  return async (from, to) => {
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
    const files: ChangedFile[] = []
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

/** Returns the names of a ref in paths. An ambiguous short name counts too: it is ambiguous only while both refs exist. */
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
    // Any two refs can be compared.
    ...(moved.length === 0 ? [] : [{ path: 'diff/' }]),
    ...(switched || touches('HEAD', 'refs/heads/') ? [{ path: 'branches' }] : []),
    ...(touches('refs/tags/') ? [{ path: 'tags' }] : []),
  ]
}
