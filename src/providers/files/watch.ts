import * as fs from 'node:fs'
import * as path from 'node:path'
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import { type ErrorKind, errorCodeOf, ResourceError, unavailable } from '../../core/errors.ts'
import { createAutoResetEvent, withResolvers } from '../../core/kit/abort.ts'
import { defined } from '../../core/kit/object.ts'
import type { Log } from '../../core/log.ts'
import { canonicalPath } from '../../core/path.ts'
import type { Change, Degradation } from '../../core/provider.ts'
import type { PermitOptions, Place, RootAccess } from './place.ts'
import type { OpenedRoot } from './root.ts'
import type { VisibilityOptions } from './walk.ts'

export interface WatchHandle {
  close(): void
}

/**
 * Receives the changed name in the directory, or undefined when the directory itself or an unknown name changed.
 *
 * @param lost Whether the watch has ended because of an error.
 */
export type OnFileEvent = (name: string | undefined, lost?: boolean) => void

export interface WatchHandles {
  /**
   * Watches a directory from now on. Returns undefined when it cannot be watched, for example because of a limit.
   *
   * @param old Watch to replace and close. It stays open when it cannot be replaced.
   */
  open(place: Pick<Place, 'at'>, heard: OnFileEvent, old?: WatchHandle): WatchHandle | undefined
  /** Lets later calls of `open` try again after a limit was reached. */
  retry(): void
  /** Whether some directory has no watch because a limit was reached, or the watch of the whole tree failed. */
  readonly limited: boolean
}

interface HandlesOptions {
  readonly log: Log
  readonly overflown: () => void
  readonly watch?: WatchFile
}

export function createHandles(
  root: string,
  { recursive, watches }: { readonly recursive: boolean; readonly watches: number },
  options: HandlesOptions,
): WatchHandles {
  return recursive ? createTreeHandles(root, options) : createWatchHandles(watches, options)
}

export type WatchFile = (
  path: string,
  options: { readonly persistent: false; readonly recursive: boolean },
  listener: (event: string, name: string | null) => void,
) => Pick<fs.FSWatcher, 'close'> & { on(event: 'error', listener: (error: Error) => void): unknown }

/** ENOSPC: too many inotify watches. EMFILE: too many inotify instances or open files, or, as an event, more paths than FSEvents takes. */
const limitCodes = new Set(['ENOSPC', 'EMFILE', 'ENFILE'])

/** Returns undefined for a name with U+FFFD, which replaces bytes that are not UTF-8: the real name is unknown. */
const validFileName = (name: string) => (name.includes('\ufffd') ? undefined : name)

/**
 * Creates a bounded set of file system watches, one for each directory. On Linux the system watches the directory itself, also after it is renamed.
 *
 * @param limit Maximum number of watches.
 */
export function createWatchHandles(limit: number, { log, overflown, watch = fs.watch }: HandlesOptions): WatchHandles {
  const most = Math.ceil(queueLength() / 2)
  let count = 0
  let full = false
  let isRefused = false
  let heardNow = 0

  const refuse = (reason: string) => {
    full = true
    if (!isRefused)
      log('warn', 'not every directory can be watched: the others are compared periodically', {
        watched: count,
        reason,
      })
    isRefused = true
    return undefined
  }

  const countHeard = () => {
    heardNow++
    if (heardNow === 1)
      setImmediate(() => {
        heardNow = 0
      })
    if (heardNow === most) overflown()
  }

  return {
    open: (place, onEvent, old) => {
      if (full) return undefined
      if (count >= limit + (old === undefined ? 0 : 1)) return refuse('the limit of this mount')
      const self = place.at.slice(Math.max(place.at.lastIndexOf('/'), place.at.lastIndexOf('\\')) + 1)
      let watcher: ReturnType<WatchFile>
      try {
        watcher = watch(place.at, { persistent: false, recursive: false }, (_, name) => {
          countHeard()
          // A directory reports its own events under the name by which it was opened.
          onEvent(name === null || name === self ? undefined : validFileName(name))
        })
      } catch (error) {
        const code = errorCodeOf(error) ?? ''
        return limitCodes.has(code) ? refuse(code) : undefined
      }
      count++
      let open = true
      const close = () => {
        if (!open) return
        open = false
        count--
        watcher.close()
      }
      watcher.on('error', (error) => {
        close()
        const code = errorCodeOf(error) ?? ''
        if (limitCodes.has(code)) refuse(code)
        onEvent(undefined, true)
      })
      old?.close()
      return { close }
    },
    retry: () => {
      if (isRefused && !full) log('info', 'every directory is watched again', { watched: count })
      isRefused = full
      full = false
    },
    get limited() {
      return isRefused
    },
  }
}

