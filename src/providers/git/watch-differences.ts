import { isPath } from '../../core/path.ts'
import type { Change } from '../../core/provider.ts'
import type { Launcher } from './launch.ts'
import { shortName } from './names.ts'
import type { RefTable } from './refs.ts'

/** A file that one commit has otherwise than another. `listed`: only one of the two has it. */
export interface ChangedFile {
  readonly path: string
  readonly listed: boolean
}

/** Which files differ between two commits; `undefined` where there are too many of them, or git cannot tell. */
export type ChangedFiles = (from: string, to: string) => Promise<readonly ChangedFile[] | undefined>

/** What is called by some names, and was or is at a commit. */
interface Moved {
  readonly names: readonly string[]
  readonly from: string | undefined
  readonly to: string | undefined
}

/** Of more files than this, the directory that they are in is told. */
const maxFiles = 1000
const maxBytes = 512 * 1024
/** So many commits are compared file by file; a fetch can move a thousand branches at once. */
const maxCompared = 32

export function createChangedFiles(launcher: Launcher, signal: AbortSignal): ChangedFiles {
  return async (from, to) => {
    const { bytes, code, cut } = await launcher.run({
      args: ['diff-tree', '-r', '--no-renames', '--name-status', '-z', '--end-of-options', from, to, '--'],
      limit: maxBytes,
      signal,
      // A commit that was left behind may be pruned already.
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
 * What reads otherwise, now that refs are no longer where they were. Paths that name a commit by its id are not among it:
 * what they hold never changes.
 */
export async function changesBetween(
  before: RefTable,
  after: RefTable,
  changedFiles: ChangedFiles,
): Promise<readonly Change[]> {
  const moved = movedBetween(before, after)
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
      // Only what is at HEAD is listed; the rest is found by its directory.
      const files = found ?? [{ path: '', listed: true }]
      for (const { path, listed } of files)
        changes.push({ path: `${name}/${path}`, ...(listed && name === 'HEAD' ? { listed } : {}) })
    }
  }
  return changes
}

function movedBetween(before: RefTable, after: RefTable): readonly Moved[] {
  const [from, to] = [before.head?.oid, after.head?.oid]
  const moved: Moved[] = from === to ? [] : [{ names: ['HEAD'], from, to }]
  const [old, now] = [idsOf(before), idsOf(after)]
  for (const [name, oid] of now)
    if (old.get(name) !== oid) moved.push({ names: namesOf(name), from: old.get(name), to: oid })
  for (const [name, oid] of old) if (!now.has(name)) moved.push({ names: namesOf(name), from: oid, to: undefined })
  return moved
}

function idsOf({ refs }: RefTable): ReadonlyMap<string, string> {
  return new Map(refs.map(({ name, oid }) => [name, oid]))
}

/** How a ref is called in paths. Where that means something else as well, it does so only while both are there. */
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
