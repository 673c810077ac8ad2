import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import { metrics, type PrometheusMount } from '../../src/providers/metrics/index.ts'
import { endings } from '../support/endings.ts'
import { useElsewhere } from './harness/elsewhere.ts'

/** Where nothing may be asked for. */
const elsewhere = useElsewhere('{"status":"success","data":[]}')

const secret = 'the-secret-of-the-upstream'

/** A view of a mount whose Prometheus is hostile: it knows one metric, and answers queries as it likes. */
async function hostile(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  options: Partial<PrometheusMount> = {},
) {
  const server = createServer((request, response) => {
    response.on('error', () => {})
    const json = (data: unknown) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ status: 'success', data }))
    if (request.url?.includes('/label/')) return json(['up'])
    if (request.url?.includes('/metadata')) return json({})
    request.resume()
    return answer(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const provider = await metrics({
    url: `http://127.0.0.1:${port}`,
    credentials: { bearer: secret },
    timeoutMs: 60_000,
    ...options,
  })
  const catalog = createCatalog({ mounts: [{ address: 'metrics://m', provider }] })
  endings.push(async () => {
    await catalog.close()
    server.closeAllConnections()
    server.close()
  })
  const view = catalog.view({ id: 'x', roles: [] })
  return async (uri = 'metrics://m/series/up'): Promise<{ text: string; error?: unknown }> => {
    try {
      const [content] = (await view.read(uri)).contents
      return { text: content !== undefined && 'text' in content ? content.text : '' }
    } catch (error) {
      return { text: `${String(error)} ${JSON.stringify(error)}`, error }
    }
  }
}

const matrix = (result: string) => `{"status":"success","data":{"resultType":"matrix","result":[${result}]}}`

describe('a hostile Prometheus server:', () => {
  test.each([301, 302, 303, 307, 308])(
    'a redirect with %i is not followed, and the error names neither its target nor the credentials (SS06, SS07, SS19)',
    async (status) => {
      let count = 0
      const read = await hostile((_, response) => {
        count++
        response
          .writeHead(status, {
            location: `${elsewhere.place}/stolen`,
            refresh: `0; url=${elsewhere.place}`,
            link: `<${elsewhere.place}>`,
          })
          .end()
      })
      const { error, text } = await read()
      expect(error).toMatchObject({ kind: 'unavailable' })
      expect(text).not.toContain(secret)
      expect(text).not.toContain(elsewhere.place)
      expect([elsewhere.reached, count]).toEqual([[], 1])
    },
  )

  test('an endless answer makes the read fail: as too large if it is fast, and as unavailable if it is slow (SS13)', async () => {
    const flood = await hostile(
      (_, response) => {
        response.writeHead(200)
        const more = () => {
          while (!response.destroyed && response.write(' '.repeat(65_536)));
          if (!response.destroyed) response.once('drain', more)
        }
        more()
      },
      { maxBytes: 1024 * 1024, timeoutMs: 60_000 },
    )
    expect((await flood()).error).toMatchObject({ kind: 'too-large' })
    const trickle = await hostile(
      (_, response) => {
        response.writeHead(200)
        const timer = setInterval(() => response.write(' '), 50)
        response.on('close', () => clearInterval(timer))
      },
      { timeoutMs: 500 },
    )
    expect((await trickle()).error).toMatchObject({ kind: 'unavailable' })
  })

  test('a compressed answer that expands beyond the limit makes the read fail as too large, and memory grows by less than 256 MiB (SS14)', async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024, ' '))
    const read = await hostile(
      (_, response) => {
        response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb)
      },
      { maxBytes: 1024 * 1024, timeoutMs: 60_000 },
    )
    const before = process.memoryUsage().rss
    expect((await read()).error).toMatchObject({ kind: 'too-large' })
    expect(process.memoryUsage().rss - before).toBeLessThan(256 * 1024 * 1024)
  })

  test('an answer that declares another encoding is read as UTF-8, or refused (SS16)', async () => {
    const read = await hostile((_, response) => {
      response
        .writeHead(200, { 'content-type': 'application/json; charset=utf-16' })
        .end(Buffer.from(matrix(''), 'utf16le'))
    })
    expect((await read()).error).toMatchObject({ kind: 'unavailable' })
    const seven = await hostile((_, response) => {
      response
        .writeHead(200, { 'content-type': 'text/html; charset=utf-7' })
        .end(matrix('{"metric":{"a":"+ADw-"},"values":[[1,"1"]]}'))
    })
    expect((await seven()).text).toContain('+ADw-')
  })

  test('a URI cannot add a line to a request (SS18)', async () => {
    const asked: string[] = []
    const read = await hostile((request, response) => {
      asked.push(JSON.stringify([request.url, request.rawHeaders]))
      response.writeHead(200).end(matrix(''))
    })
    for (const value of ['%0d%0aX-Evil:%201', '%0aX-Evil:1', '%00', '%E2%80%A8X-Evil:1', '%250d%250aX-Evil:1'])
      for (const uri of [
        `metrics://m/query?query=${value}`,
        `metrics://m/series/up?match=a=%22${value}%22`,
        `metrics://m/series/${value}`,
      ])
        await read(uri)
    expect(asked.join('')).not.toMatch(/X-Evil:? ?1"/)
  })

  test('labels with markup and invalid numbers do not break a chart or table, and far too many series are truncated with a count (SS21)', async () => {
    const labels = JSON.stringify({
      '"}\n<script>': '<img src=x onerror=alert(1)>"\n\u2028',
      __proto__: 'x',
      constructor: 'y',
    })
    const one = `{"metric":${labels},"values":[[1,"NaN"],[2,"+Inf"],[3,"-Inf"],[4,"0x10"],[5,"nonsense"],[6,"1e999"]]}`
    const many = Array(20_000).fill(one).join(',')
    const read = await hostile((_, response) => void response.writeHead(200).end(matrix(many)), { maxSeries: 20 })
    const shown = JSON.parse((await read()).text) as { series: { points: unknown[] }[]; omitted: unknown }
    expect(shown.omitted).toEqual({ series: 19_980, of: 20_000 })
    expect(shown.series).toHaveLength(20)
    const chart = (await read('metrics://m/series/up?as=chart')).text
    expect(chart).not.toMatch(/<script|<img|\u2028/)
    const csv = (await read('metrics://m/series/up?as=csv')).text
    expect(csv.split('\r\n')).toHaveLength(1 + 20 * 6 + 1)
  })

  test('endless samples in one series, and an endless string, make the read fail as too large (SS21)', async () => {
    for (const begin of [
      '{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[',
      '{"status":"',
    ])
      expect(
        (
          await (
            await hostile(
              (_, response) => {
                response.writeHead(200).write(begin)
                const more = () => {
                  while (!response.destroyed && response.write('[1,"1"],'.repeat(8192)));
                  if (!response.destroyed) response.once('drain', more)
                }
                more()
              },
              { maxBytes: 2 * 1024 * 1024, timeoutMs: 60_000 },
            )
          )()
        ).error,
      ).toMatchObject({ kind: 'too-large' })
  })

  test('the credentials of the mount, repeated in an answer, are not disclosed to the caller (SS19)', async () => {
    for (const status of [200, 400, 401, 422, 500]) {
      const read = await hostile((request, response) => {
        const error = `invalid parameter "query": 1:1: ${JSON.stringify(request.headers)}`
        response
          .writeHead(status)
          .end(JSON.stringify({ status: 'error', errorType: status === 422 ? 'execution' : 'internal', error }))
      })
      expect((await read('metrics://m/query?query=up')).text).not.toContain(secret)
    }
  })

  test('proxies that environment variables name are not used (SS11)', async () => {
    const names = ['HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'HTTPS_PROXY']
    const before = names.map((name) => process.env[name])
    for (const name of names) process.env[name] = elsewhere.place
    try {
      const read = await hostile((_, response) => void response.writeHead(200).end(matrix('')))
      expect((await read()).error).toBeUndefined()
    } finally {
      for (const [index, name] of names.entries()) {
        const value = before[index]
        if (value === undefined) delete process.env[name]
        else process.env[name] = value
      }
    }
    expect(elsewhere.reached).toEqual([])
  })
})

