import type { ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import { type ErrorKind, isResourceError } from '../../src/core/errors.ts'
import type { Provider } from '../../src/core/provider.ts'
import { metricTemplates } from '../../src/providers/metrics/complete.ts'
import { metrics, type PrometheusMount } from '../../src/providers/metrics/index.ts'
import { endings } from '../support/endings.ts'
import { type Asked, type StandIn, type StandInOptions, standIn } from '../support/prometheus-stand-in.ts'
import { eventually, startWatching } from '../support/watching.ts'

const context = () => ({ principal: { id: 'x', roles: [] }, signal: new AbortController().signal })

async function open(given: StandInOptions = {}, options: Partial<PrometheusMount> = {}) {
  const api = await standIn({ metrics: { up: { type: 'gauge' }, requests_total: { type: 'counter' } }, ...given })
  endings.push(api.close)
  const provider = await metrics({ url: api.url, ...options })
  endings.push(async () => provider.close?.())
  return { api, provider, read: reading(provider) }
}

const reading =
  (provider: Provider) =>
  async (path: string, params: Readonly<Record<string, string>> = {}): Promise<string> => {
    const [content] = await provider.read({ path, params: new Map(Object.entries(params)) }, context())
    if (content === undefined || !('text' in content)) throw new Error('no text')
    return content.text
  }

async function failureOf(
  work: Promise<unknown>,
): Promise<{ kind: ErrorKind; message: string; reason: unknown; parameter: unknown }> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (!isResourceError(error)) throw new Error(`it came to ${String(error)}`)
  const { reason, parameter } = error.detail
  return { kind: error.kind, message: error.message, reason, parameter }
}

const json = (response: ServerResponse, status: number, body: unknown) => {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  return true
}
const isQuery = ({ path }: Asked) => path.startsWith('query')
const lastQuery = ({ asked }: StandIn) => asked.filter(isQuery).at(-1)?.fields

describe('a request to Prometheus', () => {
  test('is for one metric with quoted labels, over a span with a suitable step', async () => {
    const { api, read } = await open()
    await read('series/up', {
      match: '{job="a\\"} or vector(1) #",x!~`.*`}',
      start: '2026-11-21T10:00Z',
      end: '2026-11-21T11:00Z',
    })
    expect(Object.fromEntries(lastQuery(api) ?? [])).toMatchObject({
      query: 'up{job="a\\"} or vector(1) #",x!~".*"}',
      start: '1795255200',
      end: '1795258800',
      step: '15',
      timeout: '16000ms',
    })
    await read('series/up', { start: '-30d' })
    expect(lastQuery(api)?.get('step')).toBe('300')
    await read('series/up', { start: '-1d', step: '1h' })
    expect(lastQuery(api)?.get('step')).toBe('3600')
  })

  test('has a query as it was written, at one time or over a span, in a body', async () => {
    const { api, read } = await open()
    await read('query', { query: 'sum(up) # 日本語' })
    expect(api.asked.at(-1)).toMatchObject({ method: 'POST', path: 'query' })
    expect(lastQuery(api)?.get('query')).toBe('sum(up) # 日本語')
    await read('query', { query: 'up', start: '-1h' })
    expect(api.asked.at(-1)?.path).toBe('query_range')
    await read('query', { query: 'up', as: 'chart' })
    expect(api.asked.at(-1)?.path).toBe('query_range')
  })

  test('goes to the configured URL, also with a path, with the configured credentials; an invalid URL is refused', async () => {
    const { api } = await open()
    for (const [credentials, header] of [
      [{ bearer: 'secret-token' }, 'Bearer secret-token'],
      [{ user: 'u', password: 'p:ä' }, `Basic ${Buffer.from('u:p:ä').toString('base64')}`],
    ] as const) {
      await reading(await metrics({ url: `${api.url}/some/path/`, credentials }))('series/up')
      expect(api.asked.at(-1)?.headers.authorization).toBe(header)
    }
    for (const url of ['ftp://x', 'x', 'http://u:p@x', 'http://x?y', 'http://x#y', 'file:///x'])
      expect((await failureOf(metrics({ url }))).kind).toBe('invalid')
  })

  test.each([
    ['series/up', { as: 'pdf' }, 'as'],
    ['series/up', { start: 'soon' }, 'start'],
    ['series/up', { start: 'now', end: '-1h' }, 'start'],
    ['series/up', { step: '1s', start: '-7d' }, 'step'],
    ['series/up', { match: 'job' }, 'match'],
    ['query', {}, 'query'],
    ['query', { query: 'x'.repeat(5000) }, 'query'],
  ] as const)('is not sent for %s with %j', async (path, params, parameter) => {
    const { api, read } = await open()
    expect(await failureOf(read(path, params))).toMatchObject({ kind: 'invalid', reason: 'parameter', parameter })
    expect(api.asked.filter(isQuery)).toEqual([])
  })
})

