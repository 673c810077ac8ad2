import { createServer } from 'node:http'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import { metaKeys } from '../../src/core/meta.ts'
import { encodePath } from '../../src/core/uri.ts'
import { gcs } from '../../src/providers/gcs/index.ts'
import { guardedLookup, isMetadataHost, parseEndpoint } from '../../src/providers/objects/endpoint.ts'
import { s3 } from '../../src/providers/s3/index.ts'
import { serveHttp } from '../../src/server/index.ts'
import { sliced } from '../../src/wrap/sliced.ts'
import { type Listening, listening } from '../support/listening.ts'
import { heldObjects, oddKeys } from '../support/object-samples.ts'
import { context, listAll, readOne, readText, type Subject, startSubject } from '../support/object-stores.ts'
import { startS3 } from '../support/s3-stand-in.ts'
import { modernHeaders } from './harness/http.ts'
import { withMeta } from './harness/wire.ts'

// A machine with other work takes its time.
vi.setConfig({ testTimeout: 120_000 })

/** Whatever reaches this was led here. */
const reached: string[] = []
let sink: Listening
let sinkUrl: string

beforeAll(async () => {
  const server = createServer(({ method, url, rawHeaders }, response) => {
    reached.push([method, url, ...rawHeaders].join(' '))
    response.end('{}')
  })
  sink = await listening(server)
  sinkUrl = sink.url
})
afterAll(() => sink.close())
afterEach(() => {
  vi.unstubAllEnvs()
  expect(reached.splice(0), 'nothing was led elsewhere').toEqual([])
})

/** What nothing that is answered, thrown or logged may hold. */
const secrets = /canary-secret|Signature=|Bearer |AKIDSTANDIN|AWS4-HMAC/

function expectClean(...values: readonly unknown[]): void {
  for (const value of values) {
    const text = value instanceof Error ? JSON.stringify({ ...value, message: value.message }) : JSON.stringify(value)
    expect(text ?? '').not.toMatch(secrets)
  }
}

const failure = (work: Promise<unknown>) =>
  work.then(
    (value) => {
      throw new Error(`it answered ${JSON.stringify(value)}`)
    },
    (error: unknown) => error,
  )

