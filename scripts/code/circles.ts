/** Import circles: groups of files that import each other, found by Tarjan's algorithm for strongly connected components. */
import type { SourceFile } from './source.ts'

/** Returns the import circles of a set of files, each sorted by path. `atRunTime`: imports of only types are ignored. */
export function circlesOf(
  files: readonly Pick<SourceFile, 'file' | 'imports'>[],
  atRunTime = false,
): readonly (readonly string[])[] {
  const targets = new Map(
    files.map(({ file, imports }) => [
      file,
      imports.filter(({ typeOnly }) => !(atRunTime && typeOnly)).map((target) => target.file),
    ]),
  )
  const state: State = { targets, indexes: new Map(), low: new Map(), stack: [], circles: [] }
  for (const file of targets.keys()) if (!state.indexes.has(file)) visit(file, state)
  return state.circles
}

interface State {
  readonly targets: ReadonlyMap<string, readonly string[]>
  /** The order in which the files were visited. */
  readonly indexes: Map<string, number>
  /** The index of the earliest file on the stack that each file can reach. */
  readonly low: Map<string, number>
  readonly stack: string[]
  readonly circles: (readonly string[])[]
}

function visit(file: string, state: State): void {
  const index = state.indexes.size
  let low = index
  state.indexes.set(file, index)
  state.stack.push(file)
  for (const target of state.targets.get(file) ?? []) {
    if (!state.targets.has(target)) continue
    if (!state.indexes.has(target)) visit(target, state)
    if (state.stack.includes(target)) low = Math.min(low, state.low.get(target) ?? state.indexes.get(target) ?? low)
  }
  state.low.set(file, low)
  if (low !== index) return
  const circle = state.stack.splice(state.stack.indexOf(file))
  const isSelf = (state.targets.get(file) ?? []).includes(file)
  if (circle.length > 1 || isSelf) state.circles.push(circle.sort())
}
