import { braceJumps, emptySegment, type GlobStep, parseGlob, type Transition, transitionsFrom } from './glob-syntax.ts'
import { canonicalPath } from './path.ts'

/** Whether a glob matches a path of a mount. A final `/` marks a directory. */
export type PathTest = (path: string) => boolean

interface GlobOptions {
  /** Compares in lower case, code point by code point, by the Unicode default mapping (no locale). Default false. */
  readonly ignoreCase?: boolean
}

const slash = 0x2f

/**
 * Compiles a glob over the paths of a mount.
 * `*` and `?` stay within a segment; `**` as a whole segment is any number of segments (elsewhere it is `*`), so `x/**`
 * is everything below `x` and not `x` itself. `[abc]`, `[a-z]`, `[!a-z]` or `[^a-z]` is one character of a class,
 * `{a,b}` either alternative, nested up to 20 deep, and `\` escapes the next character. Names that begin with a dot are
 * names like any other. One character is one code point. Canonically equivalent texts are equal: both are compared in
 * their composed form (NFC).
 * As in .gitignore, a glob without a `/` (except a final one) is compared with the base name at any depth; a glob that
 * begins with `/` is anchored to the root of the mount. A glob that ends in `/` matches a directory and everything
 * below it. Any other glob matches files and directories alike. Unlike in .gitignore there is no negation.
 * @throws ResourceError `invalid` (reason `argument`) for a malformed glob, one longer than 4096 characters, or one
 * with more than 1000 alternatives.
 */
export function compileGlob(pattern: string, options: GlobOptions = {}): PathTest {
  return compileGlobs([pattern], options)
}

/**
 * Compiles globs into a test that passes when any of them matches. Without globs it does not pass. See {@link
 * compileGlob}.
 */
export function compileGlobs(patterns: readonly string[], options: GlobOptions = {}): PathTest {
  const form = options.ignoreCase === true ? foldCase : canonicalPath
  const programs = patterns.map((pattern) => compileGlobProgram(form(pattern)))
  return (path) => {
    const codes = codePoints(form(path))
    return programs.some((program) => runGlob(program, codes))
  }
}

export function escapeGlob(name: string): string {
  return name.replace(/^!|[*?[\]{}\\]/g, '\\$&')
}

/** Converts code point by code point, so that no neighbour makes a difference (`Σ` is `σ` at the end of a word too). */
function foldCase(text: string): string {
  return canonicalPath(Array.from(canonicalPath(text), (character) => character.toLowerCase()).join(''))
}

function codePoints(text: string): readonly number[] {
  const indexes: number[] = []
  for (const character of text) indexes.push(codePoint(character))
  return indexes
}

function codePoint(character: string): number {
  return character.codePointAt(0) ?? 0
}

/** A compiled glob: a nondeterministic automaton, which begins at its first step. */
export interface GlobProgram {
  readonly steps: readonly GlobStep[]
}

/**
 * Alternatives are forks of one program, because braces may multiply out to many.
 * @throws ResourceError `invalid` (reason `argument`) for a malformed glob, or one beyond a limit.
 */
export function compileGlobProgram(pattern: string): GlobProgram {
  const { tokens, fault } = parseGlob(pattern)
  const jumps = braceJumps(tokens)
  const starts: readonly Transition[] = [
    { steps: ['deep', 'inside'], to: { ...emptySegment, at: 0, tie: 'loose' } },
    { steps: [], to: { ...emptySegment, at: 0, tie: 'start' } },
  ]
  const ways = new Map<string, readonly Transition[]>()
  const pending = starts.map(({ to }) => to)
  for (let state = pending.pop(); state !== undefined; state = pending.pop()) {
    if (typeof state === 'string' || ways.has(stateKey(state))) continue
    const { at } = state
    const jump = jumps.get(at)
    const transitions =
      jump?.map((to): Transition => ({ steps: [], to: { ...state, at: to } })) ??
      transitionsFrom(state, tokens[at], fault)
    ways.set(stateKey(state), transitions)
    pending.push(...transitions.map(({ to }) => to))
  }
  return { steps: layOut(starts, withoutDeadEnds(ways)) }
}

function stateKey(to: Transition['to']): string {
  return typeof to === 'string' ? to : `${to.at} ${to.tie} ${to.stars} ${to.dots} ${to.starred}`
}

function withoutDeadEnds(
  ways: ReadonlyMap<string, readonly Transition[]>,
): (to: Transition['to']) => readonly Transition[] {
  const sources = new Map<string, string[]>()
  for (const [key, transitions] of ways)
    for (const { to } of transitions) sources.set(stateKey(to), [...(sources.get(stateKey(to)) ?? []), key])
  const live = new Set<string>()
  const pending = ['exact', 'within']
  for (let key = pending.pop(); key !== undefined; key = pending.pop()) {
    if (live.has(key)) continue
    live.add(key)
    pending.push(...(sources.get(key) ?? []))
  }
  return (from) => (ways.get(stateKey(from)) ?? []).filter(({ to }) => live.has(stateKey(to)))
}