describe('a failure of Prometheus', () => {
  const secret = 'host-17.internal'
  const api = (status: number, errorType: string, error: string): StandInOptions => ({
    answer: (asked, response) => isQuery(asked) && json(response, status, { status: 'error', errorType, error }),
  })
  const page = (status: number, headers = {}): StandInOptions => ({
    answer: (asked, response) => {
      if (!isQuery(asked)) return false
      response.writeHead(status, { 'content-type': 'text/html', ...headers }).end(`<html>${secret}</html>`)
      return true
    },
  })
  const query = { query: 'sum(' }

  test.each([
    [
      'an invalid query',
      api(400, 'bad_data', 'invalid parameter "query": 1:5: parse error: unclosed\n left\u202e parenthesis'),
      'invalid',
      /^The query is not valid PromQL \(line 1, column 5\): unclosed left parenthesis$/,
    ],
    [
      'a range vector',
      api(
        400,
        'bad_data',
        'invalid parameter "query": invalid expression type "range vector" for range query, must be Scalar or instant Vector',
      ),
      'invalid',
      /rate\(…\) around a range/,
    ],
    [
      'another bad parameter',
      api(400, 'bad_data', `invalid parameter ${secret}`),
      'invalid',
      /rejects the query or its times/,
    ],
    [
      'a join',
      api(
        422,
        'execution',
        `found duplicate series for the match group {host="${secret}"}; many-to-many matching not allowed`,
      ),
      'invalid',
      /add on\(…\) or ignoring\(…\)/,
    ],
    [
      'too many samples',
      api(422, 'execution', 'query processing would load too many samples into memory in query execution'),
      'too-large',
      /shorter range, a larger step/,
    ],
    [
      'a query that takes too long',
      api(503, 'timeout', `query timed out at ${secret}`),
      'too-large',
      /exceeds the time-out of Prometheus/,
    ],
    [
      'another failure of a query',
      api(422, 'execution', `remote read ${secret} failed`),
      'invalid',
      /could not evaluate the query/,
    ],
    ['a fault of its own', api(500, 'internal', secret), 'unavailable', /status 500/],
    ['credentials that are refused', page(401), 'unavailable', /set "bearer" or "basic"/],
    ['a status of 404', page(404), 'unavailable', /no API of Prometheus at "url"/],
    ['a page of HTML', page(200), 'unavailable', /does not answer like Prometheus/],
    ['a redirect', page(302, { location: 'http://127.0.0.1:1/' }), 'unavailable', /set "url" to the target/],
    ['a gateway', page(502), 'unavailable', /status 502/],
  ] as const)(
    'by %s gives advice, and shows no host, address or control character of its answer',
    async (_, given, kind, message) => {
      const { read } = await open(given)
      const failure = await failureOf(read('query', query))
      expect(failure).toMatchObject({ kind, message: expect.stringMatching(message) as string })
      expect(JSON.stringify(failure)).not.toMatch(/host-17|\u202e|127\.0\.0\.1/)
    },
  )

  test('for a metric with matchers that Prometheus rejects says so, and shows no generated query', async () => {
    const { read } = await open(api(400, 'bad_data', 'invalid parameter "query": 1:5: parse error: something'))
    const failure = await failureOf(read('series/up', { match: '{job=~"["}' }))
    expect(failure).toMatchObject({ kind: 'invalid', message: expect.stringContaining('rejects the label matchers') })
    expect(failure.message).not.toContain('something')
  })

  test.each([
    ['cut off', '{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,"1"]'],
    ['no result', '{"status":"success","data":{"resultType":"matrix"}}'],
    ['no labels', '{"status":"success","data":{"resultType":"matrix","result":[{"values":[[1,"1"]]}]}}'],
    ['no samples', '{"status":"success","data":{"resultType":"matrix","result":[{"metric":{}}]}}'],
    ['invalid samples', '{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1]]}]}}'],
    [
      'decreasing times',
      '{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[2,"1"],[1,"1"]]}]}}',
    ],
    ['nothing', ''],
    ['null', 'null'],
    ['not UTF-8', Buffer.from([0x7b, 0xff, 0x7d])],
  ])('by an invalid answer is reported: %s', async (_, body) => {
    const { read } = await open({
      answer: (asked, response) => {
        if (isQuery(asked)) response.writeHead(200, { 'content-type': 'application/json' }).end(body)
        return isQuery(asked)
      },
    })
    expect(await failureOf(read('series/up'))).toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining('does not answer like Prometheus') as string,
    })
  })

  test('by a missing server or a closed connection is reported, and ends when the server is back', async () => {
    const { provider, api, read } = await open()
    await read('series/up')
    api.set({ answer: (_, response) => response.destroy() !== undefined })
    expect(await failureOf(read('query', { query: 'up' }))).toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining('closed the connection') as string,
    })
    api.set({ answer: () => false })
    expect(await read('query', { query: 'up' })).toContain('"series"')
    await api.close()
    expect(await failureOf(reading(provider)('query', { query: 'up' }))).toMatchObject({ kind: 'unavailable' })
  })

  test('by a missing or endless answer gives a time-out; an abort ends it at once', async () => {
    const { read, provider } = await open(
      {
        answer: (asked, response) =>
          isQuery(asked) && (asked.fields.get('query') === 'a' || response.writeHead(200).write('{"status"')),
      },
      { timeoutMs: 300 },
    )
    for (const query of ['a', 'b'])
      expect(await failureOf(read('query', { query }))).toMatchObject({
        kind: 'unavailable',
        message: expect.stringContaining('took longer than 300 ms') as string,
      })
    const slow = await open({ answer: isQuery })
    const abort = new AbortController()
    const asking = slow.provider.read(
      { path: 'query', params: new Map([['query', 'x']]) },
      { ...context(), signal: abort.signal },
    )
    await eventually(() => slow.api.asked.length > 0, 'it is asked')
    abort.abort(new Error('enough'))
    await expect(asking).rejects.toThrow('enough')
    await provider.close?.()
  })
})

