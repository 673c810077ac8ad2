import { createHash } from 'node:crypto'
import { ResourceError } from '../core/errors.ts'
import { defined } from '../core/kit/defined.ts'
import type { Provider } from '../core/provider.ts'
import { parseAddress } from '../core/uri.ts'
import { providers } from '../providers/index.ts'
import { redacted } from '../wrap/redacted.ts'
import { sliced } from '../wrap/sliced.ts'
import type { MountSettings } from './mount-settings.ts'
import type { MountConfig } from './schema.ts'

type ResultsConfig = Extract<MountConfig, { readonly provider: 'results' }>

const day = 24 * 3_600_000
const defaults = { ttl: 30 * day, records: 10_000, bytes: 256 * 2 ** 20 }

/** Opens the results that a mount serves, in the store of the configuration. */
export async function openResults(
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
