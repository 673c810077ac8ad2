import { mkdirSync, writeFileSync } from 'node:fs'
import { connect, createServer as createPlainServer, type Server, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import { isHttpUrl } from '../../src/core/http-url.ts'
import { api } from '../../src/providers/api/index.ts'
import { type WebOptions, web } from '../../src/providers/web/index.ts'
import { run } from '../support/cli.ts'
import { authority } from '../support/database-tls.ts'
import { createNames, startWeb, type WebServer, watchConnections } from '../support/web.ts'
import { useArena, wireNames } from './harness/arena.ts'
import type { Setup } from './harness/server.ts'
import { startConfigured } from './harness/target.ts'
import { eachWire } from './harness/wires.ts'
import type { World } from './harness/world.ts'

// The rows SS of the attack corpus for what asks the web. That nothing leaves this machine is seen to before each connection begins.

/** Whatever reaches this was led here. */
let sink: WebServer
let origin: WebServer
/** One at another address of this machine: that it may be asked does not let it lead to the others. */
let neighbour: WebServer
const connections = watchConnections()

beforeAll(async () => {
  sink = await startWeb((_, response) => response.writeHead(200, { 'content-type': 'text/plain' }).end('from the sink'))
  origin = await startWeb((_, response) => void response.end())
  neighbour = await startWeb((_, response) => void response.end(), { host: '127.0.0.2' })
})
afterEach(() => {
  vi.unstubAllEnvs()
  expect(connections.left.splice(0), 'nothing has left').toEqual([])
  expect(
    sink.requests.splice(0).map(({ url }) => url),
    'nothing was led elsewhere',
  ).toEqual([])
  origin.requests.length = 0
})
afterAll(() => {
  connections.end()
  sink.close()
  origin.close()
  neighbour.close()
})

const hostsOf: Readonly<Record<string, readonly string[]>> = {
  SS01: [
    ...['127.0.0.1', 'localhost', 'localhost.', '[::1]', '0', '0.0.0.0', '127.1', '2130706433', '0x7f.1', '0177.0.0.1'],
    ...[
      '①②⑦.⓪.⓪.①',
      '127.0.0.1.',
      '0x7f000001',
      '017700000001',
      '127.0.0.01',
      '%31%32%37.0.0.1',
      '127。0。0。1',
      '10.0.0.1',
      '192.168.0.1',
    ],
  ],
  SS02: [
    ...[
      '[::ffff:127.0.0.1]',
      '[::127.0.0.1]',
      '[64:ff9b::7f00:1]',
      '[2002:7f00:1::]',
      '[::]',
      '[fe80::1%25eth0]',
      '[fd00:ec2::254]',
    ],
    ...[
      '[::ffff:7f00:1]',
      '[0:0:0:0:0:ffff:127.0.0.1]',
      '[64:ff9b:1::7f00:1]',
      '[2001:0:7f00:1::]',
      '[fe80::1]',
      '[fe80::1%eth0]',
      '[fc00::1]',
    ],
  ],
  SS03: [
    '169.254.169.254',
    'metadata.google.internal',
    '100.100.100.200',
    '192.0.0.192',
    '[::ffff:169.254.169.254]',
    'metadata',
  ],
}

/** Names that lead to this machine, whatever they are: what is not in here does not exist. */
const known = {
  localhost: ['127.0.0.1', '::1'],
  'localhost.': ['127.0.0.1'],
  'metadata.google.internal': ['169.254.169.254'],
}

const failureOf = (work: Promise<unknown>) =>
  work.then(
    (value) => {
      throw new Error(`it answered ${JSON.stringify(value)}`)
    },
    (error: unknown) => error as Error,
  )

/** Reads what is at an origin, through a catalog. */
function readerOf(options: Partial<WebOptions> = {}) {
  const provider = web({ url: origin.url, allowAddresses: ['127.0.0.1'], match: ['**'], timeoutMs: 30_000, ...options })
  const view = createCatalog({ mounts: [{ address: 'https://www.example.org', provider }] }).view({
    id: 'x',
    roles: [],
  })
  return async (path = 'a') => (await view.read(`https://www.example.org/${path}`)).contents[0]
}

describe.each(Object.entries(hostsOf))('addresses that are always refused:', (row, hosts) => {
  test.each(hosts)(`a mount of %s gives an error, and the address is not connected to (${row})`, async (host) => {
    const names = createNames(known)
    for (const scheme of ['http', 'https']) {
      const url = `${scheme}://${host}:${sink.port}`
      const asking = async () => readerOf({ url, allowAddresses: [], insecure: true, resolve: names.resolve })()
      expect(await failureOf(asking())).toMatchObject({ kind: expect.stringMatching(/^(?:invalid|unavailable)$/) })
    }
  })

  test.each(hosts)(
    `a redirect to %s is not followed, though its origin is one that redirects may lead to (${row}, SS06)`,
    async (host) => {
      const names = createNames(known)
      for (const scheme of ['http', 'https', 'file', 'ftp']) {
        const place = `${scheme}://${host}:${sink.port}`
        neighbour.answer = (_, response) =>
          response.writeHead(302, { location: Buffer.from(`${place}/stolen`).toString('latin1') }).end()
        const read = readerOf({
          url: neighbour.url,
          allowAddresses: ['127.0.0.2'],
          insecure: true,
          redirects: isHttpUrl(place) ? [place] : [],
          resolve: names.resolve,
        })
        const before = neighbour.requests.length
        expect(await failureOf(read()), place).toMatchObject({ kind: 'unavailable' })
        expect(neighbour.requests.length).toBe(before + 1)
      }
    },
  )
})

describe('a host name', () => {
  test.each([
    ['a private address', ['10.0.0.1']],
    ['this machine', ['127.0.0.1']],
    ['a public address and a private one', ['203.0.114.1', '10.0.0.1']],
    ['a private IPv6 address only', ['fd00::1']],
    ['an IPv6 address that embeds a private one', ['64:ff9b::a00:1']],
    ['a metadata service of a cloud', ['169.254.169.254']],
    ['a text that is not an address', ['fe80::1%eth0']],
    ['nothing', []],
  ])('that resolves to %s is not connected to (SS04)', async (_, addresses) => {
    const names = createNames({ 'www.test': addresses })
    for (const url of [`http://www.test:${sink.port}`, `https://www.test:${sink.port}`]) {
      const error = await failureOf(readerOf({ url, insecure: true, allowAddresses: [], resolve: names.resolve })())
      expect(error).toMatchObject({ kind: 'unavailable' })
    }
    expect(names.asked).toEqual(['www.test', 'www.test'])
  })

  test('that resolves elsewhere by now is not used over an old connection, nor is another name at the same address (SS04, SS12)', async () => {
    const addresses: Record<string, string[]> = { 'one.test': ['127.0.0.1'], 'two.test': ['127.0.0.1'] }
    const sockets = new Set<Socket>()
    origin.answer = (request, response) => {
      sockets.add(request.socket)
      response
        .writeHead(200, { 'content-type': 'text/plain', connection: 'keep-alive', 'cache-control': 'no-store' })
        .end(request.headers.host)
    }
    const reader = (host: string) =>
      readerOf({
        url: `http://${host}:${origin.port}`,
        insecure: true,
        resolve: (name, done) => createNames(addresses).resolve(name, done),
      })
    const [one, two] = [reader('one.test'), reader('two.test')]
    expect(await one()).toMatchObject({ text: `one.test:${origin.port}` })
    expect(await two()).toMatchObject({ text: `two.test:${origin.port}` })
    expect(await one()).toMatchObject({ text: `one.test:${origin.port}` })
    expect(sockets.size).toBe(3)
    addresses['one.test'] = ['127.0.0.2']
    expect(await failureOf(one())).toMatchObject({ kind: 'unavailable' })
    expect(origin.requests).toHaveLength(3)
  })
})

describe('a hostile web origin:', () => {
  test.each([301, 302, 303, 307, 308])(
    'a redirect with %i to elsewhere is not followed, and one to an allowed origin gets no credentials (SS06, SS19)',
    async (status) => {
      for (const location of [
        `${sink.url}/x`,
        `//127.0.0.1:${sink.port}/x`,
        'file:///etc/passwd',
        'https://user:pw@127.0.0.1/',
        'javascript:1',
        '\\\\evil\\x',
        'data:text/plain,x',
        'http://[::1',
        '//',
      ]) {
        origin.answer = (_, response) => response.writeHead(status, { location }).end()
        expect(await failureOf(readerOf()())).toMatchObject({ kind: 'unavailable' })
      }
      const secret = 'the-secret-of-the-upstream'
      origin.answer = (_, response) => response.writeHead(status, { location: `${sink.url}/v1` }).end()
      const provider = api({
        url: origin.url,
        allowAddresses: ['127.0.0.1'],
        redirects: [sink.url],
        headers: { authorization: `Bearer ${secret}` },
        secrets: [secret],
        types: ['text/*'],
        routes: [{ template: 'me' }],
      })
      const view = createCatalog({ mounts: [{ address: 'api://x', provider }] }).view({ id: 'x', roles: [] })
      await view.read('api://x/me')
      const reached = sink.requests.splice(0)
      expect(reached).toHaveLength(1)
      expect(JSON.stringify(reached[0]?.rawHeaders)).not.toContain(secret)
    },
  )

  test('a redirect from https:// to http:// is not followed (SS06)', async () => {
    const secure = await startWeb(
      (_, response) => response.writeHead(302, { location: `http://database.test:${sink.port}/` }).end(),
      { tls: true },
    )
    const names = createNames({ 'database.test': ['127.0.0.1'] })
    const read = readerOf({
      url: secure.url,
      ca: authority,
      resolve: names.resolve,
      insecure: true,
      redirects: [`http://database.test:${sink.port}`],
    })
    expect((await failureOf(read())).message).toMatch(/from https:\/\/ to http:\/\//)
    secure.close()
  })

  test('endless redirects are given up, and addresses in other headers and in the page are not requested (SS07)', async () => {
    origin.answer = (request, response) => response.writeHead(302, { location: `${request.url}x` }).end()
    expect((await failureOf(readerOf()())).message).toMatch(/more than 5 times/)
    expect(origin.requests).toHaveLength(6)
    origin.answer = (_, response) => response.writeHead(302, { location: '/a' }).end()
    expect(await failureOf(readerOf()())).toMatchObject({ kind: 'unavailable' })
    origin.answer = (_, response) =>
      response
        .writeHead(200, {
          'content-type': 'text/html',
          refresh: `0; url=${sink.url}`,
          link: `<${sink.url}>; rel="preload"`,
          'content-location': sink.url,
        })
        .end(
          `<meta http-equiv="refresh" content="0; url=${sink.url}"><img src="${sink.url}"><script src="${sink.url}"></script>`,
        )
    expect(await readerOf()()).toMatchObject({ mimeType: 'text/html' })
  })

  test('the origin of a mount is matched by its port and its exact name, apart from letter case (SS08)', async () => {
    const names = createNames({
      'allowed.test': ['127.0.0.1'],
      'allowed.test.evil.test': ['127.0.0.1'],
      'evil.test': ['127.0.0.1'],
    })
    const mounted = `http://allowed.test:${origin.port}`
    const provider = web({
      url: mounted,
      insecure: true,
      allowAddresses: ['127.0.0.1'],
      match: ['**'],
      resolve: names.resolve,
    })
    const view = createCatalog({ mounts: [{ address: mounted, provider }] }).view({ id: 'x', roles: [] })
    for (const uri of [
      ...[
        `http://user:pw@allowed.test@evil.test:${sink.port}/`,
        `http://allowed.test.evil.test:${sink.port}/`,
        'http://allowed.test:22/',
        'http://allowed.test/',
      ],
      ...[
        `http://allowed.test.:${origin.port}/`,
        `http://evil.test#@allowed.test:${origin.port}/`,
        `http://allowed.test:${origin.port}@evil.test/`,
      ],
      ...[
        `https://allowed.test:${origin.port}/x`,
        `http://allowed.test:0${origin.port}/x`,
        `//allowed.test:${origin.port}/x`,
      ],
      ...[`http://allowed.test:${origin.port}\\@evil.test/x`, `http://allowed.test%2eevil.test:${origin.port}/x`],
    ])
      expect(await failureOf(view.read(uri)), uri).toMatchObject({
        kind: expect.stringMatching(/^(?:invalid|not-found)$/),
      })
    expect(names.asked).toEqual([])
    // A host is compared without case (RFC 3986, section 6.2.2.1): this is the origin that is mounted.
    expect((await view.read(`http://ALLOWED.test:${origin.port}/other`)).contents).toHaveLength(1)
    for (const location of [
      `http://allowed.test.evil.test:${sink.port}/`,
      `http://allowed.test.:${sink.port}/`,
      `http://allowed.test:${sink.port}/`,
      `http://u@allowed.test:${origin.port}/`,
    ]) {
      origin.answer = (_, response) => response.writeHead(302, { location }).end()
      expect(await failureOf(view.read(`${mounted}/x`)), location).toMatchObject({ kind: 'unavailable' })
    }
    expect(new Set(names.asked)).toEqual(new Set(['allowed.test']))
  })

  test('no connection is made to a port of another protocol (SS09)', async () => {
    for (const port of [22, 25, 6379, 0, 65_536, -1, 5432, 11_211]) {
      expect(() => readerOf({ url: `http://127.0.0.1:${port}` }), `${port}`).toThrow()
      origin.answer = (_, response) => response.writeHead(302, { location: `http://127.0.0.1:${port}/` }).end()
      const redirects = port > 0 && port < 65_536 ? [`http://127.0.0.1:${port}`] : []
      expect(await failureOf(readerOf({ redirects })())).toMatchObject({ kind: 'unavailable' })
    }
  })

  test('proxies of the environment are not used (SS11)', async () => {
    for (const name of ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'ALL_PROXY']) vi.stubEnv(name, sink.url)
    vi.stubEnv('NODE_USE_ENV_PROXY', '1')
    origin.answer = (_, response) => response.writeHead(200, { 'content-type': 'text/plain' }).end('direct')
    expect(await readerOf()()).toMatchObject({ text: 'direct' })
  })

  test('an answer that never ends, drips, never begins or is malformed gives an error (SS13)', async () => {
    const short = { timeoutMs: 1000 }
    origin.answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' })
      const more = () => {
        while (!response.destroyed && response.write(' '.repeat(65_536)));
        if (!response.destroyed) response.once('drain', more)
      }
      more()
    }
    expect(await failureOf(readerOf({ maxBytes: 1024 * 1024 })())).toMatchObject({ kind: 'too-large' })
    origin.answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/plain', 'content-length': 10 * 2 ** 30 }).write('x')
    }
    expect(await failureOf(readerOf()())).toMatchObject({ kind: 'too-large' })
    origin.answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' })
      const drip = setInterval(() => response.write('x'), 50)
      response.on('close', () => clearInterval(drip))
    }
    expect((await failureOf(readerOf(short)())).message).toMatch(/longer than 1000 ms/)
    origin.answer = () => {}
    expect((await failureOf(readerOf(short)())).message).toMatch(/longer than 1000 ms/)
    origin.answer = (request, response) => {
      const talk = setInterval(() => request.socket.write('HTTP/1.1 100 Continue\r\n\r\n'), 5)
      response.on('close', () => clearInterval(talk))
    }
    expect(await failureOf(readerOf()())).toMatchObject({ kind: 'unavailable' })
    for (const raw of [
      `HTTP/1.1 200 OK\r\nX-Long: ${'x'.repeat(1024 * 1024)}\r\n\r\n`,
      'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef',
      'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ncut off',
      'nonsense\r\n\r\n',
    ]) {
      origin.answer = (request) => request.socket.end(raw)
      expect(await failureOf(readerOf()())).toMatchObject({ kind: 'unavailable' })
    }
  })

  test('an answer that expands beyond the limit is too large, and one that is compressed twice, truncated or in an unknown encoding is refused (SS14)', async () => {
    const zeros = Buffer.alloc(64 * 1024 * 1024)
    const packed = [
      ['gzip', gzipSync(zeros)],
      ['deflate', deflateSync(zeros)],
      ['br', brotliCompressSync(zeros.subarray(0, 16 * 1024 * 1024))],
    ] as const
    const before = process.memoryUsage().rss
    for (const [encoding, body] of packed) {
      origin.answer = (_, response) =>
        response.writeHead(200, { 'content-type': 'text/plain', 'content-encoding': encoding }).end(body)
      expect(await failureOf(readerOf({ maxBytes: 1024 * 1024 })()), encoding).toMatchObject({ kind: 'too-large' })
    }
    expect(process.memoryUsage().rss - before).toBeLessThan(256 * 1024 * 1024)
    for (const encoding of ['gzip, gzip', 'br, gzip', 'compress', 'zstd', 'identity, gzip']) {
      origin.answer = (_, response) =>
        response.writeHead(200, { 'content-encoding': encoding }).end(gzipSync(gzipSync('x')))
      expect(await failureOf(readerOf()()), encoding).toMatchObject({ kind: 'unavailable' })
    }
    origin.answer = (_, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('x'.repeat(5000)).subarray(0, 20))
    expect(await failureOf(readerOf()())).toMatchObject({ kind: 'unavailable' })
  })

  test('an answer that declares another encoding is read as its bytes prove, or not as text (SS16)', async () => {
    const answers = async (charset: string, body: Buffer) => {
      origin.answer = (_, response) =>
        response.writeHead(200, { 'content-type': `text/html; charset=${charset}` }).end(body)
      return readerOf()()
    }
    const seven = '+ADw-script+AD4-alert(1)+ADw-/script+AD4-'
    expect(await answers('utf-7', Buffer.from(seven))).toMatchObject({ text: seven })
    expect(await answers('utf-16', Buffer.from('<p>plain</p>'))).toMatchObject({ text: '<p>plain</p>' })
    expect(await answers('utf-16le', Buffer.from('<p>日本</p>', 'utf16le'))).toMatchObject({ text: '<p>日本</p>' })
    for (const charset of ['utf-7', 'utf-8', 'x-user-defined-nothing', '"', 'shift_jis'])
      expect(await answers(charset, Buffer.from([0x3c, 0xff, 0xfe, 0x80, 0x3e]))).toHaveProperty('bytes')
  })

  test('an origin must prove its identity, over a secure version of TLS (SS17)', async () => {
    const names = createNames({ 'database.test': ['127.0.0.1'], 'other.test': ['127.0.0.1'] })
    const secure = await startWeb((_, response) => response.end('x'), { tls: true })
    const at = (host: string, port: number, options: Partial<WebOptions> = {}) =>
      failureOf(readerOf({ url: `https://${host}:${port}`, resolve: names.resolve, ...options })())
    expect((await at('database.test', secure.port)).message).toMatch(/not from a trusted authority/)
    expect((await at('other.test', secure.port, { ca: authority })).message).toMatch(/for another host/)
    expect((await at('database.test', origin.port, { ca: authority })).message).toMatch(
      /does not speak TLS|did not give a usable answer/,
    )
    const old = createTlsServer({ maxVersion: 'TLSv1.1', minVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' })
    old.on('tlsClientError', () => {})
    const port = await new Promise<number>((resolve) => {
      old.listen(0, '127.0.0.1', () => resolve((old.address() as { port: number }).port))
    })
    expect(await at('database.test', port, { ca: authority })).toMatchObject({ kind: 'unavailable' })
    old.close()
    secure.close()
  })

  test('a URI or header cannot add a line to a request (SS18)', async () => {
    origin.answer = (_, response) => response.writeHead(200, { 'content-type': 'text/plain' }).end('x')
    for (const path of ['a%0d%0aX-Injected:%201', 'a\r\nX-Injected: 1', 'a%0aHost:%20evil', 'a%00', 'a b HTTP/1.1'])
      await readerOf()(path).catch(() => {})
    origin.answer = (_, response) => response.socket?.end('HTTP/1.1 302 Found\r\nLocation: /b\rX-Injected: 1\r\n\r\n')
    await readerOf()().catch(() => {})
    for (const { url, rawHeaders } of origin.requests)
      expect(`${url} ${rawHeaders}`).not.toMatch(/injected: 1|evil|[\r\n]/i)
  })
})

