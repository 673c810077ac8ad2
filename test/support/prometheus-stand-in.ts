import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** The data of a stand-in for the API of Prometheus. */
export interface StandInOptions {
  readonly metrics?: Readonly<
    Record<string, { readonly type?: string; readonly help?: string; readonly unit?: string }>
  >
  /** The `data` of answers, by the path below `/api/v1/`. */
  readonly data?: Readonly<Record<string, unknown>>
  /** Answers a request instead of the stand-in if it returns true. */
  readonly answer?: (asked: Asked, response: ServerResponse) => boolean
}

export interface Asked {
  readonly method: string
  /** The path below `/api/v1/`. */
  readonly path: string
  readonly fields: ReadonlyMap<string, string>
  readonly headers: IncomingMessage['headers']
}

export interface StandIn {
  readonly url: string
  readonly asked: readonly Asked[]
  /** Replaces its data. */
  set(options: StandInOptions): void
  close(): Promise<void>
}

/**
 * Answers like Prometheus, as far as the provider needs it: each metric has one series, whose value at a time is that time. It
 * does not evaluate queries; tests of queries use a real Prometheus.
 */
export async function standIn(options: StandInOptions = {}): Promise<StandIn> {
  let known = options
  const asked: Asked[] = []
  const server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const url = new URL(request.url ?? '', 'http://localhost')
      const form = new URLSearchParams(Buffer.concat(chunks).toString())
      const one: Asked = {
        method: request.method ?? '',
        path: url.pathname.replace(/^.*\/api\/v1\//, ''),
        fields: new Map([...url.searchParams, ...form]),
        headers: request.headers,
      }
      asked.push(one)
      if (known.answer?.(one, response) === true) return
      const data = dataOf(one, known)
      if (data === undefined) return void response.writeHead(404).end('404 page not found\n')
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ status: 'success', data }))
    })().catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    set: (next) => {
      known = { ...known, ...next }
    },
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function dataOf({ path, fields }: Asked, { metrics = {}, data = {} }: StandInOptions): unknown {
  if (Object.hasOwn(data, path)) return data[path]
  switch (path) {
    case 'label/__name__/values':
      return Object.keys(metrics)
    case 'metadata':
      return Object.fromEntries(
        Object.entries(metrics).map(([name, facts]) => [name, [{ type: 'unknown', help: '', unit: '', ...facts }]]),
      )
    case 'query_range':
      return {
        resultType: 'matrix',
        result: [{ metric: { __name__: nameIn(fields), job: 'x' }, values: pointsIn(fields) }],
      }
    case 'query':
      return {
        resultType: 'vector',
        result: [{ metric: { __name__: nameIn(fields) }, value: [Number(fields.get('time')), '1'] }],
      }
    case 'alerts':
      return { alerts: [] }
    case 'rules':
      return { groups: [] }
    case 'targets':
      return { activeTargets: [] }
    case 'labels':
      return ['__name__', 'job']
    case 'label/job/values':
      return ['x', 'y']
    case 'status/tsdb':
      return { headStats: { maxTime: 1 } }
    default:
      return undefined
  }
}

function nameIn(fields: ReadonlyMap<string, string>): string {
  return /^[\w:]+/.exec(fields.get('query') ?? '')?.[0] ?? ''
}

function pointsIn(fields: ReadonlyMap<string, string>): readonly (readonly [number, string])[] {
  const [start = 0, end = 0, step = 1] = ['start', 'end', 'step'].map((name) => Number(fields.get(name)))
  return Array.from({ length: Math.floor((end - start) / step) + 1 }, (_, i) => [
    start + i * step,
    String(start + i * step),
  ])
}
