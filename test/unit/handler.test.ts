import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterEach, describe, expect, test } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import type { Provider } from '../../src/core/provider.ts'
import { createHandler, type Handler, type HandlerOptions } from '../../src/server/http/handler.ts'
import { createHeld } from '../support/http-service.ts'
import { live } from '../support/live.ts'
import { memory } from '../support/memory.ts'

const handlers: Handler[] = []
const servers: Server[] = []
afterEach(async () => {
  await Promise.all(handlers.splice(0).map((handler) => handler.close()))
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

async function handle(options: Partial<HandlerOptions> = {}, provider: Provider = memory({ a: 'the text' })) {
  const catalog = createCatalog({
    mounts: [{ address: 'file:///r', provider, access: ({ roles }, path) => path !== 'a' || !roles.includes('no') }],
  })
  const handler = await createHandler(catalog, { name: 't', version: '1', ...options })
  handlers.push(handler)
  return handler
}

/** A server of somebody else's, which hands everything to the handler. */
async function mount(handler: Handler, call?: Parameters<Handler['node']>[2]): Promise<string> {
  const server = createServer((request, response) => void handler.node(request, response, call))
  servers.push(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/any/place`
}

const here = { peer: '127.0.0.1' }
const url = 'http://127.0.0.1:9/any/place'
const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'c', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}
function readOf(path: string, headers: Record<string, string> = {}, init: RequestInit = {}): Request {
  const uri = `file:///r/${path}`
  const params = { uri, _meta: meta }
  return new Request(url, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': '2026-07-28',
      'Mcp-Method': 'resources/read',
      'Mcp-Name': uri,
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'resources/read', params }),
    ...init,
  })
}
const readText = async (handler: Handler, call: Parameters<Handler['fetch']>[1] = here, path = 'a') => {
  const answer = await handler.fetch(readOf(path), call)
  const { result, error } = (await answer.json()) as {
    result?: { contents: { text: string }[] }
    error?: { message: string }
  }
  return { status: answer.status, said: result?.contents[0]?.text ?? error?.message }
}

