import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import type { Provider } from '../../src/core/provider.ts'
import { type PostgresOptions, postgres } from '../../src/providers/postgres/index.ts'
import { eventTriggerSql } from '../../src/providers/postgres/role.ts'
import { nameToSegment } from '../../src/providers/relational/names.ts'
import { asRole, type Database, grants, startDatabase } from '../support/database.ts'
import { type DatabaseProxy, startDatabaseProxy } from '../support/database-proxy.ts'
import { jsonOf, pathsOf, textOf } from '../support/folder.ts'
import { startWatching } from '../support/watching.ts'

const sql = `
CREATE TYPE mood AS ENUM ('sad', 'it''s ok');
COMMENT ON TYPE mood IS 'How one feels.';
CREATE TABLE customers (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL DEFAULT 'nobody', email varchar(80) UNIQUE,
  mood mood, made timestamptz, price numeric(10,2) CHECK (price > 0), twice numeric GENERATED ALWAYS AS (price * 2) STORED);
COMMENT ON TABLE customers IS 'Who buys.';
COMMENT ON COLUMN customers.email IS 'Where to write: it''s \\ checked.';
INSERT INTO customers (name, email, mood, made, price)
  SELECT 'name ' || i, 'e' || i, 'sad', '2026-11-21 18:00:00.5+09', i FROM generate_series(1, 250) i;
CREATE TABLE orders (customer bigint REFERENCES customers ON DELETE CASCADE, line text, note text, PRIMARY KEY (customer, line));
INSERT INTO orders SELECT i % 3 + 1, 'a,b/' || i, 'note' FROM generate_series(1, 9) i;
CREATE INDEX orders_note ON orders (lower(note)) WHERE note IS NOT NULL;
CREATE VIEW sad AS SELECT id, name FROM customers WHERE mood = 'sad';
CREATE MATERIALIZED VIEW counts AS SELECT count(*) AS n FROM customers;
CREATE TABLE parted (id int, day date, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
CREATE TABLE parted_2026 PARTITION OF parted FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
CREATE FUNCTION add(a int, b int) RETURNS int LANGUAGE sql AS 'SELECT a + b';
CREATE FUNCTION add(a text) RETURNS text LANGUAGE sql AS 'SELECT a';
CREATE PROCEDURE tidy() LANGUAGE sql AS 'SELECT 1';
CREATE EXTENSION hstore;
CREATE TABLE wide (
  id uuid PRIMARY KEY, b bool, s smallint, i int, l bigint, n numeric, f float8, r real, t text, v varchar(9), c char(4), x bytea,
  d date, ts timestamp, tz timestamptz, iv interval, j json, jb jsonb, a int[], rg int4range, m mood, h hstore, xm xml, u inet);
INSERT INTO wide VALUES (
  '00000000-0000-0000-0000-000000000001', true, -1, 2147483647, 9007199254740993, '12345678901234567890.000000001', 0.1, 1.5, 'ÄÖ "quoted" \\ 日本',
  'v', 'c', '\\x00ff10', '2026-11-21', '2026-11-21 18:00:00.123456', '2026-11-21 18:00:00+09', '1 day 02:03:04',
  '{"a": 1e400, "a": 2}', '{"big": 12345678901234567890, "u": "\\u00e9"}', '{1,NULL,3}', '[1,5)', 'it''s ok', 'k=>v', '<a/>', '10.0.0.0/8');
INSERT INTO wide (id, n, f, d, tz) VALUES ('00000000-0000-0000-0000-000000000002', 'NaN', '-Infinity', 'infinity', '-infinity');
INSERT INTO wide (id, t, x, jb) SELECT '00000000-0000-0000-0000-000000000003', repeat('あ', 10000), decode(repeat('ff', 40000), 'hex'),
  to_jsonb(repeat('z', 30000));
CREATE TABLE hidden_parts (id int PRIMARY KEY, open text, secret text, CHECK (secret <> open));
CREATE INDEX by_secret ON hidden_parts (secret);
CREATE TABLE invisible (id int PRIMARY KEY, customer bigint REFERENCES customers);
CREATE SCHEMA other; CREATE TABLE other.thing (id int PRIMARY KEY);
ANALYZE`

