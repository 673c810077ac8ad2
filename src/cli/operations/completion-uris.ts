import { lazyStore } from '../../config/lazy-store.ts'
import { openMount } from '../../config/open-mount.ts'
import type { PlannedMount } from '../../config/plan.ts'
import { createCatalog } from '../../core/catalog.ts'
import { defined } from '../../core/kit/defined.ts'
import type { View } from '../../core/view.ts'
import { pagesOf } from '../terminal/pages.ts'
import { type Candidate, fitting, type Wanted } from './completion-words.ts'
import { planLocal, storeOf } from './local.ts'
import type { Secrets } from './secrets.ts'
import { headersOf } from './source.ts'

/** More than this is of no use to a person. */
const maxCandidates = 500
/** Maximum time for a completion, in milliseconds. */
const maxTime = 2000
const silent = () => {}

/**
 * The URIs that a word can become: the mounts, and what lies in the directory that has been typed so far. Of a configuration, nothing
 * but the mount in question is opened; a server is asked only where it is named by its URL.
 */
export async function completeUris(wanted: Wanted, secrets: Secrets): Promise<readonly Candidate[]> {
  const { typed, given, kind } = wanted
  if (given.has('command')) return []
  const url = given.get('url')?.[0]
  const signal = AbortSignal.timeout(maxTime)
  if (url !== undefined) {
    const { connect } = await import('../../client/index.ts')
    const view = await connect({ url, headers: headersOf(given.get('header') ?? []) }, { signal, timeoutMs: maxTime })
    const roots = (await view.mounts({ signal })).map(({ uri }) => uri)
    return kind === 'address' ? addresses(roots, typed) : within(view, roots, typed, signal)
  }
  const config = given.get('config')?.[0]
  const planned = await planLocal(config === undefined ? {} : { config }, secrets)
  if ('problems' in planned) return []
  const { local } = planned
  const roots = local.mounts.map(({ address }) => address)
  if (kind === 'address') return addresses(roots, typed)
  const mount = local.mounts.find(({ address }) => typed.startsWith(`${bare(address)}/`))
  // If the current folder is served because nothing else is named, relative paths are completed.
  if (mount === undefined) return local.assumed && typed === '' ? [] : addresses(roots, typed, '/')
  return withMount(mount, storeOf(local), (view) => within(view, roots, typed, signal), local.principal)
}

async function withMount<T>(
  planned: PlannedMount,
  store: Parameters<typeof lazyStore>[0] | undefined,
  use: (view: View) => Promise<T>,
  principal: Parameters<ReturnType<typeof createCatalog>['view']>[0],
): Promise<T> {
  const kept = store === undefined ? undefined : lazyStore(store, silent)
  const mount = await openMount(planned, { log: silent, ...defined({ store: kept }) })
  const catalog = createCatalog({ mounts: [mount], log: silent })
  try {
    return await use(catalog.view(principal))
  } finally {
    await catalog.close()
    await kept?.close()
  }
}

async function within(
  view: View,
  roots: readonly string[],
  typed: string,
  signal: AbortSignal,
): Promise<readonly Candidate[]> {
  const root = roots.find((one) => typed.startsWith(`${bare(one)}/`))
  if (root === undefined) return addresses(roots, typed, '/')
  const directory = typed.slice(0, typed.lastIndexOf('/') + 1)
  const found: Candidate[] = []
  for await (const { items } of pagesOf((query) => view.directory({ uri: directory, ...query }, { signal }))) {
    const candidates = items.map(({ uri, title }) => ({ value: uri, ...defined({ about: title }) }))
    found.push(...fitting(candidates, typed))
    if (found.length >= maxCandidates) break
  }
  return found.slice(0, maxCandidates)
}

function addresses(roots: readonly string[], typed: string, end = ''): readonly Candidate[] {
  return fitting(
    roots.map((root) => ({ value: bare(root) + end })),
    typed,
  )
}

function bare(uri: string): string {
  return uri.replace(/(?<!\/)\/$/, '')
}
