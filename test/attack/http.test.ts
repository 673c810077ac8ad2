import { describe, expect, test } from 'vitest'
import { useArena } from '../support/attack-arena.ts'
import {
  headerValue,
  jsonHeaders,
  modernHeaders,
  openHttp,
  send,
  sentinel,
  sessionHeaders,
} from '../support/attack-http.ts'
import { type Answer, initialize, modern, withMeta } from '../support/attack-wire.ts'
import { controlPath } from '../support/attack-world.ts'

const arena = useArena()

const control = () => ({ uri: `${arena.world.address}/${controlPath}` })
const bodyOf = (params: Readonly<Record<string, unknown>> = control(), method = 'resources/read') =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: withMeta(params, true) })
const headersOf = () => modernHeaders('resources/read', control())
const own = () => (arena.http.url as URL).host
const port = () => (arena.http.url as URL).port

/** An honest modern read, with other headers. `undefined` leaves one out. */
function ask(
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
  body = bodyOf(),
  path?: string,
): Promise<Answer> {
  const all = Object.entries({ ...headersOf(), ...headers }).filter(([, value]) => value !== undefined)
  return send(arena.http, arena.world, {
    headers: Object.fromEntries(all) as Record<string, string>,
    body,
    ...(path === undefined ? {} : { path }),
  })
}

function expectRefused(answer: Answer, status: number | readonly number[], what: unknown): void {
  const shown = `${JSON.stringify(what)}: ${answer.status} ${answer.raw.subarray(0, 200)}`
  expect([status].flat(), shown).toContain(answer.status)
  expect(answer.message?.result, shown).toBeUndefined()
  expect(answer.raw.length, shown).toBeLessThan(2048)
  expect(
    answer.headers?.map(([name]) => name).filter((name) => name.startsWith('access-control')),
    shown,
  ).toEqual([])
}

