import { invalid } from '../../core/errors.ts'
import { requireKeys } from '../../core/kit/required.ts'
import type { Provider } from '../../core/provider.ts'
import { parseEndpoint } from '../objects/endpoint.ts'
import { type BucketOptions, completeOptions, createObjects } from '../objects/provider.ts'
import { createClient } from './client.ts'
import { createGcsStore } from './store.ts'

export interface GcsOptions extends BucketOptions {
  /** Address of the API, if it is not Google's: `http://127.0.0.1:4443`. */
  readonly endpoint?: string
  /** Whether an endpoint beyond the loopback may be `http://`. Default false. */
  readonly insecure?: boolean
  /** The absolute path of the key of a service account. Default: the application default credentials. */
  readonly keyFile?: string
  /** The project that pays for the requests. Default: that of the bucket. */
  readonly userProject?: string
  /** Whether to send no credentials: for public buckets. Default false: without credentials every request fails. */
  readonly anonymous?: boolean
}

/** Maximum number of connections: the default concurrency of a mount. */
const sockets = 32

/**
 * Provider of the objects of a bucket of Google Cloud Storage. The path of an object is its name, below `prefix`; names that no path can hold
 * are left out, and the log names some of them.
 *
 * The version of an object is its generation. Every answer is one complete version, with the length that the store reports. Objects that the
 * credentials may not read are `not-found`.
 *
 * It sends no request before the first call. See docs/providers/gcs.md.
 *
 * @throws ResourceError `invalid` for invalid options; the message says what to do.
 */
export async function gcs(options: GcsOptions): Promise<Provider> {
  requireKeys('gcs({ bucket })', options, { bucket: 'a text' })
  const { keyFile, userProject, anonymous = false, insecure = false } = options
  const { bucket, ...settings } = completeOptions(options)
  if (anonymous && keyFile !== undefined)
    throw invalid('An anonymous client has no key: remove "keyFile", or "anonymous".', 'anonymous')
  if (anonymous && settings.linkSeconds !== undefined)
    throw invalid('Links are signed, and without credentials nothing is. Remove "links".', 'links')
  const endpoint = options.endpoint === undefined ? undefined : parseEndpoint(options.endpoint, insecure)
  const client = createClient({ endpoint, keyFile, anonymous, timeoutMs: settings.timeoutMs, sockets })
  const store = createGcsStore({ client, bucket, userProject, log: settings.log })
  return createObjects(store, settings)
}
