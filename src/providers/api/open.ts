import { invalid } from '../../core/errors.ts'
import { defined } from '../../core/kit/defined.ts'
import { parseUri } from '../../core/uri.ts'
import { resolveSecret, type SecretSource } from '../../schema/secret.ts'
import { redacted } from '../../wrap/redacted.ts'
import { sliced } from '../../wrap/sliced.ts'
import { originOptions } from '../http/mount.ts'
import type { OpenSource } from '../source.ts'
import type { source } from './config.ts'
import type { RouteOptions } from './index.ts'

/** Opens the routes of an API. */
export const open: OpenSource<typeof source> = async (options, { folder, log, redaction }) => {
  const { url, routes, bearer, keep, maxEntries, poll, redact = 'off', insecure = false } = options
  const secrets = new Map<string, string>()
  const plain: Record<string, string> = {}
  for (const [name, value] of Object.entries(options.headers ?? {}))
    if (typeof value === 'string') plain[name] = value
    else secrets.set(name, await headerSecret(`headers.${name}`, value, folder))
  const token = bearer === undefined ? undefined : await headerSecret('bearer', bearer, folder)
  const hidden = [...secrets.values(), ...(token === undefined ? [] : [token])]
  if (hidden.length > 0 && isInTheClear(url) && !insecure)
    throw invalid(
      'The credentials would go over the network in the clear. Write https://, or add "insecure": true.',
      'insecure',
    )
  const { api } = await import('./index.ts')
  const opened = api({
    ...originOptions(options),
    url,
    routes: routes as readonly RouteOptions[],
    headers: {
      ...plain,
      ...Object.fromEntries(secrets),
      ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
    },
    secrets: hidden,
    ...defined({ keepMs: keep, maxEntries, poll }),
    log,
  })
  return sliced(redact === 'off' ? opened : redacted(opened, { ...(await redaction()), mode: redact }))
}

/** @throws ResourceError `invalid` for a missing secret, or one that no header can hold. */
async function headerSecret(key: string, source: SecretSource, folder: string): Promise<string> {
  const found = await resolveSecret(source, { folder })
  if ('message' in found) throw invalid(`There is no "${key}". ${found.message} ${found.fix}`, 'secret')
  if (/[^\x20-\x7e\x80-\xff]/.test(found.value))
    throw invalid(`"${key}" holds a line end or another character that no header can hold.`, 'secret')
  return found.value
}

function isInTheClear(url: string): boolean {
  const { scheme, authority } = parseUri(url)
  return scheme === 'http' && !/^(?:127(?:\.\d+){3}|\[::1\]|localhost)(?::\d+)?$/.test(authority)
}
