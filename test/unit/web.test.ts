import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Change, Context } from '../../src/core/provider.ts'
import { type WebOptions, web } from '../../src/providers/web/index.ts'
import { documents } from '../../src/wrap/documents.ts'
import { authority } from '../support/database-tls.ts'
import { createNames, startWeb, type WebServer, watchConnections } from '../support/web.ts'

// A machine with other work takes its time.
vi.setConfig({ testTimeout: 60_000 })
const patience = { timeout: 30_000, interval: 50 }

let server: WebServer
const connections = watchConnections()

beforeAll(async () => {
  server = await startWeb((_, response) => void response.end())
})
beforeEach(() => {
  server.requests.length = 0
})
afterAll(() => {
  connections.end()
  server.close()
  expect(connections.left).toEqual([])
})

const context = (signal = new AbortController().signal): Context => ({ principal: { id: 'x', roles: [] }, signal })
const open = (options: Partial<WebOptions> = {}) =>
  web({ url: server.url, allowAddresses: ['127.0.0.1'], match: ['**'], timeoutMs: 30_000, ...options })
const read = async (
  provider: ReturnType<typeof open>,
  path = 'a',
  params: readonly (readonly [string, string])[] = [],
) => (await provider.read({ path, params: new Map(params) }, context()))[0]

