import { readlinkSync } from 'node:fs'
import { type MessagePort, parentPort } from 'node:worker_threads'
import { isResourceError, ResourceError, unavailable } from '../../core/errors.ts'
import { createEvent } from '../../core/kit/abort.ts'
import { defined } from '../../core/kit/object.ts'
import type { Log } from '../../core/log.ts'
import type { Degradation } from '../../core/provider.ts'
import { createLeaveOut, createPool, type Place, type Places } from './access.ts'
import { createIgnoreFiles } from './ignore-files.ts'
import { createNameCache } from './names.ts'
import { openAgain } from './root.ts'
import { createSpelling } from './spelling.ts'
import { lookAt } from './stats.ts'
import { createVisibility, ignoreOptions } from './visibility.ts'
import { createWalk, identityOf } from './walk.ts'
import { createDirectories, type Directories, type Directory } from './watch-directories.ts'
import { openHandles, type WatchFile } from './watch-handles.ts'
import { createPending, createRounds, createSchedule, type Pending, type Rounds } from './watch-schedule.ts'
import {
  createLedger,
  type Dues,
  type FromThread,
  type Ledger,
  type Request,
  type ToThread,
  type WatchOptions,
} from './watch-thread.ts'
import { createTree, everythingHeard, type WatchedTree } from './watch-tree.ts'

/**
 * The watch thread for all files mounts of a process: scanning a hundred thousand files, or handling ten thousand events at once, delays no
 * request. Each watch has its own port, and ends when the port is closed.
 */
parentPort?.on('message', ({ options, port }: ToThread) => void serve(options, port))

async function serve(options: ToThread['options'], port: MessagePort): Promise<void> {
  const ended = new AbortController()
  const send = (message: FromThread) => port.postMessage(message)
  const log: Log = (level, message, fields) => send({ log: [level, message, fields] })
  const taken = createEvent()
  let dues = async (): Promise<Dues> => []
  port.on('message', (request: Request) => {
    if (request === 'dues') void dues().then((found) => send({ dues: found }))
    else taken.set()
  })
  port.on('close', () => {
    ended.abort()
    taken.set()
  })
  try {
    const watched = await watchFiles(options, log, ended.signal, (degraded) => send({ degraded }))
    const { batches, closed } = watched
    dues = watched.dues
    send({ armed: true })
    for await (const changes of batches) {
      // Sends one batch at a time. Changes that occur meanwhile are merged here, where their amount is bounded.
      send({ changes })
      await taken.wait()
    }
    await closed
  } catch (error) {
    const { kind, message } = isResourceError(error) ? error : { kind: 'internal' as const, message: 'A watch failed.' }
    const cause = error instanceof Error && error.cause instanceof Error ? (error.cause.stack ?? '') : ''
    if (!ended.signal.aborted) send({ failed: { kind, message, cause } })
  } finally {
    port.close()
  }
}

/** Maximum number of names kept in memory: about 110 MB. */
const maxEntries = 1_000_000
/** Interval of checks that the root still exists, in milliseconds: the deletion of an open directory raises no event. */
const rootIntervalMs = 1000
/** Minimum time between two unscheduled full comparisons, in milliseconds. */
const suspectIntervalMs = 5000

/**
 * Watches the served files below a root. Directories have file system watches; on an event, or when its turn in a round comes, a directory is
 * compared with its known state. Directories are scanned one after the other.
 *
 * @param report Called when the quality of the watch changes (undefined: as good as it can be).
 * @param watch Replaces `fs.watch` in tests.
 * @throws ResourceError `unavailable` when the root is gone, or has too many files.
 */
