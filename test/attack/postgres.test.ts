import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Provider } from '../../src/core/provider.ts'
import { mysql } from '../../src/providers/mysql/index.ts'
import { parseDatabaseUrl as mysqlTarget, openSession as openMysql } from '../../src/providers/mysql/session.ts'
import { parseDatabaseUrl } from '../../src/providers/postgres/connection.ts'
import { describeRelations } from '../../src/providers/postgres/describe.ts'
import { type PostgresOptions, postgres } from '../../src/providers/postgres/index.ts'
import { eventTriggerSql } from '../../src/providers/postgres/role.ts'
import { readRows } from '../../src/providers/postgres/rows.ts'
import { openSession } from '../../src/providers/postgres/session.ts'
import type { PostgresSession } from '../../src/providers/postgres/sql.ts'
import { completeServerOptions, type ServerSettings } from '../../src/providers/relational/open.ts'
import { asRole, connectionsOf, type Database, grants, startDatabase, superuser } from '../support/database.ts'
import { startDatabaseProxy } from '../support/database-proxy.ts'
import { authority, startTlsFront } from '../support/database-tls.ts'
import { hasMariadb, type Mariadb, startMariadb } from '../support/mariadb.ts'
import { hasTurn, volume, volumeOf } from '../support/volume.ts'
import { startWatching } from '../support/watching.ts'
import { useArena, wireNames } from './harness/arena.ts'
import { expectOutcome } from './harness/oracles.ts'
import { startConfigured } from './harness/target.ts'
import type { Wire } from './harness/wire.ts'
import { eachWire, wireShare } from './harness/wires.ts'
import type { World } from './harness/world.ts'

// The rows PG of the attack corpus, on a real PostgreSQL (and where they apply on SQLite, and on MariaDB where that is there): those that a client can try against the built command line, the
// others against the provider. That no canary leaves in any spelling, the arena looks after (oracle O1).

/** Values of which a page holds hardly anything: PostgreSQL packs and unpacks them for a while. */
const huge = { characters: volumeOf(300_000_000, 100_000_000), bytes: volumeOf(10_000_000, 3_000_000) }

const sql = `
CREATE TABLE customers (id int PRIMARY KEY, name text);
INSERT INTO customers SELECT i, 'name ' || i FROM generate_series(1, 20) i;
CREATE TABLE masked (id int PRIMARY KEY, open text, secret text);
CREATE TABLE elsewhere_parts (id int) PARTITION BY LIST (id);
CREATE SCHEMA private; CREATE TABLE private.vault (id int PRIMARY KEY, secret text);
CREATE EXTENSION file_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
CREATE TABLE written (id int); INSERT INTO written VALUES (1);
CREATE FUNCTION write_it() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN INSERT INTO written VALUES (2); RETURN 1; END $$;
CREATE VIEW writing AS SELECT write_it() AS x;
CREATE FUNCTION set_it() RETURNS text LANGUAGE plpgsql AS $$ BEGIN
  PERFORM set_config('default_transaction_read_only', 'off', false), set_config('statement_timeout', '0', false),
          set_config('search_path', 'private', false), set_config('row_security', 'off', false), set_config('DateStyle', 'German', false);
  RETURN current_setting('default_transaction_read_only'); END $$;
CREATE VIEW setting AS SELECT set_it() AS x;
CREATE FUNCTION lock_it() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
  PERFORM pg_advisory_lock(4711); PERFORM set_config('app.left', 'over', false); EXECUTE 'LISTEN left_over'; RETURN 1; END $$;
CREATE VIEW locking AS SELECT lock_it() AS x;
CREATE FUNCTION lock_and_fail() RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_lock(4711); RETURN 1 / 0; END $$;
CREATE VIEW failing_locked AS SELECT lock_and_fail() AS x;
CREATE FUNCTION prepare_it() RETURNS int LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'PREPARE left_over AS SELECT 1'; RETURN 1; END $$;
CREATE VIEW preparing AS SELECT prepare_it() AS x;
CREATE FUNCTION state() RETURNS text LANGUAGE sql AS $$ SELECT concat_ws(' ', current_setting('app.left', true),
  (SELECT string_agg(name, ',') FROM pg_prepared_statements WHERE from_sql), (SELECT string_agg(c, ',') FROM pg_listening_channels() c)) $$;
CREATE VIEW stateful AS SELECT state() AS x;
CREATE FUNCTION commit_it() RETURNS int LANGUAGE plpgsql AS $$ BEGIN COMMIT; RETURN 1; END $$;
CREATE VIEW committing AS SELECT commit_it() AS x;
CREATE FUNCTION become_it() RETURNS int LANGUAGE plpgsql AS $$ BEGIN SET LOCAL ROLE postgres; RETURN 1; END $$;
CREATE VIEW becoming AS SELECT become_it() AS x;
CREATE FUNCTION writable() RETURNS int LANGUAGE plpgsql AS $$ BEGIN SET TRANSACTION READ WRITE; RETURN 1; END $$;
CREATE VIEW unlocking AS SELECT writable() AS x;
CREATE FUNCTION passwords() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN pg_read_file('/etc/passwd'); END $$;
CREATE VIEW reading AS SELECT passwords() AS x;
CREATE FUNCTION program() RETURNS int LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'COPY customers TO PROGRAM ''id'''; RETURN 1; END $$;
CREATE VIEW programming AS SELECT program() AS x;
CREATE FUNCTION exporting() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN lo_export(1, '/tmp/x'); END $$;
CREATE VIEW exports AS SELECT exporting() AS x;
CREATE VIEW sleeping AS SELECT pg_sleep(1e9)::text AS x;
CREATE VIEW crossing AS SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b;
CREATE VIEW counting AS SELECT count(*) FROM generate_series(1, 1000000000000) a;
CREATE VIEW endless AS WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r) SELECT count(*) FROM r;
CREATE TABLE big (id int PRIMARY KEY, body text, raw bytea);
INSERT INTO big VALUES (1, repeat('x', ${huge.characters}), decode(repeat('00', ${huge.bytes}), 'hex'));
CREATE TABLE many_rows (id int PRIMARY KEY, t text); INSERT INTO many_rows SELECT i, i::text FROM generate_series(1, 200000) i;
CREATE TABLE owned_by_tenants (id int PRIMARY KEY, tenant text);
INSERT INTO owned_by_tenants SELECT i, 'tenant ' || i % 2 FROM generate_series(1, 10) i;
ALTER TABLE owned_by_tenants ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON owned_by_tenants USING (tenant = current_setting('app.tenant', true));
CREATE DOMAIN positive AS int CHECK (value > 0); CREATE TYPE mood AS ENUM ('ok');
CREATE TABLE exact (id int PRIMARY KEY, n numeric, d date, l bigint, b bytea, m mood, p positive, r numrange, x xml, j json);
INSERT INTO exact VALUES (1, ('1' || repeat('0', 400))::numeric, '-infinity', -9223372036854775808, '\\x00', 'ok', 7, '[1.10,2)', '<a>&#xd;</a>',
  '{"nul": "\\u0000", "n": 1e400}');
ANALYZE customers`