describe.each(['s3', 'gcs'] as const)('a hostile object store (%s):', (name) => {
  let store: Subject
  beforeEach(async () => {
    store = await startSubject(name)
  })
  afterEach(() => store.close())

  test('keys and paths correspond one to one, and keys that are not paths cannot be reached by any spelling (S301)', async () => {
    const held = Object.entries(heldObjects).filter(([key]) => !key.startsWith('many/'))
    for (const [key, content] of held) store.table.put(key, content)
    for (const key of oddKeys) store.table.put(key, 'canary-secret of an odd key')
    const view = createCatalog({ mounts: [{ address: 's3://b', provider: await store.open() }] }).view(
      context.principal,
    )
    const { items } = await view.list()
    expect(items.map(({ uri }) => uri).sort()).toEqual(held.map(([key]) => `s3://b/${encodePath(key)}`).sort())
    for (const { uri } of items) expect((await view.read(uri)).contents).toHaveLength(1)
    // A folder is a directory, in which there is nothing; what is stored for it is out of reach too.
    for (const key of oddKeys.filter((odd) => odd !== 'folder/'))
      for (const spelling of [key, encodePath(key), encodeURIComponent(key), key.replaceAll('.', '%2e')])
        expect(await failure(view.read(`s3://b/${spelling}`)), spelling).toMatchObject({
          kind: expect.stringMatching(/^(?:invalid|not-found)$/),
        })
  })

  test('only keys below the configured prefix can be reached, whether it ends with a slash or not, and a prefix that is no path is refused (S302)', async () => {
    for (const key of ['tenant1/x', 'tenant1/y/z']) store.table.put(key, 'own')
    for (const key of ['tenant10/x', 'tenant1', 'tenant1-x', 'tenant0/x', 'TENANT1/x'])
      store.table.put(key, 'canary-secret')
    for (const prefix of ['tenant1', 'tenant1/']) {
      const provider = await store.open({ prefix })
      expect((await listAll(provider)).map(({ path }) => path)).toEqual(['x', 'y/z'])
      for (const path of ['../tenant10/x', '0/x', '/x', './x', 'y/../../tenant10/x', '../tenant1', ''])
        expect(await failure(readOne(provider, { path })), path).toMatchObject({ kind: 'not-found' })
      for (const directory of ['../', '0/', '../tenant10/'])
        expect(await listAll(provider, { prefix: directory })).toEqual([])
      // A store that answers with what was not asked for is not believed.
      store.intercept = (seen, response) => {
        if (!seen.query.has('prefix')) return false
        const key = 'tenant10/x'
        response.writeHead(200, { 'content-type': name === 's3' ? 'application/xml' : 'application/json' })
        response.end(
          name === 's3'
            ? `<ListBucketResult><Contents><Key>${key}</Key><Size>1</Size><ETag>e</ETag></Contents></ListBucketResult>`
            : JSON.stringify({ items: [{ name: key, size: '1', generation: '1' }] }),
        )
        return true
      }
      expect(await failure(listAll(provider))).toMatchObject({ kind: 'unavailable' })
      store.intercept = undefined
    }
    for (const prefix of ['a//b', '../x', '/abs', 'a\nb'])
      expect(await failure(store.open({ prefix })), prefix).toMatchObject({ kind: 'invalid' })
  })

  test('a bucket that is not mounted is absent, and no request is sent (S303)', async () => {
    store.table.put('x', 'x')
    const mounts = [{ address: 's3://drawer', provider: await store.open() }]
    const view = createCatalog({ mounts }).view(context.principal)
    for (const uri of ['s3://other/x', 's3://drawer2/x', 'gs://drawer/x', 's3://drawer.evil.example/x'])
      expect(await failure(view.read(uri)), uri).toMatchObject({ kind: 'not-found' })
    expect(await failure(view.read('s3://dr%61wer/x'))).toMatchObject({ kind: 'invalid' })
    expect(store.requests).toEqual([])
    // A host is compared without case (RFC 3986, section 6.2.2.1): this is the bucket that is mounted.
    expect((await view.read('s3://DRAWER/x')).contents).toMatchObject([{ uri: 's3://DRAWER/x', text: 'x' }])
  })

  test('a listing leaves out keys with control characters, and has all others (S306)', async () => {
    for (const key of ['a', 'b\u0001', 'b\u0008c', 'c\u001f', 'd&<>"\'', 'e\ufffe', 'f']) store.table.put(key, 'x')
    const provider = await store.open()
    expect((await listAll(provider)).map(({ path }) => path)).toEqual(['a', 'd&<>"\'', 'e\ufffe', 'f'])
  })

  test('metadata stored with an object is sent in the body of an answer, and sets none of its headers (S307)', async () => {
    store.table.put('a";\u00a0x.txt', 'x', {
      contentType: 'text/plain; x="; rel=evil',
      metadata: { 'set-cookie': 'evil=1', location: 'https://evil.example', note: '"><script>' },
    })
    const catalog = createCatalog({ mounts: [{ address: 's3://b', provider: await store.open() }] })
    const service = await serveHttp({
      ...{ view: (principal) => catalog.view(principal), name: 'test', version: '0', log: () => {} },
      ...{ host: '127.0.0.1', port: 0 },
    })
    try {
      const params = withMeta({ uri: `s3://b/${encodePath('a";\u00a0x.txt')}` }, true)
      const response = await fetch(service.url, {
        method: 'POST',
        headers: modernHeaders('resources/read', params),
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'resources/read', params }),
      })
      expect(await response.text()).toContain('https://evil.example')
      expect([...response.headers].length).toBeGreaterThan(2)
      expect(JSON.stringify([...response.headers])).not.toMatch(/evil|script/)
    } finally {
      await service.close()
    }
  })

  test('the stored content type and encoding do not decide how an object is served, and nothing is unpacked (S308)', async () => {
    const bomb = gzipSync(Buffer.alloc(20 * 2 ** 20))
    store.table.put('page', '<html><script>alert(1)</script>', { contentType: 'text/html; charset=utf-7' })
    store.table.put('image.png', 'plain text', { contentType: 'image/png' })
    store.table.put('bomb.txt', bomb, { contentType: 'text/plain', contentEncoding: 'gzip' })
    const provider = await store.open()
    expect(await readOne(provider, { path: 'page' })).toMatchObject({ mimeType: 'text/plain' })
    expect(await readOne(provider, { path: 'image.png' })).toMatchObject({ mimeType: 'text/plain', text: 'plain text' })
    const content = await readOne(provider, { path: 'bomb.txt' })
    expect(content).toMatchObject({ mimeType: 'application/octet-stream', size: bomb.length })
    expect('bytes' in content && content.bytes.length).toBe(bomb.length)
    expect(content.meta?.[metaKeys.object]).toMatchObject({ contentEncoding: 'gzip' })
  })

  test('an object with another length than its Content-Length is cut at it, or unavailable (S308)', async () => {
    const provider = await store.open()
    for (const said of [3, 100]) {
      store.intercept = (_, response) => {
        response.writeHead(200, { 'content-length': said, etag: '"e"', 'x-goog-generation': '1' })
        response.write('12345', () => response.destroy())
        return true
      }
      const outcome = await readOne(provider, { path: 'short' }).catch((error: unknown) => error)
      if (outcome instanceof Error) expect(outcome).toMatchObject({ kind: 'unavailable' })
      else expect(outcome).toMatchObject({ text: '123' })
    }
  })

  test('a range of an object that is replaced between two requests has the text of one version (S309)', async () => {
    store.table.put('log.txt', 'a'.repeat(50_000))
    let count = 0
    store.intercept = ({ method, query }) => {
      const isRead = method === 'GET' && !query.has('list-type') && !query.has('maxResults')
      if (isRead && count++ === 1) store.table.put('log.txt', 'b'.repeat(50_000))
      return false
    }
    const [content] = await sliced(await store.open()).read(
      { path: 'log.txt', params: new Map([['bytes', '100-40000']]) },
      context,
    )
    const text = content !== undefined && 'text' in content ? content.text : ''
    expect(new Set(text).size).toBe(1)
    expect(count).toBeGreaterThan(1)
  })

  test('an ETag is used as a version only, and not compared with the content (S311)', async () => {
    store.table.put('parts.txt', 'in two parts', { etag: 'd41d8cd98f00b204e9800998ecf8427e-2' })
    store.table.put('wrong.txt', 'another', { etag: 'd41d8cd98f00b204e9800998ecf8427e' })
    const provider = await store.open()
    expect(await readText(provider, 'parts.txt')).toBe('in two parts')
    expect(await readText(provider, 'wrong.txt')).toBe('another')
    const [entry] = await listAll(provider)
    expect((await readOne(provider, { path: 'parts.txt' })).version).toBe(entry?.version)
  })

  test('a key that is 500 folders deep is listed (S312)', async () => {
    const deep = `${'d/'.repeat(500)}x`
    store.table.put(deep, 'deep')
    store.table.put('other', 'x')
    const provider = await store.open()
    expect((await listAll(provider)).map(({ path }) => path)).toEqual([deep, 'other'])
  })

  test('a listing whose pages repeat, go back or are empty without end is given up (S312)', async () => {
    const provider = await store.open()
    const endless = (keys: readonly string[]) =>
      name === 's3'
        ? `<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>${keys
            .map((key) => `<Contents><Key>${key}</Key><Size>1</Size><ETag>e</ETag></Contents>`)
            .join('')}</ListBucketResult>`
        : JSON.stringify({ nextPageToken: 't', items: keys.map((key) => ({ name: key, size: '1', generation: '1' })) })
    for (const keys of [['a', 'b'], ['b', 'a'], ['a', 'a'], []]) {
      store.requests.length = 0
      store.intercept = (_, response) => {
        response.writeHead(200, { 'content-type': name === 's3' ? 'application/xml' : 'application/json' })
        response.end(endless(keys))
        return true
      }
      const error = await failure(listAll(provider))
      expect(error, String(keys)).toMatchObject({
        kind: 'unavailable',
        message: expect.stringMatching(/order|moving on|many pages/),
      })
      expect(store.requests.length).toBeLessThan(25)
    }
  })

  test('an object of terabytes is too large, but a part of it is read, without buffering it (S313)', async () => {
    const size = 5 * 2 ** 40
    store.intercept = ({ headers }, response) => {
      const facts = { etag: '"e"', 'x-goog-generation': '1', 'accept-ranges': 'bytes' }
      const [, first, last = size - 1] = /^bytes=(\d+)-(\d*)/.exec(headers.range ?? '') ?? []
      if (first === undefined) {
        response.writeHead(200, { ...facts, 'content-length': size })
        const pour = () => {
          while (!response.destroyed && response.write(Buffer.alloc(65_536))) {}
        }
        response.on('drain', pour)
        pour()
        return true
      }
      const end = Math.min(size - 1, Number(last))
      const length = end - Number(first) + 1
      response.writeHead(206, { ...facts, 'content-range': `bytes ${first}-${end}/${size}`, 'content-length': length })
      response.end(Buffer.alloc(length, 'x'))
      return true
    }
    const provider = await store.open()
    const before = process.memoryUsage().rss
    for (let i = 0; i < 20; i++)
      expect(await failure(readOne(provider, { path: 'huge' }))).toMatchObject({ kind: 'too-large', detail: { size } })
    expect(process.memoryUsage().rss - before).toBeLessThan(200 * 2 ** 20)
    const far = { start: size - 10, end: size }
    expect(await readOne(provider, { path: 'huge', range: far })).toMatchObject({ range: far, size })
  })

  test.each([301, 302, 303, 307, 308])('a redirect (%i) is not followed (S314, SS06, SS07)', async (status) => {
    const provider = await store.open()
    for (const location of [`${sinkUrl}/stolen`, '//evil.example/x', 'file:///etc/passwd', `${store.url}/again`]) {
      store.intercept = (_, response) => {
        response.writeHead(status, {
          location,
          refresh: `0; url=${sinkUrl}`,
          link: `<${sinkUrl}>; rel=next`,
          'x-amz-bucket-region': 'evil-1',
        })
        response.end(`<Error><Code>PermanentRedirect</Code><Endpoint>${sinkUrl}</Endpoint></Error>`)
        return true
      }
      store.requests.length = 0
      const errors = [
        await failure(listAll(provider)),
        await failure(readText(provider, 'a.txt')),
        await failure(Promise.resolve(provider.stat?.('a.txt', context))),
      ]
      for (const error of errors) expect(error).toMatchObject({ kind: 'unavailable' })
      expectClean(...errors, provider.logged)
      expect(store.requests.length).toBeLessThanOrEqual(4)
    }
  })

  test.each([304, 409, 412, 416])(
    'an unexpected status (%i) is reported as an error of the store (S309)',
    async (status) => {
      store.intercept = (_, response) => {
        response.writeHead(status)
        response.end()
        return true
      }
      const provider = await store.open({ timeoutMs: 20_000 })
      for (const ask of [
        () => listAll(provider),
        () => listAll(provider, { shallow: true }),
        () => readText(provider, 'a.txt'),
        () => readOne(provider, { path: 'a.txt', range: { start: 5, end: 10 } }),
        async () => provider.stat?.('a.txt', context),
        async () => provider.stat?.('a/', context),
      ])
        expect(await failure(ask())).toMatchObject({ kind: 'unavailable' })
    },
  )

  test('an error code that is the name of a JavaScript property gives the message for an unknown code (S314)', async () => {
    const provider = await store.open()
    for (const code of ['constructor', '__proto__', 'toString', 'hasOwnProperty']) {
      store.intercept = (_, response) => {
        response.writeHead(400, { 'content-type': name === 's3' ? 'application/xml' : 'application/json' })
        response.end(
          name === 's3'
            ? `<Error><Code>${code}</Code></Error>`
            : JSON.stringify({ error: { errors: [{ reason: code }] } }),
        )
        return true
      }
      for (const ask of [() => listAll(provider), () => readText(provider, 'a.txt')])
        expect(await failure(ask())).toMatchObject({
          kind: 'unavailable',
          message: expect.stringMatching(/^The answer of the store is not valid/),
        })
    }
  })

  test('credentials in an error of the store are not disclosed (S314, SS19)', async () => {
    const provider = await store.open({ linkMs: 60_000, maxBytes: 10 })
    store.table.put('large', 'x'.repeat(100))
    const content = await readOne(provider, { path: 'large' })
    expect(content.meta?.[metaKeys.link]).toBeDefined()
    for (const status of [400, 403, 404, 409, 500]) {
      store.intercept = ({ headers }, response) => {
        response.writeHead(status, { 'content-type': 'application/xml', 'x-echo': String(headers.authorization) })
        const echo = `Bearer x ${headers.authorization} canary-secret`
        response.end(
          name === 's3'
            ? `<Error><Code>${echo}</Code><Message>${echo}</Message><StringToSign>${echo}</StringToSign></Error>`
            : JSON.stringify({ error: { code: status, message: echo, errors: [{ reason: echo }] } }),
        )
        return true
      }
      const errors = [await failure(listAll(provider)), await failure(readText(provider, 'a.txt'))]
      for (const error of errors) expectClean(error, (error as Error).cause)
    }
    expectClean(provider.logged)
  })

  test('the provider watches nothing, so that no notification of the store can be forged (S319)', async () => {
    const provider = await store.open()
    expect(provider.watch).toBeUndefined()
    expect((await provider.templates?.(context))?.map(({ template }) => template)).toEqual(['{+path}'])
  })

  test('proxies of the environment are not used (SS11)', async () => {
    for (const variable of ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'https_proxy', 'ALL_PROXY'])
      vi.stubEnv(variable, sinkUrl)
    store.table.put('a.txt', 'a')
    expect(await readText(await store.open(), 'a.txt')).toBe('a')
  })

  test('an endless listing or error is not read to its end, and endless headers make a read fail (SS13)', async () => {
    const provider = await store.open({ timeoutMs: 20_000 })
    for (const status of [200, 403, 404]) {
      let written = 0
      store.intercept = (_, response) => {
        response.writeHead(status, { 'content-type': name === 's3' ? 'application/xml' : 'application/json' })
        const piece = Buffer.alloc(65_536, '<Contents><Key>x</Key></Contents>')
        const pour = () => {
          while (!response.destroyed && written < 200 * 2 ** 20) {
            written += piece.length
            if (!response.write(piece)) return
          }
          response.end()
        }
        response.on('drain', pour)
        pour()
        return true
      }
      await failure(listAll(provider))
      expect(written).toBeLessThan(150 * 2 ** 20)
    }
    store.intercept = (_, response) => {
      for (let i = 0; i < 200; i++) response.setHeader(`x-filler-${i}`, 'x'.repeat(6000))
      response.end()
      return true
    }
    expect(await failure(readText(provider, 'a'))).toMatchObject({ kind: 'unavailable' })
  })

  test('a compressed answer that expands to 64 MiB makes a listing fail (SS14)', async () => {
    store.intercept = (_, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip', 'content-type': 'application/json' })
      response.end(gzipSync(Buffer.alloc(64 * 2 ** 20, ' ')))
      return true
    }
    expect(await failure(listAll(await store.open()))).toMatchObject({ kind: 'unavailable' })
  })

  test('a charset that an object declares has no effect (SS16)', async () => {
    for (const charset of ['utf-7', 'utf-16', 'shift_jis'])
      store.table.put(`${charset}.txt`, '+ADw-script+AD4-', { contentType: `text/plain; charset=${charset}` })
    for (const { path } of await listAll(await store.open()))
      expect(await readOne(await store.open(), { path })).toMatchObject({
        text: '+ADw-script+AD4-',
        mimeType: 'text/plain',
      })
  })

  test('an https endpoint that does not speak TLS gets no request, and the read fails (SS17)', async () => {
    const provider = await store.open({ endpoint: store.url.replace('http:', 'https:'), timeoutMs: 10_000 })
    expect(await failure(readText(provider, 'a'))).toMatchObject({ kind: 'unavailable' })
    expect(store.requests).toEqual([])
  })

  test('a path cannot add a line to a request (SS18)', async () => {
    const provider = await store.open()
    for (const path of ['a\r\nHost: evil', 'a b\r\n\r\nGET /x', 'a\nb', 'x\u0000'])
      expect(await failure(readOne(provider, { path }))).toMatchObject({ kind: 'not-found' })
    expect(store.requests).toEqual([])
    expect(await failure(readOne(provider, { path: 'a?versions&x=%0d%0a#f' }))).toMatchObject({ kind: 'not-found' })
    expect(store.requests[0]?.path).toMatch(/a%3Fversions%26x%3D%250d%250a%23f$/)
  })
})

