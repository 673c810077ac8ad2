import { readdirSync, readFileSync } from 'node:fs'
import { type Agent, request } from 'node:http'
import { afterAll, afterEach, beforeAll, expect, vi } from 'vitest'
import {
  type Asked,
  type Authorized,
  eventually,
  headersFor,
  openUri,
  read,
  serveAuthorized,
} from '../../support/authorized.ts'
import { type HostileIssuer, startHostileIssuer } from './issuer.ts'
import { meta } from './wire.ts'

/** A server under attack with tokens, and the issuers that it trusts. */
export interface TokenArena {
  readonly server: Authorized
  /** An issuer whose groups give roles. */
  readonly good: HostileIssuer
  /**
   * An issuer that accepts only ES256, the clients `one` and `two`, and tokens of the last hour; all of them may see everything.
   */
  readonly other: HostileIssuer
  /** An issuer that introspects opaque tokens. */
  readonly asked: HostileIssuer
  /** Reads with a token, which must not appear in any output from then on. */
  get(token: string | undefined, uri?: string): Promise<Asked>
  /** Sends the headers unchanged, with repetitions. */
  send(headers: readonly string[], path?: string, agent?: Agent): Promise<{ status: number; challenge: string }>
  /** Returns the expected challenge. */
  challenge(error?: keyof typeof descriptions, scope?: string): string
  /** Checks that a token is refused, in the same words as every other one. */
  expectInvalid(token: string, what: unknown): Promise<void>
  expectGood(token: string, what: unknown, uri?: string): Promise<void>
}

const descriptions = {
  invalid_token: 'The token is not valid for this server, or has expired.',
  insufficient_scope: 'The token lacks a required scope.',
} as const

/** Maximum number of additional descriptors: connections that are kept for a while. */
const slack = 24

/** Starts the servers for the tests of a file, and checks the global oracles after each test and at the end. */
export function useTokens(): TokenArena {
  // Processes and signatures are slow on a busy machine.
  vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })
  let server: Authorized
  let issuers: readonly HostileIssuer[] = []
  let descriptors = 0
  const sent = new Set<string>()
  const pid = () => server.running.child.pid
  const openFiles = () => readdirSync(`/proc/${pid()}/fd`).length
  const children = () => readFileSync(`/proc/${pid()}/task/${pid()}/children`, 'utf8').split(' ').filter(Boolean)
  const issuer = (index: number) => issuers[index] as HostileIssuer

  beforeAll(async () => {
    issuers = await Promise.all([0, 1, 2].map(() => startHostileIssuer()))
    const [good, other, asked] = [0, 1, 2].map(issuer) as [HostileIssuer, HostileIssuer, HostileIssuer]
    const introspection = { url: asked.introspection, clientId: 'rs', clientSecret: { env: 'AS_SECRET' } }
    const auth = {
      issuers: [
        { issuer: good.issuer, jwks: good.jwks, roles: [{ claim: 'groups', map: { staff: 'analyst' } }] },
        {
          ...{ issuer: other.issuer, jwks: other.jwks, algorithms: ['ES256'] },
          ...{ clients: ['one', 'two'], maxAge: '1h', roles: ['analyst'] },
        },
        { issuer: asked.issuer, introspection },
      ],
      scopes: ['files:read', { scopes: ['files:watch'], methods: ['subscriptions/listen'] }],
      implies: { 'files:*': ['files:read', 'files:watch'], admin: ['files:*', 'db:read'] },
      tokens: 'tokens.json',
    }
    // The limit of bad tokens is off, so that every token gets its own answer.
    server = await serveAuthorized(auth, {}, { limits: { badTokens: 0 } })
    for (const one of issuers) one.audience = server.url
    expect((await arena.get(await good.mint())).status).toBe(200)
    descriptors = openFiles()
  })

  afterEach(async () => {
    await arena.expectGood(await arena.good.mint(), 'O2: a good token')
    expect(children(), 'O4: child processes').toEqual([])
    const log = server.log()
    for (const token of sent) for (const part of secretsIn(token)) expect(log.includes(part), 'O1: the log').toBe(false)
  })

  afterAll(async () => {
    await eventually(
      async () => openFiles(),
      (now) => now <= descriptors + slack,
    )
    await server?.stop()
    await Promise.all(issuers.map((one) => one.stop()))
  })

  const arena: TokenArena = {
    get server() {
      return server
    },
    get good() {
      return issuer(0)
    },
    get other() {
      return issuer(1)
    },
    get asked() {
      return issuer(2)
    },
    get: async (token, uri = openUri) => {
      const answer = await read(server.url, token, uri)
      if (token === undefined || token.length < 20) return answer
      sent.add(token)
      const said = `${answer.text}${JSON.stringify([...answer.headers])}`
      for (const part of secretsIn(token)) expect(said.includes(part), 'O1: the answer').toBe(false)
      return answer
    },
    send: (headers, path = '/mcp', agent) => {
      const { port } = new URL(server.url)
      const params = { uri: openUri, _meta: meta }
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'resources/read', params })
      const own = Object.entries(headersFor('resources/read', params, undefined)).flat()
      const all = ['Host', `127.0.0.1:${port}`, 'Content-Length', String(body.length), ...own, ...headers]
      return new Promise((resolve, reject) => {
        const options = { host: '127.0.0.1', port, path, method: 'POST', headers: all, ...(agent ? { agent } : {}) }
        const outgoing = request(options, (incoming) => {
          incoming.resume()
          incoming.on('end', () =>
            resolve({ status: incoming.statusCode ?? 0, challenge: String(incoming.headers['www-authenticate']) }),
          )
        })
        outgoing.on('error', reject)
        outgoing.end(body)
      })
    },
    challenge: (error, scope = 'files:read') => {
      const metadata = server.url.replace(/\/mcp$/, '/.well-known/oauth-protected-resource/mcp')
      const fault = error === undefined ? '' : `error="${error}", error_description="${descriptions[error]}", `
      return `Bearer ${fault}scope="${scope}", resource_metadata="${metadata}"`
    },
    expectInvalid: async (token, what) => {
      const answer = await arena.get(token)
      expect([answer.status, answer.challenge], String(what)).toEqual([401, arena.challenge('invalid_token')])
      expect(answer.headers.get('cache-control')).toBe('no-store')
      const error = { code: -32600, message: descriptions.invalid_token }
      expect(answer.json()).toEqual({ jsonrpc: '2.0', id: null, error })
    },
    expectGood: async (token, what, uri = openUri) => {
      const answer = await arena.get(token, uri)
      expect(answer.status === 200 && answer.json().result !== undefined, `${what}: ${answer.text}`).toBe(true)
    },
  }
  return arena
}

/** Returns a token and its secret parts. */
export function secretsIn(token: string): readonly string[] {
  return [token, ...token.split('.').filter((part) => part.length >= 20)]
}