let database: Database
let proxy: DatabaseProxy
const opened: Provider[] = []
const context = {
  principal: { id: 'someone', roles: [] },
  // Each call has its own, as each request has.
  get signal() {
    return new AbortController().signal
  },
}

beforeAll(async () => {
  database = await startDatabase(sql)
  await database.run(
    'REVOKE ALL ON invisible, hidden_parts FROM reader; GRANT SELECT (id, open) ON hidden_parts TO reader',
  )
  proxy = await startDatabaseProxy(database.port)
}, 120_000)
afterAll(async () => {
  for (const provider of opened) await provider.close?.()
  await proxy?.close()
  await database?.remove()
}, 120_000)

async function open(options: Partial<PostgresOptions> = {}): Promise<Provider> {
  const provider = await postgres({ url: proxy.through(database.readerUrl), schemas: ['public'], ...options })
  opened.push(provider)
  return provider
}

describe('the page of a PostgreSQL table', () => {
  test('is JSON with columns, keys, checks, comments, and foreign keys in both directions', async () => {
    const provider = await open()
    const document = await jsonOf(provider, 'customers/schema')
    expect(document).toMatchObject({
      schema: 'public',
      table: 'customers',
      kind: 'table',
      owner: 'postgres',
      comment: 'Who buys.',
      rowEstimate: 250,
      primaryKey: { name: 'customers_pkey', columns: ['id'] },
      uniqueKeys: [{ name: 'customers_email_key', columns: ['email'] }],
      checks: [{ name: 'customers_price_check' }],
      foreignKeys: [],
      referencedBy: [
        {
          name: 'orders_customer_fkey',
          from: { schema: 'public', table: 'orders', columns: ['customer'] },
          columns: ['id'],
        },
      ],
    })
    expect(document.columns.map((column: { name: string }) => column.name)).toEqual([
      'id',
      'name',
      'email',
      'mood',
      'made',
      'price',
      'twice',
    ])
    expect(document.columns[0]).toMatchObject({ type: 'bigint', nullable: false, identity: 'always' })
    expect(document.columns[2]).toMatchObject({
      type: 'character varying(80)',
      comment: "Where to write: it's \\ checked.",
    })
    expect(document.columns[6].generated).toContain('price')
    expect((await jsonOf(provider, 'orders/schema')).foreignKeys).toEqual([
      {
        ...{ name: 'orders_customer_fkey', columns: ['customer'], onDelete: 'cascade' },
        references: { schema: 'public', table: 'customers', columns: ['id'] },
      },
    ])
  })

  test('is SQL that creates the same table again', async () => {
    const provider = await open()
    const names = ['customers', 'orders', 'sad', 'parted', 'parted_2026', 'wide']
    const before = await Promise.all(names.map((name) => textOf(provider, `${name}/schema.sql`)))
    await database.run('CREATE DATABASE again')
    const again = { ...database, superuserUrl: database.superuserUrl.replace(/\/app$/, '/again') }
    const { default: pg } = await import('pg')
    const client = new pg.Client({ connectionString: again.superuserUrl })
    await client.connect()
    try {
      await client.query(
        `CREATE EXTENSION hstore; ${await jsonOf(provider, 'mood/enum').then((one) => one.definition)}`,
      )
      for (const statement of before) await client.query(statement)
      await client.query(`${grants}; ANALYZE`)
      const copy = await open({ url: asRole(again.superuserUrl, 'reader', 'the-password-of-reader') })
      expect(await Promise.all(names.map((name) => textOf(copy, `${name}/schema.sql`)))).toEqual(before)
    } finally {
      await client.end()
    }
  })

  test('has nothing that the role may not see', async () => {
    const provider = await open({ rows: {} })
    const paths = await pathsOf(provider.list({}, context))
    expect(paths.filter((path) => path.startsWith('invisible'))).toEqual([])
    await expect(textOf(provider, 'invisible/schema')).rejects.toMatchObject({ kind: 'not-found' })
    const text = await textOf(provider, 'hidden_parts/schema')
    expect(JSON.parse(text).columns.map((column: { name: string }) => column.name)).toEqual(['id', 'open'])
    expect(text).not.toContain('secret')
    expect(await textOf(provider, 'hidden_parts/schema.sql')).not.toContain('secret')
    expect(await textOf(provider, 'customers/schema')).not.toContain('invisible')
    expect(await textOf(provider, 'overview')).not.toContain('invisible')
    await expect(textOf(provider, 'hidden_parts/rows', { columns: 'secret' })).rejects.toMatchObject({
      kind: 'invalid',
    })
  })

  test('has the schema in its path only if there are several schemas', async () => {
    const one = await open()
    expect(await pathsOf(one.list({ prefix: 'orders/' }, context))).toEqual(['orders/schema', 'orders/schema.sql'])
    await expect(textOf(one, 'thing/schema')).rejects.toMatchObject({ kind: 'not-found' })
    const every = await postgres({ url: database.readerUrl })
    opened.push(every)
    expect(await pathsOf(every.list({ prefix: 'other/' }, context))).toEqual([
      'other/overview',
      'other/thing/schema',
      'other/thing/schema.sql',
    ])
    expect(await jsonOf(every, 'public/orders/schema')).toMatchObject({ schema: 'public', table: 'orders' })
    expect((await jsonOf(every, 'other/overview')).tables).toHaveLength(1)
  })
})