const wide = Array.from({ length: 1600 }, (_, i) => `c${i} text`).join(', ')

/** The same tables where they are asked for over SQLite and MySQL: what the reader may not see of them is a canary. */
const smallSql = `
CREATE TABLE customers (id int PRIMARY KEY, name text);
INSERT INTO customers VALUES ${Array.from({ length: 20 }, (_, i) => `(${i + 1}, 'name ${i + 1}')`).join(', ')};
CREATE TABLE masked (id int PRIMARY KEY, open text, secret text); CREATE VIEW masking AS SELECT id, secret FROM masked;`

let database: Database
let mariadb: Mariadb | undefined
const opened: Provider[] = []
beforeAll(async () => {
  // Statistics that it gathers by itself, a minute after a table was filled, could change the plans whose reads are counted.
  database = await startDatabase(sql, ['-c', 'autovacuum=off'])
  await database.run(
    `CREATE TABLE very_wide (${wide}); INSERT INTO very_wide (c0, c1599) VALUES ('first', 'last'); ${grants}`,
  )
  await database.run(
    'REVOKE ALL ON masked FROM reader; REVOKE ALL ON SCHEMA private FROM reader; REVOKE ALL ON private.vault FROM reader',
  )
  await database.run('GRANT SELECT (id, open) ON masked TO reader')
  if (hasMariadb) mariadb = await startMariadb(smallSql)
}, 120_000)
afterAll(async () => {
  for (const provider of opened) await provider.close?.()
  await database?.remove()
  await mariadb?.remove()
}, 120_000)

let prepared: Promise<void> | undefined

/** Secrets in the database, in a file of its machine, and in the URL that the server is given. */
async function plant(world: World): Promise<void> {
  const file = join(dirname(world.root), 'foreign.csv')
  writeFileSync(file, `${world.canaries.plant('foreign')}\n`)
  const secret = world.canaries.plant('row')
  const password = world.canaries.plant('password')
  await database.run(`INSERT INTO masked VALUES (1, 'open', '${secret}'); INSERT INTO private.vault VALUES (1, '${secret}');
    CREATE FOREIGN TABLE foreigner (line text) SERVER files OPTIONS (filename '${file}');
    CREATE FOREIGN TABLE foreign_part PARTITION OF elsewhere_parts FOR VALUES IN (1) SERVER files OPTIONS (filename '${file}');
    GRANT SELECT ON foreigner, foreign_part TO reader; ALTER ROLE reader PASSWORD '${password}'`)
  const small = new DatabaseSync(join(dirname(world.root), 'small.db'))
  small.exec(
    `${smallSql} INSERT INTO masked VALUES (1, 'open', '${secret}'); CREATE TABLE vault (secret text); INSERT INTO vault VALUES ('${secret}')`,
  )
  small.close()
  if (mariadb !== undefined) {
    await mariadb.run(`INSERT INTO masked VALUES (1, 'open', '${secret}'); CREATE DATABASE private; CREATE TABLE private.vault (secret text);
      INSERT INTO private.vault VALUES ('${secret}'); CREATE USER part@'%' IDENTIFIED BY '${password}';
      GRANT SELECT ON app.customers TO part@'%'; GRANT SELECT (id, open) ON app.masked TO part@'%'`)
    writeFileSync(join(dirname(world.root), 'mysql'), mariadb.readerUrl.replace(/\/\/[^@]*@/, `//part:${password}@`))
  }
  writeFileSync(join(dirname(world.root), 'url'), asRole(database.superuserUrl, 'reader', password))
}

