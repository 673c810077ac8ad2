import { once } from 'node:events'
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import { createHandler } from '../../src/server/http/handler.ts'
import type { HttpOptions } from '../../src/server/http/serve-http.ts'
import { useHttp } from '../support/http-service.ts'
import { live } from '../support/live.ts'
import { memory } from '../support/memory.ts'

const serve = useHttp()
const catalog = createCatalog({
  mounts: [
    { address: 'x://a', provider: live({ a: 'a' }) },
    { address: 'x://big', provider: memory({ b: 'b'.repeat(2000) }) },
  ],
})
const start = (options: Partial<HttpOptions> = {}) =>
  serve({ view: (principal) => catalog.view(principal), sse: true, ...options })

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

interface Ask {
  readonly method?: string
  readonly path?: string
  readonly headers?: Record<string, string>
  readonly body?: unknown
}

/** Sends a request, by default a POST, and resolves to the answer, or to the beginning of a stream. */
function send(url: string, { method = 'POST', path, headers = {}, body }: Ask): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const json = body === undefined ? {} : { 'Content-Type': 'application/json' }
    const options = { method, agent: false, headers: { ...json, ...headers }, ...(path === undefined ? {} : { path }) }
    const sent = httpRequest(url, options, (response) => {
      let text = ''
      const end = () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text })
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      response.on('end', end)
      if (response.headers['content-type'] === 'text/event-stream') {
        end()
        sent.destroy()
      }
    })
    sent.on('error', reject)
    sent.end(body === undefined ? undefined : JSON.stringify(body))
  })
}

/** Sends bytes on one connection, and resolves to everything that comes back until `count` answers have come. */
async function raw(url: string, text: string, count = 1): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  let seen = ''
  socket.on('data', (chunk: Buffer) => {
    seen += chunk.toString('latin1')
    if (seen.split('HTTP/1.1 ').length > count && seen.endsWith('}')) socket.destroy()
  })
  socket.write(text)
  await once(socket, 'close')
  return seen
}

const initialize = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
}
const _meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
}
const modern = (method: string, params: Record<string, unknown> = {}) => ({
  body: { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } },
  headers: {
    'MCP-Protocol-Version': '2026-07-28',
    'Mcp-Method': method,
    ...(typeof params.uri === 'string' ? { 'Mcp-Name': params.uri } : {}),
  },
})

describe('an offer of another protocol', () => {
  test.each(['h2c', 'websocket', 'TLS/1.0', 'x, h2c'])('with "Upgrade: %s" is ignored', async (protocol) => {
    const { url } = await start()
    const offer = { Connection: 'Upgrade, HTTP2-Settings', Upgrade: protocol, 'HTTP2-Settings': 'AAEAAEAAAAIAAAAB' }
    const { body, headers } = modern('resources/list')
    const listed = await send(url, { body, headers: { ...headers, ...offer } })
    expect(listed.status).toBe(200)
    expect(JSON.parse(listed.text)).toMatchObject({ result: { resources: [{ uri: 'x://a/a' }, { uri: 'x://big/b' }] } })
    expect(listed.headers.connection).not.toMatch(/close/)
    expect((await send(url, { body: initialize, headers: offer })).status).toBe(200)
    expect((await send(url, { method: 'GET', path: '/healthz', headers: offer })).status).toBe(200)
  })

  test('leaves the connection usable', async () => {
    const { url } = await start()
    const { host, hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname)
    for (let i = 0; i < 3; i++) {
      socket.write(`GET /healthz HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n`)
      const [answer] = (await once(socket, 'data')) as [Buffer]
      expect(answer.toString()).toMatch(/^HTTP\/1\.1 200 /)
    }
    socket.destroy()
  })
})

