import { createHash } from 'node:crypto'
import { invalid, ResourceError } from '../core/errors.ts'
import { defined } from '../core/kit/object.ts'
import { pathWithin } from '../core/kit/within.ts'
import { isInTheClear, resolveSecret } from '../schema/values.ts'
import type { EmbedderOptions } from '../search/index.ts'
import { decoded } from '../wrap/decoded.ts'
import { sliced } from '../wrap/sliced.ts'
import type { source as envSource } from './env/config.ts'
import type { source as filesSource } from './files/config.ts'
import type { source as gitSource } from './git/config.ts'
import type { source as promptsSource } from './prompts/config.ts'
import { databaseOptions, rowOptions } from './relational/config.ts'
import type { source as searchSource } from './search/config.ts'
import type { Search } from './search/index.ts'
import type { source as settingsSource } from './settings/config.ts'
import { collectionName, located, type OpenContext, type OpenSource, type OptionsOf } from './source.ts'
import type { source as sqliteSource } from './sqlite/config.ts'

// Functions that open the sources of a folder without a configuration. They are not in `config.ts`, so that they load no schema.

/** Returns the options of `files` for a located folder. */
function rootOf({ path, ...found }: ReturnType<typeof located>) {
  return { root: path, ...found }
}

/** Opens a folder of files as documents. */
export const openFiles: OpenSource<typeof filesSource> = async (options, context) => {
  const { log, documents } = context
  const { files } = await import('./files/index.ts')
  const { rules = [], defaultExcludes } = options
  const { except = [] } = typeof defaultExcludes === 'object' ? defaultExcludes : {}
  return documents(await files({ ...options, ...rootOf(located(options.root, context)), log }), {
    // The heading of a file in another encoding is known only after decoding.
    headings: rules.flatMap(({ title, match }) => (title === 'heading' ? [match].flat() : [])),
    except,
    findsTwins: true,
  })
}

/** Opens the history of a repository, whose files are documents. */
export const openGit: OpenSource<typeof gitSource> = async (given, context) => {
  const { log, documents } = context
  const { git } = await import('./git/index.ts')
  const { timeout, alternates = [], redact = 'off', ...options } = given
  const { isVault } = redact === 'off' ? {} : await import('../secrets/credential-files.ts')
  const { path: repository, ...found } = located(given.repository, context)
  return documents(
    await git({
      ...options,
      ...{ repository, ...found },
      alternates: alternates.map((name) => located(name, context).path),
      ...defined({ timeoutMs: timeout, withheld: isVault }),
      log,
    }),
  )
}

/** Opens the files of settings in a folder. */
export const openSettings: OpenSource<typeof settingsSource> = async (given, context) => {
  const { log, redaction } = context
  const [{ files }, { settings }] = await Promise.all([import('./files/index.ts'), import('./settings/index.ts')])
  const { dotenv = true, formats, timeout, show, allow, maxBytes, maxDepth, maxNodes, ...options } = given
  const { language, encodings } = given
  const { key, scrubber } = await redaction()
  const opened = await files({ ...options, ...rootOf(located(given.root, context)), dotenv, log })
  return sliced(
    settings({
      source: decoded(opened, defined({ language, rules: encodings })),
      ...defined({ key, scrubber, formats, show, allow, maxBytes, maxDepth, maxNodes, timeoutMs: timeout }),
    }),
  )
}

/** Opens a database in a file. */
export const openSqlite: OpenSource<typeof sqliteSource> = async (given, context) => {
  const options = { ...databaseOptions(given), ...rowOptions(given.rows) }
  const { sqlite } = await import('./sqlite/index.ts')
  const { path: file, ...found } = located(given.file, context)
  return sliced(await sqlite({ ...options, file, ...found, log: context.log }))
}

/** Opens the environment of the process, or the variables of a dotenv file. */
export const openEnv: OpenSource<typeof envSource> = async ({ allow = [], file: name }, context) => {
  const { env } = await import('./env/index.ts')
  const { key, scrubber } = await context.redaction()
  const { path: file, within } = name === undefined ? {} : located(name, context)
  return env({ allow, ...defined({ key, scrubber, file, within }) })
}

/** Opens a folder of prompts. They are made of the documents in it, which are redacted. */
export const openPrompts: OpenSource<typeof promptsSource> = async (options, context) => {
  const { log, documents } = context
  const [{ files }, { prompts }] = await Promise.all([import('./files/index.ts'), import('./prompts/index.ts')])
  const { limit, include = ['**/*.md'] } = options
  const opened = await files({ ...options, include, ...rootOf(located(options.root, context)), log })
  return prompts({ source: await documents(opened, { frontMatter: ['**/*.md'] }), log, ...defined({ limit }) })
}

/** Opens a search over other mounts, whose index is in the store of the configuration. */
export const openSearch: OpenSource<typeof searchSource, Search> = async (
  { over, maxBytes, maxRows, refresh, embeddings },
  context,
) => {
  const { address, log, store: lazyStore, scrubber, searchable } = context
  if (lazyStore === undefined) throw new ResourceError('internal', 'There is no store to keep an index in.')
  const [{ search }, { openSearchIndex }, embedder] = await Promise.all([
    import('./search/index.ts'),
    import('../search/index.ts'),
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
  const told = Object.entries(options).filter(([key]) => !aside.includes(key))
  return createHash('sha256').update(JSON.stringify(told)).digest('base64url').slice(0, 16)
}

async function embedderOf(
  given: OptionsOf<(typeof searchSource)['shape']>['embeddings'],
  context: OpenContext,
): Promise<EmbedderOptions | undefined> {
  if (given === undefined) return undefined
  const { model, timeout, openai, ollama, local, allowAddresses } = given
  const common = { model, ...defined({ timeoutMs: timeout, allowAddresses }) }
  if (ollama !== undefined) return { ...common, ollama }
  if (openai === undefined)
    return {
      ...common,
      local: local?.folder === undefined ? {} : { folder: await realFolder(located(local.folder, context)) },
    }
  const { url, key } = openai
  if (key === undefined) return { ...common, openai: { url } }
  if (isInTheClear(url))
    throw invalid(
      'The key would go over the network in the clear: write https:// in "embeddings.openai.url".',
      'insecure',
    )
  const found = await resolveSecret(key, context)
  if ('message' in found) throw invalid(`There is no "embeddings.openai.key". ${found.message} ${found.fix}`, 'secret')
  return { ...common, openai: { url, key: found.value } }
}

/** The package that loads the models opens them by their paths, so the folder is checked before. */
async function realFolder({ path, within }: ReturnType<typeof located>): Promise<string> {
  return within === undefined ? path : pathWithin(path, within)
}