function layOut(
  starts: readonly Transition[],
  waysOf: (to: Transition['to']) => readonly Transition[],
): readonly GlobStep[] {
  const steps: (GlobStep | { to: number[] })[] = []
  const stepOf = new Map<string, number>()
  const isLive = ({ to }: Transition) => typeof to === 'string' || waysOf(to).length > 0
  /** Transitions that are not written yet, and the fork that leads to each. */
  const pending: { readonly way: Transition; readonly fork: { to: number[] } | undefined }[] = []
  const fan = (ways: readonly Transition[]) => {
    const [only, ...others] = ways
    if (only !== undefined && others.length === 0) return pending.push({ way: only, fork: undefined })
    const fork = { to: [] }
    steps.push(fork)
    return pending.push(...ways.map((way) => ({ way, fork })))
  }
  fan(starts.filter(isLive))
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { way, fork } = next
    fork?.to.push(steps.length)
    steps.push(...way.steps)
    if (typeof way.to === 'string') {
      steps.push(way.to)
      continue
    }
    const step = stepOf.get(stateKey(way.to))
    if (step !== undefined) {
      steps.push({ to: [step] })
      continue
    }
    stepOf.set(stateKey(way.to), steps.length)
    fan(waysOf(way.to))
  }
  return steps
}

/**
 * Runs a program on a path (a final `/` marks a directory) and returns whether it matches. All branches run at once: each code
 * point is compared once per live step.
 */
export function runGlob({ steps }: GlobProgram, path: readonly number[]): boolean {
  const isDirectory = path.at(-1) === slash
  const run = startRun(steps)
  const length = isDirectory ? path.length - 1 : path.length
  for (let at = 0; at < length && run.alive() > 0; at++) run.read(path[at] ?? 0)
  if (run.has('exact') || run.has('within')) return true
  if (isDirectory) run.read(slash)
  return isDirectory && run.has('within')
}

/** Arrays that all runs reuse: a run is over before the next one starts. */
let scratch = { entered: new Int32Array(0), alive: new Int32Array(0), next: new Int32Array(0) }
/** Counts the starts of all runs, and the code points that they have read. `entered` holds such counts, so it need not be cleared. */
let clock = 0

/** Only one run exists at a time, see `scratch`. */
function startRun(steps: readonly GlobStep[]) {
  const size = steps.length
  if (scratch.entered.length < size || clock > 2 ** 30) {
    const make = () => new Int32Array(Math.max(256, 2 * size))
    scratch = { entered: make(), alive: make(), next: make() }
    clock = 0
  }
  const { entered } = scratch
  let { alive, next } = scratch
  let count = 0
  const enter = (target: number) => {
    for (let at = target; entered[at] !== clock; ) {
      entered[at] = clock
      const step = steps[at]
      if (typeof step === 'object' && 'to' in step) {
        for (const branch of step.to) enter(branch)
        return
      }
      next[count++] = at
      if (step === 'star' || step === 'all') at += 1
      else if (step === 'deep') at += 2
    }
  }
  clock++
  enter(0)
  return {
    alive: () => count,
    at: (index: number) => next[index] ?? 0,
    has: (end: 'exact' | 'within') => {
      for (let i = 0; i < count; i++) if (steps[next[i] ?? 0] === end) return true
      return false
    },
    read: (code: number) => {
      ;[alive, next] = [next, alive]
      const living = count
      count = 0
      clock++
      for (let i = 0; i < living; i++) {
        const target = advance(steps, alive[i] ?? 0, code)
        if (target !== -1) enter(target)
      }
    },
  }
}

/** How many of the paths below a directory satisfy a condition: all of them, none, or it depends on the path. */
export type Reach = 'all' | 'some' | 'none'

/**
 * Compiles globs into a function that returns how much below a directory (empty, or ending in `/`) they match, by the globs
 * alone. It may return `some` although all or none match.
 */
export function compileReach(patterns: readonly string[]): (directory: string) => Reach {
  const programs = patterns.map((pattern) => compileGlobProgram(canonicalPath(pattern)))
  return (directory) => {
    const path = codePoints(canonicalPath(directory))
    let reach: Reach = 'none'
    // Run every program, even after one has decided: the time must not reveal which directories match.
    for (const { steps } of programs) {
      const run = startRun(steps)
      for (let at = 0; at < path.length && run.alive() > 0; at++) run.read(path[at] ?? 0)
      for (let index = 0; index < run.alive(); index++) {
        const at = run.at(index)
        if (takesAnything(steps, at)) reach = 'all'
        else if (!isEnd(steps[at]) && reach === 'none') reach = 'some'
      }
    }
    return reach
  }
}

function isEnd(step: GlobStep | undefined): boolean {
  return step === 'exact' || step === 'within'
}

/** Whether every path leads from a step to an end: `**` at the end, and `*` as a name at any depth. */
function takesAnything(steps: readonly GlobStep[], at: number): boolean {
  if (steps[at] === 'all') return isEnd(steps[at + 1])
  return steps[at] === 'deep' && steps[at + 2] === 'star' && isEnd(steps[at + 3])
}

function advance(steps: readonly GlobStep[], at: number, code: number): number {
  const step = steps[at]
  if (typeof step === 'number') return step === code ? at + 1 : -1
  if (step === undefined || step === 'exact' || step === 'within') return -1
  if (step === 'all') return at
  if (code === slash) return step === 'inside' ? at - 1 : -1
  if (step === 'star' || step === 'inside') return at
  if (step === 'any' || step === 'deep') return at + 1
  // A fork is never live itself.
  if ('to' in step) return -1
  return step.ranges.some(([first, last]) => code >= first && code <= last) === step.negated ? -1 : at + 1
}
