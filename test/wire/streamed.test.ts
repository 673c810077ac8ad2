import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request as httpRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import { ResourceError } from '../../src/core/errors.ts'
import type { ByteRange, Context, Provider } from '../../src/core/provider.ts'
import { createScrubber } from '../../src/core/scrub.ts'
import { files } from '../../src/providers/files/index.ts'
import type { HttpOptions } from '../../src/server/http/serve-http.ts'
import { localPrincipal, openViewChannel } from '../../src/server/serve.ts'
import { sliced } from '../../src/wrap/sliced.ts'
import { useHttp } from '../support/http-service.ts'

const serve = useHttp()
const mib = 1024 * 1024
const secret = 'hunter2-known-secret'
/** The offset of the secret: the border of two parts lies within it. */
const secretAt = 9_371_600
/** Binary, no multiple of three, above the size from which a content is streamed, with a secret across the border of two parts. */
const movie = Buffer.concat([
  ...[Buffer.from('mp42\0'), randomBytes(secretAt - 5), Buffer.from(secret), randomBytes(mib + 1)],
])
const uri = 'file:///r/movie.mp4'
const _meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}
const message = { jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri, _meta } } as const
const headers = {
  ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
  ...{ 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'resources/read', 'mcp-name': uri },
}

let root = ''
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'hikidashi-streamed-'))
  await writeFile(join(root, 'movie.mp4'), movie)
})
afterAll(() => rm(root, { recursive: true, force: true }))

const log = () => {}

interface Asked {
  readonly range: ByteRange
  readonly context: Context
}

/** Serves the file, and notes each part that is read of it. `before` runs before each. */
async function start(options: Partial<HttpOptions> = {}, before: (asked: Asked) => Promise<void> = async () => {}) {
  const inner = await files({ root, maxBytes: 64 * mib })
  const parts: number[] = []
  const noted: Provider = {
    ...inner,
    read: async (request, context) => {
      if (request.range !== undefined) {
        parts.push(request.range.start)
        await before({ range: request.range, context })
      }
      return inner.read(request, context)
    },
  }
  const catalog = createCatalog({ mounts: [{ address: 'file:///r', provider: sliced(noted) }] })
  const view: HttpOptions['view'] = (principal) => catalog.view(principal)
  const service = await serve({ view, ...options })
  return { url: service.url, view, parts }
}

const ask = (url: string) => fetch(url, { method: 'POST', headers, body: JSON.stringify(message) })

/** Begins a session of an older revision. Returns a function that posts a message, or a batch, in it. */
async function openSession(url: string, protocolVersion: string) {
  const accepted = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const post = (body: unknown, more: Record<string, string> = {}) =>
    fetch(url, { method: 'POST', headers: { ...accepted, ...more }, body: JSON.stringify(body) })
  const clientInfo = { name: 'test', version: '1' }
  const begun = await post({
    ...{ jsonrpc: '2.0', id: 0, method: 'initialize' },
    params: { protocolVersion, capabilities: {}, clientInfo },
  })
  await begun.text()
  const session = { 'mcp-session-id': begun.headers.get('mcp-session-id') ?? '' }
  return (body: unknown) => post(body, session)
}

interface ReadAnswer {
  readonly id: number
  readonly result: { readonly contents: readonly [{ readonly blob: string }] }
}

describe('a large binary content in a session', () => {
  const read = (id: number, meta: object = {}) =>
    ({ jsonrpc: '2.0', id, method: 'resources/read', params: { uri, _meta: meta } }) as const

  test.each(['2025-03-26', '2025-06-18', '2025-11-25'])(
    'of %s is sent in parts, without known secrets',
    async (revision) => {
      const { url, parts } = await start({ scrubber: createScrubber([secret]) })
      const response = await (await openSession(url, revision))(read(1))
      expect(response.headers.get('content-length')).toBeNull()
      const { result } = (await response.json()) as ReadAnswer
      expect(parts.length).toBeGreaterThan(9)
      const bytes = Buffer.from(result.contents[0].blob, 'base64')
      expect(bytes.subarray(0, secretAt).equals(movie.subarray(0, secretAt))).toBe(true)
      expect(bytes.includes(secret)).toBe(false)
    },
  )

  test('has the same bytes in an event after progress', async () => {
    let release = () => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    const { url } = await start({}, () => released)
    // The head of the answer comes with the first notification of progress.
    const response = await (await openSession(url, '2025-11-25'))(read(1, { progressToken: 'p' }))
    release()
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    const events = [...(await response.text()).matchAll(/^data: (.*)$/gm)].map(
      ([, data = '']) => JSON.parse(data) as Partial<ReadAnswer>,
    )
    expect(events.length).toBeGreaterThan(1)
    expect(events.at(-1)?.result?.contents[0].blob === movie.toString('base64')).toBe(true)
  })

  test('is whole in a batch', async () => {
    await writeFile(join(root, 'clip.mp4'), movie.subarray(0, mib))
    const { url } = await start()
    const post = await openSession(url, '2025-03-26')
    const clip = (id: number) => ({ ...read(id), params: { uri: 'file:///r/clip.mp4' } })
    const answers = (await (await post([clip(1), clip(2)])).json()) as readonly ReadAnswer[]
    expect(answers.map(({ id }) => id).sort()).toEqual([1, 2])
    for (const { result } of answers)
      expect(result.contents[0].blob === movie.subarray(0, mib).toString('base64')).toBe(true)
  })
})

