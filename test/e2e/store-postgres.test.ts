import { createServer, type Socket } from 'node:net'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { openStore, type PostgresStore, type Store } from '../../src/store/index.ts'
import { type Postgres, startPostgres } from '../support/postgres.ts'
import { eventually, untilAvailable as until } from '../support/watching.ts'

// Each takes a second or less; on a machine that is busy with other things, whatever that makes of it.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

/** Rows 10 to 13 and 18 of the faults: what becomes of a store whose server is gone, frozen, slow or locked. */

let server: Postgres
let logged: string[]
let schema: string
let made = 0
const opened: Store[] = []

beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server?.remove())
beforeEach(() => {
  logged = []
  schema = `s${++made}`
})
afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()))
})

const open = async (options: Partial<PostgresStore['postgres']> = {}): Promise<Store> => {
  const postgres = {
    connectionString: server.url,
    schema,
    connections: 4,
    connectTimeoutMs: 3000,
    statementTimeoutMs: 3000,
    ...options,
  }
  const log = (level: string, message: string, fields?: object) =>
    void logged.push(`${level}: ${message} ${JSON.stringify(fields ?? {})}`)
  const store = await openStore({ postgres, log })
  opened.push(store)
  return store
}
const value = Buffer.from('value')
const gone = { kind: 'unavailable', detail: { fault: 'gone' } }

/** Listens to a collection until the test ends. */
async function listen(store: Store, collection: string) {
  const changes: (readonly string[] | undefined)[] = []
  const news = await store.watch(collection, new AbortController().signal)
  const follow = async () => {
    for await (const change of news) changes.push(change)
  }
  void follow()
  return { changes, has: (key: string) => changes.some((keys) => keys === undefined || keys.includes(key)) }
}