describe('a page of a web mount', () => {
  test('is fetched when it is read, with a User-Agent, and decompressed', async () => {
    server.answer = (_, response) =>
      response
        .writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'content-encoding': 'gzip' })
        .end(gzipSync('<p>日本</p>'))
    expect(await read(open(), 'docs/日 本')).toMatchObject({ text: '<p>日本</p>', mimeType: 'text/html' })
    const [request] = server.requests
    expect(request?.method).toBe('GET')
    expect(request?.url).toBe('/docs/%E6%97%A5%20%E6%9C%AC')
    expect(request?.headers).toMatchObject({
      'accept-encoding': 'gzip, br',
      'user-agent': expect.stringContaining('hikidashi'),
    })
    expect(Object.keys(request?.headers ?? {}).sort()).toEqual(['accept-encoding', 'connection', 'host', 'user-agent'])
  })

  test('is kept as the newest request gave it, even if the answer to an earlier request comes later', async () => {
    const bodies = ['old', 'new']
    let send = () => {}
    server.answer = (_, response) => {
      const body = bodies.shift()
      const end = () => void response.writeHead(200, { 'content-type': 'text/plain' }).end(body)
      if (body === 'old') send = end
      else end()
    }
    const provider = open()
    const slow = read(provider)
    await vi.waitFor(() => expect(server.requests).toHaveLength(1))
    expect(await read(provider)).toMatchObject({ text: 'new' })
    send()
    expect(await slow).toMatchObject({ text: 'old' })
    expect(await read(provider)).toMatchObject({ text: 'new' })
    expect(server.requests).toHaveLength(2)
  })

  test('that the configuration does not name is not requested, and a listing requests none', async () => {
    const provider = open({ match: ['docs/**'], pages: [{ path: 'index' }, { path: '', title: 'Home' }] })
    const listed = []
    for await (const entry of provider.list({}, context())) listed.push(entry)
    expect(listed).toEqual([{ path: '', title: 'Home' }, { path: 'index' }])
    for (const path of ['x', 'docs', 'docs/', 'index/', 'Docs/a', 'docs/../x'])
      await expect(read(provider, path)).rejects.toMatchObject({ kind: 'not-found' })
    expect(server.requests).toHaveLength(0)
  })

  test('is not fetched if the mount has "fetch": false, and the error says so', async () => {
    const provider = open({ fetch: false, pages: [{ path: 'a' }] })
    await expect(read(provider)).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('Fetch the page from its URI'),
      detail: { reason: 'refused' },
    })
    expect(server.requests).toHaveLength(0)
  })

  test('in HTML is converted to Markdown on request, decoded by its header or declaration', async () => {
    const sjis = Buffer.from([0x93, 0xfa, 0x96, 0x7b])
    const page = (head: string) =>
      Buffer.concat([Buffer.from(`${head}<title>T</title><h1>`), sjis, Buffer.from('</h1><ul><li>a</ul>')])
    const provider = documents(open())
    for (const [type, head] of [
      ['text/html; charset="Shift_JIS"', ''],
      ['text/html', '<meta charset=shift_jis>'],
      ['text/html', '<meta http-equiv="Content-Type" content="text/html; charset=shift_jis">'],
    ] as const) {
      server.answer = (_, response) => response.writeHead(200, { 'content-type': type }).end(page(head))
      const path = `p${head.length}${type.length}`
      expect(await read(provider, path)).toMatchObject({ text: `${head}<title>T</title><h1>日本</h1><ul><li>a</ul>` })
      expect(await read(provider, path, [['as', 'markdown']])).toMatchObject({
        mimeType: 'text/markdown',
        title: 'T',
        text: '# 日本\n\n- a\n',
      })
    }
    await provider.close?.()
  })

  test('is requested again only with a condition, and not at all immediately after it was read', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    onTestFinished(() => void vi.useRealTimers())
    let body = 'one'
    server.answer = (request, response) => {
      const etag = `"${body}"`
      if (request.headers['if-none-match'] === etag) return response.writeHead(304).end()
      return response.writeHead(200, { 'content-type': 'text/plain', etag }).end(body)
    }
    const provider = open()
    const first = await read(provider)
    expect(await read(provider)).toEqual(first)
    expect(server.requests).toHaveLength(1)
    const later = () => {
      vi.advanceTimersByTime(60_000)
      return read(provider)
    }
    expect(await later()).toEqual(first)
    expect(server.requests.at(-1)?.headers['if-none-match']).toBe('"one"')
    body = 'two'
    const changed = await later()
    expect(changed).toMatchObject({ text: 'two' })
    expect(changed?.version).not.toBe(first?.version)
  })

  test('is requested again after a moment, even if the wall clock jumps back by a day', async () => {
    vi.useFakeTimers({ toFake: ['Date', 'performance'] })
    onTestFinished(() => void vi.useRealTimers())
    let body = 'one'
    server.answer = (_, response) => response.writeHead(200, { 'content-type': 'text/plain' }).end(body)
    const provider = open()
    expect(await read(provider)).toMatchObject({ text: 'one' })
    vi.setSystemTime(Date.now() - 86_400_000)
    body = 'two'
    vi.advanceTimersByTime(60_000)
    expect(await read(provider)).toMatchObject({ text: 'two' })
  })

  test('that says no-store is requested each time', async () => {
    server.answer = (_, response) =>
      response
        .writeHead(200, { 'content-type': 'text/plain', etag: '"x"', 'cache-control': 'private, no-store' })
        .end('x')
    const provider = open()
    await read(provider)
    await read(provider)
    expect(server.requests.map(({ headers }) => headers['if-none-match'])).toEqual([undefined, undefined])
  })

  test.each([
    [404, 'not-found'],
    [410, 'not-found'],
    [400, 'invalid'],
    [401, 'unavailable'],
    [403, 'unavailable'],
    [206, 'unavailable'],
    [304, 'unavailable'],
    [429, 'unavailable'],
    [500, 'unavailable'],
  ])('with the status %i is %s, and its body is not shown', async (status, kind) => {
    server.answer = (_, response) =>
      response.writeHead(status, { 'content-type': 'text/plain' }).end('text-of-the-origin')
    const error = await read(open()).then(
      () => undefined,
      (failure: unknown) => failure,
    )
    expect(error).toMatchObject({ kind })
    expect(`${String(error)} ${JSON.stringify(error)}`).not.toContain('text-of-the-origin')
  })

  test('of a server that sends Retry-After is not requested meanwhile', async () => {
    server.answer = (_, response) => response.writeHead(503, { 'retry-after': '120' }).end()
    const provider = open()
    await expect(read(provider)).rejects.toMatchObject({ kind: 'unavailable' })
    await expect(read(provider, 'b')).rejects.toMatchObject({
      kind: 'unavailable',
      detail: { retryAfter: expect.any(Number) },
    })
    expect(server.requests).toHaveLength(1)
  })

  test('of a type that is not served is refused before its body is read', async () => {
    server.answer = (_, response) => void response.writeHead(200, { 'content-type': 'application/x-secret' }).write('x')
    await expect(read(open())).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('media type'),
      detail: { reason: 'refused' },
    })
    server.answer = (_, response) => response.writeHead(200, { 'content-type': 'application/x-secret' }).end('x')
    expect(await read(open({ types: ['application/*'] }))).toMatchObject({ mimeType: 'application/x-secret' })
  })

  test('is read at the target of a redirect at the same origin, or at a named one', async () => {
    const other = await startWeb((_, response) =>
      response.writeHead(200, { 'content-type': 'text/plain' }).end('other'),
    )
    server.answer = (request, response) => {
      if (request.url === '/a') return response.writeHead(301, { location: 'b?c=d#e' }).end()
      if (request.url === '/out') return response.writeHead(302, { location: `${other.url}/x` }).end()
      return response.writeHead(200, { 'content-type': 'text/plain' }).end(request.url)
    }
    expect(await read(open())).toMatchObject({ text: '/b?c=d' })
    await expect(read(open(), 'out')).rejects.toMatchObject({ kind: 'unavailable' })
    expect(other.requests).toHaveLength(0)
    expect(await read(open({ redirects: [other.url] }), 'out')).toMatchObject({ text: 'other' })
    other.close()
  })

  test('is fetched over TLS from a verified host, at an address that was looked up once', async () => {
    const tls = await startWeb((_, response) => response.writeHead(200, { 'content-type': 'text/plain' }).end('safe'), {
      tls: true,
    })
    const names = createNames({ 'database.test': ['127.0.0.1'], 'other.test': ['127.0.0.1'] })
    const at = (host: string, options: Partial<WebOptions> = {}) =>
      open({ url: `https://${host}:${tls.port}`, resolve: names.resolve, ca: authority, ...options })
    expect(await read(at('database.test'))).toMatchObject({ text: 'safe' })
    expect(names.asked).toEqual(['database.test'])
    await expect(read(at('other.test'))).rejects.toThrow(/its certificate is for another host/)
    await expect(read(open({ url: tls.url, resolve: names.resolve }))).rejects.toThrow(/not from a trusted authority/)
    await expect(read(at('nowhere.test'))).rejects.toThrow(/the host does not exist/)
    tls.close()
  })

  test('is given up when its caller cancels the read', async () => {
    server.answer = () => {}
    const gone = new AbortController()
    const reading = open().read({ path: 'a', params: new Map() }, context(gone.signal))
    await vi.waitFor(() => expect(server.requests).toHaveLength(1), patience)
    gone.abort(new Error('gone'))
    await expect(reading).rejects.toThrow('gone')
  })
})