describe('an answer of Prometheus over the limit', () => {
  const many = (count: number, points: number): StandInOptions => {
    const values = JSON.stringify(Array.from({ length: points }, (_, i) => [1000 + i * 15, String(i % 97)]))
    const result = Array.from({ length: count }, (_, i) => `{"metric":{"__name__":"up","i":"${i}"},"values":${values}}`)
    const body = `{"status":"success","data":{"resultType":"matrix","result":[${result.join(',')}]}}`
    return { answer: (asked, response) => isQuery(asked) && response.writeHead(200).end(body) !== undefined }
  }

  test('of series: the allowed number is shown, and the others are counted', async () => {
    const { read } = await open(many(250, 4), { maxSeries: 30 })
    const shown = JSON.parse(await read('series/up')) as { omitted: unknown; series: unknown[]; summary: string }
    expect(shown.series).toHaveLength(30)
    expect(shown.omitted).toEqual({ series: 220, of: 250 })
    expect(shown.summary).toContain('30 of 250 series')
  })

  test('of points: each of 100 series of 10,000 points has at most 120 points, with the largest value', async () => {
    const { read } = await open(many(100, 10_000))
    const text = await read('series/up')
    expect(text.length).toBeLessThan(400_000)
    const shown = JSON.parse(text) as { series: { points: [number, number][]; pointsInAll: number }[] }
    expect(shown.series).toHaveLength(100)
    for (const { points, pointsInAll } of shown.series) {
      expect(pointsInAll).toBe(10_000)
      expect(points.length).toBeLessThanOrEqual(120)
      expect(points.some(([, value]) => value === 96)).toBe(true)
    }
  })

  test('of bytes: the read fails as too large, with advice for a smaller request', async () => {
    const { read } = await open(many(100, 1000), { maxBytes: 64 * 1024 })
    expect(await failureOf(read('series/up'))).toMatchObject({
      kind: 'too-large',
      reason: 'too-large',
      message: expect.stringContaining('a shorter range') as string,
    })
  })
})

describe('an answer of Prometheus with another type than series', () => {
  test.each([
    ['a number', { resultType: 'scalar', result: [1000, '42'] }, '1 series from'],
    ['a text', { resultType: 'string', result: [1000, 'x'] }, 'is a string, not a series'],
    [
      'native histograms',
      { resultType: 'matrix', result: [{ metric: { a: 'b' }, histograms: [] }] },
      '1 series are native histograms',
    ],
  ])('such as %s is summarized', async (_, data, words) => {
    const { read } = await open({ data: { query_range: data } })
    const { summary } = JSON.parse(await read('query', { query: 'x', start: '-1h' })) as { summary: string }
    expect(summary).toContain(words)
    expect(summary).not.toMatch(/left out|Ask for an earlier/)
  })
})

