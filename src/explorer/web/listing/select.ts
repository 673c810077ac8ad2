import { isBelow } from '../../../browse/tree.ts'
import { lastSegment } from '../../../client/wire.ts'
import { splitFilterWords } from '../../../core/kit/matching.ts'
import { directoryMimeType, type Resource } from '../../../core/view.ts'
import type { Route } from '../state/route.ts'
import type { Columns } from './columns.ts'
import type { TreeRow } from './rows.ts'

export type RowFilters = Pick<Route, 'filter' | 'in' | Facet>

export const facets = ['mount', 'mime', 'audience', 'minPriority', 'since'] as const
export type Facet = (typeof facets)[number]
/** The change of the route that removes all facets. */
export const noFacets: { readonly [One in Facet]?: undefined } = Object.fromEntries(
  facets.map((one) => [one, undefined]),
)

/** For each value of a facet, the number of rows that match this value, all other facets and the text filter. */
type Counts = Readonly<Record<Facet, ReadonlyMap<string, number>>>

export interface SelectedRows {
  /** Indexes of the matching resources in the columns, in the order that `select` was given. */
  readonly rows: Uint32Array
  readonly counts: Counts
}

/** The values that the facet `minPriority` offers. */
export const priorities = ['1', '0.8', '0.5', '0.3'] as const
/** The ages that the facet `since` offers. */
export const ages = ['1d', '7d', '30d', '365d'] as const
/** Value of the facet `mime` for resources without a type. */
export const noType = 'none'

/** Whether a text filter or a facet is set. `in` does not count. */
export function isNarrowed(selection: RowFilters): boolean {
  return splitFilterWords(selection.filter).length > 0 || facets.some((facet) => selection[facet] !== undefined)
}

/** Converts a time, or an age such as `12h`, to milliseconds since 1970. `undefined`: the text is neither. */
export function parseTimeOrAge(since: string | undefined, now: number): number | undefined {
  const [, count, unit] = /^(\d{1,6})([mhdw])$/.exec(since ?? '') ?? []
  if (count !== undefined)
    return now - Number(count) * ({ m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }[unit ?? 'd'] ?? 0)
  const time = since === undefined ? Number.NaN : Date.parse(since)
  return Number.isNaN(time) ? undefined : time
}

/**
 * Selects the matching rows, and counts the rows for each value of the facets. `order` has the indexes of all rows, in the wanted order.
 */
export function select(columns: Columns, order: Uint32Array, selection: RowFilters, now: number): SelectedRows {
  const words = splitFilterWords(selection.filter)
  const { resources, texts, mountAt, typeAt } = columns
  const mountFits = columns.mounts.map(({ uri }) => fitsMount(selection.mount, uri))
  const typeFits = columns.types.map((type) => fitsType(selection.mime, type))
  const noTypeFits = fitsType(selection.mime, noType)
  const roles = selection.audience?.split(' ')
  const minPriority = selection.minPriority === undefined ? undefined : Number(selection.minPriority)
  const since = parseTimeOrAge(selection.since, now)
  const directory = selection.in
  const times = ages.map((age) => parseTimeOrAge(age, now) ?? 0)
  const steps = priorities.map(Number)

  const rows = new Uint32Array(order.length)
  const byMount = new Uint32Array(columns.mounts.length)
  const byType = new Uint32Array(columns.types.length + 1)
  const byRole = { user: 0, assistant: 0 }
  const byPriority = new Uint32Array(steps.length)
  const byAge = new Uint32Array(ages.length)
  let count = 0

  each: for (const row of order) {
    const text = texts[row]
    const resource = resources[row]
    if (text === undefined || resource === undefined) continue
    for (const word of words) if (!text.includes(word)) continue each
    if (directory !== undefined && !isBelow(resource.uri, directory)) continue
    const { audience, priority, modified } = resource
    const mount = mountAt[row] ?? -1
    const type = typeAt[row] ?? -1
    // The facets that exclude the row, one bit each. The row is counted for the values of a facet if no other facet excludes the row.
    const misses =
      (selection.mount === undefined || mountFits[mount] === true ? 0 : 1) |
      (selection.mime === undefined || (type === -1 ? noTypeFits : typeFits[type] === true) ? 0 : 2) |
      (roles === undefined || audience === undefined || roles.some((role) => audience.some((one) => one === role))
        ? 0
        : 4) |
      (minPriority === undefined || (priority ?? -1) >= minPriority ? 0 : 8) |
      (since === undefined || (modified ?? Number.NEGATIVE_INFINITY) >= since ? 0 : 16)
    if (misses === 0) rows[count++] = row
    if ((misses & ~1) === 0 && mount !== -1) incrementCount(byMount, mount)
    if ((misses & ~2) === 0) incrementCount(byType, type + 1)
    if ((misses & ~4) === 0) {
      if (audience === undefined || audience.includes('user')) byRole.user++
      if (audience === undefined || audience.includes('assistant')) byRole.assistant++
    }
    if ((misses & ~8) === 0 && priority !== undefined)
      for (let at = 0; at < steps.length; at++) if (priority >= (steps[at] ?? 2)) incrementCount(byPriority, at)
    if ((misses & ~16) === 0 && modified !== undefined)
      for (let at = 0; at < times.length; at++) if (modified >= (times[at] ?? 0)) incrementCount(byAge, at)
  }

  return {
    rows: rows.subarray(0, count),
    counts: {
      mount: new Map(columns.mounts.map(({ uri }, at) => [uri.replace(/\/$/, ''), byMount[at] ?? 0])),
      mime: new Map([
        ...columns.types.map((type, at): [string, number] => [type, byType[at + 1] ?? 0]),
        [noType, byType[0] ?? 0],
      ]),
      audience: new Map(Object.entries(byRole)),
      minPriority: new Map(priorities.map((step, at) => [step, byPriority[at] ?? 0])),
      since: new Map(ages.map((age, at) => [age, byAge[at] ?? 0])),
    },
  }
}

