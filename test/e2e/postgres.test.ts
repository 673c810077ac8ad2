import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { main, type Running, run, start } from '../support/cli.ts'
import { runHere } from '../support/cli-here.ts'
import { type Database, readerPassword, startDatabase } from '../support/database.ts'
import { eventually } from '../support/watching.ts'

const sql = `
CREATE TABLE customers (id bigint PRIMARY KEY, name text); COMMENT ON TABLE customers IS 'Who buys.';
INSERT INTO customers VALUES (1, 'Hana'), (9007199254740993, 'Ken');
CREATE TABLE orders (id int PRIMARY KEY, customer bigint REFERENCES customers)`

const folder = mkdtempSync(join(tmpdir(), 'hikidashi-e2e-postgres-'))
const config = join(folder, 'hikidashi.json')
let database: Database
let server: Running | undefined
let client: Client

beforeAll(async () => {
  database = await startDatabase(sql)
  writeFileSync(join(folder, 'url'), `${database.readerUrl}\n`)
  const mount = { provider: 'postgres', url: { file: 'url' }, schemas: ['public'], rows: true, reconcile: '200ms' }
  writeFileSync(
    config,
    JSON.stringify({ mounts: { 'postgres://localhost/shop': mount }, http: { listen: '127.0.0.1:0' } }),
  )
}, 120_000)
afterAll(async () => {
  await database?.remove()
  rmSync(folder, { recursive: true, force: true })
}, 120_000)
afterEach(async () => {
  await client?.close()
  server?.child.kill('SIGTERM')
  await server?.ended
  server = undefined
})

const transports = {
  stdio: async () =>
    new StdioClientTransport({
      command: process.execPath,
      args: [main, 'serve', '--config', config, '--stdio'],
      stderr: 'ignore',
    }),
  HTTP: async () => {
    server = start(['serve', '--config', config], { cwd: folder })
    const [, url = ''] = await server.says(/serves 1 mount at (http:\S+)\n/)
    return new StreamableHTTPClientTransport(new URL(url))
  },
} as const

describe.each(['stdio', 'HTTP'] as const)('over %s', (transport) => {
  test('a client lists PostgreSQL tables, reads them and their rows, completes names, and is notified of changes', async () => {
    client = new Client({ name: 'test', version: '0' }, { versionNegotiation: { mode: 'auto' } })
    const told: string[] = []
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => void told.push(params.uri))
    await client.connect(await transports[transport]())
    const { resources } = await client.listResources()
    expect(resources.map(({ uri }) => uri)).toEqual([
      'hikidashi://overview',
      'postgres://localhost/shop/customers/rows',
      'postgres://localhost/shop/customers/schema',
      'postgres://localhost/shop/customers/schema.sql',
      'postgres://localhost/shop/extensions',
      'postgres://localhost/shop/orders/rows',
      'postgres://localhost/shop/orders/schema',
      'postgres://localhost/shop/orders/schema.sql',
      'postgres://localhost/shop/overview',
    ])
    const read = async (path: string) => {
      const [content] = (await client.readResource({ uri: `postgres://localhost/shop/${path}` })).contents
      return { text: content !== undefined && 'text' in content ? content.text : '', mimeType: content?.mimeType }
    }
    const { text, mimeType } = await read('customers/schema')
    expect(mimeType).toBe('application/json;format=hikidashi.DatabaseSchema')
    expect(JSON.parse(text)).toMatchObject({
      schema: 'public',
      table: 'customers',
      comment: 'Who buys.',
      referencedBy: [{ from: { table: 'orders' } }],
    })
    expect(JSON.parse((await read('customers/rows?limit=1&after=1&columns=id,name')).text).rows).toEqual([
      { id: '9007199254740993', name: 'Ken' },
    ])
    expect(JSON.parse((await read('customers/rows/1')).text).rows).toEqual([{ id: '1', name: 'Hana' }])
    const { completion } = await client.complete({
      ref: { type: 'ref/resource', uri: 'postgres://localhost/shop/{table}/schema' },
      argument: { name: 'table', value: 'cu' },
    })
    expect(completion.values).toEqual(['customers'])

    const uri = 'postgres://localhost/shop/customers/schema'
    await client.listen({ resourceSubscriptions: [uri] })
    await database.run("COMMENT ON COLUMN customers.name IS 'As they write it.'")
    await eventually(() => told.includes(uri), 'told of the comment', 40_000)
    expect((await read('customers/schema')).text).toContain('As they write it.')
    await database.run('COMMENT ON COLUMN customers.name IS NULL')
  }, 120_000)
})

