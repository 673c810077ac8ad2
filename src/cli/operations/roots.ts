import { parseAddress } from '../../core/uri.ts'
import { directoryMimeType, type Resource } from '../../core/view.ts'
import type { Source } from './source.ts'
import { asResource } from './stat-find.ts'

/** The mounts. One that is a single resource is that resource, with what reading it tells. */
export async function rootsOf({ view, mounts }: Pick<Source, 'view' | 'mounts'>): Promise<readonly Resource[]> {
  const roots = await view.mounts()
  return Promise.all(roots.map((root) => (mayBeOne(root, mounts) ? asResource(view, root) : root)))
}

/** Whether a mount may be a single resource: what the configuration here says of it, else whether anything is in it. */
function mayBeOne({ uri, mimeType }: Resource, mounts: Source['mounts']): boolean {
  if (mimeType !== directoryMimeType) return false
  const config = mounts.find(({ address }) => parseAddress(address).text === uri)?.config
  return config === undefined || (config.provider === 'inline' && config.resources === undefined)
}