test('PostgreSQL enums, overloaded functions and the names of extensions can be read, but not the functions of extensions', async () => {
  const provider = await open()
  expect(await jsonOf(provider, 'mood/enum')).toEqual({
    ...{ schema: 'public', enum: 'mood', owner: 'postgres', comment: 'How one feels.', values: ['sad', "it's ok"] },
    definition: `CREATE TYPE "public"."mood" AS ENUM ('sad', 'it''s ok');\n\nCOMMENT ON TYPE "public"."mood" IS 'How one feels.';\n`,
  })
  const { overloads } = await jsonOf(provider, 'add/function')
  expect(overloads.map((one: { arguments: string }) => one.arguments)).toEqual(['a integer, b integer', 'a text'])
  expect((await jsonOf(provider, 'tidy/function')).overloads[0].kind).toBe('procedure')
  const { extensions } = await jsonOf(provider, 'extensions')
  expect(extensions.map((one: { name: string }) => one.name)).toEqual(['hstore', 'plpgsql'])
  // Those of extensions are many, and documented elsewhere.
  await expect(textOf(provider, 'hstore/function')).rejects.toMatchObject({ kind: 'not-found' })
})

test('settings of the role change neither paths nor values of PostgreSQL', async () => {
  const settings = {
    ...{
      standard_conforming_strings: 'off',
      backslash_quote: 'off',
      escape_string_warning: 'on',
      transform_null_equals: 'on',
    },
    ...{ DateStyle: 'SQL, DMY', IntervalStyle: 'sql_standard', TimeZone: 'Asia/Tokyo', bytea_output: 'escape' },
    ...{ extra_float_digits: '-10', xmlbinary: 'hex', xmloption: 'document', array_nulls: 'off', search_path: 'other' },
    ...{
      row_security: 'off',
      gin_fuzzy_search_limit: '1',
      quote_all_identifiers: 'on',
      default_transaction_deferrable: 'on',
    },
  }
  await database.run('CREATE TABLE "a~b/c\\d" (id int PRIMARY KEY); GRANT SELECT ON "a~b/c\\d" TO reader')
  const answersOf = async () => {
    const provider = await open({ rows: {} })
    const paths = await pathsOf(provider.list({}, context))
    const texts = await Promise.all(
      ['overview', 'wide/rows', 'wide/schema', 'wide/schema.sql', 'customers/schema', 'add/function', 'mood/enum'].map(
        (path) => textOf(provider, path),
      ),
    )
    return { paths, texts }
  }
  const before = await answersOf()
  expect(before.paths).toContain('a~7eb~2fc\\d/rows')
  try {
    for (const [name, value] of Object.entries(settings))
      await database.run(`ALTER ROLE reader SET ${name} TO ${name === 'search_path' ? value : `'${value}'`}`)
    expect(await answersOf()).toEqual(before)
  } finally {
    for (const name of Object.keys(settings)) await database.run(`ALTER ROLE reader RESET ${name}`)
    await database.run('DROP TABLE "a~b/c\\d"')
  }
})

