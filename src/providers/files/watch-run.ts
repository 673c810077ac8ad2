import { readlinkSync } from 'node:fs'
import { isResourceError, ResourceError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Change, Degradation } from '../../core/provider.ts'
import { createIgnoreFiles } from './ignore-files.ts'
import { lookAt } from './look.ts'
import { createNameCache } from './names.ts'
import type { PermitOptions } from './permit.ts'
import type { Place } from './place.ts'
import { createPool } from './pool.ts'
import { type OpenedRoot, openAgain } from './root.ts'
import { createSpelling } from './spelling.ts'
import { createVisibility, type VisibilityOptions } from './visibility.ts'
import { createLedger, type Dues } from './vouching.ts'
import { createWalk, identityOf } from './walk.ts'
import { createDirectories, type Directory } from './watch-directories.ts'
import { createHandles } from './watch-handles.ts'
import { createPending } from './watch-pending.ts'
import { createSchedule } from './watch-schedule.ts'
import { createTree, everythingHeard } from './watch-tree.ts'

/** Options of a watch. Plain data: it is sent to another thread. */
export interface WatchOptions extends VisibilityOptions, PermitOptions {
  readonly root: OpenedRoot
  readonly gitignore: boolean
  readonly symlinks: 'deny' | 'beneath'
  readonly portable: boolean
  /** Time from the end of one round, in which everything is compared, to the beginning of the next, in milliseconds. */
  readonly reconcile: number
  /** Maximum number of directories with a file system watch. */
  readonly watches: number
}

export interface Watched {
  /** Changes since the moment when this was returned. Ends with the signal; throws when the watch is lost. */
  readonly batches: AsyncGenerator<readonly Change[]>
  /** Returns what has changed for {@link Ledger}, once all queued events are handled. */
  readonly dues: () => Promise<Dues>
  /** Resolves once everything is closed. */
  readonly closed: Promise<void>
}

/** Maximum number of names kept in memory: about 110 MB. */
const maxEntries = 1_000_000
/** Interval of checks that the root still exists, in milliseconds: the deletion of an open directory raises no event. */
const rootEvery = 1000
/** Minimum time between two unscheduled full comparisons, in milliseconds. */
const suspectEvery = 5000

/**
 * Watches the served files below a root. Directories have file system watches; on an event, or when its turn in a round comes, a directory is
 * compared with its known state. Directories are scanned one after the other, never twice at a time.
 *
 * @param report Called when the quality of the watch changes (undefined: as good as it can be).
 * @throws ResourceError `unavailable` when the root is gone, or holds too much.
 */
