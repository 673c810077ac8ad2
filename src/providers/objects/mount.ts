import { invalid } from '../../core/errors.ts'
import { defined } from '../../core/kit/defined.ts'

interface BucketOptions {
  readonly bucket: string
  readonly prefix?: string
  readonly maxBytes?: number
  readonly links?: number
  readonly timeout?: number
  readonly redact?: 'mask' | 'withhold' | 'off'
}

/**
 * Returns the provider options common to all mounts of object storage.
 *
 * @throws ResourceError `invalid` for links together with redaction, which they would bypass.
 */
export function bucketOptions({ bucket, prefix, maxBytes, links, timeout, redact = 'off' }: BucketOptions) {
  if (links !== undefined && redact !== 'off')
    throw invalid('A link leads past "redact": what it shows is not looked through. Remove one of the two.', 'links')
  return { bucket, ...defined({ prefix, maxBytes, linkMs: links, timeoutMs: timeout }) }
}