const arena = useArena(
  {},
  async (world, { transport }) => {
    prepared ??= plant(world)
    await prepared
    return startConfigured(world, transport, {
      mounts: {
        [world.address]: { provider: 'files', root: world.root },
        'postgres://db/app': { provider: 'postgres', url: { file: './url' }, schemas: ['public'], rows: true },
        'postgres://db/all': { provider: 'postgres', url: { file: './url' }, rows: { limit: 10 } },
        'sqlite://db': {
          provider: 'sqlite',
          file: './small.db',
          rows: { tables: ['customers', 'masked'], columns: { deny: ['masked/secret'] } },
        },
        ...(mariadb === undefined ? {} : { 'mysql://db': { provider: 'mysql', url: { file: './mysql' }, rows: true } }),
      },
    })
  },
  // What reads a file of SQLite is a process of its own.
  { slack: { descriptors: 64, threads: 24 }, programs: ['node', 'sh'] },
)

/** What is asked over a wire: the wires take what there is to ask in turn, in full volume two of them each. */
const askedOver = <T>(at: number, all: readonly T[]): readonly T[] =>
  all.filter((_, row) => hasTurn(row, at, arena.wires.length, wireShare(arena.wires)))

const textOf = (wire: Wire, uri: string) => arena.read(wire, uri).then((answer) => answer.raw.toString())

describe('a client of a PostgreSQL mount', () => {
  eachWire(wireNames)('gets no data by a name that contains SQL, over %s (PG01)', async (name) => {
    const wire = arena.wire(name)
    const names = [
      ...[
        't"; drop table customers; --',
        "t') union select 1 --",
        '"customers"',
        'public.customers',
        'CUSTOMERS',
        'customers ',
        ' customers',
      ],
      ...[
        "customers'",
        'customers"',
        'customers;',
        '$1',
        'pg_class',
        'x'.repeat(63),
        'x'.repeat(64),
        'x'.repeat(70),
        'あ'.repeat(40),
      ],
      ...['customers~', '~63ustomers', '%', '%25', '__proto__', '\u{10ffff}', "customers' OR '1'='1"],
    ]
    for (const [i, one] of names.entries()) {
      const encoded = encodeURIComponent(one)
      const uris = [
        `postgres://db/app/${encoded}/schema`,
        `postgres://db/all/public/${encoded}/rows`,
        `postgres://db/all/${encoded}/customers/schema`,
      ]
      // Each name in one place over each transport, and everywhere over all of them.
      const uri = uris[(i + wireNames.indexOf(name)) % uris.length] ?? ''
      expectOutcome(wire, await arena.read(wire, uri), 'NF', uri)
    }
    for (const bad of ['customers%00', '%ED%A0%80', 'a%2Fb']) {
      const uri = `postgres://db/app/${bad}/schema`
      expectOutcome(wire, await arena.read(wire, uri), 'BAD', uri)
    }
    const good = 'postgres://db/app/customers/schema'
    expectOutcome(wire, await arena.read(wire, good), 'ctl', good)
  })

  eachWire(wireNames)(
    'sees neither a system schema nor a schema that the database role may not use, over %s (PG02)',
    async (name) => {
      const wire = arena.wire(name)
      for (const schema of [
        'pg_catalog',
        'information_schema',
        'pg_toast',
        'pg_temp_1',
        'pg_toast_temp_1',
        'private',
        'public/../pg_catalog',
      ])
        for (const table of ['pg_class', 'tables', 'pg_authid', 'vault']) {
          const uri = `postgres://db/all/${schema}/${table}/schema`
          expectOutcome(wire, await arena.read(wire, uri), schema.includes('..') ? 'BAD' : 'NF', uri)
        }
    },
  )

  test('reaches no other server or file through foreign tables, and runs nothing by reading views (PG03)', async () => {
    const paths = [
      'foreigner/schema',
      'foreigner/rows',
      'foreign_part/rows',
      'elsewhere_parts/rows',
      'writing/rows',
      'sleeping/rows',
    ]
    for (const [at, wire] of arena.wires.entries()) {
      for (const path of askedOver(at, paths)) {
        const uri = `postgres://db/app/${path}`
        expectOutcome(wire, await arena.read(wire, uri), 'NF', uri)
      }
      expect(await textOf(wire, 'postgres://db/app/writing/schema')).toContain('write_it')
    }
    expect(await database.run('SELECT * FROM written')).toHaveLength(1)
  })

  test('cannot inject SQL through the key of a row or the position of a page (PG12)', async () => {
    const forged = [
      "1' OR '1'='1",
      '1) OR (1=1',
      '1; DROP TABLE customers',
      '1 UNION SELECT 1',
      '0x1',
      '1e0',
      '+1',
      ' 1',
      '1/**/',
      '~',
      'NULL',
      '99999999999999999999',
    ]
    for (const [at, wire] of arena.wires.entries())
      for (const after of askedOver(at, forged)) {
        const encoded = encodeURIComponent(after)
        const row = `postgres://db/app/customers/rows/${encoded}`
        if (!after.includes('/')) expectOutcome(wire, await arena.read(wire, row), 'NF', row)
        const { message } = await arena.read(wire, `postgres://db/app/customers/rows?after=${encoded}`)
        const [content] = (message?.result?.contents ?? []) as readonly { readonly text: string }[]
        // What PostgreSQL takes for the same number is that number, and no more.
        if (content === undefined) expect(message?.error?.code).toBe(-32602)
        else expect(JSON.parse(content.text).rows.length, after).toBeLessThan(20)
      }
    expect(await database.run('SELECT * FROM customers')).toHaveLength(20)
  })

  test('is shown only columns that the database role may read, and is refused if it asks for others (PG19)', async () => {
    for (const [at, wire] of arena.wires.entries()) {
      for (const path of askedOver(at, ['schema', 'schema.sql', 'rows', 'rows/1', 'rows?columns=id,open']))
        expect(await textOf(wire, `postgres://db/app/masked/${path}`), path).not.toContain('secret')
      const forged = ['secret', 'id,secret', '*', 'id%2Csecret', 'ctid', 'masked', 'tableoid']
      for (const columns of askedOver(at, forged)) {
        const { message } = await arena.read(wire, `postgres://db/app/masked/rows?columns=${columns}`)
        expect(message?.error?.code, columns).toBe(-32602)
      }
      const { message } = await arena.ask(wire, 'completion/complete', {
        ref: { type: 'ref/resource', uri: 'postgres://db/app/{table}/rows{?limit,after,columns}' },
        argument: { name: 'columns', value: '' },
        context: { arguments: { table: 'masked' } },
      })
      expect(message?.result?.completion).toMatchObject({ values: ['id', 'open'] })
    }
  })
})

