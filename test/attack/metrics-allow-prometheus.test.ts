import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { isResourceError } from '../../src/core/errors.ts'
import type { Context, Provider } from '../../src/core/provider.ts'
import { metrics } from '../../src/providers/metrics/index.ts'
import { parsePromql } from '../../src/providers/metrics/promql.ts'
import {
  hasPrometheus,
  noPrometheus,
  openMetrics,
  type RunningPrometheus,
  startPrometheus,
} from '../support/prometheus.ts'
import { requires } from '../support/require.ts'
import { volumeOf } from '../support/volume.ts'

// The allow-list of a mount in front of a real Prometheus. `canary_total` and `canary` are not allowed; their values and labels
// stand nowhere else, so that an answer that holds them tells of them, whatever the query was.

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const allow = ['up', 'http_*', 'queue:length:sum', 'by', 'start', 'rate']
const context: Context = { principal: { id: 'test', roles: [] }, signal: new AbortController().signal }
const end = Math.floor(Date.now() / 60_000) * 60 - 600
const start = end - 7200

const history = openMetrics(
  [
    {
      name: 'up',
      type: 'gauge',
      series: [
        { labels: { job: 'api', instance: 'a:1' }, at: () => 1 },
        { labels: { job: 'web', instance: 'b:1', path: 'C:\\x "y" # z' }, at: (_, i) => i % 2 },
      ],
    },
    {
      name: 'http_requests_total',
      type: 'counter',
      series: ['200', '500'].map((code, k) => ({
        labels: { job: 'api', method: 'GET', code },
        at: (_: number, i: number) => (k + 1) * i,
      })),
    },
    {
      name: 'http_duration_bucket',
      type: 'gauge',
      series: ['0.1', '1', '+Inf'].map((le, k) => ({ labels: { le }, at: (_: number, i: number) => (k + 1) * i })),
    },
    { name: 'queue:length:sum', type: 'gauge', series: [{ labels: { job: 'api' }, at: (_, i) => i }] },
    ...['by', 'start', 'rate'].map((name) => ({ name, type: 'gauge' as const, series: [{ labels: {}, at: () => 3 }] })),
    ...['canary', 'canary_total'].map((name) => ({
      name,
      type: 'gauge' as const,
      series: [{ labels: { job: 'api', canary_label: 'canary-value' }, at: () => 424_242 }],
    })),
  ],
  start,
  end,
  60,
)

/** Queries that are allowed, and that this Prometheus answers. */
const answered = [
  'up',
  'up{}',
  'up{job="api"}',
  "up{job='api',}",
  'up{job=~"a.*|w..",instance!=""}',
  'up{path=`C:\\x "y" # z`}',
  'up{path=\'C:\\\\x "y" # z\'}',
  'up{path="\\x43:\\\\x \\u0022y\\042 # z"}',
  '{__name__="up"}',
  '{job="web",__name__="\\165p"}',
  'http_requests_total offset 5m',
  'http_requests_total OFFSET 1h30m',
  `up @ ${start + 600}`,
  'up @ start()',
  'up @ end() offset 5m',
  'rate(http_requests_total[5m])',
  'rate(http_requests_total[5m] offset 10m)',
  `rate(http_requests_total[5m] @ ${end - 60})`,
  'rate(http_requests_total[5m])[30m:1m]',
  'max_over_time(deriv(rate(http_requests_total[5m])[30m:1m])[10m:])',
  'http_requests_total[ 10m : 5m ]',
  'sum by (job) (rate(http_requests_total[5m]))',
  'SUM(rate(http_requests_total[5m])) BY (job, code,)',
  'sum without (instance) (up)',
  'sum by () (up)',
  'topk(1, http_requests_total) or bottomk(1, up)',
  'count_values("version", up)',
  'quantile(0.9, http_requests_total)',
  'histogram_quantile(0.9, sum by (le) (rate(http_duration_bucket[10m])))',
  '(up - up) / 1024 / 1024',
  'http_requests_total / on(job) group_left() up{job="api"}',
  'http_requests_total * on (job) group_left(instance) up',
  'queue:length:sum + ignoring(instance, path) up',
  'up > bool 0',
  'up == bool on(job) up',
  'up and up or http_requests_total unless queue:length:sum',
  'up atan2 up',
  '2 ^ 3 ^ -up % 0x1F',
  '- - +up',
  'up + Inf - -inf * NaN / 1e3 + .5 + 1. + 1e-3',
  'vector(1)',
  'time()',
  '"canary and {canary_total} # in a text"',
  'label_replace(up{job="api"}, "new", "$1-x", "job", "(.*)")',
  'label_join(up, "new", ",", "job", "instance")',
  'absent(http_absent{job="myjob"})',
  'absent_over_time(sum(up{job="j"})[1h:])',
  'day_of_week()',
  'by + start + rate',
  'sum(by) + rate offset 5m',
  'start @ start()',
  'up # canary_total',
  '# canary_total\nup',
  'sum(# (\n up # )\n)',
  'up{job!="# no comment"} + on(job) up',
  '\t up\r\n+\n up ',
  'label_replace(vector(1), "text", "canary\\"\\\\\\n\\t\\u00e9\\U0001f600", "", "")',
]