describe('who asks', () => {
  test('HT01: an Origin that is not in the list, exactly, is refused with 403', async () => {
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

  test('HT02: no Origin is no web page', async () => {
    expect((await ask({})).status).toBe(200)
  })

  test('HT03 HT04: a Host that is not in the list, exactly, is refused with 403, whatever the Origin says', async () => {
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

  test('HT16: what a proxy would say counts for nothing, and is not repeated', async () => {
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

describe('what is asked', () => {
  test('HT06: what any web page may send is refused with 415', async () => {
    for (const type of [
      'text/plain',
      'text/plain;charset=UTF-8',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'text/json',
      'application/json-rpc',
      'application/vnd.api+json',
      '*/*',
      'application/*',
    ])
      expectRefused(await ask({ 'content-type': type }), 415, type)
  })

  test('HT07: a Content-Type that is missing, or says more than it may, is refused', async () => {
    for (const type of [
      'application/json; charset=latin1',
      'application/json, x',
      'application/json; charset=utf-16',
      'application/jsonx',
      'xapplication/json',
      'application/json;boundary=x',
      'application/json; charset=utf-8; x=y',
      'application/json text/plain',
      'application/json\ttext/plain',
      ';application/json',
      '',
    ])
      expectRefused(await ask({ 'content-type': type }), [415, 400], type)
    expectRefused(await ask({ 'content-type': undefined }), 415, 'none')
    expectRefused(await ask({ 'content-type': ['application/json', 'text/plain'] }), 415, 'two')
    const long = await ask({ 'content-type': `application/json; charset=${'x'.repeat(1024 * 1024)}` }).catch(
      (error: NodeJS.ErrnoException) => error.code,
    )
    if (typeof long === 'string') expect(['ECONNRESET', 'EPIPE']).toContain(long)
    else expectRefused(long as Answer, [431, 400], 'long')
  })

  test('HT08: an Accept that allows neither form of an answer is refused with 406, any other is served', async () => {
    for (const accept of [
      'text/html',
      'image/*',
      'application/xml',
      '',
      'json',
      'application/json;q=0',
      'application/json;q=0.0, text/event-stream;q=0',
      '*/*;q=0',
      'text/plain, text/html;q=0.9',
      'x'.repeat(20_000),
    ])
      expectRefused(await ask({ accept }), 406, accept)
    for (const accept of [
      undefined,
      'application/json',
      'text/event-stream',
      '*/*',
      'application/*',
      'text/*',
      'text/html, */*;q=0.1',
      'Application/JSON',
      'application/json;q=0.001',
      'application/json; charset=utf-8',
    ])
      expect((await ask({ accept })).status, accept).toBe(200)
  })

  test('HT09: a version in the header that is missing, another, or said twice, is refused with -32020 or -32022', async () => {
    for (const version of [
      undefined,
      '2025-11-25',
      '2024-11-05',
      '2027-01-01',
      '',
      '2026-07-28x',
      '2026-7-28',
      `${modern}, ${modern}`,
      'latest',
      'é',
      [modern, modern],
      [modern, '2025-11-25'],
    ]) {
      const answer = await ask({ 'mcp-protocol-version': version })
      expectRefused(answer, 400, version)
      expect([-32020, -32022]).toContain(answer.message?.error?.code)
    }
    // A header that is modern does not lift an older body either.
    const legacy = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'resources/read', params: control() })
    expectRefused(await ask({}, legacy), 400, 'an older body')
    for (const method of [
      undefined,
      'resources/list',
      'Resources/read',
      '',
      'resources/read, resources/read',
      ['resources/read', 'resources/read'],
    ]) {
      const answer = await ask({ 'mcp-method': method })
      expectRefused(answer, 400, method)
      expect(answer.message?.error?.code).toBe(-32020)
    }
  })

  test('HT11: a name in the header that is not, byte for byte, the one in the body is refused with -32020', async () => {
    const { uri } = control()
    const others = [
      undefined,
      '',
      `${uri}x`,
      uri.slice(0, -1),
      uri.toUpperCase(),
      uri.replace('control', '%63ontrol'),
      uri.replace('/control', '/./control'),
      `${uri}/`,
      `${uri}?`,
      `"${uri}"`,
      `${uri},${uri}`,
      [uri, uri],
      [uri, 'file:///x'],
      `<${uri}>`,
      encodeURIComponent(uri),
    ]
    for (const name of others) {
      const answer = await ask({ 'mcp-name': name })
      expectRefused(answer, 400, name)
      expect(answer.message?.error?.code, JSON.stringify(name)).toBe(-32020)
    }
    // White space around a value is not part of it (RFC 9110, 5.5).
    expect((await ask({ 'mcp-name': `  ${uri}\t ` })).status).toBe(200)
    // But in a URI it is.
    const spaced = await ask({ 'mcp-name': `${uri} ` }, bodyOf({ uri: `${uri} ` }))
    expectRefused(spaced, 400, 'a space behind')
  })

  test('HT12: the sentinel is decoded exactly, or refused', async () => {
    const { uri } = control()
    const encoded = Buffer.from(uri).toString('base64')
    expect((await ask({ 'mcp-name': sentinel(encoded) })).status).toBe(200)
    const wrong = [
      sentinel(sentinel(encoded)),
      sentinel(Buffer.from(sentinel(encoded)).toString('base64')),
      sentinel(encoded.replace(/=*$/, '')),
      sentinel(`${encoded}=`),
      sentinel(`${encoded}====`),
      sentinel(` ${encoded}`),
      sentinel(encoded.replace(/(....)/, '$1 ')),
      sentinel(`${encoded}!`),
      sentinel(''),
      sentinel(Buffer.from([0xff, 0xfe]).toString('base64')),
      sentinel(Buffer.from(`${uri}\r\nX: y`).toString('base64')),
      sentinel(Buffer.from(`\ufeff${uri}`).toString('base64')),
      sentinel(Buffer.from(`${uri}\0`).toString('base64')),
      sentinel(Buffer.from(uri, 'utf16le').toString('base64')),
      `=?utf-8?b?${encoded}?=`,
      `=?base64?${encoded}`,
      `?base64?${encoded}?=`,
      `=?base64?${encoded}?=x`,
      `x=?base64?${encoded}?=`,
      encoded,
    ]
    for (const name of wrong) {
      const answer = await ask({ 'mcp-name': name })
      expectRefused(answer, 400, name)
      expect(answer.message?.error?.code, name).toBe(-32020)
    }
    // The alphabet of URLs is another spelling of the same bytes, and spellings do not count.
    const odd = `${arena.world.address}/${'ü>?~'.repeat(8)}`
    const url = sentinel(
      Buffer.from(odd)
        .toString('base64url')
        .padEnd(Math.ceil(Buffer.byteLength(odd) / 3) * 4, '='),
    )
    expectRefused(await ask({ 'mcp-name': url }, bodyOf({ uri: odd })), 400, url)
  })

  test('HT13: a value that looks like the sentinel must be encoded', async () => {
    const uri = '=?base64?eA==?='
    expectRefused(await ask({ 'mcp-name': uri }, bodyOf({ uri })), 400, uri)
    const answer = await ask({ 'mcp-name': headerValue(uri) }, bodyOf({ uri }))
    expect(answer.message?.error?.code).toBe(-32602)
  })

  test('HT14: a name beyond ASCII must be encoded', async () => {
    const uri = `${arena.world.address}/ü.txt`
    expectRefused(await ask({ 'mcp-name': uri }, bodyOf({ uri })), 400, 'Latin-1')
    const utf8 = Buffer.from(uri).toString('latin1')
    expectRefused(await ask({ 'mcp-name': utf8 }, bodyOf({ uri })), 400, 'UTF-8')
    expect((await ask({ 'mcp-name': headerValue(uri) }, bodyOf({ uri }))).status).toBe(200)
  })

  test('HT28: nothing but the exact route is served', async () => {
    const { pathname } = arena.http.url as URL
    const paths = [
      `${pathname}/`,
      `${pathname}/../admin`,
      pathname.toUpperCase(),
      `/${pathname}`,
      `${pathname}%2f`,
      `${pathname};x`,
      `${pathname}?`,
      `${pathname}?x=1`,
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
      `http://${own()}${pathname}`,
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

  test('HT29: the probes say that the server is there, and nothing else', async () => {
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

  test('HT34: GET and DELETE are for sessions, and other methods for nobody', async () => {
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

describe('what is answered', () => {
  test('HT32: no header repeats what was asked', async () => {
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

  test('HT36: answers are not compressed, whatever is accepted', async () => {
    for (const encoding of ['gzip', 'br', 'deflate', 'zstd', '*', 'gzip, br;q=1', 'identity;q=0, gzip'])
      expect(Object.fromEntries((await ask({ 'accept-encoding': encoding })).headers ?? [])).not.toHaveProperty(
        'content-encoding',
      )
  })

  test('HT26: requests on one connection stand each for themselves', async () => {
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

  test('a session ends for good, and its number is bounded without harm to the others', async () => {
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
