import type { Slices } from '../../core/kit/breath.ts'
import { createRecent } from '../../core/kit/lru.ts'
import { comparePaths } from '../../core/path.ts'
import {
  childEnd,
  comparePrefix,
  type IndexRange,
  indexOfRef,
  isKey,
  nameStart,
  type Ref,
  type RefList,
  rangeBelow,
  refAt,
} from './ref-list.ts'

/** A node in the tree of ref names: a directory of names, a ref, or both. */
export interface NameNode {
  readonly ref?: Ref
  /** Whether both a branch and a tag have this name, so that it means neither. */
  readonly ambiguous: boolean
  /** Whether longer names begin with this one. */
  readonly goesOn: boolean
  child(segment: string): NameNode | undefined
  children(slices: Slices): Promise<NameChildren>
}

/** The child segments of a name in path order, each with a final `/`. They are decoded on demand. */
export interface NameChildren {
  readonly length: number
  keyAt(index: number): string
}

/** A path that begins with the name of a ref. */
interface NamedPath {
  readonly ref: Ref
  /** The path after the name; empty when there is none. */
  readonly rest: string
}

/** First segments with another meaning; a branch or tag of such a name is addressed by its full name. */
const reserved = new Set(['HEAD', 'refs', 'log', 'commits', 'diff', 'blame', 'branches', 'tags', 'status'])
/** Maximum number of child offsets that are cached, over all directories. */
const maxRemembered = 1_000_000

/** The refs whose names begin with a prefix that ends in `/`. */
interface RefsBelow extends IndexRange {
  readonly prefix: string
}

/** Finds refs by their names in paths, by binary search in the list: no object is created for a ref before it is requested. */
export function createNames(list: RefList) {
  const remembered = createRecent<NameChildren>(maxRemembered, ({ length }) => length + 1)
  const everything = { start: 0, end: list.length }

  const below = (prefix: string, within: IndexRange): readonly RefsBelow[] => {
    const range = rangeBelow(list, prefix, within)
    return range.start === range.end ? [] : [{ ...range, prefix }]
  }

  /** Whether the name of the first ref equals the prefix. */
  const isNamed = ({ start, prefix }: RefsBelow) => isKey(list, start, prefix)

  const nodeOf = (ranges: readonly RefsBelow[]): NameNode | undefined => {
    if (ranges.length === 0) return undefined
    const named = ranges.filter(isNamed)
    const [only] = named
    const going = ranges.map((range) => (isNamed(range) ? { ...range, start: range.start + 1 } : range))
    return {
      ...(named.length === 1 && only !== undefined ? { ref: refAt(list, only.start) } : {}),
      ambiguous: named.length > 1,
      goesOn: going.some(({ start, end }) => start < end),
      child: (segment) => nodeOf(going.flatMap((range) => below(`${range.prefix}${segment}/`, range))),
      children: async (slices) => {
        const key = ranges.map(({ prefix }) => prefix).join('\0')
        const known = remembered.get(key)
        if (known !== undefined) return known
        const children = await childrenIn(list, going, slices)
        remembered.set(key, children)
        return children
      },
    }
  }

  /** Names that begin with `refs` are full names; branches and tags also have short names. */
  const topOf = (first: string | undefined): NameNode | undefined => {
    if (first === undefined) return undefined
    if (first === 'refs') return nodeOf(below('refs/', everything))
    if (isTaken(first)) return undefined
    return nodeOf([...below(`refs/heads/${first}/`, everything), ...below(`refs/tags/${first}/`, everything)])
  }

  return {
    /**
     * Finds the longest ref name that a path begins with: the full name of a ref, or the name of a branch or tag without `refs/heads/` or
     * `refs/tags/`. `ambiguous` when both a branch and a tag have that name.
     */
    find: (path: string): NamedPath | 'ambiguous' | undefined => {
      const segments = path.split('/')
      let node = topOf(segments[0])
      let found: NamedPath | 'ambiguous' | undefined
      for (let depth = 1; node !== undefined; depth++) {
        if (node.ambiguous) found = 'ambiguous'
        else if (node.ref !== undefined) found = { ref: node.ref, rest: segments.slice(depth).join('/') }
        const segment = segments[depth]
        node = segment === undefined ? undefined : node.child(segment)
      }
      return found
    },
    /** Returns the node of a directory of names: `refs/`, `refs/heads/feature/`, `feature/`. Undefined without segments. */
    nodeAt: (segments: readonly string[]): NameNode | undefined => {
      const [first, ...rest] = segments
      return rest.reduce<NameNode | undefined>((node, segment) => node?.child(segment), topOf(first))
    },
    /** Returns the shortest unambiguous name of a ref. */
    shortest: (name: string): string => {
      const short = shortName(name)
      if (short === undefined) return name
      const other = name.startsWith('refs/heads/') ? 'refs/tags/' : 'refs/heads/'
      return indexOfRef(list, `${other}${short}`) === -1 ? short : name
    },
  }
}