describe.each(hasMariadb ? ['sqlite', 'mysql'] : ['sqlite'])('a client of %s', (kind) => {
  test('cannot inject SQL with names, keys and columns (PG01, PG02, PG12, PG19)', async () => {
    const names = [
      'customers"; drop table customers; --',
      "customers' or '1'='1",
      'customers`',
      'Customers',
      'main.customers',
      'app.customers',
    ]
    const others = [
      'sqlite_schema',
      'pragma_table_info',
      'information_schema',
      'mysql',
      'private',
      'customers ',
      '~63ustomers',
      '%',
      '?',
      '@@version',
    ]
    const keys = [
      "1' OR '1'='1",
      '1) OR (1=1',
      '1; DROP TABLE customers',
      '1 UNION SELECT 1',
      '0x1',
      '1e0',
      '+1',
      ' 1',
      "x'31'",
      'NULL',
      '?1',
      '01',
    ]
    for (const [at, wire] of arena.wires.entries()) {
      for (const [i, name] of [...names, ...others].entries()) {
        const paths = ['schema', 'rows', 'rows/1']
        // Each name in one place over each transport, and everywhere over all of them; in full volume also everywhere over one.
        const tried = volume < 1 || at > 0 ? paths.filter((_, place) => place === (i + at) % paths.length) : paths
        for (const path of tried) {
          const uri = `${kind}://db/${encodeURIComponent(name)}/${path}`
          expectOutcome(wire, await arena.read(wire, uri), 'NF', uri)
        }
      }
      for (const key of askedOver(at, keys)) {
        const row = `${kind}://db/customers/rows/${encodeURIComponent(key)}`
        expectOutcome(wire, await arena.read(wire, row), 'NF', row)
        const { message } = await arena.read(wire, `${kind}://db/customers/rows?after=${encodeURIComponent(key)}`)
        const [content] = (message?.result?.contents ?? []) as readonly { readonly text: string }[]
        if (content === undefined) expect(message?.error?.code, key).toBe(-32602)
        else expect(JSON.parse(content.text).rows.length, key).toBeLessThan(20)
      }
      const forged = ['secret', 'id,secret', '*', 'id%2Csecret', 'rowid', 'masked', '(select 1)', '1']
      for (const columns of askedOver(at, forged)) {
        const { message } = await arena.read(wire, `${kind}://db/masked/rows?columns=${columns}`)
        expect(message?.error?.code, columns).toBe(-32602)
      }
      for (const value of askedOver(at, ["' or 1=1", 'cust%', 'cust_', '\\', '"']))
        for (const name of ['table', 'key', 'columns']) {
          const { message } = await arena.ask(wire, 'completion/complete', {
            ref: { type: 'ref/resource', uri: `${kind}://db/{table}/rows/{key}` },
            argument: { name, value },
            context: { arguments: { table: 'customers' } },
          })
          const { values = [] } = (message?.result?.completion ?? {}) as { readonly values?: readonly string[] }
          expect(values, value).toEqual([])
        }
      const seen = ['masked/rows', 'masked/rows/1', 'masked/rows?columns=id,open', 'customers/schema', 'overview']
      for (const path of askedOver(at, seen)) {
        const uri = `${kind}://db/${path}`
        expectOutcome(wire, await arena.read(wire, uri), 'ctl', uri)
      }
      // Of a view the rows are not served, and of what is not named nothing.
      for (const path of askedOver(at, ['masking/rows', 'vault/rows', 'private/vault/schema'])) {
        const uri = `${kind}://db/${path}`
        expectOutcome(wire, await arena.read(wire, uri), 'NF', uri)
      }
    }
  }, 60_000)
})

const context = () => ({ principal: { id: 'someone', roles: [] }, signal: new AbortController().signal })
const readerUrl = () => readFileSync(join(dirname(arena.world.root), 'url'), 'utf8')

async function open(options: Partial<PostgresOptions> = {}): Promise<Provider> {
  const provider = await postgres({ url: readerUrl(), schemas: ['public'], rows: { views: true }, ...options })
  opened.push(provider)
  return provider
}

async function read(
  provider: Provider,
  path: string,
  params: Record<string, string> = {},
  id = 'someone',
): Promise<string> {
  const own = { principal: { id, roles: [] }, signal: new AbortController().signal }
  const [content] = await provider.read({ path, params: new Map(Object.entries(params)) }, own)
  return content !== undefined && 'text' in content ? content.text : ''
}

