import { once } from 'node:events'
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { connect } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import type { Provider } from '../../src/core/provider.ts'
import type { HttpLimits } from '../../src/server/admission/limits.ts'
import { type HttpService, serveHttp } from '../../src/server/http/serve-http.ts'
import { live } from '../support/live.ts'
import { memory } from '../support/memory.ts'

const services: HttpService[] = []
afterEach(async () => {
  await Promise.all(services.splice(0).map((service) => service.close()))
})

async function serve(provider: Provider = memory({ a: 'a' }), limits: Partial<HttpLimits> = {}): Promise<HttpService> {
  const catalog = createCatalog({ mounts: [{ address: 'file:///r', provider }] })
  const service = await serveHttp({
    view: (principal) => catalog.view(principal),
    name: 't',
    version: '1',
    log: () => {},
    host: '127.0.0.1',
    port: 0,
    sse: true,
    limits: { drain: 500, ...limits },
    degraded: catalog.degraded,
  })
  services.push(service)
  return service
}

interface Reply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly json: { id?: unknown; result?: Record<string, unknown>; error?: { code: number; data?: unknown } }
}

function send(
  url: string,
  method: string,
  body?: unknown,
  headers: Record<string, string> = {},
  path?: string,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const base = { ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers }
    const sent = httpRequest(url, { method, headers: base, agent: false, ...(path ? { path } : {}) }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk) => {
        text += chunk
      })
      response.on('end', () => {
        const isJson = response.headers['content-type'] === 'application/json'
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text,
          json: isJson ? JSON.parse(text) : {},
        })
      })
    })
    sent.on('error', reject)
    sent.end(body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body))
  })
}

const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
}
const modern = (method: string, params: Record<string, unknown> = {}) => ({
  jsonrpc: '2.0',
  id: 1,
  method,
  params: { ...params, _meta: meta },
})
const modernHeaders = (method: string, name?: string) => ({
  'MCP-Protocol-Version': '2026-07-28',
  'Mcp-Method': method,
  ...(name === undefined ? {} : { 'Mcp-Name': name }),
})
const initialize = (version = '2025-11-25') => ({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: version, capabilities: {}, clientInfo: { name: 'c', version: '1' } },
})
const open = async (url: string, version?: string) => {
  const { headers } = await send(url, 'POST', initialize(version))
  return { 'Mcp-Session-Id': String(headers['mcp-session-id']) }
}
const slow = (ms: number): Provider => ({
  ...memory({ a: 'a' }),
  read: (_, { signal }) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => resolve([{ text: 'slow' }]), ms)
      signal.addEventListener('abort', () => {
        clearTimeout(timer)
        reject(new Error('aborted'))
      })
    }),
})

