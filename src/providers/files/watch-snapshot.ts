import type { BigIntStats } from 'node:fs'
import type { Names } from './names.ts'
import { isSettled, tickMs } from './stats.ts'

/** Change of a file since the last look. */
type Verdict = 'came' | 'went' | 'changed' | undefined

/** Period in which stats were taken, in milliseconds since 1970. */
export interface Look {
  readonly from: number
  readonly until: number
}

/** State of the files of one directory at the last look: 33 bytes per name, besides the names. */
export interface Snapshot {
  readonly names: Names
  /**
   * Records the current state at a name, by its index (undefined: not served), and returns the change.
   *
   * A file that was never examined before counts as changed when its times say that it changed since the watch began: its event may still be
   * on its way, or lost. So does, when in doubt, one that was never examined, or only so soon after a change that a further change may have
   * left the same times. In doubt means that an event says that the directory changed, or that no event would say it.
   */
  note(index: number, stats: BigIntStats | undefined, doubt: boolean, look: Look): Verdict
  /** Whether a file is served at the index, as far as known. False for directories. */
  serves(index: number): boolean
  /** Returns the snapshot with the new names of the directory, and the files that are gone. */
  renew(names: Names): { readonly snapshot: Snapshot; readonly gone: readonly string[] }
}

/** State of a name. Directories are always `absent`. */
const [absent, unknown, settled, fresh] = [0, 1, 2, 3]
const noNames: Names = { names: [], links: new Set() }

/** Returns the snapshot of a directory of which nothing is known, not even names. */
export function emptySnapshot(): Snapshot {
  return snapshotOf(noNames, new Uint8Array(), new BigInt64Array(), 0)
}

/**
 * Returns the snapshot of a directory whose files were not examined yet.
 *
 * @param since Time at which the watch of the directory began, in milliseconds since 1970.
 */
export function createSnapshot(names: Names, since: number): Snapshot {
  const states = Uint8Array.from(names.names, (name) => (name.endsWith('/') ? absent : unknown))
  return snapshotOf(names, states, new BigInt64Array(states.length * 4), since)
}

const now = new BigInt64Array(4)

/** @param stamps For each name: inode, size, mtime and ctime in nanoseconds. */
function snapshotOf(names: Names, states: Uint8Array, stamps: BigInt64Array, since: number): Snapshot {
  /** Whether the stamp is unchanged. Stores the new one. */
  const stamp = (at: number, { ino, size, mtimeNs, ctimeNs }: BigIntStats): boolean => {
    // Stored in an array of the same type first, so that an inode above 63 bits is compared in its truncated form.
    now.set([ino, size, mtimeNs, ctimeNs])
    const same = now.every((value, i) => value === stamps[at + i])
    if (!same) stamps.set(now, at)
    return same
  }

  return {
    names,
    note: (index, stats, doubt, { from, until }) => {
      const before = states[index]
      if (stats === undefined) {
        states[index] = absent
        return before === absent || (before === unknown && !doubt) ? undefined : 'went'
      }
      const same = stamp(index * 4, stats)
      states[index] = isSettled(stats, from, tickMs, until) ? settled : fresh
      if (before === absent) return 'came'
      // The clock of a file system is behind by a tick at most.
      if (before === unknown) return doubt || Number(stats.ctimeMs) > since - tickMs ? 'changed' : undefined
      return !same || (before === fresh && doubt) ? 'changed' : undefined
    },
    serves: (index) => states[index] !== absent,
    renew: (next) => {
      const nextStates = new Uint8Array(next.names.length)
      const nextStamps = new BigInt64Array(next.names.length * 4)
      const indices = new Map(names.names.map((name, index) => [name, index]))
      for (const [index, name] of next.names.entries()) {
        const from = indices.get(name)
        if (from === undefined) continue
        indices.delete(name)
        nextStates[index] = states[from] ?? absent
        nextStamps.set(stamps.subarray(from * 4, from * 4 + 4), index * 4)
      }
      const gone = [...indices].filter(([, index]) => states[index] !== absent).map(([name]) => name)
      return { snapshot: snapshotOf(next, nextStates, nextStamps, since), gone }
    },
  }
}
