import { randomBytes } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { auth } from '@googleapis/drive'
import { errorCodeOf, invalid, unavailable } from '../../core/errors.ts'
import { followAbortFor, withResolvers } from '../../core/kit/abort.ts'
import { defined, jsonIn, objectOf } from '../../core/kit/object.ts'
import { isSameText } from '../../core/kit/same-text.ts'
import { mayUseMetadataService } from '../objects/endpoint.ts'
import type { Credentials, OAuthClient } from './options.ts'
import { createTransport, parseLoopbackEndpoint, type Transport, toRequestFault } from './transport.ts'

const scope = 'https://www.googleapis.com/auth/drive.readonly'

/** Google's client for authorization: it adds a token to requests, and renews it. */
export type Authorization = InstanceType<typeof auth.OAuth2>

/**
 * @throws ResourceError `unavailable` without usable credentials, and `invalid` for a malformed key. Its message holds nothing of the
 * credentials.
 */
export async function createAuthorization(credentials: Credentials, transport: Transport): Promise<Authorization> {
  // Google's client has its own type for `fetch`.
  const transporterOptions = { fetchImplementation: transport as typeof fetch }
  switch (credentials.kind) {
    case 'person': {
      const { id, secret } = credentials.client
      const token = await readRefreshToken(credentials.tokenFile)
      if (token.clientId !== id)
        throw unavailable('The token was issued to another client than "clientId". Run: hikidashi auth gdrive.')
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
        scopes: [scope],
        ...defined({ keyId, subject }),
        transporterOptions,
      })
    }
    case 'default': {
      const google = new auth.GoogleAuth({ scopes: [scope], clientOptions: { transporterOptions } })
      if (!mayUseMetadataService()) Object.assign(google, { checkIsGCE: false })
      try {
        // Google's two packages declare this client with different types, which share these members.
        const client: Pick<Authorization, 'credentials'> & object = await google.getClient()
        return client as Authorization
      } catch {
        throw unavailable(
          'No usable credentials were found. Set "clientId" and run: hikidashi auth gdrive; or set "key" to the key of a service account, or set ' +
            'GOOGLE_APPLICATION_CREDENTIALS.',
        )
      }
    }
  }
}

