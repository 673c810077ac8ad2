import { isResourceError, ResourceError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Change } from '../../core/provider.ts'
import { createIgnoreFiles } from './ignore-files.ts'
import { createNameCache } from './names.ts'
import type { PermitOptions } from './permit.ts'
import type { Place } from './place.ts'
import { createPool } from './pool.ts'
import { type OpenedRoot, openAgain } from './root.ts'
import { createVisibility, type VisibilityOptions } from './visibility.ts'
import { createWalk, identityOf } from './walk.ts'
import { createHandles } from './watch-handles.ts'
import { createPending } from './watch-pending.ts'
import { createSchedule } from './watch-schedule.ts'
import { createTree, type Directory } from './watch-tree.ts'

/** What is watched, and how. Plain data: it is sent to another thread. */
export interface WatchOptions extends VisibilityOptions, PermitOptions {
  readonly root: OpenedRoot
  readonly gitignore: boolean
  readonly symlinks: 'deny' | 'beneath'
  readonly portable: boolean
  /** From the end of one round, in which everything is compared, to the beginning of the next, in milliseconds. */
  readonly reconcile: number
  /** How many directories are listened to. */
  readonly watches: number
}

export interface Watched {
  /** What has changed from the moment on that this was answered. Ends with the signal; throws when the watch is lost. */
  readonly batches: AsyncGenerator<readonly Change[]>
  /** Resolves once nothing is held open any more. */
  readonly closed: Promise<void>
}

/** How many names are kept in mind: about 110 MB. */
const maxEntries = 1_000_000
/** How often it is seen whether the root is still there, in milliseconds: a directory that is open is not heard to go. */
const rootEvery = 1000
/** For how long a round goes on before it rests, in milliseconds, and for how many times as long it then does. */
const [slice, rest] = [10, 4]
/** How often everything is compared out of turn at most, in milliseconds. */
const suspectEvery = 5000

/**
 * Watches what is served below a root. Directories are listened to; when something is heard of one, or when its turn in a
 * round comes, it is compared with what was known of it. One directory after the other: nothing is looked at twice at a
 * time.
 *
 * @throws ResourceError `unavailable` when the root is gone, or holds too much.
 */
export async function watchFiles(options: WatchOptions, log: Log, signal: AbortSignal): Promise<Watched> {
  const { symlinks, hardlinks, allowMounts, portable, reconcile } = options
  const permit = { hardlinks, allowMounts }
  const pool = createPool(1)
  const visible = createVisibility(options)
  const places = await openAgain(options.root, { allowMounts, portable }, pool)
  const ignoreFiles = options.gitignore ? createIgnoreFiles(places, pool, log) : undefined
  const walk = createWalk({ places, pool, visible, permit, symlinks, ignoreFiles })
  const names = createNameCache(visible, symlinks === 'beneath', pool, true)
  const schedule = createSchedule<Directory>()
  const pending = createPending()
  let suspected = false
  let suspectAt = 0
  const overflown = () => {
    suspected = true
    schedule.wake()
  }
  const handles = createHandles({ limit: options.watches, log, overflown })
  // Where paths are all there is, nobody knows what lies behind them: it is tried.
  const speaks = ({ local }: Place) => local || portable
  const parts = { walk, names, permit, pool, handles, schedule, pending, speaks, log, signal }
  const tree = createTree({ ...parts, limit: maxEntries })

  let round: Iterator<Directory> | undefined
  let roundAt = 0
  let resumeAt = 0
  /** The first round goes on without a rest: until it is over, too much counts as changed. */
  let resting = 0
  let restless = true

  const begin = async () => {
    await tree.begin()
    round = undefined
    roundAt = resumeAt = resting = 0
  }

  const checkRoot = async () => {
    let now: string | undefined
    try {
      const place = await places.root(signal)
      now = identityOf(place)
      place.close()
    } catch {
      signal.throwIfAborted()
    }
    if (now !== undefined && now === tree.root?.identity) return
    if (tree.root !== undefined) {
      log('warn', 'the root of a files mount is gone, or another one', { root: options.root.real })
      pending.everything()
    }
    tree.clear()
    if (now === undefined) return
    try {
      await begin()
      pending.everything()
    } catch (error) {
      signal.throwIfAborted()
      if (!isResourceError(error, 'unavailable') && !isResourceError(error, 'not-found')) throw error
      tree.clear()
    }
  }

  const goRound = async () => {
    if (round === undefined) {
      handles.retry()
      round = [...tree.directories].values()
    }
    const start = performance.now()
    let next = round.next()
    for (; next.done !== true; next = round.next()) {
      await tree.refresh(next.value, 'round')
      if (performance.now() - start > slice) break
    }
    const end = performance.now()
    resumeAt = end + (end - start) * resting
    if (next.done !== true) return
    round = undefined
    roundAt = end + reconcile
    resting = restless ? rest : 1
  }

  const suspect = () => {
    suspected = false
    suspectAt = performance.now() + suspectEvery
    log('info', 'much was changed at once: everything is compared, in case that something was not heard')
    for (const directory of tree.directories) tree.hear(directory, undefined)
  }

  const run = async () => {
    let rootAt = performance.now() + rootEvery
    while (!signal.aborted) {
      if (suspected && performance.now() >= suspectAt) suspect()
      for (const directory of schedule.take()) await tree.refresh(directory, 'heard')
      if (performance.now() >= rootAt) {
        await checkRoot()
        rootAt = performance.now() + (restless ? rootEvery : Math.max(rootEvery, reconcile))
      }
      const roundDue = () => (round === undefined ? roundAt : resumeAt)
      if (performance.now() >= roundDue()) await goRound()
      await schedule.idle(Math.min(rootAt, roundDue(), suspected ? suspectAt : rootAt))
    }
  }

  const close = () => {
    tree.clear()
    names.clear()
    places.close()
  }

  const end = () => {
    pending.end()
    schedule.wake()
  }
  signal.addEventListener('abort', end, { once: true })
  try {
    signal.throwIfAborted()
    const place = await places.root(signal)
    restless = speaks(place)
    place.close()
    await begin()
    if (!restless)
      log('info', 'the file system of a mount does not tell of changes: it is compared from time to time', {
        reconcile,
      })
  } catch (error) {
    close()
    throw signal.aborted ? error : outward(error)
  }
  const closed = run()
    .catch((error: unknown) => {
      if (!signal.aborted) pending.end(outward(error))
    })
    .finally(close)
  return { batches: pending.batches(), closed }
}

/** A failure as a caller of `watch` is told of it. */
function outward(error: unknown): ResourceError {
  if (!isResourceError(error)) return new ResourceError('internal', 'A watch failed.', {}, { cause: error })
  return error.kind === 'unavailable' ? error : new ResourceError('unavailable', error.message, {}, { cause: error })
}
