import { Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import { ResourceError } from '../../src/core/errors.ts'
import type { Provider } from '../../src/core/provider.ts'
import type { GivenLimits } from '../../src/server/admission/limits.ts'
import type { HttpService } from '../../src/server/http/serve-http.ts'
import { limited } from '../../src/wrap/limited.ts'
import { createHeld, useHttp } from '../support/http-service.ts'
import { until } from '../support/live.ts'
import { memory } from '../support/memory.ts'

const serveOn = useHttp()
const serve = (provider: Provider, limits: GivenLimits): Promise<HttpService> =>
  serveOn({ ...createCatalog({ mounts: [{ address: 'mem://m', provider }] }), limits })

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly error:
    | { readonly code: number; readonly message: string; readonly data?: Record<string, unknown> }
    | undefined
  readonly text: string
}

const envelope = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

/** Reads a resource, as 2026-07-28 or without any claim of a revision. */
function read(service: HttpService, uri = 'mem://m/a', options: { path?: string; agent?: Agent; pad?: number } = {}) {
  const url = new URL(service.url)
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri, _meta: envelope } })
  const headers = {
    'content-type': 'application/json',
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'resources/read',
    'mcp-name': uri,
    ...(options.pad === undefined ? {} : { 'x-pad': 'x'.repeat(options.pad) }),
  }
  return new Promise<Answer>((resolve, reject) => {
    const target = { host: url.hostname, port: url.port, path: options.path ?? url.pathname, method: 'POST', headers }
    const outgoing = httpRequest({ ...target, ...(options.agent ? { agent: options.agent } : {}) }, (incoming) => {
      let text = ''
      incoming.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      incoming.on('end', () => {
        const { error } = (text === '' ? {} : JSON.parse(text)) as Pick<Answer, 'error'>
        resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, error, text })
      })
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

describe('limits over HTTP', () => {
  test('on the rate refuse requests with 429 and Retry-After, and requests are accepted again later', async () => {
    // Two a second, and twenty at once.
    const service = await serve(memory({ a: 'a' }), { rate: 2 })
    const answers = await Promise.all(Array.from({ length: 40 }, () => read(service)))
    const refused = answers.filter(({ status }) => status === 429)
    expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(20)
    expect(refused.length).toBeGreaterThan(0)
    for (const { headers, error } of refused) {
      expect(headers['retry-after']).toBe('1')
      expect(error).toMatchObject({ code: -32603, data: { reason: 'rate', retryAfter: 1 } })
    }
    expect(service.meter.read()).toMatchObject({ requests: 40, refusedRate: refused.length })
    for (let status = 429; status !== 200; ) {
      await new Promise((resolve) => setTimeout(resolve, 50))
      status = (await read(service)).status
    }
  })

  test('on the path give 414, on headers 431, and both are counted', async () => {
    const service = await serve(memory({ a: 'a' }), { path: 100, headers: 4096 })
    expect((await read(service, 'mem://m/a', { path: `/${'p'.repeat(100)}` })).status).toBe(414)
    expect((await read(service, 'mem://m/a', { pad: 5000 })).status).toBe(431)
    expect((await read(service)).status).toBe(200)
    expect(service.meter.read()).toMatchObject({ refusedUri: 1, refusedHeaders: 1 })
  })

  test('on an answer give an error that says how to read a part', async () => {
    const service = await serve(memory({ a: 'a', long: 'x'.repeat(5000) }), { answer: 2000 })
    const { status, error } = await read(service, 'mem://m/long')
    expect(status).toBe(200)
    expect(error).toMatchObject({ code: -32602, data: { reason: 'too-large', limit: 2000 } })
    expect(error?.message).toContain('bytes=0-999 of its URI')
    expect((await read(service)).error).toBeUndefined()
  })

  test('on simultaneous requests make a request beyond them wait, and refuse one beyond the queue with 503 and Retry-After', async () => {
    const { provider, held: waiting } = createHeld('slow')
    const service = await serve(provider, { concurrent: 2, waiting: 3 })
    const slow = ['1', '2', '3', '4', '5'].map(() => read(service, 'mem://m/slow'))
    await until(() => service.meter.read().waiting === 3)
    expect(service.meter.read()).toMatchObject({ inFlight: 2, waiting: 3 })
    const refused = await read(service)
    expect(refused).toMatchObject({ status: 503, error: { data: { reason: 'busy' } } })
    expect(refused.headers['retry-after']).toBe('1')
    for (let i = 0; i < 5; i++) {
      await until(() => waiting.length > 0)
      waiting.shift()?.()
    }
    expect((await Promise.all(slow)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    expect(service.meter.read()).toMatchObject({ inFlight: 0, waiting: 0, refusedBusy: 1 })
  })

  test('refuse a read of a source that has failed twice in a row with 503 and Retry-After, without the error of the source', async () => {
    const down = limited(
      { ...memory({}), read: () => Promise.reject(new ResourceError('unavailable', 'connect ECONNREFUSED 10.0.0.1')) },
      { failures: 2, pauseMs: 60_000, maxPauseMs: 60_000 },
    )
    const service = await serve(down, {})
    for (let i = 0; i < 2; i++) expect((await read(service)).status).toBe(200)
    const { status, headers, error, text } = await read(service)
    expect(status).toBe(503)
    expect(Number(headers['retry-after'])).toBeGreaterThan(30)
    expect(error).toMatchObject({ code: -32603, data: { reason: 'unavailable' } })
    expect(text).not.toMatch(/ECONN|10\.0/)
  })

  test('on connections close and count a connection beyond them, and the open one is still served', async () => {
    const service = await serve(memory({ a: 'a' }), { connections: 1 })
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    expect((await read(service, 'mem://m/a', { agent })).status).toBe(200)
    await expect(read(service)).rejects.toThrow()
    await until(() => service.meter.read().refusedConnections > 0)
    expect((await read(service, 'mem://m/a', { agent })).status).toBe(200)
    agent.destroy()
  })

  test('on new connections from one address refuse them with 429 and Retry-After before a request is read, and they are accepted again later', async () => {
    // One a second, and ten at once.
    const service = await serve(memory({ a: 'a' }), { newConnections: 1 })
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    expect((await read(service, 'mem://m/a', { agent })).status).toBe(200)
    const told = await Promise.all(Array.from({ length: 40 }, () => rawAnswer(service, '')))
    const refused = told.filter((text) => text !== '')
    expect(refused.length).toBeGreaterThanOrEqual(25)
    for (const text of refused) {
      expect(text).toMatch(/^HTTP\/1\.1 429 Too Many Requests\r\nRetry-After: \d+\r\nConnection: close\r\n/)
      expect(text.endsWith('\r\n\r\n')).toBe(true)
    }
    expect(service.meter.read()).toMatchObject({ refusedConnects: refused.length, requests: 1 })
    // A connection that is open is not concerned, and new ones are let in again.
    expect((await read(service, 'mem://m/a', { agent })).status).toBe(200)
    agent.destroy()
    for (let status = 0; status !== 200; ) {
      await new Promise((resolve) => setTimeout(resolve, 50))
      status = (await read(service).catch(() => undefined))?.status ?? 0
    }
  })

  test('let pipelined requests wait for each other, and requests on other connections do not wait', async () => {
    const { provider, held: waiting } = createHeld('slow')
    const service = await serve(provider, {})
    const text = (path: string, id: number) => {
      const [uri, method] = [`mem://m/${path}`, 'resources/read']
      const body = JSON.stringify({ jsonrpc: '2.0', id, method, params: { uri, _meta: envelope } })
      const named = `mcp-protocol-version: 2026-07-28\r\nmcp-method: ${method}\r\nmcp-name: ${uri}\r\n`
      const head = `POST /mcp HTTP/1.1\r\nhost: ${new URL(service.url).host}\r\ncontent-type: application/json\r\n`
      return `${head}${named}content-length: ${body.length}\r\n\r\n${body}`
    }
    const count = 100
    const sent = [text('slow', 0), ...Array.from({ length: count - 1 }, (_, i) => text('a', i + 1))].join('')
    const all = rawAnswer(service, sent, (got) => got.includes(`"id":${count - 1},`))
    await until(() => service.meter.read().pausedPipelines === 1, 30_000)
    expect((await read(service)).status).toBe(200)
    waiting.shift()?.()
    const ids = [...(await all).matchAll(/"2\.0","id":(\d+),/g)].map(([, id]) => Number(id))
    expect(ids).toEqual([...Array(count).keys()])
    expect(service.meter.read()).toMatchObject({ cutPipelines: 0 })
  })

  test('on the rate leave the connection of each refused request open', async () => {
    const service = await serve(memory({ a: 'a' }), { rate: 0.001 })
    while ((await read(service)).status !== 429);
    const answers = await Promise.all(Array.from({ length: 260 }, () => read(service)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([429]))
    for (const { headers } of answers) expect(headers.connection).not.toBe('close')
  })
})

/** What comes back for some bytes, up to the end of the connection, or as soon as it is enough. */
function rawAnswer(
  service: HttpService,
  bytes: string,
  enough: (got: string) => boolean = () => false,
): Promise<string> {
  const { hostname, port } = new URL(service.url)
  return new Promise((resolve) => {
    let text = ''
    const socket = connect(Number(port), hostname, () => socket.write(bytes))
    const timer = setTimeout(() => socket.destroy(), bytes === '' ? 2000 : 60_000)
    socket.setEncoding('latin1').on('data', (chunk) => {
      text += chunk
      if (enough(text)) socket.destroy()
    })
    socket.on('error', () => {})
    socket.on('close', () => {
      clearTimeout(timer)
      resolve(text)
    })
  })
}