/** One recursive watch of a whole root, for macOS and Windows. */
function createTreeHandles(root: string, { log, overflown, watch = fs.watch }: HandlesOptions): WatchHandles {
  const listeners = new Map<string, Set<OnFileEvent>>()
  let watcher: ReturnType<WatchFile> | undefined
  let full = false
  let isRefused = false

  const fail = (error: unknown): undefined => {
    watcher?.close()
    watcher = undefined
    full = true
    if (!isRefused)
      log('warn', 'the folder cannot be watched: it is compared periodically', { root, reason: errorCodeOf(error) })
    isRefused = true
    const all = [...listeners.values()].flatMap((some) => [...some])
    listeners.clear()
    for (const onEvent of all) onEvent(undefined, true)
  }

  const tell = (directory: string, name: string | undefined) => {
    for (const onEvent of listeners.get(canonicalPath(directory)) ?? []) onEvent(name)
  }

  const hear = (name: string | null): void => {
    if (name === null) {
      overflown()
      return
    }
    const changedPath = path.join(root, name)
    tell(path.dirname(changedPath), validFileName(path.basename(changedPath)))
    // The system may report a directory in place of everything that has changed in it.
    tell(changedPath, undefined)
  }

  const begin = () => {
    const mine = watch(root, { persistent: false, recursive: true }, (_, name) => {
      if (watcher === mine) hear(name)
    })
    mine.on('error', (error) => {
      if (watcher === mine) fail(error)
    })
    return mine
  }

  return {
    open: ({ at }, onEvent, old) => {
      if (full) return undefined
      try {
        watcher ??= begin()
      } catch (error) {
        return fail(error)
      }
      old?.close()
      const key = canonicalPath(at)
      listeners.set(key, (listeners.get(key) ?? new Set()).add(onEvent))
      return {
        close: () => {
          const some = listeners.get(key)
          some?.delete(onEvent)
          if (some?.size === 0) listeners.delete(key)
          if (listeners.size > 0) return
          watcher?.close()
          watcher = undefined
        },
      }
    },
    retry: () => {
      if (isRefused && !full && watcher !== undefined) log('info', 'the folder is watched again', { root })
      isRefused = full
      full = false
    },
    get limited() {
      return isRefused
    },
  }
}

/** Returns the maximum length of an inotify event queue, see inotify(7). */
function queueLength(): number {
  try {
    return Number(fs.readFileSync('/proc/sys/fs/inotify/max_queued_events', 'latin1')) || 16_384
  } catch {
    return 16_384
  }
}

export type Schedule<T extends object> = ReturnType<typeof createSchedule<T>>

const quiet = 20
const latest = 100

export function createSchedule<T extends object>() {
  const items = new Map<T, { readonly first: number; due: number }>()
  const spared = new WeakMap<T, number>()
  let wakeAt = 0
  const event = createAutoResetEvent()

  const putItem = (item: T, due: number) => {
    const delayedItem = items.get(item)
    if (delayedItem === undefined) items.set(item, { first: performance.now(), due })
    else delayedItem.due = due
    if (due < wakeAt) event.set()
  }

  return {
    /** Records an event: the item is due after 20 ms without events, at most 100 ms after the first one, unless it is spared. */
    touch: (item: T): void => {
      const now = performance.now()
      const first = items.get(item)?.first ?? now
      putItem(item, Math.max(Math.min(now + quiet, first + latest), spared.get(item) ?? 0))
    },
    later: (item: T, ms: number) => putItem(item, performance.now() + ms),
    /** Prevents events from making the item due within the next `ms` milliseconds. */
    spare: (item: T, ms: number) => void spared.set(item, performance.now() + ms),
    has: (item: T) => items.has(item),
    get size() {
      return items.size
    },
    drop: (item: T) => void items.delete(item),
    takeAll: (): readonly T[] => {
      const all = [...items.keys()]
      items.clear()
      return all
    },
    take: (): readonly T[] => {
      const now = performance.now()
      const due = [...items].filter((entry) => entry[1].due <= now).map(([item]) => item)
      for (const item of due) items.delete(item)
      return due
    },
    /** Waits until an item is due, or until a time as `performance.now()` returns it. */
    idle: async (until: number): Promise<void> => {
      wakeAt = until
      for (const { due } of items.values()) wakeAt = Math.min(wakeAt, due)
      const ms = wakeAt - performance.now()
      if (ms > 0) {
        const timer = setTimeout(event.set, ms)
        timer.unref()
        await event.wait()
        clearTimeout(timer)
      }
      wakeAt = 0
    },
    wake: event.set,
  }
}

