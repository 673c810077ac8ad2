import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { compileAccess } from '../../src/core/access.ts'
import { createCatalog, type Mount } from '../../src/core/catalog.ts'
import { createMetricsRegistry } from '../../src/core/log.ts'
import type { ChangeReader, View } from '../../src/core/view.ts'
import { metrics } from '../../src/providers/metrics/index.ts'
import { addToken } from '../../src/server/auth/token-file.ts'
import { createCrossingReader, findCrossings } from '../../src/server/protocol/event-crossings.ts'
import { eventClient, pollUntil } from '../support/event-client.ts'
import { useHttp } from '../support/http-service.ts'
import { until } from '../support/live.ts'
import { memory } from '../support/memory.ts'
import { hasPrometheus, noPrometheus, startPrometheus } from '../support/prometheus.ts'

const serve = useHttp()
const cleanups: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

const waiting = 'metrics://m/series/jobs_waiting'
const crossed = (given: object) => ({ name: 'metric.crossed', arguments: given })

/** A gauge with one series for each queue, and a mount of it. */
async function gauge(values: Record<string, number>, more: Partial<Mount> = {}) {
  const measurements = createMetricsRegistry()
  measurements.add(() => [
    {
      ...{ name: 'jobs_waiting', type: 'gauge', help: 'Jobs that wait.' },
      samples: Object.entries(values).map(([queue, value]) => ({ labels: { queue }, value })),
    },
  ])
  const provider = await metrics({ source: 'self', measurements, intervalMs: 700, maxSeries: 3 })
  cleanups.push(() => provider.close?.())
  return { address: 'metrics://m', provider, ...more }
}

async function start(mounts: readonly Mount[], options: object = {}) {
  const catalog = createCatalog({ mounts })
  cleanups.push(() => catalog.close())
  const { url } = await serve({ view: catalog.view, ...options })
  return { url, client: eventClient(url) }
}

