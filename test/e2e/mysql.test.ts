import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { ResourceError, unavailable } from '../../src/core/errors.ts'
import type { Provider } from '../../src/core/provider.ts'
import {
  excessPrivilegesIn,
  readAccountProperties,
  requireReadOnlyAccount,
  rolesIn,
} from '../../src/providers/mysql/account.ts'
import { type MysqlOptions, mysql } from '../../src/providers/mysql/index.ts'
import { openSession, parseDatabaseUrl } from '../../src/providers/mysql/session.ts'
import { completeServerOptions } from '../../src/providers/relational/open.ts'
import { type DatabaseProxy, startDatabaseProxy } from '../support/database-proxy.ts'
import { authority } from '../support/database-tls.ts'
import { jsonOf, pathsOf, textOf } from '../support/folder.ts'
import { hasMariadb, type Mariadb, mariadbReason, readerPassword, startMariadb } from '../support/mariadb.ts'
import { eventually, recovers, underLoad } from '../support/recovery.ts'
import { requires } from '../support/require.ts'
import { startWatching } from '../support/watching.ts'

const sql = `
CREATE TABLE customers (id bigint unsigned AUTO_INCREMENT PRIMARY KEY, name varchar(80) NOT NULL DEFAULT 'no''body' COMMENT 'Who: it''s',
  email varchar(80) COLLATE utf8mb4_bin UNIQUE, price decimal(10,2) CHECK (price > 0), twice decimal(11,2) AS (price * 2) STORED,
  made timestamp(3) NULL DEFAULT '2026-11-21 18:00:00.5', CONSTRAINT known CHECK (name <> '')) COMMENT 'Who buys.';
INSERT INTO customers (name, email, price) SELECT CONCAT('name ', seq), CONCAT('e', seq), seq FROM seq_1_to_250;
INSERT INTO customers (id, name) VALUES (18446744073709551615, 'greatest');
CREATE TABLE orders (customer bigint unsigned, line varchar(40), note text, PRIMARY KEY (customer, line), KEY by_note (note(10)),
  CONSTRAINT own FOREIGN KEY (customer) REFERENCES customers (id) ON DELETE CASCADE);
INSERT INTO orders SELECT seq % 3 + 1, CONCAT('a,b/', seq), 'note' FROM seq_1_to_9;
CREATE TRIGGER telling BEFORE INSERT ON orders FOR EACH ROW SET NEW.note = 'x';
CREATE VIEW names AS SELECT id, name FROM customers;
CREATE VIEW sleeping AS SELECT SLEEP(1000) + id AS x FROM customers;
CREATE VIEW crossing AS SELECT COUNT(*) AS n FROM information_schema.COLUMNS a, information_schema.COLUMNS b, information_schema.COLUMNS c;
CREATE TABLE parted (id int, y int, PRIMARY KEY (id, y)) PARTITION BY RANGE (y) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE);
CREATE TABLE wide (id binary(2) PRIMARY KEY, ti tinyint, u int unsigned, z int(5) zerofill, l bigint, n decimal(40,10), f float, d double, b bit(3), t text,
  e enum('x','y'), x varbinary(4), j json, day date, at datetime(6), tz timestamp NULL, span time, y year, g point, i inet6);
INSERT INTO wide VALUES (x'00ff', -1, 4294967295, 42, 9223372036854775807, 123456789012345678901234567890.0000000001, 16777217, 0.1, 5, 'ÄÖ "q" \\\\ 日本 👩',
  'y', x'00ff', '{"a": 1}', '2026-11-21', '2026-11-21 18:00:00.123456', '2026-11-21 18:00:00', '-01:02:03', 2026, POINT(1, 2), '::1');
CREATE TABLE big (id int PRIMARY KEY, t longtext, raw longblob); INSERT INTO big VALUES (1, REPEAT('あ', 10000), REPEAT(x'ff', 40000)), (2, 'small', NULL);
CREATE TABLE part (id int PRIMARY KEY, open int, secret int, later int, CHECK (secret > 0), KEY by_secret (secret));
CREATE USER part@'%' IDENTIFIED BY 'p'; GRANT SELECT (id, open) ON app.part TO part@'%';
CREATE USER writer@'%' IDENTIFIED BY 'p'; GRANT SELECT, INSERT ON app.* TO writer@'%';
CREATE ROLE editors; GRANT UPDATE ON app.* TO editors; CREATE USER editor@'%' IDENTIFIED BY 'p'; GRANT SELECT ON app.* TO editor@'%'; GRANT editors TO editor@'%'`

const size = 3