describe('a handler inside another HTTP server', () => {
  test('serves the official client with the newest and with an earlier revision of the protocol, on a server of Node', async () => {
    const place = await mount(await handle())
    for (const mode of ['auto', 'legacy'] as const) {
      const client = new Client({ name: 'c', version: '1' }, { versionNegotiation: { mode } })
      await client.connect(new StreamableHTTPClientTransport(new URL(place)))
      expect((await client.readResource({ uri: 'file:///r/a' })).contents).toMatchObject([{ text: 'the text' }])
      await client.close()
    }
  })

  test('answers 500 if the application throws when it is asked for the resources of a caller, and asks it again for the next request', async () => {
    const { view } = createCatalog({ mounts: [{ address: 'file:///r', provider: memory({ a: 'the text' }) }] })
    let isReady = false
    const handler = await createHandler(
      (principal) => {
        if (isReady) return view(principal)
        throw new Error('not ready')
      },
      { name: 't', version: '1' },
    )
    handlers.push(handler)
    expect((await readText(handler)).status).toBe(500)
    isReady = true
    expect(await readText(handler)).toEqual({ status: 200, said: 'the text' })
  })

  test('serves the official client through the Fetch standard, with no server at all', async () => {
    const handler = await handle()
    for (const mode of ['auto', 'legacy'] as const) {
      const fetch = (input: string | URL | Request, init?: RequestInit) => handler.fetch(new Request(input, init), here)
      const client = new Client({ name: 'c', version: '1' }, { versionNegotiation: { mode } })
      await client.connect(new StreamableHTTPClientTransport(new URL(url), { fetch }))
      expect((await client.readResource({ uri: 'file:///r/a' })).contents).toMatchObject([{ text: 'the text' }])
      await client.close()
    }
  })

  test('streams changes through the Fetch standard, and ends the stream when it closes', async () => {
    const source = live({ a: '1' })
    const handler = await handle({}, source)
    const fetch = (input: string | URL | Request, init?: RequestInit) => handler.fetch(new Request(input, init), here)
    const client = new Client({ name: 'c', version: '1' }, { versionNegotiation: { mode: 'auto' } })
    await client.connect(new StreamableHTTPClientTransport(new URL(url), { fetch }))
    const heard = new Promise((resolve) => {
      client.setNotificationHandler('notifications/resources/updated', ({ params }) => resolve(params.uri))
    })
    const subscription = await client.listen({ resourceSubscriptions: ['file:///r/a'] })
    source.set('a', { text: '2' })
    expect(await heard).toBe('file:///r/a')
    await handler.close()
    await subscription.closed
    expect(await readText(handler)).toMatchObject({ status: 503 })
    await client.close()
  })

  test('accepts a body that the application has already read, and refuses it if it is too long or malformed', async () => {
    const body = { jsonrpc: '2.0', id: 7, method: 'ping' }
    const handler = await handle({ limits: { body: 1000 } })
    const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }
    const ask = async (given: unknown) => {
      const place = await mount(handler, { body: given })
      return fetch(place, { method: 'POST', headers: { ...headers, 'MCP-Protocol-Version': '2026-07-28' }, body: '{}' })
    }
    for (const given of [body, JSON.stringify(body), Buffer.from(JSON.stringify(body))])
      expect(((await (await ask(given)).json()) as { id: number }).id).toBe(7)
    expect((await ask({ ...body, params: { a: 'x'.repeat(1000) } })).status).toBe(413)
    expect((await ask('{')).status).toBe(400)
  })

  test('cancels reads of a client that disconnects, on a server of Node and through the Fetch standard', async () => {
    const aborted: string[] = []
    let asked: () => void = () => {}
    const provider: Provider = {
      ...memory({ a: '' }),
      read: (_, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            aborted.push('aborted')
            reject(signal.reason)
          })
          asked()
        }),
    }
    const handler = await handle({}, provider)
    const place = await mount(handler)
    for (const send of [
      (signal: AbortSignal) => handler.fetch(readOf('a', {}, { signal }), here),
      (signal: AbortSignal) => fetch(new Request(place, readOf('a', {}, { signal }))),
    ]) {
      const before = aborted.length
      const controller = new AbortController()
      const begun = new Promise<void>((resolve) => {
        asked = resolve
      })
      const answer = send(controller.signal)
      answer.catch(() => {})
      await begun
      controller.abort()
      await expect(answer).rejects.toThrow()
      await expect.poll(() => aborted.length).toBe(before + 1)
    }
  })

  test('refuses a wrong host, origin, method or media type, and a path or a body that is too long', async () => {
    const handler = await handle({ limits: { body: 2000, path: 100 } })
    const status = async (request: Request) => (await handler.fetch(request, here)).status
    expect(await status(readOf('a'))).toBe(200)
    expect(await status(readOf('a', { Host: 'evil.example' }))).toBe(403)
    expect(await status(readOf('a', { Host: 'localhost.evil.example' }))).toBe(403)
    expect(await status(readOf('a', { Host: 'localhost:1' }))).toBe(200)
    expect(await status(readOf('a', { Origin: 'http://127.0.0.1:9' }))).toBe(200)
    expect(await status(readOf('a', { Origin: 'http://127.0.0.1:10' }))).toBe(403)
    expect(await status(readOf('a', { Origin: 'https://evil.example' }))).toBe(403)
    expect(await status(readOf('a', { Origin: 'null' }))).toBe(403)
    expect(await status(readOf('a', { 'Content-Type': 'text/plain' }))).toBe(415)
    expect(await status(readOf('a', { Accept: 'text/html' }))).toBe(406)
    expect(await status(readOf('a', {}, { body: 'x'.repeat(2001) }))).toBe(413)
    expect(await status(readOf('a', { 'Mcp-Name': 'file:///r/b' }))).toBe(400)
    expect(await status(new Request(`${url}/${'x'.repeat(100)}`))).toBe(414)
    expect(await status(new Request(url, { method: 'PUT' }))).toBe(405)
    expect((await handler.fetch(readOf('b'), here)).status).toBe(200)
  })

  test('serves only clients on this machine if it has no authentication, unless "insecure" is set', async () => {
    const handler = await handle()
    for (const peer of [undefined, '', '10.0.0.1', '::ffff:10.0.0.1', '2001:db8::1', '127.0.0.1.evil.example'])
      expect(await readText(handler, { peer })).toMatchObject({ status: 403 })
    for (const peer of ['127.0.0.1', '127.8.8.8', '::1', '::ffff:127.0.0.1'])
      expect(await readText(handler, { peer })).toEqual({ status: 200, said: 'the text' })
    const open = await handle({ insecure: true, allowedHosts: ['context.example.org'] })
    expect((await open.fetch(readOf('a', { Host: 'context.example.org' }))).status).toBe(200)
    await expect(handle({ allowedHosts: ['context.example.org'] })).rejects.toThrow(
      /clients would not be authenticated/,
    )
  })

  test('shows each principal of the application its own resources, and an anonymous caller none', async () => {
    const handler = await handle({ principals: 'given' })
    expect(await readText(handler, { ...here, principal: { id: 'ada', roles: [] } })).toMatchObject({
      said: 'the text',
    })
    const denied = await readText(handler, { ...here, principal: { id: 'bob', roles: ['no'] } })
    const absent = await readText(handler, { ...here, principal: { id: 'bob', roles: ['no'] } }, 'b')
    expect(denied).toEqual(absent)
    expect(await readText(handler, here)).toMatchObject({ status: 401 })
  })

  test('requires tokens if configured, and tells clients where to get one', async () => {
    const issuer = 'https://issuer.example'
    const auth = { resource: 'https://context.example.org/mcp', issuers: [{ issuer, jwks: `${issuer}/jwks` }] }
    const handler = await handle({ auth, allowedHosts: ['context.example.org'] })
    const answer = await handler.fetch(readOf('a', { Host: 'context.example.org' }))
    expect(answer.status).toBe(401)
    const [, metadata = ''] = /resource_metadata="([^"]+)"/.exec(answer.headers.get('www-authenticate') ?? '') ?? []
    expect(metadata).toBe('https://context.example.org/.well-known/oauth-protected-resource/mcp')
    expect(await (await handler.fetch(new Request(metadata))).json()).toMatchObject({ authorization_servers: [issuer] })
    await expect(handle({ auth, principals: 'given' })).rejects.toThrow(/auth and principals exclude each other/)
  })

  test('waits for pending requests when it closes', async () => {
    const { provider, held } = createHeld('a')
    const handler = await handle({}, provider)
    const answer = readText(handler)
    await expect.poll(() => held.length).toBe(1)
    const closed = handler.close()
    for (const release of held) release()
    expect(await answer).toEqual({ status: 200, said: 'a' })
    await closed
  })

  test('is not created without a catalog or a name, and the error names what is missing', async () => {
    await expect(createHandler(undefined as never, { name: 't', version: '1' })).rejects.toThrow(/catalog/)
    await expect(createHandler(createCatalog({ mounts: [] }), {} as never)).rejects.toThrow(/needs "name"/)
  })
})
