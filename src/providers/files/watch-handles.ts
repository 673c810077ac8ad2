import * as fs from 'node:fs'
import { errorCodeOf } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
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

export type Handles = ReturnType<typeof createHandles>

/**
 * A bounded set of file system watches.
 *
 * @param limit Maximum number of watches.
 * @param overflown Called when so many events arrived at once that the system may have dropped some, which Node does not report.
 */
export function createHandles(limit: number, log: Log, overflown: () => void) {
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
    /**
     * Watches a directory from now on, even if it is renamed: the system watches the open object, and continues when the place is closed.
     * Returns undefined when the limit of this set or of the system is reached.
     *
     * @param old Watch to replace and close. It stays as it is when it cannot be replaced.
     */
    open: (place: Pick<Place, 'at'>, heard: OnFileEvent, old?: WatchHandle): WatchHandle | undefined => {
      if (full) return undefined
      if (count >= limit + (old === undefined ? 0 : 1)) return refuse('the limit of this mount')
      const self = place.at.slice(Math.max(place.at.lastIndexOf('/'), place.at.lastIndexOf('\\')) + 1)
      let watcher: fs.FSWatcher
      try {
        watcher = fs.watch(place.at, { persistent: false }, (_, name) => {
          countHeard()
          // A directory reports its own events under the name by which it was opened. U+FFFD replaces bytes that are not UTF-8.
          heard(name === null || name === self || name.includes('\ufffd') ? undefined : name)
        })
      } catch (error) {
        const code = errorCodeOf(error) ?? ''
        // ENOSPC: fs.inotify.max_user_watches. EMFILE: max_user_instances, or too many open files.
        return code === 'ENOSPC' || code === 'EMFILE' || code === 'ENFILE' ? refuse(code) : undefined
      }
      count++
      let open = true
      const close = () => {
        if (!open) return
        open = false
        count--
        watcher.close()
      }
      watcher.on('error', () => {
        close()
        heard(undefined, true)
      })
      old?.close()
      return { close }
    },
    /** Lets later calls of `open` try again after a limit was reached. */
    retry: (): void => {
      if (refused && !full) log('info', 'every directory is watched again', { watched: count })
      refused = full
      full = false
    },
    /** Whether some directory has no watch because a limit was reached. */
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
