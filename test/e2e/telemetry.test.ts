import { readFileSync } from 'node:fs'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { context, metrics, propagation, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Catalog, createCatalog, type Mount } from '../../src/core/catalog.ts'
import { setTelemetry, telemetry, traceContextIn } from '../../src/core/trace.ts'
import { api } from '../../src/providers/api/index.ts'
import { remote } from '../../src/providers/remote/index.ts'
import { type HttpService, serveHttp } from '../../src/server/index.ts'
import { main } from '../support/cli.ts'
import { endings } from '../support/endings.ts'
import { createFolder } from '../support/folder.ts'
import { fixture } from '../support/mcp-servers.ts'
import { memory } from '../support/memory.ts'
import { startWeb, type WebServer } from '../support/web.ts'

// The real SDK of OpenTelemetry in this process, and servers behind the first one over HTTP.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const traceId = '0af7651916cd43dd8448eb211c80319c'
const spanId = 'b7ad6b7169203331'
const traceparent = `00-${traceId}-${spanId}-01`
const idOf = (header: unknown) => String(header).split('-')[1]

let web: WebServer
beforeAll(async () => {
  web = await startWeb((request, response) => {
    response.writeHead(request.url === '/v1/broken.json' ? 500 : 200, { 'content-type': 'application/json' }).end('{}')
  })
})
beforeEach(() => {
  web.requests.length = 0
})
afterAll(() => web.close())

async function serve(mounts: readonly Mount[]): Promise<string> {
  const catalog: Catalog = createCatalog({ mounts })
  const options = { name: 'test', version: '1.2.3', log: () => {}, host: '127.0.0.1', port: 0, limits: { drain: 100 } }
  const service: HttpService = await serveHttp({ ...options, view: catalog.view })
  endings.push(() => service.close(), catalog.close)
  return service.url
}

async function connectTo(url: string, headers: Record<string, string> = {}, mode: 'auto' | 'legacy' = 'auto') {
  const client = new Client({ name: 'test', version: '0' }, mode === 'auto' ? { versionNegotiation: { mode } } : {})
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }))
  endings.push(() => client.close())
  return client
}

/** Two servers: the near one mounts the far one, which asks an API. */
async function openServers(): Promise<string> {
  const routes = [{ template: 'things/{id}', to: '{id}.json' }]
  const far = await serve([
    {
      address: 'api://x',
      provider: api({ url: `${web.url}/v1`, allowAddresses: ['127.0.0.1'], timeoutMs: 30_000, routes }),
    },
  ])
  return serve([
    { address: 'memory://near', provider: memory({ 'a.md': 'near\n' }) },
    { address: 'mcp://far', provider: remote({ target: { url: far } }) },
    { address: 'mcp://tools', provider: remote({ target: fixture('abilities', 'official'), tools: true }) },
  ])
}
const deep = 'mcp://far/api/x/things/one'
const sent = () => web.requests.map(({ headers }) => headers)

describe('telemetry without an SDK', () => {
  test.each(['auto', 'legacy'] as const)(
    'passes on the trace of a caller unchanged, from headers (client mode: %s)',
    async (mode) => {
      const client = await connectTo(await openServers(), { traceparent, tracestate: 'a=1' }, mode)
      await client.readResource({ uri: deep })
      expect(sent()).toMatchObject([{ traceparent, tracestate: 'a=1' }])
      expect(telemetry).toBeUndefined()
    },
  )

  test('prefers the trace in `_meta` to that of the headers', async () => {
    const client = await connectTo(await openServers(), { traceparent: `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01` })
    await client.readResource({ uri: deep, _meta: { traceparent } })
    expect(sent()).toMatchObject([{ traceparent }])
  })

  test('passes on no trace if the caller has none, or a malformed one', async () => {
    const url = await openServers()
    await (await connectTo(url)).readResource({ uri: deep })
    await (await connectTo(url, { traceparent: `00-${'0'.repeat(32)}-${spanId}-01` })).readResource({ uri: `${deep}2` })
    expect(sent().map((headers) => headers.traceparent)).toEqual([undefined, undefined])
    const crossed = { traceparent, tracestate: `a=1\r\nx: y` }
    expect(traceContextIn(crossed)).toEqual({ traceparent })
    expect(traceContextIn({ traceparent, tracestate: 'a'.repeat(513) })).toEqual({ traceparent })
    for (const bad of [`ff-${traceId}-${spanId}-01`, `${traceparent}\r\n`, `00-${traceId}-${'0'.repeat(16)}-01`, 7, ''])
      expect(traceContextIn({ traceparent: bad })).toBeUndefined()
  })
})