/** Queries that are allowed here, and that a Prometheus before version 3 does not take. Where it does, it answers both alike. */
const sinceVersion3 = ['{"up"}', '{"up",job="api"}', 'up{"job"="api"}', 'sum by ("job") (up)', 'up[300]', 'up + 5m']

const denied = [
  'canary_total',
  'up + on(job) canary_total',
  'up or {__name__="canary_total"}',
  '{"canary_total"}',
  '{__name__=~"up|canary.*"}',
  '{__name__!="up"}',
  '{job="api"}',
  'up{__name__="canary_total"}',
  'up # \n or canary_total',
  'up{x="\\\\"} or canary_total # "}',
  'up{x=`\\`} or canary_total{x=`"`}',
  "up{x='\"'} or canary_total{x='\"'}",
  'sum by (up) (canary_total)',
  'label_replace(canary_total, "__name__", "up", "", "")',
  'max_over_time(rate(canary_total[5m])[1h:5m])',
  'up * on(job) group_left(canary_label) canary_total',
  'absent(canary_total)',
  'count({"__\\x6eame__"="canary_total"})',
  'count_values("v", canary) or up',
  '{__name__="\\143anary"}',
]

/** An API of Prometheus that passes every request on, and notes the queries. */
async function startRelay(target: string) {
  const queries: string[] = []
  let requests = 0
  const server: Server = createServer(async (request, response) => {
    requests++
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    const fields = new URLSearchParams(body.length > 0 ? body.toString() : (request.url ?? '').split('?')[1])
    const query = fields.get('query')
    if (query !== null) queries.push(query)
    const answer = await fetch(target + request.url, {
      method: request.method ?? 'GET',
      headers: { 'content-type': request.headers['content-type'] ?? 'text/plain' },
      ...(body.length > 0 ? { body } : {}),
    })
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'application/json' })
    response.end(Buffer.from(await answer.arrayBuffer()))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    queries,
    requests: () => requests,
    clear: () => {
      queries.length = 0
      requests = 0
    },
    close: () => new Promise((resolve) => server.close(resolve)),
  }
}