/** Writes rows one after the other in several places at once, until it is stopped. */
function load(store: Store, collection: string) {
  const acknowledged: string[] = []
  const failures: unknown[] = []
  let stopped = false
  const write = async (name: string) => {
    for (let i = 0; !stopped; i++) {
      const key = `${name}-${i}`
      try {
        await store.collection(collection).put({ key, value: Buffer.from(key) })
        acknowledged.push(key)
      } catch (error) {
        failures.push(error)
      }
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }
  const running = ['a', 'b', 'c'].map(write)
  return {
    acknowledged,
    failures,
    stop: async () => {
      stopped = true
      await Promise.all(running)
    },
  }
}

describe('a store in PostgreSQL', () => {
  test.each(['stop', 'kill'] as const)(
    'loses no acknowledged row when its server is restarted under load (%s), and continues',
    async (how) => {
      const store = await open()
      const told = await listen(store, 'c')
      const writing = load(store, 'c')
      await eventually(() => writing.acknowledged.length > 50, 'some are written')
      await server[how]()
      await eventually(() => writing.failures.length > 5, 'some fail')
      const [before, heard] = [writing.acknowledged.length, told.changes.length]
      await server.start()
      await eventually(() => writing.acknowledged.length > before + 50, 'some are written again', 40_000)
      await writing.stop()
      for (const error of writing.failures) expect(error).toMatchObject({ kind: 'unavailable' })
      const rows = await store.collection('c').list({ limit: 10_000, values: true })
      const found = new Set(rows.map(({ key }) => key))
      expect(writing.acknowledged.filter((key) => !found.has(key))).toEqual([])
      for (const row of rows) expect(Buffer.from(row.value).toString()).toBe(row.key)
      expect((await store.collection('c').size()).rows).toBe(rows.length)
      // Nobody knows what others did meanwhile, so anything may have changed; and then it is told again what does.
      await eventually(
        () => told.changes.slice(heard).includes(undefined),
        'that anything may have changed is told',
        40_000,
      )
      await store.collection('c').put({ key: 'last', value })
      await eventually(() => told.changes.some((keys) => keys?.includes('last')), 'what changes is told again', 40_000)
    },
    120_000,
  )

  test('fails without hanging while its server is frozen, and continues afterwards', async () => {
    const store = await open({ connectTimeoutMs: 1000, statementTimeoutMs: 1000 })
    const rows = store.collection('c')
    await rows.put({ key: 'a', value })
    server.freeze()
    try {
      const asked = Array.from({ length: 12 }, (_, i) =>
        i % 2 === 0 ? rows.get('a') : rows.put({ key: `k${i}`, value }),
      )
      const answers = await Promise.allSettled([...asked, store.lease('l', 60_000), rows.evict({ rows: 1000 })])
      for (const answer of answers)
        expect(answer).toMatchObject({ status: 'rejected', reason: { kind: 'unavailable' } })
    } finally {
      server.thaw()
    }
    await until(() => rows.put({ key: 'b', value }))
    // Every connection is free again.
    await Promise.all(Array.from({ length: 20 }, () => until(() => rows.get('b'))))
  })

  test('reconnects when its connections are closed, and reports the changes meanwhile', async () => {
    const [store, other] = [await open(), await open()]
    const told = await listen(store, 'c')
    await other.collection('c').put({ key: 'a', value })
    await eventually(() => told.has('a'), 'the change is told')
    told.changes.length = 0
    await server.run(
      `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'hikidashi' and query like 'listen%'`,
    )
    await until(() => other.collection('c').put({ key: 'b', value }))
    await eventually(() => told.has('b'), 'what changed meanwhile is told', 40_000)
    await server.run(`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'hikidashi'`)
    await until(() => store.collection('c').put({ key: 'c', value }))
    expect((await until(() => other.collection('c').list({ limit: 9 }))).map(({ key }) => key)).toEqual(['a', 'b', 'c'])
    await eventually(() => told.has('c'), 'that is told as well', 40_000)
  })

  test('opens while its server is down, logs that, and is usable once the server runs', async () => {
    await server.stop()
    const store = await open()
    expect(logged).toEqual([expect.stringContaining('does not answer')])
    await expect(store.collection('c').get('a')).rejects.toMatchObject(gone)
    const told = await listen(store, 'c')
    await server.start()
    await until(() => store.collection('c').put({ key: 'a', value }))
    await eventually(() => told.has('a'), 'the change is told', 40_000)
  })

  test('reports that it is busy while another program locks its tables', async () => {
    const store = await open({ statementTimeoutMs: 1000 })
    await store.collection('c').put({ key: 'a', value })
    const client = new pg.Client({ connectionString: server.superuserUrl })
    await client.connect()
    try {
      await client.query(`begin; lock table ${schema}.rows in access exclusive mode`)
      const busy = { kind: 'unavailable', detail: { fault: 'busy' } }
      await expect(store.collection('c').get('a')).rejects.toMatchObject(busy)
      await expect(store.collection('c').put({ key: 'b', value })).rejects.toMatchObject(busy)
    } finally {
      await client.end()
    }
    expect((await until(() => store.collection('c').get('a')))?.key).toBe('a')
    expect(await store.collection('c').get('b')).toBeUndefined()
  })

  test('creates its tables again after they were dropped', async () => {
    const store = await open()
    await store.collection('c').put({ key: 'a', value })
    await server.run(`drop schema ${schema} cascade`)
    await until(() => store.collection('c').put({ key: 'b', value }))
    expect((await store.collection('c').list({ limit: 9 })).map(({ key }) => key)).toEqual(['b'])
  })

  test('is created once by many that open it at the same time', async () => {
    for (let round = 0; round < 5; round++) {
      schema = `s${++made}`
      const stores = await Promise.all(Array.from({ length: 8 }, () => open({ connections: 1 })))
      await Promise.all(stores.map((store, i) => store.collection('c').put({ key: `${i}`, value })))
      expect(await stores[0]!.collection('c').size()).toMatchObject({ rows: 8 })
      expect(logged).toEqual([])
      await Promise.all(opened.splice(0).map((store) => store.close()))
    }
  })

  test('is refused if its schema has a newer version or belongs to another program, or if the schema name or the connection string is invalid', async () => {
    await open()
    await server.run(`update ${schema}.meta set version = 99`)
    await expect(open()).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('newer hikidashi'),
      detail: { reason: 'configuration' },
    })
    await server.run('create schema theirs; create table theirs.a (a int)')
    await expect(open({ schema: 'theirs' })).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('another program'),
      detail: { reason: 'configuration' },
    })
    await expect(open({ schema: 'x"; drop table y' })).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('lower-case letters'),
      detail: { reason: 'configuration' },
    })
    await expect(open({ connectionString: 'postgres://[' })).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('connection string'),
      detail: { reason: 'configuration' },
    })
  })

  test('can be read in a session that is read-only, and refuses a write with advice', async () => {
    const store = await open()
    await store.collection('c').put({ key: 'a', value })
    await server.run('alter role app set default_transaction_read_only = on')
    try {
      const reader = await open()
      expect((await reader.collection('c').get('a'))?.key).toBe('a')
      await expect(reader.collection('c').put({ key: 'b', value })).rejects.toMatchObject({
        kind: 'unavailable',
        message: expect.stringContaining('Name its primary server'),
        detail: { fault: 'read-only' },
      })
    } finally {
      await server.run('alter role app reset default_transaction_read_only')
    }
  })

  test('discloses no address or credentials of its server', async () => {
    const secret = 'canary-of-a-password'
    const wrong = server.url.replace(/:[^:@]*@/, `:${secret}@`)
    const nowhere = `postgres://canary-user:${secret}@canary-host.invalid:1/canary-database`
    const refused = `postgres://canary-user:${secret}@127.0.0.1:1/canary-database`
    for (const connectionString of [wrong, nowhere, refused]) {
      const store = await open({ connectionString })
      const error = await store
        .collection('c')
        .get('a')
        .catch((thrown: unknown) => thrown)
      expect(error).toMatchObject(gone)
      const told = [...logged, String(error), JSON.stringify(error), (error as Error).stack].join('\n')
      expect(told).not.toMatch(/canary|127\.0\.0\.1|password|app\b/)
      expect((error as Error).cause).toBeUndefined()
      await store.close()
    }
  })

  test('gives up on a server that accepts a connection and sends nothing', async () => {
    const sockets = new Set<Socket>()
    const silent = createServer((socket) => void sockets.add(socket))
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    const { port } = silent.address() as { port: number }
    try {
      const store = await open({ connectionString: `postgres://a:b@127.0.0.1:${port}/c`, connectTimeoutMs: 300 })
      await expect(store.collection('c').get('a')).rejects.toMatchObject(gone)
      await store.close()
    } finally {
      for (const socket of sockets) socket.destroy()
      silent.close()
    }
  })

  test('answers a request that waits for a connection longer than the connection time-out', async () => {
    const store = await open({ connections: 1, connectTimeoutMs: 1000, statementTimeoutMs: 10_000 })
    await store.collection('c').put({ key: 'a', value })
    const other = new pg.Client(server.url)
    await other.connect()
    await other.query(`begin; lock table ${schema}.rows in access exclusive mode`)
    const asked = Promise.all(['a', 'b', 'c'].map((key) => store.collection('c').get(key)))
    asked.catch(() => {})
    await new Promise((resolve) => setTimeout(resolve, 2500))
    await other.query('commit')
    await other.end()
    await expect(asked).resolves.toMatchObject([{ key: 'a' }, undefined, undefined])
  })

  test('has at most the configured number of connections and one that listens, and none after it is closed', async () => {
    const store = await open({ connections: 3 })
    const told = await listen(store, 'c')
    const count = async () => {
      const [found] = await server.run(
        `select count(*)::int as n from pg_stat_activity where application_name = 'hikidashi'`,
      )
      return Number(found?.n)
    }
    const asked = Promise.all(Array.from({ length: 60 }, (_, i) => store.collection('c').put({ key: `${i}`, value })))
    expect(await count()).toBeLessThanOrEqual(4)
    await asked
    await eventually(() => told.has('59'), 'all is told')
    await store.close()
    let left = Number.NaN
    const look = async () => {
      while (left !== 0) left = await count()
    }
    await Promise.all([look(), eventually(() => left === 0, 'no connection is left')])
  })
})
