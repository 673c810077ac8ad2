import { createHmac } from 'node:crypto'
import { resolve } from 'node:path'
import { compileAccess } from '../core/access.ts'
import { type Catalog, createCatalog, type Mount } from '../core/catalog.ts'
import { invalid, isResourceError, ResourceError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import { isPath } from '../core/path.ts'
import type { Provider } from '../core/provider.ts'
import type { Scrubber } from '../core/scrub.ts'
import { fileAddress, formatUri, parseAddress } from '../core/uri.ts'
import { providers } from '../providers/index.ts'
import { decoded } from '../wrap/decoded.ts'
import { limited } from '../wrap/limited.ts'
import { polled } from '../wrap/polled.ts'
import { sliced } from '../wrap/sliced.ts'
import { encodingOptions, withDocuments } from './documents.ts'
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

/** What mounts are opened with. */
export interface MountSettings {
  readonly log: Log
  /** Values that are known to be secret: providers that redact take them out as well. */
  readonly scrubber?: Scrubber
  /** What versions of redacted contents are hashed with; replicas share it. By default one is made for each mount. */
  readonly key?: Uint8Array
}

/**
 * Opens one mount.
 *
 * @throws ResourceError of the kind that the provider threw; the message names the address.
 */
export async function openMount({ address, config, folder }: PlannedMount, settings: MountSettings): Promise<Mount> {
  const { title, description, access, scopes, cache, limits } = config
  const log: Log = (level, message, fields) => settings.log(level, message, { mount: address, ...fields })
  let provider: Provider
  try {
    const opened = await withPolling(await openProvider(config, folder, { ...settings, log }), config)
    provider = limited(opened, { ...limits, log })
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
    ...(scopes === undefined ? {} : { scopes }),
    ...(cache === undefined ? {} : { cache: { ttlMs: cache.ttl, scope: cache.scope } }),
  }
}

/** Opens the provider of a mount, in the wrappers that belong to it. */
async function openProvider(config: MountConfig, folder: string, settings: MountSettings): Promise<Provider> {
  const { log, ...redaction } = settings
  switch (config.provider) {
    case 'files': {
      const { files } = await providers.files()
      return withDocuments(await files({ ...config, root: resolveFolder(config.root, folder), log }), config, settings)
    }
    case 'git': {
      const { git } = await providers.git()
      const { timeout, alternates = [], ...options } = config
      const opened = await git({
        ...options,
        repository: resolveFolder(config.repository, folder),
        alternates: alternates.map((name) => resolveFolder(name, folder)),
        ...(timeout === undefined ? {} : { timeoutMs: timeout }),
        log,
      })
      return withDocuments(opened, config, settings)
    }
    case 'settings': {
      const [{ files }, { settings: settingsOf }] = await Promise.all([providers.files(), providers.settings()])
      const { dotenv = true, formats, timeout, show, allow, maxBytes, maxDepth, maxNodes, ...options } = config
      const source = await files({ ...options, root: resolveFolder(config.root, folder), dotenv, log })
      return sliced(
        settingsOf({
          ...redaction,
          source: decoded(source, encodingOptions(config)),
          ...(formats === undefined ? {} : { formats }),
          ...(show === undefined ? {} : { show }),
          ...(allow === undefined ? {} : { allow }),
          ...(maxBytes === undefined ? {} : { maxBytes }),
          ...(maxDepth === undefined ? {} : { maxDepth }),
          ...(maxNodes === undefined ? {} : { maxNodes }),
          ...(timeout === undefined ? {} : { deadlineMs: timeout }),
        }),
      )
    }
    case 'env': {
      const { env } = await providers.env()
      const { allow = [], file } = config
      return env({ ...redaction, allow, ...(file === undefined ? {} : { file: resolveFolder(file, folder) }) })
    }
  }
}

/** @throws ResourceError `invalid` for a source that needs no polling, or that never changes. */
async function withPolling(provider: Provider, config: MountConfig): Promise<Provider> {
  const { poll } = config
  if (poll === undefined) return provider
  const refusal =
    provider.watch === undefined
      ? config.provider === 'env' && config.file === undefined && 'The environment of a process does not change.'
      : 'It tells of changes by itself, which is sooner and costs less.'
  if (refusal === false) return polled(provider, { interval: poll })
  await provider.close?.()
  throw invalid(`${refusal} Remove "poll".`, 'poll')
}

export interface CatalogSettings extends MountSettings {
  readonly pages?: Config['pages']
  readonly changes?: Config['changes']
  readonly cursorSecret?: string
}

/**
 * Opens mounts and puts them into a catalog: all of them, or none.
 *
 * @throws ResourceError of the first mount that cannot be opened, or `invalid` for addresses that overlap.
 */
export async function openCatalog(planned: readonly PlannedMount[], settings: CatalogSettings): Promise<Catalog> {
  const { log, pages, changes, cursorSecret } = settings
  const key = cursorSecret === undefined ? {} : { key: createHmac('sha256', cursorSecret).update('versions').digest() }
  const opened = await Promise.allSettled(planned.map((mount) => openMount(mount, { ...key, ...settings })))
  const mounts = opened.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  try {
    for (const result of opened) if (result.status === 'rejected') throw result.reason
    return createCatalog({
      mounts,
      log,
      ...(pages === undefined ? {} : { pages }),
      ...(changes === undefined ? {} : { changes }),
      ...(cursorSecret === undefined ? {} : { secret: Buffer.from(cursorSecret) }),
    })
  } catch (error) {
    await Promise.allSettled(mounts.map((mount) => mount.provider.close?.()))
    throw error
  }
}
