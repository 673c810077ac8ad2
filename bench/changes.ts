import { fork } from 'node:child_process'
import { once } from 'node:events'
import { request } from 'node:http'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { now, type Order, type Report, uriOf } from './servers/writing.ts'
import { fixed, progress, table } from './support.ts'

// Subscribes to many URIs over many streams of 2026-07-28, and changes them one after the other. Measures the delay from a change to
// its notification, and the cost, for hikidashi and for the router of the SDK.

const { values } = parseArgs({
  options: {
    streams: { type: 'string', default: '1000' },
    uris: { type: 'string', default: '10000' },
    rate: { type: 'string', default: '1000' },
    seconds: { type: 'string', default: '10' },
  },
})
const [streams, uris, rate, seconds] = [values.streams, values.uris, values.rate, values.seconds].map(Number) as [
  number,
  number,
  number,
  number,
]

const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '0' },
}

/** Opens one stream. Resolves once it is acknowledged. `heard` is called for each notification. */
function listen(url: string, id: number, names: readonly string[], heard: (index: number, at: number) => void) {
  const params = { notifications: { resourceSubscriptions: names }, _meta: meta }
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'subscriptions/listen',
  }
  return new Promise<void>((resolve, reject) => {
    const sent = request(url, { method: 'POST', headers, agent: false }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`HTTP ${response.statusCode}`))
      let rest = ''
      response.setEncoding('latin1').on('data', (chunk: string) => {
        const at = now()
        const events = (rest + chunk).split('\n\n')
        rest = events.pop() ?? ''
        for (const event of events) {
          if (event.includes('subscriptions/acknowledged')) resolve()
          const index = /"uri":"bench:\/\/changes\/(\d+)"/.exec(event)?.[1]
          if (index !== undefined) heard(Number(index), at)
        }
      })
    })
    sent.on('error', reject)
    sent.end(JSON.stringify({ jsonrpc: '2.0', id, method: 'subscriptions/listen', params }))
  })
}

async function run(name: string, script: string): Promise<readonly string[]> {
  progress(`${name}: opening ${streams} streams`)
  const child = fork(join(import.meta.dirname, 'servers', script), [], {
    execArgv: ['--expose-gc', '--import', 'tsx'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  try {
    const [{ url }] = (await once(child, 'message')) as [{ url: string }]
    const times = Array.from({ length: uris }, (): number[] => [])
    const each = uris / streams
    // Open 50 streams at a time, because each is a connection.
    for (let first = 0; first < streams; first += 50)
      await Promise.all(
        Array.from({ length: Math.min(50, streams - first) }, (_, i) => {
          const id = first + i
          const names = Array.from({ length: each }, (__, n) => uriOf(id * each + n))
          return listen(url, id, names, (index, at) => times[index]?.push(at))
        }),
      )
    progress(`${name}: ${rate} changes a second for ${seconds} s`)
    child.send({ uris, rate, seconds } satisfies Order)
    const [report] = (await once(child, 'message')) as [Report]
    return rowOf(name, report, times)
  } finally {
    child.kill()
  }
}

/** Matches each change with the first notification of its URI after it. Later notifications are those of later changes. */
function rowOf(name: string, { written, cpu, before, after, pause }: Report, times: readonly (readonly number[])[]) {
  const waits = written.map((at, i) => (times[i % uris]?.find((told) => told >= at) ?? Number.NaN) - at)
  const told = waits.filter((wait) => !Number.isNaN(wait)).sort((a, b) => a - b)
  const at = (share: number) => fixed(told[Math.min(told.length - 1, Math.floor(told.length * share))] ?? Number.NaN)
  const megabytes = (bytes: number) => fixed(bytes / 1024 / 1024, 0)
  return [
    name,
    String(waits.length - told.length),
    at(0.5),
    at(0.99),
    fixed((cpu / waits.length) * 1000, 0),
    megabytes(before),
    megabytes(after),
    fixed(pause, 0),
  ]
}

const rows = [await run('hikidashi', 'changes-hikidashi.ts'), await run('sdk', 'changes-sdk.ts')]
const head = [
  `${uris} URIs, ${streams} streams, ${rate}/s`,
  'untold',
  'p50, ms',
  'p99, ms',
  'CPU, µs a change',
  'memory with all streams, MB',
  'memory after, MB',
  'longest pause, ms',
]
process.stdout.write(`${table(head, rows)}\n`)