describe('requests of a client for metrics', () => {
  test('reach no other host, and no path of Prometheus that they name (SS01)', async () => {
    const paths: string[] = []
    const read = await hostile((request, response) => {
      paths.push(request.url ?? '')
      response.writeHead(200).end(matrix(''))
    })
    for (const uri of [
      `metrics://m/series/${encodeURIComponent(`${elsewhere.place}/`).replaceAll('%2F', '')}`,
      `metrics://m/query?query=${encodeURIComponent(`${elsewhere.place}/x`)}`,
      `metrics://m/query?query=up&start=${encodeURIComponent(`${elsewhere.place}`)}`,
      'metrics://m/..%2f..%2fadmin',
      'metrics://m/api/v1/admin/tsdb/delete_series',
      'metrics://m/status/config',
      'metrics://m/series/up/../../../admin',
      `metrics://${elsewhere.place.slice(7)}/series/up`,
    ])
      await read(uri)
    expect(elsewhere.reached).toEqual([])
    for (const path of paths) expect(path).toMatch(/^\/api\/v1\/query(?:_range)?$/)
  })

  test('cannot add another query through a selector, which ends at its closing quote (TM03)', async () => {
    const queries: string[] = []
    const read = await hostile((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        queries.push(new URLSearchParams(Buffer.concat(chunks).toString()).get('query') ?? '')
        response.writeHead(200).end(matrix(''))
      })
    })
    for (const match of [
      'a="b"} or {job=~".+"',
      'a="b"}) or vector(1',
      'a="\\"} or up{b=\\""',
      '} or up{',
      'a="b"}[1d:1s',
    ])
      await read(`metrics://m/series/up?match=${encodeURIComponent(match)}`)
    expect(queries).toEqual(['up{a="\\"} or up{b=\\""}'])
  })
})
