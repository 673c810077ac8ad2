import { createHmac, randomBytes } from 'node:crypto'
import { type Catalog, createCatalog, type Mount } from '../core/catalog.ts'
import { isResourceError } from '../core/errors.ts'
import { defined } from '../core/kit/object.ts'
import { doneOnce } from '../core/kit/once.ts'
import type { LongResultBounds, LongResults } from '../core/shared.ts'
import { parseAddress } from '../core/uri.ts'
import { createLazyStore, type LazyStore, type MountSettings, type MountsToSearch } from '../providers/source.ts'
import type { OpeningState } from '../wrap/deferred.ts'
import type { Config } from './load.ts'
import { type DeferredMount, openLazily, openMount } from './open-mount.ts'
import { hasTools, isSearch, mountSource, type PlannedMount } from './plan.ts'

/** Returns a function for the key of versions of redacted contents; `undefined` if no index needs the same key after a restart. */
function createVersionKey(
  planned: readonly PlannedMount[],
  cursorSecret: string | undefined,
  store: LazyStore | undefined,
): () => Promise<Uint8Array | undefined> {
  const isCompared = planned.some(({ config }) => isSearch(config))
  return doneOnce(async () => {
    if (cursorSecret !== undefined) return createHmac('sha256', cursorSecret).update('versions').digest()
    return isCompared && store !== undefined ? keptKey(store) : undefined
  })
}

interface CatalogSettings extends Omit<MountSettings, 'store' | 'versionKey' | 'spill' | 'replicas'> {
  /** Settings of the store that some mounts need. The store is opened with the first of these mounts, and closed with the catalog. */
  readonly store?: Config['store']
  readonly pages?: Config['pages']
  readonly changes?: Config['changes']
  readonly spill?: Config['spill']
  readonly cursorSecret?: string
  /** The secret that seals cursors if the configuration has none. Default: one that this process makes. */
  readonly ownCursorSecret?: string
  /** Earlier secrets. Cursors that were sealed with one of them are still accepted. */
  readonly earlierCursorSecrets?: readonly string[]
  /** Whether other processes serve the same configuration. They then notify each other of changes through the store. */
  readonly replicas?: boolean
  /** Whether a mount is opened at its first use. By default all are opened here, and a mount that cannot be opened is an error. */
  readonly lazily?: boolean
}

export interface MountOpening {
  readonly mount: PlannedMount
  readonly state: OpeningState
}

/** A catalog whose mounts may not be open yet. */
export interface MountedCatalog extends Catalog {
  /** Returns the mounts in the order of the configuration, each with the state of its opening. The call opens nothing. */
  openings(): readonly MountOpening[]
  /** Opens every mount that is not open yet, concurrently. Resolves to the addresses of the mounts that could not be opened. */
  openAll(): Promise<readonly string[]>
}

/**
 * Creates a catalog of mounts. It opens all of them, or none if one fails. With `lazily`, each mount is opened at its first use.
 *
 * @throws ResourceError of the first mount that cannot be opened, or `invalid` for addresses that overlap.
 */