describe('the endpoint of an object store:', () => {
  const refused = { kind: 'invalid', message: expect.stringContaining('endpoint'), detail: { reason: 'configuration' } }
  const open = (endpoint: string) => s3({ bucket: 'drawer', endpoint, insecure: true })

  test('a bucket name cannot change the host, path or query of an endpoint (S304)', async () => {
    for (const bucket of [
      'b?acl',
      'b/..',
      '../b',
      'b@evil.example',
      'b#x',
      'b:80',
      'arn:aws:s3:::b',
      'b..c',
      '.b',
      'b/',
      '',
      'b%2f',
      'b\\c',
      'drawer--x-s3',
    ]) {
      expect(await failure(s3({ bucket })), bucket).toMatchObject({ kind: 'invalid' })
      if (!bucket.endsWith('x-s3')) expect(await failure(gcs({ bucket })), bucket).toMatchObject({ kind: 'invalid' })
    }
    const store = await startS3()
    const provider = await s3({ bucket: 'b.evil.example', endpoint: store.url, keys: store.keys })
    expect(await failure(listAll(provider))).toMatchObject({ kind: 'unavailable' })
    expect(store.requests[0]?.headers.host).toBe(`127.0.0.1:${store.port}`)
    await store.close()
  })

  test('an address of this machine is accepted without encryption in its plain spelling only (SS01)', () => {
    for (const url of [
      'http://127.0.0.1:9000',
      'http://localhost:9000',
      'https://[::1]:9000',
      'https://storage.example.com',
    ])
      expect(parseEndpoint(url, false).url).toBe(url)
    for (const url of [
      'http://0',
      'http://127.1:9000',
      'http://2130706433',
      'http://0x7f.1',
      'http://storage.example.com',
      'http://localhost.',
    ])
      expect(() => parseEndpoint(url, false), url).toThrow(/encrypted|address/)
  })

  test('a metadata service of a cloud is refused, in any spelling (SS02, SS03)', async () => {
    for (const host of [
      '169.254.169.254',
      '169.254.170.2',
      '[fe80::1]',
      '[fd00:ec2::254]',
      '100.100.100.200',
      '192.0.0.192',
      '[::ffff:169.254.169.254]',
      '[::ffff:a9fe:a9fe]',
      '[64:ff9b::a9fe:a9fe]',
      '[2002:a9fe:a9fe::]',
      '[::169.254.169.254]',
      '0.0.0.0',
      '[::]',
      'metadata.google.internal',
      'METADATA.google.internal',
    ])
      for (const scheme of ['http', 'https'])
        expect(await failure(open(`${scheme}://${host}/`.replace(/\/$/, ''))), host).toMatchObject(refused)
    for (const host of ['127.0.0.1', '10.0.0.1', '::1', '2001:db8::1', '::ffff:10.0.0.1', 'storage.example.com'])
      expect(isMetadataHost(host), host).toBe(false)
  })

  test('a host name that resolves to a metadata service is refused (SS04)', async () => {
    // A number is a name that every resolver knows.
    // A number is a name that every resolver knows; whoever parses URLs makes an address of it, which is then not looked up.
    for (const host of ['2852039166', '0xa9fea9fe', '0251.0376.0251.0376', '169.254.43518', '1.2.3.4.5', 'a.0x1f'])
      for (const scheme of ['http', 'https'])
        expect(await failure(open(`${scheme}://${host}`)), host).toMatchObject(refused)
    const looked = new Promise((resolve) => guardedLookup('2852039166', { all: true }, resolve))
    expect(await looked).toMatchObject({ code: 'EMETADATA' })
    for (const all of [true, false])
      await new Promise<void>((resolve) =>
        guardedLookup('localhost', { all }, (error, address) => {
          expect(error).toBeNull()
          expect(address).toBeTruthy()
          resolve()
        }),
      )
  })

  test('a URL with a user name, a password, a path, a query, or an invalid scheme, host or port is refused (SS08, SS09)', async () => {
    for (const url of [
      'https://user:pw@allowed.example',
      'https://allowed.example@evil.example',
      'https://a.example/bucket',
      'https://a.example?x=1',
      'https://a.example#x',
      'ftp://a.example',
      'https://',
      'a.example',
      'https://a.example:0',
      'https://a.example:65536',
      'https://a.example:-1',
      'https://a b.example',
      'https://a.example\r\nx: y',
      'file:///etc',
      'https://-a.example',
      'https://a.example.',
    ]) {
      const error = await failure(open(url))
      expect(error, url).toMatchObject(refused)
      expect((error as Error).message).not.toContain('pw')
    }
  })
})

