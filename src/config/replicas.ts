import { doneOnce } from '../core/kit/once.ts'
import type { Log } from '../core/log.ts'
import type { Provider } from '../core/provider.ts'
import type { LongResultBounds, LongResults, SharedChanges } from '../core/shared.ts'
import type { LazyStore } from '../providers/source.ts'
import { mountSource } from './plan.ts'
import type { MountConfig } from './schema.ts'

/**
 * Shares the changes of a source with the other replicas. A provider without changes to share is returned unchanged.
 */
export async function withReplicas(
  provider: Provider,
  config: MountConfig,
  { address, changes }: { readonly address: string; readonly changes: SharedChanges },
): Promise<Provider> {
  const sharing = config.poll === undefined ? mountSource(config).changes : 'polled'
  if (sharing === undefined || provider.watch === undefined) return provider
  const { shared } = await import('../wrap/shared.ts')
  return shared(provider, { changes, source: address, isPolled: sharing === 'polled' })
}

/** The log and the store are opened at the first use. */
export function lazyChangeLog(store: LazyStore, log: Log): SharedChanges {
  let sharedChanges: SharedChanges | undefined
  const open = doneOnce(async () => {
    const [openedStore, { createChangeLog }] = await Promise.all([store.open(), import('../store/index.ts')])
    sharedChanges = createChangeLog({ store: openedStore, log })
    return sharedChanges
  })
  return {
    publish: async (source, changes) =>
      open().then(
        (log) => log.publish(source, changes),
        () => false,
      ),
    follow: async (source, hear) => (await open()).follow(source, hear),
    catchUp: async () => (await open()).catchUp(),
    lease: async (name) => (await open()).lease(name),
    get behind() {
      return sharedChanges?.behind ?? false
    },
    close: async () => {
      const log = await open.begun()?.catch(() => undefined)
      await log?.close()
    },
  }
}

/** The results and the store are opened at the first use. */
export function lazyLongResults(store: LazyStore, bounds: LongResultBounds): LongResults {
  const open = doneOnce(async () => {
    const [openedStore, { resultsInStore }] = await Promise.all([store.open(), import('../store/index.ts')])
    return resultsInStore(openedStore, bounds)
  })
  return {
    put: async (owner, files) => (await open()).put(owner, files),
    list: async (owner) => (await open()).list(owner),
    get: async (owner, id) => (await open()).get(owner, id),
    body: async (owner, id, name) => (await open()).body(owner, id, name),
    close: async () => {
      const results = await open.begun()?.catch(() => undefined)
      await results?.close()
    },
  }
}