export async function watchFiles(
  options: WatchOptions,
  log: Log,
  signal: AbortSignal,
  report: (degraded: Degradation | undefined) => void = () => {},
): Promise<Watched> {
  const { symlinks, hardlinks, allowMounts, portable, reconcile } = options
  const permit = { hardlinks, allowMounts }
  const pool = createPool(1)
  const visible = createVisibility(options)
  const places = await openAgain(options.root, { allowMounts, portable }, pool)
  const ignoreFiles = options.gitignore ? createIgnoreFiles(places, pool, log) : undefined
  const names = createNameCache(visible, symlinks === 'beneath', pool, true)
  const isListed = createSpelling(names, (place, name, signal) => lookAt(place, name, pool, signal))
  const walk = createWalk({ places, pool, visible, permit, isListed, symlinks, ignoreFiles })
  const schedule = createSchedule<Directory>()
  const pending = createPending()
  let suspected = false
  let suspectAt = 0
  const overflown = () => {
    suspected = true
    // Events may have been lost.
    for (const { identity, handle } of directories.all) if (handle !== undefined && !portable) ledger.touch(identity)
    schedule.wake()
  }
  const handles = createHandles({ limit: options.watches, log, overflown })
  // With paths only, the file system of a place is unknown: the watch is tried.
  const speaks = ({ local }: Place) => local || portable
  const ledger = createLedger()
  const known = { handles, schedule, pending, ledger, speaks, prompt: !portable, limit: maxEntries }
  const directories = createDirectories(known)
  const tree = createTree({ directories, schedule, walk, names, permit, pool, log, signal })
  const rounds = createRounds({
    directories: directories.all,
    look: (directory) => tree.refresh(directory, 'round'),
    begun: handles.retry,
    interval: reconcile,
    // A round uses a fifth of the time at most.
    rest: 4,
  })
  let root: Directory | undefined
  let moved = false

  const begin = async () => {
    root = await tree.explore()
    rounds.reset()
  }

  const forget = () => {
    directories.clear()
    root = undefined
  }

  /** Logs when the root was moved: it stays served there, which may surprise an operator who has put another directory in its place. */
  const noteMove = ({ at }: Place) => {
    if (portable) return
    const here = readlinkSync(at)
    if (here !== options.root.real && !moved)
      log('warn', 'the root of a files mount was moved, and is served from there', { root: options.root.real, here })
    moved = here !== options.root.real
  }

  const checkRoot = async () => {
    let now: string | undefined
    try {
      const place = await places.root(signal)
      now = identityOf(place)
      noteMove(place)
      place.close()
    } catch {
      signal.throwIfAborted()
    }
    if (now !== undefined && now === root?.identity) return
    if (root !== undefined) {
      log('warn', 'the root of a files mount is gone, or another one', { root: options.root.real })
      pending.everything()
    }
    forget()
    if (now === undefined) return
    try {
      await begin()
      pending.everything()
    } catch (error) {
      signal.throwIfAborted()
      if (!isResourceError(error, 'unavailable') && !isResourceError(error, 'not-found')) throw error
      forget()
    }
  }

  const suspect = () => {
    suspected = false
    suspectAt = performance.now() + suspectEvery
    log('info', 'much was changed at once: everything is compared, in case that something was not heard')
    for (const directory of directories.all) directories.hear(directory, undefined)
  }

  let reported: Degradation | undefined
  const assess = () => {
    const degraded = root === undefined ? 'unavailable' : handles.limited ? 'limited' : undefined
    if (degraded !== reported) report(degraded)
    reported = degraded
  }

  const run = async () => {
    let rootAt = performance.now() + rootEvery
    while (!signal.aborted) {
      if (suspected && performance.now() >= suspectAt) suspect()
      for (const directory of schedule.take()) await tree.refresh(directory, 'heard')
      if (performance.now() >= rootAt) {
        await checkRoot()
        rootAt = performance.now() + rootEvery
      }
      if (performance.now() >= rounds.due) await rounds.go()
      assess()
      await schedule.idle(Math.min(rootAt, rounds.due, suspected ? suspectAt : rootAt))
    }
  }

  const close = () => {
    forget()
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
    await begin()
    const place = await places.root(signal)
    place.close()
    if (!speaks(place))
      log('info', 'the file system of a mount does not tell of changes: it is compared from time to time', {
        reconcile,
      })
    assess()
  } catch (error) {
    close()
    throw signal.aborted ? error : outward(error)
  }
  const closed = run()
    .catch((error: unknown) => {
      if (!signal.aborted) pending.end(outward(error))
    })
    .finally(close)
  const dues = async () => {
    await everythingHeard()
    return ledger.take()
  }
  return { batches: pending.batches(), dues, closed }
}

/** Converts a failure for the caller of `watch`. */
function outward(error: unknown): ResourceError {
  if (!isResourceError(error)) return new ResourceError('internal', 'A watch failed.', {}, { cause: error })
  return error.kind === 'unavailable' ? error : new ResourceError('unavailable', error.message, {}, { cause: error })
}

/** Rounds that scan every directory, with or without events. */
interface Rounds {
  /** Time at which the next round begins or continues. */
  readonly due: number
  /** Continues a round for one time slice, or begins one. */
  go(): Promise<void>
  /** Begins a new round at once. */
  reset(): void
}

interface RoundsOptions {
  readonly directories: ReadonlySet<Directory>
  readonly look: (directory: Directory) => Promise<void>
  readonly begun: () => void
  /** Time from the end of one round to the beginning of the next, in milliseconds. */
  readonly interval: number
  /** Length of the pause after a time slice, as a multiple of the slice. The first round, which is urgent, has no pauses. */
  readonly rest: number
}

/** Length of a time slice, in milliseconds. */
const moment = 10

function createRounds({ directories, look, begun, interval, rest }: RoundsOptions): Rounds {
  let round: Iterator<Directory> | undefined
  let due = 0
  let first = true

  return {
    get due() {
      return due
    },
    go: async () => {
      if (round === undefined) {
        begun()
        round = [...directories].values()
      }
      const start = performance.now()
      let ended = false
      while (!ended && performance.now() - start < moment) {
        const next = round.next()
        if (next.done === true) ended = true
        else await look(next.value)
      }
      const now = performance.now()
      if (ended) {
        round = undefined
        due = now + interval
        first = false
      } else due = now + (first ? 0 : (now - start) * rest)
    },
    reset: () => {
      round = undefined
      due = 0
      first = true
    },
  }
}
