import { mountSource } from '../../config/plan.ts'
import { isResourceError, ResourceError } from '../../core/errors.ts'
import { iteratePages } from '../../core/kit/groups.ts'
import { parseAddress } from '../../core/uri.ts'
import { directoryMimeType, type Page, type Resource, type View } from '../../core/view.ts'
import { CommandError, exitCodes, usageError } from '../terminal/exit.ts'
import { type CommandSource, withSuggestion } from './source.ts'
import { resourceOfMount } from './stat-find.ts'

export interface TokenCount {
  /** Left out if the resource is not text, or its tokens cannot be counted. */
  readonly tokens?: number
  readonly isEstimate: boolean
}

export interface TreeTotals {
  directories: number
  resources: number
  bytes: number
  tokens: number
  isEstimate: boolean
}

/** For each node above, from the root's child on, and for the node itself: whether it is the last in its directory. */
export type TreePosition = readonly boolean[]

/**
 * Receives the nodes of a tree from top to bottom. An `enter` is followed by a `leave` of the same directory after its
 * children.
 */
export interface TreeVisitor {
  enter(directory: Resource, position: TreePosition): Promise<void>
  add(resource: Resource, position: TreePosition, measured: TokenCount | undefined): Promise<void>
  /** Reports the number of further nodes, which are not shown. */
  more(count: number, position: TreePosition): Promise<void>
  /** Reports that the rest of a directory could not be listed. */
  fault(message: string, position: TreePosition): Promise<void>
  /** @param isOpened Whether the children of the directory were listed. */
  leave(directory: Resource, position: TreePosition, totals: TreeTotals, isOpened: boolean): Promise<void>
}

export interface TreeWalkOptions {
  readonly depth: number
  readonly most: number
  /** Visits nodes that are not shown too, so that the totals include them. */
  readonly isWhole: boolean
  /** Whether the user named the root, which must then exist and answer. */
  readonly isNamed: boolean
  readonly measure?: (resource: Resource) => Promise<TokenCount>
  readonly onSeen?: () => void
}

/** Walks depth first, page by page. Resolves to the totals of the root. */
export async function walkTree(
  view: View,
  root: Resource,
  visitor: TreeVisitor,
  options: TreeWalkOptions,
): Promise<TreeTotals> {
  const { depth: most, isWhole, measure, onSeen = () => {} } = options

  const into = async (resource: Resource, position: TreePosition, isShown: boolean): Promise<TreeTotals> => {
    const totals: TreeTotals = { directories: 0, resources: 0, bytes: 0, tokens: 0, isEstimate: false }
    const isOpened = isWhole || (isShown && position.length < most)
    const isListed = isShown && position.length < most
    if (isShown) await visitor.enter(resource, position)
    if (isOpened) {
      refuseDepth(position.length)
      const hiddenCount = await children(resource.uri, position, isListed, totals)
      if (hiddenCount > 0 && isListed) await visitor.more(hiddenCount, [...position, true])
    }
    if (isShown) await visitor.leave(resource, position, totals, isOpened)
    return totals
  }

  const children = async (
    uri: string,
    position: TreePosition,
    isListed: boolean,
    totals: TreeTotals,
  ): Promise<number> => {
    let index = 0
    try {
      for await (const { node, isLast, measured } of nodesOf(view, uri, measure)) {
        const isShown = isListed && index++ < options.most
        const here = [...position, isLast]
        if (node.mimeType === directoryMimeType) {
          totals.directories++
          addTotals(totals, isShown || isWhole ? await into(node, here, isShown) : undefined)
          continue
        }
        onSeen()
        const count = await measured
        totals.resources++
        totals.bytes += node.size ?? 0
        totals.tokens += count?.tokens ?? 0
        totals.isEstimate ||= count?.isEstimate === true
        if (isShown) await visitor.add(node, here, count)
      }
    } catch (error) {
      // A root that the user named must exist and answer; a listed directory may have disappeared, or not answer.
      if (
        (position.length === 0 && options.isNamed) ||
        !(isMissingDirectory(error) || isResourceError(error, 'unavailable'))
      )
        throw error
      if (!isMissingDirectory(error) && error instanceof Error) await visitor.fault(error.message, [...position, true])
    }
    return Math.max(0, index - options.most)
  }

  if (root.mimeType === directoryMimeType) return into(root, [], true)
  onSeen()
  const count = await measure?.(root)
  await visitor.add(root, [], count)
  const { tokens = 0, isEstimate = false } = count ?? {}
  return { directories: 0, resources: 1, bytes: root.size ?? 0, tokens, isEstimate }
}

interface Node {
  readonly node: Resource
  readonly isLast: boolean
  readonly measured: Promise<TokenCount> | undefined
}

async function* nodesOf(view: View, uri: string, measure: TreeWalkOptions['measure']): AsyncGenerator<Node> {
  let pendingNode: Omit<Node, 'isLast'> | undefined
  for await (const { items } of iteratePages((query) => readDirectoryPage(view, uri, query))) {
    // The nodes of a page are measured concurrently.
    const nodes = items.map((node) => ({
      node,
      measured: node.mimeType === directoryMimeType ? undefined : measure?.(node),
    }))
    for (const next of nodes) {
      if (pendingNode !== undefined) yield { ...pendingNode, isLast: false }
      pendingNode = next
    }
  }
  if (pendingNode !== undefined) yield { ...pendingNode, isLast: true }
}

function addTotals(totals: TreeTotals, more: TreeTotals | undefined): void {
  if (more === undefined) return
  totals.directories += more.directories
  totals.resources += more.resources
  totals.bytes += more.bytes
  totals.tokens += more.tokens
  totals.isEstimate ||= more.isEstimate
}

/** @throws CommandError with advice for a URI that is missing, or is not a directory */
export async function readDirectoryPage(
  view: View,
  uri: string,
  query: { readonly cursor?: string },
): Promise<Page<Resource>> {
  return withSuggestion(uri, view.directory({ uri, ...query }), view).catch((error: unknown) => {
    if (!isResourceError(error, 'invalid') || error.detail.reason !== 'not-a-directory') throw error
    throw usageError(`${uri} is not a directory. To print its content: hikidashi read ${uri}`)
  })
}

/** Whether the error of {@link readDirectoryPage} says that the directory does not exist. */
export function isMissingDirectory(error: unknown): boolean {
  return error instanceof CommandError && error.exitCode === exitCodes.notFound
}

const maxDepth = 300

/**
 * A server may list a directory in itself.
 * @throws ResourceError `internal` for a directory that is too deep
 */
export function refuseDepth(depth: number): void {
  if (depth > maxDepth)
    throw new ResourceError('internal', `The directories are nested more than ${maxDepth} levels deep.`)
}

/** A mount of a single resource gets the metadata from a read. */
export async function listTreeRoots({
  view,
  mounts,
}: Pick<CommandSource, 'view' | 'mounts'>): Promise<readonly Resource[]> {
  const roots = await view.mounts()
  return Promise.all(roots.map((root) => (mayBeOne(root, mounts) ? resourceOfMount(view, root) : root)))
}

/** Whether a mount may be a single resource. Of a mount of a server this is not known, so it may be one. */
function mayBeOne({ uri, mimeType }: Resource, mounts: CommandSource['mounts']): boolean {
  if (mimeType !== directoryMimeType) return false
  const config = mounts.find(({ address }) => parseAddress(address).text === uri)?.config
  return config === undefined || mountSource(config).isSingle?.(config) === true
}