describe('the listing of metrics', () => {
  test('of 12,000 metrics is in order, resumes in the middle, and sends few requests', async () => {
    const names = Array.from(
      { length: 12_000 },
      (_, i) => [`metric_${i}`, { type: 'gauge', help: `Number ${i}.` }] as const,
    )
    const { provider, api } = await open({ metrics: Object.fromEntries(names) })
    const list = async (after?: string) => {
      const paths: string[] = []
      for await (const { path } of provider.list(after === undefined ? {} : { after }, context())) paths.push(path)
      return paths
    }
    const all = await list()
    expect(all).toHaveLength(12_003)
    expect(all).toEqual([...all].sort())
    expect(await list(all[6000])).toEqual(all.slice(6001))
    expect(api.asked.length).toBeLessThan(10)
    expect(await provider.stat?.('series/metric_77', context())).toEqual({
      path: 'series/metric_77',
      description: 'Number 77. (gauge)',
      mimeType: 'application/json',
    })
  })

  test('has a metric that is new in Prometheus, and simultaneous reads of an absent metric share requests', async () => {
    const { provider, api, read } = await open()
    await read('series/up')
    api.set({ metrics: { up: {}, fresh: {} } })
    await expect.poll(async () => read('series/fresh').catch(() => ''), { timeout: 20_000 }).toContain('"fresh"')
    expect(await provider.stat?.('series/fresh', context())).toMatchObject({ path: 'series/fresh' })
    const before = api.asked.length
    await Promise.allSettled(Array.from({ length: 50 }, () => read('series/none')))
    expect(api.asked.length - before).toBeLessThan(50)
  })

  test('describes a metric by its name alone if Prometheus has no metadata', async () => {
    const { provider } = await open({
      answer: ({ path }, response) => path === 'metadata' && response.writeHead(404).end() !== undefined,
    })
    expect(await provider.stat?.('series/requests_total', context())).toMatchObject({ description: '(counter)' })
  })
})

describe('a completion of metrics', () => {
  const [series, query] = metricTemplates.map(({ template }) => template)
  const complete = async (
    template = '',
    name: string,
    value: string,
    filled: Readonly<Record<string, string>> = {},
  ) => {
    const { provider } = await open({ metrics: { up: {}, 'a/up': {}, uptime_seconds: {} } })
    const request = { template, argument: { name, value }, arguments: new Map(Object.entries(filled)) }
    return (await provider.complete?.(request, context()))?.values
  }

  test.each([
    ['metric', 'up', ['up', 'uptime_seconds', 'U__a_2f_up']],
    ['metric', 'zz', []],
    ['as', 'c', ['csv', 'chart']],
    ['start', '-1', ['-15m', '-1h', '-12h', '-1d']],
    ['end', 'n', ['now']],
    ['step', '1', ['15s', '1m', '15m', '1h', '1d']],
    ['match', '', ['job="']],
    ['match', '{jo', ['{job="']],
    ['match', 'job="', ['job="x"', 'job="y"']],
    ['match', '{job="x",job!="y', ['{job="x",job!="y"']],
    ['match', '{job=x,job="', []],
    ['match', 'job="x" and', []],
  ] as const)('of %s after %j has the values that fit', async (name, value, values) => {
    expect(await complete(series, name, value, { metric: 'up' })).toEqual(values)
  })

  test('of a query completes its last name', async () => {
    expect(await complete(query, 'query', 'sum(rate(up')).toEqual(['sum(rate(up', 'sum(rate(uptime_seconds'])
    expect(await complete(query, 'query', 'up{job="up')).toEqual([])
    expect(await complete(query, 'match', 'x')).toEqual([])
  })
})

