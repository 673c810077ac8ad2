import { createHmac } from 'node:crypto'
import { compileAccess } from '../core/access.ts'
import { type Catalog, createCatalog, type Mount } from '../core/catalog.ts'
import { invalid, isResourceError, ResourceError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { Provider } from '../core/provider.ts'
import { parseAddress } from '../core/uri.ts'
import { providers } from '../providers/index.ts'
import { decoded } from '../wrap/decoded.ts'
import { type Deferred, deferred, type OpeningState } from '../wrap/deferred.ts'
import { limited } from '../wrap/limited.ts'
import { linked } from '../wrap/linked.ts'
import { polled } from '../wrap/polled.ts'
import { sliced } from '../wrap/sliced.ts'
import { openMysql, openPostgres, openSqlite } from './databases.ts'
import { encodingOptions, withDocuments } from './documents.ts'
import { resolveFolder } from './folder.ts'
import { openGdrive } from './gdrive.ts'
import { type LazyStore, lazyStore } from './lazy-store.ts'
import type { Config } from './load.ts'
import { openMetrics } from './metrics.ts'
import type { MountSettings, Searchable } from './mount-settings.ts'
import { openGcs, openS3 } from './objects.ts'
import { observed } from './observed.ts'
import { methodsOf, type PlannedMount } from './plan.ts'
import { openPrompts } from './prompts.ts'
import { openRemote } from './remote.ts'
import { openResults } from './results.ts'
import type { MountConfig } from './schema.ts'
import { openScreen } from './screen.ts'
import { deferredSearch, keptKey, openSearch } from './search.ts'

/**
 * Opens one mount.
 *
 * @throws ResourceError of the kind that the provider threw; the message names the address.
 */
export async function openMount(planned: PlannedMount, settings: MountSettings): Promise<Mount> {
  const { address } = planned
  const log: Log = (level, message, fields) => settings.log(level, message, { mount: address, ...fields })
  try {
    return mountOf(planned, await openSource(planned, { ...settings, log }), settings)
  } catch (error) {
    if (!isResourceError(error)) throw error
    const message = `The mount ${address} cannot be opened. ${error.message}`
    throw new ResourceError(error.kind, message, error.detail, { cause: error })
  }
}

/** A mount that is opened at its first use. */
type DeferredMount = Mount & Pick<Deferred, 'open' | 'openingState'>

/** A mount that is opened at its first use. Until it can be opened, what asks it gets `unavailable`. */
function deferMount(planned: PlannedMount, settings: MountSettings): DeferredMount {
  const { address, config, folder } = planned
  const log: Log = (level, message, fields) => settings.log(level, message, { mount: address, ...fields })
  if (config.provider === 'search') {
    const provider = deferredSearch(() => openSearch(address, config, folder, { ...settings, log }), log)
    return withOpening(planned, provider, settings)
  }
  const provider = deferred(() => openSource(planned, { ...settings, log }), { abilities: methodsOf(config), log })
  return withOpening(planned, provider, settings)
}

function withOpening(planned: PlannedMount, provider: Deferred, settings: MountSettings): DeferredMount {
  const { open, openingState } = provider
  return { ...mountOf(planned, provider, settings), open, openingState }
}

async function openSource(planned: PlannedMount, settings: MountSettings): Promise<Provider> {
  const config = (await planned.refine?.()) ?? planned.config
  return withPolling(await openProvider(planned.address, config, planned.folder, settings), config)
}

/** An open provider as a mount: within the limits of its configuration, with its access rules. */
function mountOf({ address, config }: PlannedMount, opened: Provider, settings: MountSettings): Mount {
  const { title, description, link, access, scopes, cache, limits } = config
  const log: Log = (level, message, fields) => settings.log(level, message, { mount: address, ...fields })
  const told = link === undefined ? opened : linked(opened, { link, ...exceptionsOf(config) })
  return {
    address,
    provider: limited(told, { ...limits, log, ...observed(config.provider, settings) }),
    ...(title === undefined ? {} : { title }),
    ...(description === undefined ? {} : { description }),
    ...(access === undefined ? {} : { access: compileAccess(access) }),
    ...(scopes === undefined ? {} : { scopes }),
    ...(cache === undefined ? {} : { cache: { ttlMs: cache.ttl, scope: scopeOf(config) } }),
    ...(derived.has(config.provider) ? { derived: true } : {}),
    ...(config.provider === 'results' ? { writers: config.write ?? [] } : {}),
  }
}

/** Providers of what is about other things that are served, or about the machine: listed behind those where not all is. */
const derived: ReadonlySet<MountConfig['provider']> = new Set([
  'settings',
  'env',
  'git',
  'search',
  'metrics',
  'packages',
  'screen',
  'results',
])

/** Pages of a history are no files at a forge. */
const historyPage = /^(?:branches|tags|log|status|commits|diff|blame)(?:\/|$)/

function exceptionsOf({ provider }: MountConfig) {
  return provider === 'git' ? { except: (path: string) => historyPage.test(path) } : {}
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
  given: MountSettings,
): Promise<Provider> {
  const { log, store: _, versionKey, ...rest } = given
  const key = given.key ?? (isRedacted(config) ? await versionKey?.() : undefined)
  const redaction = { ...rest, ...(key === undefined ? {} : { key }) }
  const settings: MountSettings = { ...given, ...redaction }
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
    case 'packages': {
      const { packages } = await providers.packages()
      return withDocuments(await packages({ ...config, root: resolveFolder(config.root, folder) }), config, settings)
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
      return (await import('./inline.ts')).openInline(address, config)
    case 'web':
      return (await import('./web.ts')).openWeb(address, config, settings)
    case 'api':
      return (await import('./web.ts')).openApi(config, folder, settings)
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

/** The key for the versions of redacted contents. An index compares them with those of an earlier start: then it is kept. */
function createVersionKey(
  planned: readonly PlannedMount[],
  cursorSecret: string | undefined,
  store: LazyStore | undefined,
): () => Promise<Uint8Array | undefined> {
  const isCompared = planned.some(({ config }) => config.provider === 'search')
  let key: Promise<Uint8Array | undefined> | undefined
  return () => {
    if (cursorSecret !== undefined)
      key ??= Promise.resolve(createHmac('sha256', cursorSecret).update('versions').digest())
    else if (isCompared && store !== undefined)
      key ??= keptKey(store).catch((error: unknown) => {
        key = undefined
        throw error
      })
    return key ?? Promise.resolve(undefined)
  }
}

/** Whether a mount has contents that are redacted, so that their versions are hashed with a key. */
function isRedacted(config: MountConfig): boolean {
  if (config.provider === 'search') return false
  switch (config.provider) {
    case 'files':
    case 'git':
    case 'packages':
    case 'prompts':
      return (config.redact ?? 'off') !== 'off'
    default:
      return true
  }
}

export interface CatalogSettings extends Omit<MountSettings, 'store' | 'versionKey'> {
  /** Where the store is that some mounts need. It is opened when the first of them is, and closed with the catalog. */
  readonly store?: Config['store']
  readonly pages?: Config['pages']
  readonly changes?: Config['changes']
  readonly cursorSecret?: string
  /** Cursors that these sealed still open. */
  readonly earlierCursorSecrets?: readonly string[]
  /** Whether a mount is opened at its first use. By default all are opened here, and one that cannot be opened is an error. */
  readonly lazily?: boolean
}

/** How far the opening of a mount is. */
export interface MountOpening {
  readonly mount: PlannedMount
  readonly state: OpeningState
}

/** A catalog whose mounts may still have to be opened. */
export interface OpenedCatalog extends Catalog {
  /** The mounts in the order of the configuration, each with how far its opening is. Asking opens none. */
  openings(): readonly MountOpening[]
  /** Opens every mount that is not open yet, side by side. Answers the addresses of those that could not be opened. */
  openAll(): Promise<readonly string[]>
}

/**
 * Puts mounts into a catalog. Opens them all, or none; or, with `lazily`, each at its first use.
 *
 * @throws ResourceError of the first mount that cannot be opened, or `invalid` for addresses that overlap.
 */
export async function openCatalog(mounted: readonly PlannedMount[], settings: CatalogSettings): Promise<OpenedCatalog> {
  const planned = mounted.map(refinedOnce)
  const {
    log,
    pages,
    changes,
    cursorSecret,
    earlierCursorSecrets = [],
    store: kept,
    lazily = false,
    ...rest
  } = settings
  const store = kept === undefined ? undefined : lazyStore(kept, log)
  const versionKey = createVersionKey(planned, cursorSecret, store)
  let catalog: Catalog | undefined
  const plannedAt = (address: string) =>
    planned.find((mount) => parseAddress(mount.address).text === parseAddress(address).text)
  const searchable: Searchable = {
    reader: (address) => catalog?.reader(address),
    addresses: planned.map(({ address }) => address),
    configOf: (address) => plannedAt(address)?.config,
    refined: async (address) => {
      const mount = plannedAt(address)
      return (await mount?.refine?.().catch(() => undefined)) ?? mount?.config
    },
  }
  const settingsOf = (index: number): MountSettings => ({
    ...rest,
    log,
    searchable,
    place: index + 1,
    versionKey,
    ...(store === undefined ? {} : { store }),
  })
  const mounts: (Mount & Partial<DeferredMount>)[] = []
  try {
    if (lazily) mounts.push(...(await Promise.all(planned.map((mount, index) => openLazily(mount, settingsOf(index))))))
    else {
      const opened = await Promise.allSettled(planned.map((mount, index) => openMount(mount, settingsOf(index))))
      mounts.push(...opened.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : [])))
      for (const result of opened) if (result.status === 'rejected') throw result.reason
    }
    const made = createCatalog({
      mounts,
      log,
      ...(pages === undefined ? {} : { pages }),
      ...(changes === undefined ? {} : { changes }),
      ...(cursorSecret === undefined ? {} : { secret: Buffer.from(cursorSecret) }),
      earlierSecrets: earlierCursorSecrets.map((secret) => Buffer.from(secret)),
    })
    catalog = made
    return {
      ...made,
      openings: () => planned.map((mount, index) => ({ mount, state: mounts[index]?.openingState?.() ?? 'open' })),
      openAll: async () => {
        const opened = await Promise.allSettled(mounts.map((mount) => mount.open?.()))
        return mounts.flatMap(({ address }, index) => (opened[index]?.status === 'rejected' ? [address] : []))
      },
      close: () => made.close().finally(() => store?.close()),
    }
  } catch (error) {
    await Promise.allSettled(mounts.map((mount) => mount.provider.close?.()))
    await store?.close()
    throw error
  }
}

/** A mount whose source is looked at once, however many need to know what was found. */
function refinedOnce(planned: PlannedMount): PlannedMount {
  const { refine } = planned
  if (refine === undefined) return planned
  let refined: Promise<MountConfig> | undefined
  return {
    ...planned,
    refine: () => {
      refined ??= refine().catch((error: unknown) => {
        refined = undefined
        throw error
      })
      return refined
    },
  }
}

/** A mount that is opened at its first use. Results are opened at once, where that succeeds: others write into them. */
async function openLazily(planned: PlannedMount, settings: MountSettings): Promise<Mount & Partial<DeferredMount>> {
  if (planned.config.provider !== 'results') return deferMount(planned, settings)
  const mount = await openMount(planned, settings).catch((error: unknown) => {
    if (isResourceError(error)) return undefined
    throw error
  })
  return mount ?? deferMount(planned, settings)
}
