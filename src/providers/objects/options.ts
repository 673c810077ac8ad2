import { invalid } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { isPath } from '../../core/path.ts'
import type { ObjectsOptions } from './provider.ts'

/** Options common to all providers of object storage. */
export interface BucketOptions {
  readonly bucket: string
  /** Only keys below this prefix are served, without it in their paths: `tenant1/`. A final `/` is optional. */
  readonly prefix?: string
  /** Maximum size of an object, or of a range, that is read at once, in bytes. Default 16 MiB. */
  readonly maxBytes?: number
  /** Lifetime of links to larger objects, in milliseconds: from a second to an hour. Default: no links. */
  readonly linkMs?: number
  /** Time-out of one answer of the store, in milliseconds. Default 30,000. */
  readonly timeoutMs?: number
  readonly log?: Log
}

/** @throws ResourceError `invalid`, whose message says what to do. */
export function completeOptions(options: BucketOptions): ObjectsOptions & { readonly bucket: string } {
  const { bucket, maxBytes = 16 * 2 ** 20, linkMs, timeoutMs = 30_000, log = () => {} } = options
  // So that the name cannot lead to another host, path or query.
  if (!/^[A-Za-z0-9](?:[A-Za-z0-9]|[._-](?![.-])){1,253}$/.test(bucket) || /[._-]$/.test(bucket))
    throw invalid('This is not the name of a bucket. Write it alone, without a scheme, a slash or a region.', 'bucket')
  const prefix = prefixOf(options.prefix ?? '')
  if (!(maxBytes >= 1 && maxBytes <= 256 * 2 ** 20))
    throw invalid('At most 256 MiB are read at once, and at least one byte.', 'maxBytes')
  if (linkMs !== undefined && !(linkMs >= 1000 && linkMs <= 3_600_000))
    throw invalid('A link holds for at least a second and at most an hour.', 'links')
  if (!(timeoutMs >= 100)) throw invalid('An answer takes longer than that: give it at least 100 ms.', 'timeout')
  const linkSeconds = linkMs === undefined ? undefined : Math.floor(linkMs / 1000)
  return { bucket, prefix, maxBytes, linkSeconds, timeoutMs, log }
}

function prefixOf(prefix: string): string {
  const path = prefix.endsWith('/') ? prefix : `${prefix}/`
  if (prefix === '' || prefix === '/') return ''
  if (isPath(path) && Buffer.byteLength(path) < 1024) return path
  throw invalid('No path can be below this prefix. Write one such as "tenant1/reports/".', 'prefix')
}
