/**
 * Measures the cost of a change with replicas and growing numbers of subscribers: `npx tsx bench/replicas.ts [--seconds N]`. Up to three
 * replicas run in one process, each with its own catalog and database connections, with an embedded PostgreSQL server. One replica sees
 * the changes, as when it polls.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { createCatalog } from '../src/core/catalog.ts'
import type { Change } from '../src/core/provider.ts'
import { createChangeLog, openStore } from '../src/store/index.ts'
import { shared } from '../src/wrap/shared.ts'
import { live } from '../test/support/live.ts'
import { startPostgres } from '../test/support/postgres.ts'
import { fixed, progress, table } from './support.ts'

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '10' } } })
const seconds = Number(values.seconds)
const address = 'items://api'
/** Number of URIs per client, and of changes per second. */
const urisEach = 10
const perSecond = 100
const pathOf = (at: number) => `items/${at}`
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

const database = await startPostgres()
const rows: string[][] = []
try {
  for (const replicas of [1, 2, 3])
    for (const clients of replicas === 3 ? [100, 1000, 10_000, 100_000] : [1000])
      rows.push(await measure(replicas, clients))
} finally {
  await database.remove()
}
const head = ['replicas', 'clients', 'URIs', 'changes', 'untold', 'p50, ms', 'p99, ms']
const costs = ['CPU of the replicas, µs a change', 'CPU of PostgreSQL, µs', 'transactions', 'rows written', 'MiB']
process.stdout.write(`${table([...head, ...costs], rows)}\n`)

async function startReplica(schema: string) {
  const store = await openStore({ postgres: { connectionString: database.url, schema, connections: 4 } })
  const changes = createChangeLog({ store })
  const source = live({})
  const provider = shared(source, { changes, source: address, isPolled: false })
  const clients = { perPrincipal: 10 ** 8, total: 10 ** 8, subscriptions: 10 ** 7, totalSubscriptions: 10 ** 7 }
  const catalog = createCatalog({ mounts: [{ address, provider }], changes: clients })
  return {
    catalog,
    tell: (change: Change) => source.tell(change),
    close: async () => {
      await catalog.close()
      await changes.close()
      await store.close()
    },
  }
}

async function measure(count: number, clients: number): Promise<string[]> {
  progress(`${count} replicas, ${clients} clients`)
  const schema = `r${count}_${clients}`
  const replicas = []
  for (let at = 0; at < count; at++) replicas.push(await startReplica(schema))
  const uris = clients * urisEach
  const written = new Map<string, number>()
  const delays: number[] = []
  const heard = (uri: string) => {
    const at = written.get(uri)
    if (at !== undefined) delays.push(performance.now() - at)
  }
  for (let client = 0; client < clients; client++) {
    const view = replicas[client % count]?.catalog.view({ id: `c${client % 1000}`, roles: [] })
    const subscription = view?.subscribe?.(({ uris: told }) => told.forEach(heard))
    await subscription?.add(Array.from({ length: urisEach }, (_, at) => `${address}/${pathOf(client * urisEach + at)}`))
  }
  const before = { cpu: process.cpuUsage(), database: await statistics() }
  const total = Math.min(perSecond * seconds, uris)
  const start = performance.now()
  for (let at = 0; at < total; at++) {
    // Spread the changes over the clients, and so over the replicas.
    const path = pathOf(((at * 7919) % clients) * urisEach + (Math.floor(at / clients) % urisEach))
    written.set(`${address}/${path}`, performance.now())
    replicas[0]?.tell({ path })
    const wait = start + ((at + 1) * 1000) / perSecond - performance.now()
    if (wait > 0) await pause(wait)
  }
  for (const end = performance.now() + 20_000; delays.length < total && performance.now() < end; ) await pause(20)
  const { user, system } = process.cpuUsage(before.cpu)
  const after = await statistics()
  const memory = process.memoryUsage.rss()
  for (const replica of replicas) await replica.close()
  delays.sort((a, b) => a - b)
  const each = (name: keyof typeof after) => fixed((after[name] - before.database[name]) / total, 2)
  const at = (share: number) =>
    fixed(delays[Math.min(delays.length - 1, Math.floor(delays.length * share))] ?? Number.NaN)
  return [
    ...[`${count}`, `${clients}`, `${uris}`, `${total}`, `${total - delays.length}`, at(0.5), at(0.99)],
    ...[fixed((user + system) / total, 0), fixed(((after.cpuMs - before.database.cpuMs) * 1000) / total, 0)],
    ...[each('transactions'), each('written'), fixed(memory / 2 ** 20, 0)],
  ]
}

/** Reads the counters of PostgreSQL, and the CPU time of all its processes, in milliseconds. */
async function statistics() {
  // Wait, because the processes report their counters once a second.
  await pause(1500)
  const [found] = await database.run(
    `select xact_commit::int as transactions, (tup_inserted + tup_updated + tup_deleted)::int as written
     from pg_stat_database where datname = 'app'`,
  )
  const { transactions, written } = found as { transactions: number; written: number }
  return { transactions, written, cpuMs: cpuOfPostgres() }
}

function cpuOfPostgres(): number {
  let ticks = 0
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name)))
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
      if (!stat.includes('(postgres)')) continue
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      ticks += Number(fields[11]) + Number(fields[12])
    } catch {
      // The process has ended.
    }
  return ticks * 10
}