describe('among the targets of requests,', () => {
  test.each(['/mcp/', '/mcp?x', '/mcp?', '/mcp/?x=/y&z'])('%s is answered as /mcp', async (path) => {
    const { url } = await start()
    expect(await send(url, { path, ...modern('resources/list') })).toMatchObject({ status: 200 })
    const begun = await send(url, { path, body: initialize })
    expect(begun.status).toBe(200)
    const session = { 'Mcp-Session-Id': String(begun.headers['mcp-session-id']) }
    const accept = { Accept: 'text/event-stream' }
    expect((await send(url, { method: 'GET', path, headers: { ...session, ...accept } })).status).toBe(200)
    expect((await send(url, { method: 'DELETE', path, headers: session })).status).toBe(204)
    expect((await send(url, { method: 'PUT', path })).status).toBe(405)
  })

  test.each(['/sse/', '/sse?x'])('%s is answered as /sse', async (path) => {
    const { url } = await start()
    expect((await send(url, { method: 'GET', path })).status).toBe(200)
  })

  test.each(['/mcp//', '//mcp', '/mcp/x', '/mcp;x', '/MCP', '/mcp%2f', '/mcpx?/mcp'])(
    '%s is not the endpoint',
    async (path) => {
      const { url } = await start()
      expect((await send(url, { path, body: initialize })).status).toBe(404)
    },
  )

  test('a path of the configuration with a final slash is answered with and without the slash', async () => {
    const { url } = await start({ path: '/context/' })
    for (const path of ['/context', '/context/', '/context?x'])
      expect((await send(url, { path, body: initialize })).status, path).toBe(200)
  })

  test('the root as the path of the configuration is answered with a query too', async () => {
    const { url } = await start({ path: '/', sse: false })
    for (const path of ['/', '/?x']) expect((await send(url, { path, body: initialize })).status, path).toBe(200)
    expect((await send(url, { path: '/x', body: initialize })).status).toBe(404)
  })

  test('a target in absolute form is answered as its path', async () => {
    const { url } = await start()
    const { host } = new URL(url)
    const head = `Host: ${host}\r\n`
    expect(await raw(url, `GET http://${host}/healthz HTTP/1.1\r\n${head}\r\n`)).toMatch(/^HTTP\/1\.1 200 /)
    expect(await raw(url, `GET http://${host}?x HTTP/1.1\r\n${head}\r\n`)).toMatch(/^HTTP\/1\.1 404 /)
    const { body, headers } = modern('resources/list')
    for (const path of [`http://${host}/mcp`, `HTTP://${host}/mcp/?x`, `https://${host}/mcp`])
      expect((await send(url, { path, body, headers })).status, path).toBe(200)
    const named = `localhost:${new URL(url).port}`
    expect((await send(url, { path: `http://${named}/mcp`, body, headers: { ...headers, Host: named } })).status).toBe(
      200,
    )
  })

  test('a target in absolute form with another host than the header, or with one that is not served, is refused', async () => {
    const { url } = await start({ allowedHosts: ['context.example.org'] })
    const { host } = new URL(url)
    const { body, headers } = modern('resources/list')
    const ask = (target: string, named: string) =>
      send(url, { path: `http://${target}/mcp`, body, headers: { ...headers, Host: named } })
    expect(await ask('context.example.org', 'context.example.org')).toMatchObject({ status: 200 })
    expect(await ask('Context.example.org', 'context.example.org')).toMatchObject({ status: 200 })
    expect(await ask('evil.example', 'evil.example')).toMatchObject({ status: 403 })
    expect(await ask('evil.example', host)).toMatchObject({ status: 400 })
    expect(await ask(host, 'evil.example')).toMatchObject({ status: 400 })
    expect(await ask(`user@${host}`, host)).toMatchObject({ status: 400 })
    expect(await ask('', host)).toMatchObject({ status: 400 })
  })
})

describe('a message of a client', () => {
  const malformed = [
    { jsonrpc: '2.0', method: 'notifications/initialized', params: [] },
    { jsonrpc: '2.0', method: 'notifications/initialized', params: { _meta: 7 } },
    { jsonrpc: '2.0', method: 'notifications/initialized', result: {} },
    { method: 'notifications/initialized' },
    { jsonrpc: '2.0', id: null, method: 'notifications/initialized' },
    { jsonrpc: '2.0', method: 'resources/read', params: 1 },
  ]

  test.each(malformed)('that is a malformed notification gets no answer: %j', async (message) => {
    const { url } = await start()
    const begun = await send(url, { body: initialize })
    const session = { 'Mcp-Session-Id': String(begun.headers['mcp-session-id']) }
    for (const headers of [session, { 'MCP-Protocol-Version': '2026-07-28' }])
      expect(await send(url, { body: message, headers })).toMatchObject({ status: 202, text: '' })
  })

  test('with params of null is accepted', async () => {
    const { url } = await start()
    const begun = await send(url, { body: initialize })
    const session = { 'Mcp-Session-Id': String(begun.headers['mcp-session-id']) }
    for (const method of ['ping', 'resources/list', 'tools/list', 'prompts/list']) {
      const { status, text } = await send(url, {
        body: { jsonrpc: '2.0', id: 1, method, params: null },
        headers: session,
      })
      expect(status, method).toBe(200)
      expect(JSON.parse(text), method).toHaveProperty('result')
    }
  })
})

