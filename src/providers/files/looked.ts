import type { Names } from './names.ts'

/** Facts of a served file that its entry shows. */
export interface FileFacts {
  readonly size: number
  /** In milliseconds since 1970. */
  readonly modified: number
  readonly version: string
}

/** Facts of the files of one directory, by the indices of their names: 80 bytes each, with the version. */
export interface Looked {
  /** Returns the facts of a file, `nothing` for a name that is not served, undefined for one that was not looked at. */
  at(index: number): FileFacts | 'nothing' | undefined
  /** Undefined forgets the file: facts that may change without an event in its directory are not kept. */
  note(index: number, facts: FileFacts | 'nothing' | undefined): void
}

/** The files that were looked at in each directory, kept as long as the names of the directory. */
export interface LookedCache {
  /** @param state State of the directory, which differs after any change in it. Facts of another state are dropped. */
  of(names: Names, state: number): Looked
  /**
   * Returns a recorder for files that are examined although their facts are known: it forgets facts that differ, so that no
   * later list shows an older state. Undefined when nothing is known.
   */
  comparing(names: Names): Looked | undefined
  /** Whether files of the directory were looked at, in any state. */
  knows(names: Names): boolean
}

/**
 * @param keptMs How long facts are kept, in milliseconds. A change without an event is shown after that: a write through a memory map, or by
 * another name of the file.
 */
export function createLookedCache(keptMs: number): LookedCache {
  const known = new WeakMap<Names, { readonly state: number; readonly until: number; readonly looked: Looked }>()
  return {
    knows: (names) => known.has(names),
    comparing: (names) => {
      const looked = known.get(names)?.looked
      return looked === undefined ? undefined : createComparing(looked)
    },
    of: (names, state) => {
      const last = known.get(names)
      const now = performance.now()
      if (last?.state === state && now < last.until) return last.looked
      const looked = createLooked(names.names.length)
      known.set(names, { state, until: now + keptMs, looked })
      return looked
    },
  }
}

function createComparing(known: Looked): Looked {
  return {
    at: () => undefined,
    note: (index, facts) => {
      const last = known.at(index)
      if (last !== undefined && versionOf(last) !== versionOf(facts)) known.note(index, undefined)
    },
  }
}

const versionOf = (facts: FileFacts | 'nothing' | undefined) => (typeof facts === 'object' ? facts.version : facts)

function createLooked(length: number): Looked {
  const sizes = new Float64Array(length)
  const times = new Float64Array(length)
  /** Undefined: not looked at. Empty: not served. */
  const versions = new Array<string | undefined>(length)
  return {
    at: (index) => {
      const version = versions[index]
      if (version === undefined) return undefined
      return version === '' ? 'nothing' : { size: sizes[index] ?? 0, modified: times[index] ?? 0, version }
    },
    note: (index, facts) => {
      versions[index] = facts === 'nothing' ? '' : facts?.version
      if (facts === 'nothing' || facts === undefined) return
      sizes[index] = facts.size
      times[index] = facts.modified
    },
  }
}
