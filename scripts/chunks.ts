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
 * modules share a chunk when the same starts load them, so no start loads a module that only another one needs. The other entries count
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
  // A group also takes the modules that its modules import. The same starts or more load those, so the group of most starts comes first.
  return subsetsOf(Object.keys(kinds)).map((subset) => {
    const chunk = subset.join('-')
    return {
      name: (module, context) => (chunkOf(module, context) === chunk ? chunk : null),
      debugName: chunk,
      priority: subset.length,
    }
  })
}

/**
 * The name of the chunk for what some starts load. What `serve` shares with the reading of a configuration is little, and `ls` reads one
 * as well: it has no chunk of its own.
 */
function commonOf(kinds: readonly string[]): string {
  const isShared = kinds.includes('serve') && kinds.includes('config')
  const without = isShared ? kinds.filter((kind) => kind !== 'config' && kind !== 'ls' && kind !== 'serve') : kinds
  return (isShared ? ['serve', 'ls', ...without] : kinds).join('-')
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