describe('events of the type metric.crossed', () => {
  test('report once each series that rises above the threshold (or falls below it, if asked), and nothing while it stays there', async () => {
    const values: Record<string, number> = { a: 1, b: 20 }
    const { client } = await start([await gauge(values)])
    const asked = crossed({ uri: waiting, above: 10 })
    const first = await client.poll(asked)
    expect(first).toMatchObject({ events: [], truncated: false })
    values.a = 11
    const second = await pollUntil(client, asked, first.cursor, ({ length }) => length > 0)
    expect(second.events).toEqual([
      {
        eventId: expect.any(String),
        name: 'metric.crossed',
        timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
        data: { uri: waiting, labels: { __name__: 'jobs_waiting', queue: 'a' }, value: 11 },
      },
    ])
    expect(second.truncated).toBe(false)
    const again = await client.poll({ ...asked, cursor: first.cursor })
    expect(again.events).toEqual(second.events)
    const below = crossed({ uri: `${waiting}?match=%7Bqueue%3D%22b%22%7D`, below: 5 })
    const { cursor } = await client.poll(below)
    Object.assign(values, { a: 0, b: -1 })
    const fallen = await pollUntil(client, below, cursor, ({ length }) => length > 0)
    expect(fallen.events.map(({ data }) => data.value)).toEqual([-1])
    values.b = 30
    const third = await pollUntil(client, asked, second.cursor, ({ length }) => length > 0)
    expect(third.events.map(({ data }) => data.labels)).toEqual([{ __name__: 'jobs_waiting', queue: 'b' }])
  })

  test('report a crossing back and forth between two polls', async () => {
    const values: Record<string, number> = { a: 1 }
    const { client } = await start([await gauge(values)])
    const asked = crossed({ uri: waiting, above: 10 })
    const { cursor } = await client.poll(asked)
    const stream = await client.stream(asked)
    values.a = 11
    await until(() => stream.of('event').length === 1)
    const falls = await client.stream(crossed({ uri: waiting, below: 3 }))
    await until(() => falls.of('active').length === 1)
    values.a = 2
    await until(() => falls.of('event').length === 1)
    const { events, truncated } = await client.poll({ ...asked, cursor })
    expect([events.map(({ data }) => data.value), truncated]).toEqual([[11], false])
    expect(events[0]?.eventId).toBe(stream.of('event')[0]?.eventId)
    for (const one of [stream, falls]) one.close()
  })

  test('come in pages of the requested size, and the next page has the others', async () => {
    const values: Record<string, number> = { a: 1, b: 1, c: 1 }
    const { client } = await start([await gauge(values)])
    const asked = crossed({ uri: waiting, above: 10 })
    const { cursor } = await client.poll(asked)
    Object.assign(values, { a: 11, b: 12, c: 13 })
    await pollUntil(client, asked, cursor, ({ length }) => length === 3)
    const seen: unknown[] = []
    for (let at = cursor, more = true; more; ) {
      const page = await client.poll({ ...asked, cursor: at, maxEvents: 1 })
      expect(page.events.length).toBeLessThanOrEqual(1)
      seen.push(...page.events.map(({ data }) => data.value))
      at = page.cursor
      more = page.hasMore
    }
    expect(seen).toEqual([11, 12, 13])
  })

  test('give an error that names the fault for malformed arguments, other resources and too many series', async () => {
    const values: Record<string, number> = { a: 1, b: 1, c: 1 }
    const files = { address: 'x://files', provider: memory({ 'a.json': '{}' }) }
    const { client } = await start([await gauge(values), files])
    const messageOf = async (given: object) => {
      const { error } = await client.ask('events/poll', crossed(given))
      return `${error?.code} ${error?.message}`
    }
    expect(await messageOf({ above: 1 })).toContain('-32602 "uri" is missing.')
    expect(await messageOf({ uri: waiting })).toContain('Either "above" or "below" is required')
    expect(await messageOf({ uri: waiting, above: 1, below: 2 })).toContain('Either "above" or "below" is required')
    expect(await messageOf({ uri: waiting, above: 'much' })).toContain('"above" must be a number.')
    expect(await messageOf({ uri: `${waiting}?start=-1h`, above: 1 })).toContain('"uri" must not have start')
    expect(await messageOf({ uri: 'x://files/a.json', above: 1 })).toContain('"uri" must be series or a query')
    expect(await messageOf({ uri: 'metrics://m/series/none', above: 1 })).toContain('-32602')
    values.d = 1
    await expect.poll(() => messageOf({ uri: waiting, above: 1 }), { timeout: 5000 }).toContain('too many series')
  })

  test('report a gap for a cursor that is malformed or too long', async () => {
    const { client } = await start([await gauge({ a: 1 })])
    const asked = crossed({ uri: waiting, above: 10 })
    const { cursor } = await client.poll(asked)
    const [log = ''] = cursor.split('~')
    for (const one of ['x', log, `${log}~x~~0`, `${log}~1~${'k'.repeat(2000)}~0`])
      expect(await client.poll({ ...asked, cursor: one }), one).toMatchObject({ events: [], truncated: true })
  })

  test('are not sent for denied series, which look like missing ones', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'hikidashi-crossings-'))
    cleanups.push(() => rm(folder, { recursive: true, force: true }))
    const tokens = join(folder, 'tokens.json')
    const [reader, guest] = [await addToken(tokens, { roles: ['reader'] }), await addToken(tokens, { roles: [] })]
    const values = { a: 1 }
    const access = compileAccess([{ allow: ['reader'] }])
    const open = await gauge({ a: 1 }, { address: 'metrics://open' })
    const { url } = await start([await gauge(values, { access }), open], { auth: { issuers: [], tokens } })
    const [allowed, denied] = [eventClient(url, reader.token), eventClient(url, guest.token)]
    const errorOf = async (uri: string) => (await denied.ask('events/poll', crossed({ uri, above: 10 }))).error
    const refused = await errorOf(waiting)
    const missing = await errorOf('metrics://m/series/nobody_has')
    expect(refused).toBeDefined()
    expect(JSON.stringify(refused)).toBe(JSON.stringify(missing).replaceAll('nobody_has', 'jobs_waiting'))
    const asked = crossed({ uri: waiting, above: 10 })
    const { cursor } = await allowed.poll(asked)
    const foreign = await denied.stream({ ...asked, cursor: null })
    values.a = 11
    await pollUntil(allowed, asked, cursor, ({ length }) => length > 0)
    expect(foreign.of('event')).toEqual([])
    expect((await denied.ask('events/poll', { ...asked, cursor })).result?.events ?? []).toEqual([])
    foreign.close()
  })
})

