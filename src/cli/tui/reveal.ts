import type { Resource } from '../../core/view.ts'
import { treeRows } from './places.ts'
import { type State, without } from './state.ts'
import { folderAt, isFolder, withOpen } from './tree.ts'

/** The path of a URI, without query, fragment and a slash at its end. Spellings with the same meaning give the same path. */
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
 * Takes one step towards the wanted URI: opens the directory that contains it, if that directory is known. If the directory needs
 * its next page, the goal stays, and the wants include the page ({@link soughtIn}).
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

/** The directory whose next page is needed to find the wanted URI. */
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

/** The wanted resource itself, or the deepest directory that contains it. */
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
  // If a part of a resource was asked for, the line of the whole resource is chosen in the tree.
  const part = /[?#]/.test(goal) ? { visiting: goal } : {}
  return { ...shown, at: { index, uri }, ...part }
}
