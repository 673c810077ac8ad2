import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { exportJWK, generateKeyPair, type JWK } from 'jose'
// @ts-expect-error: the package has no types.
import Provider from 'oidc-provider'

/** A real authorization server (oidc-provider) on this machine. */
export interface AuthorizationServer {
  readonly issuer: string
  readonly jwks: string
  readonly introspection: { readonly url: string; readonly clientId: string; readonly clientSecret: string }
  /** A token for a program, by client credentials. */
  token(options?: { readonly scope?: string; readonly resource?: string }): Promise<string>
  revoke(token: string): Promise<void>
  /** Signs with a new key from now on, and removes the old key from the key set. */
  rotate(): Promise<void>
  /** Stops it, and closes all of its connections. */
  stop(): Promise<void>
  /** Starts it again on the same port. */
  start(): Promise<void>
  /** Number of requests for a path. */
  asked(path: string): number
}

export interface AuthorizationServerOptions {
  /** The scopes of the resource. Tokens for other resources are issued for those. */
  readonly scopes: readonly string[]
  readonly format?: 'jwt' | 'opaque'
  /** Lifetime of tokens, in seconds. */
  readonly lifetime?: number
  /** The groups of each account. */
  readonly groups?: Readonly<Record<string, readonly string[]>>
}

/** The public client for people, with PKCE. Nothing listens at its redirect URL: the browser stops before it. */
export const desktop = {
  client_id: 'desktop',
  redirect_uris: ['http://127.0.0.1:1/callback'],
  grant_types: ['authorization_code'],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
  application_type: 'native',
} as const

const program = { id: 'program', secret: 'the-secret-of-the-program' }

export async function startAuthorizationServer(options: AuthorizationServerOptions): Promise<AuthorizationServer> {
  const { lifetime = 600, format = 'jwt', groups = {} } = options
  const counts = new Map<string, number>()
  let listener: (request: IncomingMessage, response: ServerResponse) => unknown = () => {}
  let server: Server | undefined
  let port = 0

  const open = async (attempts = 100): Promise<void> => {
    const opened = createServer((request, response) => {
      const path = (request.url ?? '').split('?')[0] ?? ''
      counts.set(path, (counts.get(path) ?? 0) + 1)
      listener(request, response)
    }).listen(port, '127.0.0.1')
    const taken = await new Promise<Error | undefined>((resolve) => {
      opened.once('listening', () => resolve(undefined)).once('error', resolve)
    })
    // Another process may have taken its port while it was stopped.
    if (taken !== undefined && attempts === 0) throw taken
    if (taken !== undefined) return sleep(100).then(() => open(attempts - 1))
    port = (opened.address() as AddressInfo).port
    server = opened
  }
  await open()
  const issuer = `http://127.0.0.1:${port}`

  const use = (keys: readonly JWK[]): void => {
    const resource = (_: unknown, indicator: string) => ({
      scope: options.scopes.join(' '),
      audience: indicator,
      accessTokenTTL: lifetime,
      accessTokenFormat: format,
      ...(format === 'jwt' ? { jwt: { sign: { alg: 'RS256' } } } : {}),
    })
    const provider = new Provider(issuer, {
      jwks: { keys },
      clients: [
        { ...desktop },
        {
          client_id: program.id,
          client_secret: program.secret,
          grant_types: ['client_credentials'],
          response_types: [],
          redirect_uris: [],
        },
      ],
      scopes: [...options.scopes, 'openid', 'offline_access'],
      cookies: { keys: ['not a secret, on this machine for a test'] },
      pkce: { required: () => true },
      findAccount: (_: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id }) }),
      extraTokenClaims: (_: unknown, token: { readonly accountId?: string; readonly clientId?: string }) => ({
        groups: groups[token.accountId ?? token.clientId ?? ''] ?? [],
      }),
      features: {
        devInteractions: { enabled: true },
        clientCredentials: { enabled: true },
        introspection: { enabled: true, allowedPolicy: () => true },
        revocation: { enabled: true, allowedPolicy: () => true },
        resourceIndicators: {
          enabled: true,
          useGrantedResource: () => true,
          getResourceServerInfo: resource,
        },
      },
    })
    provider.on('server_error', (_: unknown, error: Error) => console.error(error))
    listener = provider.callback()
  }
  use([await newKey()])

  const post = (path: string, body: Readonly<Record<string, string>>) =>
    fetch(`${issuer}${path}`, {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from(`${program.id}:${program.secret}`).toString('base64')}` },
      body: new URLSearchParams(body),
    })

  return {
    issuer,
    jwks: `${issuer}/jwks`,
    introspection: { url: `${issuer}/token/introspection`, clientId: program.id, clientSecret: program.secret },
    token: async ({ scope = options.scopes.join(' '), resource } = {}) => {
      const response = await post('/token', {
        grant_type: 'client_credentials',
        scope,
        ...(resource === undefined ? {} : { resource }),
      })
      const answer = (await response.json()) as { readonly access_token?: string }
      if (answer.access_token === undefined) throw new Error(`no token: ${JSON.stringify(answer)}`)
      return answer.access_token
    },
    revoke: async (token) => {
      const response = await post('/token/revocation', { token })
      if (!response.ok) throw new Error(`not revoked: ${await response.text()}`)
    },
    rotate: async () => use([await newKey()]),
    stop: async () => {
      const ending = server
      server = undefined
      ending?.closeAllConnections()
      await new Promise((resolve) => (ending === undefined ? resolve(undefined) : ending.close(resolve)))
    },
    start: () => open(),
    asked: (path) => counts.get(path) ?? 0,
  }
}

async function newKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  return { ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig' }
}

/**
 * Acts as a person in a browser: follows an authorization URL, signs in, consents, and stops at the redirect URL of the client.
 * Returns the parameters of that URL.
 */
export async function signIn(url: URL, account: string): Promise<URLSearchParams> {
  const cookies = new Map<string, string>()
  let at = url
  let form: Readonly<Record<string, string>> | undefined
  for (let step = 0; step < 30; step++) {
    const response = await fetch(at, {
      redirect: 'manual',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(form === undefined ? {} : { method: 'POST', body: new URLSearchParams(form) }),
    })
    for (const cookie of response.headers.getSetCookie()) {
      const [pair = ''] = cookie.split(';')
      const equals = pair.indexOf('=')
      cookies.set(pair.slice(0, equals), pair.slice(equals + 1))
    }
    form = undefined
    const location = response.headers.get('location')
    if (location !== null) {
      at = new URL(location, at)
      if (at.origin !== url.origin) return at.searchParams
      continue
    }
    const page = await response.text()
    const prompt = /name="prompt" value="(\w+)"/.exec(page)?.[1]
    const action = /<form[^>]* action="([^"]+)"/.exec(page)?.[1]
    if (prompt === undefined || action === undefined) throw new Error(`no way on at ${at}: ${page.slice(0, 500)}`)
    at = new URL(action, at)
    form = prompt === 'login' ? { prompt, login: account, password: 'any' } : { prompt }
  }
  throw new Error('the browser goes in circles')
}
