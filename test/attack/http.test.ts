import { describe, expect, test } from 'vitest'
import { useArena } from './harness/arena.ts'
import { jsonHeaders, openHttp, send, sessionHeaders } from './harness/http.ts'
import { expectRefused, postsOf } from './harness/post.ts'
import { type Answer, initialize, modern } from './harness/wire.ts'

const arena = useArena({}, undefined, { onlyHttp: true })
const { ask, bodyOf, control, own, port } = postsOf(arena)

describe('Host and Origin:', () => {
  test('an Origin that is not exactly in the list is refused with 403 (HT01)', async () => {
    const origins = [
      'http://evil',
      'null',
      'http://localhost:9999',
      'ftp://localhost',
      'chrome-extension://x',
      'http://localhost.evil',
      'http://evil#@localhost',
      'http://a, http://b',
      '',
      ' ',
      'http://localhost',
      'https://localhost',
      `https://${own()}`,
      `http://${own()}/`,
      `http://${own()}.`,
      `HTTP://${own()}`,
      `http://user@${own()}`,
      `http://${own()}#`,
      `http://${own()}?`,
      `http://[::ffff:127.0.0.1]:${port()}`,
      `http://127.1:${port()}`,
      `http://2130706433:${port()}`,
      `http://0:${port()}`,
      `//${own()}`,
      own(),
      `http://${own()}, http://${own()}`,
      `http://LOCALHOST:${port()}`,
      'file://',
      'about:blank',
      `http://${own()}\\@evil`,
      `http://evil@${own()}`,
      `http://localhost:${port()}0`,
      `http://${own()} `.repeat(2),
    ]
    for (const origin of origins) expectRefused(await ask({ origin }), 403, origin)
    for (const method of ['GET', 'DELETE', 'OPTIONS', 'PUT'])
      expectRefused(await send(arena.http, arena.world, { method, headers: { origin: 'http://evil' } }), 403, method)
    expectRefused(await ask({ origin: [`http://${own()}`, 'http://evil'] }), 403, 'two of them')
    expectRefused(await ask({ origin: [`http://${own()}`, `http://${own()}`] }), 403, 'the same twice')
    for (const origin of [`http://${own()}`, `http://localhost:${port()}`, `http://[::1]:${port()}`])
      expect((await ask({ origin })).status, origin).toBe(200)
  })

  test('a request without Origin is accepted (HT02)', async () => {
    expect((await ask({})).status).toBe(200)
  })

  test('a Host that is not in the list is refused with 403 or 400, with or without an Origin (HT03, HT04)', async () => {
    const hosts = [
      'evil',
      `evil:${port()}`,
      `127.1:${port()}`,
      `2130706433:${port()}`,
      `user@localhost:${port()}`,
      '127.0.0.1',
      'localhost',
      'localhost:',
      `localhost:0${port()}`,
      `localhost.:${port()}`,
      `localhost:${port()}.`,
      `localhost:${port()}, evil`,
      `evil, localhost:${port()}`,
      `[::ffff:127.0.0.1]:${port()}`,
      `0:${port()}`,
      `0.0.0.0:${port()}`,
      `::1:${port()}`,
      `127.0.0.2:${port()}`,
      `localhost:${port()}/`,
      `localhost:${port()}#`,
      `localhost.evil:${port()}`,
      'localhost:80',
      'xn--localhost:1',
    ]
    for (const host of hosts) {
      expectRefused(await ask({ host }), [403, 400], host)
      expectRefused(await ask({ host, origin: `http://${host}` }), [403, 400], host)
    }
    expectRefused(await ask({ host: 'rebound.example:80', origin: 'http://rebound.example' }), 403, 'rebinding')
    for (const host of [`LOCALHOST:${port()}`, `[::1]:${port()}`, `127.0.0.1:${port()}`])
      expect((await ask({ host })).status, host).toBe(200)
  })

  test('forwarding headers of proxies are ignored, and not repeated (HT16)', async () => {
    const spoofed = {
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-host': 'evil',
      'x-forwarded-proto': 'https',
      forwarded: 'host=evil;for=127.0.0.1',
      'x-real-ip': '127.0.0.1',
      'x-original-url': '/admin',
      'x-rewrite-url': '/admin',
      'x-http-method-override': 'DELETE',
    }
    const plain = await ask({})
    const answer = await ask(spoofed)
    expect(answer.status).toBe(200)
    expect(answer.raw.toString()).toBe(plain.raw.toString())
    expect(JSON.stringify(answer.headers)).not.toContain('evil')
    // Nor does it make up for a bad Host.
    expectRefused(await ask({ host: 'evil', 'x-forwarded-host': own(), forwarded: `host=${own()}` }), 403, 'forwarded')
  })
})

