import { isResourceError } from '../../core/errors.ts'
import { createSlices, type Slices } from '../../core/kit/breath.ts'
import { createRecent } from '../../core/kit/lru.ts'
import type { Launcher } from './launch.ts'

/** Dates of the last change of the files at a commit, by path, in milliseconds since 1970. Files without a known date are missing. */
export type FileDates = Pick<PathMap<number>, 'get' | 'has' | 'size' | typeof Symbol.iterator>

/** One commit of a walk through the history. `time` is the commit time, in milliseconds since 1970. */
interface WalkedCommit {
  readonly commit: string
  readonly parents: readonly string[]
  readonly time: number
}

/** The paths that a commit changed compared with a parent; a `Set` also satisfies it. */
type ChangedPaths = { has(path: string): boolean; keys(): Iterable<string> }

/** A set of paths: all paths except those in `named` if `all` is true, else only those. */
interface Paths {
  readonly all: boolean
  readonly named: PathMap<true>
}

/**
 * Finds for every path the commit that last changed it. Follows paths through the history as `git log -- PATH` does: if a commit differs from
 * every parent in a path, it has last changed the path; otherwise the path continues at the first parent with the same content. So every path
 * is at one commit at a time, and all paths that are unchanged so far move together, without being enumerated.
 *
 * Commits come newest first. A commit whose child comes later (clocks differ) is skipped: its paths have no date.
 */
export function createAssignment(start: string, known: (commit: string) => FileDates | undefined) {
  const slices = createSlices()
  const dates = createPathMap<number>()
  const pending = new Map<string, Paths>([[start, { all: true, named: createPathMap() }]])
  const passed = new Set<string>()
  let lost = false

  const handOn = async (paths: Paths, parent: string) => {
    if (!paths.all && paths.named.size === 0) return
    const there = known(parent)
    if (there !== undefined) {
      for (const [path, time] of there) {
        if (holds(paths, path)) dates.set(path, time)
        if (slices.due()) await slices.rest()
      }
    } else if (passed.has(parent)) lost = true
    else pending.set(parent, await union(pending.get(parent), paths, slices))
  }

  return {
    dates: dates as FileDates,
    /** Whether the commit of every path was found. */
    isDone: () => pending.size === 0 && !lost,
    /** Takes the next commit and its changed paths, compared with each parent (for a root commit: with the empty tree). */
    take: async ({ commit, parents, time }: WalkedCommit, changes: readonly ChangedPaths[]): Promise<void> => {
      passed.add(commit)
      const paths = pending.get(commit)
      if (paths === undefined) return
      pending.delete(commit)
      const [first = createPathMap<true>(), ...others] = changes
      const moved = others.map((): Paths => ({ all: false, named: createPathMap() }))
      for (const path of first.keys()) {
        if (slices.due()) await slices.rest()
        if (!holds(paths, path)) continue
        drop(paths, path)
        const same = others.findIndex((other) => !other.has(path))
        if (same === -1) dates.set(path, time)
        else moved[same]?.named.set(path, true)
      }
      const [parent, ...rest] = parents
      if (parent !== undefined) await handOn(paths, parent)
      for (const [index, other] of rest.entries())
        await handOn(moved[index] ?? { all: false, named: createPathMap() }, other)
    },
  }
}

function holds({ all, named }: Paths, path: string): boolean {
  return named.has(path) !== all
}

function drop({ all, named }: Paths, path: string): void {
  if (all) named.set(path, true)
  else named.delete(path)
}

async function union(a: Paths | undefined, b: Paths, slices: Slices): Promise<Paths> {
  if (a === undefined) return b
  const [whole, part] = a.all ? [a, b] : [b, a]
  for (const path of part.named.keys()) {
    if (whole.all) whole.named.delete(path)
    else whole.named.set(path, true)
    if (slices.due()) await slices.rest()
  }
  return whole
}

/** Parses `git diff-tree --stdin --raw -z --always`: an id for each comparison, then metadata and a path for each change. */
function createChangeReader(steps: readonly WalkedCommit[], take: ReturnType<typeof createAssignment>['take']) {
  let index = -1
  let changes: PathMap<true>[] = []
  let rest: Buffer = Buffer.alloc(0)
  let isPath = false

  const expected = (step: WalkedCommit | undefined) => Math.max(1, step?.parents.length ?? 1)

  /** Passes a commit to `take` once all its comparisons are complete. */
  const finish = async () => {
    const step = steps[index]
    if (step !== undefined && changes.length === expected(step)) {
      await take(step, changes)
      changes = []
      index++
    } else if (index === -1) index = 0
    changes.push(createPathMap())
  }

  return {
    read: async (chunk: Buffer): Promise<void> => {
      const all = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
      let start = 0
      for (let end = all.indexOf(0); end !== -1; end = all.indexOf(0, start)) {
        if (isPath) changes.at(-1)?.set(all.toString('utf8', start, end), true)
        else if (all[start] !== 0x3a) await finish()
        // A change begins with a colon; its path follows.
        isPath = !isPath && all[start] === 0x3a
        start = end + 1
      }
      rest = all.subarray(start)
    },
    end: async (): Promise<void> => {
      const step = steps[index]
      if (step !== undefined && changes.length === expected(step)) await take(step, changes)
    },
  }
}

type PathMap<V> = ReturnType<typeof createPathMap<V>>

const maxParts = 256
/** Maximum number of paths in a single map. */
const maxUndivided = 16_384