describe('a large binary content over HTTP', () => {
  test.each([
    ['if no secret is known', undefined],
    ['if a secret is known', createScrubber([secret])],
  ])('is sent in parts, with the same bytes as an answer that is made at once, %s', async (_, scrubber) => {
    const { url, view, parts } = await start(scrubber === undefined ? {} : { scrubber })
    const response = await ask(url)
    expect(response.headers.get('content-length')).toBeNull()
    const text = await response.text()
    expect(parts.length).toBeGreaterThan(9)
    expect(parts.filter((start) => start > secretAt && start < secretAt + secret.length)).toHaveLength(1)

    const whole = { view, log, name: 'test', version: '1', ...(scrubber === undefined ? {} : { scrubber }) }
    const channel = await openViewChannel(whole, localPrincipal, 'modern')
    expect(text === JSON.stringify(await channel.request(message))).toBe(true)
    const { result } = JSON.parse(text) as { result: { contents: [{ blob: string }] } }
    const bytes = Buffer.from(result.contents[0].blob, 'base64')
    expect(bytes.includes(secret)).toBe(scrubber === undefined)
    if (scrubber === undefined) expect(bytes.equals(movie)).toBe(true)
    await channel.close()
  })

  test.each([65_535, 65_536, 500_001, 2 * mib])(
    'of %i bytes is the same as in an answer that is made at once, without the known secrets',
    async (size) => {
      const bytes = randomBytes(size)
      bytes.write(`\0${secret}`, size >> 1)
      const name = `clip-${size}.mp4`
      await writeFile(join(root, name), bytes)
      const { url, view } = await start({ scrubber: createScrubber([secret]) })
      const asked = { ...message, params: { ...message.params, uri: `file:///r/${name}` } }
      const response = await fetch(url, {
        method: 'POST',
        headers: { ...headers, 'mcp-name': asked.params.uri },
        body: JSON.stringify(asked),
      })
      const text = await response.text()
      // Shorter answers have a length.
      expect(response.headers.has('content-length')).toBe(size < 65_536)
      const whole = { view, log, name: 'test', version: '1', scrubber: createScrubber([secret]) }
      const channel = await openViewChannel(whole, localPrincipal, 'modern')
      expect(text === JSON.stringify(await channel.request(asked))).toBe(true)
      const { result } = JSON.parse(text) as { result: { contents: [{ blob: string }] } }
      expect(Buffer.from(result.contents[0].blob, 'base64').includes(secret)).toBe(false)
      await channel.close()
    },
  )

  test('that is in memory is cut off for a client that does not read it', async () => {
    // More than the buffers of the system between the two take.
    await writeFile(join(root, 'clip.mp4'), movie.subarray(0, 7 * mib))
    const catalog = createCatalog({ mounts: [{ address: 'file:///r', provider: await files({ root }) }] })
    const { url, meter } = await serve({
      view: (principal) => catalog.view(principal),
      limits: { slow: 300, stalled: 600_000 },
    })
    const asked = { ...message, params: { ...message.params, uri: 'file:///r/clip.mp4' } }
    const request = httpRequest(url, { method: 'POST', headers: { ...headers, 'mcp-name': asked.params.uri } })
    request.on('error', () => {})
    request.end(JSON.stringify(asked))
    const response = await new Promise<import('node:http').IncomingMessage>((resolve) =>
      request.once('response', resolve),
    )
    response.once('error', () => {})
    response.pause()
    await vi.waitFor(() => expect(meter.read().connections).toBe(0), 30_000)
    request.destroy()
    await catalog.close()
  })

  test('is the same if a source reads each part in several steps', async () => {
    const limit = 300_000
    const { url } = await start({}, async ({ range }) => {
      if (range.end !== undefined && range.end - range.start > limit)
        throw new ResourceError('too-large', 'Too large.', { reason: 'too-large', limit })
    })
    const { result } = JSON.parse(await (await ask(url)).text()) as { result: { contents: [{ blob: string }] } }
    expect(result.contents[0].blob === movie.toString('base64')).toBe(true)
  })

  test('is read no faster than the client reads, and no further once the client has disconnected', async () => {
    const { url, parts } = await start()
    const request = httpRequest(url, { method: 'POST', headers })
    request.end(JSON.stringify(message))
    const response = await new Promise<import('node:http').IncomingMessage>((resolve) =>
      request.once('response', resolve),
    )
    response.once('error', () => {})
    response.pause()
    // Other reads are answered meanwhile, until the stream has come to a halt.
    let before = -1
    while (before !== parts.length) {
      before = parts.length
      for (let other = 0; other < 50; other++) await (await fetch(new URL('/healthz', url))).text()
    }
    expect(parts.length).toBeLessThan(10)
    request.destroy()
    const closed = parts.length
    for (let other = 0; other < 50; other++) await (await fetch(new URL('/healthz', url))).text()
    expect(parts.length - closed).toBeLessThan(2)
  })

  test('is broken off when the source fails, and never looks complete', async () => {
    const { url } = await start({}, async ({ range }) => {
      if (range.start > 4 * mib) throw new Error('the disk is gone')
    })
    const response = await ask(url)
    expect(response.status).toBe(200)
    await expect(response.text()).rejects.toThrow()
  })

  test('gives an error if the answer exceeds the limit', async () => {
    const { url } = await start({ limits: { answer: 12 * mib } })
    const response = await ask(url)
    expect(await response.json()).toMatchObject({ error: { data: { reason: 'too-large', limit: 12 * mib } } })
  })
})
