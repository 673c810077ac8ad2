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
 * Groups the modules of the given starts into few chunks, since opening a file takes a start longer than reading the code in it. Two
 * modules share a chunk when the same starts load them, so `serve` loads no module that only another one needs. The other entries count
 * as one more start, so a library never loads code of the command line. Each entry keeps a file of its own.
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
  // A group also takes the modules that its modules import. The same starts or more load those, so the groups of most starts come first.
  const rest = subsetsOf(Object.keys(kinds).filter((kind) => kind !== 'serve')).toSorted((a, b) => b.length - a.length)
  return ['serve-library', 'serve', ...rest.map((subset) => subset.join('-'))].map((chunk, at, all) => ({
    name: (module, context) => (chunkOf(module, context) === chunk ? chunk : null),
    debugName: chunk,
    priority: all.length - at,
  }))
}

/**
 * The name of the chunk for what some starts load. What `serve` loads is in two chunks, since opening a third takes it 2 ms: one that
 * libraries load too, and one for the command line alone. `ls` and the reading of a configuration load these as well.
 */
function commonOf(kinds: readonly string[]): string {
  if (!kinds.includes('serve')) return kinds.join('-')
  return kinds.includes('library') ? 'serve-library' : 'serve'
}

/** Modules, and everything that they import statically. */
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