/** Creates the OAuth client of an installed app (RFC 8252). */
function createOAuth(
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

/** @throws ResourceError `invalid` (reason `configuration`). */
function parseKey(text: string): { readonly email: string; readonly key: string; readonly keyId?: string } {
  // The error of parsing is not shown: the text is a secret.
  const { type, client_email: email, private_key: key, private_key_id: keyId } = objectOf(jsonIn(text))
  if (type === 'service_account' && typeof email === 'string' && typeof key === 'string')
    return { email, key, ...(typeof keyId === 'string' ? { keyId } : {}) }
  throw invalid(
    '"key" is not the key of a service account. Use the JSON file that the Google Cloud console gives out for the key.',
    'configuration',
  )
}

interface RefreshToken {
  readonly version: 1
  readonly clientId: string
  readonly refreshToken: string
  /** Time at which the file was created (ISO 8601, UTC). */
  readonly created: string
}

const maxBytes = 64 * 1024

const again = 'Run: hikidashi auth gdrive'

/**
 * Reads the refresh token. The file must belong to this user (unless that is root), and, except on Windows, no other user may read or write it.
 *
 * @throws ResourceError `unavailable`; the message names the file, and says what to do.
 */
async function readRefreshToken(file: string): Promise<RefreshToken> {
  const refuse = (why: string) => unavailable(`The file ${file} ${why}`)
  let handle: FileHandle
  try {
    handle = await open(file, 'r')
  } catch (error) {
    const code = errorCodeOf(error) ?? 'unknown'
    if (code === 'ENOENT') throw refuse(`with the token for reading Drive does not exist. ${again}.`)
    throw refuse(`cannot be read (${code}). Let this user read it, and no other user.`)
  }
  try {
    const stats = await handle.stat()
    const { mode, uid, size } = stats
    if (!stats.isFile() || size > maxBytes) throw refuse(`was not written by: hikidashi auth gdrive. ${again}.`)
    if (process.platform !== 'win32' && (mode & 0o077) !== 0)
      throw refuse('can be read or written by other users, who could read Drive with it. Forbid that with: chmod 600.')
    const own = process.getuid?.()
    if (own !== undefined && own !== 0 && uid !== own)
      throw refuse('belongs to another user. Change its owner to this user.')
    const token = parseToken(await handle.readFile('utf8'))
    if (token === undefined) throw refuse(`was not written by: hikidashi auth gdrive. ${again}.`)
    return token
  } finally {
    await handle.close()
  }
}

function parseToken(text: string): RefreshToken | undefined {
  const value = objectOf(jsonIn(text))
  const { version, clientId, refreshToken, created } = value
  const isWhole = [clientId, refreshToken, created].every((one) => typeof one === 'string' && one !== '')
  return version === 1 && isWhole ? (value as unknown as RefreshToken) : undefined
}

interface GrantOptions {
  readonly client: OAuthClient
  readonly timeoutMs: number
  readonly show: (url: string) => void
  readonly endpoint?: string
  readonly signal?: AbortSignal
}

/**
 * Asks a person to allow reading Drive, as installed apps do (RFC 8252): in a browser, which redirects only to this machine, with PKCE
 * (RFC 7636). Returns the refresh token to keep.
 *
 * @throws ResourceError `unavailable` when the person did not allow it, or Google returned no token.
 */
export async function requestConsent(options: GrantOptions): Promise<RefreshToken> {
  const { client, timeoutMs, show, signal = new AbortController().signal } = options
  const endpoint = options.endpoint === undefined ? undefined : parseLoopbackEndpoint(options.endpoint)
  const state = randomBytes(32).toString('base64url')
  const callback = await listenFor(state)
  try {
    const oauth = createOAuth(client, createTransport(endpoint, 30_000), {
      redirectUri: callback.uri,
      endpoint,
    })
    const { codeVerifier, codeChallenge } = await oauth.generateCodeVerifierAsync()
    const method = 'S256' as NonNullable<Parameters<Authorization['generateAuthUrl']>[0]>['code_challenge_method']
    const url = oauth.generateAuthUrl({
      access_type: 'offline',
      // Google returns a refresh token only with a new consent.
      prompt: 'consent',
      scope,
      state,
      ...defined({ code_challenge: codeChallenge, code_challenge_method: method }),
    })
    show(url)
    const waiting = followAbortFor(signal, timeoutMs)
    const code = await callback.code(waiting.signal).finally(waiting.release)
    const { tokens } = await oauth.getToken({ code, codeVerifier }).catch((error: unknown) => {
      const { reason, status, code: system } = toRequestFault(error)
      throw unavailable(
        `Google did not exchange the permission for a token (${reason ?? status ?? system ?? 'no answer'}). Try again.`,
      )
    })
    if (tokens.scope !== undefined && !tokens.scope.split(' ').includes(scope))
      throw unavailable(`Access to Drive was not granted. ${again}, and tick the requested access.`)
    const { refresh_token: refreshToken } = tokens
    if (typeof refreshToken !== 'string' || refreshToken === '')
      throw unavailable('Google returned no refresh token. Check that the client is of the type "Desktop app".')
    return { version: 1, clientId: client.id, refreshToken, created: new Date().toISOString() }
  } finally {
    callback.close()
  }
}

async function listenFor(state: string) {
  const { promise, resolve, reject } = withResolvers<string>()
  // There may be no waiter yet, so avoid an unhandled rejection.
  promise.catch(() => {})
  const server = createServer((request, response) => {
    const answer = (status: number, text: string) => reply(response, status, text)
    const query = callbackParameters(request, port())
    if (query === undefined || !isSameText(query.get('state'), state))
      return answer(400, 'hikidashi does not expect this request. Run hikidashi auth gdrive again.')
    const code = query.get('code') ?? ''
    if (code !== '') {
      answer(
        200,
        'Google has answered. The terminal says whether hikidashi may read Drive now. You can close this page.',
      )
      return resolve(code)
    }
    answer(200, 'hikidashi was not allowed to read Drive. You can close this page.')
    reject(unavailable(`Access to Drive was not granted. ${again}.`))
  })
  const port = () => (server.address() as AddressInfo | null)?.port ?? 0
  server.requestTimeout = 10_000
  await new Promise<void>((listening, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', listening)
  })
  return {
    uri: `http://127.0.0.1:${port()}/`,
    code: (signal: AbortSignal): Promise<string> => {
      const stop = () => reject(unavailable(`Access to Drive was not granted in time. ${again}.`))
      if (signal.aborted) stop()
      signal.addEventListener('abort', stop, { once: true })
      return promise
    },
    close: () => {
      server.close()
      server.closeIdleConnections()
      // Let running answers finish.
      setTimeout(() => server.closeAllConnections(), 1000).unref()
    },
  }
}

function callbackParameters({ method, url = '', headers }: IncomingMessage, port: number): URLSearchParams | undefined {
  const [path, query = ''] = url.split('?')
  if (method !== 'GET' || path !== '/' || headers.host !== `127.0.0.1:${port}`) return undefined
  return new URLSearchParams(query)
}

function reply(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, {
    'content-type': 'text/plain; charset=utf-8',
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    connection: 'close',
  })
  response.end(`${text}\n`)
}
