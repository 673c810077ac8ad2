import { resolve } from 'node:path'
import { compileAccess } from '../core/access.ts'
import { type Catalog, createCatalog, type Mount } from '../core/catalog.ts'
import { invalid, isResourceError, ResourceError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import { isPath } from '../core/path.ts'
import type { Provider } from '../core/provider.ts'
import { fileAddress, formatUri, parseAddress } from '../core/uri.ts'
import { providers } from '../providers/index.ts'
import { sliced } from '../wrap/sliced.ts'
import { resolveFolder } from './folder.ts'
import type { Config } from './load.ts'
import type { MountConfig } from './schema.ts'

/** A mount that is not open yet: its address, and how to open it. */
export interface PlannedMount {
  readonly address: string
  readonly config: MountConfig
  /** Where relative paths of the mount start. */
  readonly folder: string
}

/** The mounts of a configuration, in its order. */
export function planConfig(config: Config): readonly PlannedMount[] {
  return Object.entries(config.mounts).map(([address, mount]) => ({ address, config: mount, folder: config.folder }))
}

/**
 * The mounts of folders: each is at `file://` and its absolute path, so that a host on the same machine can open what it
 * reads. A single one can be called by a name instead: `file:///NAME`.
 *
 * @throws ResourceError `invalid` for a name beside several folders, or one that no address can have.
 */
export function planFolders(
  folders: readonly string[],
  options: { readonly name?: string } = {},
): readonly PlannedMount[] {
  const { name } = options
  if (name !== undefined && folders.length !== 1)
    throw invalid('One name stands for one folder: give each its address in a configuration file instead.', 'name')
  return folders.map((folder) => {
    const root = resolve(folder)
    const address = name === undefined ? fileAddress(root) : addressOf(name)
    return { address, config: { provider: 'files', root }, folder: root }
  })
}

function addressOf(name: string): string {
  if (name === '' || !isPath(name) || name.endsWith('/'))
    throw invalid(`${JSON.stringify(name)} is not a name: write one such as docs, or team/docs.`, 'name')
  return formatUri(parseAddress('file:///'), name)
}

/**
 * Opens one mount.
 *
 * @throws ResourceError of the kind that the provider threw; the message names the address.
 */
export async function openMount({ address, config, folder }: PlannedMount, log: Log): Promise<Mount> {
  const { title, description, access, cache } = config
  let provider: Provider
  try {
    provider = await openProvider(config, folder, log)
  } catch (error) {
    if (!isResourceError(error)) throw error
    const message = `The mount ${address} cannot be opened. ${error.message}`
    throw new ResourceError(error.kind, message, error.detail, { cause: error })
  }
  return {
    address,
    provider,
    ...(title === undefined ? {} : { title }),
    ...(description === undefined ? {} : { description }),
    ...(access === undefined ? {} : { access: compileAccess(access) }),
    ...(cache === undefined ? {} : { cache: { ttlMs: cache.ttl, scope: cache.scope } }),
  }
}

/** Opens the provider of a mount, in the wrappers that belong to it. */
async function openProvider(config: MountConfig, folder: string, log: Log): Promise<Provider> {
  switch (config.provider) {
    case 'files': {
      const { files } = await providers.files()
      return sliced(await files({ ...config, root: resolveFolder(config.root, folder), log }))
    }
    case 'git': {
      const { git } = await providers.git()
      const { timeout, alternates = [], ...options } = config
      return sliced(
        await git({
          ...options,
          repository: resolveFolder(config.repository, folder),
          alternates: alternates.map((name) => resolveFolder(name, folder)),
          ...(timeout === undefined ? {} : { timeoutMs: timeout }),
          log,
        }),
      )
    }
  }
}

export interface CatalogSettings {
  readonly log: Log
  readonly pages?: Config['pages']
  readonly cursorSecret?: string
}

/**
 * Opens mounts and puts them into a catalog: all of them, or none.
 *
 * @throws ResourceError of the first mount that cannot be opened, or `invalid` for addresses that overlap.
 */
export async function openCatalog(planned: readonly PlannedMount[], settings: CatalogSettings): Promise<Catalog> {
  const { log, pages, cursorSecret } = settings
  const opened = await Promise.allSettled(planned.map((mount) => openMount(mount, log)))
  const mounts = opened.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  try {
    for (const result of opened) if (result.status === 'rejected') throw result.reason
    return createCatalog({
      mounts,
      log,
      ...(pages === undefined ? {} : { pages }),
      ...(cursorSecret === undefined ? {} : { secret: Buffer.from(cursorSecret) }),
    })
  } catch (error) {
    await Promise.allSettled(mounts.map((mount) => mount.provider.close?.()))
    throw error
  }
}
