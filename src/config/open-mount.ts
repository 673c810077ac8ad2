import { compileAccess } from '../core/access.ts'
import type { Mount } from '../core/catalog.ts'
import { isResourceError, ResourceError } from '../core/errors.ts'
import { defined } from '../core/kit/defined.ts'
import type { Log } from '../core/log.ts'
import type { Measurements } from '../core/measurements.ts'
import type { Provider } from '../core/provider.ts'
import { type SourceName, sourceNamed } from '../providers/index.ts'
import type { MountSettings } from '../providers/mount-settings.ts'
import { type Deferred, deferred } from '../wrap/deferred.ts'
import { limited, type Outcome } from '../wrap/limited.ts'
import { linked } from '../wrap/linked.ts'
import { openContext, openProvider, withPolling } from './open-provider.ts'
import { methodsOf, type PlannedMount } from './plan.ts'
import type { MountConfig } from './schema.ts'
import { deferredSearch } from './search.ts'

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
export type DeferredMount = Mount & Pick<Deferred, 'open' | 'openingState'>

/** A mount that is opened at its first use. Until it is open, requests get `unavailable` if it cannot be opened. */
function deferMount(planned: PlannedMount, settings: MountSettings): DeferredMount {
  const { address, config, folder } = planned
  const log: Log = (level, message, fields) => settings.log(level, message, { mount: address, ...fields })
  if (config.provider === 'search') {
    const open = async () => {
      const search = await import('../providers/search/open.ts')
      return search.open(config, openContext(address, config, folder, { ...settings, log }))
    }
    return withOpening(planned, deferredSearch(open, log), settings)
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
  const { replicas: changes, ...rest } = settings
  const provider = await withPolling(await openProvider(planned.address, config, planned.folder, rest), config)
  if (changes === undefined) return provider
  const { withReplicas } = await import('./replicas.ts')
  return withReplicas(provider, config, { address: planned.address, changes })
}

/** An open provider as a mount: with the limits of its configuration, and its access rules. */
function mountOf({ address, config }: PlannedMount, opened: Provider, settings: MountSettings): Mount {
  const { title, description, link, access, scopes, cache, limits } = config
  const log: Log = (level, message, fields) => settings.log(level, message, { mount: address, ...fields })
  const told = link === undefined ? opened : linked(opened, { link, ...exceptionsOf(config) })
  return {
    address,
    provider: limited(told, { ...limits, log, ...observed(config.provider, settings) }),
    ...defined({ title, description }),
    ...(access === undefined ? {} : { access: compileAccess(access) }),
    ...defined({ scopes }),
    ...(cache === undefined ? {} : { cache: { ttlMs: cache.ttl, scope: scopeOf(config) } }),
    ...(sourceNamed(config.provider)?.isDerived === true ? { derived: true } : {}),
    ...(config.provider === 'results' ? { writers: config.write ?? [] } : {}),
  }
}

/** Pages of a git history are not files on a forge. */
const historyPage = /^(?:branches|tags|log|status|commits|diff|blame)(?:\/|$)/

function exceptionsOf({ provider }: MountConfig) {
  return provider === 'git' ? { except: (path: string) => historyPage.test(path) } : {}
}

/** Returns the cache scope of a mount. Hits of a search depend on the caller, so they are always private. */
function scopeOf({ provider, cache }: MountConfig): 'public' | 'private' {
  return provider === 'search' ? 'private' : (cache?.scope ?? 'private')
}

/** A mount that is opened at its first use. A results mount is opened at once, if possible, because callers write into it. */
export async function openLazily(
  planned: PlannedMount,
  settings: MountSettings,
): Promise<Mount & Partial<DeferredMount>> {
  if (planned.config.provider !== 'results') return deferMount(planned, settings)
  const mount = await openMount(planned, settings).catch((error: unknown) => {
    if (isResourceError(error)) return undefined
    throw error
  })
  return mount ?? deferMount(planned, settings)
}

/** Counts the outcomes of requests to a mount, if measurements are on. Its address is not a label, because it may be a path. */
export function observed(
  provider: SourceName,
  { measurements, place = 0 }: { readonly measurements?: Measurements; readonly place?: number },
): { readonly observe?: (outcome: Outcome) => void } {
  if (measurements === undefined) return {}
  const counts = new Map<Outcome, number>()
  measurements.add(() => [
    {
      name: 'hikidashi_source_answers_total',
      type: 'counter',
      help: 'What came of the questions to a source: by its mount (its place among all) and outcome.',
      samples: [...counts].map(([outcome, value]) => ({
        labels: { mount: String(place), provider, outcome: outcome.replace('-', '_') },
        value,
      })),
    },
  ])
  return { observe: (outcome) => void counts.set(outcome, (counts.get(outcome) ?? 0) + 1) }
}
