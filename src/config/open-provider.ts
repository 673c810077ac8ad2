import { invalid } from '../core/errors.ts'
import { defined } from '../core/kit/defined.ts'
import type { Provider } from '../core/provider.ts'
import { providers } from '../providers/index.ts'
import { decoded } from '../wrap/decoded.ts'
import { polled } from '../wrap/polled.ts'
import { sliced } from '../wrap/sliced.ts'
import { openMysql, openPostgres, openSqlite } from './databases.ts'
import { encodingOptions, withDocuments } from './documents.ts'
import { resolveFolder } from './folder.ts'
import { openGdrive } from './gdrive.ts'
import { openMetrics } from './metrics.ts'
import type { MountSettings } from './mount-settings.ts'
import { openGcs, openS3 } from './objects.ts'
import { openPrompts } from './prompts.ts'
import { openRemote } from './remote.ts'
import { openResults } from './results.ts'
import type { MountConfig } from './schema.ts'
import { openScreen } from './screen.ts'
import { openSearch } from './search.ts'

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
