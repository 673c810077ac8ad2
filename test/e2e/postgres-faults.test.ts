import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Provider } from '../../src/core/provider.ts'
import { type PostgresOptions, postgres } from '../../src/providers/postgres/index.ts'
import { asRole, connectionsOf, type Database, readerPassword, startDatabase, superuser } from '../support/database.ts'
import { type DatabaseProxy, startDatabaseProxy } from '../support/database-proxy.ts'
import { eventually, recovers, underLoad } from '../support/recovery.ts'
import { startWatching } from '../support/watching.ts'

// Faults 10 to 13 and 18: a database that is away, ends, freezes, is locked or slow. After each of them the same source, with
// nothing started again, answers as before, and holds no connection too many.

const sql = `
CREATE TABLE customers (id int PRIMARY KEY, name text); INSERT INTO customers SELECT i, 'name ' || i FROM generate_series(1, 20) i;
CREATE VIEW sleeping AS SELECT pg_sleep(1e9)::text AS x`

let database: Database
let proxy: DatabaseProxy
beforeAll(async () => {
  database = await startDatabase(sql)
  proxy = await startDatabaseProxy(database.port)
}, 120_000)
afterAll(async () => {
  await proxy?.close()
  await database?.remove()
}, 120_000)

const opened: Provider[] = []
afterEach(async () => {
  for (const provider of opened.splice(0)) await provider.close?.()
  proxy.pace = 'free'
  // Nothing is left over.
  await eventually(async () => (await connectionsOf(database)) === 0)
})

const size = 3

async function open(options: Partial<PostgresOptions> = {}): Promise<Provider> {
  const provider = await postgres({
    url: proxy.through(database.readerUrl),
    ...{ schemas: ['public'], rows: { views: true }, connections: size, reconcile: 200 },
    ...{ connectTimeoutMs: 2000, statementTimeoutMs: 1000, waitTimeoutMs: 5000 },
    ...options,
  })
  opened.push(provider)
  return provider
}

const contextOf = () => ({ principal: { id: 'someone', roles: [] }, signal: new AbortController().signal })
const read = (provider: Provider, path = 'customers/rows/1') => provider.read({ path, params: new Map() }, contextOf())

/** Waits until it answers, which has to be soon: it came back by itself. */
const answers = (provider: Provider) =>
  recovers(async () => {
    await read(provider)
    await read(provider, 'customers/schema')
  })

/** That reads fail with `unavailable`, and in words that hold nothing of the database. */
async function expectAway(provider: Provider): Promise<void> {
  const outcomes = await Promise.allSettled(
    Array.from({ length: 6 }, (_, i) => read(provider, i % 2 ? 'customers/schema' : 'customers/rows')),
  )
  for (const outcome of outcomes) {
    expect(outcome.status).toBe('rejected')
    if (outcome.status === 'rejected') expectClean(outcome.reason, 'unavailable')
  }
}

function expectClean(error: Error & { kind?: string; detail?: unknown; cause?: unknown }, kind: string): void {
  expect(error.kind, error.message).toBe(kind)
  const told = `${error.message} ${JSON.stringify(error.detail)} ${String(error.cause)}`
  expect(told).not.toMatch(/127\.0\.0\.1|localhost|reader|password-of|SELECT|relation|\bapp\b/)
  expect(error.message.length).toBeGreaterThan(15)
}

test('a PostgreSQL that is down at the start is tried again, and served once it runs (fault 10)', async () => {
  await database.stop()
  const told: string[] = []
  let provider: Provider
  try {
    provider = await open({ log: (level, message) => told.push(`${level} ${message}`) })
    expect(told).toEqual([expect.stringMatching(/^warn the database does not answer/)])
    await expectAway(provider)
  } finally {
    await database.start()
  }
  await answers(provider)
}, 120_000)

describe('a PostgreSQL', () => {
  test.each([
    ['is stopped and started', () => database.stop().then(() => database.start())],
    ['is killed and started', () => database.kill().then(() => database.start())],
    [
      'has every connection ended',
      () => database.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'hikidashi'"),
    ],
    ['is cut off by the network', async () => proxy.cut()],
  ])(
    'that %s under load answers again, and reports the changes meanwhile (fault 11)',
    async (_, fault) => {
      const provider = await open()
      const watching = await startWatching(provider)
      const settle = underLoad(() => read(provider))
      try {
        await answers(provider)
        await fault()
        await database.run("COMMENT ON TABLE customers IS 'changed'")
        await answers(provider)
        await watching.until('customers/schema')
      } finally {
        expect((await settle()).filter((kind) => kind !== 'unavailable')).toEqual([])
        await watching.stop()
        await database.run('COMMENT ON TABLE customers IS NULL')
      }
      // The pool, and none for the watch, which has ended.
      await eventually(async () => (await connectionsOf(database)) <= size)
    },
    120_000,
  )
})