describe('hikidashi check with PostgreSQL', () => {
  test('accepts a good database, and reports a bad one without its password', async () => {
    const good = await run(['check', '--config', config], { cwd: folder })
    expect([good.code, good.out]).toEqual([0, expect.stringMatching(/^ok {4}/)])
    const bad = join(folder, 'bad.json')
    const mount = (url: string) => ({ provider: 'postgres', url: { env: url } })
    writeFileSync(
      bad,
      JSON.stringify({
        mounts: { 'postgres://a': mount('WRONG'), 'postgres://b': mount('STRONG'), 'postgres://c': mount('AWAY') },
      }),
    )
    const env = {
      WRONG: database.readerUrl.replace(readerPassword, 'not-the-password'),
      STRONG: database.superuserUrl,
      AWAY: 'postgres://reader:the-lost-password@127.0.0.1:1/app',
    }
    const { code, out, err } = await runHere(['check', '--config', bad], { cwd: folder, env })
    expect(code).toBe(1)
    expect(out).toMatch(/postgres:\/\/a[\s\S]*rejects the role or its password/)
    expect(out).toMatch(/postgres:\/\/b[\s\S]*can do more than read[\s\S]*hikidashi init --sql postgres/)
    expect(out).toMatch(/postgres:\/\/c[\s\S]*cannot be reached/)
    for (const secret of ['not-the-password', 'a-password-of-tests', 'the-lost-password'])
      expect(out + err).not.toContain(secret)
  }, 120_000)
})

describe('hikidashi init with PostgreSQL', () => {
  test('prints statements that create a role which check accepts, and refuses the name of an unknown database program', async () => {
    const { code, out } = await runHere(['init', '--sql', 'postgres'], { cwd: folder })
    expect(code).toBe(0)
    await database.run(out)
    await database.run("ALTER ROLE hikidashi_reader PASSWORD 'made-by-init'")
    writeFileSync(join(folder, 'made'), database.readerUrl.replace(/\/\/[^@]*@/, '//hikidashi_reader:made-by-init@'))
    const made = join(folder, 'made.json')
    writeFileSync(
      made,
      JSON.stringify({ mounts: { 'postgres://made': { provider: 'postgres', url: { file: 'made' } } } }),
    )
    const checked = await runHere(['check', '--config', made], { cwd: folder })
    expect([checked.code, checked.out]).toEqual([0, expect.stringContaining('ok')])
    expect((await runHere(['init', '--sql', 'oracle'], { cwd: folder })).code).toBe(2)
  }, 120_000)

  test('finds a database in .env, and does not print its URL', async () => {
    const own = mkdtempSync(join(tmpdir(), 'hikidashi-e2e-init-'))
    try {
      writeFileSync(join(own, '.env'), 'PORT=1\nDATABASE_URL="postgres://app:secret-of-env@db.internal/shop"\n')
      const { code, out, err } = await runHere(['init', '--stdout'], { cwd: own })
      expect(code).toBe(0)
      expect(out).toContain('"url": { "env": "DATABASE_URL" }')
      expect(out + err).not.toMatch(/secret-of-env|db\.internal/)
    } finally {
      rmSync(own, { recursive: true, force: true })
    }
  }, 60_000)
})
