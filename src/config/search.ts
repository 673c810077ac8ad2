import { createHash, randomBytes } from 'node:crypto'
import { invalid, isResourceError, ResourceError } from '../core/errors.ts'
import { isLoopback } from '../core/host.ts'
import { defined } from '../core/kit/defined.ts'
import type { Log } from '../core/log.ts'
import { parseAddress, parseUri } from '../core/uri.ts'
import { providers } from '../providers/index.ts'
import type { Search } from '../providers/search/index.ts'
import type { EmbedderOptions } from '../search/index.ts'
import { type Deferred, deferred } from '../wrap/deferred.ts'
import { resolveFolder } from './folder.ts'
import type { LazyStore, MountSettings } from './mount-settings.ts'
import type { MountConfig } from './schema.ts'
import { resolveSecret } from './secret.ts'

type SearchConfig = Extract<MountConfig, { readonly provider: 'search' }>

/** Providers whose mounts `"over": "*"` leaves out: they have no texts that stay for a while, or are searches themselves. */
export const unsearched: readonly string[] = [
  'search',
  'screen',
  'metrics',
] satisfies readonly MountConfig['provider'][]

/** Opens a search over other mounts, whose index is in the store of the configuration. */
export async function openSearch(
  address: string,
  { over, maxBytes, maxRows, refresh, embeddings }: SearchConfig,
  folder: string,
  settings: MountSettings,
): Promise<Search> {
  if (settings.store === undefined) throw new ResourceError('internal', 'There is no store to keep an index in.')
  const { log, scrubber, searchable } = settings
  const [{ search }, { openSearchIndex }, embedder] = await Promise.all([
    providers.search(),
    import('../search/index.ts'),
    embedderOf(embeddings, folder),
  ])
  const store = await settings.store.open()
  const name = nameOf(parseAddress(address).text)
  const index = await openSearchIndex({ store, name, log, ...defined({ embedder }) })
  const all = () =>
    (searchable?.addresses ?? []).filter((one) => !unsearched.includes(searchable?.configOf(one)?.provider ?? 'search'))
  const addresses = over === '*' ? all() : over
  // The same source is read in another way once the look at it finds something else.
  const configs = new Map(
    await Promise.all(addresses.map(async (one) => [one, await searchable?.refined(one)] as const)),
  )
  const mounts = () =>
    addresses.flatMap((one) => {
      const mount = searchable?.reader(one)
      return mount === undefined ? [] : [{ mount, way: wayOf(configs.get(one)) }]
    })
  return search({
    index,
    store,
    name,
    mounts,
    ...defined({ maxBytes, maxRows, interval: refresh, scrubber }),
    log,
  })
}

/** A search that is opened at its first use, as {@link deferred} does it. Feeding it begins once it is open. */
export function deferredSearch(open: () => Promise<Search>, log: Log): Search & Deferred<Search> {
  let isFed = false
  const opening = async () => {
    const provider = await open()
    if (isFed) provider.feed()
    return provider
  }
  const provider = deferred(opening, { abilities: { watch: false, prompts: false, sees: false }, log })
  return {
    ...provider,
    feed: () => {
      isFed = true
      provider.open().then(
        (search) => search.feed(),
        () => {},
      )
    },
    feedStatus: async () => (await provider.open()).feedStatus(),
    currentAt: async () => (await provider.open()).currentAt(),
  }
}

/** A key that is made once and kept in the store. `undefined`: the store does not answer, and it is another one this time. */
export async function keptKey(store: LazyStore): Promise<Uint8Array | undefined> {
  try {
    const keys = (await store.open()).collection('keys')
    const made = await keys.put({ key: 'versions', value: randomBytes(32) }, { absent: true })
    return (made ?? (await keys.get('versions')))?.value
  } catch (error) {
    if (isResourceError(error, 'unavailable')) return undefined
    throw error
  }
}

/** Keys of a mount that do not change the contents that are read from it. */
const aside: readonly string[] = ['title', 'description', 'access', 'scopes', 'cache', 'limits', 'poll']

/** Changes whenever a mount is read in another way: redacted, or with other rules. */
function wayOf(config: MountConfig | undefined): string {
  const told = Object.entries(config ?? {}).filter(([key]) => !aside.includes(key))
  return createHash('sha256').update(JSON.stringify(told)).digest('base64url').slice(0, 16)
}

async function embedderOf(given: SearchConfig['embeddings'], folder: string): Promise<EmbedderOptions | undefined> {
  if (given === undefined) return undefined
  const { model, timeout, openai, ollama, local, allowAddresses } = given
  const common = {
    model,
    ...defined({ timeoutMs: timeout, allowAddresses }),
  }
  if (ollama !== undefined) return { ...common, ollama }
  if (openai === undefined)
    return { ...common, local: local?.folder === undefined ? {} : { folder: resolveFolder(local.folder, folder) } }
  const { url, key } = openai
  if (key === undefined) return { ...common, openai: { url } }
  const { scheme, authority } = parseUri(url)
  if (scheme === 'http' && !isLoopback(authority.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')))
    throw invalid(
      'The key would go over the network in the clear: write https:// in "embeddings.openai.url".',
      'insecure',
    )
  const found = await resolveSecret(key, { folder })
  if ('message' in found) throw invalid(`There is no "embeddings.openai.key". ${found.message} ${found.fix}`, 'secret')
  return { ...common, openai: { url, key: found.value } }
}

/** An address as a part of the name of a collection, which is short. */
function nameOf(address: string): string {
  return Buffer.byteLength(address) <= 150 ? address : createHash('sha256').update(address).digest('hex')
}
