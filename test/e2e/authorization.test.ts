import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { overviewUri } from '../../src/core/meta.ts'
import { type AuthorizationServer, startAuthorizationServer } from '../support/authorization-server.ts'
import {
  type Authorized,
  ask,
  closedUri,
  eventually,
  listenTo,
  openUri,
  read,
  serveAuthorized,
} from '../support/authorized.ts'
import { connectAs } from '../support/oauth-client.ts'

// Several processes and signatures: slow where the machine is busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const scopes = ['files:read', 'db:read']
const staff = [{ claim: 'groups', map: { staff: ['analyst'] } }]
const jwtIssuer = ({ issuer, jwks }: AuthorizationServer) => ({ issuer, jwks, roles: staff })

const servers: Authorized[] = []
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()))
})
const serve: typeof serveAuthorized = async (...options) => {
  const server = await serveAuthorized(...options)
  servers.push(server)
  return server
}

describe('with a real authorization server,', () => {
  let first: AuthorizationServer
  let second: AuthorizationServer
  let opaque: AuthorizationServer
  beforeAll(async () => {
    // The libraries of the server say on the console that they are not for production.
    for (const method of ['warn', 'info', 'log'] as const) vi.spyOn(console, method).mockImplementation(() => {})
    const groups = { ada: ['staff'], program: ['staff'] }
    first = await startAuthorizationServer({ scopes, groups })
    second = await startAuthorizationServer({ scopes })
    opaque = await startAuthorizationServer({ scopes, groups, format: 'opaque' })
  })
  afterAll(async () => {
    await Promise.all([first, second, opaque].map((server) => server?.stop()))
    vi.restoreAllMocks()
  })

  test.each(['auto', 'legacy'] as const)(
    'the official client (%s) signs in with an authorization code and PKCE, and again when more scopes are needed',
    async (mode) => {
      const { url, log } = await serve({ issuers: [jwtIssuer(first)], scopes: ['files:read'] })
      const ada = await connectAs('ada', url, mode)
      expect(ada.asked).toEqual(['files:read'])
      expect(await ada.client.readResource({ uri: openUri })).toMatchObject({ contents: [{ text: 'hello\n' }] })
      const uris = async () => (await ada.client.listResources()).resources.map(({ uri }) => uri)
      expect(await uris()).toEqual([overviewUri, openUri])

      // The scope of the mount: the client is told of all that it takes, and asks for it beside what it has.
      const read = await ada.with((client) => client.readResource({ uri: closedUri }))
      expect(read).toMatchObject({ contents: [{ text: '42\n' }] })
      expect(ada.asked.map((scope) => scope?.split(' ').sort())).toEqual([['files:read'], ['db:read', 'files:read']])
      expect(await uris()).toEqual([overviewUri, closedUri, openUri])
      expect(log()).not.toContain(ada.token())
      await ada.close()
    },
  )

  test('a user without a role sees no resource that needs one, even with all scopes', async () => {
    const { url } = await serve({ issuers: [jwtIssuer(first)], scopes })
    const bob = await connectAs('bob', url, 'auto')
    expect((await bob.client.listResources()).resources.map(({ uri }) => uri)).toEqual([overviewUri, openUri])
    const { contents } = await bob.client.readResource({ uri: overviewUri })
    expect(JSON.stringify(contents)).not.toContain(closedUri.replace(/[^/]*$/, ''))
    await expect(bob.client.readResource({ uri: closedUri })).rejects.toMatchObject({ code: -32602 })
    await bob.close()
  })

  test('a token for another resource, or without an audience, is refused', async () => {
    const { url } = await serve({ issuers: [jwtIssuer(first)] })
    expect((await read(url, await first.token({ resource: url }), closedUri)).status).toBe(200)
    for (const resource of [`${url}/`, `${url}/other`, new URL(url).origin, 'https://elsewhere.example.org/mcp']) {
      const refused = await read(url, await first.token({ resource }), openUri)
      expect(refused, resource).toMatchObject({ status: 401 })
      expect(refused.challenge).toContain('error="invalid_token"')
    }
    expect((await read(url, await first.token(), openUri)).status).toBe(401)
  })

  test('the new keys of a rotation are fetched, but not those of a second rotation within the cool-down', async () => {
    const { url } = await serve({ issuers: [jwtIssuer(first)] })
    const before = await first.token({ resource: url })
    expect((await read(url, before, openUri)).status).toBe(200)
    await first.rotate()
    const after = await first.token({ resource: url })
    expect((await read(url, after, openUri)).status).toBe(200)
    // Anybody can name a key that nobody knows: for a while after that, no keys are fetched for such a one.
    await first.rotate()
    const asked = first.asked('/jwks')
    const latest = await first.token({ resource: url })
    expect((await read(url, latest, openUri)).status).toBe(401)
    expect(first.asked('/jwks'), 'within the cool-down').toBe(asked)
  })

  test('tokens of two issuers are accepted, but the session of a user of one is not found by the same subject of the other', async () => {
    const { url } = await serve({ issuers: [jwtIssuer(first), { ...jwtIssuer(second), roles: ['analyst'] }] })
    const [one, two] = await Promise.all([first.token({ resource: url }), second.token({ resource: url })])
    const initialize = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${one}` },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'initialize',
        params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
      }),
    })
    const session = initialize.headers.get('mcp-session-id') ?? ''
    const ping = (token: string) =>
      fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${token}`, 'mcp-session-id': session },
        body: JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'ping' }),
      })
    expect((await ping(one)).status).toBe(200)
    // The same subject at another issuer is somebody else: for them there is no such session.
    expect((await ping(two)).status).toBe(404)
    expect((await read(url, two, closedUri)).json().result).toBeDefined()
  })

  test('requests get 503 while an issuer is down and its keys are unknown; with known keys, also a token that is seen for the first time is accepted', async () => {
    const { url, log } = await serve({ issuers: [jwtIssuer(second)] })
    const [token, later] = [await second.token({ resource: url }), await second.token({ resource: url })]
    await second.stop()
    const waiting = await read(url, token, openUri)
    expect(waiting.status).toBe(503)
    expect(Number(waiting.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(waiting.challenge).toBeNull()
    await second.start()
    await eventually(
      () => read(url, token, openUri),
      ({ status }) => status === 200,
    )
    await second.stop()
    // The keys are known by now, also for a token that was never seen.
    expect((await read(url, later, openUri)).status).toBe(200)
    expect(log()).not.toContain(token)
    await second.start()
  })

  test('opaque tokens are accepted with their scopes if their issuer says that they are active and meant for this server; while it is down, unknown tokens get 503', async () => {
    const introspection = { ...opaque.introspection, clientSecret: { env: 'AS_SECRET' } }
    const { url, log } = await serve({ issuers: [{ issuer: opaque.issuer, introspection, roles: staff }] })
    const token = await opaque.token({ resource: url })
    expect((await read(url, token, closedUri)).json().result).toBeDefined()
    const asked = opaque.asked('/token/introspection')
    expect((await read(url, token, openUri)).status).toBe(200)
    expect(opaque.asked('/token/introspection'), 'within half a minute').toBe(asked)

    const narrow = await opaque.token({ resource: url, scope: 'files:read' })
    expect(await read(url, narrow, closedUri)).toMatchObject({
      status: 403,
      challenge: expect.stringContaining('scope="db:read"'),
    })
    const revoked = await opaque.token({ resource: url })
    await opaque.revoke(revoked)
    expect((await read(url, revoked, openUri)).status).toBe(401)
    expect((await read(url, await opaque.token({ resource: `${url}/other` }), openUri)).status).toBe(401)
    await opaque.stop()
    expect((await read(url, 'never-seen', openUri)).status).toBe(503)
    await opaque.start()
    expect(log()).not.toContain(token)
  })

  test('a stream of changes ends with its result when its token expires', async () => {
    const short = await startAuthorizationServer({ scopes, lifetime: 6 })
    try {
      const { url } = await serve({ issuers: [jwtIssuer(short)] })
      const token = await short.token({ resource: url })
      const expires = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).exp * 1000
      const stream = await listenTo(url, token, [openUri])
      await stream.acknowledged
      const messages = await stream.ended
      expect(Date.now()).toBeGreaterThanOrEqual(expires - 50)
      expect(messages[0]).toMatchObject({ method: 'notifications/subscriptions/acknowledged' })
      expect(messages.at(-1)).toMatchObject({ id: 'stream', result: { resultType: 'complete' } })
    } finally {
      await short.stop()
    }
  })
})