test('the overview of a PostgreSQL database has the tables, their references, and a diagram', async () => {
  const provider = await open()
  const overview = await jsonOf(provider, 'overview')
  expect(overview.relations).toContainEqual({
    name: 'orders_customer_fkey',
    from: { schema: 'public', table: 'orders', columns: ['customer'] },
    to: { schema: 'public', table: 'customers', columns: ['id'] },
  })
  const diagram = await textOf(provider, 'overview', { format: 'mermaid' })
  expect(overview.mermaid).toBe(diagram)
  expect(diagram).toMatch(/^erDiagram\n/)
  expect(diagram).toMatch(/ }o--\|\| t\d+ : "orders_customer_fkey"\n/)
  await expect(textOf(provider, 'overview', { format: 'svg' })).rejects.toMatchObject({ kind: 'invalid' })
})

describe('rows of PostgreSQL', () => {
  test('are served only with the option "rows"', async () => {
    const provider = await open()
    expect((await pathsOf(provider.list({}, context))).filter((path) => path.includes('rows'))).toEqual([])
    await expect(textOf(provider, 'customers/rows')).rejects.toMatchObject({ kind: 'not-found' })
    await expect(textOf(provider, 'customers/rows/1')).rejects.toMatchObject({ kind: 'not-found' })
    expect(provider.parts).toBeUndefined()
    expect(await provider.templates?.(context)).not.toContainEqual(expect.objectContaining({ name: 'Rows' }))
  })

  test('are paged in the order of the key, each once, and read by key', async () => {
    const provider = await open({ rows: {} })
    const seen: string[] = []
    for (let after: string | null = ''; after !== null; ) {
      const params: Record<string, string> = { limit: '100', columns: 'name', ...(after === '' ? {} : { after }) }
      const page: { rows: { name: string }[]; next: string | null; more: boolean } = await jsonOf(
        provider,
        'customers/rows',
        params,
      )
      seen.push(...page.rows.map(({ name }) => name))
      expect(page.more).toBe(page.next !== null)
      after = page.next
    }
    expect(seen).toEqual(Array.from({ length: 250 }, (_, i) => `name ${i + 1}`))
    const parts = (await provider.parts?.('customers/rows', context)) ?? []
    const found: string[] = []
    for await (const { path, text } of parts) found.push(`${path} ${/name: (.*)/.exec(text)?.[1]}`)
    expect(found).toEqual(Array.from({ length: 250 }, (_, i) => `customers/rows/${i + 1} name ${i + 1}`))
    expect(await provider.parts?.('customers/schema', context)).toBeUndefined()
    const { rows } = await jsonOf(provider, 'customers/rows/7')
    expect(rows).toEqual([
      {
        id: '7',
        name: 'name 7',
        email: 'e7',
        mood: 'sad',
        made: '2026-11-21T09:00:00.5Z',
        price: '7.00',
        twice: '14.00',
      },
    ])
  })

  test('have keys of several columns, with any characters', async () => {
    const provider = await open({ rows: {} })
    const first = await jsonOf(provider, 'orders/rows', { limit: '1' })
    expect(first).toMatchObject({ key: ['customer', 'line'], next: '1,a~2cb~2f3', more: true })
    const second = await jsonOf(provider, 'orders/rows', { limit: '1', after: first.next })
    expect(second.rows[0].line).toBe('a,b/6')
    expect((await jsonOf(provider, `orders/rows/${first.next}`)).rows).toEqual(first.rows)
    for (const key of ['1', '1,a,b/3', '01,a~2cb~2f3', '1,a~2Cb~2f3', 'x,y', "1,'", '99,a'])
      await expect(textOf(provider, `orders/rows/${key}`), key).rejects.toMatchObject({ kind: 'not-found' })
  })

  test('are found by their keys as they are shown, unless a rule denies the row', async () => {
    await database.run(`CREATE TABLE keyed (tz timestamptz, b bytea, u uuid, n numeric(10,2), d timestamp, PRIMARY KEY (tz, b, u, n, d));
      INSERT INTO keyed VALUES ('2026-11-21 18:00:00.5+09', '\\xfb00ff', '0000000a-0000-0000-0000-00000000000b', 1.5, '2026-11-21 18:00:00');
      CREATE TABLE one_key (b bytea PRIMARY KEY); INSERT INTO one_key VALUES ('\\xffff');
      GRANT SELECT ON keyed, one_key TO reader`)
    const provider = await open({ rows: {} })
    const [row] = (await jsonOf(provider, 'keyed/rows')).rows
    expect(row).toMatchObject({ tz: '2026-11-21T09:00:00.5Z', b: '+wD/', n: '1.50' })
    const shown = Object.values(row)
      .map((value) => nameToSegment(String(value)))
      .join(',')
    for (const key of [shown, shown.replace('0000000a', '0000000A'), shown.replace('1.50', '1.5')])
      expect((await jsonOf(provider, `keyed/rows/${key}`)).rows, key).toEqual([row])
    for (const key of [shown.replace('1.50', '1.51'), shown.replace('+wD', 'AAA'), 'now,a,b,c,d'])
      await expect(textOf(provider, `keyed/rows/${key}`), key).rejects.toMatchObject({ kind: 'not-found' })
    expect(
      (await jsonOf(provider, 'one_key/rows/~5cxffff').catch(() => jsonOf(provider, 'one_key/rows/\\xffff'))).rows,
    ).toHaveLength(1)
    const read = (allows: (path: string) => boolean) =>
      provider.read({ path: 'one_key/rows/~2f~2f8=', params: new Map() }, { ...context, allows })
    expect(await read(() => true)).toHaveLength(1)
    await expect(read((path) => path !== 'one_key/rows/\\xffff')).rejects.toMatchObject({ kind: 'not-found' })
  })

  test('of a materialized view without data give an error that says how to fill it', async () => {
    await database.run(
      'CREATE MATERIALIZED VIEW unfilled AS SELECT id FROM customers WITH NO DATA; GRANT SELECT ON unfilled TO reader',
    )
    await expect(textOf(await open({ rows: {} }), 'unfilled/rows')).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('REFRESH MATERIALIZED VIEW'),
    })
  })

  test('have values of every type without loss', async () => {
    const provider = await open({ rows: {} })
    const text = await textOf(provider, 'wide/rows', { limit: '2' })
    expect(text).toContain('{"a": 1e400, "a": 2}')
    expect(text).toContain('"big": 12345678901234567890')
    const [row, odd] = JSON.parse(text).rows
    expect(row).toMatchObject({
      ...{ b: true, s: -1, i: 2147483647, l: '9007199254740993', n: '12345678901234567890.000000001', f: 0.1, r: 1.5 },
      ...{ t: 'ÄÖ "quoted" \\ 日本', v: 'v', c: 'c', x: 'AP8Q', d: '2026-11-21', ts: '2026-11-21T18:00:00.123456' },
      ...{ tz: '2026-11-21T09:00:00Z', iv: 'P1DT2H3M4S', a: '{1,NULL,3}', rg: '[1,5)', m: "it's ok", h: '"k"=>"v"' },
      ...{ xm: '<a/>', u: '10.0.0.0/8' },
    })
    expect(odd).toMatchObject({ n: 'NaN', f: '-Infinity', d: 'infinity', tz: '-infinity', b: null, j: null })
  })

  test('have long values truncated, and say so', async () => {
    const provider = await open({ rows: { maxValueBytes: 3000 } })
    const { rows, cut } = await jsonOf(provider, 'wide/rows/00000000-0000-0000-0000-000000000003')
    expect(cut).toEqual([
      { row: 0, column: 't', bytes: 30_000 },
      { row: 0, column: 'x', bytes: 40_000 },
      { row: 0, column: 'jb', bytes: 30_002 },
    ])
    expect(rows[0].t).toBe('あ'.repeat(750))
    expect(Buffer.from(rows[0].x, 'base64').equals(Buffer.alloc(3000, 0xff))).toBe(true)
    expect(rows[0].jb).toBe(`"${'z'.repeat(749)}`)
  })

  test('come in pages of limited size, each with the key to continue after', async () => {
    const provider = await open({ rows: { maxBytes: 1000 } })
    const page = await jsonOf(provider, 'customers/rows')
    expect(page.more).toBe(true)
    expect(page.rows.length).toBeGreaterThan(1)
    expect(page.rows.length).toBeLessThan(50)
    const next = await jsonOf(provider, 'customers/rows', { after: page.next, limit: '1' })
    expect(next.rows[0].id).toBe(String(page.rows.length + 1))
  })

  test('are only of the allowed tables and columns, and have no key that contains a denied column', async () => {
    const provider = await open({
      rows: { tables: ['customers', 'orders'], columns: { deny: ['customers/email', 'orders/line'] } },
    })
    expect((await pathsOf(provider.list({}, context))).filter((path) => path.endsWith('/rows'))).toEqual([
      'customers/rows',
      'orders/rows',
    ])
    await expect(textOf(provider, 'wide/rows')).rejects.toMatchObject({ kind: 'not-found' })
    const { rows, columns } = await jsonOf(provider, 'customers/rows', { limit: '1' })
    expect(Object.keys(rows[0])).toEqual(['id', 'name', 'mood', 'made', 'price', 'twice'])
    expect(columns).toHaveLength(6)
    // What is denied and what is not there are refused in the same words.
    const refusals = await Promise.all(
      ['email', 'nothing'].map((column) =>
        textOf(provider, 'customers/rows', { columns: column }).catch((error: Error) => error.message),
      ),
    )
    expect(new Set(refusals).size).toBe(1)
    // A key tells of its columns.
    expect(await jsonOf(provider, 'orders/rows', { limit: '2' })).toMatchObject({ key: [], next: null, more: true })
    await expect(textOf(provider, 'orders/rows/1,a~2cb~2f3')).rejects.toMatchObject({ kind: 'not-found' })
  })

  test('are refused if a parameter is invalid', async () => {
    const provider = await open({ rows: { limit: 50 } })
    for (const params of [
      ...[{ limit: '0' }, { limit: '51' }, { limit: '1e3' }, { limit: '-1' }, { limit: '' }, { limit: '1;' }],
      ...[
        { columns: '' },
        { columns: 'name,name' },
        { columns: '*' },
        { columns: 'name,' },
        { after: '' },
        { after: 'x' },
        { after: '1,2' },
      ],
    ] as readonly Record<string, string>[])
      await expect(textOf(provider, 'customers/rows', params), JSON.stringify(params)).rejects.toMatchObject({
        kind: 'invalid',
      })
  })

  test('of a view are read only if views are configured', async () => {
    const closed = await open({ rows: {} })
    await expect(textOf(closed, 'sad/rows')).rejects.toMatchObject({ kind: 'not-found' })
    const provider = await open({ rows: { views: true } })
    expect(await jsonOf(provider, 'sad/rows', { limit: '3' })).toMatchObject({ key: [], more: true, next: null })
    expect((await jsonOf(provider, 'counts/rows')).rows).toEqual([{ n: '250' }])
  })
})