export async function watchFiles(
  options: WatchOptions,
  log: Log,
  signal: AbortSignal,
  report: (degraded: Degradation | undefined) => void = () => {},
  watch?: WatchFile,
) {
  const { symlinks, hardlinks, allowMounts, portable } = options
  const permit = { hardlinks, allowMounts }
  const pool = createPool(1)
  const visible = createVisibility(options)
  const places = await openAgain(options.root, { allowMounts, portable }, pool)
  const ignoreFiles = createIgnoreFiles({ places, pool, log, ...ignoreOptions(options) })
  const names = createNameCache(visible, symlinks === 'beneath', pool, true)
  const spelling = createSpelling(names, (place, name, signal) => lookAt(place, name, pool, signal))
  const walk = createWalk({ places, pool, visible, permit, spelling, symlinks, ignoreFiles })
  const schedule = createSchedule<Directory>()
  const pending = createPending()
  let suspected = false
  let suspectAt = 0
  const overflown = () => {
    suspected = true
    doubtAll(directories, portable ? undefined : ledger)
    schedule.wake()
  }
  const handles = openHandles(places.real, options, { log, overflown, ...defined({ watch }) })
  // With access by path, it is unknown whether the file system of a place is local, so a watch is tried.
  const speaks = ({ local }: Place) => local || portable
  const ledger = createLedger()
  const parts = { handles, schedule, pending, ledger, speaks }
  const directories = createDirectories({ ...parts, prompt: !portable, limit: maxEntries })
  const tree = createTree({
    directories,
    schedule,
    walk,
    names,
    permit,
    pool,
    leaveOut: createLeaveOut(log),
    log,
    signal,
  })
  const rounds = createRounds({
    directories: directories.all,
    look: (directory) => tree.refresh(directory, 'round'),
    begun: handles.retry,
    intervalMs: options.reconcile,
    // A round uses a fifth of the time at most.
    rest: 4,
  })
  const root = createRootWatch({ options, places, tree, rounds, directories, pending, log, signal })

  const suspect = () => {
    suspected = false
    suspectAt = performance.now() + suspectIntervalMs
    log('info', 'many files changed at once: everything is compared, because notifications may have been lost')
    for (const directory of directories.all) directories.hear(directory, undefined)
  }

  let reported: Degradation | undefined
  const assess = () => {
    const degraded = !root.isThere ? 'unavailable' : handles.limited ? 'limited' : undefined
    if (degraded !== reported) report(degraded)
    reported = degraded
  }

  const run = async () => {
    let rootAt = performance.now() + rootIntervalMs
    while (!signal.aborted) {
      if (suspected && performance.now() >= suspectAt) suspect()
      for (const directory of schedule.take()) await tree.refresh(directory, 'heard')
      if (performance.now() >= rootAt) {
        await root.check()
        rootAt = performance.now() + rootIntervalMs
      }
      if (performance.now() >= rounds.due) await rounds.go()
      assess()
      await schedule.idle(Math.min(rootAt, rounds.due, suspected ? suspectAt : rootAt))
    }
  }

  const close = () => {
    root.forget()
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
    await root.begin()
    const place = await places.root(signal)
    place.close()
    if (!speaks(place))
      log('info', 'the file system of a mount does not report changes: it is compared periodically', {
        reconcile: options.reconcile,
      })
    assess()
  } catch (error) {
    close()
    throw signal.aborted ? error : outward(error)
  }
  /** Resolves once everything is closed. */
  const closed = run()
    .catch((error: unknown) => {
      if (!signal.aborted) pending.end(outward(error))
    })
    .finally(close)
  /** Returns the updates about directories since the last call, once all queued events are handled. */
  const dues = async (): Promise<Dues> => {
    await everythingHeard()
    return ledger.take()
  }
  // `batches` yields the changes from now on. It ends with the signal, and throws when the watch is lost.
  return { batches: pending.batches(), dues, closed }
}

/** Records that events may have been lost, so that a scan of one directory does not take its result for the initial state. */
function doubtAll(directories: Directories, ledger: Ledger | undefined): void {
  for (const directory of directories.all) {
    if (directory.handle === undefined) continue
    directory.heard = undefined
    ledger?.touch(directory.identity)
  }
}

/** Converts a failure for the caller of `watch`. */
function outward(error: unknown): ResourceError {
  if (!isResourceError(error)) return new ResourceError('internal', 'A watch failed.', {}, { cause: error })
  return error.kind === 'unavailable' ? error : unavailable(error.message, {}, error)
}

interface RootWatchOptions {
  readonly options: WatchOptions
  readonly places: Places
  readonly tree: WatchedTree
  readonly rounds: Rounds
  readonly directories: Directories
  readonly pending: Pending
  readonly log: Log
  readonly signal: AbortSignal
}

/** Keeps the directories of a watch in step with its root: forgets them when the root is gone, and finds them again when there is one. */
function createRootWatch(watch: RootWatchOptions) {
  const { places, tree, rounds, directories, pending, log, signal } = watch
  const { portable, root: opened } = watch.options
  let root: Directory | undefined
  let moved = false

  /** Finds the directories, and begins a round. */
  const begin = async () => {
    root = await tree.explore()
    rounds.reset()
  }

  /** Forgets all directories. */
  const forget = () => {
    directories.clear()
    root = undefined
  }

  /** Logs when the root was moved: it stays served there, which may surprise an operator who has put another directory in its place. */
  const noteMove = ({ at }: Place) => {
    if (portable) return
    const here = readlinkSync(at)
    if (here !== opened.real && !moved)
      log('warn', 'the root of a files mount was moved, and is served from there', { root: opened.real, here })
    moved = here !== opened.real
  }

  /** Forgets all directories if the root is gone or was replaced, and begins again when there is one. */
  const check = async () => {
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
      log('warn', 'the root of a files mount is gone, or another one', { root: opened.real })
      pending.add({})
    }
    forget()
    if (now === undefined) return
    try {
      await begin()
      pending.add({})
    } catch (error) {
      signal.throwIfAborted()
      if (!isResourceError(error, 'unavailable') && !isResourceError(error, 'not-found')) throw error
      forget()
    }
  }

  return {
    get isThere() {
      return root !== undefined
    },
    begin,
    forget,
    check,
  }
}
