import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { startDatabase } from '../test/support/database.ts'
import { fixed, median, progress, table } from './support.ts'

// Reads the schemas of 1,000 tables as resources, one after the other and 32 at once, from hikidashi and from the official server for
// PostgreSQL, which is archived (0.6.2, installed from npm). The official client requests both over stdio, and the database counts
// the queries (pg_stat_statements). It needs a build. The argument is the number of rounds.

const tables = 1000
const rounds = Number(process.argv[2] ?? 5)
const package_ = '@modelcontextprotocol/server-postgres@0.6.2'

const sql = `
CREATE SCHEMA stats; CREATE EXTENSION pg_stat_statements SCHEMA stats;
CREATE TABLE t0 (id bigint PRIMARY KEY, name text);
DO $$ BEGIN FOR i IN 1..${tables - 1} LOOP EXECUTE format(
  'CREATE TABLE t%s (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, parent bigint REFERENCES t%s, name text NOT NULL, email varchar(80) UNIQUE,
   price numeric(10,2) CHECK (price > 0), made timestamptz DEFAULT now(), note text)', i, i / 2);
  EXECUTE format('COMMENT ON TABLE t%s IS %L', i, 'Table ' || i); END LOOP; END $$`

const folder = mkdtempSync(join(tmpdir(), 'hikidashi-bench-postgres-'))
progress(`installing ${package_} …`)
execFileSync('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund', '--silent', package_], {
  stdio: 'ignore',
})
progress(`making ${tables} tables …`)
const flags = ['-c', 'shared_preload_libraries=pg_stat_statements', '-c', 'max_locks_per_transaction=512']
const database = await startDatabase(sql, [...flags, '-c', 'pg_stat_statements.track=top'])

const servers = {
  hikidashi: () => {
    writeFileSync(join(folder, 'url'), database.readerUrl)
    const mount = { provider: 'postgres', url: { file: 'url' }, schemas: ['public'] }
    writeFileSync(join(folder, 'hikidashi.json'), JSON.stringify({ mounts: { 'postgres://localhost/app': mount } }))
    return [
      join(import.meta.dirname, '../dist/cli/main.js'),
      'serve',
      '--stdio',
      '--config',
      join(folder, 'hikidashi.json'),
    ]
  },
  official: () => [
    join(folder, 'node_modules/@modelcontextprotocol/server-postgres/dist/index.js'),
    database.readerUrl,
  ],
} as const
type Name = keyof typeof servers

async function queries(): Promise<number> {
  const [row] = await database.run(
    "SELECT sum(calls)::int AS n FROM stats.pg_stat_statements s JOIN pg_roles r ON r.oid = s.userid WHERE r.rolname = 'reader'",
  )
  return Number(row?.n ?? 0)
}

async function open(name: Name): Promise<Client> {
  const client = new Client({ name: 'bench', version: '0' }, { versionNegotiation: { mode: 'legacy' } })
  await client.connect(new StdioClientTransport({ command: process.execPath, args: servers[name](), stderr: 'ignore' }))
  return client
}

async function listAll(client: Client): Promise<readonly string[]> {
  const uris: string[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await client.listResources(cursor === undefined ? {} : { cursor })
    uris.push(...page.resources.map(({ uri }) => uri))
    cursor = page.nextCursor
    if (cursor === undefined) return uris.filter((uri) => uri.endsWith('/schema'))
  }
}

async function readAll(client: Client, uris: readonly string[], atOnce: number): Promise<number> {
  let bytes = 0
  const left = [...uris]
  const one = async () => {
    for (let uri = left.pop(); uri !== undefined; uri = left.pop()) {
      const [content] = (await client.readResource({ uri })).contents
      bytes += content !== undefined && 'text' in content ? content.text.length : 0
    }
  }
  await Promise.all(Array.from({ length: atOnce }, one))
  return bytes
}

interface Sample {
  readonly ms: number
  readonly queries: number
  readonly bytes: number
}

async function sample(work: () => Promise<number>): Promise<Sample> {
  const before = await queries()
  const start = performance.now()
  const bytes = await work()
  const ms = performance.now() - start
  return { ms, queries: (await queries()) - before, bytes }
}

const tasks = ['list', 'one after the other', '32 at once'] as const
const samples = new Map<string, Sample[]>()
try {
  for (let round = 0; round < rounds; round++) {
    const names = Object.keys(servers) as Name[]
    for (const name of round % 2 === 0 ? names : names.reverse()) {
      progress(`round ${round + 1} of ${rounds}, ${name} …`)
      const client = await open(name)
      const uris = await listAll(client)
      if (uris.length !== tables) throw new Error(`${name} lists ${uris.length} of ${tables} tables`)
      const runs: Readonly<Record<(typeof tasks)[number], () => Promise<number>>> = {
        list: async () => (await listAll(client)).length,
        'one after the other': () => readAll(client, uris, 1),
        '32 at once': () => readAll(client, uris, 32),
      }
      for (const task of tasks) {
        const key = `${task} ${name}`
        samples.set(key, [...(samples.get(key) ?? []), await sample(runs[task])])
      }
      await client.close()
    }
  }
  const rows = tasks.map((task) => {
    const of = (name: Name) => samples.get(`${task} ${name}`) ?? []
    const ms = (name: Name) => median(of(name).map((one) => one.ms))
    const asked = (name: Name) => median(of(name).map((one) => one.queries))
    const ratios = of('hikidashi').map((one, i) => one.ms / (of('official')[i]?.ms ?? Number.NaN))
    const size = (name: Name) => fixed(median(of(name).map((one) => one.bytes)) / 1024, 0)
    return [
      task,
      ...[fixed(ms('hikidashi'), 0), fixed(ms('official'), 0), fixed(median(ratios), 2)],
      ...[asked('hikidashi'), asked('official')],
      ...(task === 'list' ? ['', ''] : [size('hikidashi'), size('official')]),
    ]
  })
  const head = [
    'schemas of 1,000 tables',
    'hikidashi, ms',
    'official, ms',
    'ratio',
    'queries',
    'official',
    'KiB',
    'official',
  ]
  console.log(table(head, rows))
} finally {
  await database.remove()
  rmSync(folder, { recursive: true, force: true })
}
