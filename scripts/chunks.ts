import type { ChunkingContext, CodeSplittingGroup } from 'rolldown'

interface Starts {
  /** The ids of the modules that each start loads by name. It also loads everything that these import statically. */
  readonly starts: Readonly<Record<string, readonly string[]>>
  /** The id of the entry of the command line. */
  readonly command: string
  /** The ids of all other entries. */
  readonly others: readonly string[]
}

/**
 * Groups the modules of the given starts into few chunks, because opening a file takes longer than reading the code in it. Two modules
 * share a chunk if the same starts load them, so `serve` loads no module that only another start needs. All other entries together are
 * one more start, so a library never loads code of the command line. Each entry has a file of its own.
 */
export function chunksOfStarts({ starts, command, others }: Starts): CodeSplittingGroup[] {
  const entries = new Set([command, ...others])
  const kinds = { ...starts, library: others }
  let closures: readonly (readonly [kind: string, modules: ReadonlySet<string>])[] | undefined
  const chunkOf = (module: string, context: ChunkingContext): string | undefined => {
    if (entries.has(module)) return undefined
    closures ??= Object.entries(kinds).map(([kind, names]) => [kind, importedBy(names, context)])
    const loadedBy = closures.flatMap(([kind, modules]) => (modules.has(module) ? [kind] : []))
    const isOfStart = loadedBy.some((kind) => kind !== 'library')
    return isOfStart ? commonOf(loadedBy) : undefined
  }
  // A group also takes the modules that its modules import. Those may belong to more starts, so the groups of most starts come first.
  const rest = subsetsOf(Object.keys(kinds).filter((kind) => kind !== 'serve' && kind !== 'join')).toSorted(
    (a, b) => b.length - a.length,
  )
  return ['join', 'serve-library', 'serve', ...rest.map((subset) => subset.join('-'))].map((chunk, at, all) => ({
    name: (module, context) => (chunkOf(module, context) === chunk ? chunk : null),
    debugName: chunk,
    priority: all.length - at,
  }))
}

/**
 * Returns the name of the chunk for modules that the given starts load. The modules of `serve` are in two chunks: one that libraries load
 * too, and one only for the command line. `ls` and `config` load these as well. A third chunk would delay `serve` by 2 ms. The modules of
 * `join` stay apart, because a process that joins another one should take little memory.
 */
function commonOf(kinds: readonly string[]): string {
  if (kinds.includes('join')) return 'join'
  if (!kinds.includes('serve')) return kinds.join('-')
  return kinds.includes('library') ? 'serve-library' : 'serve'
}

/** Returns modules, and all modules that they import statically, directly or not. */
function importedBy(names: readonly string[], context: ChunkingContext): ReadonlySet<string> {
  const found = new Set<string>()
  const add = (id: string): void => {
    if (found.has(id)) return
    found.add(id)
    for (const imported of context.getModuleInfo(id)?.importedIds ?? []) add(imported)
  }
  for (const name of names) add(name)
  return found
}

/** All subsets with at least one element. */
function subsetsOf(all: readonly string[]): readonly (readonly string[])[] {
  const [first, ...others] = all
  if (first === undefined) return []
  const rest = subsetsOf(others)
  return [[first], ...rest.map((subset) => [first, ...subset]), ...rest]
}
