import { invalid } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { isPath } from '../../core/path.ts'
import type { ObjectsOptions } from './provider.ts'

/** What every provider of object storage can be told. */
export interface BucketOptions {
  readonly bucket: string
  /** Only keys below this are served, without it in their paths: `tenant1/`. A `/` at the end makes no difference. */
  readonly prefix?: string
  /** The largest object, or part of one, that is read at once, in bytes. Default 16 MiB. */
  readonly maxBytes?: number
  /** How long links to larger objects hold, in milliseconds: at least a second, at most an hour. Default: there are none. */
  readonly linkMs?: number
  /** How long the store may take for one answer, in milliseconds. Default 30,000. */
  readonly timeoutMs?: number
  readonly log?: Log
}

/** @throws ResourceError `invalid`, whose message says what to do. */
export function completeOptions(options: BucketOptions): ObjectsOptions & { readonly bucket: string } {
  const { bucket, maxBytes = 16 * 2 ** 20, linkMs, timeoutMs = 30_000, log = () => {} } = options
  // Nothing in it can lead to another host, path or query.
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