export async function openCatalog(
  mounted: readonly PlannedMount[],
  settings: CatalogSettings,
): Promise<MountedCatalog> {
  const planned = mounted.map(refinedOnce)
  const {
    log,
    pages,
    changes,
    spill: spillSettings,
    cursorSecret,
    ownCursorSecret,
    earlierCursorSecrets = [],
    store: storeOptions,
    lazily = false,
    replicas: isReplica = false,
    ...rest
  } = settings
  const store = storeOptions === undefined ? undefined : createLazyStore(storeOptions, log)
  const sharedStore = isReplica ? store : undefined
  const replicas =
    sharedStore === undefined ? undefined : (await import('./replicas.ts')).lazyChangeLog(sharedStore, log)
  const cursors = cursorSecret ?? ownCursorSecret
  const versionKey = createVersionKey(planned, cursorSecret, store)
  let catalog: Catalog | undefined
  const plannedAt = (address: string) =>
    planned.find((mount) => parseAddress(mount.address).text === parseAddress(address).text)
  const searchable: MountsToSearch = {
    reader: (address) => catalog?.reader(address),
    addresses: planned.flatMap(({ address, config }) => (mountSource(config).isUnsearched === true ? [] : [address])),
    refined: async (address) => {
      const mount = plannedAt(address)
      return (await mount?.refine?.().catch(() => undefined)) ?? mount?.config
    },
  }
  const spilling = planned.some(({ config }) => hasTools(config))
    ? await openSpill(spillSettings, sharedStore)
    : undefined
  const settingsOf = (index: number): MountSettings => ({
    ...rest,
    log,
    searchable,
    mountNumber: index + 1,
    versionKey,
    ...defined({ store, replicas, spill: spilling?.options }),
  })
  const mounts: (Mount & Partial<DeferredMount>)[] = []
  try {
    if (lazily) mounts.push(...(await Promise.all(planned.map((mount, index) => openLazily(mount, settingsOf(index))))))
    else {
      const results = await Promise.allSettled(planned.map((mount, index) => openMount(mount, settingsOf(index))))
      mounts.push(...results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : [])))
      for (const result of results) if (result.status === 'rejected') throw result.reason
    }
    const innerCatalog = createCatalog({
      mounts: [...mounts, ...(spilling === undefined ? [] : [spilling.mount])],
      log,
      ...defined({ pages, changes }),
      // Earlier texts are kept only if a mount needs the store anyway.
      ...(store !== undefined && planned.some(({ config }) => mountSource(config).keeps === true)
        ? {
            earlier: async () => {
              const texts = (await import('./earlier.ts')).createTextHistory(store.open, planned, rest.scrubber)
              if (replicas === undefined) return texts
              // `lasting` would also store the log of changes of this process, and replicas would overwrite the logs of each other.
              const { lasting: _, ...shared } = texts
              return shared
            },
          }
        : {}),
      ...(cursors === undefined ? {} : { secret: Buffer.from(cursors) }),
      earlierSecrets: earlierCursorSecrets.map((secret) => Buffer.from(secret)),
    })
    catalog = innerCatalog
    return {
      ...innerCatalog,
      openings: () => planned.map((mount, index) => ({ mount, state: mounts[index]?.openingState?.() ?? 'open' })),
      openAll: async () => {
        const results = await Promise.allSettled(mounts.map((mount) => mount.open?.()))
        return mounts.flatMap(({ address }, index) => (results[index]?.status === 'rejected' ? [address] : []))
      },
      close: () =>
        innerCatalog
          .close()
          .finally(() => replicas?.close())
          .finally(() => store?.close()),
    }
  } catch (error) {
    await Promise.allSettled(mounts.map((mount) => mount.provider.close?.()))
    await store?.close()
    throw error
  }
}

/** Creates the storage of long results of tools, and its mount. Replicas keep them in their shared store. */
async function openSpill(settings: Config['spill'] = {}, store?: LazyStore) {
  const [{ createSpill }, { sliced }, { limited }] = await Promise.all([
    import('../wrap/spill.ts'),
    import('../wrap/sliced.ts'),
    import('../wrap/limited.ts'),
  ])
  const { tokens, keep, ...bounds } = settings
  const shared = store === undefined ? undefined : await sharedResults(store)
  const spill = createSpill({ ...bounds, ...defined({ keepMs: keep, keptIn: shared }) })
  const mount: Mount = {
    address: spill.address,
    provider: limited(sliced(spill.provider)),
    title: 'Long results of tools',
    derived: true,
  }
  return { options: { spill, ...defined({ maxTokens: tokens }) }, mount }
}

async function sharedResults(store: LazyStore): Promise<(bounds: LongResultBounds) => LongResults> {
  const { lazyLongResults } = await import('./replicas.ts')
  return (bounds) => lazyLongResults(store, bounds)
}

/** Surveys the source of a mount once, for all callers that need the result. */
function refinedOnce(planned: PlannedMount): PlannedMount {
  const { refine } = planned
  if (refine === undefined) return planned
  return { ...planned, refine: doneOnce(refine) }
}

/**
 * Returns the key in the store, which the first call creates. Returns `undefined` if the store does not answer; the caller then
 * uses a temporary key.
 */
async function keptKey(store: LazyStore): Promise<Uint8Array | undefined> {
  try {
    const keys = (await store.open()).collection('keys')
    const row = await keys.put({ key: 'versions', value: randomBytes(32) }, { absent: true })
    return (row ?? (await keys.get('versions')))?.value
  } catch (error) {
    if (isResourceError(error, 'unavailable')) return undefined
    throw error
  }
}