describe.skipIf(!hasPrometheus)(`metric.crossed of Prometheus${hasPrometheus ? '' : ` (${noPrometheus})`}`, () => {
  test('reports crossings of series and queries after each scrape, and after a restart of the server reports them with a gap', async () => {
    const { createServer } = await import('node:http')
    let depth = 1
    const exporter = createServer((_, response) => response.end(`# TYPE depth gauge\ndepth{queue="a"} ${depth}\n`))
    await new Promise<void>((resolve) => exporter.listen(0, '127.0.0.1', resolve))
    cleanups.push(() => exporter.close())
    const { port } = exporter.address() as import('node:net').AddressInfo
    const config = `global: { scrape_interval: 1s }\nscrape_configs: [{ job_name: q, static_configs: [{ targets: ["127.0.0.1:${port}"] }] }]\n`
    const prometheus = await startPrometheus({ config })
    cleanups.push(() => prometheus.remove())
    const serveAgain = async () => {
      const provider = await metrics({ url: prometheus.url, intervalMs: 500 })
      const catalog = createCatalog({ mounts: [{ address: 'metrics://m', provider }] })
      cleanups.push(() => catalog.close())
      return eventClient((await serve({ view: catalog.view })).url)
    }
    const client = await serveAgain()
    const series = crossed({ uri: 'metrics://m/series/depth', above: 10 })
    const query = crossed({ uri: `metrics://m/query?query=${encodeURIComponent('sum(depth) * 2')}`, above: 10 })
    await expect.poll(async () => (await client.ask('events/poll', series)).error, { timeout: 30_000 }).toBeUndefined()
    const [one, two] = [await client.poll(series), await client.poll(query)]
    depth = 50
    const first = await pollUntil(client, series, one.cursor, ({ length }) => length > 0)
    expect(first.events.map(({ data }) => [(data.labels as { queue?: string }).queue, data.value])).toEqual([['a', 50]])
    const second = await pollUntil(client, query, two.cursor, ({ length }) => length > 0)
    expect(second.events.map(({ data }) => [data.labels, data.value])).toEqual([[{}, 100]])
    const other = await serveAgain()
    const after = await pollUntil(other, series, one.cursor, ({ length }) => length > 0)
    expect([after.events.map(({ data }) => data.value), after.truncated]).toEqual([[50], true])
    const same = await other.poll({ ...series, cursor: after.cursor })
    expect([same.events, same.truncated]).toEqual([[], false])
  }, 60_000)
})

describe('the search for crossings', () => {
  const point = (time: number, value: number, key = 'a') => ({ time, value, key, labels: {} })
  const above = (value: number) => value > 10

  test('continues after each crossing with the next one, even if both have the same time', () => {
    const points = [point(1, 11), point(1, 12, 'b'), point(2, 0), point(3, 13), point(3, Number.NaN, 'b')]
    const seen: number[] = []
    let state = { at: 0, beyond: [] as readonly string[], isBehind: true }
    for (let turn = 0; turn < 9 && state.isBehind; turn++) {
      const { crossings, after } = findCrossings(points, state, above, 1)
      seen.push(...crossings.map((one) => one.point.value))
      state = after
    }
    expect(seen).toEqual([11, 12, 13])
    expect(state).toEqual({ at: 3, beyond: ['a'], isBehind: false })
  })

  test('keeps a series above the threshold that has no new point, up to 200 series', () => {
    const known = { at: 0, beyond: ['x'], isBehind: false }
    expect(findCrossings([point(1, 0)], known, above, 9).after.beyond).toEqual(['x'])
    const many = Array.from({ length: 250 }, (_, i) => point(1, 11, `k${i}`))
    const { after } = findCrossings(many, known, above, 999)
    expect([after.beyond.length, after.beyond[0], after.beyond.at(-1)]).toEqual([200, 'k50', 'k249'])
  })

  test('reads the current second again until it is over, and reports a crossing in it once', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 1_000_100 })
    cleanups.push(() => vi.useRealTimers())
    let value = 1
    const spans: number[] = []
    /** A series that has the present value at each point. */
    const read: View['read'] = async (uri) => {
      const [start = 0, end = 0] = ['start', 'end'].map((name) => Number(new URL(uri).searchParams.get(name)))
      spans.push(end - start)
      const points = Array.from({ length: end - start + 1 }, (_, index) => [start + index, value])
      return {
        cache: { ttlMs: 0, scope: 'private' },
        contents: [{ uri, mimeType: 'application/json', text: JSON.stringify({ series: [{ labels: {}, points }] }) }],
      }
    }
    const changes: Pick<ChangeReader, 'now' | 'since'> = {
      now: async () => 'p',
      since: async () => ({ changes: [], gap: true, more: false, position: 'p' }),
    }
    const reader = createCrossingReader({ read } as View, changes as ChangeReader, { uri: waiting, isBeyond: above })
    let position = await reader.now()
    const values: unknown[] = []
    for (const [milliseconds, next] of [
      [200, 11],
      [300, 12],
      [400, 13],
      [1200, 14],
      [1300, 2],
      [2400, 15],
    ] as const) {
      vi.setSystemTime(1_000_000 + milliseconds)
      value = next
      const page = await reader.since(position, { limit: 10 })
      values.push(...page.occurrences.map(({ data }) => (data as { value: number }).value))
      position = page.position
    }
    expect(values).toEqual([11, 15])
    expect(Math.min(...spans)).toBeGreaterThan(0)
  })
})
