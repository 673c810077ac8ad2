import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client, ProtocolError, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { contentLinkOf } from '../../src/client/errors.ts'
import { compileAccess } from '../../src/core/access.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { ResourceError, tooLarge } from '../../src/core/errors.ts'
import type { Provider } from '../../src/core/provider.ts'
import { createScrubber } from '../../src/core/scrub.ts'
import { files } from '../../src/providers/files/index.ts'
import { unauthenticatedCaller } from '../../src/server/auth/caller.ts'
import { createContentLinks } from '../../src/server/http/content/links.ts'
import type { HttpOptions } from '../../src/server/http/serve-http.ts'
import type { AuditRecord } from '../../src/server/telemetry/audit.ts'
import { redacted } from '../../src/wrap/redacted.ts'
import { sliced } from '../../src/wrap/sliced.ts'
import { run } from '../support/cli.ts'
import { useHttp } from '../support/http-service.ts'

const serve = useHttp()
const mib = 1024 * 1024
const secret = 'hunter2-known-secret'

let root = ''
/** It begins like a text, which the first part alone would be taken for. */
const movie = Buffer.concat([Buffer.from('mp42\0'), randomBytes(3 * mib + 12)])
/** A text over the limit, with a known secret across the border of its first part. */
const story = `${'line of the story\n'.repeat(mib / 18 + 1).slice(0, mib - 8)}${secret}${'\nthe end'.repeat(100_000)}`
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'hikidashi-links-'))
  await writeFile(join(root, 'movie.mp4'), movie)
  await writeFile(join(root, 'page.html'), `<script>alert(1)</script>${'<p>x</p>'.repeat(mib / 4)}`)
  await writeFile(join(root, 'story.txt'), story)
  await writeFile(join(root, 'denied.mp4'), movie)
  await writeFile(join(root, 'small.txt'), 'small')
})
afterAll(() => rm(root, { recursive: true, force: true }))

async function start(options: Partial<HttpOptions> = {}) {
  const provider = sliced(await files({ root, maxBytes: mib }))
  const access = compileAccess([
    { match: '/denied.mp4', deny: ['*'] },
    { match: '/**', allow: ['*'] },
  ] as never)
  const catalog = createCatalog({ mounts: [{ address: 'file:///r', provider, access }] })
  return serve({ view: (principal) => catalog.view(principal), ...options })
}

interface Answered {
  readonly error?: { readonly message: string; readonly data: { readonly reason?: string; readonly link?: Link } }
}
interface Link {
  readonly href: string
  readonly expires: string
}

const _meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

async function read(url: string, uri: string, headers: Record<string, string> = {}): Promise<Answered> {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'resources/read',
      'mcp-name': uri,
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri, _meta } }),
  })
  return (await response.json()) as Answered
}

async function linkTo(url: string, uri: string, headers: Record<string, string> = {}): Promise<Link> {
  const { error } = await read(url, uri, headers)
  if (error?.data.link === undefined) throw new Error(`There is no link: ${JSON.stringify(error)}`)
  return error.data.link
}

const digest = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