describe('a watch of metrics', () => {
  test('reports alerts, new samples, and new and removed metrics, and nothing else', async () => {
    const { provider, api } = await open({}, { intervalMs: 100 })
    const watching = await startWatching(provider)
    const looks = () => api.asked.filter(({ path }) => path === 'alerts').length
    const before = looks()
    await eventually(() => looks() >= before + 3, 'it looks again')
    expect(watching.changes).toEqual([])
    api.set({ data: { alerts: { alerts: [{ labels: { alertname: 'Down' }, state: 'firing' }] } } })
    await watching.until('alerts')
    expect(watching.summary()).toEqual(['alerts'])
    api.set({ data: { 'status/tsdb': { headStats: { maxTime: 2 } } } })
    await watching.until('series/', 'query')
    api.set({ metrics: { up: {}, fresh: {} } })
    await watching.until('series/fresh', 'series/requests_total')
    expect(watching.summary()).toEqual(expect.arrayContaining(['+series/fresh', '+series/requests_total']))
    await watching.stop()
  })

  test('continues when Prometheus is back, and reports the outage', async () => {
    const { provider, api } = await open({}, { intervalMs: 100 })
    const watching = await startWatching(provider)
    api.set({ answer: (_, response) => response.writeHead(503).end() !== undefined })
    await eventually(() => provider.degraded?.() === 'unavailable', 'it is away')
    api.set({ answer: () => false, data: { 'status/tsdb': { headStats: { maxTime: 9 } } } })
    await watching.until('series/')
    expect(provider.degraded?.()).toBeUndefined()
    await watching.stop()
  })

  test('treats every poll as new samples if the API does not report them', async () => {
    const { provider } = await open(
      { answer: ({ path }, response) => path === 'status/tsdb' && response.writeHead(404).end() !== undefined },
      { intervalMs: 100 },
    )
    const watching = await startWatching(provider)
    await watching.until('series/', 'query')
    await watching.stop()
  })
})

describe('the pages of the state of Prometheus', () => {
  test('show problems, without URLs, folders and details that always change', async () => {
    const { read } = await open({
      data: {
        alerts: {
          alerts: [
            {
              labels: { alertname: 'Down', job: 'a' },
              annotations: { summary: 'It is down.' },
              state: 'firing',
              activeAt: '2026-11-21T10:00:00Z',
              value: '1e+00',
              generatorURL: 'http://host-17/g',
            },
          ],
        },
        rules: {
          groups: [
            {
              name: 'g',
              file: '/etc/secret-folder/rules.yml',
              interval: 15,
              evaluationTime: 0.1,
              rules: [
                {
                  name: 'r',
                  type: 'recording',
                  query: 'sum(up)',
                  health: 'err',
                  lastError: 'x',
                  lastEvaluation: 'now',
                },
              ],
            },
          ],
        },
        targets: {
          activeTargets: [
            {
              labels: { job: 'a', instance: 'b:1' },
              health: 'down',
              scrapeUrl: 'http://b:1/metrics?token=hunter2',
              discoveredLabels: { __param_token: 'hunter2' },
              lastError: 'Get "http://b:1/metrics?token=hunter2": connection refused',
              lastScrape: 'now',
            },
          ],
        },
      },
    })
    const pages = await Promise.all(['alerts', 'rules', 'targets'].map((path) => read(path)))
    expect(pages.map((page) => JSON.parse(page) as unknown)).toEqual([
      {
        summary: '1 alert: 1 firing.',
        alerts: [
          {
            name: 'Down',
            state: 'firing',
            activeAt: '2026-11-21T10:00:00Z',
            value: '1e+00',
            labels: { job: 'a' },
            annotations: { summary: 'It is down.' },
          },
        ],
      },
      {
        summary: '1 rule in 1 group; 1 cannot be evaluated.',
        groups: [
          {
            name: 'g',
            interval: 15,
            file: 'rules.yml',
            rules: [{ name: 'r', type: 'recording', query: 'sum(up)', health: 'err', lastError: 'x', labels: {} }],
          },
        ],
      },
      {
        summary: '1 target: 1 down. Down: a b:1.',
        targets: [{ job: 'a', instance: 'b:1', health: 'down', lastError: 'connection refused' }],
      },
    ])
    expect(pages.join('')).not.toMatch(/hunter2|host-17|secret-folder/)
  })

  test('list at most 1,000 alerts, and count those that they leave out', async () => {
    const alerts = Array.from({ length: 1500 }, (_, i) => ({ labels: { alertname: `A${i}` }, state: 'pending' }))
    const { read } = await open({ data: { alerts: { alerts } } })
    expect(JSON.parse(await read('alerts'))).toMatchObject({
      summary: '1500 alerts: 1500 pending.',
      omitted: { alerts: 500, of: 1500 },
    })
  })

  test('list at most 1,000 rules of a group, and count those that they leave out', async () => {
    const rules = Array.from({ length: 1200 }, (_, i) => ({ name: `r${i}`, health: i < 1100 ? 'ok' : 'err' }))
    const { read } = await open({ data: { rules: { groups: [{ name: 'g', rules }] } } })
    expect(JSON.parse(await read('rules'))).toMatchObject({
      summary: '1200 rules in 1 group; 100 cannot be evaluated.',
      groups: [{ name: 'g', omitted: { rules: 200, of: 1200 } }],
    })
  })
})