async function withSession<T>(settings: ServerSettings, work: (session: PostgresSession) => Promise<T>): Promise<T> {
  const session = await openSession(parseDatabaseUrl(readerUrl(), undefined), settings, new AbortController().signal)
  try {
    return await work(session)
  } finally {
    session.close()
  }
}

const failure = (work: Promise<unknown>): Promise<Record<string, unknown>> =>
  work.then(
    () => ({}),
    (error: Record<string, unknown>) => error,
  )

describe('the role of a database mount', () => {
  const roles: readonly (readonly [name: string, made: string, told: RegExp])[] = [
    ['is a superuser', 'SUPERUSER', /superuser/],
    ['passes by row-level security', 'BYPASSRLS', /BYPASSRLS/],
    ['may replicate', 'REPLICATION', /REPLICATION/],
    ['may create roles', 'CREATEROLE', /CREATEROLE/],
    ['may become a superuser', 'IN ROLE postgres', /superuser/],
    ['may run programs', 'IN ROLE pg_execute_server_program', /pg_execute_server_program/],
    ['may read files', 'IN ROLE pg_read_server_files', /pg_read_server_files/],
    ['may write everything', 'IN ROLE pg_write_all_data', /pg_write_all_data/],
  ]

  test.each(roles)(
    'that %s is refused when the source is opened, unless allowPrivileged is set (PG04)',
    async (_, made, told) => {
      await database.run(
        `CREATE ROLE strong LOGIN PASSWORD 'the-strong-password' ${made}; GRANT USAGE ON SCHEMA public TO strong`,
      )
      try {
        const url = asRole(database.superuserUrl, 'strong', 'the-strong-password')
        const error = await failure(open({ url }))
        expect(error).toMatchObject({ kind: 'invalid', message: expect.stringMatching(told) })
        expect(String(error.message)).not.toContain('the-strong-password')
        await open({ url, allowPrivileged: true })
      } finally {
        await opened.pop()?.close?.()
        await database.run('DROP OWNED BY strong; DROP ROLE strong')
      }
    },
  )

  test.each([
    ['owns a table', 'ALTER TABLE customers OWNER TO strong', 'ALTER TABLE customers OWNER TO postgres'],
    ['may write to a table', 'GRANT INSERT ON customers TO strong', 'REVOKE ALL ON customers FROM strong'],
    [
      'may call a function that reads files (PG08)',
      'GRANT EXECUTE ON FUNCTION pg_read_file(text) TO strong',
      'REVOKE ALL ON FUNCTION pg_read_file(text) FROM strong',
    ],
  ])('that %s is refused (PG04)', async (_, grant, revoke) => {
    await database.run(
      `CREATE ROLE strong LOGIN PASSWORD 'the-strong-password'; GRANT USAGE, CREATE ON SCHEMA public TO strong; ${grant}`,
    )
    try {
      const error = await failure(open({ url: asRole(database.superuserUrl, 'strong', 'the-strong-password') }))
      expect(error).toMatchObject({ kind: 'invalid', message: expect.stringMatching(/can do more than read/) })
    } finally {
      await database.run(`${revoke}; DROP OWNED BY strong; DROP ROLE strong`)
    }
  })
})