describe('a content over the limit', () => {
  test('gets an error with a link that gives exactly its bytes for a while, as a download, and the use of the link is audited', async () => {
    const audit: AuditRecord[] = []
    const { url } = await start({ audit: (record) => void audit.push(record) })
    const { error } = await read(url, 'file:///r/movie.mp4')
    expect(error?.data).toMatchObject({ reason: 'too-large', limit: mib, link: { expires: expect.any(String) } })
    const { href = '', expires = '' } = error?.data.link ?? {}
    expect(href).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/content\/[\w-]+$/)
    expect(href).not.toContain('movie')
    expect(Date.parse(expires) - Date.now()).toBeGreaterThan(290_000)
    expect(Date.parse(expires) - Date.now()).toBeLessThanOrEqual(310_000)

    const response = await fetch(href)
    expect(response.status).toBe(200)
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'video/mp4',
      'content-length': String(movie.length),
      'accept-ranges': 'bytes',
      'content-disposition': "attachment; filename*=UTF-8''movie.mp4",
      'content-security-policy': "default-src 'none'; sandbox",
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    })
    expect(digest(new Uint8Array(await response.arrayBuffer()))).toBe(digest(movie))
    expect(audit.at(-1)).toMatchObject({ verb: 'read', uri: 'file:///r/movie.mp4', outcome: 'ok', bytes: movie.length })
  })

  test('gets a link in sessions of 2025-11-25 as well, but not if a short part is read or the content is denied', async () => {
    const { url } = await start()
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
    const post = (message: object, more: Record<string, string> = {}) =>
      fetch(url, {
        method: 'POST',
        headers: { ...headers, ...more },
        body: JSON.stringify({ jsonrpc: '2.0', ...message }),
      })
    const clientInfo = { name: 'test', version: '1' }
    const begun = await post({
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo },
    })
    const session = { 'mcp-session-id': begun.headers.get('mcp-session-id') ?? '' }
    await begun.text()
    const asked = (uri: string) => post({ id: 2, method: 'resources/read', params: { uri } }, session)
    const { error } = (await (await asked('file:///r/movie.mp4')).json()) as Answered
    expect((await fetch(error?.data.link?.href ?? '')).headers.get('content-length')).toBe(String(movie.length))
    // A part of it is within the limit, and what is denied looks absent.
    expect(await (await asked('file:///r/movie.mp4?bytes=0-9')).text()).not.toContain('/content/')
    const denied = await (await asked('file:///r/denied.mp4')).text()
    expect(denied).toContain('Resource not found')
    expect(denied).not.toContain('/content/')
  })

  test('can be fetched through its link in ranges, and 304 is answered while it is unchanged', async () => {
    const { url } = await start()
    const { href } = await linkTo(url, 'file:///r/movie.mp4')
    const get = (headers: Record<string, string>, method = 'GET') => fetch(href, { method, headers })
    const whole = await get({}, 'HEAD')
    expect(whole.headers.get('content-length')).toBe(String(movie.length))
    const etag = whole.headers.get('etag') ?? ''
    expect(etag).toMatch(/^"[\w-]+"$/)
    for (const [range, start, end] of [
      ['bytes=0-0', 0, 1],
      [`bytes=${mib - 1}-${mib + 1}`, mib - 1, mib + 2],
      ['bytes=5-', 5, movie.length],
      ['bytes=-100', movie.length - 100, movie.length],
      ['bytes=100-99999999', 100, movie.length],
    ] as const) {
      const part = await get({ range, 'if-range': etag })
      expect([part.status, part.headers.get('content-range')]).toEqual([
        206,
        `bytes ${start}-${end - 1}/${movie.length}`,
      ])
      expect(digest(new Uint8Array(await part.arrayBuffer()))).toBe(digest(movie.subarray(start, end)))
    }
    // Neither several ranges, nor another unit, nor a part of another version: the whole.
    for (const headers of [
      { range: 'bytes=0-1,5-6' },
      { range: 'lines=1-2' },
      { range: 'bytes=0-1', 'if-range': '"x"' },
    ])
      expect((await get(headers, 'HEAD')).status).toBe(200)
    const behind = await get({ range: `bytes=${movie.length}-` })
    expect([behind.status, behind.headers.get('content-range')]).toEqual([416, `bytes */${movie.length}`])
    for (const tags of [etag, `"other", W/${etag}`, '*']) {
      const same = await get({ 'if-none-match': tags })
      expect([same.status, await same.text()]).toEqual([304, ''])
    }
    expect((await get({ 'if-none-match': '"other"' }, 'HEAD')).status).toBe(200)
    expect((await get({}, 'POST')).status).toBe(405)
  })

  test('is sent by its link as application/octet-stream if it is HTML', async () => {
    const { url } = await start()
    const response = await fetch((await linkTo(url, 'file:///r/page.html')).href)
    expect(response.headers.get('content-type')).toBe('application/octet-stream')
    expect(await response.text()).toContain('<script>')
  })

  test('has known secrets redacted behind its link, also across the borders of its parts', async () => {
    const { url } = await start({ scrubber: createScrubber([secret]) })
    const response = await fetch((await linkTo(url, 'file:///r/story.txt')).href)
    expect(response.headers.get('accept-ranges')).toBe('none')
    const text = await response.text()
    expect(text).toBe(story.replace(secret, '[redacted]'))
  })

  test('of a redacted mount gets a link only if the link can be answered', async () => {
    const offered = async (mode: 'mask' | 'withhold') => {
      const provider = sliced(redacted(await files({ root, maxBytes: mib }), { mode, except: ['**'] }))
      const catalog = createCatalog({ mounts: [{ address: 'file:///r', provider }] })
      const { url } = await serve({ view: (principal) => catalog.view(principal) })
      const found: Record<string, unknown> = {}
      for (const name of ['movie.mp4', 'story.txt']) {
        const { error } = await read(url, `file:///r/${name}`)
        const link = error?.data.link
        found[name] = link === undefined ? error?.data.reason : (await fetch(link.href)).status
      }
      return found
    }
    expect(await offered('mask')).toEqual({ 'movie.mp4': 'withheld', 'story.txt': 200 })
    expect(await offered('withhold')).toEqual({ 'movie.mp4': 'withheld', 'story.txt': 'withheld' })
  })

  test('gets a link only if its first part can be read', async () => {
    const plain = await files({ root, maxBytes: mib })
    const refusing: Provider = {
      ...plain,
      read: async (request, context) => {
        if (request.path === 'story.txt') throw tooLarge('It computes too much.')
        return plain.read(request, context)
      },
    }
    const catalog = createCatalog({ mounts: [{ address: 'file:///r', provider: sliced(refusing) }] })
    const { url } = await serve({ view: (principal) => catalog.view(principal) })
    const told = async (name: string) => (await read(url, `file:///r/${name}`)).error?.data
    expect(await told('story.txt')).toEqual({ reason: 'too-large' })
    expect(await told('movie.mp4')).toMatchObject({ reason: 'too-large', link: { href: expect.any(String) } })
  })

  test('is cut off if it changes during the transfer, so that two versions are never mixed', async () => {
    const { url } = await start()
    await writeFile(join(root, 'changing.mp4'), Buffer.alloc(40 * mib, 'a'))
    const { href } = await linkTo(url, 'file:///r/changing.mp4')
    const outcome = await new Promise<string>((resolve, reject) => {
      httpRequest(href, { agent: false }, (response) => {
        let changed = false
        let length = 0
        response.on('data', (chunk: Buffer) => {
          length += chunk.length
          expect(chunk.includes('b')).toBe(false)
          if (changed) return
          changed = true
          response.pause()
          writeFile(join(root, 'changing.mp4'), Buffer.alloc(40 * mib, 'b')).then(() => response.resume(), reject)
        })
        response.on('end', () => resolve(`all of ${length}`))
        response.on('error', () => resolve('cut'))
      })
        .on('error', reject)
        .end()
    })
    expect(outcome).toBe('cut')
  })

  test.each(['2026-07-28', '2025-11-25'])(
    'gets a link also if only its encoded answer is too long (revision %s)',
    async (revision) => {
      const provider = sliced(await files({ root, maxBytes: 8 * mib }))
      const catalog = createCatalog({ mounts: [{ address: 'file:///r', provider }] })
      const { url } = await serve({ view: (principal) => catalog.view(principal), limits: { answer: mib } })
      const transport = new StreamableHTTPClientTransport(new URL(url))
      const client = new Client(
        { name: 'test', version: '1' },
        { versionNegotiation: { mode: revision === '2026-07-28' ? 'auto' : 'legacy' } },
      )
      await client.connect(transport)
      const failureOf = async (uri: string) =>
        client.readResource({ uri }).then(
          () => expect.fail('it was read'),
          (error: ProtocolError) => error.data as { readonly reason?: string; readonly link?: Link },
        )
      const { reason, link } = await failureOf('file:///r/movie.mp4')
      expect(reason).toBe('too-large')
      const response = await fetch(link?.href ?? '')
      expect(digest(new Uint8Array(await response.arrayBuffer()))).toBe(digest(movie))
      expect(await failureOf(`file:///r/movie.mp4?bytes=0-${mib}`)).not.toHaveProperty('link')
      await client.close()
    },
  )

  test('whose source fails before the first byte gives the HTTP error 503 at its link', async () => {
    const version = '1'
    const tooLarge = new ResourceError('too-large', 'It is too large.', {
      reason: 'too-large',
      size: 8 * mib,
      limit: mib,
    })
    const provider = sliced({
      list: async function* () {},
      read: async ({ range }) => {
        if (range === undefined) throw tooLarge
        if (range.start > mib) throw new ResourceError('unavailable', 'The disk does not answer.')
        const { start, end = 8 * mib } = range
        return [
          { bytes: Buffer.alloc(end - start), mimeType: 'video/mp4', version, size: 8 * mib, range: { start, end } },
        ]
      },
    })
    const catalog = createCatalog({ mounts: [{ address: 'file:///r', provider }] })
    const { url } = await serve({ view: (principal) => catalog.view(principal) })
    const { href } = await linkTo(url, 'file:///r/movie.mp4')
    const response = await fetch(href, { headers: { range: `bytes=${2 * mib}-` } })
    expect([response.status, response.headers.get('retry-after'), await response.text()]).toEqual([
      503,
      '5',
      expect.stringContaining('does not answer now'),
    ])
  })

  test.each([
    [{ allowedHosts: ['context.example.org'] }, '/content/'],
    [{ allowedHosts: ['localhost:1'] }, 'http://localhost:1/content/'],
    [
      {
        allowedHosts: ['inner'],
        public: { name: 'org.example/context', description: 'Notes', url: 'https://context.example.org/team/mcp' },
      },
      'https://context.example.org/team/content/',
    ],
    [
      {
        allowedHosts: ['inner'],
        public: { name: 'org.example/context', description: 'Notes', url: 'https://example.org/context' },
      },
      'https://example.org/content/',
    ],
  ] as const)(
    'gets a link with the base URL under which the client reaches the server: %j',
    async (options, beginning) => {
      const { url } = await start(options)
      const body = { jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri: 'file:///r/movie.mp4', _meta } }
      const text = await new Promise<string>((resolve, reject) => {
        const headers = {
          ...{ host: options.allowedHosts[0], 'content-type': 'application/json', 'mcp-name': 'file:///r/movie.mp4' },
          ...{ accept: 'application/json, text/event-stream', 'mcp-method': 'resources/read' },
          'mcp-protocol-version': '2026-07-28',
        }
        httpRequest(url, { method: 'POST', headers, agent: false }, (response) => {
          let said = ''
          response.on('data', (chunk) => {
            said += chunk
          })
          response.on('end', () => resolve(said))
        })
          .on('error', reject)
          .end(JSON.stringify(body))
      })
      expect((JSON.parse(text) as Answered).error?.data.link?.href.startsWith(beginning)).toBe(true)
    },
  )

  test('gets no link if contentLinks is false', async () => {
    const { url } = await start({ contentLinks: false })
    expect((await read(url, 'file:///r/movie.mp4')).error?.data).not.toHaveProperty('link')
    expect((await fetch(new URL('/content/x', url))).status).toBe(404)
  })
})

