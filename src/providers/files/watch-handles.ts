import * as fs from 'node:fs'
import * as path from 'node:path'
import { errorCodeOf } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { canonicalPath } from '../../core/path.ts'
import type { Place } from './access.ts'

/** A file system watch of one directory. */
export interface WatchHandle {
  close(): void
}

/**
 * Receives the changed name in the directory, or undefined when the directory itself or an unknown name changed.
 *
 * @param lost Whether the watch has ended because of an error.
 */
export type OnFileEvent = (name: string | undefined, lost?: boolean) => void

/** The file system watches of a mount. */
export interface Handles {
  /**
   * Watches a directory from now on. Returns undefined when a limit of this set or of the system is reached.
   *
   * @param old Watch to replace and close. It stays as it is when it cannot be replaced.
   */
  open(place: Pick<Place, 'at'>, heard: OnFileEvent, old?: WatchHandle): WatchHandle | undefined
  /** Lets later calls of `open` try again after a limit was reached. */
  retry(): void
  /** Whether some directory has no watch because a limit was reached. */
  readonly limited: boolean
}

export interface HandlesOptions {
  readonly log: Log
  /** Called when the system may have dropped events: so many arrived at once, or it says so. */
  readonly overflown: () => void
  /** `fs.watch`, which a test can simulate. */
  readonly watch?: WatchFile
}

/** Opens the watches of a root: one of the whole tree, or one of each directory. */
export function openHandles(
  root: string,
  { recursive, watches }: { readonly recursive: boolean; readonly watches: number },
  options: HandlesOptions,
): Handles {
  return recursive ? createTreeHandles(root, options) : createHandles(watches, options)
}

export type WatchFile = (
  path: string,
  options: { readonly persistent: false; readonly recursive: boolean },
  listener: (event: string, name: string | null) => void,
) => Pick<fs.FSWatcher, 'close'> & { on(event: 'error', listener: (error: Error) => void): unknown }

/** ENOSPC: fs.inotify.max_user_watches. EMFILE: max_user_instances, too many open files, or more paths than FSEvents takes (an event). */
const limitCodes = new Set(['ENOSPC', 'EMFILE', 'ENFILE'])

/** U+FFFD replaces bytes that are not UTF-8. */
const nameIn = (name: string) => (name.includes('\ufffd') ? undefined : name)

/**
 * A bounded set of file system watches, one for each directory. The system watches the open object, even if it is renamed and when the place is
 * closed.
 *
 * @param limit Maximum number of watches.
 */
export function createHandles(limit: number, { log, overflown, watch = fs.watch }: HandlesOptions): Handles {
  const most = Math.ceil(queueLength() / 2)
  let count = 0
  let full = false
  let refused = false
  let heardNow = 0

  const refuse = (reason: string) => {
    full = true
    if (!refused)
      log('warn', 'not every directory can be watched: the others are compared periodically', {
        watched: count,
        reason,
      })
    refused = true
    return undefined
  }

  /** All events of a full queue arrive in one turn of the event loop, so a possible overflow is known before any scan is evaluated. */
  const countHeard = () => {
    heardNow++
    if (heardNow === 1)
      setImmediate(() => {
        heardNow = 0
      })
    if (heardNow === most) overflown()
  }

  return {
    open: (place, heard, old) => {
      if (full) return undefined
      if (count >= limit + (old === undefined ? 0 : 1)) return refuse('the limit of this mount')
      const self = place.at.slice(Math.max(place.at.lastIndexOf('/'), place.at.lastIndexOf('\\')) + 1)
      let watcher: ReturnType<WatchFile>
      try {
        watcher = watch(place.at, { persistent: false, recursive: false }, (_, name) => {
          countHeard()
          // A directory reports its own events under the name by which it was opened.
          heard(name === null || name === self ? undefined : nameIn(name))
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
        heard(undefined, true)
      })
      old?.close()
      return { close }
    },
    retry: () => {
      if (refused && !full) log('info', 'every directory is watched again', { watched: count })
      refused = full
      full = false
    },
    get limited() {
      return refused
    },
  }
}

/**
 * One recursive watch of a whole root, for macOS and Windows. FSEvents takes no more than 4,096 paths in all, and on Windows nobody could rename or
 * delete a directory that has a watch of its own.
 */
export function createTreeHandles(root: string, { log, overflown, watch = fs.watch }: HandlesOptions): Handles {
  /** Listeners by the canonical path of their directory. A directory behind a link has several. */
  const listeners = new Map<string, Set<OnFileEvent>>()
  let watcher: ReturnType<WatchFile> | undefined
  let full = false
  let refused = false

  /** Ends the watch until the next call of `retry`. */
  const fail = (error: unknown): undefined => {
    watcher?.close()
    watcher = undefined
    full = true
    if (!refused)
      log('warn', 'the folder cannot be watched: it is compared periodically', { root, reason: errorCodeOf(error) })
    refused = true
    const all = [...listeners.values()].flatMap((some) => [...some])
    listeners.clear()
    for (const heard of all) heard(undefined, true)
  }

  const tell = (directory: string, name: string | undefined) => {
    for (const heard of listeners.get(canonicalPath(directory)) ?? []) heard(name)
  }

  const hear = (name: string | null): void => {
    if (name === null) {
      overflown()
      return
    }
    const changed = path.join(root, name)
    tell(path.dirname(changed), nameIn(path.basename(changed)))
    // The system may report a directory in place of everything that has changed in it.
    tell(changed, undefined)
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
    open: ({ at }, heard, old) => {
      if (full) return undefined
      try {
        watcher ??= begin()
      } catch (error) {
        return fail(error)
      }
      old?.close()
      const key = canonicalPath(at)
      listeners.set(key, (listeners.get(key) ?? new Set()).add(heard))
      return {
        close: () => {
          const some = listeners.get(key)
          some?.delete(heard)
          if (some?.size === 0) listeners.delete(key)
          if (listeners.size > 0) return
          watcher?.close()
          watcher = undefined
        },
      }
    },
    retry: () => {
      if (refused && !full && watcher !== undefined) log('info', 'the folder is watched again', { root })
      refused = full
      full = false
    },
    get limited() {
      return refused
    },
  }
}

/** Returns the size of the system's event queue of this process, see inotify(7). */
function queueLength(): number {
  try {
    return Number(fs.readFileSync('/proc/sys/fs/inotify/max_queued_events', 'latin1')) || 16_384
  } catch {
    return 16_384
  }
}