export type RefNames = ReturnType<typeof createNames>

/** Returns the children in one or two ranges of refs: of a full name, or of a short name among branches and among tags. */
async function childrenIn(list: RefList, ranges: readonly RefsBelow[], slices: Slices): Promise<NameChildren> {
  const all = await Promise.all(
    ranges.map(async (range) => ({
      length: Buffer.byteLength(range.prefix),
      begins: await beginsIn(list, range, slices),
    })),
  )
  const keyOf = (prefixLength: number, index: number) =>
    list.bytes.toString('utf8', nameStart(list, index) + prefixLength, childEnd(list, index, prefixLength))
  const [first, second] = all
  if (first === undefined) return { length: 0, keyAt: () => '' }
  if (second === undefined)
    return { length: first.begins.length, keyAt: (index) => keyOf(first.length, first.begins[index] ?? 0) }
  const merged: string[] = []
  for (let i = 0, j = 0; i < first.begins.length || j < second.begins.length; ) {
    const a = first.begins[i] === undefined ? undefined : keyOf(first.length, first.begins[i] ?? 0)
    const b = second.begins[j] === undefined ? undefined : keyOf(second.length, second.begins[j] ?? 0)
    const order = a === undefined ? 1 : b === undefined ? -1 : comparePaths(a, b)
    merged.push((order <= 0 ? a : b) ?? '')
    if (order <= 0) i++
    if (order >= 0) j++
    if (slices.due()) await slices.rest()
  }
  return { length: merged.length, keyAt: (index) => merged[index] ?? '' }
}

/** Returns the index of the first ref of each child. */
async function beginsIn(list: RefList, { start, end, prefix }: RefsBelow, slices: Slices): Promise<Uint32Array> {
  const begins = new Uint32Array(end - start)
  const length = Buffer.byteLength(prefix)
  let count = 0
  for (let at = start; at < end; ) {
    begins[count++] = at
    const last = childEnd(list, at, length)
    // Most children are a single ref, for which no search is needed.
    const child = list.bytes.subarray(nameStart(list, at), last)
    const goesOn = list.bytes[last] !== 0x0a || (at + 1 < end && comparePrefix(list, at + 1, child) === 0)
    at = goesOn ? rangeBelow(list, child.toString('utf8'), { start: at, end }).end : at + 1
    if (slices.due()) await slices.rest()
  }
  return begins.slice(0, count)
}

/**
 * Returns the name of a branch or tag without `refs/heads/` or `refs/tags/`; undefined for other refs, and when the short name has another
 * meaning: a reserved name, or an id.
 */
export function shortName(name: string): string | undefined {
  const short = /^refs\/(?:heads|tags)\/(.+)$/s.exec(name)?.[1]
  return short === undefined || isTaken(short.split('/', 1)[0] ?? '') ? undefined : short
}

/** Whether a first segment has another meaning than the name of a branch or tag. */
function isTaken(first: string): boolean {
  return reserved.has(first) || /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(first)
}
