import { invalid } from '../../core/errors.ts'
import { isLoopback } from '../../core/host.ts'
import { defined } from '../../core/kit/defined.ts'
import { requireSecret, type SecretSource } from '../../schema/secret.ts'
import { resolveFolder } from '../../schema/values.ts'
import { redacted } from '../../wrap/redacted.ts'
import type { OpenSource, OptionsOf } from '../source.ts'
import { cleartextHost, type source } from './config.ts'

/** Opens another MCP server. It is started or connected to when it is first asked. */
export const open: OpenSource<typeof source> = async (options, { address, folder, log, spill, redaction }) => {
  const { refresh, timeout, maxResources, maxBytes, memory, prompts, tools, redact = 'off' } = options
  const { remote } = await import('./index.ts')
  const opened = remote({
    target: await targetIn(options, folder),
    address,
    log,
    ...defined({ refreshMs: refresh, timeoutMs: timeout, maxResources, maxBytes, memoryBytes: memory, prompts, tools }),
  })
  const clean = redact === 'off' ? opened : redacted(opened, { ...(await redaction()), mode: redact })
  if (spill === undefined || opened.tools === undefined) return clean
  // A result is kept as it is shown: without its secrets.
  return (await import('../../wrap/spilled.ts')).spilled(clean, spill)
}

/** @throws ResourceError `invalid` for a missing secret, and for one that others could read on the network path. */
async function targetIn(options: OptionsOf<(typeof source)['shape']>, folder: string) {
  const { command, args, url } = options
  if (url === undefined) {
    const env = await valuesOf('env', options.env ?? {}, folder)
    const cwd = options.cwd === undefined ? folder : resolveFolder(options.cwd, folder)
    return { command: command ?? '', cwd, env, ...defined({ args }) }
  }
  const { bearer, headers = {}, insecure = false } = options
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