describe('routes and methods:', () => {
  test('only the path of the endpoint is served, with or without a query and a final slash (HT28)', async () => {
    const { pathname } = arena.http.url as URL
    for (const path of [`${pathname}/`, `${pathname}?`, `${pathname}?x=1`, `http://${own()}${pathname}`])
      expect((await ask({}, bodyOf(), path)).status, path).toBe(200)
    const paths = [
      `${pathname}//`,
      `${pathname}/../admin`,
      pathname.toUpperCase(),
      `/${pathname}`,
      `${pathname}%2f`,
      `${pathname};x`,
      `${pathname}#x`,
      `/.${pathname}`,
      `/x/..${pathname}`,
      '/%6dcp',
      '/',
      '/admin',
      '/mcp/sse',
      '/sse',
      '/messages',
      '/messages?sessionId=x',
      `http://${own()}/x${pathname}`,
      `http://evil${pathname}`,
      '*',
      `${pathname}%00`,
      `${pathname}%20`,
      `${pathname}\\`,
      '/mcpx',
      '/explorer',
      '/favicon.ico',
      '/robots.txt',
      '/.well-known/oauth-protected-resource',
      '/package.json',
      '/../package.json',
      '/..%2fpackage.json',
    ]
    for (const path of paths) expectRefused(await ask({}, bodyOf(), path), [404, 400, 405], path)
  })

  test('/healthz and /readyz answer GET with nothing but a status, and similar paths are absent (HT29)', async () => {
    for (const path of ['/healthz', '/readyz']) {
      const answer = await send(arena.http, arena.world, { method: 'GET', path, headers: { host: 'evil' } })
      expect(answer.status).toBe(200)
      expect(Object.keys(JSON.parse(answer.raw.toString()) as object)).toEqual(['status'])
      expect(answer.raw.length).toBeLessThan(64)
      expectRefused(
        await send(arena.http, arena.world, { method: 'POST', path, headers: jsonHeaders, body: bodyOf() }),
        405,
        path,
      )
    }
    for (const path of [
      '/healthz/',
      '/healthz?',
      '/health',
      '/metrics',
      '/debug',
      '/debug/pprof',
      '/status',
      '/stats',
      '/version',
      '/config',
      '/healthz/../mcp',
      '/healthz%2f..%2fmcp',
    ])
      expectRefused(await send(arena.http, arena.world, { method: 'GET', path, headers: {} }), 404, path)
  })

  test('without a valid session, GET, DELETE and POST with a session id are refused, as are all other methods (HT34)', async () => {
    const get = (headers: Record<string, string>, method = 'GET') => send(arena.http, arena.world, { method, headers })
    expectRefused(await get({ 'mcp-protocol-version': modern, accept: 'text/event-stream' }), 405, 'GET')
    expectRefused(await get({ 'mcp-protocol-version': modern, 'mcp-session-id': 'x' }, 'DELETE'), 405, 'DELETE')
    expectRefused(await get({ accept: 'text/event-stream' }), [400, 405], 'without a session')
    expectRefused(await get({ accept: 'text/event-stream', 'mcp-session-id': 'unknown' }), 404, 'unknown')
    expectRefused(
      await get({ accept: 'application/json', ...sessionHeaders(arena.wire('http 2025-11-25')) }),
      406,
      'JSON',
    )
    for (const method of ['PUT', 'PATCH', 'OPTIONS', 'HEAD', 'TRACE', 'PROPFIND']) {
      const answer = await get({}, method)
      expect(answer.status, method).toBe(405)
    }
    for (const id of [
      '',
      'x',
      '../x',
      'x'.repeat(10_000),
      '__proto__',
      'é',
      `${sessionHeaders(arena.wire('http 2025-11-25'))['mcp-session-id']?.toUpperCase()}`,
    ]) {
      const answer = await send(arena.http, arena.world, {
        headers: { ...jsonHeaders, 'mcp-session-id': id },
        body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
      })
      expectRefused(answer, [400, 404], id)
    }
  })
})