test('PostgreSQL tables, enums, functions, columns and keys are completed, but no denied column or hidden table', async () => {
  const provider = await open({ rows: { columns: { deny: ['**/email'] } } })
  const complete = async (name: string, value: string, filled: Record<string, string> = {}) =>
    (
      await provider.complete?.(
        {
          template: '{table}/rows{?limit,after,columns}',
          argument: { name, value },
          arguments: new Map(Object.entries(filled)),
        },
        context,
      )
    )?.values
  expect(await complete('table', 'par')).toEqual(['parted', 'parted_2026'])
  expect(await complete('table', 'mo')).toEqual([])
  expect(await complete('enum', '')).toEqual(['mood'])
  expect(await complete('function', 'a')).toEqual(['add'])
  expect(await complete('columns', 'id,M', { table: 'customers' })).toEqual(['id,mood', 'id,made'])
  expect(await complete('columns', 'e', { table: 'customers' })).toEqual([])
  expect(await complete('columns', '', { table: 'invisible' })).toEqual([])
  expect(await complete('key', '24', { table: 'customers' })).toEqual([
    '24',
    ...[...Array(10).keys()].map((i) => `24${i}`),
  ])
  expect(await complete('key', '1,', { table: 'orders' })).toEqual(['1,a~2cb~2f3', '1,a~2cb~2f6', '1,a~2cb~2f9'])
  expect(await complete('key', "'; drop table customers", { table: 'customers' })).toEqual([])
})

