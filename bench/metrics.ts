import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import type { Context } from '../src/core/provider.ts'
import { metrics } from '../src/providers/metrics/index.ts'
import { hasPrometheus, openMetrics, startPrometheus } from '../test/support/prometheus.ts'
import { fixed, measure, median, progress, table } from './support.ts'

// Compares the raw answer of Prometheus for a range of 100 series with 10,000 points each, fetched and parsed, with the forms of the
// provider: JSON with summaries, a picture, a table. Uses a real Prometheus with a history if it is installed, else a fake that
// answers with the same bytes. The argument is the number of rounds.

const seriesCount = 100
const points = 10_000
const step = 15
const rounds = Number(process.argv[2] ?? 7)
const context: Context = { principal: { id: 'bench', roles: [] }, signal: new AbortController().signal }
const end = Math.floor(Date.now() / 1000 / step) * step
const start = end - (points - 1) * step

const valueAt = (series: number, index: number) =>
  Math.round(
    (series + Math.sin(index / 300 + series) * 10 + (((index * 7919 + series * 104_729) % 1000) / 1000) * 3) * 1e6,
  ) / 1e6
const labelsOf = (series: number) => ({
  instance: `web-${series}.example.org:9100`,
  job: 'node',
  zone: `zone-${series % 3}`,
})

async function openPrometheus() {
  const series = Array.from({ length: seriesCount }, (_, i) => ({
    labels: labelsOf(i),
    at: (_: number, index: number) => valueAt(i, index),
  }))
  const history = openMetrics([{ name: 'bench_value', type: 'gauge', help: 'A value.', series }], start, end, step)
  const running = await startPrometheus({ history })
  return { name: 'Prometheus', url: running.url, close: running.remove }
}

async function openStandIn() {
  const result = Array.from({ length: seriesCount }, (_, i) => ({
    metric: { __name__: 'bench_value', ...labelsOf(i) },
    values: Array.from({ length: points }, (_, index) => [start + index * step, String(valueAt(i, index))]),
  }))
  const body = Buffer.from(JSON.stringify({ status: 'success', data: { resultType: 'matrix', result } }))
  const server = createServer((request, response) => {
    request.resume()
    const isNames = request.url?.includes('/label/')
    response.end(
      isNames
        ? '{"status":"success","data":["bench_value"]}'
        : request.url?.includes('query_range')
          ? body
          : '{"status":"success","data":{}}',
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { name: 'a stand-in', url, close: async () => void server.close() }
}

/** Runs `work`. Returns the time, the longest pause of the event loop, and the size of the result, plain and with gzip. */
async function timed(work: () => Promise<string>) {
  const { value, ms, pause } = await measure(work)
  return { ms, pause, bytes: Buffer.byteLength(value), packed: gzipSync(value).length }
}

progress(hasPrometheus ? 'Prometheus takes in a history' : 'no Prometheus here: a stand-in')
const backend = await (hasPrometheus ? openPrometheus() : openStandIn())
const provider = await metrics({ url: backend.url, intervalMs: step * 1000 })
const read = async (as?: string) => {
  const params = new Map(
    Object.entries({ start: String(start), end: String(end), step: `${step}s`, ...(as === undefined ? {} : { as }) }),
  )
  // Most clients send no step. The provider then chooses the same one.
  if (as !== 'exact') params.delete('step')
  else params.delete('as')
  const [content] = await provider.read({ path: 'series/bench_value', params }, context)
  return content !== undefined && 'text' in content ? content.text : ''
}
const raw = async () => {
  const query = new URLSearchParams({
    query: 'bench_value',
    start: String(start),
    end: String(end),
    step: String(step),
  })
  const response = await fetch(`${backend.url}/api/v1/query_range?${query}`)
  const text = await response.text()
  const { data } = JSON.parse(text) as { data: { result: { values: unknown[] }[] } }
  const count = data.result.reduce((sum, { values }) => sum + values.length, 0)
  if (count < seriesCount * points * 0.99) throw new Error(`there are ${count} points`)
  return text
}

const ways: readonly (readonly [name: string, read: () => Promise<string>])[] = [
  ['raw: fetch and JSON.parse', raw],
  ['JSON, thinned out', () => read()],
  ['JSON, at the step asked for', () => read('exact')],
  ['picture', () => read('chart')],
  ['CSV', () => read('csv')],
]
const found = new Map(ways.map(([name]) => [name, [] as Awaited<ReturnType<typeof timed>>[]]))
try {
  for (let round = 0; round <= rounds; round++) {
    progress(`round ${round} of ${rounds}`)
    for (const [name, way] of ways) {
      const result = await timed(way)
      // The first round warms up.
      if (round > 0) found.get(name)?.push(result)
    }
  }
} finally {
  await provider.close?.()
  await backend.close()
}
const rows = [...found].map(([name, results]) => {
  const of = (key: 'ms' | 'pause' | 'bytes' | 'packed') => median(results.map((result) => result[key]))
  return [name, fixed(of('bytes') / 1024, 0), fixed(of('packed') / 1024, 0), fixed(of('ms'), 0), fixed(of('pause'), 0)]
})
console.log(`${seriesCount} series of ${points} points, from ${backend.name}; medians of ${rounds}\n`)
console.log(table(['', 'KiB', 'KiB, gzip', 'ms', 'longest pause, ms'], rows))
