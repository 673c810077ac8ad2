import { join } from 'node:path'
import { isResourceError } from '../../core/errors.ts'
import { sleep } from '../../core/kit/abort.ts'
import { createSlices } from '../../core/kit/event-loop-yield.ts'
import { isPath } from '../../core/path.ts'
import type { Change, Degradation, Provider } from '../../core/provider.ts'
import {
  createPendingChanges,
  createSchedule,
  createTurnQueue,
  createWatchHandles,
  type WatchHandle,
  type WatchHandles,
} from '../files/watch.ts'
import { type Folder, LinkError, openSubfolder, readDirectoryEntries } from './directory.ts'
import { fileSystemError, type Launcher } from './launch.ts'
import { compareRefs, isSameId, type RefTable, refIdAt, refNameAt, shortName } from './refs.ts'
import { isSameOrParent, type Repository } from './repository.ts'

export type GitEvent = 'refs' | 'index'

/** Names in a git directory whose changes affect the refs. */
const telling = new Set(['HEAD', 'packed-refs', 'shallow', 'refs', 'reftable'])
const maxDirectories = 4096

export function createWatchedDirectories(
  { location, anchors, settings }: Repository,
  handles: WatchHandles,
  onEvent: (what: GitEvent) => void,
) {
  const { gitDir, commonDir } = location
  /** Refs, and directories of refs. Each directory is watched that is one of them, or lies above or below one. */
  const patterns = [...settings.patterns, 'refs/heads']
  const all = new Map<string, { readonly identity: string; readonly handle: WatchHandle | undefined }>()
  /** Directories with an event that may mean that they were replaced. */
  let doubtful = new Set<string>()

  const hear = (directory: string, name: string | undefined) => {
    if (name?.endsWith('.lock') === true) return
    const isTop = directory === gitDir || directory === commonDir
    const tells = name === undefined || !isTop || telling.has(name)
    if (tells) {
      doubtful.add(name === undefined ? directory : join(directory, name))
      onEvent('refs')
    }
    if (name === undefined || (name === 'index' && directory === gitDir)) onEvent('index')
  }

  const listen = (directory: string, { at, identity }: Folder, doubts: ReadonlySet<string>) => {
    const previous = all.get(directory)
    // A directory without a handle could not be watched because of a limit: try again.
    if (previous?.handle !== undefined && previous.identity === identity && !doubts.has(directory)) return
    const handle = handles.open({ at }, (name) => hear(directory, name), previous?.handle)
    // A watch that could not be replaced stays open: close it.
    if (handle === undefined) previous?.handle?.close()
    all.set(directory, { identity, handle })
  }

  const forget = (directory: string) => {
    all.get(directory)?.handle?.close()
    all.delete(directory)
  }

  return {
    /** Watches the directories that exist now, and drops the watches of deleted ones. */
    follow: async (): Promise<void> => {
      const doubts = doubtful
      doubtful = new Set()
      handles.retry()
      const directories = new Set<string>()
      /** Watches a directory before it is read, so that later changes raise an event. */
      const see = (directory: string, folder: Folder): boolean => {
        if (directories.size >= maxDirectories) return false
        directories.add(directory)
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
            if (patterns.some((one) => isSameOrParent(path, one) || isSameOrParent(one, path)))
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
      for (const directory of all.keys()) if (!directories.has(directory)) forget(directory)
    },
    /** Whether the watched git directory is still the current one. */
    isSame: async (): Promise<boolean> => all.get(gitDir)?.identity === (await anchors.current()).gitDir.identity,
    close: () => {
      for (const directory of all.keys()) forget(directory)
    },
  }
}

async function openDirectory(parent: Folder, name: string): Promise<Folder | undefined> {
  try {
    return await openSubfolder(parent, name)
  } catch (error) {
    if (error instanceof LinkError) return undefined
    throw error
  }
}

async function directoriesIn(directory: Folder): Promise<readonly string[]> {
  const entries = await readDirectoryEntries(directory)
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
}

type ChangedFiles = ReturnType<typeof createChangedFiles>

/** A ref that has moved, was created or was deleted. */
interface Moved {
  readonly names: readonly string[]
  /** The old object id; undefined if the ref was created. */
  readonly from: string | undefined
  /** The new object id; undefined if the ref was deleted. */
  readonly to: string | undefined
}

/** Maximum number of changed files that are reported one by one; above it, the whole directory of the ref is reported. */
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
  const moves = await movedBetween(before, after)
  const changes: Change[] = pagesBetween(before, after, moves)
  const comparisons = new Map<string, ReturnType<ChangedFiles>>()
  const compare = ({ from, to }: Moved): ReturnType<ChangedFiles> => {
    if (from === undefined || to === undefined) return Promise.resolve(undefined)
    const comparison = comparisons.get(`${from} ${to}`)
    if (comparison !== undefined || comparisons.size >= maxCompared) return comparison ?? Promise.resolve(undefined)
    const changes = changedFiles(from, to)
    comparisons.set(`${from} ${to}`, changes)
    return changes
  }
  for (const one of moves) {
    const change = await compare(one)
    for (const name of one.names) {
      changes.push({ path: `commits/${name}` }, { path: `blame/${name}/` })
      // Only the files at HEAD are listed; other subscriptions match by directory.
      const files = change ?? [{ path: '', listed: true }]
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
  const moves: Moved[] = from === to ? [] : [{ names: ['HEAD'], from, to }]
  const [old, now] = [before.refs, after.refs]
  for (let i = 0, j = 0; i < old.length || j < now.length; ) {
    const order = i === old.length ? 1 : j === now.length ? -1 : compareRefs(old, i, now, j)
    if (order !== 0 || !isSameId(old, i, now, j))
      moves.push({
        names: refNames(order <= 0 ? refNameAt(old, i) : refNameAt(now, j)),
        from: order <= 0 ? refIdAt(old, i) : undefined,
        to: order >= 0 ? refIdAt(now, j) : undefined,
      })
    if (order <= 0) i++
    if (order >= 0) j++
    if (slices.due()) await slices.rest()
  }
  return moves
}

/**
 * Returns the names of a ref in paths: the full name, and the short name. The short name is included even if another ref has it too,
 * because it names this ref again after the other one is deleted.
 */
function refNames(ref: string): readonly string[] {
  const short = shortName(ref)
  return short === undefined ? [ref] : [ref, short]
}

function pagesBetween(before: RefTable, after: RefTable, moves: readonly Moved[]): Change[] {
  const switched = before.branch !== after.branch
  if (moves.length === 0 && !switched) return []
  const touches = (...begins: readonly string[]) =>
    moves.some(({ names: [name = ''] }) => begins.some((begin) => name.startsWith(begin)))
  return [
    { path: 'log' },
    // Any two refs can be compared, so every diff may have changed.
    ...(moves.length === 0 ? [] : [{ path: 'diff/' }]),
    ...(switched || touches('HEAD', 'refs/heads/') ? [{ path: 'branches' }] : []),
    ...(touches('refs/tags/') ? [{ path: 'tags' }] : []),
  ]
}

/** Interval of checks that the git directory is still the same, in milliseconds: its parent directories are not watched. */
const sameIntervalMs = 1000
/** Maximum time that a watch waits for the state of the working tree before it is armed, in milliseconds. */
const statusTimeoutMs = 2000
const maxHandles = 4096

interface WatchedPart {
  readonly of: 'refs' | 'status'
}

interface RefState {
  readonly table: RefTable
  readonly shallow: ReadonlySet<string>
}

/** Returns the text of `status` for a table of refs; throws `not-found` when there is none. */
export type ReadStatus = (table: RefTable, signal: AbortSignal) => Promise<string>

/**
 * Watches a repository: refs, `HEAD`, and the state of the working tree. On events of their directories, and at an interval, the current state is
 * compared with the known one.
 *
 * @param closing Ends all watches.
 */
export function createRepositoryWatch(
  repository: Repository,
  readStatus: ReadStatus,
  closing: AbortSignal,
): Required<Pick<Provider, 'watch' | 'catchUp' | 'degraded'>> {
  const running = new Set<() => Degradation | undefined>()
  const looks = new Set<() => Promise<boolean>>()
  return {
    watch: async (caller) => {
      const ending = new AbortController()
      const signal = AbortSignal.any([caller, closing, ending.signal])
      signal.throwIfAborted()
      const { batches, degraded, look, ended } = await startWatch(repository, readStatus, signal)
      running.add(degraded)
      looks.add(look)
      void ended.finally(() => {
        running.delete(degraded)
        looks.delete(look)
      })
      return (async function* () {
        try {
          for await (const batch of batches) yield* batch
        } finally {
          ending.abort()
        }
      })()
    },
    catchUp: async () => {
      const results = await Promise.all([...looks].map((look) => look()))
      return results.length > 0 && results.every((isWhole) => isWhole)
    },
    degraded: () => {
      const degradations = [...running].map((degraded) => degraded())
      return degradations.includes('unavailable') ? 'unavailable' : degradations.find((one) => one !== undefined)
    },
  }
}

async function startWatch(repository: Repository, readStatus: ReadStatus, signal: AbortSignal) {
  const { refs, settings, launcher } = repository
  const { log, reconcile } = settings
  const parts = { refs: { of: 'refs' }, index: { of: 'status' } } as const
  const schedule = createSchedule<WatchedPart>()
  const pending = createPendingChanges()
  const looks = createTurnQueue(schedule.wake, pending.drained)
  const onEvent = (what: GitEvent) => schedule.touch(parts[what])
  const overflown = () => {
    onEvent('refs')
    onEvent('index')
  }
  const handles = createWatchHandles(maxHandles, { log, overflown })
  const directories = createWatchedDirectories(repository, handles, onEvent)
  const changedFiles = createChangedFiles(launcher, signal)
  let away = false

  const look = async (): Promise<RefState> => {
    await directories.follow()
    const table = await refs.table(performance.now())
    return { table, shallow: repository.shallow() }
  }

  const lookAtStatus = () => readStatusPage(refState.table, readStatus, signal)

  /** Compares the refs, and notifies of changes. Returns `false` if nothing has changed. */
  const compareRefs = async (): Promise<boolean> => {
    try {
      const now = await look()
      const before = refState
      refState = now
      if (!away && now.table === before.table && now.shallow === before.shallow) return false
      // Missing history that was fetched (or lost) can change any text.
      if (away || now.shallow !== before.shallow) pending.add({})
      else for (const change of await changesBetween(before.table, now.table, changedFiles)) pending.add(change)
      if (away) log('info', 'a repository can be read again', { repository: settings.repository })
      away = false
    } catch (error) {
      if (signal.aborted) throw error
      if (!away) {
        log('warn', 'a repository cannot be read now', { repository: settings.repository, error })
        pending.add({})
      }
      away = true
      schedule.later(parts.refs, sameIntervalMs)
    }
    return true
  }

  const compareStatus = async (): Promise<void> => {
    const now = await lookAtStatus()
    if (now?.text !== status?.text)
      pending.add({ path: 'status', listed: now !== undefined && 'text' in now !== 'text' in (status ?? {}) })
    status = now
  }

  /** Runs the work, then pauses the part for as long as the work took. */
  const spared = async (part: WatchedPart, work: () => Promise<unknown>): Promise<void> => {
    const start = performance.now()
    await work()
    schedule.spare(part, performance.now() - start)
  }

  const run = async (): Promise<void> => {
    let sameAt = performance.now() + sameIntervalMs
    let roundAt = performance.now() + reconcile
    while (!signal.aborted) {
      await looks.answer(() => compareRefs().then(() => !away))
      const start = performance.now()
      const due = new Set(schedule.take())
      const isRound = start >= roundAt
      if (isRound || (start >= sameAt && !(await directories.isSame().catch(() => false)))) due.add(parts.refs)
      if (start >= sameAt) sameAt = start + sameIntervalMs
      if (due.has(parts.refs))
        await spared(parts.refs, async () => {
          if (await compareRefs()) due.add(parts.index)
        })
      if (isRound || due.has(parts.index)) await spared(parts.index, compareStatus)
      // A round uses a fifth of the time at most.
      if (isRound) roundAt = performance.now() + Math.max(reconcile, 4 * (performance.now() - start))
      await schedule.idle(Math.min(sameAt, roundAt))
    }
  }

  const end = () => {
    pending.end()
    schedule.wake()
  }
  signal.addEventListener('abort', end, { once: true })
  let refState: RefState
  let status: Status | undefined
  try {
    refState = await look()
    const first = lookAtStatus().then((latest) => {
      status = latest
    })
    // The status of a large working tree may take long. Changes meanwhile are unknown, so it is reported as changed.
    if (!(await Promise.race([first.then(() => true), sleep(statusTimeoutMs).then(() => false)])))
      void first.then(
        () => pending.add({ path: 'status' }),
        () => {},
      )
    signal.throwIfAborted()
  } catch (error) {
    directories.close()
    throw fileSystemError(error)
  }
  const running = run()
    .catch((error: unknown) => pending.end(error))
    .finally(() => {
      signal.removeEventListener('abort', end)
      directories.close()
      looks.end()
    })
  const degraded = (): Degradation | undefined => (away ? 'unavailable' : handles.limited ? 'limited' : undefined)
  return { batches: pending.batches(), degraded, look: looks.ask, ended: running }
}

interface Status {
  readonly text?: string
}

async function readStatusPage(
  table: RefTable,
  readStatus: ReadStatus,
  signal: AbortSignal,
): Promise<Status | undefined> {
  try {
    return { text: await readStatus(table, signal) }
  } catch (error) {
    if (signal.aborted || !isResourceError(error)) throw error
    return error.kind === 'not-found' ? {} : undefined
  }
}
