import { type FileHandle, open } from 'node:fs/promises'
import { auth } from '@googleapis/drive'
import { errorCodeOf, invalid, ResourceError } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import type { Log } from '../../core/log.ts'
import { mayAskMachine } from '../objects/endpoint.ts'
import { isId } from './model.ts'
import { standInEndpoint, type Transport } from './transport.ts'

/** Credentials for Google. */
export type Credentials =
  /** A person who has allowed access by `hikidashi auth gdrive`. */
  | { readonly kind: 'person'; readonly client: OAuthClient; readonly tokenFile: string }
  /** A service account: its key as JSON, and the user it impersonates, if access is delegated. */
  | { readonly kind: 'service'; readonly key: string; readonly subject?: string }
  /** The application default credentials. */
  | { readonly kind: 'default' }

/** The OAuth client registration of this program. */
export interface OAuthClient {
  readonly id: string
  readonly secret: string | undefined
}

/** The part of Drive to serve. */
export type What =
  | { readonly kind: 'my-drive' }
  | { readonly kind: 'folder'; readonly id: string }
  /** Shared drives with these ids, or all that the credentials are a member of. */
  | { readonly kind: 'drives'; readonly ids?: readonly string[] }
  /** Files that others have shared with the owner of the credentials. */
  | { readonly kind: 'shared' }

/** The shortcuts to resolve: none, those to served files, or all. */
export type Shortcuts = 'none' | 'inside' | 'anywhere'

export interface GdriveOptions {
  readonly credentials: Credentials
  /** The part of Drive to serve. Default: My Drive. */
  readonly what?: What
  /** The shortcuts to resolve. Default `anywhere` in My Drive, where the user created them; `inside` elsewhere. */
  readonly shortcuts?: Shortcuts
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

/** @throws ResourceError `invalid`, whose message says what to do. */
export function completeOptions(options: GdriveOptions) {
  const { credentials, what = { kind: 'my-drive' }, permissions = false, intervalMs = 15_000 } = options
  const { maxFiles = 200_000, maxBytes = 16 * 2 ** 20, timeoutMs = 30_000, endpoint, log = () => {} } = options
  const ids = what.kind === 'folder' ? [what.id] : what.kind === 'drives' ? (what.ids ?? []) : []
  for (const id of ids)
    if (!isId(id)) throw invalid('This is no id of Drive. It is the last part of the link to a folder or drive.', 'id')
  if (what.kind === 'drives' && what.ids?.length === 0)
    throw invalid('No shared drive is named. Name some, or write true for all.', 'drives')
  if (!(intervalMs >= 100)) throw invalid('Drive is not asked that often: give it at least 100 ms.', 'interval')
  if (!(maxFiles >= 1 && maxFiles <= 2_000_000))
    throw invalid('At least one file is served, and at most 2,000,000.', 'maxFiles')
  if (!(maxBytes >= 1 && maxBytes <= 256 * 2 ** 20))
    throw invalid('At most 256 MiB are read at once, and at least one byte.', 'maxBytes')
  if (!(timeoutMs >= 100)) throw invalid('An answer takes longer than that: give it at least 100 ms.', 'timeout')
  return {
    credentials,
    what,
    shortcuts: options.shortcuts ?? (what.kind === 'my-drive' ? ('anywhere' as const) : ('inside' as const)),
    permissions,
    intervalMs,
    maxFiles,
    maxBytes,
    timeoutMs,
    endpoint: endpoint === undefined ? undefined : standInEndpoint(endpoint),
    log,
  }
}

/** The only scope ever requested: read. */
export const scope = 'https://www.googleapis.com/auth/drive.readonly'

/** Google's client for authorization: it adds a token to requests, and renews it, once for all waiting requests. */
export type Authorization = InstanceType<typeof auth.OAuth2>

/** The common part of the types of Google's two packages. */
type AuthorizationLike = Pick<Authorization, 'credentials'> & object

/**
 * Creates the client that authorizes requests. A file that does not exist yet is `unavailable`, so that the next attempt may find it.
 *
 * @throws ResourceError; the message says what to do, and holds nothing of the credentials.
 */
export async function authorize(credentials: Credentials, transport: Transport): Promise<Authorization> {
  // Google's client has its own type for `fetch`.
  const transporterOptions = { fetchImplementation: transport as typeof fetch }
  switch (credentials.kind) {
    case 'person': {
      const { id, secret } = credentials.client
      const token = await readRefreshToken(credentials.tokenFile)
      if (token.clientId !== id)
        throw new ResourceError(
          'unavailable',
          'The permission to read Drive was given to another client than "clientId". Run: hikidashi auth gdrive.',
        )
      const client = createOAuth({ id, secret }, transport)
      client.setCredentials({ refresh_token: token.refreshToken })
      return client
    }
    case 'service': {
      const { email, key, keyId } = parseKey(credentials.key)
      const { subject } = credentials
      return new auth.JWT({
        email,
        key,
        ...defined({ keyId }),
        scopes: [scope],
        ...defined({ subject }),
        transporterOptions,
      })
    }
    case 'default': {
      const google = new auth.GoogleAuth({ scopes: [scope], clientOptions: { transporterOptions } })
      if (!mayAskMachine()) Object.assign(google, { checkIsGCE: false })
      try {
        const found: AuthorizationLike = await google.getClient()
        return found as Authorization
      } catch {
        throw new ResourceError(
          'unavailable',
          'There are no credentials. Name "clientId" and run: hikidashi auth gdrive; or name the "key" of a service account, or set ' +
            'GOOGLE_APPLICATION_CREDENTIALS.',
        )
      }
    }
  }
}

/** Creates the OAuth client of an installed app (RFC 8252). */
export function createOAuth(
  { id, secret }: OAuthClient,
  transport: Transport,
  rest: { readonly redirectUri?: string; readonly endpoint?: string | undefined } = {},
): Authorization {
  const { redirectUri, endpoint } = rest
  return new auth.OAuth2({
    clientId: id,
    ...defined({ clientSecret: secret, redirectUri }),
    ...(endpoint === undefined ? {} : { endpoints: { oauth2AuthBaseUrl: `${endpoint}/o/oauth2/v2/auth` } }),
    transporterOptions: { fetchImplementation: transport as typeof fetch },
  })
}

/**
 * Parses the key of a service account.
 *
 * @throws ResourceError `invalid` (reason `key`).
 */
function parseKey(text: string): { readonly email: string; readonly key: string; readonly keyId?: string } {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null) {
      const { type, client_email: email, private_key: key, private_key_id: keyId } = value as Record<string, unknown>
      if (type === 'service_account' && typeof email === 'string' && typeof key === 'string')
        return { email, key, ...(typeof keyId === 'string' ? { keyId } : {}) }
    }
  } catch {
    // The parse error is not shown: the text is a secret.
  }
  throw invalid('"key" is not the key of a service account, as the Google Cloud console gives it out (JSON).', 'key')
}