describe('a link to a content', () => {
  test('that is forged or altered gives 404, and that is audited', async () => {
    const audit: AuditRecord[] = []
    const { url } = await start({ audit: (record) => void audit.push(record) })
    const { href } = await linkTo(url, 'file:///r/movie.mp4')
    const altered = [...Array(8).keys()].map((at) => {
      const place = href.length - 1 - at * 9
      return `${href.slice(0, place)}${href[place] === 'A' ? 'B' : 'A'}${href.slice(place + 1)}`
    })
    for (const other of [...altered, `${href}A`, `${href}?x=1`, href.slice(0, -1), new URL('/content/', url).href]) {
      const response = await fetch(other)
      expect([response.status, JSON.stringify(await response.json())]).toEqual([
        404,
        expect.stringContaining('Nothing is served at this path.'),
      ])
    }
    expect(audit.filter(({ outcome }) => outcome === 'no-link').length).toBeGreaterThan(0)
    expect((await fetch(href, { method: 'HEAD' })).status).toBe(200)
  })

  test('gives the URI and the caller that it was made for until it expires; made again for both, it is the same', () => {
    let now = 1_000_000
    const links = createContentLinks({ lifetimeMs: 60_000 }, 8192, () => now)
    const linkFor = links.linkFor(unauthenticatedCaller({ id: 'a', roles: ['x'] }), 'http://h')
    const link = linkFor('file:///r/a')
    expect(link).toEqual(linkFor('file:///r/a'))
    expect(linkFor('file:///r/b')).not.toEqual(link)
    const path = new URL(link?.href ?? '').pathname
    expect(links.open(path)).toEqual({ uri: 'file:///r/a', principal: { id: 'a', roles: ['x'], scopes: undefined } })
    now = Date.parse(link?.expires ?? '') - 1
    expect(links.open(path)).toBeDefined()
    now += 1
    expect(links.open(path)).toBeUndefined()
    expect(linkFor(`file:///r/${'x'.repeat(8192)}`)).toBeUndefined()
  })

  test('is valid with the secret that signed it, also as an earlier secret, and with no other', () => {
    const [one, two] = [randomBytes(32), randomBytes(32)]
    const made = createContentLinks({ secret: one }, 8192).linkFor(
      unauthenticatedCaller({ id: 'a', roles: [] }),
      'http://h',
    )('x://y/z')
    const path = new URL(made?.href ?? '').pathname
    expect(createContentLinks({ secret: one }, 8192).open(path)).toMatchObject({ uri: 'x://y/z' })
    expect(createContentLinks({ secret: two, earlierSecrets: [one] }, 8192).open(path)).toMatchObject({
      uri: 'x://y/z',
    })
    expect(createContentLinks({ secret: two }, 8192).open(path)).toBeUndefined()
  })

  test('is no longer valid when the token of its caller is removed, and links of other callers stay valid', async () => {
    const tokens = ['hkd_one', 'hkd_two'].map((start) => `${start}${randomBytes(29).toString('base64url')}`)
    const stored = tokens.map((token, index) => ({
      ...{ id: `t${index}`, name: 'someone', roles: [], created: '2026-01-01T00:00:00.000Z' },
      sha256: createHash('sha256').update(token).digest('hex'),
    }))
    const folder = await mkdtemp(join(tmpdir(), 'hikidashi-tokens-'))
    const file = join(folder, 'tokens.json')
    const write = (list: object[]) => writeFile(file, JSON.stringify({ version: 1, tokens: list }), { mode: 0o600 })
    await write(stored)
    const { url } = await start({ auth: { tokens: file } })
    const [one = '', two = ''] = await Promise.all(
      tokens.map(
        async (token) => (await linkTo(url, 'file:///r/movie.mp4', { authorization: `Bearer ${token}` })).href,
      ),
    )
    expect(one).not.toBe(two)
    const status = async (href: string) => (await fetch(href, { method: 'HEAD' })).status
    // The link needs no token besides itself.
    expect(await Promise.all([one, two].map(status))).toEqual([200, 200])
    await write(stored.slice(1))
    await expect.poll(() => status(one)).toBe(404)
    expect(await status(two)).toBe(200)
    await rm(folder, { recursive: true })
  })
})

