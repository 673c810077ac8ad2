import { invalid } from '../../core/errors.ts'
import type { Provider } from '../../core/provider.ts'
import { requireKeys } from '../../core/required.ts'
import { parseEndpoint } from '../objects/endpoint.ts'
import { type BucketOptions, completeOptions } from '../objects/options.ts'
import { createObjects } from '../objects/provider.ts'
import { createClient } from './client.ts'
import type { Keys } from './keys.ts'
import { createS3Store } from './store.ts'

export interface S3Options extends BucketOptions {
  /** Where the store is, if it is not that of AWS: `https://storage.example.com`, `http://127.0.0.1:9000`. */
  readonly endpoint?: string
  /** Whether an endpoint beyond the loopback may be `http://`. Default false. */
  readonly insecure?: boolean
  /** Default: what the platform says (`AWS_REGION`, the profile); at an endpoint, `us-east-1`. */
  readonly region?: string
  /** Whether the bucket stands in the path of a request, and not before the name of the host. Default: at an endpoint. */
  readonly pathStyle?: boolean
  /** Default: those of the platform, as every program that uses the official client finds them. */
  readonly keys?: Keys
  /** A profile of the shared configuration files. */
  readonly profile?: string
  /** Whether requests are not signed: for public buckets. Default false: without credentials nothing is asked. */
  readonly anonymous?: boolean
  /** Whether whoever asks pays. Default false. */
  readonly requesterPays?: boolean
}

/** So many connections at once: as many as a mount asks for at once, unless it is told otherwise. */
const sockets = 32

/**
 * The objects of a bucket of Amazon S3, or of any store that speaks its protocol. The path of an object is its key, below
 * `prefix`; keys that no path can name are left out, and the log names some of them.
 *
 * The version of an object is its ETag. Every answer is one version, whole, and as long as the store says. What the credentials
 * may not read is `not-found`.
 *
 * Nothing is asked before the first call. See docs/providers/s3.md.
 *
 * @throws ResourceError `invalid` for options that cannot be; the message says what to do.
 */
export async function s3(options: S3Options): Promise<Provider> {
  requireKeys('s3({ bucket })', options, { bucket: 'a text' })
  const { keys, profile, anonymous = false, insecure = false, requesterPays = false } = options
  const { bucket, ...settings } = completeOptions(options)
  if (/--x-s3$/.test(bucket))
    throw invalid('A directory bucket does not list its keys in order, and cannot be served.', 'bucket')
  if (anonymous && (keys !== undefined || profile !== undefined))
    throw invalid('Whoever is anonymous has no keys and no profile: remove them, or "anonymous".', 'anonymous')
  if (anonymous && settings.linkSeconds !== undefined)
    throw invalid('Links are signed, and without credentials nothing is. Remove "links".', 'links')
  const endpoint = options.endpoint === undefined ? undefined : parseEndpoint(options.endpoint, insecure)
  const client = createClient({
    endpoint,
    region: options.region,
    // No certificate is for a name with dots before that of the host.
    pathStyle: options.pathStyle ?? (endpoint !== undefined || bucket.includes('.')),
    credentials: anonymous ? 'anonymous' : (keys ?? (profile === undefined ? {} : { profile })),
    timeoutMs: settings.timeoutMs,
    sockets,
  })
  const store = createS3Store({ client, bucket, requesterPays, log: settings.log })
  return createObjects(store, settings)
}
