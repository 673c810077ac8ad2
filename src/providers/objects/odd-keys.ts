import type { Log } from '../../core/log.ts'
import { isPath } from '../../core/path.ts'

/** Keys that no path can hold: they are left out, and reported to the operator. */
export interface OddKeys {
  /** Returns the path of a key below the prefix of the mount; undefined when it has none, which is recorded. */
  pathOf(key: string): string | undefined
  /** The same for a common prefix, which ends in `/`. */
  directoryOf(key: string): string | undefined
  /** Logs the recorded keys if there are new ones. */
  tell(): void
}

/** Maximum number of keys recorded, and of keys named in the log. */
const [most, named] = [10_000, 5]

/** @param prefix Key prefix of the mount: empty, or ending in `/`. */
export function createOddKeys(prefix: string, log: Log): OddKeys {
  const odd = new Set<string>()
  const folders = new Set<string>()
  let told = 0

  const note = (key: string) => {
    const kind = key.endsWith('/') ? folders : odd
    if (kind.size < most) kind.add(key)
  }

  return {
    pathOf: (key) => {
      const path = key.slice(prefix.length)
      if (key.startsWith(prefix) && path !== '' && !path.endsWith('/') && isPath(path)) return path
      // The placeholder object of the mount's own folder is not a missing entry.
      if (path !== '') note(key)
      return undefined
    },
    directoryOf: (key) => {
      const path = key.slice(prefix.length)
      if (key.startsWith(prefix) && path !== '' && isPath(path)) return path
      // A common prefix is no key; the keys below it are unknown here.
      note(`${key}…`)
      return undefined
    },
    tell: () => {
      const count = odd.size + folders.size
      if (count === told) return
      told = count
      const keys = [...[...odd].slice(0, named), ...[...folders].slice(0, named)].slice(0, named)
      log('warn', 'keys that are no valid paths are left out: give the objects other keys to serve them', {
        keys: odd.size,
        folders: folders.size,
        // Keys are untrusted: escape line ends and terminal control characters.
        examples: keys.map((key) => JSON.stringify(key).replace(/[^\x20-\x7e]/g, escaped)),
      })
    },
  }
}

const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