test.each([
  ['EUC_JP', ['A', 'a/b', '注文', '顧客', '顧客マスタのとてもとても長い名前の表二十字', 'ｱ']],
  ['LATIN1', ['a~', '\u0085x', 'ä', 'ü']],
])(
  'a PostgreSQL database in the encoding %s is listed with its names unchanged, in byte order',
  async (encoding, names) => {
    await database.run(`CREATE DATABASE other_encoding ENCODING '${encoding}' LOCALE 'C' TEMPLATE template0`)
    const { default: pg } = await import('pg')
    const client = new pg.Client({ connectionString: database.superuserUrl.replace(/\/app$/, '/other_encoding') })
    await client.connect()
    try {
      for (const name of names) await client.query(`CREATE TABLE "${name}" (id int PRIMARY KEY)`)
      await client.query(grants)
      const url = database.readerUrl.replace(/\/app$/, '/other_encoding')
      const provider = await postgres({ url, schemas: ['public'], rows: {} })
      try {
        const schemas = (await pathsOf(provider.list({}, context))).filter((path) => path.endsWith('/schema'))
        expect(schemas).toEqual(names.map((name) => `${nameToSegment(name)}/schema`))
        expect(await jsonOf(provider, schemas[2] ?? '')).toMatchObject({ table: names[2] })
        // A name that the encoding cannot say is no name there.
        await expect(textOf(provider, '\u{1f5c4}/schema')).rejects.toMatchObject({ kind: 'not-found' })
        expect((await pathsOf(provider.list({ after: names[2] ?? '' }, context)))[0]).toBe(`${names[2]}/rows`)
      } finally {
        await provider.close?.()
      }
    } finally {
      await client.end()
      await database.run('DROP DATABASE other_encoding WITH (FORCE)')
    }
  },
  60_000,
)

