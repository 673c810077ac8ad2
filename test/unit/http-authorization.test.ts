import { request } from 'node:http'
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import type { AuthorizationOptions } from '../../src/server/auth/claims.ts'
import { type HttpService, serveHttp } from '../../src/server/http/serve-http.ts'
import { type HostileIssuer, nowInSeconds, startHostileIssuer } from '../attack/harness/issuer.ts'
import { initialize, legacy } from '../attack/harness/wire.ts'
import { ask, read } from '../support/authorized.ts'
import { live } from '../support/live.ts'
import { memory } from '../support/memory.ts'

vi.setConfig({ testTimeout: 60_000 })

let issuer: HostileIssuer
beforeAll(async () => {
  issuer = await startHostileIssuer()
  return () => issuer.stop()
})

const services: HttpService[] = []
afterEach(async () => {
  await Promise.all(services.splice(0).map((service) => service.close()))
})

async function serve(auth: Partial<AuthorizationOptions> = {}): Promise<HttpService> {
  const catalog = createCatalog({
    mounts: [
      { address: 'x://open', provider: live({ a: 'a' }) },
      { address: 'x://closed', provider: live({ a: 'secret' }), scopes: ['closed'] },
      { address: 'x://empty', provider: memory({}), scopes: ['closed', 'empty'] },
    ],
  })
  const service = await serveHttp({
    ...{ view: (principal) => catalog.view(principal), name: 't', version: '1', log: () => {}, sse: true },
    ...{ host: '127.0.0.1', port: 0, limits: { drain: 500 }, scopesOf: catalog.scopesOf },
    auth: { issuers: [{ issuer: issuer.issuer, jwks: issuer.jwks }], ...auth },
  })
  services.push(service)
  issuer.audience = auth.resource ?? service.url
  return service
}

describe('the metadata of the protected resource', () => {
  const known = '/.well-known/oauth-protected-resource'

  test('are public, at the well-known path with and without the path of the endpoint, and match the configuration', async () => {
    const { url } = await serve({ scopes: [{ scopes: ['base'] }, { scopes: ['watch'], methods: ['x'] }] })
    for (const place of [known, `${known}/mcp`]) {
      const response = await fetch(new URL(place, url), { headers: { origin: 'https://a-page.example.org' } })
      expect(response.status).toBe(200)
      expect(response.headers.get('access-control-allow-origin')).toBe('*')
      expect(response.headers.get('cache-control')).toBe('no-store')
      expect(await response.json()).toEqual({
        resource: url,
        authorization_servers: [issuer.issuer],
        scopes_supported: ['base'],
        bearer_methods_supported: ['header'],
      })
    }
    expect((await fetch(new URL(`${known}/other`, url))).status).toBe(404)
    expect((await fetch(new URL(known, url), { method: 'POST', body: '{}' })).status).toBe(405)
    expect((await fetch(new URL(known, url), { method: 'HEAD' })).status).toBe(200)
    const preflight = await fetch(new URL(known, url), { method: 'OPTIONS' })
    expect([preflight.status, preflight.headers.get('access-control-allow-headers')]).toEqual([
      204,
      'MCP-Protocol-Version',
    ])
  })

  test('do not depend on the host headers of a request', async () => {
    const resource = 'https://context.example.org/team/mcp'
    const { url } = await serve({ resource })
    const { port } = new URL(url)
    const headers = { host: 'evil.example.org', 'x-forwarded-host': 'evil.example.org', 'x-forwarded-proto': 'gopher' }
    for (const path of [known, `${known}/team/mcp`, `${known}/mcp`]) {
      const text = await new Promise<string>((resolve, reject) => {
        const sent = request({ host: '127.0.0.1', port, path, headers }, async (response) =>
          resolve(Buffer.concat(await response.toArray()).toString()),
        )
        sent.on('error', reject).end()
      })
      expect(JSON.parse(text)).toEqual({
        resource,
        authorization_servers: [issuer.issuer],
        bearer_methods_supported: ['header'],
      })
    }
    const { challenge } = await read(url, undefined, 'x://open/a')
    expect(challenge).toBe(
      'Bearer resource_metadata="https://context.example.org/.well-known/oauth-protected-resource/team/mcp"',
    )
  })

  test('are absent without an issuer', async () => {
    const { url } = await serve({ issuers: [], tokens: `${import.meta.dirname}/there-is-none` })
    expect((await fetch(new URL(known, url))).status).toBe(404)
    expect((await read(url, undefined, 'x://open/a')).challenge).toBe('Bearer realm="hikidashi"')
  })
})