test('PostgreSQL gets every statement over the extended protocol, which takes one statement at a time (PG06)', async () => {
  const folder = join(import.meta.dirname, '../../src/providers/postgres')
  const asking = readdirSync(folder).filter((file) => /client\.query\(/.test(readFileSync(join(folder, file), 'utf8')))
  expect(asking).toEqual(['session.ts'])
  expect(readFileSync(join(folder, 'session.ts'), 'utf8').match(/client\.query\(\{/g)).toHaveLength(1)
  expect(readFileSync(join(folder, 'session.ts'), 'utf8')).toContain("queryMode: 'extended'")
  const proxy = await startDatabaseProxy(database.port)
  try {
    const provider = await open({ url: proxy.through(readerUrl()) })
    for (const path of [
      'customers/schema',
      'customers/rows',
      'customers/rows/1',
      'overview',
      'extensions',
      'mood/enum',
      'set_it/function',
    ])
      await read(provider, path)
    expect(proxy.simple).toEqual([])
    expect(proxy.executed).toBeGreaterThan(10)
  } finally {
    await proxy.close()
  }
})

describe('code in views, where they are allowed,', () => {
  test('cannot write, commit, change the role, or affect later statements (PG07)', async () => {
    const provider = await open({ connections: 1 })
    for (const view of ['writing', 'committing', 'becoming', 'unlocking'])
      expect(await failure(read(provider, `${view}/rows`)), view).toMatchObject({ name: 'ResourceError' })
    expect(await database.run('SELECT * FROM written')).toHaveLength(1)
    // It may set what it likes for itself: nothing of that is left.
    await read(provider, 'setting/rows')
    expect(JSON.parse(await read(provider, 'exact/rows')).rows[0].d).toBe('-infinity')
    expect(await failure(read(provider, 'writing/rows'))).toMatchObject({ name: 'ResourceError' })
    expect(await database.run('SELECT * FROM written')).toHaveLength(1)
    expect(await failure(read(provider, 'customers/schema'))).toEqual({})
  })

  test.each([false, true])(
    'leaves no advisory lock, setting, statement or channel on a shared connection (behind a pooler: %s) (PG07)',
    async (disguise) => {
      const proxy = await startDatabaseProxy(database.port)
      proxy.disguise = disguise
      const other = await superuser(database)
      try {
        const provider = await open({ url: proxy.through(readerUrl()), connections: 1 })
        const isFree = async () => {
          const { rows } = await other.query('SELECT pg_try_advisory_lock(4711) AS got')
          if (rows[0].got) await other.query('SELECT pg_advisory_unlock(4711)')
          return rows[0].got as boolean
        }
        expect(await failure(read(provider, 'locking/rows'))).toEqual({})
        expect(await isFree()).toBe(true)
        expect(await failure(read(provider, 'failing_locked/rows'))).toMatchObject({ name: 'ResourceError' })
        expect(await isFree()).toBe(true)
        expect(await failure(read(provider, 'preparing/rows'))).toEqual({})
        expect(JSON.parse(await read(provider, 'stateful/rows')).rows[0].x).toBe('')
      } finally {
        await other.end()
        await proxy.close()
      }
    },
  )

  test.skipIf(!hasMariadb)('leaves no lock, variable or setting in a session of MariaDB (PG07)', async () => {
    if (mariadb === undefined) throw new Error('there is none')
    await mariadb.run(`CREATE VIEW locking AS SELECT GET_LOCK('left', 0) AS x;
      CREATE FUNCTION leave_it() RETURNS int NO SQL BEGIN
        SET @left = 7; SET SESSION sql_mode = 'ANSI'; SET SESSION tx_read_only = 0; RETURN 1; END;
      CREATE VIEW leaving AS SELECT leave_it() AS x;
      GRANT EXECUTE ON app.* TO reader@'%'`)
    const provider = await mysql({ url: mariadb.readerUrl, rows: { views: true }, connections: 1, watch: false })
    opened.push(provider)
    expect(JSON.parse(await read(provider, 'locking/rows')).rows[0].x).toBe(1)
    // The next use comes after the session was made as new.
    expect(JSON.parse(await read(provider, 'leaving/rows')).rows[0].x).toBe(1)
    expect(await mariadb.run("SELECT IS_FREE_LOCK('left') AS free")).toMatchObject([{ free: 1 }])
    expect(JSON.parse(await read(provider, 'leaving/rows')).rows[0].x).toBe(1)

    const target = mysqlTarget(mariadb.readerUrl, undefined)
    const session = await openMysql(target, completeServerOptions({}), new AbortController().signal)
    try {
      const state = () =>
        session.query('SELECT @left, @@sql_mode, @@tx_read_only, @@max_statement_time, @@collation_connection')
      const before = await state()
      expect(before).toEqual([[null, '', '1', expect.anything(), 'utf8mb4_bin']])
      await session.transaction((query) => query('SELECT x FROM app.leaving'))
      expect(await state()).not.toEqual(before)
      await session.reset()
      expect(await state()).toEqual(before)
    } finally {
      session.close()
    }
  })

  test('cannot read files, run programs or export, and the reason of the database is not passed on (PG08)', async () => {
    const provider = await open()
    for (const view of ['reading', 'programming', 'exports']) {
      const error = await failure(read(provider, `${view}/rows`))
      expect(error, view).toMatchObject({ name: 'ResourceError' })
      expect(JSON.stringify([error.message, error.detail])).not.toMatch(/passwd|permission|superuser|COPY|PL\/pgSQL/)
    }
  })

  test.each(['sleeping', 'crossing', 'counting', 'endless'])(
    'cannot block connections by never ending (%s) (PG09)',
    async (view) => {
      const provider = await open({ statementTimeoutMs: 300, waitTimeoutMs: 30_000, connections: 2 })
      const all = await Promise.all(
        Array.from({ length: volumeOf(6, 3) }, () => failure(read(provider, `${view}/rows`))),
      )
      for (const error of all) expect(error).toMatchObject({ kind: 'unavailable' })
      expect(JSON.parse(await read(provider, 'customers/rows')).rows).toHaveLength(20)
      await until(async () => (await active()) === 0)
    },
  )
})

const active = async () =>
  Number(
    (
      await database.run(
        "SELECT count(*)::int AS n FROM pg_stat_activity WHERE application_name = 'hikidashi' AND state = 'active'",
      )
    )[0]?.n,
  )

async function until(holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 40_000
  while (!(await holds())) {
    if (performance.now() > end) throw new Error('It never came to this.')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

test('huge values are truncated, all of 1,600 columns are shown, and a page of a long table reads at most one row more than it shows (PG11)', async () => {
  const provider = await open({ statementTimeoutMs: 60_000 })
  const page = await read(provider, 'big/rows')
  expect(page.length).toBeLessThan(100_000)
  expect(JSON.parse(page).cut.map((one: { bytes: number }) => one.bytes)).toEqual([huge.characters, huge.bytes])
  const [row] = JSON.parse(await read(provider, 'very_wide/rows')).rows
  expect([row.c0, row.c1599, Object.keys(row).length]).toEqual(['first', 'last', 1600])
  expect(JSON.parse(await read(provider, 'very_wide/schema')).columns).toHaveLength(1600)
  // However many rows there are, a page looks at its own: that is counted by the server, and so holds for a hundred million too.
  const looked = async () => {
    const [row] = await database.run(
      "SELECT idx_scan::int AS scans, idx_tup_read::int AS read, seq_tup_read::int AS all FROM pg_stat_user_indexes JOIN pg_stat_user_tables USING (relid, idx_scan) WHERE indexrelname = 'many_rows_pkey'",
    )
    return row as { scans: number; read: number; all: number }
  }
  const before = await looked()
  const last = JSON.parse(await read(provider, 'many_rows/rows', { after: '199990' }))
  expect([last.rows.length, last.more]).toEqual([10, false])
  expect(JSON.parse(await read(provider, 'many_rows/rows', { limit: '1000' })).rows).toHaveLength(1000)
  expect(JSON.parse(await read(provider, 'many_rows/rows/150000')).rows).toHaveLength(1)
  // It counts what a connection did once that ends.
  await opened.splice(opened.indexOf(provider), 1)[0]?.close?.()
  await until(async () => (await looked()).scans >= before.scans + 3)
  const after = await looked()
  expect([after.read - before.read, after.all - before.all]).toEqual([10 + 1001 + 1, 0])
}, 120_000)

test('values of PostgreSQL are shown exactly (PG13)', async () => {
  const provider = await open()
  const text = await read(provider, 'exact/rows')
  expect(JSON.parse(text).rows[0]).toMatchObject({
    ...{ n: `1${'0'.repeat(400)}`, d: '-infinity', l: '-9223372036854775808', b: 'AA==', m: 'ok', p: 7, r: '[1.10,2)' },
    x: '<a>&#xd;</a>',
  })
  expect(text).toContain('{"nul": "\\u0000", "n": 1e400}')
})

test('a row-level policy sees the caller of the present transaction, and never that of an earlier one (PG16)', async () => {
  const provider = await open({ rows: { principalSetting: 'app.tenant' }, connections: 2 })
  const rowsOf = async (id: string) =>
    JSON.parse(await read(provider, 'owned_by_tenants/rows', { columns: 'tenant' }, id)).rows
  const ask = async (i: number) => {
    const id = ['tenant 0', 'tenant 1', 'nobody', "tenant 0'; RESET ALL; --"][i % 4] ?? ''
    const rows: readonly { tenant: string }[] = await rowsOf(id)
    const own = rows.length === (i % 4 < 2 ? 5 : 0) && rows.every(({ tenant }) => tenant === id)
    if (!own) throw new Error(`${id} saw ${JSON.stringify(rows)}`)
  }
  for (let first = 0; first < volumeOf(160, 80); first += 20)
    await Promise.all(Array.from({ length: 20 }, (_, i) => ask(first + i)))
  // And on connections alone, which are handed from one to the next all the time.
  const settings = completeServerOptions({ schemas: ['public'] })
  const rowSettings = { schemas: ['public'], only: 'public', views: false, principalSetting: 'app.tenant' }
  const [relation] = await withSession(settings, (session) =>
    describeRelations(session, [{ schema: 'public', name: 'owned_by_tenants' }], rowSettings),
  )
  if (relation === undefined) throw new Error('there is no such table')
  const query = { relation, columns: ['tenant'], limit: 10, maxValueBytes: 100, maxBytes: 10_000 }
  const alternate = async (session: PostgresSession) => {
    for (let i = 0; i < volumeOf(1500, 500); i++) {
      const id = `tenant ${i % 3}`
      const { rows } = await readRows(session, query, rowSettings, { ...context(), principal: { id, roles: [] } })
      const seen = rows.map(({ values }) => values[0]?.json)
      if (seen.length !== (i % 3 < 2 ? 5 : 0) || seen.some((json) => json !== JSON.stringify(id)))
        throw new Error(`${id} saw ${seen.join()}`)
    }
  }
  await Promise.all([1, 2].map(() => withSession(settings, alternate)))
  // Without the setting, whoever asks has no tenant: neither does anything of the last one.
  expect(JSON.parse(await read(await open(), 'owned_by_tenants/rows')).rows).toEqual([])
}, 120_000)

test('behind a pooler, each transaction begins with its settings, and no session listens for notifications (PG17)', async () => {
  const proxy = await startDatabaseProxy(database.port)
  proxy.disguise = true
  try {
    const provider = await open({ url: proxy.through(readerUrl()) })
    await read(provider, 'customers/rows')
    await read(provider, 'customers/schema')
    // What rows are asked for is described first.
    const [, ...statements] = proxy.prepared
    const begun = statements.flatMap((text, i) => (text.startsWith('BEGIN') ? [statements[i + 1] ?? ''] : []))
    expect(begun).toHaveLength(3)
    for (const next of begun) expect(next).toContain('set_config')
    expect(proxy.prepared.some((text) => text.startsWith('LISTEN'))).toBe(false)
  } finally {
    await proxy.close()
  }
})

test('reads of a changing table succeed, or fail as absent or unavailable, and later give its new columns (PG18)', async () => {
  await database.run(
    `CREATE TABLE shifting (id int PRIMARY KEY, a text, b text); INSERT INTO shifting VALUES (1, 'a', 'b'); ${grants}`,
  )
  const provider = await open()
  let going = true
  const changing = (async () => {
    for (let i = 0; going && i < 60; i++) {
      await database.run('ALTER TABLE shifting RENAME COLUMN b TO c; ALTER TABLE shifting ADD COLUMN b int')
      await database.run('ALTER TABLE shifting DROP COLUMN b; ALTER TABLE shifting RENAME COLUMN c TO b')
      if (i % 3 === 0) await database.run('ALTER TABLE shifting RENAME TO shifted')
      if (i % 3 === 0) await database.run('ALTER TABLE shifted RENAME TO shifting')
    }
  })()
  let told = 0
  for (let i = 0; i < 60; i++) {
    for (const path of ['shifting/schema', 'shifting/rows']) {
      const outcome = await failure(read(provider, path))
      if (outcome.kind === undefined) told++
      else expect(outcome, path).toMatchObject({ kind: expect.stringMatching(/^(?:not-found|unavailable)$/) })
    }
  }
  going = false
  await changing
  expect(told).toBeGreaterThan(0)
  await database.run('ALTER TABLE shifting DROP COLUMN a')
  expect(Object.keys(JSON.parse(await read(provider, 'shifting/rows')).rows[0])).toEqual(['id', 'b'])
  await database.run('DROP TABLE shifting')
  expect(await failure(read(provider, 'shifting/rows'))).toMatchObject({ kind: 'not-found' })
}, 120_000)

test('3,000 forged notifications of PostgreSQL are not taken for changes, and cause fewer than 200 statements (PG21)', async () => {
  await database.run(eventTriggerSql)
  const proxy = await startDatabaseProxy(database.port)
  const provider = await open({ url: proxy.through(readerUrl()), rows: undefined as never, reconcile: 3_600_000 })
  const watching = await startWatching(provider)
  try {
    const before = proxy.executed
    await database.run(
      `DO $$ BEGIN FOR i IN 1..3000 LOOP PERFORM pg_notify('hikidashi', 'customers/schema ' || i); END LOOP; END $$`,
    )
    // A true change comes through behind them.
    await database.run('CREATE TABLE told (id int); GRANT SELECT ON told TO reader')
    await watching.until('told/')
    expect(watching.changes.some((change) => change.path?.startsWith('customers'))).toBe(false)
    expect(proxy.executed - before).toBeLessThan(200)
  } finally {
    await watching.stop()
    await proxy.close()
    await database.run('DROP EVENT TRIGGER hikidashi_changed; DROP EVENT TRIGGER hikidashi_dropped; DROP TABLE told')
  }
})

describe('an encrypted connection to PostgreSQL', () => {
  const at = (port: number, host = 'localhost', query = '') =>
    `${readerUrl().replace(/@[^/]*\//, `@${host}:${port}/`)}${query}`

  test('is made with a valid certificate, and its statements can be cancelled (PG22)', async () => {
    const front = await startTlsFront(database.port)
    try {
      const provider = await open({
        url: at(front.port),
        tls: { mode: 'verify', ca: authority },
        statementTimeoutMs: 600_000,
      })
      expect(JSON.parse(await read(provider, 'customers/rows/1')).rows).toHaveLength(1)
      expect(front.encrypted).toBe(1)
      const gone = new AbortController()
      const left = provider.read({ path: 'sleeping/rows', params: new Map() }, { ...context(), signal: gone.signal })
      left.catch(() => {})
      await until(async () => (await active()) === 1)
      gone.abort()
      await expect(left).rejects.toThrow()
      await until(async () => (await active()) === 0)
      // The name in the certificate may be another one than that of the host, where that is said.
      await open({
        url: at(front.port, '127.0.0.1'),
        tls: { mode: 'verify', ca: authority, serverName: 'database.test' },
      })
    } finally {
      await front.close()
    }
  })

  test('is refused if the certificate is untrusted or of another host, or if the server does not encrypt (PG22)', async () => {
    const front = await startTlsFront(database.port)
    const plain = await startTlsFront(database.port, true)
    try {
      const attempts: readonly Partial<PostgresOptions>[] = [
        { url: at(front.port), tls: { mode: 'verify' } },
        { url: at(front.port, '127.0.0.1'), tls: { mode: 'verify', ca: authority } },
        { url: at(front.port), tls: { mode: 'verify', ca: authority, serverName: 'other.test' } },
        { url: at(plain.port), tls: { mode: 'verify', ca: authority } },
        { url: at(front.port, 'localhost', '?sslmode=verify-full') },
        { url: at(plain.port, 'localhost', '?sslmode=verify-full') },
      ]
      for (const attempt of attempts) {
        const error = await failure(open(attempt))
        expect(error, JSON.stringify(attempt.tls)).toMatchObject({ kind: 'invalid' })
        expect(String(error.message)).toMatch(/certificate|encrypt/)
      }
    } finally {
      await front.close()
      await plain.close()
    }
  })

  test('cannot be weakened: sslmode=no-verify, and an sslmode that contradicts the setting tls, are refused (PG22)', async () => {
    for (const [host, query, tls] of [
      ['database.example.org', '?sslmode=no-verify', undefined],
      ['localhost', '?sslmode=no-verify', undefined],
      ['localhost', '?sslmode=no-verify', { mode: 'verify' }],
      ['localhost', '?sslmode=verify-full', { mode: 'off' }],
    ] as const)
      expect(await failure(open({ url: at(1, host, query), ...(tls === undefined ? {} : { tls }) }))).toMatchObject({
        kind: 'invalid',
      })
  })
})

test('after the attacks, at most the 24 connections of the servers to PostgreSQL are open (PG09)', async () => {
  for (const provider of opened.splice(0)) await provider.close?.()
  // Those of the servers under attack stay: two mounts each, of three servers.
  await until(async () => (await connectionsOf(database)) <= 3 * 2 * 4)
})
