import { invalid } from '../core/errors.ts'
import { isHttpUrl } from '../core/http-url.ts'
import { defined } from '../core/kit/defined.ts'
import type { Provider } from '../core/provider.ts'
import { parseAddress, parseUri } from '../core/uri.ts'
import type { RouteOptions } from '../providers/api/index.ts'
import { providers } from '../providers/index.ts'
import { redacted } from '../wrap/redacted.ts'
import { sliced } from '../wrap/sliced.ts'
import { withDocuments } from './documents.ts'
import type { MountSettings } from './mount-settings.ts'
import type { Finding } from './problem.ts'
import type { MountConfig } from './schema.ts'
import { resolveSecret, type SecretSource } from './secret.ts'

type WebConfig = Extract<MountConfig, { readonly provider: 'web' }>
type ApiConfig = Extract<MountConfig, { readonly provider: 'api' }>

/** Opens the pages that a mount names. */
export async function openWeb(address: string, config: WebConfig, settings: MountSettings): Promise<Provider> {
  const { pages = [], llms, match, fetch, poll } = config
  const url = config.url ?? parseAddress(address).text
  if (!isHttpUrl(url)) throw invalid(noUrl, 'url')
  if (poll !== undefined && ((pages.length === 0 && llms === undefined) || fetch === false))
    throw invalid('There are no pages to look at: "pages" is empty, or "fetch" is false. Remove "poll".', 'poll')
  const { web } = await providers.web()
  const opened = web({
    ...originOf(config),
    url,
    pages: pages.map((page) => (typeof page === 'string' ? { path: page } : page)),
    ...(match === undefined ? {} : { match: [match].flat() }),
    ...defined({ llms, fetch, poll }),
  })
  return withDocuments(opened, config, settings)
}

/** Opens the routes of an API that a mount names. */
export async function openApi(config: ApiConfig, folder: string, settings: MountSettings): Promise<Provider> {
  const { url, routes, bearer, keep, maxEntries, poll, redact = 'off', insecure = false } = config
  const secrets = new Map<string, string>()
  const plain: Record<string, string> = {}
  for (const [name, value] of Object.entries(config.headers ?? {}))
    if (typeof value === 'string') plain[name] = value
    else secrets.set(name, await headerSecret(`headers.${name}`, value, folder))
  const token = bearer === undefined ? undefined : await headerSecret('bearer', bearer, folder)
  const hidden = [...secrets.values(), ...(token === undefined ? [] : [token])]
  if (hidden.length > 0 && isInTheClear(url) && !insecure)
    throw invalid(
      'The credentials would go over the network in the clear. Write https://, or add "insecure": true.',
      'insecure',
    )
  const { api } = await providers.api()
  const opened = api({
    ...originOf(config),
    url,
    routes: routes as readonly RouteOptions[],
    headers: {
      ...plain,
      ...Object.fromEntries(secrets),
      ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
    },
    secrets: hidden,
    ...defined({ keepMs: keep, maxEntries, poll }),
    log: settings.log,
  })
  return sliced(redact === 'off' ? opened : redacted(opened, { ...settings, mode: redact }))
}

function originOf({ redirects, allowAddresses, insecure, types, maxBytes, timeout }: WebConfig | ApiConfig) {
  return {
    ...defined({ redirects, allowAddresses, insecure, types, maxBytes, timeoutMs: timeout }),
  }
}

/** @throws ResourceError `invalid` for a secret that is not there, or that no header can hold. */
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

const noUrl = 'The address of the mount is none of the web, and "url" does not say where the pages are.'

/** Mounts of pages that do not say where those are. */
export function webFindings(mounts: ReadonlyMap<string, unknown>): readonly Finding[] {
  return [...mounts].flatMap(([address, mount]) => {
    const isWeb = typeof mount === 'object' && mount !== null && 'provider' in mount && mount.provider === 'web'
    if (!isWeb || 'url' in mount || isHttpUrl(address)) return []
    const fix = 'Add "url": "https://www.example.org/docs", or make that the address.'
    return [{ path: ['mounts', address], message: noUrl, fix }]
  })
}