describe('mounts that need scopes', () => {
  test('are left out of lists for a token without the scopes, and a request that names such a mount gets 403 with the missing scope', async () => {
    const { url } = await serve()
    const token = await issuer.mint({ scope: '' })
    const list = async (shown: string) => {
      const { resources } = (await ask(url, shown, 'resources/list')).json().result ?? {}
      return (resources as readonly { readonly uri: string }[]).map(({ uri }) => uri)
    }
    expect(await list(token)).toEqual(['x://open/a'])
    const templates = await ask(url, token, 'resources/templates/list')
    expect(templates.text).not.toContain('x://closed')
    const asked = [
      ['resources/read', { uri: 'x://closed/a' }, 'closed'],
      ['resources/read', { uri: 'x://closed/absent' }, 'closed'],
      ['resources/read', { uri: 'x://empty/' }, 'closed empty'],
      ['resources/directory/read', { uri: 'x://closed' }, 'closed'],
      ['skills/get', { uri: 'x://closed/SKILL.md' }, 'closed'],
      ['completion/complete', { ref: { type: 'ref/resource', uri: 'x://closed/{+path}' } }, 'closed'],
    ] as const
    for (const [method, params, scope] of asked) {
      const { status, challenge } = await ask(url, token, method, params)
      expect(status, method).toBe(403)
      expect(challenge).toContain(`error="insufficient_scope"`)
      expect(challenge).toContain(`scope="${scope}"`)
    }
    const wide = await issuer.mint({ scope: 'closed' })
    expect(await list(wide)).toEqual(['x://closed/a', 'x://open/a'])
    expect((await read(url, wide, 'x://closed/a')).json().result).toMatchObject({ contents: [{ text: 'secret' }] })
    // Where a rule or a scope decides, nobody else may keep the answer.
    expect((await read(url, wide, 'x://closed/a')).json().result?.cacheScope).toBe('private')
  })
})

describe('sessions with tokens', () => {
  const post = async (url: string, token: string, message: object, session?: string) => {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${token}`,
        ...(session === undefined ? {} : { 'mcp-session-id': session }),
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }),
    })
    const text = await response.text()
    return { status: response.status, text, session: response.headers.get('mcp-session-id') ?? '' }
  }
  const begin = (url: string, token: string) => post(url, token, { method: 'initialize', params: initialize(legacy) })

  test('have the rights of the token of each request, and are absent for another user', async () => {
    const { url } = await serve()
    const [narrow, wide] = await Promise.all([issuer.mint({ scope: '' }), issuer.mint({ scope: 'closed' })])
    const { session } = await begin(url, wide)
    const closed = { method: 'resources/read', params: { uri: 'x://closed/a' } }
    const list = { method: 'resources/list' }
    expect((await post(url, wide, closed, session)).text).toContain('secret')
    expect((await post(url, narrow, closed, session)).status).toBe(403)
    expect((await post(url, narrow, list, session)).text).not.toContain('x://closed')
    expect((await post(url, wide, list, session)).text).toContain('x://closed')
    const somebody = await issuer.mint({ sub: 'bob', scope: 'closed' })
    expect((await post(url, somebody, list, session)).status).toBe(404)
    expect((await post(url, 'bad', list, session)).status).toBe(401)
  })

  test('outlive a token, but the streams that it opened do not', async () => {
    const { url } = await serve()
    const short = await issuer.mint({ exp: nowInSeconds() + 2 })
    const { session } = await begin(url, short)
    const headers = { authorization: `Bearer ${short}`, 'mcp-session-id': session, accept: 'text/event-stream' }
    const stream = await fetch(url, { headers })
    expect(stream.status).toBe(200)
    await stream.text()
    const fresh = await issuer.mint()
    expect((await post(url, fresh, { method: 'ping' }, session)).status).toBe(200)
  })

  test('of the HTTP+SSE transport end with the token that opened them', async () => {
    const { url } = await serve()
    const short = await issuer.mint({ exp: nowInSeconds() + 2 })
    const stream = await fetch(new URL('/sse', url), { headers: { authorization: `Bearer ${short}` } })
    const text = await stream.text()
    const [, endpoint = ''] = /data: (\S+)/.exec(text) ?? []
    expect(endpoint).toContain('/messages?sessionId=')
    const to = new URL(endpoint, url).href
    expect((await post(to, await issuer.mint(), { method: 'ping' })).status).toBe(404)
    expect((await fetch(to, { method: 'POST' })).status).toBe(401)
    expect((await fetch(new URL('/sse', url))).status).toBe(401)
  })
})
