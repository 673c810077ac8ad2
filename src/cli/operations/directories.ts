import { isResourceError, ResourceError } from '../../core/errors.ts'
import { parseAddress } from '../../core/uri.ts'
import { directoryMimeType, type Page, type Resource, type View } from '../../core/view.ts'
import { CommandError, exitCodes, misused } from '../terminal/exit.ts'
import { asked, type Source } from './source.ts'
import { asResource } from './stat-find.ts'

/** A page of a directory that a user named, or that lies below one. */
export async function directory(view: View, uri: string, query: { readonly cursor?: string }): Promise<Page<Resource>> {
  return asked(uri, view.directory({ uri, ...query }), view).catch((error: unknown) => {
    if (!isResourceError(error, 'invalid') || error.detail.reason !== 'not-a-directory') throw error
    throw misused(`${uri} is not a directory. To print its content: hikidashi read ${uri}`)
  })
}

/** Whether a listed directory no longer exists. */
export function isGone(error: unknown): boolean {
  return error instanceof CommandError && error.exitCode === exitCodes.notFound
}

/** Maximum depth of a tree. */
const maxDepth = 300

/**
 * Limits the depth, because a server may list a directory in itself.
 *
 * @throws ResourceError `internal` for a directory that is too deep.
 */
export function refuseDepth(depth: number): void {
  if (depth > maxDepth) throw new ResourceError('internal', `The directories are nested over ${maxDepth} deep.`)
}

/** The mounts. A mount of a single resource is shown as that resource, with the metadata from a read. */
export async function rootsOf({ view, mounts }: Pick<Source, 'view' | 'mounts'>): Promise<readonly Resource[]> {
  const roots = await view.mounts()
  return Promise.all(roots.map((root) => (mayBeOne(root, mounts) ? asResource(view, root) : root)))
}

/** Whether a mount may be a single resource: by the local configuration, else by whether it has children. */
function mayBeOne({ uri, mimeType }: Resource, mounts: Source['mounts']): boolean {
  if (mimeType !== directoryMimeType) return false
  const config = mounts.find(({ address }) => parseAddress(address).text === uri)?.config
  return config === undefined || (config.provider === 'inline' && config.resources === undefined)
}
