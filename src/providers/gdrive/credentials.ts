import { type FileHandle, open } from 'node:fs/promises'
import { auth } from '@googleapis/drive'
import { errorCodeOf, invalid, ResourceError } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import { mayAskMachine } from '../objects/endpoint.ts'
import type { Credentials, OAuthClient } from './options.ts'
import type { Transport } from './transport.ts'

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
