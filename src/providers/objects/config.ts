import { invalid } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import { durationFrom, sizeUpTo, text } from '../../schema/fields.ts'
import { documentEffectRules, documentsShape, withoutEffects } from '../../schema/shapes.ts'
import type { OptionsOf } from '../source.ts'

export const objectsShape = {
  bucket: text.describe('The name of the bucket, without a scheme, a slash or a region.'),
  prefix: text.optionalKey(
    'Serves only keys below this prefix, such as "tenant1/"; paths do not contain it. A slash at the end makes no difference. By default all keys.',
  ),
  maxBytes: sizeUpTo('256MiB').optionalKey(
    'Maximum size of an object, or of a part, in one answer. A larger object can be read in parts. By default "16MiB", at most "256MiB".',
  ),
  links: durationFrom('1s', '1h').optionalKey(
    'Lifetime of links to objects that are too large for one answer. Everyone who has such a link can fetch the object without authentication. By default there are no links.',
  ),
  timeout: durationFrom('100ms').optionalKey(
    'Time-out of one answer of the store, with all retries. By default "30s".',
  ),
  ...documentsShape,
}

export const objectsEffects = {
  ...documentEffectRules,
  ...withoutEffects('bucket prefix maxBytes links timeout endpoint insecure anonymous'),
} as const

/** @throws ResourceError `invalid` for links together with redaction, which they would bypass. */
export function bucketOptions(options: OptionsOf<typeof objectsShape>) {
  const { bucket, prefix, maxBytes, links, timeout, redact = 'off' } = options
  if (links !== undefined && redact !== 'off')
    throw invalid(
      'A link bypasses "redact": its content is not searched for secrets. Remove "links" or "redact".',
      'configuration',
    )
  return { bucket, ...defined({ prefix, maxBytes, linkMs: links, timeoutMs: timeout }) }
}