/**
 * Creates a queue of calls that wait for the next turn of a loop.
 *
 * @param drained Resolves when the changes that the turn found were handled.
 */
export function createTurnQueue(wake: () => void, drained: () => Promise<void>) {
  let waiting: ((isWhole: boolean) => void)[] = []
  let isEnded = false
  const take = () => {
    const taken = waiting
    waiting = []
    return taken
  }
  return {
    /** Wakes the loop. Resolves to whether its turn could examine everything; `false` if the loop has ended. */
    ask: async (): Promise<boolean> => {
      if (isEnded) return false
      const isWhole = await new Promise<boolean>((resolve) => {
        waiting.push(resolve)
        wake()
      })
      await drained()
      return isWhole
    },
    /** Answers the calls so far, if there are any, with the result of the work. */
    answer: async (work: () => Promise<boolean>): Promise<void> => {
      const taken = take()
      if (taken.length === 0) return
      try {
        const isWhole = await work()
        for (const resolve of taken) resolve(isWhole)
      } finally {
        for (const resolve of taken) resolve(false)
      }
    },
    end: (): void => {
      isEnded = true
      for (const resolve of take()) resolve(false)
    },
  }
}

export type ComparisonRounds = ReturnType<typeof createRounds>

interface RoundsOptions<T> {
  readonly directories: ReadonlySet<T>
  readonly look: (directory: T) => Promise<void>
  readonly begun: () => void
  /** Time from the end of one round to the beginning of the next, in milliseconds. */
  readonly intervalMs: number
  /** Length of the pause after a time slice, as a multiple of the slice. The first round, which is urgent, has no pauses. */
  readonly rest: number
}

const sliceMs = 10

export function createRounds<T>({ directories, look, begun, intervalMs, rest }: RoundsOptions<T>) {
  let round: Iterator<T> | undefined
  let due = 0
  let first = true

  return {
    /** Time at which the next round begins or continues, as `performance.now()` returns it. */
    get due() {
      return due
    },
    go: async (): Promise<void> => {
      if (round === undefined) {
        begun()
        round = [...directories].values()
      }
      const start = performance.now()
      let isEnded = false
      while (!isEnded && performance.now() - start < sliceMs) {
        const next = round.next()
        if (next.done === true) isEnded = true
        else await look(next.value)
      }
      const now = performance.now()
      if (isEnded) {
        round = undefined
        due = now + intervalMs
        first = false
      } else due = now + (first ? 0 : (now - start) * rest)
    },
    /** Makes a new round due now, without pauses like the first. */
    reset: (): void => {
      round = undefined
      due = 0
      first = true
    },
  }
}

export type PendingChanges = ReturnType<typeof createPendingChanges>

/** Maximum number of changed paths in a batch. Above it, the batch becomes "everything may have changed", which is cheaper to handle. */
const maxPaths = 10_000

