import { createHmac } from 'node:crypto'
import { resolve } from 'node:path'
import { compileAccess } from '../core/access.ts'
import { type Catalog, createCatalog, type Mount } from '../core/catalog.ts'
import { invalid, isResourceError, ResourceError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { Measurements } from '../core/measurements.ts'
import { isPath } from '../core/path.ts'
import type { Provider } from '../core/provider.ts'
import type { Scrubber } from '../core/scrub.ts'
import { fileAddress, formatUri, parseAddress } from '../core/uri.ts'
import { providers } from '../providers/index.ts'
import { decoded } from '../wrap/decoded.ts'
import { limited } from '../wrap/limited.ts'
import { polled } from '../wrap/polled.ts'
import { sliced } from '../wrap/sliced.ts'
import { openMysql, openPostgres, openSqlite } from './databases.ts'
import { encodingOptions, withDocuments } from './documents.ts'
import { resolveFolder } from './folder.ts'
import { openGdrive } from './gdrive.ts'
import { openInline } from './inline.ts'
import { type LazyStore, lazyStore } from './lazy-store.ts'
import type { Config } from './load.ts'
import { openMetrics } from './metrics.ts'
import { openGcs, openS3 } from './objects.ts'
import { observed } from './observed.ts'
import { openPrompts } from './prompts.ts'
import { openRemote } from './remote.ts'
import { openResults } from './results.ts'
import type { MountConfig } from './schema.ts'
import { openScreen } from './screen.ts'
import { keptKey, openSearch, type Searchable } from './search.ts'
import { openApi, openWeb } from './web.ts'

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
  /** Where results and measurements are kept. */
  readonly store?: LazyStore
  /** What this process measures of itself. */
  readonly measurements?: Measurements
  /** The other mounts, once all of them are open. */
  readonly searchable?: Searchable
  /** The place of the mount among all, from 1: what it is called where its address is not to be told. */
  readonly place?: number
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
    const opened = await withPolling(await openProvider(address, config, folder, { ...settings, log }), config)
    provider = limited(opened, { ...limits, log, ...observed(config.provider, settings) })
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
    ...(cache === undefined ? {} : { cache: { ttlMs: cache.ttl, scope: scopeOf(config) } }),
    ...(config.provider === 'results' ? { writers: config.write ?? [] } : {}),
  }
}

/** Whose an answer is. What is found is of whoever asks, whatever the operator says. */
function scopeOf({ provider, cache }: MountConfig): 'public' | 'private' {
  return provider === 'search' ? 'private' : (cache?.scope ?? 'private')
}

/** Opens the provider of a mount, in the wrappers that belong to it. */
async function openProvider(
  address: string,
  config: MountConfig,
  folder: string,
  settings: MountSettings,
): Promise<Provider> {
  const { log, store: _, ...redaction } = settings
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
    case 's3':
      return withDocuments(await openS3(config, folder, log), config, settings)
    case 'gcs':
      return withDocuments(await openGcs(config, folder, log), config, settings)
    case 'gdrive':
      return withDocuments(await openGdrive(config, folder, log), config, settings)
    case 'mysql':
      return openMysql(config, folder, log)
    case 'sqlite':
      return openSqlite(config, folder, log)
    case 'postgres':
      return openPostgres(config, folder, log)
    case 'remote':
      return openRemote(address, config, folder, log, redaction)
    case 'results':
      return openResults(address, config, settings)
    case 'prompts':
      return openPrompts(config, folder, settings)
    case 'screen':
      return openScreen(config)
    case 'inline':
      return openInline(address, config)
    case 'web':
      return openWeb(address, config, settings)
    case 'api':
      return openApi(config, folder, settings)
    case 'search':
      return openSearch(address, config, folder, settings)
    case 'metrics':
      return openMetrics(address, config, folder, settings)
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
  // What is fetched looks by itself whether it has changed: listing it tells nothing.
  if (poll === undefined || config.provider === 'web' || config.provider === 'api') return provider
  const refusal =
    provider.watch === undefined
      ? (config.provider === 'env' && config.file === undefined && 'The environment of a process does not change.') ||
        (config.provider === 'inline' && 'What a configuration holds does not change while it is served.')
      : 'It tells of changes by itself, which is sooner and costs less.'
  if (refusal === false) return polled(provider, { interval: poll })
  await provider.close?.()
  throw invalid(`${refusal} Remove "poll".`, 'poll')
}

/** What versions of redacted contents are hashed with. An index compares them with those of earlier: then it is kept. */
async function versionKey(
  planned: readonly PlannedMount[],
  cursorSecret: string | undefined,
  store: LazyStore | undefined,
): Promise<Uint8Array | undefined> {
  if (cursorSecret !== undefined) return createHmac('sha256', cursorSecret).update('versions').digest()
  const isCompared = planned.some(({ config }) => config.provider === 'search')
  return isCompared && store !== undefined ? keptKey(store) : undefined
}

export interface CatalogSettings extends Omit<MountSettings, 'store'> {
  /** Where the store is that some mounts need. It is opened when the first of them is, and closed with the catalog. */
  readonly store?: Config['store']
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
  const { log, pages, changes, cursorSecret, store: kept, ...rest } = settings
  const store = kept === undefined ? undefined : lazyStore(kept, log)
  const key = await versionKey(planned, cursorSecret, store)
  let catalog: Catalog | undefined
  const searchable: Searchable = {
    reader: (address) => catalog?.reader(address),
    configOf: (address) =>
      planned.find((mount) => parseAddress(mount.address).text === parseAddress(address).text)?.config,
  }
  const opened = await Promise.allSettled(
    planned.map((mount, index) =>
      openMount(mount, {
        ...(key === undefined ? {} : { key }),
        ...rest,
        log,
        searchable,
        place: index + 1,
        ...(store === undefined ? {} : { store }),
      }),
    ),
  )
  const mounts = opened.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  try {
    for (const result of opened) if (result.status === 'rejected') throw result.reason
    const made = createCatalog({
      mounts,
      log,
      ...(pages === undefined ? {} : { pages }),
      ...(changes === undefined ? {} : { changes }),
      ...(cursorSecret === undefined ? {} : { secret: Buffer.from(cursorSecret) }),
    })
    catalog = made
    return { ...made, close: () => made.close().finally(() => store?.close()) }
  } catch (error) {
    await Promise.allSettled(mounts.map((mount) => mount.provider.close?.()))
    await store?.close()
    throw error
  }
}
