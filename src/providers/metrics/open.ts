import { invalid } from '../../core/errors.ts'
import { isLoopback } from '../../core/host.ts'
import { defined } from '../../core/kit/defined.ts'
import { parseUri } from '../../core/uri.ts'
import { requireSecret } from '../../schema/secret.ts'
import { collectionName } from '../mount-settings.ts'
import type { OpenSource, OptionsOf } from '../source.ts'
import type { source } from './config.ts'
import type { Credentials } from './request.ts'

/** Opens the metrics of Prometheus, or of this server itself. */
export const open: OpenSource<typeof source> = async (options, { address, folder, log, store, measurements }) => {
  const { interval, maxSeries, maxPoints, maxBytes, timeout, keep, allowAddresses } = options
  const common = { ...defined({ interval, maxSeries, maxPoints }), log }
  const { metrics } = await import('./index.ts')
  if (options.source === 'self')
    return metrics({
      ...common,
      source: 'self',
      name: collectionName(address),
      ...defined({ keep }),
      ...(store === undefined ? {} : { store: await store.open() }),
      ...defined({ measurements }),
    })
  return metrics({
    ...common,
    url: options.url ?? '',
    ...defined({ allowAddresses }),
    credentials: await credentialsIn(options, folder),
    ...defined({ allow: options.allow, timeoutMs: timeout, maxBytes }),
  })
}

/** @throws ResourceError `invalid` for a secret that is not there, and for one that others could read on its way. */
async function credentialsIn(
  { bearer, basic, url = '', insecure = false }: OptionsOf<(typeof source)['shape']>,
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