test('a request to a frozen PostgreSQL times out, and succeeds once the server continues (fault 12)', async () => {
  const provider = await open({ waitTimeoutMs: 1000 })
  await answers(provider)
  database.freeze()
  try {
    await expectAway(provider)
    await expectAway(provider)
  } finally {
    database.thaw()
  }
  await answers(provider)
  await eventually(async () => (await connectionsOf(database)) <= size)
}, 120_000)

test('a locked PostgreSQL table is unavailable, not absent (fault 13)', async () => {
  const provider = await open({ lockTimeoutMs: 200, statementTimeoutMs: 20_000 })
  const holder = await superuser(database)
  try {
    await holder.query('BEGIN; LOCK TABLE customers IN ACCESS EXCLUSIVE MODE')
    const error = await read(provider).catch((thrown) => thrown)
    expectClean(error, 'unavailable')
    expect(error.message).toContain('lock')
  } finally {
    await holder.end()
  }
  await answers(provider)
}, 120_000)

describe('a request to a PostgreSQL', () => {
  test.each(['slow', 'stuck'] as const)(
    'that is %s times out, and succeeds afterwards (fault 18)',
    async (pace) => {
      const provider = await open({ waitTimeoutMs: 1000 })
      await answers(provider)
      proxy.pace = pace
      await expectAway(provider)
      proxy.pace = 'free'
      await answers(provider)
      await eventually(async () => (await connectionsOf(database)) <= size)
    },
    120_000,
  )
})

describe('a role of PostgreSQL', () => {
  test('with a wrong password or database gives an error when the source is opened, as does an invalid URL', async () => {
    for (const url of [
      asRole(database.superuserUrl, 'reader', 'wrong'),
      asRole(database.superuserUrl, 'nobody', 'wrong'),
      database.readerUrl.replace(/\/app$/, '/none'),
    ]) {
      const error = await postgres({ url }).catch((thrown) => thrown)
      expectClean(error, 'invalid')
      expect(error.message).toMatch(/URL/)
    }
    for (const url of ['', 'mysql://a@b/c', 'postgres://', 'postgres://host/db'])
      expect(await postgres({ url, tls: { mode: 'off' } }).catch((thrown) => thrown), url).toMatchObject({
        kind: 'invalid',
      })
  })

  test('whose password changes causes an error that says so when it has to connect again, and reads again with the right password', async () => {
    const provider = await open()
    await answers(provider)
    await database.run("ALTER ROLE reader PASSWORD 'another-one'")
    try {
      proxy.cut()
      await eventually(async () => {
        const error = await read(provider).catch((thrown) => thrown)
        expectClean(error, 'unavailable')
        return /rejects the role or its password/.test(error.message)
      })
    } finally {
      await database.run(`ALTER ROLE reader PASSWORD '${readerPassword}'`)
    }
    await answers(provider)
  }, 120_000)

  test('that loses a privilege no longer sees the table, and sees it again once it has the privilege', async () => {
    const provider = await open()
    const watching = await startWatching(provider)
    const listed = async () => {
      const paths: string[] = []
      for await (const { path } of provider.list({}, contextOf())) paths.push(path)
      return paths.filter((path) => path.startsWith('customers/'))
    }
    expect(await listed()).toHaveLength(3)
    await database.run('REVOKE SELECT ON customers FROM reader')
    try {
      expect(await listed()).toEqual([])
      for (const path of ['customers/schema', 'customers/rows', 'customers/rows/1'])
        await expect(read(provider, path)).rejects.toMatchObject({ kind: 'not-found' })
      await watching.until('customers/')
    } finally {
      await database.run('GRANT SELECT ON customers TO reader')
      await watching.stop()
    }
    expect(await listed()).toHaveLength(3)
  }, 120_000)

  test('at its connection limit causes an error that no connection is free, and reads again once one is free', async () => {
    const provider = await open()
    await answers(provider)
    await database.run('ALTER ROLE reader CONNECTION LIMIT 0')
    try {
      proxy.cut()
      await eventually(async () => /no free connection/.test((await read(provider).catch((thrown) => thrown)).message))
    } finally {
      await database.run('ALTER ROLE reader CONNECTION LIMIT -1')
    }
    await answers(provider)
  }, 120_000)
})

test('a request to PostgreSQL waits for a free connection for a limited time, and then fails with the number of connections in use', async () => {
  const provider = await open({ statementTimeoutMs: 600_000, waitTimeoutMs: 300 })
  const gone = new AbortController()
  const sleepers = Array.from({ length: size }, () =>
    provider
      .read({ path: 'sleeping/rows', params: new Map() }, { ...contextOf(), signal: gone.signal })
      .catch(() => {}),
  )
  await eventually(async () => {
    const [row] = await database.run(
      "SELECT count(*)::int AS n FROM pg_stat_activity WHERE query LIKE '%sleeping%' AND state = 'active' AND application_name = 'hikidashi'",
    )
    return row?.n === size
  })
  const error = await read(provider).catch((thrown) => thrown)
  expectClean(error, 'unavailable')
  expect(error.message).toContain(`All ${size} connections`)
  gone.abort()
  await Promise.all(sleepers)
  await answers(provider)
}, 120_000)
