import { describe, expect, test } from 'vitest'
import { createMeasurements, type MetricFamily } from '../../src/core/log.ts'
import type { Provider } from '../../src/core/provider.ts'
import { overTime, parseExpression, pointsIn } from '../../src/providers/metrics/evaluate.ts'
import { measureProcess, metrics, type SelfMount } from '../../src/providers/metrics/index.ts'
import { createHistory } from '../../src/providers/metrics/own.ts'
import { compileMatchers } from '../../src/providers/metrics/self.ts'
import { parseMatchers } from '../../src/providers/metrics/source.ts'
import { openStore } from '../../src/store/index.ts'
import { endings } from '../support/endings.ts'
import { createFolder } from '../support/folder.ts'
import { startWatching } from '../support/watching.ts'

const context = () => ({ principal: { id: 'x', roles: [] }, signal: new AbortController().signal })

async function read(provider: Provider, path: string, params: Readonly<Record<string, string>> = {}): Promise<string> {
  const [content] = await provider.read({ path, params: new Map(Object.entries(params)) }, context())
  return content !== undefined && 'text' in content ? content.text : ''
}

async function open(options: Partial<SelfMount> = {}) {
  const measurements = createMeasurements()
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

describe('the measurements of the process', () => {
  test('are series like any others: listed, read, matched, asked for, as a table and as a picture', async () => {
    const provider = await open()
    const paths: string[] = []
    for await (const { path } of provider.list({}, context())) paths.push(path)
    expect(paths).toEqual(['series/room_bytes', 'series/work_total'])
    const match = '{outcome=~"f.*"}'
    await expect
      .poll(
        async () =>
          (JSON.parse(await read(provider, 'series/work_total', { match })) as Shown).series[0]?.points.length,
        { timeout: 30_000 },
      )
      .toBeGreaterThan(3)
    expect(await read(provider, 'query', { query: 'rate(work_total{outcome="ok"}[1m])' })).toContain('"outcome":"ok"')
    expect(await read(provider, 'query', { query: 'room_bytes' })).toContain('room_bytes: 1 series')
    expect(await read(provider, 'series/room_bytes', { as: 'csv', start: '-1h' })).toMatch(
      /^time,value\r\n2.*Z,1024\r\n/,
    )
    expect(await read(provider, 'series/work_total', { as: 'chart' })).toContain('<path ')
    await expect(read(provider, 'alerts')).rejects.toMatchObject({ kind: 'not-found' })
    await expect(read(provider, 'query', { query: 'sum(room_bytes)' })).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('let Prometheus scrape') as string,
    })
  })

  interface Shown {
    readonly series: readonly { readonly points: readonly unknown[] }[]
  }

  test('are told as changes when they are taken', async () => {
    const watching = await startWatching(await open())
    await watching.until('series/', 'query')
    await watching.stop()
  })

  test('outlive the process in a store, and begin anew where that does not answer', async () => {
    const folder = createFolder()
    endings.push(() => folder.remove())
    const file = { sqlite: { file: folder.at('store.sqlite') } }
    const first = await openStore(file)
    const provider = await open({ store: first, name: 'metrics://self' })
    await expect
      .poll(async () => (await first.collection('metrics/metrics://self').size()).rows, { timeout: 30_000 })
      .toBeGreaterThan(4)
    await provider.close?.()
    await first.close()

    const second = await openStore(file)
    endings.push(() => second.close())
    const rows = (await second.collection('metrics/metrics://self').size()).rows
    const later = await open({ store: second, name: 'metrics://self', intervalMs: 3_600_000 })
    const shown = JSON.parse(await read(later, 'series/work_total', { step: '100ms', start: '-10m' })) as Shown & {
      series: { pointsInAll?: number }[]
    }
    expect(shown.series).toHaveLength(2)
    expect(shown.series[0]?.pointsInAll ?? shown.series[0]?.points.length).toBeGreaterThanOrEqual(rows)

    const third = await openStore({ sqlite: { file: folder.at('other.sqlite') } })
    await third.close()
    expect(await read(await open({ store: third }), 'series/room_bytes')).toContain('1024')
  })

  test('have what Prometheus calls them', () => {
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

describe('measurements', () => {
  test('of one name from several places are one metric, until they are taken out', () => {
    const measurements = createMeasurements()
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

describe('a history', () => {
  const sample = (time: number, value: number, labels = {}) => ({
    time,
    metrics: [{ name: 'a', type: 'gauge', help: 'A.', samples: [{ labels, value }] } as const],
  })

  test('keeps as much as it may, of as many series as it may, in order', () => {
    const history = createHistory(100, 2)
    for (let i = 0; i < 1234; i++) {
      history.add(sample(i, i))
      const [one] = history.seriesOf('a')
      expect(one?.times.at(-1)).toBe(i)
    }
    const [one] = history.seriesOf('a')
    expect([...(one?.times ?? [])]).toEqual(Array.from({ length: 100 }, (_, i) => 1134 + i))
    expect([...(one?.values ?? [])]).toEqual([...(one?.times ?? [])])
    history.add(sample(5, 1))
    expect(history.newest).toBe(1233)
    for (let i = 0; i < 10; i++) history.add(sample(2000 + i, 1, { i: String(i) }))
    expect(history.seriesOf('a')).toHaveLength(2)
  })
})

describe('what is asked of them', () => {
  test.each([
    ['up', { metric: 'up', matchers: [] }],
    ['up{a="b}"}', { metric: 'up', matchers: [{ label: 'a', operator: '=', value: 'b}' }] }],
    [
      ' rate ( up { a!="b" } [5m] ) ',
      { metric: 'up', matchers: [{ label: 'a', operator: '!=', value: 'b' }], over: { name: 'rate', seconds: 300 } },
    ],
    ['max_over_time(up[1h30m])', { metric: 'up', matchers: [], over: { name: 'max_over_time', seconds: 5400 } }],
    ['rate', { metric: 'rate', matchers: [] }],
  ])('%s is understood', (text, expression) => {
    expect(parseExpression(text)).toEqual(expression)
  })

  test.each([
    '',
    '1',
    'a + b',
    'sum(a)',
    'rate(a)',
    'rate(a[5m]',
    'rate(a[0s])',
    'a[5m]',
    'rate(sum(a)[5m])',
    'a{b}',
    '(a)',
  ])('%j is refused', (text) => {
    expect(() => parseExpression(text)).toThrow(/Write label matchers|The measurements of this server support/)
  })

  test('matchers compare, and know simple patterns, in linear time', () => {
    const test = (match: string, value: string) => compileMatchers(parseMatchers(match))(new Map([['a', value]]))
    expect([test('a="x"', 'x'), test('a!="x"', 'x'), test('b=""', 'x'), test('b!=""', 'x')]).toEqual([
      true,
      false,
      true,
      false,
    ])
    expect(['ab', 'xb', 'axxb', 'b', 'a'].map((value) => test('a=~"a.*b|b"', value))).toEqual([
      true,
      false,
      true,
      true,
      false,
    ])
    expect(['a', 'ab', ''].map((value) => test('a=~"a.+"', value))).toEqual([false, true, false])
    expect(['a.b', 'axb'].map((value) => test('a=~"a\\\\.b"', value))).toEqual([true, false])
    expect(['日𠮷', '日'].map((value) => test('a=~"日."', value))).toEqual([true, false])
    expect(test(`a=~"${'.*a'.repeat(50)}"`, `${'a'.repeat(900)}b`)).toBe(false)
    for (const pattern of ['(a+)+', 'a{2}', '[ab]', '^a$', 'a?', 'a+', '\\\\d'])
      expect(() => test(`a=~"${pattern}"`, 'a')).toThrow(/support only alternatives/)
  })

  const series = {
    labels: new Map([['__name__', 'c']]),
    times: Float64Array.from({ length: 100 }, (_, i) => i * 15),
    values: Float64Array.from({ length: 100 }, (_, i) => (i < 50 ? i * 30 : (i - 50) * 30)),
  }

  test('points are those that were measured, or the last before each step', () => {
    expect([...pointsIn(series, { start: 30, end: 75, step: 15 }, 15).times]).toEqual([30, 45, 60, 75])
    const coarse = pointsIn(series, { start: 0, end: 600, step: 300 }, 15)
    expect([...coarse.times]).toEqual([0, 300, 600])
    expect([...coarse.values]).toEqual([0, 600, 1200])
    expect(pointsIn(series, { start: 5000, end: 6000, step: 300 }, 15).times).toHaveLength(0)
  })

  test('a rate takes a beginning anew for one', () => {
    const { labels, values, times } = overTime(series, 'rate', 300, { start: 300, end: 1200, step: 300 })
    expect([...labels]).toEqual([])
    expect([...times]).toEqual([300, 600, 900, 1200])
    expect(Math.min(...values)).toBeGreaterThan(1.8)
    expect(Math.max(...values)).toBeCloseTo(2, 6)
    expect([...overTime(series, 'max_over_time', 60, { start: 60, end: 60, step: 1 }).values]).toEqual([120])
  })
})