describe('on the command line,', () => {
  let balancer: Server
  let behind = 0
  let ahead = 0
  let through = 0
  let told = ''
  /** What was asked for a moment ago would not be asked for again. */
  let asked = 0

  beforeAll(async () => {
    balancer = createPlainServer((socket) => {
      through++
      const onward = connect(behind, '127.0.0.1')
      for (const one of [socket, onward]) one.on('error', () => one.destroy())
      socket.pipe(onward).pipe(socket)
    })
    await new Promise<void>((resolve) => balancer.listen(0, '127.0.0.1', resolve))
    ahead = (balancer.address() as { port: number }).port
  })
  afterAll(() => balancer.close())

  const launch = async (world: World, { transport }: Omit<Setup, 'root'>) => {
    told = world.canaries.plant('upstream')
    const token = join(dirname(world.root), 'token')
    mkdirSync(dirname(token), { recursive: true })
    writeFileSync(token, told)
    const bounds = { allowAddresses: ['127.0.0.1'], timeout: '20s', limits: { failures: 1000 } }
    const target = await startConfigured(world, transport, {
      mounts: {
        [world.address]: { provider: 'files', root: world.root },
        'https://www.example.org': {
          provider: 'web',
          url: origin.url,
          pages: ['index', 'out'],
          match: ['p/**'],
          ...bounds,
        },
        'api://crm': {
          provider: 'api',
          url: origin.url,
          bearer: { file: token },
          routes: [{ template: 'u/{id}' }],
          ...bounds,
        },
        'web://self': { provider: 'web', url: `http://127.0.0.1:${ahead}`, match: ['**'], types: ['*/*'], ...bounds },
      },
    })
    if (target.url !== undefined) behind = Number(target.url.port)
    return target
  }
  const arena = useArena({}, launch, { upstreams: () => [origin.port, ahead] })

  eachWire(wireNames)(
    'a redirect to another origin is not followed, and credentials are not disclosed, over %s (SS06, SS19)',
    async (name) => {
      const wire = arena.wire(name)
      for (const status of [301, 302, 303, 307, 308]) {
        origin.answer = (_, response) => response.writeHead(status, { location: `${sink.url}/stolen` }).end()
        for (const uri of ['https://www.example.org/out', 'https://www.example.org/p/x', `api://crm/u/${++asked}`])
          expect((await arena.read(wire, uri)).message?.error, uri).toBeDefined()
      }
      for (const status of [200, 400, 401, 403, 500]) {
        origin.answer = (request, response) =>
          response
            .writeHead(status, { 'content-type': 'application/json' })
            .end(JSON.stringify({ headers: request.headers, raw: request.rawHeaders }))
        await arena.read(wire, `api://crm/u/${++asked}`)
      }
      expect(origin.requests.at(-1)?.headers.authorization).toBe(`Bearer ${told}`)
      for (const uri of [
        'https://www.example.org/other',
        'https://www.example.org:22/index',
        'https://example.org/index',
        'api://crm/u/..',
        'api://crm/u/%2e%2e',
        'api://crm/u/a%2Fb',
        'api://crm/v/1',
      ]) {
        const before = origin.requests.length
        expect((await arena.read(wire, uri)).message?.error, uri).toBeDefined()
        expect(origin.requests.length).toBe(before)
      }
      expect(told.length).toBeGreaterThan(5)
    },
  )

  test('a server that reads from itself asks once, and not endlessly (SS26)', async () => {
    const wire = arena.wire('http 2026-07-28')
    for (const path of ['mcp', 'index', 'metrics', 'mcp/x', 'sse']) {
      const before = through
      await arena.read(wire, `web://self/${path}`)
      expect(through - before, path).toBe(1)
    }
  })

  test('check reports each refused address, and fails (SS01, SS02, SS03, SS08, SS09)', async () => {
    const file = join(dirname(arena.world.root), 'refused.json')
    const refused = async (urls: readonly string[], words: string) => {
      const mounts = urls.map((url, index) => [
        `web://x${index}`,
        { provider: 'web', url, match: '**', insecure: true },
      ])
      writeFileSync(file, JSON.stringify({ mounts: Object.fromEntries(mounts) }))
      const { code, err, out } = await run(['check', '--config', file], { cwd: arena.world.root })
      expect(code).not.toBe(0)
      expect(`${err}${out}`.split(words)).toHaveLength(urls.length + 1)
    }
    await refused(
      ['https://2130706433', 'https://127.1', 'https://u:p@example.org', 'https://[fe80::1%25eth0]'],
      'This is not an http or https URL.',
    )
    await refused(
      [
        'http://127.0.0.1:1',
        'https://[::1]',
        'https://[::ffff:169.254.169.254]',
        'https://metadata.google.internal',
        'https://192.0.2.1:22',
      ],
      '"url" cannot be requested',
    )
  })
})
