import { ResourceError } from '../../core/errors.ts'
import { defined } from '../../core/kit/defined.ts'
import { redacted } from '../../wrap/redacted.ts'
import { sliced } from '../../wrap/sliced.ts'
import { collectionName } from '../mount-settings.ts'
import type { OpenSource } from '../source.ts'
import type { source } from './config.ts'

const dayMs = 24 * 3_600_000
const defaults = { ttlMs: 30 * dayMs, records: 10_000, bytes: 256 * 2 ** 20 }

/** Opens the results that a mount serves, in the store of the configuration. */
export const open: OpenSource<typeof source> = async (
  { collection, ttl = defaults.ttlMs, keep, maxBytes, language, redact = 'off' },
  { address, log, store, redaction },
) => {
  if (store === undefined) throw new ResourceError('internal', 'There is no store to keep results in.')
  const { results } = await import('./index.ts')
  const { key, scrubber } = await redaction()
  const opened = results({
    store: await store.open(),
    collection: `results/${collection ?? collectionName(address)}`,
    ttl,
    keep: { records: defaults.records, bytes: defaults.bytes, ...keep },
    ...defined({ maxBytes, language, scrubber }),
    log,
  })
  return sliced(redacted(opened, { log, ...defined({ scrubber, key }), mode: redact }))
}