describe('HTTP answers:', () => {
  test('the headers of an answer forbid caching and sniffing, name no software, set no cookie, and repeat no part of the request (HT32)', async () => {
    const { headers = [] } = await ask({
      'mcp-session-id': 'x-evil',
      'last-event-id': 'x-evil',
      'x-request-id': 'x-evil',
      cookie: 'x-evil=1',
      authorization: 'Bearer x-evil',
      'accept-encoding': 'x-evil',
    })
    expect(JSON.stringify(headers)).not.toContain('x-evil')
    expect(Object.fromEntries(headers)).toMatchObject({
      'cache-control': expect.stringContaining('no-store'),
      'x-content-type-options': 'nosniff',
    })
    expect(headers.map(([name]) => name)).not.toContain('set-cookie')
    expect(headers.map(([name]) => name)).not.toContain('server')
    expect(headers.map(([name]) => name)).not.toContain('x-powered-by')
  })

  test('answers are not compressed, with any Accept-Encoding (HT36)', async () => {
    for (const encoding of ['gzip', 'br', 'deflate', 'zstd', '*', 'gzip, br;q=1', 'identity;q=0, gzip'])
      expect(Object.fromEntries((await ask({ 'accept-encoding': encoding })).headers ?? [])).not.toHaveProperty(
        'content-encoding',
      )
  })

  test('the same ids in two sessions at once get each session its own answers (HT26)', async () => {
    const wires = [
      await openHttp(arena.http, arena.world, '2025-11-25'),
      await openHttp(arena.http, arena.world, '2025-06-18'),
    ]
    // The same id in two sessions, at once.
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        wires[i % 2]!.call(
          'resources/read',
          { uri: `rule://guarded/${i % 4 ? 'open.txt' : 'denied.txt'}` },
          { id: `same${i >> 1}` },
        ),
      ),
    )
    for (const [i, { message }] of answers.entries()) {
      expect(message?.id).toBe(`same${i >> 1}`)
      if (i % 4) expect(message?.result).toBeDefined()
      else expect(message?.error?.code).toBe(-32002)
    }
    for (const wire of wires) await wire.close()
  })

  test('a session that was deleted stays unusable, and the limit on sessions harms no other client', async () => {
    const opened: string[] = []
    const open = () =>
      send(arena.http, arena.world, {
        headers: jsonHeaders,
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: initialize() }),
      })
    let full: Answer | undefined
    for (let i = 0; i < 1100 && full === undefined; i++) {
      const answer = await open()
      if (answer.status === 503) full = answer
      else opened.push(answer.headers?.find(([name]) => name === 'mcp-session-id')?.[1] ?? '')
    }
    expect(full?.status).toBe(503)
    expect(full?.headers?.map(([name]) => name)).toContain('retry-after')
    expect(new Set(opened).size).toBe(opened.length)
    for (const id of opened) expect(id).toMatch(/^[\x21-\x7e]{20,}$/)
    expect((await arena.read(arena.wire('http 2026-07-28'), control().uri)).message?.result).toBeDefined()
    expect((await arena.read(arena.wire('http 2025-11-25'), control().uri)).message?.result).toBeDefined()
    for (const id of opened)
      await send(arena.http, arena.world, { method: 'DELETE', headers: { 'mcp-session-id': id } })
    const [gone = ''] = opened
    const late = await send(arena.http, arena.world, {
      headers: { ...jsonHeaders, 'mcp-session-id': gone },
      body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
    })
    expect(late.status).toBe(404)
  })
})
