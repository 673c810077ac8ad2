import { invalid } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { isDriveId } from './model.ts'
import { parseLoopbackEndpoint } from './transport.ts'

export type Credentials =
  /** A person who has allowed access by `hikidashi auth gdrive`. */
  | { readonly kind: 'person'; readonly client: OAuthClient; readonly tokenFile: string }
  /** A service account: its key as JSON, and the user it impersonates, if access is delegated. */
  | { readonly kind: 'service'; readonly key: string; readonly subject?: string }
  | { readonly kind: 'default' }

export interface OAuthClient {
  readonly id: string
  readonly secret: string | undefined
}

export type ServedPart =
  | { readonly kind: 'my-drive' }
  | { readonly kind: 'folder'; readonly id: string }
  /** Shared drives with these ids, or all that the credentials are a member of. */
  | { readonly kind: 'drives'; readonly ids?: readonly string[] }
  | { readonly kind: 'shared' }

/** The shortcuts to resolve: none, those to served files, or all. */
export type ShortcutPolicy = 'none' | 'inside' | 'anywhere'

export interface GdriveOptions {
  readonly credentials: Credentials
  /** The part of Drive to serve. Default: My Drive. */
  readonly what?: ServedPart
  /** Default `anywhere` in My Drive, `inside` elsewhere. */
  readonly shortcuts?: ShortcutPolicy
  /** Whether each file is visible only to those whom Drive shares it with: see `docs/providers/gdrive.md`. Default false. */
  readonly permissions?: boolean
  /** Interval of polls for changes, and maximum age of a listing, in milliseconds. Default 15,000. */
  readonly intervalMs?: number
  /** Maximum number of files and folders. Default 200,000. */
  readonly maxFiles?: number
  /** Maximum size of a file, or of a range, that is read at once, in bytes. Default 16 MiB. */
  readonly maxBytes?: number
  /** Time-out of one answer including retries, in milliseconds. Default 30,000. */
  readonly timeoutMs?: number
  /** A server on this machine that replaces Google, for tests. */
  readonly endpoint?: string
  readonly log?: Log
}

/** @throws ResourceError `invalid`. */
export function completeGdriveOptions(options: GdriveOptions) {
  const { credentials, what = { kind: 'my-drive' }, permissions = false, intervalMs = 15_000 } = options
  const { maxFiles = 200_000, maxBytes = 16 * 2 ** 20, timeoutMs = 30_000, endpoint, log = () => {} } = options
  const ids = what.kind === 'folder' ? [what.id] : what.kind === 'drives' ? (what.ids ?? []) : []
  for (const id of ids)
    if (!isDriveId(id))
      throw invalid(
        'The id of a folder or shared drive is not valid. Write the last part of the link to it.',
        'configuration',
      )
  if (what.kind === 'drives' && what.ids?.length === 0)
    throw invalid('"drives" is empty. Name some shared drives, or write true for all.', 'configuration')
  if (!(intervalMs >= 100)) throw invalid('"interval" must be at least 100 ms.', 'configuration')
  if (!(maxFiles >= 1 && maxFiles <= 2_000_000))
    throw invalid('"maxFiles" must be from 1 to 2,000,000.', 'configuration')
  if (!(maxBytes >= 1 && maxBytes <= 256 * 2 ** 20))
    throw invalid('"maxBytes" must be from 1 byte to 256 MiB.', 'configuration')
  if (!(timeoutMs >= 100)) throw invalid('"timeout" must be at least 100 ms.', 'configuration')
  return {
    credentials,
    what,
    shortcuts: options.shortcuts ?? (what.kind === 'my-drive' ? ('anywhere' as const) : ('inside' as const)),
    permissions,
    intervalMs,
    maxFiles,
    maxBytes,
    timeoutMs,
    endpoint: endpoint === undefined ? undefined : parseLoopbackEndpoint(endpoint),
    log,
  }
}
