import type { BigIntStats } from 'node:fs'
import { hasStamp, isSettled } from './permit.ts'
import type { Place } from './place.ts'

/**
 * Facts about the names in directories of local file systems, such as that there is no `.gitignore`. A fact holds until the directory changes:
 * whoever adds a name changes its times. So two look-ups of a small read need not be repeated for each read, a sixth of its work.
 */
export interface DirectoryFacts {
  /** Whether a fact was noted, and the directory has not changed since. */
  has(directory: Place, fact: string): boolean
  /** Notes a fact that was found after the stats of the place were taken. */
  note(directory: Place, fact: string): void
}

/** Maximum number of directories with facts, and of facts of one directory. */
const maxDirectories = 2000
const maxFacts = 10_000
/** How long a directory must be unchanged, in milliseconds: file systems such as FAT count time in steps of 2 s. */
const settledMs = 3000

interface Known {
  readonly stats: BigIntStats
  readonly facts: Set<string>
}

export function createDirectoryFacts(now: () => number = () => Date.now()): DirectoryFacts {
  const directories = new Map<bigint, Known>()

  const knownOf = ({ stats, local }: Place): Known | undefined => {
    const known = local ? directories.get(stats.ino) : undefined
    return known !== undefined && known.stats.dev === stats.dev && hasStamp(known.stats, stats) ? known : undefined
  }

  return {
    has: (directory, fact) => knownOf(directory)?.facts.has(fact) === true,
    note: (directory, fact) => {
      const { stats, local } = directory
      if (!local || !isSettled(stats, now(), settledMs)) return
      const known = knownOf(directory) ?? { stats, facts: new Set() }
      if (directories.size >= maxDirectories) directories.clear()
      // Names come from clients, which can make up any.
      if (known.facts.size >= maxFacts) known.facts.clear()
      known.facts.add(fact)
      directories.set(stats.ino, known)
    },
  }
}