describe('a PostgreSQL catalog of 10,000 tables', () => {
  const count = 10_000

  beforeAll(async () => {
    await database.run('CREATE SCHEMA large; GRANT USAGE ON SCHEMA large TO reader')
    // More in one transaction would be more locks than the server has.
    for (let first = 1; first <= count; first += 2000)
      await database.run(`DO $$ BEGIN FOR i IN ${first}..${first + 1999} LOOP
        EXECUTE format('CREATE TABLE large.t%s (id int)', i); END LOOP; END $$`)
    await database.run('GRANT SELECT ON ALL TABLES IN SCHEMA large TO reader')
  }, 120_000)

  test('is listed page by page in byte order, with at most five queries a page', async () => {
    const provider = await open({ schemas: ['large'] })
    const catalog = createCatalog({ mounts: [{ address: 'postgres://localhost/large', provider }] })
    const view = catalog.view(context.principal)
    const uris: string[] = []
    let pages = 0
    let most = 0
    for (let cursor: string | undefined; ; ) {
      const before = proxy.executed
      const page = await view.list(cursor === undefined ? {} : { cursor })
      pages++
      // The first one opens the connection.
      if (pages > 1) most = Math.max(most, proxy.executed - before)
      uris.push(...page.items.map(({ uri }) => uri))
      cursor = page.nextCursor
      if (cursor === undefined) break
    }
    // A page of 16,000 entries is 8,000 tables, 2,000 of a query.
    expect(most).toBeLessThanOrEqual(5)
    expect(pages).toBeLessThan(20)
    expect(uris).toHaveLength(count * 2 + 2)
    const sorted = [...uris].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    expect(uris).toEqual(sorted)
  }, 60_000)

  test('is described for 1,000 reads at once with fewer than 20 queries', async () => {
    const provider = await open({ schemas: ['large'] })
    await textOf(provider, 't1/schema')
    const before = proxy.executed
    const texts = await Promise.all(Array.from({ length: 1000 }, (_, i) => textOf(provider, `t${i + 1}/schema`)))
    expect(new Set(texts).size).toBe(1000)
    expect(proxy.executed - before).toBeLessThan(20)
  }, 60_000)

  test('is still described to a caller when another caller of the same query leaves', async () => {
    const provider = await open({ schemas: ['large'] })
    const gone = new AbortController()
    const left = provider.read({ path: 't1/schema', params: new Map() }, { ...context, signal: gone.signal })
    const stays = textOf(provider, 't2/schema')
    gone.abort(new Error('gone'))
    await expect(left).rejects.toThrow('gone')
    expect(JSON.parse(await stays)).toMatchObject({ table: 't2' })
  })
})

