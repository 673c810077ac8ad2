import type { BigIntStats } from 'node:fs'
import type { Names } from './names.ts'
import { isSettled } from './permit.ts'

/** What became of a file since it was last looked at. */
export type Verdict = 'came' | 'went' | 'changed' | undefined

/** What the files of one directory were when they were last looked at: 33 bytes for each name, beside the names. */
export interface Snapshot {
  readonly names: Names
  /**
   * Records what is at a name now, by its index (`undefined`: nothing that is served), and answers what happened to it.
   *
   * A file that had not been looked at yet, or only so soon after a change that another one may have left the same times,
   * has changed where that is in doubt: something says that the directory did, or nothing would say it.
   *
   * @param time When it was looked at, or before, in milliseconds since 1970.
   */
  note(index: number, stats: BigIntStats | undefined, doubt: boolean, time: number): Verdict
  /** Whether something is served there, as far as is known. Directories are not. */
  serves(index: number): boolean
  /** The same directory with other names in it, and the files that are gone with theirs. */
  renew(names: Names): { readonly snapshot: Snapshot; readonly gone: readonly string[] }
}

/** What is known of a name. Of a directory, nothing is. */
const [absent, unknown, settled, fresh] = [0, 1, 2, 3]
const noNames: Names = { names: [], links: new Set() }

/** A directory of which nothing is known, not even names. */
export function emptySnapshot(): Snapshot {
  return snapshotOf(noNames, new Uint8Array(), new BigInt64Array())
}

/** A directory whose files were not looked at yet. */
export function createSnapshot(names: Names): Snapshot {
  const states = Uint8Array.from(names.names, (name) => (name.endsWith('/') ? absent : unknown))
  return snapshotOf(names, states, new BigInt64Array(states.length * 4))
}

const now = new BigInt64Array(4)

/** @param stamps Of each name: inode, size, times of content and of anything, to the nanosecond. */
function snapshotOf(names: Names, states: Uint8Array, stamps: BigInt64Array): Snapshot {
  /** Whether it is as it was, and makes it so. */
  const stamp = (at: number, { ino, size, mtimeNs, ctimeNs }: BigIntStats): boolean => {
    // Through an array of the same kind, so that an inode beyond 63 bits is compared with what becomes of it in there.
    now.set([ino, size, mtimeNs, ctimeNs])
    const same = now.every((value, i) => value === stamps[at + i])
    if (!same) stamps.set(now, at)
    return same
  }

  return {
    names,
    note: (index, stats, doubt, time) => {
      const before = states[index]
      if (stats === undefined) {
        states[index] = absent
        return before === absent || (before === unknown && !doubt) ? undefined : 'went'
      }
      const same = stamp(index * 4, stats)
      states[index] = isSettled(stats, time) ? settled : fresh
      if (before === absent) return 'came'
      if (before === unknown) return doubt ? 'changed' : undefined
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
      return { snapshot: snapshotOf(next, nextStates, nextStamps), gone }
    },
  }
}