describe('the stateless revision 2026-07-28 over HTTP', () => {
  test('answers a POST without a session', async () => {
    const { url } = await serve()
    const reply = await send(url, 'POST', modern('resources/list'), modernHeaders('resources/list'))
    expect(reply).toMatchObject({
      status: 200,
      json: { id: 1, result: { resources: [{ uri: 'file:///r/a' }], resultType: 'complete' } },
    })
    expect(reply.headers['cache-control']).toBe('no-store')
  })

  test.each([
    ['an unknown method', modern('nothing'), modernHeaders('nothing'), 404, -32601],
    ['a missing method header', modern('resources/list'), { 'MCP-Protocol-Version': '2026-07-28' }, 400, -32020],
    ['a missing version header', modern('resources/list'), { 'Mcp-Method': 'resources/list' }, 400, -32020],
    ['another method in the header', modern('resources/list'), modernHeaders('resources/read'), 400, -32020],
    [
      'a missing name header',
      modern('resources/read', { uri: 'file:///r/a' }),
      modernHeaders('resources/read'),
      400,
      -32020,
    ],
    [
      'another name in the header',
      modern('resources/read', { uri: 'file:///r/a' }),
      modernHeaders('resources/read', 'file:///r/b'),
      400,
      -32020,
    ],
    [
      'a version header without _meta in the body',
      { jsonrpc: '2.0', id: 1, method: 'resources/list' },
      modernHeaders('resources/list'),
      400,
      -32602,
    ],
    ['a batch', [modern('resources/list')], modernHeaders('resources/list'), 400, -32600],
    [
      'an unknown version',
      { ...modern('x'), params: { _meta: { ...meta, 'io.modelcontextprotocol/protocolVersion': '2030-01-01' } } },
      {},
      400,
      -32022,
    ],
    ['params that are wrong', modern('resources/read', { uri: 7 }), modernHeaders('resources/read'), 200, -32602],
  ])('refuses %s', async (_, body, headers, status, code) => {
    const { url } = await serve()
    expect(await send(url, 'POST', body, headers)).toMatchObject({ status, json: { error: { code } } })
  })

  test('accepts a name in base64 in the header, and refuses another name or malformed base64', async () => {
    const { url } = await serve(memory({ 日本: 'x' }))
    const read = modern('resources/read', { uri: 'file:///r/日本' })
    const name = (text: string) => `=?base64?${Buffer.from(text).toString('base64')}?=`
    const good = await send(url, 'POST', read, modernHeaders('resources/read', name('file:///r/日本')))
    expect(good.json.result).toMatchObject({ contents: [{ uri: 'file:///r/日本', text: 'x' }] })
    for (const wrong of [name('file:///r/other'), '=?base64?!!?=', name('file:///r/日本').replace('=?=', '?=')])
      if (wrong !== name('file:///r/日本'))
        expect((await send(url, 'POST', read, modernHeaders('resources/read', wrong))).status).toBe(400)
  })

  test('refuses GET and DELETE', async () => {
    const { url } = await serve()
    for (const method of ['GET', 'DELETE'])
      expect((await send(url, method, undefined, { 'MCP-Protocol-Version': '2026-07-28' })).status).toBe(405)
  })

  test('cancels a request when its connection closes', async () => {
    let aborted = false
    const { url } = await serve({
      ...memory({ a: 'a' }),
      read: (_, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            aborted = true
            reject(new Error('aborted'))
          })
        }),
    })
    const body = JSON.stringify(modern('resources/read', { uri: 'file:///r/a' }))
    const headers = { 'Content-Type': 'application/json', ...modernHeaders('resources/read', 'file:///r/a') }
    const sent = httpRequest(url, { method: 'POST', headers, agent: false })
    sent.on('error', () => {})
    sent.end(body)
    await new Promise((resolve) => setTimeout(resolve, 200))
    sent.destroy()
    for (let i = 0; i < 200 && !aborted; i++) await new Promise((resolve) => setTimeout(resolve, 10))
    expect(aborted).toBe(true)
  })

  test('answers with a stream if there are notifications before the answer', async () => {
    const { url } = await serve(slow(1300))
    const read = modern('resources/read', { uri: 'file:///r/a' })
    const body = { ...read, params: { ...read.params, _meta: { ...meta, progressToken: 7 } } }
    const reply = await send(url, 'POST', body, modernHeaders('resources/read', 'file:///r/a'))
    expect(reply.headers['content-type']).toBe('text/event-stream')
    const events = [...reply.text.matchAll(/^data: (.*)$/gm)].map((match) => JSON.parse(match[1] ?? '') as unknown)
    expect(events).toMatchObject([
      { method: 'notifications/progress', params: { progressToken: 7, progress: 1 } },
      { id: 1, result: { contents: [{ text: 'slow' }] } },
    ])
  })

  test('refuses requests over the limit, with a time to retry', async () => {
    const { url } = await serve(slow(400), { concurrent: 1, waiting: 1 })
    const read = () =>
      send(
        url,
        'POST',
        modern('resources/read', { uri: 'file:///r/a' }),
        modernHeaders('resources/read', 'file:///r/a'),
      )
    const replies = await Promise.all([read(), read(), read(), read()])
    expect(replies.map((reply) => reply.status).sort()).toEqual([200, 200, 503, 503])
    expect(replies.find((reply) => reply.status === 503)?.headers['retry-after']).toBe('1')
  })
})