describe('telemetry with the SDK', () => {
  const spans = new InMemorySpanExporter()
  const durations = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter: durations, exportIntervalMillis: 3_600_000 })
  beforeAll(() => {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
    propagation.setGlobalPropagator(new W3CTraceContextPropagator())
    trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }))
    metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }))
  })
  beforeEach(() => spans.reset())
  afterAll(async () => {
    setTelemetry(undefined)
    await reader.shutdown()
    for (const part of [trace, metrics, context, propagation]) part.disable()
  })

  const named = (name: string, ofTrace = traceId): readonly ReadableSpan[] =>
    spans.getFinishedSpans().filter((span) => span.name === name && span.spanContext().traceId === ofTrace)
  const isChild = (child: ReadableSpan | undefined, parent: ReadableSpan | undefined) =>
    child !== undefined && child.parentSpanContext?.spanId === parent?.spanContext().spanId

  test('joins the spans of a request, a mount, an outgoing request and the next server in one trace', async () => {
    const client = await connectTo(await openServers(), { traceparent })
    // Connections and lists are there before the read that is looked at.
    await client.readResource({ uri: deep })
    spans.reset()
    web.requests.length = 0
    // The answer of the first one is kept for a while.
    await client.readResource({ uri: `${deep}2` })
    const find = (name: string, parent: ReadableSpan | undefined) => named(name).find((span) => isChild(span, parent))
    const [near] = named('resources/read').filter((span) => span.parentSpanContext?.spanId === spanId)
    expect(near?.attributes).toMatchObject({
      'mcp.method.name': 'resources/read',
      'mcp.protocol.version': '2026-07-28',
    })
    const nearRead = find('source.read', near)
    expect(nearRead?.attributes).toEqual({ 'hikidashi.mount': 'mcp://far' })
    const asked = find('resources/read', nearRead)
    const far = find('resources/read', asked)
    const farRead = find('source.read', far)
    expect(farRead?.attributes).toEqual({ 'hikidashi.mount': 'api://x' })
    const get = find('GET', farRead)
    expect(get?.attributes).toMatchObject({ 'http.request.method': 'GET', 'http.response.status_code': 200 })
    expect([near, nearRead, asked, far, farRead, get].map((span) => span?.kind)).toEqual([1, 0, 2, 1, 0, 2])
    expect(sent().map((headers) => headers.traceparent)).toEqual([`00-${traceId}-${get?.spanContext().spanId}-01`])
    // URIs and paths may hold secrets.
    expect(JSON.stringify(spans.getFinishedSpans().map(({ attributes }) => attributes))).not.toContain('one')
  })

  test('has spans for the call of a tool and its source, and marks a failure without its text', async () => {
    const client = await connectTo(await openServers())
    await client.callTool({ name: 'fail', _meta: { traceparent } })
    const [call] = named('tools/call fail')
    expect(call?.status).toEqual({ code: 2 })
    expect(call?.attributes).toMatchObject({ 'error.type': 'tool_error', 'gen_ai.tool.name': 'fail' })
    expect(named('source.call').some((span) => isChild(span, call))).toBe(true)
    spans.reset()
    await client.readResource({ uri: 'mcp://far/api/x/things/broken', _meta: { traceparent } }).catch(() => {})
    const [get] = named('GET')
    expect(get?.attributes['error.type']).toBe('500')
    expect(named('resources/read').every((span) => span.status.code === 2)).toBe(true)
    expect(named('resources/read').flatMap(({ events }) => events)).toEqual([])
  })

  test('keeps the traces of simultaneous requests apart', async () => {
    const client = await connectTo(await openServers())
    await client.readResource({ uri: deep })
    web.requests.length = 0
    const ids = Array.from({ length: 20 }, (_, n) => (n + 1).toString(16).padStart(32, 'a'))
    const read = (id: string, n: number) =>
      client.readResource({ uri: `${deep}${n}`, _meta: { traceparent: `00-${id}-${spanId}-01` } })
    await Promise.all(ids.map(read))
    const found = web.requests.map(({ url, headers }) => `${url} ${idOf(headers.traceparent)}`).sort()
    expect(found).toEqual(ids.map((id, n) => `/v1/one${n}.json ${id}`).sort())
  })

  test('measures durations, by method and kind of failure', async () => {
    const client = await connectTo(await openServers())
    await client.readResource({ uri: 'memory://near/a.md' })
    await client.readResource({ uri: 'memory://near/none.md' }).catch(() => {})
    await reader.forceFlush()
    const [latest] = durations.getMetrics().slice(-1)
    const all = (latest?.scopeMetrics ?? []).flatMap((scope) => scope.metrics)
    const server = all.find(({ descriptor }) => descriptor.name === 'mcp.server.operation.duration')
    expect(server?.descriptor.unit).toBe('s')
    const points = (server?.dataPoints ?? []).map(({ attributes }) => attributes)
    const method = { 'mcp.method.name': 'resources/read', 'mcp.protocol.version': '2026-07-28' }
    expect(points).toEqual(expect.arrayContaining([method, { ...method, 'error.type': 'not-found' }]))
    expect(all.map(({ descriptor }) => descriptor.name)).toContain('http.client.request.duration')
  })
})

test('the built command records spans if an SDK is registered before it starts', async () => {
  const folder = createFolder()
  folder.write({ 'a.md': '# A\n' })
  const file = `${folder.outside}/spans.jsonl`
  const setup = new URL('../fixtures/otel.mjs', import.meta.url).pathname
  const client = new Client({ name: 'test', version: '0' })
  const args = ['--import', setup, main, 'serve', folder.root, '--name', 'x', '--stdio', '--log-level', 'error']
  await client.connect(
    new StdioClientTransport({
      command: process.execPath,
      args,
      env: { ...process.env, OTEL_TEST_FILE: file } as Record<string, string>,
    }),
  )
  try {
    await client.readResource({ uri: 'file:///x/a.md', _meta: { traceparent } })
    const lines = () =>
      readFileSync(file, 'utf8')
        .trim()
        .split('\n')
        .map(
          (line) => JSON.parse(line) as { readonly name: string; readonly traceId: string; readonly parent?: string },
        )
    await expect
      .poll(lines, { timeout: 30_000 })
      .toContainEqual(expect.objectContaining({ name: 'resources/read', traceId, parent: spanId }))
    expect(lines()).toContainEqual(expect.objectContaining({ name: 'source.read', traceId }))
  } finally {
    await client.close()
    folder.remove()
  }
})
