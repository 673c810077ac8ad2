import { randomBytes, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { ResourceError } from '../../core/errors.ts'
import { followFor } from '../../core/kit/abort.ts'
import { defined } from '../../core/kit/object.ts'
import { type Authorization, createOAuth, type RefreshToken, scope } from './credentials.ts'
import type { OAuthClient } from './options.ts'
import { createTransport, faultOf, standInEndpoint } from './transport.ts'

interface GrantOptions {
  readonly client: OAuthClient
  /** Time-out for the person, in milliseconds. */
  readonly patienceMs: number
  /** Shows the person the URL to open. */
  readonly show: (url: string) => void
  readonly endpoint?: string
  readonly signal?: AbortSignal
}

/**
 * Asks a person to allow reading Drive, as installed apps do (RFC 8252): in a browser, which redirects only to this machine, with PKCE (RFC
 * 7636). Returns the refresh token to keep.
 *
 * @throws ResourceError `unavailable` when the person did not allow it, or Google returned no token. No message holds a code or token.
 */
export async function askGrant(options: GrantOptions): Promise<RefreshToken> {
  const { client, patienceMs, show, signal = new AbortController().signal } = options
  const endpoint = options.endpoint === undefined ? undefined : standInEndpoint(options.endpoint)
  const state = randomBytes(32).toString('base64url')
  const callback = await listenFor(state)
  try {
    const oauth = createOAuth(client, createTransport({ endpoint, timeoutMs: 30_000 }), {
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
    const waiting = followFor(signal, patienceMs)
    const code = await callback.code(waiting.signal).finally(waiting.release)
    const { tokens } = await oauth.getToken({ code, codeVerifier }).catch((error: unknown) => {
      const { reason, status, code: system } = faultOf(error)
      throw refused(`Google gave nothing for the permission (${reason ?? status ?? system ?? 'no answer'}). Try again.`)
    })
    if (tokens.scope !== undefined && !tokens.scope.split(' ').includes(scope))
      throw refused('Reading Drive was not allowed. Run it again, and tick what it asks for.')
    const { refresh_token: refreshToken } = tokens
    if (typeof refreshToken !== 'string' || refreshToken === '')
      throw refused('Google gave nothing that can be kept. Look whether the client is of the type "Desktop app".')
    return { version: 1, clientId: client.id, refreshToken, created: new Date().toISOString() }
  } finally {
    callback.close()
  }
}

const refused = (message: string) => new ResourceError('unavailable', message)

interface Callback {
  /** Redirect URI of the browser. */
  readonly uri: string
  /** Waits for the code in the redirect. */
  code(signal: AbortSignal): Promise<string>
  close(): void
}

/** Waits on the loopback interface for the redirect of the browser. A request without the right state learns nothing and changes nothing. */
async function listenFor(state: string): Promise<Callback> {
  const { promise, resolve, reject } = withResolvers<string>()
  // There may be no waiter yet, so avoid an unhandled rejection.
  promise.catch(() => {})
  const server = createServer((request, response) => {
    const answer = (status: number, text: string) => reply(response, status, text)
    const query = queryOf(request, port())
    if (query === undefined || !isSame(query.get('state') ?? '', state))
      return answer(400, 'This is not what hikidashi waits for.')
    const code = query.get('code') ?? ''
    if (code !== '') {
      answer(200, 'hikidashi may read Drive now. You can close this page.')
      return resolve(code)
    }
    answer(200, 'hikidashi was not allowed to read Drive. You can close this page.')
    reject(refused('Reading Drive was not allowed.'))
  })
  const port = () => (server.address() as AddressInfo | null)?.port ?? 0
  server.requestTimeout = 10_000
  await new Promise<void>((listening, failed) => {
    server.once('error', failed)
    server.listen(0, '127.0.0.1', listening)
  })
  return {
    uri: `http://127.0.0.1:${port()}/`,
    code: (signal) => {
      const stop = () => reject(refused('Nobody has allowed it in time. Run it again.'))
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

/** Returns the parameters of a request to the callback; undefined for any other path, method or host. */
function queryOf({ method, url = '', headers }: IncomingMessage, port: number): URLSearchParams | undefined {
  const [path, query = ''] = url.split('?')
  if (method !== 'GET' || path !== '/' || headers.host !== `127.0.0.1:${port}`) return undefined
  return new URLSearchParams(query)
}

function isSame(given: string, wanted: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(wanted)]
  return a.length === b.length && timingSafeEqual(a, b)
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

function withResolvers<T>() {
  let resolve: (value: T) => void = () => {}
  let reject: (error: Error) => void = () => {}
  const promise = new Promise<T>((done, failed) => {
    resolve = done
    reject = failed
  })
  return { promise, resolve, reject }
}