describe('the credentials of an object store:', () => {
  const nobody = (folder: string) => {
    for (const name of [
      'AWS_ACCESS_KEY_ID',
      'AWS_SECRET_ACCESS_KEY',
      'AWS_SESSION_TOKEN',
      'AWS_PROFILE',
      'GOOGLE_APPLICATION_CREDENTIALS',
      'AWS_CONTAINER_CREDENTIALS_RELATIVE_URI',
      'AWS_CONTAINER_CREDENTIALS_FULL_URI',
      'AWS_WEB_IDENTITY_TOKEN_FILE',
    ])
      vi.stubEnv(name, undefined)
    for (const name of ['HOME', 'USERPROFILE', 'APPDATA', 'CLOUDSDK_CONFIG']) vi.stubEnv(name, folder)
    vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', `${folder}/none`)
    vi.stubEnv('AWS_CONFIG_FILE', `${folder}/none`)
    // If the metadata service of the machine were asked, it would be here.
    vi.stubEnv('AWS_EC2_METADATA_SERVICE_ENDPOINT', sinkUrl)
    vi.stubEnv('GCE_METADATA_HOST', sinkUrl.replace('http://', ''))
  }

  test('if none are configured, the error says so, and no request is sent (S317, S318)', async () => {
    nobody('/nonexistent')
    for (const name of ['s3', 'gcs'] as const) {
      const store = await startSubject(name)
      try {
        const options = { bucket: 'drawer', endpoint: store.url, timeoutMs: 20_000 }
        const provider = name === 's3' ? await s3(options) : await gcs(options)
        for (const ask of [
          () => listAll(provider),
          () => readText(provider, 'a'),
          async () => provider.stat?.('a', context),
        ])
          expect(await failure(ask()), name).toMatchObject({
            kind: 'unavailable',
            message: expect.stringMatching(/No usable credentials were found/),
          })
        expect(store.requests).toEqual([])
        await provider.close?.()
      } finally {
        await store.close()
      }
    }
  })

  test('requests with anonymous access carry no credentials, and fail if the store requires some (S318)', async () => {
    nobody('/nonexistent')
    for (const name of ['s3', 'gcs'] as const) {
      const store = await startSubject(name)
      const options = { bucket: 'drawer', endpoint: store.url, anonymous: true }
      const provider = name === 's3' ? await s3(options) : await gcs(options)
      expect(await failure(listAll(provider))).toMatchObject({ kind: 'unavailable' })
      expect(store.requests.every(({ headers }) => headers.authorization === undefined)).toBe(true)
      await provider.close?.()
      await store.close()
    }
  })

  test('if the store refuses requests because of a wrong clock, the error names the clock (S316)', async () => {
    const store = await startS3()
    store.skew = 3_600_000
    const provider = await s3({ bucket: store.bucket, endpoint: store.url, keys: store.keys })
    // The client learns the time from the answer; a store whose answers have none leaves it wrong.
    store.intercept = (_, response) => {
      response.sendDate = false
      return false
    }
    for (const ask of [
      () => listAll(provider),
      () => readText(provider, 'a'),
      async () => provider.stat?.('a', context),
    ])
      expect(await failure(ask())).toMatchObject({ kind: 'unavailable', message: expect.stringMatching(/clock/) })
    await provider.close?.()
    await store.close()
  })
})