function incrementCount(counts: Uint32Array, at: number): void {
  counts[at] = (counts[at] ?? 0) + 1
}

function fitsMount(mount: string | undefined, uri: string): boolean {
  return mount === undefined || mount.split(' ').some((one) => one.replace(/\/$/, '') === uri.replace(/\/$/, ''))
}

function fitsType(pattern: string | undefined, type: string): boolean {
  if (pattern === undefined) return true
  return pattern.split(' ').some((one) => one === type || (one.endsWith('/*') && type.startsWith(one.slice(0, -1))))
}

interface Open {
  readonly key: string
  readonly children: { count: number }
  /** Whether the user has closed the directory, or one above it. */
  readonly isClosed: boolean
}

/**
 * Returns the tree of some rows: each row with the directories above it, which are parts of its URI. The contents of directories that the
 * user has closed are left out.
 *
 * @param rows Indexes of resources in the columns, in the order of the server, which keeps the entries of a directory together.
 */
export function treeOfMatches(columns: Columns, rows: Uint32Array, closed: ReadonlySet<string>): readonly TreeRow[] {
  const tree: TreeRow[] = []
  const mountsShown = { count: 0 }
  /** The directories above the last row, from its mount down. */
  let path: Open[] = []

  /** Adds a row to the last directory of `path`. Returns whether the row is left out, because a directory above it is closed. */
  const addRow = (key: string, resource: Resource, isDirectory: boolean): boolean => {
    const { children: siblings, isClosed: isHidden } = path.at(-1) ?? { children: mountsShown, isClosed: false }
    const position = ++siblings.count
    const isOpen = isDirectory && !closed.has(key)
    const level = path.length + 1
    if (!isHidden) tree.push({ kind: 'node', key, resource, level, position, siblings, isDirectory, isOpen })
    return isHidden
  }
  const enter = (key: string, resource: Resource) => {
    const isHidden = addRow(key, resource, true)
    path.push({ key, children: { count: 0 }, isClosed: isHidden || closed.has(key) })
  }

  for (const row of rows) {
    const resource = columns.resources[row]
    if (resource === undefined) continue
    const { uri } = resource
    const mount = columns.mounts[columns.mountAt[row] ?? -1]
    // A mount of a single resource has no children.
    const base = mount === undefined || mount.uri === uri ? undefined : baseOf(mount.uri)
    path = commonAncestors(path, uri, mount?.uri)
    if (mount !== undefined && base !== undefined && path.length === 0) enter(mount.uri, mount)
    const from = path.length > 1 ? (path.at(-1)?.key.length ?? 0) : (base?.length ?? uri.length)
    for (const end of slashes(uri, from)) {
      const key = uri.slice(0, end)
      enter(key, { uri: key, name: lastSegment(key), mimeType: directoryMimeType })
    }
    addRow(uri, resource, false)
  }
  return tree
}

const baseOf = (uri: string) => (/[/:]$/.test(uri) ? uri : `${uri}/`)

/** Returns the directories of a path that also contain the next row. */
function commonAncestors(path: Open[], uri: string, mount: string | undefined): Open[] {
  if (path[0]?.key !== mount) return []
  // In most cases the path stays the same.
  if (path.length > 1 && uri.startsWith(path.at(-1)?.key ?? '\0')) return path
  let length = 1
  while (length < path.length && uri.startsWith(path[length]?.key ?? '\0')) length++
  return path.slice(0, length)
}

const none: readonly number[] = []

/** Returns the position after each slash in the path of a URI, beginning at `from`. A slash at the end does not count. */
function slashes(uri: string, from: number): readonly number[] {
  const first = uri.indexOf('/', from)
  if (first === -1) return none
  const query = uri.search(/[?#]/)
  const end = query === -1 ? uri.length : query
  const positions: number[] = []
  for (let at = first; at !== -1 && at < end - 1; at = uri.indexOf('/', at + 1)) positions.push(at + 1)
  return positions
}
