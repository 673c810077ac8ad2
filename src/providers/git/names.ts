import { comparePaths } from '../../core/path.ts'
import type { Ref } from './refs.ts'

/** A segment of names of refs: what is called so far, and what goes on from there. */
export interface NameNode {
  readonly ref?: Ref
  /** A branch and a tag are both called this: it means neither. */
  readonly ambiguous: boolean
  readonly below: ReadonlyMap<string, NameNode>
  /** The keys of `below` in path order, each with a `/` behind it. */
  keys(): readonly string[]
}

/** What a path that begins with the name of a ref means. */
export interface NamedPath {
  readonly ref: Ref
  /** What stands behind the name; empty where nothing does. */
  readonly rest: string
}

/** How refs are called in paths. */
export interface Names {
  /**
   * The longest name that a path begins with: the full name of a ref, or the name of a branch or tag without `refs/heads/`
   * or `refs/tags/`. `ambiguous` where a branch and a tag have that name.
   */
  find(path: string): NamedPath | 'ambiguous' | undefined
  /** What a directory of names leads to: `refs/`, `refs/heads/feature/`, `feature/`. Without segments, nothing. */
  nodeAt(segments: readonly string[]): NameNode | undefined
  /** The shortest name of a ref that means it. */
  shortest(ref: Ref): string
}

/** First segments that mean something else than a branch or tag of that name; it is then called by its full name. */
const reserved = new Set(['HEAD', 'refs', 'log', 'commits', 'diff', 'blame', 'branches', 'tags', 'status'])

interface MutableNode {
  ref?: Ref
  ambiguous: boolean
  readonly below: Map<string, MutableNode>
  sorted?: readonly string[]
  keys(): readonly string[]
}

export function createNames(refs: readonly Ref[]): Names {
  let roots: { readonly full: MutableNode; readonly short: MutableNode } | undefined

  // Most tables of a busy repository are never asked for a name.
  const build = () => {
    if (roots !== undefined) return roots
    roots = { full: createNode(), short: createNode() }
    for (const ref of refs) {
      add(roots.full, ref.name.split('/'), ref)
      const short = shortName(ref.name)
      if (short !== undefined) add(roots.short, short.split('/'), ref)
    }
    return roots
  }

  const rootFor = (first: string | undefined) => (first === 'refs' ? build().full : build().short)

  return {
    find: (path) => {
      const segments = path.split('/')
      let node: MutableNode | undefined = rootFor(segments[0])
      let found: NamedPath | 'ambiguous' | undefined
      for (const [index, segment] of segments.entries()) {
        node = node.below.get(segment)
        if (node === undefined) break
        const rest = segments.slice(index + 1).join('/')
        if (node.ambiguous) found = 'ambiguous'
        else if (node.ref !== undefined) found = { ref: node.ref, rest }
      }
      return found
    },
    nodeAt: (segments) => {
      let node: MutableNode | undefined = rootFor(segments[0])
      for (const segment of segments) node = node?.below.get(segment)
      return segments.length === 0 ? undefined : node
    },
    shortest: (ref) => {
      const short = shortName(ref.name)
      if (short === undefined) return ref.name
      let node: MutableNode | undefined = build().short
      for (const segment of short.split('/')) node = node?.below.get(segment)
      return node?.ref === ref ? short : ref.name
    },
  }
}

/**
 * The name of a branch or tag without what it begins with; `undefined` for other refs, and where that would mean something
 * else: a reserved name, or an id.
 */
export function shortName(name: string): string | undefined {
  const short = /^refs\/(?:heads|tags)\/(.+)$/s.exec(name)?.[1]
  const first = short?.split('/')[0] ?? ''
  return reserved.has(first) || /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(first) ? undefined : short
}

function createNode(): MutableNode {
  const below = new Map<string, MutableNode>()
  const node: MutableNode = {
    ambiguous: false,
    below,
    keys: () => {
      node.sorted ??= Array.from(below.keys(), (name) => `${name}/`).sort(comparePaths)
      return node.sorted
    },
  }
  return node
}

function add(root: MutableNode, segments: readonly string[], ref: Ref): void {
  let node = root
  for (const segment of segments) {
    let next = node.below.get(segment)
    if (next === undefined) {
      next = createNode()
      node.below.set(segment, next)
    }
    node = next
  }
  if (node.ref === undefined && !node.ambiguous) node.ref = ref
  else {
    node.ambiguous = true
    delete node.ref
  }
}