describe('sessions over HTTP', () => {
  test('begin with initialize, are needed for other requests, and end with DELETE', async () => {
    const { url } = await serve()
    const session = await open(url)
    const list = { jsonrpc: '2.0', id: 2, method: 'resources/list' }
    expect((await send(url, 'POST', list, session)).json.result).toMatchObject({ resources: [{ name: 'a' }] })
    expect((await send(url, 'POST', { jsonrpc: '2.0', method: 'notifications/initialized' }, session)).status).toBe(202)
    expect((await send(url, 'POST', list)).status).toBe(400)
    expect((await send(url, 'POST', list, { 'Mcp-Session-Id': 'guess' })).status).toBe(404)
    expect((await send(url, 'DELETE', undefined, session)).status).toBe(204)
    expect((await send(url, 'POST', list, session)).status).toBe(404)
  })

  test('accept a request that names another served revision, and refuse one that names an unknown revision', async () => {
    const { url } = await serve()
    const session = await open(url, '2025-06-18')
    const ping = { jsonrpc: '2.0', id: 2, method: 'ping' }
    const status = async (version: string) =>
      (await send(url, 'POST', ping, { ...session, 'MCP-Protocol-Version': version })).status
    expect([await status('2025-06-18'), await status('2025-11-25'), await status('junk')]).toEqual([200, 200, 400])
  })

  test('that were refused are not kept, and sessions beyond the limit get 503', async () => {
    const { url } = await serve(undefined, { sessions: 2 })
    for (let i = 0; i < 5; i++) {
      const reply = await send(url, 'POST', { jsonrpc: '2.0', id: 1, method: 'initialize', params: {} })
      expect(reply.json.error?.code).toBe(-32602)
      expect(reply.headers['mcp-session-id']).toBeUndefined()
    }
    const statuses = [
      await send(url, 'POST', initialize()),
      await send(url, 'POST', initialize()),
      await send(url, 'POST', initialize()),
    ]
    expect(statuses.map((reply) => reply.status)).toEqual([200, 200, 503])
  })

  test('end when they are idle', async () => {
    const { url } = await serve(undefined, { sessionIdle: 50 })
    const session = await open(url)
    await new Promise((resolve) => setTimeout(resolve, 250))
    expect((await send(url, 'POST', { jsonrpc: '2.0', id: 2, method: 'ping' }, session)).status).toBe(404)
  })

  test('have one stream each for messages of the server', async () => {
    const { url } = await serve()
    const session = await open(url)
    const stream = await new Promise<{ status: number | undefined; close: () => void }>((resolve) => {
      const sent = httpRequest(
        url,
        { headers: { ...session, Accept: 'text/event-stream' }, agent: false },
        (response) => resolve({ status: response.statusCode, close: () => sent.destroy() }),
      )
      sent.on('error', () => {})
      sent.end()
    })
    expect(stream.status).toBe(200)
    expect((await send(url, 'GET', undefined, { ...session, Accept: 'text/event-stream' })).status).toBe(409)
    stream.close()
  })

  test('cancel a request when the client sends notifications/cancelled', async () => {
    const { url } = await serve(slow(5000))
    const session = await open(url)
    const reading = send(
      url,
      'POST',
      { jsonrpc: '2.0', id: 9, method: 'resources/read', params: { uri: 'file:///r/a' } },
      session,
    )
    await new Promise((resolve) => setTimeout(resolve, 100))
    await send(url, 'POST', { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 9 } }, session)
    expect(await reading).toMatchObject({ status: 202, text: '' })
  })
})

