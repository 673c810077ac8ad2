import { lastSegment } from '../../../client/wire.ts'
import { directoryMimeType, type Resource } from '../../../core/view.ts'
import type { Columns } from './columns.ts'
import type { TreeRow } from './rows.ts'

interface Open {
  readonly key: string
  readonly level: number
  readonly children: { count: number }
  /** Whether the reader has closed it, or a directory above it. */
  readonly isClosed: boolean
}

/**
 * The tree of some rows only: each with the directories that it is in, all open but those that the reader has closed. The directories
 * follow from the URIs.
 *
 * @param rows Numbers of the columns, in the order of the server: what is in a directory comes together.
 */
export function foundTree(columns: Columns, rows: Uint32Array, closed: ReadonlySet<string>): readonly TreeRow[] {
  const tree: TreeRow[] = []
  const mountsShown = { count: 0 }
  /** The directories above the last row, from its mount down. */
  let path: Open[] = []

  const enter = (key: string, resource: Resource) => {
    const above = path.at(-1)
    const siblings = above?.children ?? mountsShown
    const level = path.length + 1
    const isHidden = above?.isClosed === true
    siblings.count++
    if (!isHidden)
      tree.push({
        kind: 'node',
        key,
        resource,
        level,
        position: siblings.count,
        siblings,
        isDirectory: true,
        isOpen: !closed.has(key),
      })
    path.push({ key, level, children: { count: 0 }, isClosed: isHidden || closed.has(key) })
  }

  for (const row of rows) {
    const resource = columns.resources[row]
    if (resource === undefined) continue
    const { uri } = resource
    const mount = columns.mounts[columns.mountAt[row] ?? -1]
    // A mount of a single resource has no children.
    const base = mount === undefined || mount.uri === uri ? undefined : baseOf(mount.uri)
    path = kept(path, uri, mount?.uri)
    if (mount !== undefined && base !== undefined && path.length === 0) enter(mount.uri, mount)
    const from = path.length > 1 ? (path.at(-1)?.key.length ?? 0) : (base?.length ?? uri.length)
    for (const end of slashes(uri, from)) {
      const key = uri.slice(0, end)
      enter(key, { uri: key, name: lastSegment(key), mimeType: directoryMimeType })
    }
    const above = path.at(-1)
    const siblings = above?.children ?? mountsShown
    siblings.count++
    if (above?.isClosed === true) continue
    tree.push({
      kind: 'node',
      key: uri,
      resource,
      level: path.length + 1,
      position: siblings.count,
      siblings,
      isDirectory: false,
      isOpen: false,
    })
  }
  return tree
}

const baseOf = (uri: string) => (/[/:]$/.test(uri) ? uri : `${uri}/`)

/** The common directories of the last row and the next one. */
function kept(path: Open[], uri: string, mount: string | undefined): Open[] {
  if (path[0]?.key !== mount) return []
  // In most cases all of them are common.
  if (path.length > 1 && uri.startsWith(path.at(-1)?.key ?? '\0')) return path
  let length = 1
  while (length < path.length && uri.startsWith(path[length]?.key ?? '\0')) length++
  return path.slice(0, length)
}

const none: readonly number[] = []

/** Returns the positions of the slashes in a URI after a position. */
function slashes(uri: string, from: number): readonly number[] {
  const first = uri.indexOf('/', from)
  if (first === -1) return none
  const query = uri.search(/[?#]/)
  const end = query === -1 ? uri.length : query
  const found: number[] = []
  for (let at = first; at !== -1 && at < end - 1; at = uri.indexOf('/', at + 1)) found.push(at + 1)
  return found
}