requires(
  'prometheus',
  hasPrometheus,
  noPrometheus,
)('with a real Prometheus and an allow-list of metrics,', () => {
  let prometheus: RunningPrometheus
  let relay: Awaited<ReturnType<typeof startRelay>>
  let provider: Provider

  beforeAll(async () => {
    prometheus = await startPrometheus({ history })
    relay = await startRelay(prometheus.url)
    provider = await metrics({ url: relay.url, allow })
  })
  afterAll(async () => {
    await provider?.close?.()
    await relay?.close()
    await prometheus?.remove()
  })
  beforeEach(() => relay.clear())

  /** What Prometheus itself says to a query, at one time and over a range. */
  const ask = async (query: string) => {
    const post = async (path: string, fields: Readonly<Record<string, string>>) => {
      const body = new URLSearchParams({ query, ...fields })
      const response = await fetch(`${prometheus.url}/api/v1/${path}`, { method: 'POST', body })
      const { status, errorType, data } = (await response.json()) as Readonly<Record<string, unknown>>
      return { status, errorType, data }
    }
    return {
      instant: await post('query', { time: String(end) }),
      range: await post('query_range', { start: String(end - 600), end: String(end), step: '60' }),
    }
  }

  const read = async (query: string, params: Readonly<Record<string, string>> = {}) => {
    const [content] = await provider.read(
      { path: 'query', params: new Map(Object.entries({ query, ...params })) },
      context,
    )
    return JSON.stringify(content)
  }

  test('a query without the allow-list shows the hidden metric', async () => {
    expect(JSON.stringify(await ask('canary_total'))).toContain('424242')
  })

  describe('an allowed query gives the same answer as without the allow-list', () => {
    test.each(answered)('%j', async (query) => {
      const { text, metrics: named } = parsePromql(query)
      const original = await ask(query)
      expect(await ask(text)).toEqual(original)
      expect(original.instant.status).toBe('success')
      expect(JSON.stringify(original.instant.data)).not.toContain('424242')
      // Of these the metric is not there on purpose.
      const isEmpty = JSON.stringify(original.instant.data).includes('"result":[]')
      expect(isEmpty && !named.includes('queue:length:sum')).toBe(false)
      await read(query)
      expect(relay.queries).toContain(text)
    })

    test.each(sinceVersion3)(
      '%j, which older versions of Prometheus refuse with and without the list',
      async (query) => {
        const original = await ask(query)
        const rewritten = await ask(parsePromql(query).text)
        expect(rewritten).toEqual(original)
        expect(['success', 'error']).toContain(original.instant.status)
      },
    )
  })

  test.each(denied)('the query %j is refused before anything is sent', async (query) => {
    for (const params of [{}, { start: '-1h' }, { as: 'chart' }, { as: 'csv' }])
      await expect(read(query, params)).rejects.toMatchObject({
        kind: 'invalid',
        detail: { reason: 'parameter', parameter: 'query' },
      })
    expect(relay.requests()).toBe(0)
  })

  test('random queries that pass give the same answer, and none discloses the hidden metric', async () => {
    const count = volumeOf(800, 400)
    let state = 20_261_122
    const random = (below: number) => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
      return (state >>> 8) % below
    }
    const pieces = [
      ...answered,
      ...denied,
      ...[
        'up',
        'canary_total',
        'http_requests_total',
        '{',
        '}',
        '(',
        ')',
        '"',
        "'",
        '`',
        '\\',
        '#',
        '\n',
        '\r',
        ',',
        '=',
        '=~',
      ],
      ...[
        ' or ',
        ' + ',
        'by(job)',
        'offset 5m',
        '@ end()',
        '[5m]',
        '[5m:1m]',
        '__name__',
        '"canary_total"',
        '\u00a0',
        '\t',
      ],
    ]
    const makeQuery = (): string => {
      const parts = Array.from({ length: 1 + random(4) }, () => pieces[random(pieces.length)] ?? '')
      const text = parts.join(['', ' ', ' or ', '\n'][random(4)])
      const at = random(text.length + 1)
      return random(3) === 0 ? text.slice(0, at) + (pieces[random(pieces.length)] ?? '') + text.slice(at) : text
    }
    let passed = 0
    for (let i = 0; i < count; i++) {
      const query = makeQuery()
      relay.clear()
      try {
        const content = await read(query)
        expect(content, query).not.toMatch(/424242|canary-value/)
      } catch (error) {
        if (!isResourceError(error)) throw error
      }
      if (relay.requests() === 0) continue
      passed++
      for (const text of relay.queries) {
        const rewritten = await ask(text)
        expect(JSON.stringify(rewritten), query).not.toMatch(/424242|canary-value/)
        const original = await ask(query)
        expect(rewritten.instant, query).toEqual(original.instant)
      }
    }
    expect(passed).toBeGreaterThan(count / 10)
  })
})
