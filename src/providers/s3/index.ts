import { invalid } from '../../core/errors.ts'
import { requireKeys } from '../../core/kit/required.ts'
import type { Provider } from '../../core/provider.ts'
import { parseEndpoint } from '../objects/endpoint.ts'
import { type BucketOptions, completeOptions } from '../objects/options.ts'
import { createObjects } from '../objects/provider.ts'
import { createClient } from './client.ts'
import type { Keys } from './keys.ts'
import { createS3Store } from './store.ts'

export interface S3Options extends BucketOptions {
  /** Address of the store, if it is not AWS: `https://storage.example.com`, `http://127.0.0.1:9000`. */
  readonly endpoint?: string
  /** Whether an endpoint beyond the loopback may be `http://`. Default false. */
  readonly insecure?: boolean
  /** Region. Default: the platform's (`AWS_REGION`, the profile); with an endpoint, `us-east-1`. */
  readonly region?: string
  /** Whether the bucket is in the path of a request instead of the host name. Default: true with an endpoint. */
  readonly pathStyle?: boolean
  /** Default: those of the platform, as every program with the official client finds them. */
  readonly keys?: Keys
  /** A profile of the shared configuration files. */
  readonly profile?: string
  /** Whether requests are unsigned: for public buckets. Default false: without credentials every request fails. */
  readonly anonymous?: boolean
  /** Whether the requester pays. Default false. */
  readonly requesterPays?: boolean
}

/** Maximum number of connections: the default concurrency of a mount. */
const sockets = 32

/**
 * Provider of the objects of a bucket of Amazon S3, or of any compatible store. The path of an object is its key, below `prefix`; keys that no
 * path can hold are left out, and the log names some of them.
 *
 * The version of an object is its ETag. Every answer is one complete version, with the length that the store reports. Objects that the
 * credentials may not read are `not-found`.
 *
 * It sends no request before the first call. See docs/providers/s3.md.
 *
 * @throws ResourceError `invalid` for invalid options; the message says what to do.
 */
export async function s3(options: S3Options): Promise<Provider> {
  requireKeys('s3({ bucket })', options, { bucket: 'a text' })
  const { keys, profile, anonymous = false, insecure = false, requesterPays = false } = options
  const { bucket, ...settings } = completeOptions(options)
  if (/--x-s3$/.test(bucket))
    throw invalid('A directory bucket does not list its keys in order, and cannot be served.', 'bucket')
  if (anonymous && (keys !== undefined || profile !== undefined))
    throw invalid('An anonymous client has no keys and no profile: remove them, or "anonymous".', 'anonymous')
  if (anonymous && settings.linkSeconds !== undefined)
    throw invalid('Links are signed, and without credentials nothing is. Remove "links".', 'links')
  const endpoint = options.endpoint === undefined ? undefined : parseEndpoint(options.endpoint, insecure)
  const client = createClient({
    endpoint,
    region: options.region,
    // No wildcard certificate covers a bucket name with dots before the host name.
    pathStyle: options.pathStyle ?? (endpoint !== undefined || bucket.includes('.')),
    credentials: anonymous ? 'anonymous' : (keys ?? (profile === undefined ? {} : { profile })),
    timeoutMs: settings.timeoutMs,
    sockets,
  })
  const store = createS3Store({ client, bucket, requesterPays, log: settings.log })
  return createObjects(store, settings)
}
