import { type Fault, type Plain, parseGlob, type Token } from './glob-tokens.ts'

/**
 * One step of a program. A number matches that code point. The next step of the program follows it.
 *
 * `star` stays in its segment. `deep` (always followed by `inside`) skips any number of whole segments. `all` matches any
 * characters. A fork continues at each of its steps without reading a character. `exact` ends a glob for one path; `within` ends
 * a glob for a directory and everything below it.
 */
export type GlobStep = Plain | 'deep' | 'inside' | 'all' | Fork | 'exact' | 'within'

interface Fork {
  readonly to: readonly number[]
}

/** A nondeterministic automaton. It begins at its first step. */
export interface GlobProgram {
  readonly steps: readonly GlobStep[]
}

const slash = 0x2f
const dot = 0x2e

/**
 * The part of a segment before a token. `stars` counts (up to 2) the stars of a segment that has nothing else yet: the program
 * does not contain them yet, since `**` has another meaning when it is the whole segment.
 */
interface Segment {
  readonly stars: 0 | 1 | 2
  /** Number of dots if the segment consists of dots so far; 3 for any other segment, and 0 for an empty one. */
  readonly dots: 0 | 1 | 2 | 3
  /** Whether the last step is a star. */
  readonly starred: boolean
}

/**
 * How a glob is anchored to the root of the mount. `start`: nothing was read. `loose`: it has no slash except a final one, so it
 * matches at any depth. `untied`: it has an inner slash, which has not been read yet. `leading`: only the leading slash was read.
 * `tied`: an inner slash was read. `closing`: the final slash was read.
 */
type Tie = 'start' | 'loose' | 'untied' | 'leading' | 'tied' | 'closing'

interface State extends Segment {
  /** Index of the next token; the number of tokens at the end. */
  readonly at: number
  readonly tie: Tie
}

/** A transition of the automaton: steps to another state or to an end. */
interface Way {
  readonly steps: readonly GlobStep[]
  readonly to: State | 'exact' | 'within'
}

const fresh: Segment = { stars: 0, dots: 0, starred: false }

/**
 * Compiles a glob. Alternatives are forks of one program, so the program's size is in proportion to the length of the glob, no
 * matter how many alternatives its braces multiply out to.
 *
 * @throws ResourceError `invalid` (reason `glob`) for a malformed glob, or one beyond a limit.
 */
export function compileGlobProgram(pattern: string): GlobProgram {
  const { tokens, fault } = parseGlob(pattern)
  const jumps = jumpsIn(tokens)
  const starts: readonly Way[] = [
    { steps: ['deep', 'inside'], to: { ...fresh, at: 0, tie: 'loose' } },
    { steps: [], to: { ...fresh, at: 0, tie: 'start' } },
  ]
  const ways = new Map<string, readonly Way[]>()
  const pending = starts.map(({ to }) => to)
  for (let state = pending.pop(); state !== undefined; state = pending.pop()) {
    if (typeof state === 'string' || ways.has(keyOf(state))) continue
    const { at } = state
    const jump = jumps.get(at)
    const found =
      jump?.map((to): Way => ({ steps: [], to: { ...state, at: to } })) ?? waysFrom(state, tokens[at], fault)
    ways.set(keyOf(state), found)
    pending.push(...found.map(({ to }) => to))
  }
  return { steps: layOut(starts, withoutDeadEnds(ways)) }
}

function keyOf(to: Way['to']): string {
  return typeof to === 'string' ? to : `${to.at} ${to.tie} ${to.stars} ${to.dots} ${to.starred}`
}

/** Returns, for each `{`, the beginnings of its alternatives, and for each `,` and `}`, the token after the braces. */
function jumpsIn(tokens: readonly Token[]): ReadonlyMap<number, readonly number[]> {
  const jumps = new Map<number, readonly number[]>()
  const open: number[][] = []
  for (const [at, token] of tokens.entries()) {
    if (token === '{') open.push([at])
    else if (token === ',') open.at(-1)?.push(at)
    else if (token === '}') {
      const [start = at, ...commas] = open.pop() ?? []
      jumps.set(
        start,
        [start, ...commas].map((part) => part + 1),
      )
      for (const part of [...commas, at]) jumps.set(part, [at + 1])
    }
  }
  return jumps
}

