import { invalid } from '../../core/errors.ts'
import type { Provider } from '../../core/provider.ts'
import { requireKeys } from '../../core/required.ts'
import { parseEndpoint } from '../objects/endpoint.ts'
import { type BucketOptions, completeOptions } from '../objects/options.ts'
import { createObjects } from '../objects/provider.ts'
import { createClient } from './client.ts'
import { createGcsStore } from './store.ts'

export interface GcsOptions extends BucketOptions {
  /** Where the API is, if it is not that of Google: `http://127.0.0.1:4443`. */
  readonly endpoint?: string
  /** Whether an endpoint beyond the loopback may be `http://`. Default false. */
  readonly insecure?: boolean
  /** The absolute path of the key of a service account. Default: the application default credentials. */
  readonly keyFile?: string
  /** The project that pays for what is asked. Default: that of the bucket. */
  readonly userProject?: string
  /** Whether no credentials are sent: for public buckets. Default false: without credentials nothing is asked. */
  readonly anonymous?: boolean
}

/** So many connections at once: as many as a mount asks for at once, unless it is told otherwise. */
const sockets = 32

/**
 * The objects of a bucket of Google Cloud Storage. The path of an object is its name, below `prefix`; names that no path can
 * have are left out, and the log names some of them.
 *
 * The version of an object is its generation. Every answer is one version, whole, and as long as the store says. What the
 * credentials may not read is `not-found`.
 *
 * Nothing is asked before the first call. See docs/providers/gcs.md.
 *
 * @throws ResourceError `invalid` for options that cannot be; the message says what to do.
 */
export async function gcs(options: GcsOptions): Promise<Provider> {
  requireKeys('gcs({ bucket })', options, { bucket: 'a text' })
  const { keyFile, userProject, anonymous = false, insecure = false } = options
  const { bucket, ...settings } = completeOptions(options)
  if (anonymous && keyFile !== undefined)
    throw invalid('Whoever is anonymous has no key: remove "keyFile", or "anonymous".', 'anonymous')
  if (anonymous && settings.linkSeconds !== undefined)
    throw invalid('Links are signed, and without credentials nothing is. Remove "links".', 'links')
  const endpoint = options.endpoint === undefined ? undefined : parseEndpoint(options.endpoint, insecure)
  const client = createClient({ endpoint, keyFile, anonymous, timeoutMs: settings.timeoutMs, sockets })
  const store = createGcsStore({ client, bucket, userProject, log: settings.log })
  return createObjects(store, settings)
}