describe('the Content-Type of a body', () => {
  const typed = (url: string, type: string) =>
    send(url, { body: initialize, headers: { 'Content-Type': type } }).then(({ status }) => status)

  test.each([
    'application/json; foo=bar',
    'application/json;foo="b a;r"',
    'application/json; charset=utf-8; foo=bar',
    'application/json; foo=bar; charset="UTF-8"',
    'application/json; charset=utf8',
    'application/json;',
    'application/json ; ',
    'application/json; odata.metadata=minimal; q=1',
  ])('%s is accepted as JSON', async (type) => {
    const { url } = await start()
    expect(await typed(url, type)).toBe(200)
  })

  test.each([
    'application/json; foo=bar; charset=utf-16',
    'application/json; charset=utf-8; charset=latin1',
    'application/json; charset=',
    'application/json; charset',
    'application/json, text/plain',
    'application/json foo=bar',
    'application/json; foo="bar',
    'application/jsonx; foo=bar',
  ])('%s is refused', async (type) => {
    const { url } = await start()
    expect(await typed(url, type)).toBe(415)
  })

  test('with ten thousand empty parameters is refused', async () => {
    const { url } = await start()
    expect(await typed(url, `application/json${'; '.repeat(10_000)}x`)).toBe(415)
  })
})

describe('a web page of an allowed origin', () => {
  const origin = 'https://app.example.org'
  const allowed = { allowedOrigins: [origin, 'null'] }
  const page = { Origin: origin }
  const preflight = (headers: Record<string, string> = {}): Ask => ({
    method: 'OPTIONS',
    headers: { ...page, 'Access-Control-Request-Method': 'POST', ...headers },
  })
  const wordsOf = (value: string | undefined) => (value ?? '').toLowerCase().split(/, */)

  test('may send preflight requests for every method and header of MCP, without a token', async () => {
    const { url } = await start({ ...allowed, auth: { tokens: '/nowhere/tokens.json' } })
    const asked = 'content-type,mcp-protocol-version,Mcp-Param-Region, mcp-param-x,x-other,mcp-param-"'
    const { status, headers, text } = await send(url, preflight({ 'Access-Control-Request-Headers': asked }))
    expect([status, text]).toEqual([204, ''])
    expect(headers).toMatchObject({ 'access-control-allow-origin': origin, vary: 'Origin' })
    expect(headers).not.toHaveProperty('access-control-allow-credentials')
    expect(wordsOf(headers['access-control-allow-methods'])).toEqual(expect.arrayContaining(['get', 'post', 'delete']))
    const names = wordsOf(headers['access-control-allow-headers'])
    expect(names).toEqual(
      expect.arrayContaining([
        ...['content-type', 'authorization', 'last-event-id', 'mcp-protocol-version', 'mcp-session-id'],
        ...['mcp-method', 'mcp-name', 'mcp-param-region', 'mcp-param-x'],
      ]),
    )
    expect(names).not.toEqual(expect.arrayContaining(['x-other']))
    expect(names.join()).not.toContain('"')
  })

  test('may read every answer: results, sessions, streams, errors and refusals', async () => {
    const { url } = await start({ ...allowed, limits: { body: 1000, path: 100 } })
    const begun = await send(url, { body: initialize, headers: page })
    const session = { 'Mcp-Session-Id': String(begun.headers['mcp-session-id']) }
    const events = { Accept: 'text/event-stream' }
    const list = modern('resources/list')
    const listen = modern('subscriptions/listen', { notifications: { resourcesListChanged: true } })
    const answers = {
      session: [begun, 200],
      result: [await send(url, { ...list, headers: { ...list.headers, ...page } }), 200],
      notification: [
        await send(url, { body: { jsonrpc: '2.0', method: 'notifications/x' }, headers: { ...session, ...page } }),
        202,
      ],
      stream: [await send(url, { method: 'GET', headers: { ...session, ...events, ...page } }), 200],
      listening: [await send(url, { ...listen, headers: { ...listen.headers, ...page } }), 200],
      'HTTP+SSE': [await send(url, { method: 'GET', path: '/sse', headers: page }), 200],
      end: [await send(url, { method: 'DELETE', headers: { ...session, ...page } }), 204],
      'not found': [await send(url, { path: '/none', headers: page }), 404],
      'a wrong method': [await send(url, { method: 'PUT', headers: page }), 405],
      'not JSON': [await send(url, { body: 1, headers: { ...page, 'Content-Type': 'text/plain' } }), 415],
      'a wrong Host': [await send(url, { body: initialize, headers: { ...page, Host: 'evil.example' } }), 403],
      'a long path': [await send(url, { path: `/${'x'.repeat(200)}`, headers: page }), 414],
      'a long body': [await send(url, { body: 'x'.repeat(2000), headers: page }), 413],
      health: [await send(url, { method: 'GET', path: '/healthz', headers: page }), 200],
    } as const
    for (const [what, [{ status, headers }, expected]] of Object.entries(answers)) {
      expect(status, what).toBe(expected)
      expect(headers['access-control-allow-origin'], what).toBe(origin)
      expect(headers.vary, what).toBe('Origin')
      expect(wordsOf(headers['access-control-expose-headers']), what).toEqual(
        expect.arrayContaining(['mcp-session-id', 'www-authenticate']),
      )
    }
  })

  test('may read the challenge of a 401', async () => {
    const { url } = await start({ ...allowed, auth: { tokens: '/nowhere/tokens.json' } })
    const { status, headers } = await send(url, { body: initialize, headers: page })
    expect(status).toBe(401)
    expect(headers).toMatchObject({ 'access-control-allow-origin': origin, vary: 'Origin' })
    expect(headers['www-authenticate']).toMatch(/^Bearer /)
  })

  test('may read the content of a link', async () => {
    const { url } = await start({ ...allowed, limits: { answer: 1000 } })
    const { body, headers } = modern('resources/read', { uri: 'x://big/b' })
    const refused = await send(url, { body, headers: { ...headers, ...page } })
    const { error } = JSON.parse(refused.text) as { error: { data: { link: { href: string } } } }
    const content = await send(error.data.link.href, { method: 'GET', headers: page })
    expect(content).toMatchObject({ status: 200, text: 'b'.repeat(2000) })
    expect(content.headers).toMatchObject({ 'access-control-allow-origin': origin, vary: 'Origin' })
    const ranged = preflight({ 'Access-Control-Request-Method': 'GET', 'Access-Control-Request-Headers': 'range' })
    const asked = await send(error.data.link.href, ranged)
    expect(asked.status).toBe(204)
    expect(wordsOf(asked.headers['access-control-allow-headers'])).toContain('range')
  })

  test('of a sandbox is allowed only if the list of allowed origins has null', async () => {
    const { url } = await start(allowed)
    const sandboxed = await send(url, { body: initialize, headers: { Origin: 'null' } })
    expect(sandboxed).toMatchObject({ status: 200, headers: { 'access-control-allow-origin': 'null' } })
    const other = await start({ allowedOrigins: [origin] })
    const refused = await send(other.url, { body: initialize, headers: { Origin: 'null' } })
    expect(refused.status).toBe(403)
    expect(refused.headers).not.toHaveProperty('access-control-allow-origin')
  })

  test.each([
    'https://app.example.org:443',
    'http://app.example.org',
    'https://app.example.org.evil.example',
    'https://APP.example.org',
    'https://other.example.org',
    '*',
  ])('does not include a page of %s, which gets 403 and no header of CORS', async (other) => {
    const { url } = await start(allowed)
    for (const ask of [preflight({ Origin: other }), { body: initialize, headers: { Origin: other } }]) {
      const { status, headers } = await send(url, ask)
      expect(status).toBe(403)
      expect(Object.keys(headers).join()).not.toContain('access-control')
      expect(headers.vary).toBe('Origin')
    }
  })

  test('of the loopback interface gets no headers of CORS', async () => {
    const own = await start()
    const { origin } = new URL(own.url)
    const { status, headers } = await send(own.url, { body: initialize, headers: { Origin: origin } })
    expect(status).toBe(200)
    expect(Object.keys(headers).join()).not.toMatch(/access-control|vary/)
    expect((await send(own.url, preflight({ Origin: origin }))).status).toBe(405)
  })

  test('may use a handler inside another server too', async () => {
    const handler = await createHandler(catalog, { name: 't', version: '1', ...allowed })
    const request = (init: RequestInit) =>
      handler.fetch(new Request('http://localhost:1/mcp', init), { peer: '127.0.0.1' })
    const asked = await request({ ...(preflight() as RequestInit) })
    expect(asked.status).toBe(204)
    expect(asked.headers.get('access-control-allow-origin')).toBe(origin)
    const headers = { 'content-type': 'application/json', ...page }
    const begun = await request({ method: 'POST', headers, body: JSON.stringify(initialize) })
    expect(begun.status).toBe(200)
    expect(begun.headers.get('access-control-allow-origin')).toBe(origin)
    await handler.close()
  })
})
