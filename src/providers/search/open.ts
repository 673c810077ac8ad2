import { createHash } from 'node:crypto'
import { invalid, ResourceError } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import { pathWithin } from '../../core/kit/within.ts'
import { isInTheClear, resolveSecret } from '../../schema/values.ts'
import type { EmbedderOptions } from '../../search/index.ts'
import { collectionName, locatePath, type OpenContext, type OpenSource, type OptionsOf } from '../source.ts'
import type { source } from './config.ts'
import type { Search } from './index.ts'

export const open: OpenSource<typeof source, Search> = async (
  { over, maxBytes, maxRows, refresh, embeddings },
  context,
) => {
  const { address, log, store: lazyStore, scrubber, searchable } = context
  if (lazyStore === undefined)
    throw new ResourceError('internal', 'The search needs a store for its index, and none is open.')
  const [{ search }, { openSearchIndex }, embedder] = await Promise.all([
    import('./index.ts'),
    import('../../search/index.ts'),
    embedderOf(embeddings, context),
  ])
  const store = await lazyStore.open()
  const name = collectionName(address)
  const index = await openSearchIndex({ store, name, log, ...defined({ embedder }) })
  const addresses = over === '*' ? (searchable?.addresses ?? []) : over
  // The options of a mount can depend on a survey of its source, and change how its contents are read.
  const options = new Map(
    await Promise.all(addresses.map(async (one) => [one, await searchable?.refined(one)] as const)),
  )
  const mounts = () =>
    addresses.flatMap((one) => {
      const mount = searchable?.reader(one)
      return mount === undefined ? [] : [{ mount, way: wayOf(options.get(one)) }]
    })
  return search({
    index,
    store,
    name,
    mounts,
    ...defined({ maxBytes, maxRows, intervalMs: refresh, scrubber }),
    log,
  })
}

/** Keys of a mount that do not change the contents that are read from it. */
const aside: readonly string[] = ['title', 'description', 'access', 'scopes', 'cache', 'limits', 'poll']

/** Returns a hash of the options of a mount that change the contents that are read from it, such as redaction. */
function wayOf(options: object = {}): string {
  const members = Object.entries(options).filter(([key]) => !aside.includes(key))
  return createHash('sha256').update(JSON.stringify(members)).digest('base64url').slice(0, 16)
}

async function embedderOf(
  mountOptions: OptionsOf<(typeof source)['shape']>['embeddings'],
  context: OpenContext,
): Promise<EmbedderOptions | undefined> {
  if (mountOptions === undefined) return undefined
  const { model, weight, timeout, openai, ollama, local, allowAddresses } = mountOptions
  const common = { model, ...defined({ weight, timeoutMs: timeout, allowAddresses }) }
  if (ollama !== undefined) return { ...common, ollama }
  if (openai === undefined)
    return {
      ...common,
      local: local?.folder === undefined ? {} : { folder: await realFolder(locatePath(local.folder, context)) },
    }
  const { url, key } = openai
  if (key === undefined) return { ...common, openai: { url } }
  if (isInTheClear(url))
    throw invalid(
      'The key would go over the network without encryption. Write https:// in "embeddings.openai.url".',
      'configuration',
    )
  const secret = await resolveSecret(key, context)
  if ('message' in secret)
    throw invalid(`"embeddings.openai.key" has no value. ${secret.message} ${secret.fix}`, 'configuration')
  return { ...common, openai: { url, key: secret.value } }
}

/** Returns the path of a folder after its links are checked, because the package that loads the models opens them by their paths. */
async function realFolder({ path, within }: ReturnType<typeof locatePath>): Promise<string> {
  return within === undefined ? path : pathWithin(path, within)
}