export function createPendingChanges() {
  let changes = new Map<string, Change>()
  let all = false
  let end: { readonly error?: unknown } | undefined
  const event = createAutoResetEvent()
  let draining: (() => void)[] = []

  const drain = () => {
    for (const resolve of draining) resolve()
    draining = []
  }

  const take = (): readonly Change[] => {
    const batch = all ? [{}] : [...changes.values()]
    changes = new Map()
    all = false
    return batch
  }

  return {
    /** Merges a change with those added before. One without a path, "everything may have changed", replaces them. */
    add: ({ path, listed, of, aliases = [] }: Change): void => {
      event.set()
      if (path !== undefined && !all) {
        const key = of === undefined ? path : `\0${of} ${path}`
        const change = changes.get(key)
        // If one of the merged changes has no aliases, the result has none.
        const isAlone = aliases.length === 0 || (change !== undefined && change.aliases === undefined)
        changes.set(key, {
          path,
          ...defined({ of }),
          ...((listed === true || change?.listed === true) && { listed: true }),
          ...(!isAlone && { aliases: [...new Set([...(change?.aliases ?? []), ...aliases])] }),
        })
      }
      all ||= path === undefined || changes.size > maxPaths
      if (all) changes.clear()
    },
    end: (error?: unknown): void => {
      end ??= error === undefined ? {} : { error }
      event.set()
      drain()
    },
    /** Resolves when the consumer has handled all changes so far, or when the batches have ended. */
    drained: (): Promise<void> =>
      new Promise((resolve) => {
        if (end !== undefined) return resolve()
        draining.push(resolve)
        event.set()
      }),
    /** Yields all changes since the last batch, merged, whenever the consumer requests the next batch. */
    batches: async function* (): AsyncGenerator<readonly Change[]> {
      for (;;) {
        while (end === undefined && !all && changes.size === 0) {
          drain()
          await event.wait()
        }
        if (end?.error !== undefined) throw end.error
        if (end !== undefined) return
        // Changes found in one turn of the event loop are sent together.
        await new Promise((resolve) => setImmediate(resolve))
        yield take()
      }
    },
  }
}

/** Updates about directories, by identity: true if the directory is newly watched or has changed, false if it is not watched any more. */
export type DirectoryUpdates = readonly (readonly [identity: string, watched: boolean])[]

export type UpdateCollector = ReturnType<typeof createUpdateCollector>

/** Collects the updates about directories for the main thread. Runs in the watch thread. */
export function createUpdateCollector() {
  const watchedIdentities = new Set<string>()
  const dues = new Map<string, boolean>()
  return {
    touch: (identity: string) => void dues.set(identity, true),
    lose: (identity: string): void => {
      // The main thread needs no update about a directory that it does not know.
      if (watchedIdentities.has(identity)) dues.set(identity, false)
      else dues.delete(identity)
    },
    take: (): DirectoryUpdates => {
      const entries = [...dues]
      dues.clear()
      for (const [identity, watched] of entries) {
        if (watched) watchedIdentities.add(identity)
        else watchedIdentities.delete(identity)
      }
      return entries
    },
  }
}

/**
 * Returns the state of a directory by its identity: a number that differs after any change in it; undefined when the directory has no reliable watch.
 */
export type StateOfDirectory = (identity: string) => number | undefined

type Confirmations = ReturnType<typeof createDirectoryStates>

/** Bounds of the wait for an answer, and the time to examine one file, in milliseconds. */
const [shortestWaitMs, longestWaitMs, lookMs] = [5, 50, 0.005]

/**
 * Keeps the states of the directories of one watch, in the main thread.
 *
 * The kernel queues an event with the change that causes it. So once the watch thread has handled its queued events, a watched directory without an
 * event is unchanged.
 *
 * @param send Requests the updates of the watch thread, which sends them once it has handled its queued events.
 */
export function createDirectoryStates(send: () => void) {
  const states = new Map<string, number>()
  let changes = 0
  let closed = false
  const createQuestion = () => withResolvers<boolean>()
  type Question = ReturnType<typeof createQuestion>
  let currentQuestion: Question | undefined
  /**
   * The next request, shared by all callers that come while another request is pending: the pending answer may miss changes that they
   * know of.
   */
  let next: Question | undefined

  const begin = (question: Question): Question => {
    currentQuestion = question
    send()
    return question
  }

  return {
    /**
     * Asks the watch thread which directories are unchanged. Resolves to undefined if it does not answer in time: then examine the files.
     *
     * @param files Number of files to examine without an answer. The time-out is the time that this takes, within bounds.
     */
    ask: async (files = 0): Promise<StateOfDirectory | undefined> => {
      if (closed) return undefined
      const question = currentQuestion === undefined ? begin(createQuestion()) : (next ?? createQuestion())
      if (question !== currentQuestion) next = question
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<false>((resolve) => {
        timer = setTimeout(resolve, Math.min(longestWaitMs, Math.max(shortestWaitMs, files * lookMs)), false)
      })
      const isAnswered = await Promise.race([question.promise, late])
      clearTimeout(timer)
      return isAnswered && !closed ? (identity) => states.get(identity) : undefined
    },
    answered: (dues: DirectoryUpdates): void => {
      for (const [identity, watched] of dues) {
        if (watched) states.set(identity, ++changes)
        else states.delete(identity)
      }
      const answered = currentQuestion
      currentQuestion = undefined
      if (next !== undefined) begin(next)
      next = undefined
      answered?.resolve(true)
    },
    close: (): void => {
      closed = true
      states.clear()
      currentQuestion?.resolve(false)
      next?.resolve(false)
    },
  }
}

