import type { BigIntStats } from 'node:fs'
import { indexAfter } from '../../core/kit/sorted.ts'
import { canonicalPath, isComposable } from '../../core/path.ts'
import type { Place } from './access.ts'
import type { DirectoryNames } from './names.ts'
import { createDirectoryFacts } from './stats.ts'
import type { Position, Spelling } from './walk.ts'

interface ListedNames {
  of(directory: Position, signal: AbortSignal): Promise<DirectoryNames>
}

/** Returns the stats of one child of a directory, without following links; undefined when it is missing or inaccessible. */
export type Look = (place: Place, name: string, signal: AbortSignal) => Promise<BigIntStats | undefined>

/** @param names Returns the names that a directory lists, sorted. */
export function createSpelling(names: ListedNames, look: Look): Spelling {
  const facts = createDirectoryFacts()
  const composed = new WeakMap<DirectoryNames, ReadonlyMap<string, readonly string[]>>()

  return {
    isListed: async (parent, name, found, signal) => {
      if (facts.of(parent.place)?.has(`exactly ${name}`)) return true
      if (!(await mayBeSpelledOtherwise(parent.place, name, found, signal))) {
        facts.note(parent.place, `exactly ${name}`)
        return true
      }
      const { names: listed } = await names.of(parent, signal)
      return [name, `${name}/`].some((one) => listed[indexAfter(listed, one) - 1] === one)
    },
    listedFor: async (parent, name, signal) => {
      if (!isComposable(name)) return undefined
      const listed = await names.of(parent, signal)
      const byForm = composed.get(listed) ?? byCanonicalForm(listed.names)
      composed.set(listed, byForm)
      const [only, ...others] = byForm.get(canonicalPath(name)) ?? []
      return others.length === 0 && only !== name ? only : undefined
    },
  }

  /** Whether the directory may accept other spellings of the name: one of the variants leads to the same file. */
  async function mayBeSpelledOtherwise(directory: Place, name: string, found: Place, signal: AbortSignal) {
    if (/~\d/.test(name)) return true
    for (const variant of variantsOf(name)) {
      const other = await look(directory, variant, signal)
      if (other !== undefined && other.ino === found.stats.ino && other.dev === found.stats.dev) return true
    }
    return false
  }
}

/** Returns the names that are not ASCII by their canonical form. A directory's name has no final `/` here. */
function byCanonicalForm(names: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>()
  for (const listed of names) {
    if (!isComposable(listed)) continue
    const name = listed.endsWith('/') ? listed.slice(0, -1) : listed
    const form = canonicalPath(name)
    const alike = found.get(form) ?? []
    // A symbolic link is listed as a file and as a directory.
    if (!alike.includes(name)) found.set(form, [...alike, name])
  }
  return found
}

/** Returns other spellings of a name. On each file system that accepts several, at least one of them leads to the same file. */
function variantsOf(name: string): readonly string[] {
  const turned = Array.from(name, (character) => {
    const lower = character.toLowerCase()
    return lower === character ? character.toUpperCase() : lower
  }).join('')
  // A soft hyphen is one of the characters that such file systems ignore.
  const first = turned === name ? `${name}\u00ad` : turned
  return [...new Set([first, name.normalize('NFC'), name.normalize('NFD')])].filter((variant) => variant !== name)
}