/**
 * A map of paths that never blocks the event loop for long as it grows: it is split into several maps. A single map of a million keys is
 * rehashed in one step when it is full, which takes 80 ms.
 */
function createPathMap<V>() {
  let maps: readonly Map<string, V>[] = [new Map()]
  let size = 0
  const mapFor = (path: string) => maps[hash(path) % maps.length] as Map<string, V>
  const divide = () => {
    const [all] = maps
    maps = Array.from({ length: maxParts }, () => new Map())
    for (const [path, value] of all ?? []) mapFor(path).set(path, value)
  }
  return {
    get size() {
      return size
    },
    get: (path: string) => mapFor(path).get(path),
    has: (path: string) => mapFor(path).has(path),
    set: (path: string, value: V): void => {
      if (size === maxUndivided && maps.length === 1) divide()
      const map = mapFor(path)
      if (!map.has(path)) size++
      map.set(path, value)
    },
    delete: (path: string): void => {
      if (mapFor(path).delete(path)) size--
    },
    keys: function* (): Generator<string> {
      for (const map of maps) yield* map.keys()
    },
    *[Symbol.iterator](): Generator<readonly [path: string, value: V]> {
      for (const map of maps) yield* map
    },
  }
}

/** Hashes the last characters, because the first ones are often the same. Not negative. */
function hash(path: string): number {
  let value = 0
  for (let i = Math.max(0, path.length - 32); i < path.length; i++) value = (value * 31 + path.charCodeAt(i)) | 0
  return (value ^ (value >>> 8) ^ (value >>> 16)) >>> 0
}

/** Returns the dates of the last commits of all files at a commit, as `git log -1 -- PATH` prints for each of them. */
export type DatesOf = (commit: string) => Promise<FileDates>

/** Maximum number of cached dates, over all commits. Those of the last commit are always cached. */
const maxRememberedDates = 500_000
const maxStepsBytes = 512 * 1024 * 1024

/**
 * Finds the dates of all files in one walk of two processes. It first goes back only to the last requested commit, whose dates are known.
 *
 * @param maxCommits Maximum number of commits to examine. A file that none of them changed has no date.
 * @param budgetMs Time-out of a walk, in milliseconds; the dates found until then are kept.
 * @param shallow Commits whose parents are missing: their changes are unknown.
 */
export function createDates(
  launcher: Launcher,
  maxCommits: number,
  budgetMs: number,
  shallow: () => ReadonlySet<string>,
): DatesOf {
  const known = createRecent<FileDates>(maxRememberedDates, ({ size }) => size + 1000)
  const walking = new Map<string, Promise<FileDates>>()
  let latest: string | undefined
  let depth = shallow()

  const stepsFrom = async (commit: string, behind: string | undefined, signal: AbortSignal) => {
    const ends = ['--end-of-options', commit, ...(behind === undefined ? [] : [`^${behind}`]), '--']
    const args = ['rev-list', '--parents', '--timestamp', `--max-count=${maxCommits}`, ...ends]
    const { bytes } = await launcher.run({ args, limit: maxStepsBytes, signal })
    const slices = createSlices()
    const steps: WalkedCommit[] = []
    let start = 0
    for (let end = bytes.indexOf(0x0a); end !== -1; end = bytes.indexOf(0x0a, start)) {
      const [time, id = '', ...parents] = bytes.toString('latin1', start, end).split(' ')
      steps.push({ commit: id, parents, time: Number(time) * 1000 })
      start = end + 1
      if (slices.due()) await slices.rest()
    }
    return steps
  }

  /** Walks the history. `complete` tells whether the dates of all files were found, or all that can be. */
  const walk = async (commit: string, behind: string | undefined, signal: AbortSignal) => {
    const assignment = createAssignment(commit, (at) => known.get(at))
    let complete = false
    try {
      // Commits with missing parents are left out, because git reports all their files as new.
      const steps = (await stepsFrom(commit, behind, signal)).filter((step) => !shallow().has(step.commit))
      const reader = createChangeReader(steps, assignment.take)
      const input = steps.flatMap(({ commit: id, parents }) =>
        parents.length === 0 ? [`${id}\n`] : parents.map((parent) => `${id} ${parent}\n`),
      )
      const args = ['diff-tree', '--stdin', '-r', '--raw', '-z', '--root', '--always', '--no-renames', '--no-abbrev']
      await launcher.pipe({ args, input: input.join(''), signal }, async (chunk) => {
        await reader.read(chunk)
        return true
      })
      await reader.end()
      complete = assignment.isDone()
    } catch (error) {
      // Time-out or end of the available history (a partial clone): the dates found so far are valid.
      if (!signal.aborted && !isResourceError(error)) throw error
    }
    return { dates: assignment.dates, complete }
  }

  const find = async (commit: string): Promise<FileDates> => {
    const signal = AbortSignal.timeout(budgetMs)
    const short = latest === undefined ? undefined : await walk(commit, latest, signal)
    const dates = short?.complete === true ? short.dates : (await walk(commit, undefined, signal)).dates
    known.set(commit, dates)
    latest = commit
    return dates
  }

  return async (commit) => {
    if (depth !== shallow()) {
      // The history was deepened or made shallower.
      depth = shallow()
      latest = undefined
      known.clear()
    }
    const found = known.get(commit)
    if (found !== undefined) return found
    const walked = walking.get(commit) ?? find(commit).finally(() => walking.delete(commit))
    walking.set(commit, walked)
    return walked
  }
}
