import { rmSync } from 'node:fs'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openCatalog } from '../../src/config/build.ts'
import { loadConfig } from '../../src/config/load.ts'
import { planConfig } from '../../src/config/plan.ts'
import type { Catalog } from '../../src/core/catalog.ts'
import { createMetricsRegistry } from '../../src/core/log.ts'
import { type HttpService, serveHttp } from '../../src/server/index.ts'
import { createFolder, type Folder } from '../support/folder.ts'
import { freeze } from '../support/freeze.ts'
import {
  hasPrometheus,
  noPrometheus,
  openMetrics,
  type RunningPrometheus,
  startPrometheus,
} from '../support/prometheus.ts'
import { requires } from '../support/require.ts'
import { eventually } from '../support/watching.ts'

const hour = 3600

// What Prometheus does, it does when it comes to it.
vi.setConfig({ testTimeout: 120_000 })

requires(
  'prometheus',
  hasPrometheus,
  noPrometheus,
)('with a real Prometheus,', () => {
  let prometheus: RunningPrometheus
  let own: HttpService
  let ownCatalog: Catalog
  let service: HttpService
  let catalog: Catalog
  let client: Client
  let folder: Folder
  const told: string[] = []
  const end = Math.floor(Date.now() / 15_000) * 15
  const start = end - 6 * hour
  const peak = start + 3 * hour

  beforeAll(async () => {
    // What is scraped live is a hikidashi itself: its /metrics, on a port of its own.
    const measurements = createMetricsRegistry()
    measurements.add(() => [
      {
        name: 'probe_total',
        type: 'counter',
        help: 'A "probe" \\ of\nlines.',
        samples: [{ labels: { odd: 'a"b\\c\nd' }, value: 7 }],
      },
    ])
    folder = createFolder()
    folder.write({ 'a.txt': 'a' })
    const settings = { log: () => {}, measurements }
    ownCatalog = await openCatalog(
      [{ address: 'file:///a', config: { provider: 'files', root: folder.at('.') }, folder: folder.at('.') }],
      settings,
    )
    const common = { name: 't', version: '1', log: () => {}, host: '127.0.0.1', port: 0 }
    own = await serveHttp({ ...common, view: ownCatalog.view, measurements, metrics: true })
    await ownCatalog.view({ id: 'x', roles: [] }).read('file:///a/a.txt')

    const regular = (
      labels: Readonly<Record<string, string>>,
      at: (time: number, index: number) => number | undefined,
    ) => ({ labels, at })
    const history = openMetrics(
      [
        {
          name: 'queue_bytes',
          type: 'gauge',
          help: 'How much waits.',
          series: ['a', 'b', 'c'].map((host, index) =>
            regular({ host, job: 'past' }, (time) => {
              if (host === 'b' && time > peak && time < peak + hour) return undefined
              return time === peak && host === 'a' ? 5000 : 100 * (index + 1) + ((time / 15) % 10)
            }),
          ),
        },
        { name: 'jobs_total', type: 'counter', series: [regular({ job: 'past' }, (_, index) => index * 3)] },
        {
          name: 'many',
          type: 'gauge',
          series: Array.from({ length: 120 }, (_, i) =>
            regular({ i: String(i) }, (time) => (time > end - 300 ? i : undefined)),
          ),
        },
      ],
      start,
      end,
      15,
    )
    prometheus = await startPrometheus({
      history,
      config: `global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [rules.yml]
scrape_configs:
  - job_name: hikidashi
    static_configs: [{ targets: ['${new URL(own.url).host}'] }]
`,
      files: {
        'rules.yml': `groups:
  - name: own
    rules:
      - { alert: HikidashiDown, expr: 'up{job="hikidashi"} == 0', labels: { severity: page }, annotations: { summary: It is down. } }
`,
      },
    })
    folder.write({
      'hikidashi.json': JSON.stringify({
        mounts: {
          'metrics://prod': {
            provider: 'metrics',
            url: prometheus.url,
            interval: '1s',
            timeout: '10s',
            limits: { pause: '100ms' },
          },
        },
      }),
    })
    const loaded = await loadConfig(folder.at('hikidashi.json'))
    if ('problems' in loaded) throw new Error(JSON.stringify(loaded.problems))
    catalog = await openCatalog(planConfig(loaded.config), { log: () => {} })
    service = await serveHttp({ ...common, view: catalog.view })
    client = new Client({ name: 'test', version: '0' }, { versionNegotiation: { mode: 'auto' } })
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => void told.push(params.uri))
    await client.connect(new StreamableHTTPClientTransport(new URL(service.url)))
  }, 120_000)

  afterAll(async () => {
    await client?.close()
    await service?.close()
    await catalog?.close()
    await own?.close()
    await ownCatalog?.close()
    await prometheus?.remove()
    rmSync(folder.at('.'), { recursive: true, force: true })
  }, 60_000)

  const read = async (path: string): Promise<string> => {
    const [content] = (await client.readResource({ uri: `metrics://prod/${path}` })).contents
    return content !== undefined && 'text' in content ? content.text : ''
  }
  const shown = async (path: string) =>
    JSON.parse(await read(path)) as {
      readonly summary: string
      readonly step: number
      readonly omitted?: unknown
      readonly series: readonly {
        readonly labels: Record<string, string>
        readonly points: readonly (readonly [number, number])[]
        readonly gaps?: readonly unknown[]
        readonly pointsInAll?: number
      }[]
    }
  /** Asks until an answer is as wanted: what Prometheus does, it does when it likes. */
  const until = (path: string, pattern: RegExp) =>
    expect.poll(() => read(path).catch(() => ''), { timeout: 60_000, interval: 200 }).toMatch(pattern)

  test('a metrics mount lists its metrics', async () => {
    const { resources } = await client.listResources()
    const uris = resources.map(({ uri }) => uri)
    expect(uris).toEqual(
      expect.arrayContaining(
        ['alerts', 'rules', 'series/jobs_total', 'series/queue_bytes', 'targets'].map(
          (path) => `metrics://prod/${path}`,
        ),
      ),
    )
    const templates = (await client.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate)
    expect(templates).toContain('metrics://prod/series/{metric}{?match,start,end,step,as}')
  })

  test('the history of a metric has every series, its peak, and its gaps', async () => {
    const { series, summary, step } = await shown(`series/queue_bytes?start=${start}&end=${end}`)
    expect(series.map(({ labels }) => labels.host)).toEqual(['a', 'b', 'c'])
    expect(step).toBe(5)
    expect(summary).toContain('queue_bytes')
    expect(Math.max(...(series[0]?.points ?? []).map(([, value]) => value))).toBe(5000)
    expect(series[1]?.gaps).toHaveLength(1)
    expect(series[0]?.points.length).toBeLessThanOrEqual(240)
    expect(series[0]?.pointsInAll).toBeGreaterThan(4000)
  })

  test('a selector shows the matching series, at the requested step', async () => {
    const match = encodeURIComponent('host=~"b|c",job="past"')
    const { series, step } = await shown(`series/queue_bytes?match=${match}&start=-2h&step=10m`)
    expect(series.map(({ labels }) => labels.host)).toEqual(['b', 'c'])
    expect([step, series[1]?.points.length]).toEqual([600, 13])
  })

  test('a query is answered, and a wrong query gives an error with the position', async () => {
    const query = encodeURIComponent('sum by (job) (rate(jobs_total[5m]))')
    const { series } = await shown(`query?query=${query}&end=${end}`)
    expect(series[0]?.points[0]?.[1]).toBeCloseTo(0.2, 2)
    await expect(read(`query?query=${encodeURIComponent('sum(rate(jobs_total')}`)).rejects.toThrow(
      /not valid PromQL \(line 1, column \d+\)/,
    )
    await expect(read(`query?query=${encodeURIComponent('jobs_total[5m]')}&start=-1h`)).rejects.toThrow(
      /Put a function such as rate/,
    )
  })

  test('an answer of many series is truncated with the number of omitted series; a metric can be read as CSV or as a chart', async () => {
    const { series, omitted } = await shown(`series/many?start=${end - 200}&end=${end}`)
    expect([series.length, omitted]).toEqual([100, { series: 20, of: 120 }])
    const csv = await read('series/queue_bytes?as=csv&start=-2h&step=30m')
    expect(csv).toMatch(/^time,value,host,job\r\n2\d{3}-.*Z,1\d\d(?:\.\d+)?,a,past\r\n/)
    const { contents } = await client.readResource({ uri: 'metrics://prod/series/queue_bytes?as=chart&start=-6h' })
    expect(contents[0]).toMatchObject({
      mimeType: 'image/svg+xml',
      text: expect.stringMatching(/^<svg [\s\S]*<path /) as string,
    })
  })

  test('names of metrics, labels and their values are completed', async () => {
    const complete = async (name: string, value: string, given: Readonly<Record<string, string>> = {}) => {
      const ref = { type: 'ref/resource' as const, uri: 'metrics://prod/series/{metric}{?match,start,end,step,as}' }
      return (await client.complete({ ref, argument: { name, value }, context: { arguments: given } })).completion
        .values
    }
    expect(await complete('metric', 'queue')).toEqual(['queue_bytes'])
    expect(await complete('match', 'ho', { metric: 'queue_bytes' })).toEqual(['host="'])
    expect(await complete('match', '{job="past",host="', { metric: 'queue_bytes' })).toEqual(
      ['a', 'b', 'c'].map((host) => `{job="past",host="${host}"`),
    )
  })

  test('Prometheus scrapes the /metrics of hikidashi, with quotes, backslashes and line ends in labels unchanged', async () => {
    await until('targets', /"health": "up"/)
    await until('series/probe_total', /"odd":"a\\"b\\\\c\\nd"/)
    await until('series/hikidashi_requests_total', /\(counter\)/)
    await until('query?query=hikidashi_source_answers_total', /"outcome":"ok","provider":"files"/)
    expect(await read('series/probe_total')).toContain('A \\"probe\\" \\\\ of lines.')
  })

  test('new samples and alerts are reported', async () => {
    const uris = [
      'metrics://prod/series/hikidashi_requests_total',
      'metrics://prod/alerts',
      'metrics://prod/query?query=up',
    ]
    await client.listen({ resourceSubscriptions: uris })
    await eventually(() => told.includes(uris[0] ?? '') && told.includes(uris[2] ?? ''), 'new samples are told', 60_000)
    await own.close()
    await eventually(() => told.includes(uris[1] ?? ''), 'the alert is told', 60_000)
    await until('alerts', /HikidashiDown/)
    expect(await read('rules')).toContain('HikidashiDown')
    expect(JSON.parse(await read('alerts'))).toMatchObject({
      alerts: [{ name: 'HikidashiDown', state: 'firing', labels: { severity: 'page' } }],
    })
    expect(await read('targets')).toMatch(/"health": "down"/)
  })

  test('a Prometheus that is killed or frozen is reported as unavailable, and recovers by itself', async () => {
    await prometheus.kill()
    await expect(read('series/queue_bytes')).rejects.toThrow(/does not answer now/)
    await prometheus.start()
    await until('series/queue_bytes?start=-6h', /"host":"a"/)
    await freeze(prometheus.pid)
    await expect(read('query?query=up')).rejects.toThrow(/does not answer now/)
    prometheus.signal('SIGCONT')
    await until('query?query=vector(1)', /"series"/)
  })
})