/** Returns the transitions over a token, or (`undefined`) at the end. */
function waysFrom(state: State, token: Token | undefined, fault: Fault): readonly Way[] {
  const { at, tie, stars, dots, starred } = state
  const isEmpty = stars === 0 && dots === 0
  if (tie === 'closing') return token === undefined ? [{ steps: [], to: 'within' }] : []
  if (token === undefined) return waysPastEnd(state, fault)
  if (token === slash) return waysPastSlash(state, fault)
  const next = { at: at + 1, tie: tie === 'start' ? 'untied' : tie === 'leading' ? 'tied' : tie } as const
  if (token === 'star') {
    if (isEmpty || stars > 0) {
      return [{ steps: [], to: { ...next, stars: isEmpty ? 1 : 2, dots: 0, starred: true } }]
    }
    return [{ steps: starred ? [] : ['star'], to: { ...next, stars: 0, dots: 3, starred: true } }]
  }
  const isDot = token === dot && stars === 0 && dots < 2
  const segment = { stars: 0, dots: isDot ? (dots === 0 ? 1 : 2) : 3, starred: false } as const
  return [{ steps: [...heldIn(state), token as Plain], to: { ...next, ...segment } }]
}

/** Returns the step for stars that were held back, when something else is in their segment or there is only one. */
function heldIn({ stars }: Segment): readonly GlobStep[] {
  return stars > 0 ? ['star'] : []
}

const dotFault = 'it has a segment "." or "..", which no path has'
const emptyFault = 'it has an empty segment'

function waysPastEnd(state: State, fault: Fault): readonly Way[] {
  const { tie, stars, dots } = state
  if (dots === 1 || dots === 2) throw fault(dotFault)
  if (tie === 'start') throw fault('it is empty')
  if (tie === 'leading') throw fault(emptyFault)
  // The final slash is missing, which only `closing` reads: no transition.
  if (tie === 'untied' || (stars === 0 && dots === 0)) return []
  return [{ steps: stars === 2 ? ['all'] : heldIn(state), to: 'exact' }]
}

/** A final slash means the directory and everything below it; any other slash separates two segments. */
function waysPastSlash(state: State, fault: Fault): readonly Way[] {
  const { tie, stars, dots } = state
  const at = state.at + 1
  if (dots === 1 || dots === 2) throw fault(dotFault)
  if (stars === 0 && dots === 0) {
    if (tie === 'start') return [{ steps: [], to: { ...fresh, at, tie: 'leading' } }]
    if (tie === 'loose') return []
    throw fault(emptyFault)
  }
  const held = heldIn(state)
  const between: Way = {
    steps: stars === 2 ? ['deep', 'inside'] : [...held, slash],
    to: { ...fresh, at, tie: 'tied' },
  }
  const last: Way = {
    steps: [...(stars === 2 ? (['all'] as const) : held), slash, 'all'],
    to: { ...fresh, at, tie: 'closing' },
  }
  if (tie === 'loose') return [last]
  return tie === 'untied' ? [between] : [between, last]
}

/** Returns the same transitions, without those that lead to no end. */
function withoutDeadEnds(ways: ReadonlyMap<string, readonly Way[]>): (to: Way['to']) => readonly Way[] {
  const sources = new Map<string, string[]>()
  for (const [key, found] of ways)
    for (const { to } of found) sources.set(keyOf(to), [...(sources.get(keyOf(to)) ?? []), key])
  const live = new Set<string>()
  const pending = ['exact', 'within']
  for (let key = pending.pop(); key !== undefined; key = pending.pop()) {
    if (live.has(key)) continue
    live.add(key)
    pending.push(...(sources.get(key) ?? []))
  }
  return (from) => (ways.get(keyOf(from)) ?? []).filter(({ to }) => live.has(keyOf(to)))
}

/** Writes the transitions one after the other. A state that is reached from several, or leads to several, gets a fork. */
function layOut(starts: readonly Way[], waysOf: (to: Way['to']) => readonly Way[]): readonly GlobStep[] {
  const steps: (GlobStep | { to: number[] })[] = []
  const places = new Map<string, number>()
  const isLive = ({ to }: Way) => typeof to === 'string' || waysOf(to).length > 0
  /** Transitions to be written, and the fork that leads to each. */
  const pending: { readonly way: Way; readonly fork: { to: number[] } | undefined }[] = []
  const fan = (ways: readonly Way[]) => {
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
    const place = places.get(keyOf(way.to))
    if (place !== undefined) {
      steps.push({ to: [place] })
      continue
    }
    places.set(keyOf(way.to), steps.length)
    fan(waysOf(way.to))
  }
  return steps
}
