import { invalid } from '../core/errors.ts'
import { isLoopback } from '../core/host.ts'
import { defined } from '../core/kit/defined.ts'
import type { Log } from '../core/log.ts'
import type { Provider } from '../core/provider.ts'
import { providers } from '../providers/index.ts'
import { cleartextHost } from '../providers/remote/target.ts'
import { type RedactedOptions, redacted } from '../wrap/redacted.ts'
import { resolveFolder } from './folder.ts'
import type { MountSettings } from './mount-settings.ts'
import type { MountConfig } from './schema.ts'
import { requireSecret, type SecretSource } from './secret.ts'

type RemoteConfig = Extract<MountConfig, { readonly provider: 'remote' }>

/** Opens another MCP server as a mount. It is started or connected to when it is first asked. */
export async function openRemote(
  address: string,
  config: RemoteConfig,
  folder: string,
  log: Log,
  { spill, ...redaction }: Omit<RedactedOptions, 'mode'> & Pick<MountSettings, 'spill'>,
): Promise<Provider> {
  const { refresh, timeout, maxResources, maxBytes, memory, prompts, tools, redact = 'off' } = config
  const { remote } = await providers.remote()
  const opened = remote({
    target: await targetIn(config, folder),
    address,
    log,
    ...defined({ refreshMs: refresh, timeoutMs: timeout, maxResources, maxBytes, memoryBytes: memory, prompts, tools }),
  })
  const clean = redact === 'off' ? opened : redacted(opened, { ...redaction, log, mode: redact })
  if (spill === undefined || opened.tools === undefined) return clean
  // A result is kept as it is shown: without its secrets.
  return (await import('../wrap/spilled.ts')).spilled(clean, spill)
}

/** @throws ResourceError `invalid` for a secret that is not there, and for one that others could read on its way. */
async function targetIn(config: RemoteConfig, folder: string) {
  const { command, args, url } = config
  if (url === undefined) {
    const env = await valuesOf('env', config.env ?? {}, folder)
    const cwd = config.cwd === undefined ? folder : resolveFolder(config.cwd, folder)
    return { command: command ?? '', cwd, env, ...defined({ args }) }
  }
  const { bearer, headers = {}, insecure = false } = config
  const hasSecrets = bearer !== undefined || Object.keys(headers).length > 0
  const host = cleartextHost(url)
  if (hasSecrets && host !== undefined && !isLoopback(host) && !insecure)
    throw invalid(
      'The credentials would go over the network in the clear. Write https://, or add "insecure": true.',
      'insecure',
    )
  const sent = await valuesOf('headers', headers, folder)
  if (bearer !== undefined) sent.Authorization = `Bearer ${await requireSecret('bearer', bearer, folder)}`
  return { url, headers: sent }
}

async function valuesOf(
  key: string,
  given: Readonly<Record<string, string | SecretSource>>,
  folder: string,
): Promise<Record<string, string>> {
  const values: Record<string, string> = {}
  for (const [name, value] of Object.entries(given))
    values[name] = typeof value === 'string' ? value : await requireSecret(`${key}.${name}`, value, folder)
  return values
}
