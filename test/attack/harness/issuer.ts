import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'

/** An authorization server that the test controls: a real one would sign none of these tokens. */
export interface HostileIssuer {
  readonly issuer: string
  readonly jwks: string
  readonly introspection: string
  /** The audience of its tokens. */
  audience: string
  readonly key: { readonly kid: string; readonly alg: string; readonly private: CryptoKey; readonly public: JWK }
  /** Signs a token that is valid except for the given claims. `undefined` omits a claim. */
  mint(claims?: Readonly<Record<string, unknown>>, header?: Readonly<Record<string, unknown>>): Promise<string>
  /** Replaces the answer for a path; `undefined` restores the original one. */
  answer(path: string, how: ((request: IncomingMessage, response: ServerResponse) => void) | undefined): void
  /** The introspection answers for opaque tokens. */
  readonly opaque: Map<string, Readonly<Record<string, unknown>>>
  /** All requests that it received: request line, headers and body. */
  readonly requests: readonly { readonly path: string; readonly text: string }[]
  stop(): Promise<void>
}

export const nowInSeconds = () => Math.floor(Date.now() / 1000)

export async function startHostileIssuer(): Promise<HostileIssuer> {
  const alg = 'ES256'
  const pair = await generateKeyPair(alg, { extractable: true })
  const publicKey = { ...(await exportJWK(pair.publicKey)), kid: 'key-1', alg, use: 'sig' }
  const opaque = new Map<string, Readonly<Record<string, unknown>>>()
  const requests: { path: string; text: string }[] = []
  const answers = new Map<string, (request: IncomingMessage, response: ServerResponse) => void>()

  const server: Server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const body = Buffer.concat(chunks).toString()
    const path = request.url ?? ''
    requests.push({ path, text: `${request.method} ${path}\n${request.rawHeaders.join('\n')}\n${body}` })
    const otherwise = answers.get(path)
    if (otherwise !== undefined) return otherwise(request, response)
    const token = new URLSearchParams(body).get('token') ?? ''
    const json = path === '/jwks' ? { keys: [publicKey] } : (opaque.get(token) ?? { active: false })
    response.setHeader('Content-Type', 'application/json')
    response.end(JSON.stringify(json))
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  const hostile: HostileIssuer = {
    issuer,
    audience: '',
    jwks: `${issuer}/jwks`,
    introspection: `${issuer}/introspect`,
    key: { kid: 'key-1', alg, private: pair.privateKey, public: publicKey },
    mint: (claims = {}, header = {}) => {
      const now = nowInSeconds()
      const given = {
        iss: issuer,
        aud: hostile.audience,
        sub: 'ada',
        scope: 'files:read',
        iat: now,
        exp: now + 600,
        ...claims,
      }
      const present = Object.entries(given).filter(([, value]) => value !== undefined)
      return new SignJWT(Object.fromEntries(present))
        .setProtectedHeader({ alg, kid: 'key-1', typ: 'at+jwt', ...header })
        .sign(pair.privateKey)
    },
    answer: (path, how) => void (how === undefined ? answers.delete(path) : answers.set(path, how)),
    opaque,
    requests,
    stop: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return hostile
}

/** Joins the three parts of a JWT without a library. */
export function rawToken(header: unknown, payload: unknown, signature = ''): string {
  const part = (value: unknown) =>
    Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
  return `${part(header)}.${part(payload)}.${signature}`
}
