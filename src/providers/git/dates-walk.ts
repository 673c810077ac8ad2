/** When the files of a commit last changed, by path: milliseconds since 1970. What is not known is not in it. */
export type FileDates = ReadonlyMap<string, number>

/** One commit of a walk through the history. `time` is when it was committed, in milliseconds. */
export interface Step {
  readonly commit: string
  readonly parents: readonly string[]
  readonly time: number
}

/** Finds for every path the commit that it has its content from. */
export interface Assignment {
  readonly dates: FileDates
  /** Takes the next commit, and what it changed: paths in comparison with each parent (of a root: with nothing). */
  take(step: Step, changes: readonly ReadonlySet<string>[]): void
  /** Whether no path is left whose commit was not seen. */
  isDone(): boolean
}

/** Some paths, or all but some. */
interface Paths {
  readonly all: boolean
  readonly named: Set<string>
}

/**
 * Follows paths through the history as `git log -- PATH` does: a commit that differs from every parent in a path is its
 * last one, else the path goes on to the first parent with the same content. So every path is in one place at a time, and
 * all that nothing has changed yet go together, without being counted.
 *
 * Commits come newest first. One whose child comes later (clocks differ) is passed over: its paths have no date.
 */
export function createAssignment(start: string, known: (commit: string) => FileDates | undefined): Assignment {
  const dates = new Map<string, number>()
  const pending = new Map<string, Paths>([[start, { all: true, named: new Set() }]])
  const passed = new Set<string>()
  let lost = false

  const handOn = (paths: Paths, parent: string) => {
    if (!paths.all && paths.named.size === 0) return
    const there = known(parent)
    if (there !== undefined) {
      for (const [path, time] of there) if (holds(paths, path)) dates.set(path, time)
    } else if (passed.has(parent)) lost = true
    else pending.set(parent, union(pending.get(parent), paths))
  }

  return {
    dates,
    isDone: () => pending.size === 0 && !lost,
    take: ({ commit, parents, time }, changes) => {
      passed.add(commit)
      const paths = pending.get(commit)
      if (paths === undefined) return
      pending.delete(commit)
      const [first = new Set<string>(), ...others] = changes
      const moved = others.map((): Paths => ({ all: false, named: new Set() }))
      for (const path of first) {
        if (!holds(paths, path)) continue
        drop(paths, path)
        const same = others.findIndex((other) => !other.has(path))
        if (same === -1) dates.set(path, time)
        else moved[same]?.named.add(path)
      }
      const [parent, ...rest] = parents
      if (parent !== undefined) handOn(paths, parent)
      for (const [index, other] of rest.entries()) handOn(moved[index] ?? { all: false, named: new Set() }, other)
    },
  }
}

function holds({ all, named }: Paths, path: string): boolean {
  return named.has(path) !== all
}

function drop({ all, named }: Paths, path: string): void {
  if (all) named.add(path)
  else named.delete(path)
}

function union(a: Paths | undefined, b: Paths): Paths {
  if (a === undefined) return b
  const [whole, part] = a.all ? [a, b] : [b, a]
  for (const path of part.named) {
    if (whole.all) whole.named.delete(path)
    else whole.named.add(path)
  }
  return whole
}

/** Takes `git diff-tree --stdin --raw -z --always` apart: an id for each comparison, then facts and a path for each change. */
export function createChangeReader(steps: readonly Step[], take: Assignment['take']) {
  let index = -1
  let changes: Set<string>[] = []
  let rest: Buffer = Buffer.alloc(0)
  let isPath = false

  const expected = (step: Step | undefined) => Math.max(1, step?.parents.length ?? 1)

  /** Hands a commit on once all its comparisons are there. */
  const finish = () => {
    const step = steps[index]
    if (step !== undefined && changes.length === expected(step)) {
      take(step, changes)
      changes = []
      index++
    } else if (index === -1) index = 0
    changes.push(new Set())
  }

  return {
    read: (chunk: Buffer) => {
      const all = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
      let start = 0
      for (let end = all.indexOf(0); end !== -1; end = all.indexOf(0, start)) {
        if (isPath) changes.at(-1)?.add(all.toString('utf8', start, end))
        else if (all[start] !== 0x3a) finish()
        // A change begins with a colon; its path follows.
        isPath = !isPath && all[start] === 0x3a
        start = end + 1
      }
      rest = all.subarray(start)
    },
    end: () => {
      const step = steps[index]
      if (step !== undefined && changes.length === expected(step)) take(step, changes)
    },
  }
}
