import { describe, expect, test } from 'vitest'
import { createMetricsRegistry, type MetricFamily } from '../../src/core/log.ts'
import type { Provider } from '../../src/core/provider.ts'
import { measureProcess, metrics, type SelfMount } from '../../src/providers/metrics/index.ts'
import { createHistory, pointsIn } from '../../src/providers/metrics/self.ts'
import { endings } from '../support/endings.ts'
import { startWatching } from '../support/watching.ts'

const context = () => ({ principal: { id: 'x', roles: [] }, signal: new AbortController().signal })

async function read(provider: Provider, path: string, params: Readonly<Record<string, string>> = {}): Promise<string> {
  const [content] = await provider.read({ path, params: new Map(Object.entries(params)) }, context())
  return content !== undefined && 'text' in content ? content.text : ''
}

async function open(options: Partial<SelfMount> = {}) {
  const measurements = createMetricsRegistry()
  let count = 0
  measurements.add(() => [
    {
      name: 'work_total',
      type: 'counter',
      help: 'Work that was done.',
      samples: ['ok', 'failed'].map((outcome) => ({ labels: { outcome }, value: ++count })),
    },
    { name: 'room_bytes', type: 'gauge', help: 'Room.', samples: [{ value: 1024 }] },
  ])
  const provider = await metrics({ source: 'self', measurements, intervalMs: 100, ...options })
  endings.push(() => provider.close?.())
  return provider
}

describe('the metrics of this process', () => {
  test('are listed, read, matched, and shown as a table and as a picture', async () => {
    const provider = await open()
    const paths: string[] = []
    for await (const { path } of provider.list({}, context())) paths.push(path)
    expect(paths).toEqual(['series/room_bytes', 'series/work_total'])
    const match = '{outcome!="ok"}'
    await expect
      .poll(
        async () =>
          (JSON.parse(await read(provider, 'series/work_total', { match })) as Shown).series[0]?.points.length,
        { timeout: 30_000 },
      )
      .toBeGreaterThan(3)
    expect(await read(provider, 'series/room_bytes', { as: 'csv', start: '-1h' })).toMatch(
      /^time,value\r\n2.*Z,1024\r\n/,
    )
    expect(await read(provider, 'series/work_total', { as: 'chart' })).toContain('<path ')
    await expect(read(provider, 'alerts')).rejects.toMatchObject({ kind: 'not-found' })
    expect(await read(provider, 'series/work_total', { match: '{outcome="ok",none=""}' })).toContain(': 1 series')
  })

  test('accept no queries, and suggest none', async () => {
    const provider = await open()
    const templates = await provider.templates?.(context())
    expect(templates?.map(({ template }) => template)).toEqual(['series/{metric}{?match,start,end,step,as}'])
    await expect(read(provider, 'query', { query: 'room_bytes' })).rejects.toMatchObject({ kind: 'not-found' })
    expect(await read(provider, 'series/work_total')).not.toMatch(/query shows|in a query/)
  })

  test.each(['=~', '!~'])('with a label matched by %s are refused with advice', async (operator) => {
    await expect(read(await open(), 'series/work_total', { match: `{outcome${operator}"f.*"}` })).rejects.toMatchObject(
      {
        kind: 'invalid',
        message: expect.stringContaining('let Prometheus scrape /metrics') as string,
      },
    )
  })

  interface Shown {
    readonly series: readonly { readonly points: readonly unknown[] }[]
  }

  test('are reported as changed when they are sampled', async () => {
    const watching = await startWatching(await open())
    await watching.until('series/')
    await watching.stop()
  })

  test('have the names that Prometheus clients use for a process', () => {
    const { measure, end } = measureProcess()
    endings.push(end)
    const all = new Map(measure().map((one) => [one.name, one.samples[0]?.value]))
    expect(all.get('process_resident_memory_bytes')).toBeGreaterThan(10 * 2 ** 20)
    expect(all.get('process_cpu_seconds_total')).toBeGreaterThan(0)
    expect(Math.abs((all.get('process_start_time_seconds') ?? 0) - Date.now() / 1000)).toBeLessThan(24 * 3600)
    expect(all.get('process_open_fds')).toBeGreaterThan(2)
    expect(all.get('nodejs_eventloop_lag_p99_seconds')).toBeGreaterThanOrEqual(0)
  })
})

describe('metrics that several parts of a server add to a registry', () => {
  test('with one name are one metric, until they are removed', () => {
    const measurements = createMetricsRegistry()
    const of = (mount: string): MetricFamily => ({
      name: 'a',
      type: 'gauge',
      help: 'A.',
      samples: [{ labels: { mount }, value: 1 }],
    })
    measurements.add(() => [of('1')])
    const remove = measurements.add(() => [of('2')])
    expect(measurements.read()).toEqual([{ ...of('1'), samples: [...of('1').samples, ...of('2').samples] }])
    remove()
    expect(measurements.read()).toEqual([of('1')])
  })
})

describe('the history of metrics in memory', () => {
  const family = (value: number, labels = {}) =>
    [{ name: 'a', type: 'gauge', help: 'A.', samples: [{ labels, value }] }] as const

  test('keeps the latest 6,000 points of 1,000 series, in order', () => {
    const history = createHistory()
    for (let time = 1; time <= 7000; time++) history.add(time, family(time))
    history.add(5, family(5))
    const [line] = history.linesOf('a')
    expect([line?.times.length, line?.times[0], line?.times.at(-1)]).toEqual([6000, 1001, 7000])
    expect(line?.values).toEqual(line?.times)
    for (let index = 0; index < 2000; index++) history.add(7001 + index, family(1, { index: String(index) }))
    expect(history.linesOf('a')).toHaveLength(1000)
  })

  test('shows each sample of a span, or the last of each longer step', () => {
    const times = Array.from({ length: 100 }, (_, index) => index * 15)
    const line = { labels: new Map(), times, values: times.map((time) => time * 2) }
    expect([...pointsIn(line, { start: 30, end: 75, step: 15 }, 15).times]).toEqual([30, 45, 60, 75])
    const coarse = pointsIn(line, { start: 0, end: 600, step: 300 }, 15)
    expect([...coarse.times]).toEqual([285, 585, 600])
    expect([...coarse.values]).toEqual([570, 1170, 1200])
    expect(pointsIn(line, { start: 5000, end: 6000, step: 300 }, 15).times).toHaveLength(0)
  })
})