describe('changes of PostgreSQL', () => {
  const changes = [
    ['CREATE TABLE other.fresh (id int); GRANT SELECT ON other.fresh TO reader', 'other/fresh/'],
    ['ALTER TABLE other.thing ADD COLUMN more text', 'other/thing/schema'],
    ["COMMENT ON COLUMN other.thing.more IS 'What is said.'", 'other/thing/schema.sql'],
    ['REVOKE SELECT ON other.fresh FROM reader', 'other/fresh/'],
    ['DROP TABLE other.fresh; ALTER TABLE other.thing DROP COLUMN more', 'other/thing/schema'],
  ] as const

  test.each([
    ['by comparing the catalog', 200, false],
    ['by an event trigger', 3_600_000, true],
  ] as const)(
    'are reported %s',
    async (_, reconcile, trigger) => {
      if (trigger) await database.run(eventTriggerSql)
      const provider = await open({ schemas: ['other', 'public'], reconcile })
      const watching = await startWatching(provider)
      try {
        for (const [statement, path] of changes) {
          watching.clear()
          await database.run(statement)
          await watching.until(path, 'other/overview')
          expect(watching.changes.some((change) => change.path?.startsWith('public/'))).toBe(false)
        }
      } finally {
        await watching.stop()
        if (trigger) await database.run('DROP EVENT TRIGGER hikidashi_changed; DROP EVENT TRIGGER hikidashi_dropped')
      }
    },
    60_000,
  )

  test('of rows are reported for their table', async () => {
    const provider = await open({ rows: { tables: ['customers'] }, reconcile: 200 })
    const watching = await startWatching(provider)
    try {
      await database.run('UPDATE customers SET name = name WHERE id = 1')
      await watching.until('customers/rows', 'customers/rows/')
      expect(watching.changes.some((change) => change.path === 'orders/rows')).toBe(false)
    } finally {
      await watching.stop()
    }
  }, 60_000)

  test('are still reported after the listening connection was lost', async () => {
    await database.run(eventTriggerSql)
    const provider = await open({ schemas: ['other'], reconcile: 3_600_000 })
    const watching = await startWatching(provider)
    try {
      await database.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'hikidashi'")
      await database.run('CREATE TABLE other.after_loss (id int); GRANT SELECT ON other.after_loss TO reader')
      await watching.until('after_loss/')
      watching.clear()
      await database.run('DROP TABLE other.after_loss')
      await watching.until('after_loss/')
    } finally {
      await watching.stop()
      await database.run('DROP EVENT TRIGGER hikidashi_changed; DROP EVENT TRIGGER hikidashi_dropped')
    }
  }, 60_000)
})

test('a cancelled request ends its PostgreSQL query', async () => {
  await database.run('CREATE VIEW slow AS SELECT pg_sleep(600)::text AS slept; GRANT SELECT ON slow TO reader')
  const provider = await open({ rows: { views: true }, statementTimeoutMs: 600_000 })
  const gone = new AbortController()
  const read = provider.read({ path: 'slow/rows', params: new Map() }, { ...context, signal: gone.signal })
  read.catch(() => {})
  const running = async () =>
    Number(
      (
        await database.run(
          "SELECT count(*)::int AS n FROM pg_stat_activity WHERE query LIKE '%\"slow\"%' AND state = 'active' AND application_name = 'hikidashi'",
        )
      )[0]?.n,
    )
  await until(async () => (await running()) === 1)
  gone.abort()
  await expect(read).rejects.toThrow()
  await until(async () => (await running()) === 0)
  await database.run('DROP VIEW slow')
}, 60_000)

test('behind a pooler that shares PostgreSQL connections, no session state is used', async () => {
  const own = await startDatabaseProxy(database.port)
  own.disguise = true
  try {
    const provider = await open({ url: own.through(database.readerUrl), schemas: ['other'], rows: {}, reconcile: 200 })
    const watching = await startWatching(provider)
    expect(await jsonOf(provider, 'thing/rows')).toMatchObject({ rows: [] })
    await database.run('ALTER TABLE other.thing ADD COLUMN shared int')
    await watching.until('thing/schema')
    await watching.stop()
    await database.run('ALTER TABLE other.thing DROP COLUMN shared')
    expect(own.prepared.some((text) => text.startsWith('LISTEN'))).toBe(false)
    // Every transaction sets what it needs by itself.
    expect(own.prepared.filter((text) => text.startsWith('BEGIN')).length).toBeGreaterThan(2)
    expect(own.simple).toEqual([])
  } finally {
    await own.close()
  }
}, 60_000)

async function until(holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 40_000
  while (!(await holds())) {
    if (performance.now() > end) throw new Error('It never came to this.')
    await sleep(20)
  }
}
