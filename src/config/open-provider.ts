import { createHash } from 'node:crypto'
import { invalid, ResourceError } from '../core/errors.ts'
import { defined } from '../core/kit/defined.ts'
import type { Log } from '../core/log.ts'
import type { Provider } from '../core/provider.ts'
import { parseAddress } from '../core/uri.ts'
import { providers } from '../providers/index.ts'
import { decoded } from '../wrap/decoded.ts'
import { polled } from '../wrap/polled.ts'
import { redacted } from '../wrap/redacted.ts'
import { sliced } from '../wrap/sliced.ts'
import { openMysql, openPostgres, openSqlite } from './databases.ts'
import { encodingOptions, withDocuments } from './documents.ts'
import { resolveFolder } from './folder.ts'
import { openGdrive } from './gdrive.ts'
import { openMetrics } from './metrics.ts'
import type { MountSettings } from './mount-settings.ts'
import { openRemote } from './remote.ts'
import type { MountConfig } from './schema.ts'
import { openSearch } from './search.ts'
import { namedSecret, type SecretSource } from './secret.ts'

/** Opens the provider of a mount, in the wrappers that belong to it. */
export async function openProvider(
  address: string,
  config: MountConfig,
  folder: string,
  given: MountSettings,
): Promise<Provider> {
  const { log, store: _, versionKey, ...rest } = given
  const key = given.key ?? (isRedacted(config) ? await versionKey?.() : undefined)
  const redaction = { ...rest, ...defined({ key }) }
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
        ...defined({ timeoutMs: timeout }),
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
          ...defined({ formats, show, allow, maxBytes, maxDepth, maxNodes, deadlineMs: timeout }),
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
export async function withPolling(provider: Provider, config: MountConfig): Promise<Provider> {
  const { poll } = config
  // These providers poll by themselves: their list has no versions to compare.
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

/** Whether a mount has contents that are redacted, so that their versions are hashed with a key. */
export function isRedacted(config: MountConfig): boolean {
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

/** Opens the displays of this machine. */
async function openScreen(config: Extract<MountConfig, { readonly provider: 'screen' }>): Promise<Provider> {
  const { screen } = await providers.screen()
  const { displays, program, interval, timeout, maxBytes } = config
  return screen({
    ...defined({ displays, program, interval, timeoutMs: timeout, maxBytes }),
  })
}

/** Opens a folder of prompts: its files as documents, of which the prompts are made, so that these are redacted as they are. */
async function openPrompts(
  config: Extract<MountConfig, { readonly provider: 'prompts' }>,
  folder: string,
  { log, store: _, ...redaction }: MountSettings,
): Promise<Provider> {
  const [{ files }, { prompts }] = await Promise.all([providers.files(), providers.prompts()])
  const { limit, include = ['**/*.md'], frontMatter = ['**/*.md'] } = config
  const source = await files({ ...config, include, root: resolveFolder(config.root, folder), log })
  return prompts({
    source: await withDocuments(source, { ...config, frontMatter }, { ...redaction, log }),
    log,
    ...defined({ limit }),
  })
}

type ResultsConfig = Extract<MountConfig, { readonly provider: 'results' }>

const day = 24 * 3_600_000
const defaults = { ttl: 30 * day, records: 10_000, bytes: 256 * 2 ** 20 }

/** Opens the results that a mount serves, in the store of the configuration. */
async function openResults(
  address: string,
  { collection, ttl = defaults.ttl, keep, maxBytes, language, redact = 'off' }: ResultsConfig,
  settings: MountSettings,
): Promise<Provider> {
  if (settings.store === undefined) throw new ResourceError('internal', 'There is no store to keep results in.')
  const { log, scrubber, key } = settings
  const { results } = await providers.results()
  const opened = results({
    store: await settings.store.open(),
    collection: `results/${collection ?? nameOf(parseAddress(address).text)}`,
    ttl,
    keep: { records: defaults.records, bytes: defaults.bytes, ...keep },
    ...defined({ maxBytes, language, scrubber }),
    log,
  })
  const redaction = { log, ...defined({ scrubber, key }) }
  return sliced(redacted(opened, { ...redaction, mode: redact }))
}

/** An address as a part of the name of a collection, which is short. */
function nameOf(address: string): string {
  return Buffer.byteLength(address) <= 150 ? address : createHash('sha256').update(address).digest('hex')
}

type S3Config = Extract<MountConfig, { readonly provider: 's3' }>
type GcsConfig = Extract<MountConfig, { readonly provider: 'gcs' }>

/** Opens a bucket of S3, as its mount says. */
async function openS3(config: S3Config, folder: string, log: Log): Promise<Provider> {
  const { accessKeyId, secretAccessKey, sessionToken, endpoint, insecure, region, pathStyle, profile } = config
  const { anonymous, requesterPays } = config
  const keys = await keysIn({ accessKeyId, secretAccessKey, sessionToken }, folder)
  const { s3 } = await providers.s3()
  return s3({
    ...bucketOptions(config),
    ...defined({ endpoint, insecure, region, pathStyle, keys, profile, anonymous, requesterPays }),
    log,
  })
}

/** Opens a bucket of Google Cloud Storage, as its mount says. */
async function openGcs(config: GcsConfig, folder: string, log: Log): Promise<Provider> {
  const { endpoint, insecure, keyFile, userProject, anonymous } = config
  const options = bucketOptions(config)
  const { gcs } = await providers.gcs()
  return gcs({
    ...options,
    ...defined({ endpoint, insecure }),
    ...(keyFile === undefined ? {} : { keyFile: resolveFolder(keyFile, folder) }),
    ...defined({ userProject, anonymous }),
    log,
  })
}

/** @throws ResourceError `invalid` for links past what looks for secrets. */
function bucketOptions({ bucket, prefix, maxBytes, links, timeout, redact = 'off' }: S3Config | GcsConfig) {
  if (links !== undefined && redact !== 'off')
    throw invalid('A link leads past "redact": what it shows is not looked through. Remove one of the two.', 'links')
  return {
    bucket,
    ...defined({ prefix, maxBytes, linkMs: links, timeoutMs: timeout }),
  }
}

interface KeySources {
  readonly accessKeyId: SecretSource | undefined
  readonly secretAccessKey: SecretSource | undefined
  readonly sessionToken: SecretSource | undefined
}

async function keysIn({ accessKeyId, secretAccessKey, sessionToken }: KeySources, folder: string) {
  if (accessKeyId === undefined && secretAccessKey === undefined && sessionToken === undefined) return undefined
  if (accessKeyId === undefined || secretAccessKey === undefined)
    throw invalid('An access key has two parts. Add "accessKeyId" and "secretAccessKey", or remove them.', 'keys')
  const token = sessionToken === undefined ? undefined : await namedSecret('sessionToken', sessionToken, folder)
  return {
    accessKeyId: await namedSecret('accessKeyId', accessKeyId, folder),
    secretAccessKey: await namedSecret('secretAccessKey', secretAccessKey, folder),
    ...defined({ sessionToken: token }),
  }
}