/** Options of a watch. They are plain data, because they are sent to another thread. */
export interface WatchOptions extends VisibilityOptions, PermitOptions {
  readonly root: OpenedRoot
  readonly gitignore: boolean
  readonly worktrees: boolean
  readonly symlinks: 'deny' | 'beneath'
  readonly portable: boolean
  /** Time from the end of one round to the beginning of the next, in milliseconds. */
  readonly reconcile: number
  readonly watches: number
  readonly recursive: boolean
}

export interface WatchStart {
  readonly options: WatchOptions
  /** Carries {@link WatchRequest}s to the thread. Closing the port ends the watch. */
  readonly port: MessagePort
}

/** Requests the next changes (`more`), the updates about directories (`dues`), or an examination of everything that may have changed (`look`). */
export type WatchRequest = 'more' | 'dues' | 'look'

export type WatchThreadMessage =
  | { readonly armed: true }
  | { readonly changes: readonly Change[] }
  | { readonly dues: DirectoryUpdates }
  /** The changes up to a request `look` were sent. `isWhole`: every directory could be examined. */
  | { readonly looked: { readonly isWhole: boolean } }
  | { readonly log: Parameters<Log> }
  | { readonly degraded: Degradation | undefined }
  | { readonly failed: { readonly kind: ErrorKind; readonly message: string; readonly cause: string } }

interface Thread {
  readonly worker: Worker
  users: number
  failure: unknown
}

/** Time that the thread outlives its last user, in milliseconds. */
const lingerMs = 2000

let thread: Thread | undefined

/**
 * Begins a watch in the shared watch thread.
 *
 * @param onLost Called when the thread has ended, for any reason.
 * @returns A function that releases this user.
 */
function beginInThread(message: WatchStart, onLost: (failure: unknown) => void): () => void {
  const mine = thread ?? startThread()
  thread = mine
  mine.users++
  const onEnd = () => onLost(mine.failure)
  mine.worker.once('exit', onEnd)
  mine.worker.postMessage(message, [message.port])
  let released = false
  return () => {
    if (released) return
    released = true
    mine.worker.off('exit', onEnd)
    mine.users--
    const stop = () => {
      if (mine.users > 0 || thread !== mine) return
      thread = undefined
      void mine.worker.terminate()
    }
    if (mine.users === 0) setTimeout(stop, lingerMs).unref()
  }
}

function startThread(): Thread {
  const worker = startWatchWorker()
  const mine: Thread = { worker, users: 0, failure: undefined }
  worker.unref()
  worker.setMaxListeners(0)
  // The event `exit`, which ends the watches, follows.
  worker.on('error', (error) => {
    mine.failure = error
  })
  worker.on('exit', () => {
    if (thread === mine) thread = undefined
  })
  return mine
}

function threadEnded(cause: unknown): ResourceError {
  return unavailable('The thread that watches files has ended.', {}, cause)
}

function startWatchWorker(): Worker {
  const file = path.join(import.meta.dirname, '../../../dist/providers/files/watch-worker.js')
  const settings = { name: 'hikidashi-files', execArgv: [], resourceLimits: { maxYoungGenerationSizeMb: 4 } }
  try {
    return new Worker(file, settings)
  } catch (error) {
    throw threadEnded(error)
  }
}

/**
 * Watches the files below a root in a separate thread.
 *
 * @param closing Ends all watches.
 */