test('changes of listed web pages are found by conditional requests', async () => {
  const bodies = new Map([
    ['/a', 'one'],
    ['/b', 'one'],
  ])
  server.answer = (request, response) => {
    const body = bodies.get(request.url ?? '')
    if (body === undefined) return response.writeHead(404).end()
    if (request.headers['if-none-match'] === `"${body}"`) return response.writeHead(304).end()
    return response.writeHead(200, { 'content-type': 'text/plain', etag: `"${body}"` }).end(body)
  }
  const provider = open({ pages: [{ path: 'a' }, { path: 'b' }], poll: 100 })
  const ended = new AbortController()
  const changes = await provider.watch?.(ended.signal)
  const next = async (): Promise<Change> => {
    const result = await changes?.[Symbol.asyncIterator]().next()
    if (result === undefined || result.done === true) throw new Error('the watch has ended')
    return result.value
  }
  bodies.set('/b', 'two')
  expect(await next()).toEqual({ path: 'b' })
  bodies.delete('/a')
  expect(await next()).toEqual({ path: 'a' })
  bodies.set('/a', 'back')
  expect(await next()).toEqual({ path: 'a' })
  ended.abort()
  expect(server.requests.some(({ headers }) => headers['if-none-match'] === '"one"')).toBe(true)
})

test.each([
  [{ url: 'ftp://x' }, /is not an http or https URL/],
  [{ url: 'https://x/?q' }, /has a query/],
  [{ url: 'http://example.com' }, /not encrypted/],
  [{ url: 'http://127.0.0.1', allowAddresses: [] }, /this machine or a private network/],
  [{ url: 'https://169.254.169.254', allowAddresses: ['0.0.0.0/0'] }, /"url" cannot be requested/],
  [{ url: 'https://example.com:6379' }, /another protocol/],
  [{ allowAddresses: ['10/8'] }, /neither an IP address/],
  [{ redirects: ['https://a/b'] }, /without a path/],
  [{ redirects: ['http://a'] }, /not encrypted/],
  [{ pages: [{ path: '/a' }] }, /not the path of a page/],
  [{ pages: [{ path: 'a' }, { path: 'a' }] }, /has a page twice/],
])('a web mount with %j is refused', (options, message) => {
  expect(() => open(options)).toThrow(message)
})
