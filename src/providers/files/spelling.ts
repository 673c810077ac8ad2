import type { BigIntStats } from 'node:fs'
import type { NameCache } from './names.ts'
import { indexAfter } from './order.ts'
import type { Place } from './place.ts'
import type { IsListed } from './walk.ts'

/** What one child of a directory is, without following it; `undefined` where nothing can be seen. */
export type Look = (place: Place, name: string, signal: AbortSignal) => Promise<BigIntStats | undefined>

export function createSpelling(names: Pick<NameCache, 'of'>, look: Look): IsListed {
  return async (parent, name, found, signal) => {
    if (!(await mayBeSpelledOtherwise(parent.place, name, found, signal))) return true
    const { names: listed } = await names.of(parent, signal)
    return [name, `${name}/`].some((one) => listed[indexAfter(listed, one) - 1] === one)
  }

  /** Whether the directory takes other spellings for the same: then one of these leads to the same place. */
  async function mayBeSpelledOtherwise(directory: Place, name: string, found: Place, signal: AbortSignal) {
    if (/~\d/.test(name)) return true
    for (const variant of variantsOf(name)) {
      const other = await look(directory, variant, signal)
      if (other !== undefined && other.ino === found.stats.ino && other.dev === found.stats.dev) return true
    }
    return false
  }
}

/** Spellings of which at least one is the same name, wherever the file system knows several of it. */
function variantsOf(name: string): readonly string[] {
  const turned = Array.from(name, (character) => {
    const lower = character.toLowerCase()
    return lower === character ? character.toUpperCase() : lower
  }).join('')
  // A soft hyphen is one of the characters that are passed over.
  const first = turned === name ? `${name}\u00ad` : turned
  return [...new Set([first, name.normalize('NFC'), name.normalize('NFD')])].filter((variant) => variant !== name)
}