export function createFilesWatch(
  places: RootAccess,
  options: Omit<WatchOptions, 'root'>,
  log: Log,
  closing: AbortSignal,
) {
  const confirmations = new Set<Confirmations>()
  const inboxes = new Set<ReturnType<typeof openInbox>>()
  const degraded = new Map<AbortSignal, Degradation>()
  const watch = async (caller: AbortSignal): Promise<AsyncIterable<Change>> => {
    const signal = AbortSignal.any([caller, closing])
    // Threads share descriptors, so the thread watches the directory that is open here, even if it was renamed.
    const root = await places.root(signal)
    const report = (now: Degradation | undefined) => {
      if (now === undefined || signal.aborted) degraded.delete(signal)
      else degraded.set(signal, now)
    }
    try {
      const watched = { ...options, root: { real: places.real, at: root.at } }
      const inbox = openInbox(watched, log, report, confirmations, signal)
      await inbox.next()
      signal.throwIfAborted()
      inboxes.add(inbox)
      return changesOf(inbox, signal, () => inboxes.delete(inbox))
    } finally {
      root.close()
    }
  }
  return {
    watch,
    catchUp: async (): Promise<boolean> => {
      const results = await Promise.all([...inboxes].map((inbox) => inbox.look()))
      return results.length > 0 && results.every((isWhole) => isWhole)
    },
    degraded: (): Degradation | undefined => degraded.values().next().value,
    /** Asks a running watch which directories are unchanged; see {@link StateOfDirectory}. Resolves to undefined if no watch runs. */
    confirm: async (files: number): Promise<StateOfDirectory | undefined> => {
      const [running] = confirmations
      return running?.ask(files)
    },
  }
}

function openInbox(
  options: WatchOptions,
  log: Log,
  report: (degraded: Degradation | undefined) => void,
  confirmations: Set<Confirmations>,
  signal: AbortSignal,
) {
  const { port1: port, port2 } = new MessageChannel()
  const messages: Exclude<WatchThreadMessage, { log: unknown } | { degraded: unknown } | { dues: unknown }>[] = []
  const arrival = createAutoResetEvent()
  let closed = false
  let failure: unknown
  const looks: ((isWhole: boolean) => void)[] = []

  const mine = createDirectoryStates(() => port.postMessage('dues' satisfies WatchRequest))
  const close = () => {
    if (closed) return
    closed = true
    signal.removeEventListener('abort', close)
    confirmations.delete(mine)
    mine.close()
    port.close()
    release()
    report(undefined)
    arrival.set()
    for (const resolve of looks.splice(0)) resolve(false)
  }
  const release = beginInThread({ options, port: port2 }, (error) => {
    failure = error
    close()
  })
  signal.addEventListener('abort', close)
  port.on('message', (message: WatchThreadMessage) => {
    if ('log' in message) return log(...message.log)
    if ('degraded' in message) return report(message.degraded)
    if ('dues' in message) return mine.answered(message.dues)
    messages.push(message)
    arrival.set()
  })

  return {
    close,
    /** Examines everything that may have changed. Resolves, once all changes so far were taken, to whether every directory could be examined. */
    look: (): Promise<boolean> =>
      new Promise((resolve) => {
        if (closed) return resolve(false)
        looks.push(resolve)
        port.postMessage('look' satisfies WatchRequest)
      }),
    /** Returns the next changes; none once the signal has aborted. The first, empty answer means that the watch is armed. */
    next: async (): Promise<readonly Change[]> => {
      while (messages.length === 0 && !closed) await arrival.wait()
      if (signal.aborted) return []
      const message = messages.shift()
      if (message !== undefined && 'armed' in message) {
        // A watch alone must not keep the process alive.
        port.unref()
        confirmations.add(mine)
        return []
      }
      if (message !== undefined && 'changes' in message) {
        port.postMessage('more' satisfies WatchRequest)
        return message.changes
      }
      if (message !== undefined && 'looked' in message) {
        looks.shift()?.(message.looked.isWhole)
        return []
      }
      close()
      if (message === undefined) throw threadEnded(failure)
      const { kind, message: text, cause } = message.failed
      throw new ResourceError(kind, text, {}, { cause })
    },
  }
}

async function* changesOf(
  inbox: ReturnType<typeof openInbox>,
  signal: AbortSignal,
  over: () => void,
): AsyncGenerator<Change> {
  try {
    while (!signal.aborted) yield* await inbox.next()
  } finally {
    over()
    inbox.close()
  }
}
