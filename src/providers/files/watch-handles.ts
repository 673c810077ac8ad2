import * as fs from 'node:fs'
import type { Log } from '../../core/log.ts'
import type { Place } from './place.ts'
import { codeOf } from './pool.ts'

/** Listens to one directory. */
export interface Handle {
  close(): void
}

/** What was heard: a name in the directory, or `undefined` where the directory itself changed, or it is not known what. */
export type Heard = (name: string | undefined) => void

/** Directories that are listened to, as many as there may be. */
export interface Handles {
  /**
   * Listens to a directory from now on, whatever becomes of its name: the system watches what is open there, and goes on
   * when the place is closed. `undefined` where it cannot: the limit is reached, of ours or of the system.
   *
   * @param old Takes its place, and is closed. It is left as it is where it cannot be replaced.
   */
  open(place: Pick<Place, 'at'>, heard: Heard, old?: Handle): Handle | undefined
  /** Tries again, after a limit was reached, with what is opened from now on. */
  retry(): void
  /** Whether a limit was reached, and something is not listened to for it. */
  readonly limited: boolean
  readonly count: number
}

export interface HandleOptions {
  /** How many there may be. */
  readonly limit: number
  readonly log: Log
  /** So much was heard at once that the system may have thrown something away, of which Node says nothing. */
  readonly overflown: () => void
}

export function createHandles({ limit, log, overflown }: HandleOptions): Handles {
  const most = queueLength() / 2
  let count = 0
  let full = false
  let refused = false
  let heardNow = 0

  const refuse = (reason: string) => {
    full = true
    if (!refused)
      log('warn', 'not every directory can be watched: the others are compared from time to time', {
        watched: count,
        reason,
      })
    refused = true
    return undefined
  }

  /** A queue that overflows is full, and all that it holds is heard in one turn of the event loop. */
  const countHeard = () => {
    if (heardNow++ > 0) return
    setImmediate(() => {
      const many = heardNow >= most
      heardNow = 0
      if (many) overflown()
    })
  }

  return {
    open: (place, heard, old) => {
      if (full) return undefined
      if (count >= limit + (old === undefined ? 0 : 1)) return refuse('the limit of this mount')
      const self = place.at.slice(Math.max(place.at.lastIndexOf('/'), place.at.lastIndexOf('\\')) + 1)
      let watcher: fs.FSWatcher
      try {
        watcher = fs.watch(place.at, { persistent: false }, (_, name) => {
          countHeard()
          // Of itself a directory speaks by the name by which it was opened, and a name may be no UTF-8.
          heard(name === null || name === self || name.includes('\ufffd') ? undefined : name)
        })
      } catch (error) {
        const code = codeOf(error) ?? ''
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
        heard(undefined)
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
    get count() {
      return count
    },
  }
}

/** How many events the system keeps for this process, see inotify(7). */
function queueLength(): number {
  try {
    return Number(fs.readFileSync('/proc/sys/fs/inotify/max_queued_events', 'latin1')) || 16_384
  } catch {
    return 16_384
  }
}