requires(
  'mariadb',
  hasMariadb,
  mariadbReason,
)('with a real MariaDB,', () => {
  let server: Mariadb
  let proxy: DatabaseProxy
  beforeAll(async () => {
    server = await startMariadb(sql)
    proxy = await startDatabaseProxy(server.port, false)
  }, 120_000)
  afterAll(async () => {
    await proxy?.close()
    await server?.remove()
  }, 120_000)

  const opened: Provider[] = []
  afterEach(async () => {
    for (const provider of opened.splice(0)) await provider.close?.()
    if (proxy !== undefined) proxy.pace = 'free'
    // Nothing is left over.
    await eventually(async () => (await server.connections()) === 0, 'no connection')
  }, 120_000)

  async function open(options: Partial<MysqlOptions> = {}): Promise<Provider> {
    const provider = await mysql({
      url: proxy.through(server.readerUrl),
      ...{ rows: { views: true }, connections: size, reconcile: 200 },
      ...{ connectTimeoutMs: 2000, statementTimeoutMs: 1000, waitTimeoutMs: 5000 },
      ...options,
    })
    opened.push(provider)
    return provider
  }
  const as = (account: string) => server.readerUrl.replace(/\/\/[^@]*@/, `//${account}@`)
  const contextOf = (signal = new AbortController().signal) => ({ principal: { id: 'someone', roles: [] }, signal })
  const answers = (provider: Provider) => async () => {
    await textOf(provider, 'customers/rows/1')
    await textOf(provider, 'customers/schema')
  }
  /** That something fails, in words that hold nothing of the database. */
  const failureOf = async (work: Promise<unknown>, kind: string): Promise<string> => {
    const error = await work.then(
      () => ({}),
      (thrown: unknown) => thrown,
    )
    expect(error).toMatchObject({ name: 'ResourceError', kind })
    const { message, detail, cause } = error as { message: string; detail: unknown; cause: unknown }
    expect(`${message} ${JSON.stringify(detail)} ${String(cause)}`).not.toMatch(
      /127\.0\.0\.1|localhost|reader|password-of|SELECT [a-z`]|\bapp\b|'@'/,
    )
    return message
  }
  const expectAway = async (provider: Provider) => {
    for (const path of ['customers/schema', 'customers/rows']) await failureOf(textOf(provider, path), 'unavailable')
  }

  describe('the page of a MySQL table', () => {
    test('is JSON with its columns, keys, checks and foreign keys, and SQL that creates the table again', async () => {
      const provider = await open()
      const { columns, ...customers } = await jsonOf(provider, 'customers/schema')
      expect(customers).toMatchObject({
        ...{ schema: 'app', table: 'customers', kind: 'table', owner: null, comment: 'Who buys.' },
        primaryKey: { name: 'PRIMARY', columns: ['id'] },
        uniqueKeys: [{ columns: ['email'] }],
        checks: [{ name: 'known', definition: "CHECK (`name` <> '')" }, { name: 'price' }],
        referencedBy: [
          { name: 'own', from: { schema: 'app', table: 'orders', columns: ['customer'] }, columns: ['id'] },
        ],
      })
      expect(columns).toMatchObject([
        { name: 'id', type: 'bigint(20) unsigned', nullable: false, identity: 'by default' },
        { name: 'name', default: "'no''body'", comment: "Who: it's" },
        ...[
          { name: 'email', nullable: true },
          { name: 'price' },
          { name: 'twice', generated: '`price` * 2' },
          { name: 'made' },
        ],
      ])
      expect((await jsonOf(provider, 'orders/schema')).foreignKeys).toMatchObject([
        { name: 'own', references: { schema: 'app', table: 'customers', columns: ['id'] }, onDelete: 'cascade' },
      ])
      expect(await jsonOf(provider, 'parted/schema')).toMatchObject({ kind: 'partitioned table' })
      const names = ['customers', 'orders', 'names', 'parted', 'wide']
      const before = await Promise.all(names.map((name) => textOf(provider, `${name}/schema.sql`)))
      await server.run(
        `CREATE DATABASE again CHARACTER SET utf8mb4; USE again; ${before.join('').replaceAll('`app`', '`again`')}`,
      )
      await server.run("GRANT SELECT, SHOW VIEW ON again.* TO reader@'%'")
      const again = await open({ schemas: ['again'] })
      const after = await Promise.all(names.map((name) => textOf(again, `${name}/schema.sql`)))
      expect(after.map((text) => text.replaceAll('`again`', '`app`'))).toEqual(before)
      expect((await jsonOf(provider, 'overview')).relations).toHaveLength(1)
    }, 60_000)

    test('is listed with at most three queries for 100 tables, and 40 pages read at once take fewer than 40 queries', async () => {
      const made = Array.from({ length: 100 }, (_, i) => `CREATE TABLE many.t${i} (id int PRIMARY KEY) ENGINE=MEMORY`)
      await server.run(`CREATE DATABASE many; ${made.join(';')}; GRANT SELECT ON many.* TO reader@'%'`)
      const provider = await open({ schemas: ['many'], connections: 1, watch: false })
      const executed = async () => Number((await server.run("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'"))[0]?.Value)
      expect(await pathsOf(provider.list({}, contextOf()))).toHaveLength(301)
      const before = await executed()
      await pathsOf(provider.list({}, contextOf()))
      expect((await executed()) - before).toBeLessThanOrEqual(3)
      const again = await executed()
      await Promise.all(Array.from({ length: 40 }, (_, i) => textOf(provider, `t${i}/schema`)))
      expect((await executed()) - again).toBeLessThan(40)
    }, 60_000)

    test('has no column, key, check or index that the account may not see', async () => {
      const provider = await open({ url: as('part:p') })
      expect(await pathsOf(provider.list({}, contextOf()))).toEqual([
        'overview',
        'part/rows',
        'part/schema',
        'part/schema.sql',
      ])
      for (const path of ['part/schema', 'part/schema.sql', 'part/rows'])
        expect(await textOf(provider, path)).not.toMatch(/secret|later/)
      await failureOf(textOf(provider, 'part/rows', { columns: 'secret' }), 'invalid')
      await failureOf(textOf(provider, 'customers/schema'), 'not-found')
    })
  })

  describe('the page of a MySQL function or procedure', () => {
    const routines = [
      `CREATE FUNCTION add_tax(price decimal(10,2), kind enum('x','y''z') CHARACTER SET latin1) RETURNS decimal(10,2) DETERMINISTIC NO SQL COMMENT 'It''s taxed' RETURN price * 1.1`,
      'CREATE PROCEDURE add_tax(IN a int unsigned, OUT `we``ird name` text, INOUT c varchar(10)) READS SQL DATA SQL SECURITY INVOKER BEGIN SELECT a; END',
      'CREATE AGGREGATE FUNCTION summed(x int) RETURNS int BEGIN DECLARE s int DEFAULT 0; DECLARE CONTINUE HANDLER FOR NOT FOUND RETURN s; LOOP FETCH GROUP NEXT ROW; SET s = s + x; END LOOP; END',
      "CREATE FUNCTION plain() RETURNS text RETURN 'FETCH GROUP NEXT ROW' -- FETCH GROUP NEXT ROW\n",
      "CREATE FUNCTION `a/b``c` () RETURNS varchar(9) RETURN 'slash'",
    ]
    const oracle = 'CREATE FUNCTION ora(a INT, b OUT VARCHAR2(10)) RETURN INT AS x INT; BEGIN RETURN a; END'
    const paths = ['add_tax/function', 'a~2fb`c/function', 'ora/function', 'plain/function', 'summed/function']
    const grants = (account: string, rights: string) =>
      `CREATE USER ${account}@'%' IDENTIFIED BY 'p'; GRANT ${rights} ON routines.* TO ${account}@'%'`
    beforeAll(async () => {
      await server.run(
        [
          'CREATE DATABASE routines CHARACTER SET utf8mb4; USE routines; CREATE TABLE add_tax (id int PRIMARY KEY)',
          ...[...routines, "SET sql_mode = 'ORACLE'", oracle, 'SET sql_mode = DEFAULT'],
          ...[grants('runner', 'SELECT, EXECUTE'), grants('watcher', 'SELECT'), grants('sees', 'SELECT, EXECUTE')],
          "GRANT SELECT ON mysql.proc TO sees@'%'; GRANT SELECT, SHOW VIEW ON routines.* TO reader@'%'",
        ].join('; '),
      )
    })
    const openAs = (account: string, schemas: readonly string[] = ['routines']) =>
      open({ url: as(`${account}:p`), schemas, rows: {}, watch: false })

    test('has its kind, arguments and definition, without its definer; and SQL that creates it again', async () => {
      const provider = await openAs('sees')
      const listed = await pathsOf(provider.list({}, contextOf()))
      expect(listed.filter((path) => path.endsWith('/function'))).toEqual(paths)
      expect(listed).toContain('add_tax/schema')
      const found = await jsonOf(provider, 'add_tax/function')
      expect(found).toMatchObject({
        ...{ schema: 'routines', function: 'add_tax' },
        overloads: [
          {
            ...{ kind: 'function', returns: 'decimal(10,2)', language: 'sql', comment: "It's taxed" },
            arguments: "price decimal(10,2), kind enum('x','y''z') CHARACTER SET latin1 COLLATE latin1_swedish_ci",
            ...{ volatility: 'deterministic', securityDefiner: true },
          },
          {
            ...{ kind: 'procedure', volatility: 'not deterministic', securityDefiner: false },
            arguments: 'IN a int(10) unsigned, OUT `we``ird name` text, INOUT c varchar(10)',
          },
        ],
      })
      const kinds = ['plain', 'summed', 'ora'].map(
        async (name) => (await jsonOf(provider, `${name}/function`)).overloads[0],
      )
      expect(await Promise.all(kinds)).toMatchObject([
        ...[{ kind: 'function' }, { kind: 'aggregate' }, { arguments: 'a int(11), b OUT varchar(10)' }],
      ])
      const textsOf = async (of: Provider) => {
        const texts = await Promise.all(paths.map((path) => textOf(of, path)))
        expect(texts.join('')).not.toMatch(/root|127\.0\.0\.1|definer=/i)
        return texts.map((text) => JSON.parse(text).overloads as { definition: string }[])
      }
      const before = await textsOf(provider)
      const statements = before.flat().map(({ definition }) => `${definition}SET sql_mode = DEFAULT`)
      await server.run(
        `CREATE DATABASE routines2 CHARACTER SET utf8mb4; GRANT SELECT, EXECUTE ON routines2.* TO sees@'%'; ${statements.join('; ').replaceAll('`routines`', '`routines2`')}`,
      )
      const again = await textsOf(await openAs('sees', ['routines2']))
      expect(JSON.stringify(again).replaceAll('`routines2`', '`routines`')).toBe(JSON.stringify(before))
    }, 60_000)

    test('has no definition for an account that may only run it, and is absent for other accounts', async () => {
      const runner = await openAs('runner')
      const [first, second, ...rest] = (await jsonOf(runner, 'add_tax/function')).overloads
      expect([first.kind, second.kind, rest]).toEqual(['function', 'procedure', []])
      for (const path of paths) expect(await textOf(runner, path)).not.toMatch(/definition|root|RETURN price/)
      const watcher = await openAs('watcher')
      expect(await pathsOf(watcher.list({}, contextOf()))).toEqual([
        ...['add_tax/rows', 'add_tax/schema', 'add_tax/schema.sql', 'overview'],
      ])
      for (const path of paths) await failureOf(textOf(watcher, path), 'not-found')
      for (const path of ['add_tax2/function', 'ADD_TAX/function', 'customers/function', 'ora/schema'])
        await failureOf(textOf(runner, path), 'not-found')
      const complete = async (provider: Provider, value: string) =>
        (
          await provider.complete?.(
            { template: '{function}/function', argument: { name: 'function', value }, arguments: new Map() },
            contextOf(),
          )
        )?.values
      expect(await complete(runner, '')).toEqual(paths.map((path) => path.replace('/function', '')))
      expect(await complete(runner, 'su')).toEqual(['summed'])
      expect(await complete(watcher, '')).toEqual([])
    })

    test('needs no query of its own in a listing or in many reads at once', async () => {
      const made = Array.from({ length: 100 }, (_, i) => `CREATE FUNCTION many_f.f${i}() RETURNS int RETURN ${i}`)
      await server.run(`CREATE DATABASE many_f; ${made.join(';')}; GRANT EXECUTE ON many_f.* TO sees@'%'`)
      const provider = await openAs('sees', ['many_f'])
      const executed = async () => Number((await server.run("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'"))[0]?.Value)
      expect(await pathsOf(provider.list({}, contextOf()))).toHaveLength(101)
      const before = await executed()
      await pathsOf(provider.list({}, contextOf()))
      expect((await executed()) - before).toBeLessThanOrEqual(3)
      const again = await executed()
      await Promise.all(Array.from({ length: 100 }, (_, i) => textOf(provider, `f${i}/function`)))
      expect((await executed()) - again).toBeLessThanOrEqual(4)
    }, 60_000)

    test('is reported when it is created, altered or dropped, whether the account may see its definition or not', async () => {
      for (const account of ['sees', 'runner']) {
        const provider = await open({ url: as(`${account}:p`), schemas: ['routines'], rows: {}, reconcile: 100 })
        const watching = await startWatching(provider)
        try {
          await server.run('CREATE FUNCTION routines.come() RETURNS int RETURN 1')
          await watching.until('come/')
          watching.clear()
          await server.run("ALTER FUNCTION routines.come COMMENT 'said'")
          await watching.until('come/function')
          watching.clear()
          await server.run('CREATE OR REPLACE FUNCTION routines.come(a int) RETURNS int RETURN 2')
          await watching.until('come/function')
          watching.clear()
          await server.run('DROP FUNCTION routines.come')
          await watching.until('come/')
        } finally {
          await watching.stop()
        }
      }
    }, 60_000)
  })

  describe('rows of MySQL', () => {
    test('are paged by the key, each once, and read by their key', async () => {
      const provider = await open()
      for (const [table, column, count] of [
        ['customers', 'id', 251],
        ['orders', 'line', 9],
      ] as const) {
        const seen: unknown[] = []
        for (let after: string | undefined; ; ) {
          const page = await jsonOf(provider, `${table}/rows`, {
            limit: '40',
            columns: column,
            ...(after === undefined ? {} : { after }),
          })
          seen.push(...page.rows.map((row: Record<string, unknown>) => row[column]))
          if (page.next === null) break
          after = page.next
        }
        expect([seen.length, new Set(seen).size]).toEqual([count, count])
      }
      const rows: string[] = []
      for await (const { path } of (await provider.parts?.('customers/rows', contextOf())) ?? []) rows.push(path)
      expect(new Set(rows).size).toBe((await jsonOf(provider, 'customers/rows', { limit: '1000' })).rows.length)
      expect(rows).toContain('customers/rows/18446744073709551615')
      expect(await provider.parts?.('customers/schema', contextOf())).toBeUndefined()
      expect((await jsonOf(provider, 'customers/rows/18446744073709551615')).rows[0].name).toBe('greatest')
      expect((await jsonOf(provider, 'orders/rows/2,a~2cb~2f1')).rows).toEqual([
        { customer: '2', line: 'a,b/1', note: 'note' },
      ])
      for (const key of ['01', '1 ', "1' OR '1'='1", '1e0', '18446744073709551616', '-1', 'x', '2,A~2cb~2f1'])
        await failureOf(textOf(provider, `${key.includes(',') ? 'orders' : 'customers'}/rows/${key}`), 'not-found')
      await failureOf(textOf(provider, 'customers/rows', { after: "1' OR '1'='1" }), 'invalid')
    }, 60_000)

    test('are found by their keys as they are shown', async () => {
      await server.run(`CREATE TABLE app.shown (at datetime(6), tz timestamp, b binary(16), v varbinary(9), n decimal(10,2), day date,
        u uuid, PRIMARY KEY (at, tz, b, v, n, day, u))`)
      await server.run(`INSERT INTO app.shown VALUES ('2026-11-21 18:00:00.5', '2026-11-21 18:00:00', x'fb00ff', x'ff', 1.5, '2026-11-21',
        '0000000a-0000-0000-0000-00000000000b')`)
      const provider = await open()
      const [row] = (await jsonOf(provider, 'shown/rows')).rows
      const key = Object.values(row)
        .map((value) => String(value).replaceAll('/', '~2f'))
        .join(',')
      for (const one of [key, key.replace('1.50', '1.5')])
        expect((await jsonOf(provider, `shown/rows/${one}`)).rows, one).toEqual([row])
      await failureOf(textOf(provider, `shown/rows/${key.replace('1.50', '1.51')}`), 'not-found')
    })

    test('show a 32-bit floating-point number with its shortest decimal form', async () => {
      await server.run('CREATE TABLE app.floats (id int PRIMARY KEY, f float, s float(7,4), d double)')
      const values = [19.99, 0.1, 16777216, -1.5, 3.402823e38, 1.17549435e-38, 1e-45, 0, 123456.79]
      await server.run(
        `INSERT INTO app.floats VALUES ${values.map((value, id) => `(${id}, ${value}, 19.99, 19.99)`).join(', ')}`,
      )
      const { rows } = await jsonOf(await open(), 'floats/rows')
      expect(rows.map(({ f }: { f: number }) => f)).toEqual(
        values.map((value) => (value === 1.17549435e-38 ? 1.1754944e-38 : value)),
      )
      expect(rows[0]).toMatchObject({ s: 19.99, d: 19.99 })
    })

    test('of a view whose definer is missing or has no rights give an error that says that the view cannot be read', async () => {
      await server.run("CREATE USER definer@'%' IDENTIFIED BY 'p'")
      for (const definer of ['definer', 'nobody'])
        await server.run(
          `CREATE DEFINER=${definer}@'%' SQL SECURITY DEFINER VIEW app.broken_by_${definer} AS SELECT id FROM app.customers`,
        )
      const provider = await open()
      for (const definer of ['definer', 'nobody'])
        await expect(textOf(provider, `broken_by_${definer}/rows`)).rejects.toMatchObject({
          kind: 'invalid',
          message: expect.stringContaining('cannot be read'),
        })
      for (const definer of ['definer', 'nobody']) await server.run(`DROP VIEW app.broken_by_${definer}`)
    })

    test('do not depend on settings of the server, and neither do schemas and paths', async () => {
      const names = ['sql_mode', 'init_connect', 'time_zone', 'completion_type', 'max_sort_length', 'sql_select_limit']
      const [known] = await server.run(`SELECT ${names.map((name) => `@@GLOBAL.${name} AS ${name}`).join(', ')}`)
      const answersOf = async () => {
        const provider = await open()
        const texts = ['overview', 'wide/rows', 'wide/schema.sql', 'customers/rows', 'orders/schema'].map((path) =>
          textOf(provider, path),
        )
        return { paths: await pathsOf(provider.list({}, contextOf())), texts: await Promise.all(texts) }
      }
      const before = await answersOf()
      const set = (values: Record<string, unknown>) =>
        server.run(
          `SET ${Object.entries(values)
            .map(
              ([name, value]) =>
                `GLOBAL ${name} = ${typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : String(value)}`,
            )
            .join(', ')}`,
        )
      try {
        await set({
          ...{
            sql_mode: 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,PAD_CHAR_TO_FULL_LENGTH',
            time_zone: '+09:00',
          },
          ...{ init_connect: 'SET autocommit = 0, sql_auto_is_null = 1, NAMES latin1', completion_type: 'CHAIN' },
          ...{ max_sort_length: 64, sql_select_limit: 2 },
        })
        expect(await answersOf()).toEqual(before)
      } finally {
        await set(known ?? {})
      }
    })

    test('have values of every type without loss', async () => {
      const text = await textOf(await open(), 'wide/rows/00FF')
      expect(JSON.parse(text).rows).toEqual([
        {
          ...{
            id: 'AP8=',
            ti: -1,
            u: 4294967295,
            z: 42,
            l: '9223372036854775807',
            n: '123456789012345678901234567890.0000000001',
          },
          ...{ f: 16777216, d: 0.1, b: 5, t: 'ÄÖ "q" \\ 日本 👩', e: 'y', x: 'AP8=', j: '{"a": 1}', day: '2026-11-21' },
          ...{
            at: '2026-11-21T18:00:00.123456',
            tz: '2026-11-21T18:00:00Z',
            span: '-01:02:03',
            y: 2026,
            g: 'POINT(1 2)',
            i: '::1',
          },
        },
      ])
    })

    test('have long values truncated, with a note; a long answer ends early, with the key to continue after', async () => {
      const found = await jsonOf(await open({ rows: { maxValueBytes: 1000 } }), 'big/rows')
      expect(found.cut).toEqual([
        { row: 0, column: 't', bytes: 30_000 },
        { row: 0, column: 'raw', bytes: 40_000 },
      ])
      expect([found.rows[0].t.length, Buffer.from(found.rows[0].raw, 'base64').length]).toEqual([250, 1000])
      const little = await jsonOf(await open({ rows: { maxBytes: 20, maxValueBytes: 100 } }), 'big/rows')
      expect([little.rows.length, little.more, little.next]).toEqual([1, true, '1'])
    })

    test('of views are served only if they are configured, and denied columns are not served', async () => {
      await failureOf(textOf(await open({ rows: {} }), 'names/rows'), 'not-found')
      expect((await jsonOf(await open(), 'names/rows', { limit: '1' })).rows).toHaveLength(1)
      const provider = await open({ rows: { columns: { deny: ['customers/email', 'orders/line'] } } })
      expect(await textOf(provider, 'customers/rows/1')).not.toContain('email')
      expect(await jsonOf(provider, 'orders/rows')).toMatchObject({ key: [], next: null })
    })

    test('have completions for tables, columns and keys', async () => {
      const provider = await open()
      const complete = async (name: string, value: string, given: Record<string, string> = {}) =>
        (
          await provider.complete?.(
            { argument: { name, value }, arguments: new Map(Object.entries(given)) } as never,
            contextOf(),
          )
        )?.values
      expect(await complete('table', 'cu')).toEqual(['customers'])
      expect(await complete('columns', 'id,n', { table: 'customers' })).toEqual(['id,name'])
      expect(await complete('key', '25', { table: 'customers' })).toEqual(['25', '250'])
      expect(await complete('key', "x' OR 1=1", { table: 'customers' })).toEqual([])
    })
  })

  describe('an account of MySQL', () => {
    test.each([
      ['root, who may do anything', 'root:the-password-of-root', /ALL PRIVILEGES/],
      ['one that may write', 'writer:p', /INSERT/],
      ['one that may take on a role that writes', 'editor:p', /UPDATE/],
    ])('is refused when the source is opened, unless "allowPrivileged" is set: %s', async (_, account, told) => {
      expect(await failureOf(open({ url: as(account) }), 'invalid')).toMatch(told)
      await answers(await open({ url: as(account), allowPrivileged: true }))()
    })

    test('that is missing, has another password or a missing database gives an error about the URL, and an invalid URL is refused', async () => {
      for (const url of [as('reader:wrong'), as('nobody:x'), server.readerUrl.replace(/\/app$/, '/none')])
        expect(await failureOf(open({ url }), 'invalid')).toMatch(/URL/)
      for (const url of [
        '',
        'postgres://a@b/c',
        'mysql://',
        'mysql://host/db',
        'mysql://a:b@h/d?multipleStatements=true',
        'mysql://a@h:99999/d',
      ])
        await failureOf(mysql({ url, tls: { mode: 'off' } }), 'invalid')
    })

    test('has every privilege beyond reading found in the output of SHOW GRANTS', () => {
      const on = (line: string) => excessPrivilegesIn(line, ['shop'])
      expect(on('GRANT SELECT (`a`, `in,sert`), SHOW VIEW ON `shop`.`t` TO `r`@`%`')).toEqual([])
      expect(on('GRANT SELECT, INSERT (`a`) ON `shop`.`t` TO `r`@`%`')).toEqual(['INSERT'])
      expect(on('GRANT UPDATE ON `sh_p`.* TO `r`@`%`')).toEqual(['UPDATE'])
      expect(on('GRANT UPDATE ON `sh\\_p`.* TO `r`@`%`')).toEqual([])
      expect(on('GRANT ALL PRIVILEGES ON `s%`.* TO `r`@`%`')).toEqual(['ALL PRIVILEGES'])
      expect(on("GRANT FILE, SUPER ON *.* TO `r`@`%` IDENTIFIED BY PASSWORD 'x' WITH GRANT OPTION")).toEqual([
        'FILE',
        'SUPER',
        'GRANT OPTION',
      ])
      expect(on('GRANT USAGE ON *.* TO `GRANT OPTION`@`%`')).toEqual([])
      expect(excessPrivilegesIn('GRANT DROP ON `a-b/{c}`.* TO `r`@`%`', ['A-B/{c}'])).toEqual(['DROP'])
      // A line that nothing here can parse may give any right.
      expect(on('GRANT INSERT ON "shop".* TO "r"@"%"')).toEqual(['an unknown right'])
      expect(on('GRANT `writer` TO `r`@`%`')).toEqual([])
    })

    test('may have a role that has another role, if both only read', async () => {
      await server.run(
        'CREATE ROLE inner_reader; GRANT SELECT ON app.orders TO inner_reader; CREATE ROLE outer_reader; GRANT inner_reader TO outer_reader; ' +
          "CREATE USER nested@'%' IDENTIFIED BY 'p'; GRANT SELECT ON app.* TO nested@'%'; GRANT outer_reader TO nested@'%'",
      )
      await answers(await open({ url: as('nested:p') }))()
      await server.run('GRANT DELETE ON app.orders TO inner_reader')
      expect(await failureOf(open({ url: as('nested:p') }), 'invalid')).toMatch(/DELETE/)
    })

    test('with write privileges is refused, however the server quotes names', async () => {
      await server.run("SET GLOBAL sql_mode = 'ANSI_QUOTES', GLOBAL sql_quote_show_create = 0")
      try {
        for (const account of ['writer:p', 'editor:p'])
          expect(await failureOf(open({ url: as(account) }), 'invalid')).toMatch(/INSERT|UPDATE/)
        await answers(await open())()
      } finally {
        await server.run('SET GLOBAL sql_mode = DEFAULT, GLOBAL sql_quote_show_create = 1')
      }
    })

    test('cannot write, whatever its privileges', async () => {
      await server.run(
        `CREATE FUNCTION write_it() RETURNS int MODIFIES SQL DATA BEGIN INSERT INTO part VALUES (99, 1, 1, 1); RETURN 1; END`,
      )
      await server.run('CREATE VIEW writing AS SELECT write_it() AS x')
      const provider = await open({ url: as('root:the-password-of-root'), allowPrivileged: true })
      // The server cannot even look at it.
      await failureOf(textOf(provider, 'writing/rows'), 'not-found')
      const signal = new AbortController().signal
      const settings = completeServerOptions({ allowPrivileged: true })
      const session = await openSession(parseDatabaseUrl(server.rootUrl, undefined), settings, signal)
      try {
        const writes = [
          'INSERT INTO app.part VALUES (99, 1, 1, 1)',
          'CREATE TABLE app.made (id int)',
          'SELECT app.write_it()',
        ]
        for (const statement of [
          ...writes,
          'SELECT 1; SELECT 2',
          "LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE app.part",
        ])
          await expect(session.query(statement), statement).rejects.toMatchObject({ name: 'ResourceError' })
      } finally {
        session.close()
      }
      expect(await server.run('SELECT * FROM part')).toEqual([])
      await server.run('DROP VIEW writing')
    })
  })

  test('a connection to MySQL with TLS is made only to a server whose certificate and name are verified', async () => {
    const url = server.readerUrl.replace('127.0.0.1', 'localhost')
    const provider = await open({ url, tls: { mode: 'verify', ca: authority } })
    await answers(provider)()
    await answers(
      await open({ url: server.readerUrl, tls: { mode: 'verify', ca: authority, serverName: 'database.test' } }),
    )()
    for (const tls of [{}, { ca: authority, serverName: 'other.test' }])
      expect(await failureOf(open({ url, tls: { mode: 'verify', ...tls } }), 'invalid')).toMatch(/certificate/)
    await failureOf(open({ url: server.readerUrl, tls: { mode: 'verify', ca: authority } }), 'invalid')
  })

  test('changes of the catalog and of rows of MySQL are reported', async () => {
    const provider = await open()
    const watching = await startWatching(provider)
    try {
      await server.run("ALTER TABLE part COMMENT = 'told'; CREATE TABLE come (id int PRIMARY KEY)")
      await watching.until('part/schema', 'part/schema.sql', 'come/', 'overview')
      await server.run('DROP TABLE come')
      await watching.until('come/')
      watching.clear()
      await server.run("INSERT INTO big VALUES (3, 'new', NULL)")
      await watching.until('big/rows', 'big/rows/')
    } finally {
      await watching.stop()
    }
  }, 60_000)

  test('a MySQL that is down at the start is tried again, and served once it runs (fault 10)', async () => {
    const told: string[] = []
    await server.stop()
    let provider: Provider
    try {
      provider = await open({ log: (level, message) => told.push(`${level} ${message}`) })
      await expectAway(provider)
    } finally {
      await server.start()
    }
    expect(told).toEqual([expect.stringMatching(/^warn the database does not answer/)])
    await recovers(answers(provider))
  }, 120_000)

  describe('a MySQL', () => {
    test.each([
      ['is stopped and started', () => server.stop().then(() => server.start())],
      ['is killed and started', () => server.kill().then(() => server.start())],
      ['has every connection ended', () => server.run("KILL USER reader@'%'").catch(() => {})],
      ['is cut off by the network', async () => proxy.cut()],
    ])(
      'that %s under load answers again, and reports the changes meanwhile (fault 11)',
      async (what, fault) => {
        const provider = await open()
        const watching = await startWatching(provider)
        const settle = underLoad(() => textOf(provider, 'customers/rows/1'))
        try {
          await answers(provider)()
          await fault()
          await server.run(`ALTER TABLE customers COMMENT = '${what}'`)
          await recovers(answers(provider))
          await watching.until('customers/schema')
        } finally {
          expect((await settle()).filter((kind) => kind !== 'unavailable')).toEqual([])
          await watching.stop()
        }
        await eventually(async () => (await server.connections()) <= size)
      },
      120_000,
    )
  })

  test('a request to a frozen MySQL times out, and succeeds once the server continues (fault 12)', async () => {
    const provider = await open({ waitTimeoutMs: 1000, statementTimeoutMs: 300 })
    await answers(provider)()
    server.freeze()
    try {
      await expectAway(provider)
    } finally {
      server.thaw()
    }
    await recovers(answers(provider))
    await eventually(async () => (await server.connections()) <= size)
  }, 120_000)

  test('a locked MySQL table is unavailable, not absent (fault 13)', async () => {
    const provider = await open({ lockTimeoutMs: 1000, statementTimeoutMs: 20_000 })
    await answers(provider)()
    const { createConnection } = await import('mysql2/promise')
    const holder = await createConnection({ uri: server.rootUrl })
    try {
      await holder.query('LOCK TABLES customers WRITE')
      expect(await failureOf(textOf(provider, 'customers/rows/1'), 'unavailable')).toContain('lock')
    } finally {
      await holder.end()
    }
    await recovers(answers(provider))
  }, 120_000)

  test.each(['slow', 'stuck'] as const)(
    'a request to a MySQL that is %s times out, and succeeds afterwards (fault 18)',
    async (pace) => {
      const provider = await open({ waitTimeoutMs: 1000, statementTimeoutMs: 300 })
      await answers(provider)()
      proxy.pace = pace
      await expectAway(provider)
      proxy.pace = 'free'
      await recovers(answers(provider))
      await eventually(async () => (await server.connections()) <= size)
    },
    120_000,
  )

  test('with a changed password or a connection limit, MySQL is unavailable with the reason; with a revoked privilege, the tables without it are absent; each recovers without a restart', async () => {
    const provider = await open()
    await answers(provider)()
    await server.run("ALTER USER reader@'%' IDENTIFIED BY 'another-one'")
    try {
      proxy.cut()
      await eventually(async () =>
        /rejects the account/.test(await failureOf(textOf(provider, 'customers/rows'), 'unavailable')),
      )
    } finally {
      await server.run(`ALTER USER reader@'%' IDENTIFIED BY '${readerPassword}'`)
    }
    await recovers(answers(provider))
    await server.run("REVOKE SELECT ON app.* FROM reader@'%'; GRANT SELECT ON app.orders TO reader@'%'")
    try {
      proxy.cut()
      await eventually(async () =>
        (await pathsOf(provider.list({}, contextOf()))).every((path) => !path.startsWith('customers/')),
      )
      for (const path of ['customers/schema', 'customers/rows/1']) await failureOf(textOf(provider, path), 'not-found')
    } finally {
      await server.run("REVOKE SELECT ON app.orders FROM reader@'%'; GRANT SELECT ON app.* TO reader@'%'")
    }
    proxy.cut()
    await recovers(answers(provider))
    await server.run("GRANT USAGE ON *.* TO reader@'%' WITH MAX_USER_CONNECTIONS 1")
    let isRefused = false
    try {
      proxy.cut()
      // It is refused itself until the server has noticed the cut, and is given up after its time-out: so it is asked again and again.
      const busy = (async () => {
        while (!isRefused) {
          await textOf(provider, 'sleeping/rows').catch(() => {})
          await pause(10)
        }
      })()
      await eventually(async () => {
        isRefused = /a limit, such as max_user_connections/.test(
          await failureOf(textOf(provider, 'customers/rows'), 'unavailable'),
        )
        return isRefused
      }).finally(() => {
        isRefused = true
      })
      await busy
    } finally {
      await server.run("GRANT USAGE ON *.* TO reader@'%' WITH MAX_USER_CONNECTIONS 0")
    }
    await recovers(answers(provider))
  }, 120_000)

  test('an endless MySQL query is cancelled, and a request waits for a free connection for a limited time', async () => {
    const quick = await open({ statementTimeoutMs: 300, waitTimeoutMs: 30_000 })
    for (const view of ['sleeping', 'crossing']) await failureOf(textOf(quick, `${view}/rows`), 'unavailable')
    const provider = await open({ statementTimeoutMs: 600_000, waitTimeoutMs: 300 })
    const gone = new AbortController()
    const sleepers = Array.from({ length: size }, () =>
      provider.read({ path: 'sleeping/rows', params: new Map() }, contextOf(gone.signal)).catch(() => {}),
    )
    const asleep = async () =>
      Number(
        (
          await server.run(
            "SELECT COUNT(*) AS n FROM information_schema.PROCESSLIST WHERE USER = 'reader' AND INFO LIKE '%sleeping%' AND COMMAND <> 'Sleep'",
          )
        )[0]?.n,
      )
    await eventually(async () => (await asleep()) === size)
    expect(await failureOf(textOf(provider, 'customers/rows'), 'unavailable')).toContain(`All ${size} connections`)
    gone.abort()
    await Promise.all(sleepers)
    // What nobody waits for is ended on the server, too.
    await eventually(async () => (await asleep()) === 0)
    await recovers(answers(provider))
  }, 120_000)
})

test('the pattern of a MySQL grant is matched in linear time (PT39)', () => {
  const on = (pattern: string, schema: string) =>
    excessPrivilegesIn(`GRANT DROP ON \`${pattern}\`.* TO \`r\`@\`%\``, [schema])
  // A matcher with backtracking would not come to its end.
  expect(on(`${'%a'.repeat(40)}b`, 'a'.repeat(64))).toEqual([])
  expect(on(`${'%a'.repeat(40)}%b`, `${'a'.repeat(63)}b`)).toEqual(['DROP'])
  expect(on('%%_%\\%', 'x%')).toEqual(['DROP'])
  expect(on('%\\%', 'x')).toEqual([])
})

describe('the roles of a MySQL account', () => {
  const own = [
    'GRANT USAGE ON *.* TO `r`@`%`',
    'GRANT SELECT ON `shop`.* TO `r`@`%`',
    'GRANT `a``b`@`%`,`w`@`%` TO `r`@`%`',
  ]
  const settings = (allowPrivileged = false) => completeServerOptions({ schemas: ['shop'], allowPrivileged })
  const asked: string[] = []

  /** A server that answers `SHOW GRANTS … USING` with `expanded`. */
  async function factsOf(active: string, expanded: () => Promise<readonly string[]>) {
    asked.length = 0
    return readAccountProperties(async (text) => {
      asked.push(text)
      if (text.startsWith('SELECT')) return [['8.4.3', active]]
      if (text === 'SHOW GRANTS') return own.map((line) => [line])
      return text.startsWith('SHOW GRANTS FOR') ? (await expanded()).map((line) => [line]) : []
    })
  }
  const judged =
    (facts: Awaited<ReturnType<typeof factsOf>>, allowed = false) =>
    () =>
      requireReadOnlyAccount(facts, settings(allowed), 'shop')

  test('are read from the output of SHOW GRANTS, also several in one line', () => {
    expect(own.flatMap(rolesIn)).toEqual(['`a``b`@`%`', '`w`@`%`'])
    expect(rolesIn('GRANT `a`@`%`, `b`@`h` TO `r`@`%` WITH ADMIN OPTION')).toEqual(['`a`@`%`', '`b`@`h`'])
    expect(rolesIn('GRANT `inner` TO `outer`')).toEqual([])
    expect(rolesIn('GRANT `inner` TO PUBLIC')).toEqual([])
    // A matcher with backtracking would not come to its end.
    expect(rolesIn(`GRANT ${'`'.repeat(2000)} FOR \`r\`@\`%\``)).toEqual([])
  })

  test('are checked even if none is active', async () => {
    const facts = await factsOf('NONE', async () => ['GRANT SELECT, INSERT ON `shop`.* TO `r`@`%`'])
    expect(asked).toContain('SHOW GRANTS FOR CURRENT_USER() USING `a``b`@`%`, `w`@`%`')
    expect(judged(facts)).toThrow(/INSERT/)
    expect(judged(facts, true)).not.toThrow()
  })

  test('that can only read are accepted, active or not', async () => {
    for (const active of ['NONE', '`w`@`%`']) expect(judged(await factsOf(active, async () => own))).not.toThrow()
    expect(asked.at(-1)).toBe('SHOW GRANTS FOR CURRENT_USER() USING `a``b`@`%`, `w`@`%`')
  })

  test('are refused if the server does not show their grants', async () => {
    const facts = await factsOf('NONE', () => Promise.reject(new ResourceError('internal', 'denied', { code: '1044' })))
    expect(judged(facts)).toThrow(/role `a``b`@`%`, `w`@`%`.*"allowPrivileged": true/)
    expect(judged(facts, true)).not.toThrow()
    const late = unavailable('The statement exceeded its time-out.')
    await expect(factsOf('NONE', () => Promise.reject(late))).rejects.toBe(late)
  })
})
