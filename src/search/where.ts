import { compileGlob, type PathTest } from '../core/glob.ts'
import type { TextFilter } from '../store/index.ts'
import type { Found } from './part.ts'
import type { SearchFilter } from './search-index.ts'

/** Applies the whole filter, because the store may ignore a part of it. */
export function whereTest(where: SearchFilter = {}): (found: Found) => boolean {
  const { mounts, mimeType, audience, minPriority, since, path } = where
  const glob: PathTest = path === undefined ? () => true : remembered(compileGlob(path))
  return ({ facts, mount, path: own }) => {
    if (mounts !== undefined && !mounts.includes(mount)) return false
    if (mimeType !== undefined && !isOfType(facts.mimeType, mimeType)) return false
    const { audience: meant = [], priority, modified } = facts
    if (audience !== undefined && meant.length > 0 && !meant.includes(audience)) return false
    if (minPriority !== undefined && !(priority !== undefined && priority >= minPriority)) return false
    if (since !== undefined && !(modified !== undefined && modified >= since)) return false
    return glob(own)
  }
}

/** Compares each path once: a document may have very many passages. */
function remembered(test: PathTest): PathTest {
  const known = new Map<string, boolean>()
  return (path) => {
    const matches = known.get(path) ?? test(path)
    known.set(path, matches)
    return matches
  }
}

function isOfType(found: string | undefined, wanted: string): boolean {
  if (wanted.endsWith('/*')) return found?.startsWith(wanted.slice(0, -1)) === true
  return found === wanted
}

/** Returns the part of a filter that the store applies. It has no globs. */
export function filterOf(where: SearchFilter | undefined): TextFilter | undefined {
  if (where === undefined) return undefined
  const { path: _, since, ...rest } = where
  const filter = { ...rest, ...(since === undefined ? {} : { since: Math.floor(since) }) }
  return Object.values(filter).every((value) => value === undefined) ? undefined : filter
}