describe('HTTP+SSE of 2024-11-05', () => {
  test('sends its endpoint first, and answers on the stream', async () => {
    const { url } = await serve()
    const base = new URL(url).origin
    const events: string[] = []
    const sent = httpRequest(`${base}/sse`, { agent: false }, (response) => {
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => events.push(chunk))
    })
    sent.on('error', () => {})
    sent.end()
    const until = async (count: number) => {
      for (let i = 0; i < 200 && events.length < count; i++) await new Promise((resolve) => setTimeout(resolve, 10))
    }
    await until(1)
    const endpoint = /^event: endpoint\ndata: (\/messages\?sessionId=[\w-]+)\n\n$/.exec(events[0] ?? '')?.[1] ?? ''
    expect((await send(`${base}${endpoint}`, 'POST', initialize('2024-11-05'))).status).toBe(202)
    await until(2)
    expect(events[1]).toContain('"protocolVersion":"2024-11-05"')
    expect((await send(`${base}/messages?sessionId=guess`, 'POST', initialize())).status).toBe(404)
    sent.destroy()
  })
})

describe('the HTTP service', () => {
  test('finishes pending requests when it closes, and accepts no new ones', async () => {
    const service = await serve(slow(300), { drain: 5000 })
    const reading = send(
      service.url,
      'POST',
      modern('resources/read', { uri: 'file:///r/a' }),
      modernHeaders('resources/read', 'file:///r/a'),
    )
    await new Promise((resolve) => setTimeout(resolve, 100))
    services.splice(services.indexOf(service), 1)
    const closing = service.close()
    await expect(send(service.url, 'GET', undefined, {}, '/healthz')).rejects.toThrow()
    expect((await reading).status).toBe(200)
    await closing
  })

  test('reports only that it is healthy and ready', async () => {
    const { url } = await serve()
    expect((await send(url, 'GET', undefined, {}, '/healthz')).json).toEqual({ status: 'ok' })
    expect((await send(url, 'GET', undefined, {}, '/readyz')).json).toEqual({ status: 'ready' })
    expect((await send(url, 'POST', {}, {}, '/healthz')).status).toBe(405)
    expect((await send(url, 'GET', undefined, {}, '/metrics')).status).toBe(404)
  })

  test('reports for how many mounts changes are incomplete, and why, but not for which', async () => {
    const provider = live({ a: '' })
    const { url } = await serve({ ...provider, degraded: () => 'limited' })
    const { status, json } = await send(url, 'GET', undefined, {}, '/readyz')
    expect({ status, json }).toEqual({ status: 200, json: { status: 'ready', degraded: { limited: 1 } } })
  })

  test('closes without delay if a connection has no request', async () => {
    const { url } = await serve(memory({ a: 'a' }), { drain: 60_000 })
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    await once(socket, 'connect')
    const closed = once(socket, 'close')
    // The server has it by the time that it has answered somebody who came later.
    await send(url, 'GET', undefined, {}, '/healthz')
    await services.splice(0)[0]?.close()
    await closed
  })

  test('does not listen beyond this machine without a list of host names, nor without authentication unless "insecure" is set', async () => {
    const options = {
      view: () => createCatalog({ mounts: [] }).view({ id: 'x', roles: [] }),
      name: 't',
      version: '1',
      log: () => {},
    }
    const everywhere = { ...options, host: '0.0.0.0', port: 0 }
    const refused = (option: string) => ({ kind: 'invalid', detail: { reason: 'configuration', option } })
    await expect(serveHttp(everywhere)).rejects.toMatchObject(refused('allowedHosts'))
    const named = { ...everywhere, allowedHosts: ['context.example.org'] }
    await expect(serveHttp(named)).rejects.toMatchObject(refused('insecure'))
    services.push(await serveHttp({ ...named, insecure: true }))
  })

  test('reports that its port is in use', async () => {
    const { url } = await serve()
    const options = {
      view: () => createCatalog({ mounts: [] }).view({ id: 'x', roles: [] }),
      name: 't',
      version: '1',
      log: () => {},
    }
    await expect(serveHttp({ ...options, host: '127.0.0.1', port: Number(new URL(url).port) })).rejects.toThrow(
      'in use',
    )
  })
})
