import { request } from 'node:http'
import { describe, expect, test } from 'vitest'
import { countOutcomes } from '../../src/config/open-mount.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { createMetricsRegistry, type MetricsRegistry } from '../../src/core/log.ts'
import { addToken } from '../../src/server/auth/token-file.ts'
import { formatExposition } from '../../src/server/http/other-routes.ts'
import { type HttpOptions, serveHttp } from '../../src/server/index.ts'
import { limited } from '../../src/wrap/limited.ts'
import { endings } from '../support/endings.ts'
import { createFolder } from '../support/folder.ts'
import { memory } from '../support/memory.ts'

interface Answer {
  readonly status: number
  readonly text: string
  readonly type: string | undefined
}

function ask(
  url: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  method = 'GET',
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const asking = request({ host: hostname, port, path, method, headers, agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, text, type: response.headers['content-type'] }),
      )
    })
    asking.on('error', reject).end()
  })
}

async function serve(options: Partial<HttpOptions>, measurements: MetricsRegistry = createMetricsRegistry()) {
  const catalog = createCatalog({
    mounts: [{ address: 'x://secret-mount', provider: memory({ 'secret-path.txt': 'a' }) }],
  })
  const service = await serveHttp({
    ...{ view: catalog.view, name: 't', version: '1', log: () => {}, host: '127.0.0.1', port: 0, measurements },
    ...options,
  })
  endings.push(() => service.close())
  return service.url
}

/** A token of a file with one principal, who has a role. */
async function withToken(role: string) {
  const folder = createFolder()
  endings.push(() => folder.remove())
  const tokens = folder.at('tokens.json')
  const { token } = await addToken(tokens, { roles: [role], name: 'test' })
  return { tokens, token }
}

describe('the endpoint /metrics', () => {
  test('is absent unless it is switched on', async () => {
    for (const metrics of [undefined, false] as const) {
      const url = await serve(metrics === undefined ? {} : { metrics })
      expect(await ask(url, '/metrics')).toMatchObject({ status: 404 })
    }
  })

  test('counts the work of the server, and names no resource and no principal', async () => {
    const url = await serve({ metrics: true })
    await ask(url, '/mcp?uri=x://secret-mount/secret-path.txt')
    await ask(url, `/${'x'.repeat(9000)}`)
    const { status, text, type } = await ask(url, '/metrics')
    expect([status, type]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8'])
    expect(text).toMatch(
      /^# HELP hikidashi_requests_total The number of requests that came over HTTP\.\n# TYPE hikidashi_requests_total counter\nhikidashi_requests_total 3$/m,
    )
    expect(text).toMatch(/^hikidashi_refused_total\{reason="uri"\} 1$/m)
    expect(text).toMatch(/^# TYPE hikidashi_connections gauge\nhikidashi_connections \d+$/m)
    expect(text).toMatch(/^# TYPE hikidashi_sessions gauge\nhikidashi_sessions 0$/m)
    expect(text).not.toMatch(/secret|x:\/\/|local/)
    for (const line of text.trimEnd().split('\n'))
      expect(line).toMatch(/^(?:# (?:HELP|TYPE) \w+ .+|\w+(?:\{\w+="\w+"\})? [\d.e+-]+)$/)
  })

  test('answers at exactly one path, answers only GET and HEAD, and refuses web pages of other origins', async () => {
    const url = await serve({ metrics: true })
    for (const path of ['/metrics/', '/metrics?x', '/Metrics', '//metrics', '/metrics%2f', '/mcp/../metrics'])
      expect((await ask(url, path)).status, path).toBe(404)
    expect(await ask(url, '/metrics', {}, 'HEAD')).toMatchObject({ status: 200, text: '' })
    expect((await ask(url, '/metrics', {}, 'POST')).status).toBe(405)
    expect((await ask(url, '/metrics', { host: 'evil.example' })).status).toBe(403)
    expect((await ask(url, '/metrics', { origin: 'http://evil.example' })).status).toBe(403)
  })

  test('is for this machine only without authentication: not for requests that a proxy forwards', async () => {
    const url = await serve({ metrics: true })
    for (const header of ['x-forwarded-for', 'forwarded', 'x-real-ip', 'via'])
      expect(await ask(url, '/metrics', { [header]: '203.0.113.7' }), header).toMatchObject({ status: 404 })
  })

  test('is for callers with a token if tokens are required, and only for the configured roles', async () => {
    const { tokens, token } = await withToken('monitor')
    const authorization = { authorization: `Bearer ${token}` }
    for (const [metrics, status] of [
      [true, 200],
      [{ roles: ['monitor', 'other'] }, 200],
      [{ roles: ['other'] }, 404],
    ] as const) {
      const url = await serve({ metrics, auth: { tokens } })
      expect((await ask(url, '/metrics')).status).toBe(401)
      expect((await ask(url, '/metrics', { authorization: 'Bearer wrong' })).status).toBe(401)
      expect((await ask(url, '/metrics', authorization)).status).toBe(status)
    }
  })
})

describe('the text format of metrics', () => {
  test('has help, type and samples, with the special characters of labels and help escaped', () => {
    const labels = { a: 'x"y\\z\nw' }
    const samples = [
      { labels, value: 1.5 },
      { value: Number.NaN },
      { value: Number.POSITIVE_INFINITY },
      { value: Number.NEGATIVE_INFINITY },
    ]
    expect(formatExposition([{ name: 'm', type: 'gauge', help: 'a\\b\nc', samples }])).toBe(
      '# HELP m a\\\\b\\nc\n# TYPE m gauge\nm{a="x\\"y\\\\z\\nw"} 1.5\nm NaN\nm +Inf\nm -Inf\n',
    )
  })
})

describe('the metric of answers of sources', () => {
  test('counts answers by the number of the mount, its provider and the outcome', async () => {
    const measurements = createMetricsRegistry()
    const provider = limited(memory({ a: 'a' }), countOutcomes('files', { measurements, mountNumber: 2 }))
    const context = { principal: { id: 'x', roles: [] }, signal: new AbortController().signal }
    await provider.read({ path: 'a', params: new Map() }, context)
    await provider.read({ path: 'b', params: new Map() }, context).catch(() => {})
    for await (const _ of provider.list({}, context));
    expect(measurements.read()[0]).toMatchObject({
      name: 'hikidashi_source_answers_total',
      samples: [
        { labels: { mount: '2', provider: 'files', outcome: 'ok' }, value: 2 },
        { labels: { mount: '2', provider: 'files', outcome: 'not_found' }, value: 1 },
      ],
    })
  })
})
