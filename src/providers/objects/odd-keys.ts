import type { Log } from '../../core/log.ts'
import { isPath } from '../../core/path.ts'

/** Keys that no path can name: they are left out, and the operator is told. */
export interface OddKeys {
  /** The path of a key below the prefix of the mount; `undefined` where it has none, which is noted. */
  pathOf(key: string): string | undefined
  /** The same for what is common to several keys, which ends in `/`. */
  directoryOf(key: string): string | undefined
  /** Tells what was noted, if there is anything new. */
  tell(): void
}

/** So many are remembered, and so many named. */
const [most, named] = [10_000, 5]

/** @param prefix Of the mount: empty, or ends in `/`. */
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
      // The object that stands for the folder of the mount itself is nothing that is missing.
      if (path !== '') note(key)
      return undefined
    },
    directoryOf: (key) => {
      const path = key.slice(prefix.length)
      if (key.startsWith(prefix) && path !== '' && isPath(path)) return path
      // By itself it is no key; which ones are in it is not known here.
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
        // Names are anybody's: nothing in them ends a line or drives a terminal.
        examples: keys.map((key) => JSON.stringify(key).replace(/[^\x20-\x7e]/g, escaped)),
      })
    },
  }
}

const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
