import { ResourceError } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import * as z from '../../schema/builder.ts'
import { count, durationFrom, size, sizeUpTo, text } from '../../schema/fields.ts'
import { refusal } from '../../schema/refusals.ts'
import { documentsShape, withoutEffects } from '../../schema/shapes.ts'
import { collectionName, defineSourceSchema, type OpenSource } from '../source.ts'

const resultsShape = {
  collection: text
    .max(100)
    .optionalKey(
      'The name of these results in the store. Two mounts with the same collection show the same results. By default the address.',
    ),
  ttl: durationFrom('1s').optionalKey('How long a result without an expiry time is kept. By default "30d".'),
  keep: z
    .strictObject({
      records: count.optionalKey('Maximum number of results. By default 10000.'),
      bytes: size.optionalKey('Maximum size of all results. By default "256MiB".'),
      age: durationFrom('1s').optionalKey('Maximum age of a result, even if it expires later. By default unlimited.'),
    })
    .optionalKey('Limits of the kept results. Expired results are deleted first, then the oldest.'),
  maxBytes: sizeUpTo('8MiB', 'The size is larger than a result may be.').optionalKey(
    'Maximum size of a result. By default "1MiB", at most "8MiB".',
  ),
  language: z
    .string()
    .regex(/^[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*$/, {
      error: refusal('This is not a language.', 'Write one such as "ja" or "en".'),
    })
    .optionalKey('The language of a result, and of its report, if the result names none. By default "en".'),
  write: z
    .array(text.describe('The name of a role; "*" stands for everybody.'))
    .min(1, {
      error: refusal('The list is empty.', 'Name the roles that may write. Without this key no role may write.'),
    })
    .optionalKey(
      'The roles that may write results: with the tool `save_analysis`, and over HTTP by POST to /results/NAME, where NAME is the address without its scheme. A role that cannot see the mount cannot write to it either. By default nobody can write, and there is neither the tool nor the POST.',
    ),
  redact: documentsShape.redact,
}

export const source = defineSourceSchema({
  about: 'Cached results of wall-bounce analyses.',
  shape: resultsShape,
  effects: {
    options: {
      ...withoutEffects('collection ttl keep maxBytes language write redact'),
    },
  },
})

const dayMs = 24 * 3_600_000
const defaults = { ttlMs: 30 * dayMs, records: 10_000, bytes: 256 * 2 ** 20 }

export const open: OpenSource<typeof source> = async (
  { collection, ttl = defaults.ttlMs, keep, maxBytes, language, redact = 'off' },
  { address, log, store, redaction },
) => {
  if (store === undefined)
    throw new ResourceError('internal', 'The mount needs a store for its results, and none is open.')
  const [{ results }, { redacted }, { sliced }] = await Promise.all([
    import('./index.ts'),
    import('../../wrap/redacted.ts'),
    import('../../wrap/sliced.ts'),
  ])
  const { key, scrubber } = await redaction()
  const provider = results({
    store: await store.open(),
    collection: `results/${collection ?? collectionName(address)}`,
    ttl,
    keep: { records: defaults.records, bytes: defaults.bytes, ...keep },
    ...defined({ maxBytes, language, scrubber }),
    log,
  })
  return sliced(redacted(provider, { log, ...defined({ scrubber, key }), mode: redact }))
}