describe('hikidashi read', () => {
  test.each([
    ['by its link', undefined],
    ['in parts where there are no links', false],
  ] as const)('writes a content over the limit of the server %s', async (_, contentLinks) => {
    const reads: string[] = []
    const { url } = await start({
      audit: ({ uri = '', outcome }) => void reads.push(`${outcome} ${uri}`),
      ...(contentLinks === undefined ? {} : { contentLinks }),
    })
    const file = join(root, `copy-${String(contentLinks)}.bin`)
    const { code, err } = await run(['read', 'file:///r/movie.mp4', '--url', url, '-o', file], { cwd: root })
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(digest(await readFile(file))).toBe(digest(movie))
    const parts = reads.filter((read) => read.includes('?bytes='))
    expect(parts.length > 0).toBe(contentLinks === false)
  })

  test('follows no link to another origin', () => {
    const cause = (href: unknown) => new ProtocolError(-32602, 'too large', { reason: 'too-large', link: { href } })
    const linkOf = (href: unknown) =>
      contentLinkOf(new Error('too large', { cause: cause(href) }), 'https://a.example/mcp')?.href
    expect(linkOf('https://a.example/content/x')).toBe('https://a.example/content/x')
    expect(linkOf('/content/x')).toBe('https://a.example/content/x')
    for (const href of [
      'https://evil.example/x',
      'http://a.example/content/x',
      '//evil.example/x',
      'file:///etc/passwd',
      7,
    ])
      expect(linkOf(href)).toBeUndefined()
  })
})

