import { createHash } from 'node:crypto'
import { invalid } from '../core/errors.ts'
import { isLoopback } from '../core/host.ts'
import { defined } from '../core/kit/defined.ts'
import type { Provider } from '../core/provider.ts'
import { parseAddress, parseUri } from '../core/uri.ts'
import { providers } from '../providers/index.ts'
import type { Credentials } from '../providers/metrics/request.ts'
import type { MountSettings } from './mount-settings.ts'
import type { MountConfig } from './schema.ts'
import { requireSecret } from './secret.ts'

type MetricsConfig = Extract<MountConfig, { readonly provider: 'metrics' }>

/** Opens the metrics that a mount serves. */
export async function openMetrics(
  address: string,
  config: MetricsConfig,
  folder: string,
  settings: MountSettings,
): Promise<Provider> {
  const { interval, maxSeries, maxPoints, maxBytes, timeout, keep, allowAddresses } = config
  const { log, store, measurements } = settings
  const common = {
    ...defined({ interval, maxSeries, maxPoints }),
    log,
  }
  const { metrics } = await providers.metrics()
  if (config.source === 'self')
    return metrics({
      ...common,
      source: 'self',
      name: nameOf(parseAddress(address).text),
      ...defined({ keep }),
      ...(store === undefined ? {} : { store: await store.open() }),
      ...defined({ measurements }),
    })
  return metrics({
    ...common,
    url: config.url ?? '',
    ...defined({ allowAddresses }),
    credentials: await credentialsIn(config, folder),
    ...defined({ allow: config.allow, timeoutMs: timeout, maxBytes }),
  })
}

/** @throws ResourceError `invalid` for a secret that is not there, and for one that others could read on its way. */
async function credentialsIn(
  { bearer, basic, url = '', insecure = false }: MetricsConfig,
  folder: string,
): Promise<Credentials | undefined> {
  if (bearer === undefined && basic === undefined) return undefined
  const { scheme, authority } = parseUri(url)
  const host = authority.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')
  if (scheme === 'http' && !isLoopback(host) && !insecure)
    throw invalid(
      'The credentials would go over the network in the clear. Write https://, or add "insecure": true.',
      'insecure',
    )
  if (bearer !== undefined) return { bearer: await requireSecret('bearer', bearer, folder) }
  return basic && { user: basic.user, password: await requireSecret('basic.password', basic.password, folder) }
}

/** An address as a part of the name of a collection, which is short. */
function nameOf(address: string): string {
  return Buffer.byteLength(address) <= 150 ? address : createHash('sha256').update(address).digest('hex')
}
