/**
 * Measures the throughput of 1, 2 and 3 replicas behind nginx: `npm run build && npx tsx bench/replicas-throughput.ts [--seconds N]
 * [--rounds N]`. It needs wrk and nginx. The replicas are processes of the built command, with an embedded PostgreSQL server and
 * `deploy/nginx-replicas.conf`. Load, proxy, database and replicas share the processors of one machine.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startPostgres } from '../test/support/postgres.ts'
import { childrenOf, processes } from '../test/support/postgres-processes.ts'
import { type Replica, startItemsApi, startReplica } from '../test/support/replicas.ts'
import { freePort, startProxyOfReplicas } from '../test/support/reverse-proxy.ts'
import { connect, type Sent } from './resources/client.ts'
import { idMark, type Load, load } from './resources/load.ts'
import { fixed, median, progress, table } from './support.ts'

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '5' }, rounds: { type: 'string', default: '3' } },
})
const seconds = Number(values.seconds)
const warmUpSeconds = Math.max(1, Math.round(seconds / 2))
const files = 1000
const connections = 32

process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
const temporary = mkdtempSync(join(tmpdir(), 'hikidashi-bench-'))
const database = await startPostgres()
const api = await startItemsApi()

interface Figures extends Load {
  /** CPU time of nginx and of PostgreSQL for each request, in microseconds. */
  readonly proxy: number
  readonly database: number
}

const found = new Map<string, Figures[]>()
const memories = new Map<number, number[]>()
try {
  prepare()
  for (let round = 0; round < Number(values.rounds); round++)
    for (const count of [1, 2, 3]) {
      progress(`round ${round + 1}, ${count} replicas`)
      await measure(count)
    }
} finally {
  await api.close()
  await database.remove()
  rmSync(temporary, { recursive: true, force: true })
  // Print the finished rounds even if a later round fails, as on a busy machine.
  report()
}
/** Prints the medians of all rounds so far. */
function report(): void {
  const head = ['work', 'replicas', 'a second', 'p50, ms', 'p99, ms']
  const costs = ['CPU of the replicas, µs a request', 'of nginx, µs', 'of PostgreSQL, µs']
  const rows = Array.from(found, ([name, all]) => {
    const of = (key: keyof Figures, digits = 0) => fixed(median(all.map((one) => one[key])), digits)
    return [...name.split('|'), of('perSecond'), of('p50', 1), of('p99', 1), of('cpu'), of('proxy'), of('database')]
  })
  process.stdout.write(`${table([...head, ...costs], rows)}\n\n`)
  const memory = Array.from(memories, ([count, all]) => [count, fixed(median(all), 0)])
  process.stdout.write(`${table(['replicas', 'memory of all, MiB'], memory)}\n`)
}

/** Writes the files, the items and the configuration. */
function prepare(): void {
  mkdirSync(join(temporary, 'docs'))
  for (let at = 0; at < files; at++) writeFileSync(join(temporary, 'docs', nameOf(at)), `${at} `.padEnd(1024, 'x'))
  for (let at = 0; at < 100; at++) api.items.set(`i${at}`, 'x'.repeat(900))
  const config = {
    mounts: {
      'docs://shared': { provider: 'files', root: join(temporary, 'docs') },
      'items://api': {
        ...{ provider: 'api', url: api.url, allowAddresses: ['127.0.0.1'], insecure: true, poll: '30s' },
        routes: [{ template: 'items/{id}', list: { from: 'items', title: '/title' } }],
      },
    },
    replicas: true,
    store: { postgres: { env: 'STORE' } },
    cursorSecret: { env: 'CURSORS' },
    http: {
      ...{ listen: '127.0.0.1:0', allowedHosts: ['localhost'] },
      limits: { newConnections: 0, badTokens: 0, connectionsPerAddress: 1024 },
    },
  }
  writeFileSync(join(temporary, 'hikidashi.json'), JSON.stringify(config))
}

function nameOf(at: number): string {
  return `file-${String(at).padStart(4, '0')}.txt`
}

async function measure(count: number): Promise<void> {
  const env = { STORE: database.url, CURSORS: 'a secret of this bench, long enough' }
  const replicas: Replica[] = []
  for (const name of ['a', 'b', 'c'].slice(0, count))
    replicas.push(await startReplica(name, join(temporary, 'hikidashi.json'), { cwd: temporary, env }))
  // Use only ports of running replicas, because attempts to reach others would slow the proxy.
  const ports = [0, 1, 2].map((at) => replicas[at % count]?.port ?? 0)
  const proxy = await startProxyOfReplicas(await freePort(), ports, { forMany: true })
  const pids = replicas.map(({ running }) => running.child.pid ?? 0)
  const url = `${proxy.url}/mcp`
  try {
    for (const [name, requests, minBytes] of worksFor(await connect(url, '2026-07-28'))) {
      const others: { readonly proxy: number; readonly database: number }[] = []
      const cpuMs = () => {
        const nginx = [proxy.pid, ...childrenOf(proxy.pid)]
        others.push({ proxy: cpuOf(nginx), database: cpuOf(processes(database.data)) })
        return cpuOf(pids)
      }
      const one = await load({ url, cpuMs }, { requests, minBytes, connections, seconds, warmUpSeconds, temporary })
      const [before, after] = others
      const each = (of: 'proxy' | 'database') =>
        (((after?.[of] ?? 0) - (before?.[of] ?? 0)) * 1000) / (one.perSecond * seconds)
      const key = `${name}|${count}`
      found.set(key, [...(found.get(key) ?? []), { ...one, proxy: each('proxy'), database: each('database') }])
    }
    memories.set(count, [...(memories.get(count) ?? []), pids.reduce((sum, pid) => sum + memoryOf(pid), 0)])
  } finally {
    await proxy.close()
    for (const replica of replicas) await replica.stop()
  }
}

type Work = readonly [name: string, requests: readonly Sent[], minBytes: number]

function worksFor(client: Awaited<ReturnType<typeof connect>>): readonly Work[] {
  const reads = Array.from({ length: 100 }, (_, at) =>
    client.sent('resources/read', { uri: `docs://shared/${nameOf(at * 10)}` }, idMark),
  )
  const items = Array.from({ length: 100 }, (_, at) =>
    client.sent('resources/read', { uri: `items://api/items/i${at}` }, idMark),
  )
  return [
    ['read a file of 1 KiB', reads, 1024],
    ['read a copy of 1 KiB (api)', items, 900],
    ['list a page', [client.sent('resources/list', {}, idMark)], 10_000],
  ]
}

/** CPU time of processes until now, in milliseconds. */
function cpuOf(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return sum + (Number(fields[11]) + Number(fields[12])) * 10
  }, 0)
}

/** Resident memory of a process, in MiB. */
function memoryOf(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
}