/** The file that `hikidashi auth gdrive` writes: anyone who has it and the secret of the client can read everything that was allowed. */
export interface RefreshToken {
  readonly version: 1
  readonly clientId: string
  readonly refreshToken: string
  /** ISO 8601, UTC. */
  readonly created: string
}

const maxBytes = 64 * 1024

/** The remedy for every error of the file. */
const again = 'Run: hikidashi auth gdrive'

/**
 * Reads the refresh token. The file must belong to this user and be closed to all others.
 *
 * @throws ResourceError `unavailable`; the message names the file, and says what to do.
 */
async function readRefreshToken(file: string): Promise<RefreshToken> {
  const refuse = (why: string) => new ResourceError('unavailable', `The file ${file} ${why}`)
  let handle: FileHandle
  try {
    handle = await open(file, 'r')
  } catch (error) {
    const code = errorCodeOf(error) ?? 'unknown'
    if (code === 'ENOENT') throw refuse(`with the permission to read Drive is not there. ${again}.`)
    throw refuse(`cannot be read (${code}). Let this user read it, and nobody else.`)
  }
  try {
    const stats = await handle.stat()
    const { mode, uid, size } = stats
    if (!stats.isFile() || size > maxBytes)
      throw refuse(`is not one that was written by: hikidashi auth gdrive. ${again}.`)
    if (process.platform !== 'win32' && (mode & 0o077) !== 0)
      throw refuse('can be read or written by others, who could read Drive with it. Make it yours alone: chmod 600.')
    const own = process.getuid?.()
    if (own !== undefined && own !== 0 && uid !== own) throw refuse('belongs to another user. Make it yours.')
    const token = parseToken(await handle.readFile('utf8'))
    if (token === undefined) throw refuse(`is not one that was written by: hikidashi auth gdrive. ${again}.`)
    return token
  } finally {
    await handle.close()
  }
}

function parseToken(text: string): RefreshToken | undefined {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null) return undefined
    const { version, clientId, refreshToken, created } = value as Readonly<Record<string, unknown>>
    const isWhole = [clientId, refreshToken, created].every((one) => typeof one === 'string' && one !== '')
    return version === 1 && isWhole ? (value as RefreshToken) : undefined
  } catch {
    return undefined
  }
}
