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

/**
 * Returns a function for the key of versions of redacted contents. It resolves to `undefined` if there is no key that
 * survives a restart.
 */
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
  /** Some mounts need the store. It is opened at its first use, and closed with the catalog. */
  readonly store?: Config['store']
  readonly pages?: Config['pages']
  readonly changes?: Config['changes']
  readonly spill?: Config['spill']
  readonly cursorSecret?: string
  /** The secret that seals cursors if the configuration has none. By default this process makes one. */
  readonly ownCursorSecret?: string
  /** Cursors that were sealed with one of them are still accepted. */
  readonly earlierCursorSecrets?: readonly string[]
  /**
   * Whether other processes serve the same configuration. The processes notify each other of changes through the store.
   */
  readonly replicas?: boolean
  /** Whether mounts are opened at their first use. By default they are opened here. */
  readonly lazily?: boolean
}

export interface MountOpening {
  readonly mount: PlannedMount
  readonly state: OpeningState
}

export interface MountedCatalog extends Catalog {
  /**
   * Returns the mounts in the order of the configuration, each with the state of its opening. The call opens nothing.
   */
  openings(): readonly MountOpening[]
  /** Opens the mounts concurrently. Resolves to the addresses of those that could not be opened. */
  openAll(): Promise<readonly string[]>
}

/** @throws ResourceError of the first mount that cannot be opened, or `invalid` for addresses that overlap */
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
              // `lasting` would also store the log of changes of this process, and replicas would overwrite the logs of
              // each other.
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

function refinedOnce(planned: PlannedMount): PlannedMount {
  const { refine } = planned
  if (refine === undefined) return planned
  return { ...planned, refine: doneOnce(refine) }
}

/** Returns the key in the store, which the first call creates; `undefined` if the store does not answer. */
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
