import type { Span } from './kit/sorted.ts'

export const unitsOf = (text: string) => Array.from({ length: text.length }, (_, at) => text.charCodeAt(at))

/** The automaton of Aho and Corasick (1975), which finds many patterns in one pass. States are numbers; 0 is the root. */
export interface Automaton {
  /** Target state by state and unit (`state * 65536 + unit`). */
  readonly next: ReadonlyMap<number, number>
  readonly fail: readonly number[]
  readonly depth: readonly number[]
  /** Length of the longest pattern that ends in a state; 0 when none does. */
  readonly longest: readonly number[]
  /** At the hash of three units: 1 if a pattern may begin with them. */
  readonly begins: Uint8Array
}

const hash = (a: number, b: number, c: number) => (a * 961 + b * 31 + c) & 0xffff

/** Builds the automaton of patterns: UTF-16 units or bytes, at least three in each. */
export function compilePatterns(patterns: readonly ArrayLike<number>[]): Automaton {
  const next = new Map<number, number>()
  const depth = [0]
  const longest = [0]
  const begins = new Uint8Array(65536)
  const edges: (readonly [state: number, unit: number, target: number])[] = []
  for (const units of patterns) {
    let state = 0
    for (let i = 0; i < units.length; i++) {
      const unit = units[i] ?? 0
      let target = next.get(state * 65536 + unit)
      if (target === undefined) {
        target = depth.length
        next.set(state * 65536 + unit, target)
        edges.push([state, unit, target])
        depth.push(i + 1)
        longest.push(0)
      }
      state = target
    }
    longest[state] = units.length
    begins[hash(units[0] ?? 0, units[1] ?? 0, units[2] ?? 0)] = 1
  }
  const fail = depth.map(() => 0)
  // Breadth first: the fail state of a state is nearer to the root, and must be complete first.
  edges.sort(([, , a], [, , b]) => (depth[a] ?? 0) - (depth[b] ?? 0))
  for (const [state, unit, target] of edges) {
    if (state !== 0) fail[target] = step({ next, fail }, fail[state] ?? 0, unit)
    if (longest[target] === 0) longest[target] = longest[fail[target] ?? 0] ?? 0
  }
  return { next, fail, depth, longest, begins }
}

function step({ next, fail }: Pick<Automaton, 'next' | 'fail'>, from: number, unit: number): number {
  for (let state = from; ; state = fail[state] ?? 0) {
    const target = next.get(state * 65536 + unit)
    if (target !== undefined) return target
    if (state === 0) return 0
  }
}

interface Units {
  at(index: number): number
  /**
   * Returns the first index from `at` on at which a pattern may begin; the greater of `at` and `to - 2` if there is
   * none.
   */
  seek(begins: Uint8Array, at: number, to: number): number
}

// `seekInText` and the `seek` of `unitsInBytes` are alike on purpose: one loop over both kinds of input would be
// slower.
export const unitsInText = (text: string): Units => ({
  at: (index) => text.charCodeAt(index),
  seek: (begins, from, to) => seekInText(text, begins, from, to),
})

/** The `seek` of {@link unitsInText}. */
export function seekInText(text: string, begins: Uint8Array, from: number, to: number): number {
  let first = text.charCodeAt(from)
  let second = text.charCodeAt(from + 1)
  for (let at = from; at + 2 < to; at++) {
    const third = text.charCodeAt(at + 2)
    if (begins[hash(first, second, third)] !== 0) return at
    first = second
    second = third
  }
  return Math.max(from, to - 2)
}

export const unitsInBytes = (bytes: Uint8Array): Units => ({
  at: (index) => bytes[index] as number,
  seek: (begins, from, to) => {
    let [first, second] = [bytes[from] as number, bytes[from + 1] as number]
    for (let at = from; at + 2 < to; at++) {
      const third = bytes[at + 2] as number
      if (begins[hash(first, second, third)] !== 0) return at
      first = second
      second = third
    }
    return Math.max(from, to - 2)
  },
})

/** Creates a search that can be continued in the next piece of input. */
export function createPatternScanner(automaton: Automaton) {
  const { begins, depth, longest } = automaton
  let state = 0
  return {
    /** Returns, for each unit at which patterns end, the span of the longest. It starts before `from` if it began in an earlier piece of input. */
    find: (units: Units, from: number, to: number): readonly Span[] => {
      const spans: Span[] = []
      for (let at = from; at < to; at++) {
        // No pattern has begun: skip to the next possible beginning.
        if (state === 0) at = units.seek(begins, at, to)
        state = step(automaton, state, units.at(at))
        const length = longest[state] ?? 0
        if (length > 0) spans.push({ start: at + 1 - length, end: at + 1 })
      }
      return spans
    },
    /** Number of the last units that may be the beginning of a pattern. */
    get pending() {
      return depth[state] ?? 0
    },
  }
}

/** The patterns of a set by their beginnings, to check quickly whether any of them occurs (Wu and Manber, 1994). */
export interface PatternSet {
  /** Length of the shortest pattern, in bytes, but at most 255: the length of a window of the search. */
  readonly length: number
  /** For the last two bytes of a window: by how many bytes the window can move without skipping the beginning of a pattern. */
  readonly shift: Uint8Array
  /** The patterns by their first `length` bytes. */
  readonly heads: ReadonlyMap<string, readonly Buffer[]>
}

/** Builds a set of patterns, each of which must have at least three bytes. */
export function compilePatternSet(patterns: readonly Buffer[]): PatternSet {
  const length = Math.min(255, ...patterns.map((pattern) => pattern.length))
  const shift = new Uint8Array(65536).fill(length - 1)
  const heads = new Map<string, Buffer[]>()
  for (const pattern of patterns) {
    for (let end = 1; end < length; end++) {
      const pair = ((pattern[end - 1] ?? 0) << 8) | (pattern[end] ?? 0)
      shift[pair] = Math.min(shift[pair] ?? 0, length - 1 - end)
    }
    const head = pattern.toString('latin1', 0, length)
    heads.set(head, [...(heads.get(head) ?? []), pattern])
  }
  return { length, shift, heads }
}

export function holdsPattern(bytes: Buffer, { length, shift, heads }: PatternSet): boolean {
  for (let end = length - 1; end < bytes.length; ) {
    const step = shift[((bytes[end - 1] as number) << 8) | (bytes[end] as number)] as number
    if (step > 0) {
      end += step
      continue
    }
    const start = end - length + 1
    for (const pattern of heads.get(bytes.toString('latin1', start, end + 1)) ?? [])
      if (bytes.subarray(start, start + pattern.length).equals(pattern)) return true
    end++
  }
  return false
}