describe('with tokens that the server issues,', () => {
  test('an added token is accepted at once; a revoked token is refused at once, and its streams end', async () => {
    const server = await serve({ tokens: 'tokens.json' })
    const { url, log } = server
    expect((await read(url, undefined, openUri)).challenge).toBe('Bearer realm="hikidashi"')
    const reader = await server.token('add')
    const analyst = await server.token('add', '--role', 'analyst', '--name', 'nightly')
    expect((await read(url, reader, openUri)).status).toBe(200)
    expect((await read(url, reader, closedUri)).json().error?.code).toBe(-32602)
    expect((await read(url, analyst, closedUri)).json().result).toBeDefined()

    const listed = JSON.parse(await server.token('list', '--json')) as readonly { id: string; name?: string }[]
    expect(JSON.stringify(listed)).not.toMatch(/hkd_|sha256/)
    const { id } = listed.find(({ name }) => name === 'nightly') ?? { id: '' }
    const stream = await listenTo(url, analyst, [closedUri])
    const other = await listenTo(url, reader, [openUri])
    await Promise.all([stream.acknowledged, other.acknowledged])
    await server.token('revoke', id)
    expect((await read(url, analyst, openUri)).status).toBe(401)
    expect((await stream.ended).at(-1)).toMatchObject({ id: 'stream', result: {} })
    expect((await ask(url, reader, 'resources/list')).status).toBe(200)
    for (const token of [reader, analyst]) expect(log()).not.toContain(token)
  })
})