describe('a client that does not read a content', () => {
  test('stops the server from reading further', async () => {
    await writeFile(join(root, 'long.mp4'), Buffer.alloc(64 * mib))
    const inner = sliced(await files({ root, maxBytes: mib }))
    let reads = 0
    const provider: typeof inner = {
      ...inner,
      read: (request, context) => {
        reads++
        return inner.read(request, context)
      },
    }
    const catalog = createCatalog({ mounts: [{ address: 'file:///r', provider }] })
    const { url } = await serve({ view: (principal) => catalog.view(principal) })
    const { href } = await linkTo(url, 'file:///r/long.mp4')
    const response = await new Promise<{ headers: IncomingHttpHeaders; destroy: () => void }>((resolve, reject) => {
      httpRequest(href, { agent: false }, (incoming) => {
        incoming.on('error', () => {}).pause()
        resolve({ headers: incoming.headers, destroy: () => incoming.destroy() })
      })
        .on('error', reject)
        .end()
    })
    expect(response.headers['content-length']).toBe(String(64 * mib))
    // Other requests are answered meanwhile, and the paused one is not read to its end.
    for (let index = 0; index < 50; index++) await read(url, 'file:///r/small.txt')
    expect(reads).toBeLessThan(50 + 30)
    response.destroy()
  })
})
