import { invalid } from '../core/errors.ts'
import { defined } from '../core/kit/defined.ts'
import type { Provider } from '../core/provider.ts'
import { sources } from '../providers/index.ts'
import type { MountSettings } from '../providers/mount-settings.ts'
import type { OpenContext } from '../providers/source.ts'
import { polled } from '../wrap/polled.ts'
import { withDocuments } from './documents.ts'
import type { MountConfig } from './schema.ts'

/** Opens the provider of a mount, with its wrappers. */
export async function openProvider(
  address: string,
  config: MountConfig,
  folder: string,
  settings: MountSettings,
): Promise<Provider> {
  const { open } = await sources[config.provider].open()
  // TypeScript cannot see that a source and its options belong together.
  const openSource = open as (options: MountConfig, context: OpenContext) => Promise<Provider>
  return openSource(config, openContext(address, config, folder, settings))
}

/** Returns the context with which a source opens a mount. */
export function openContext(
  address: string,
  config: MountConfig,
  folder: string,
  { key: given, versionKey, replicas: _, place: __, ...settings }: MountSettings,
): OpenContext {
  const { log, scrubber } = settings
  const redaction = async () => ({ log, ...defined({ scrubber, key: given ?? (await versionKey?.()) }) })
  return {
    ...settings,
    address,
    folder,
    redaction,
    documents: (provider, facts) => withDocuments(provider, config, redaction, facts),
  }
}

/** @throws ResourceError `invalid` for a source that reports changes by itself, or never changes. */
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
