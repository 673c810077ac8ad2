import type { Resource } from '../../core/view.ts'
import { treeRows } from './places.ts'
import { type State, without } from './state.ts'
import { folderAt, isFolder, withOpen } from './tree.ts'

/** The path of a URI, in which spellings that mean the same are the same, without what follows it and without a slash at its end. */
export function bare(uri: string): string {
  const [path = ''] = uri.split(/[?#]/)
  const trimmed = path.replace(/\/+$/, '')
  try {
    return decodeURIComponent(trimmed)
  } catch {
    return trimmed
  }
}

/**
 * One step on the way to the URI that is looked for: the directory that it lies in is opened, as far as it is known. If its next page
 * is needed, the goal stays, and the wants include it ({@link soughtIn}).
 */
export function towards(state: State): State {
  const { goal, tree } = state
  if (goal === undefined || tree.roots === undefined) return state
  const wanted = bare(goal)
  let here = deepest(tree.roots, wanted)
  let next = state
  for (let depth = 0; here !== undefined && depth < 64; depth++) {
    if (bare(here.uri) === wanted) return arrived(next, here)
    next = { ...next, tree: withOpen(next.tree, here.uri) }
    const { items, next: page, failure } = folderAt(tree, here.uri)
    const below = deepest(items, wanted)
    if (below === undefined && page !== undefined && failure === undefined) return next
    here = below
  }
  const text = 'It is not listed in the tree. It is shown as it is read.'
  return { ...without(next, 'goal'), visiting: goal, notice: { text } }
}

/** The directory of which a page is needed to find what is looked for. */
export function soughtIn({ goal, tree }: State): string | undefined {
  if (goal === undefined || tree.roots === undefined) return undefined
  const wanted = bare(goal)
  let here = deepest(tree.roots, wanted)
  for (let depth = 0; here !== undefined && depth < 64; depth++) {
    const { items, next, failure } = folderAt(tree, here.uri)
    const below = deepest(items, wanted)
    if (below === undefined) return next === undefined || failure !== undefined ? undefined : here.uri
    here = below
  }
  return undefined
}

/** The one that it is, or the directory that it lies in. */
function deepest(items: readonly Resource[], wanted: string): Resource | undefined {
  let best: Resource | undefined
  for (const item of items) {
    const uri = bare(item.uri)
    if (uri === wanted) return item
    const isAbove = isFolder(item) && (wanted.startsWith(`${uri}/`) || uri.endsWith(':'))
    if (isAbove && uri.length > bare(best?.uri ?? '').length) best = item
  }
  return best
}

function arrived(state: State, { uri }: Resource): State {
  const shown: State = { ...without(state, 'goal', 'visiting'), filter: '', list: 'tree' }
  const index = treeRows(shown).findIndex((row) => row.resource.uri === uri && row.says === undefined)
  if (index < 0) return shown
  const { goal = uri } = state
  // A part of it was asked for: the place in the tree is that of the whole.
  const part = /[?#]/.test(goal) ? { visiting: goal } : {}
  return { ...shown, at: { index, uri }, ...part }
}
