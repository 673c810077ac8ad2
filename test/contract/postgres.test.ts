import { afterAll, beforeAll, describe, test } from 'vitest'
import { postgres } from '../../src/providers/postgres/index.ts'
import { nameToSegment } from '../../src/providers/relational/names.ts'
import { describeProvider, type Subject } from '../../src/testing/index.ts'
import { type Database, startDatabase } from '../support/database.ts'

/** Names that are hard to sort and to spell. */
const names = [
  ...['a-b', 'a.txt', 'a', 'a0', 'A', 'a/b', '~', '.', '..', ' leading and trailing ', '%41', 'back\\slash', '[id]'],
  ...[
    '\u{ff71}',
    '\u{20bb7}野家',
    '日本語',
    '\u{304c}',
    '\u{304b}\u{3099}',
    'new\nline',
    'tab\there',
    '\u0085',
    '\u2028',
  ],
  ...['"quoted"', "it's", 'overview', 'extensions', 'schema', 'rows', '__proto__', 'constructor', '\u{10ffff}'],
  ...['x'.repeat(63), 'order by', "t'; drop table t; --", '$1', '{table}', '?limit=1', '#', '\ufeff', '👨‍👩‍👧'],
]

const quote = (name: string) => `"${name.replaceAll('"', '""')}"`

const sql = [
  ...names.map((name) => `CREATE TABLE ${quote(name)} (id int PRIMARY KEY, ${quote(name)} text)`),
  ...names.map((name) => `INSERT INTO ${quote(name)} SELECT i, 'row ' || i FROM generate_series(1, 3) i`),
  `CREATE TYPE mood AS ENUM ('sad', 'it''s ok')`,
  'CREATE FUNCTION a(x int) RETURNS int LANGUAGE sql AS $$ SELECT x $$',
  'CREATE VIEW seen AS SELECT * FROM a',
  'CREATE MATERIALIZED VIEW kept AS SELECT * FROM a',
  'CREATE TABLE parted (id int, day date, PRIMARY KEY (id, day)) PARTITION BY RANGE (day)',
  `CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM ('2026-01-01') TO ('2027-01-01')`,
  'CREATE TABLE nothing ()',
  `CREATE SCHEMA "sales/2026"`,
  `CREATE TABLE "sales/2026".orders (id bigint PRIMARY KEY, a int REFERENCES public.a)`,
  'CREATE SCHEMA empty',
].join('; ')

let database: Database
beforeAll(async () => {
  database = await startDatabase(sql)
}, 120_000)
afterAll(() => database?.remove(), 120_000)

/** What there is of the schema `public`, as paths have it. */
const paths = [
  ...names.map(nameToSegment).flatMap((name) => [`${name}/rows`, `${name}/schema`, `${name}/schema.sql`]),
  ...['mood/enum', 'a/function'],
  ...['seen', 'kept', 'parted', 'parted_1', 'nothing'].flatMap((name) => [
    ...[`${name}/rows`, `${name}/schema`, `${name}/schema.sql`],
  ]),
]
const missing = [
  ...['a', 'b', 'none/schema', 'a/none', 'mood/schema', 'a/enum', 'a~2Fb/schema', '~61/schema', '~/schema', 'a/rows/4'],
  ...['a/rows/01', 'a/rows/1,2', "a/rows/1' or '1'='1", 'a/rows/x', 'pg_class/schema', `${'x'.repeat(64)}/schema`],
]

async function subject(schemas: readonly string[] | undefined): Promise<Subject> {
  const provider = await postgres({
    url: database.readerUrl,
    ...(schemas === undefined ? {} : { schemas }),
    rows: { views: true },
    reconcile: 200,
  })
  const head = schemas === undefined ? 'public/' : ''
  const others = ['public/overview', 'empty/overview', 'sales~2f2026/overview']
  const orders = ['rows', 'schema', 'schema.sql'].map((leaf) => `sales~2f2026/orders/${leaf}`)
  const all = [
    ...paths.map((path) => `${head}${path}`),
    ...['overview', 'extensions'],
    ...(schemas === undefined ? [...others, ...orders] : []),
  ]
  return {
    provider,
    expectation: {
      entries: {
        ...Object.fromEntries(all.map((path) => [path, {}])),
        [`${head}a/schema`]: { mimeType: 'application/json;format=hikidashi.DatabaseSchema' },
        [`${head}~7e/schema.sql`]: { mimeType: 'application/sql' },
      },
      missing: missing.map((path) => `${head}${path}`),
    },
  }
}

describeProvider({ describe, test }, 'the provider postgres over one schema', () => subject(['public']), {
  timeoutMs: 30_000,
})
describeProvider({ describe, test }, 'the provider postgres over all schemas', () => subject(undefined), {
  timeoutMs: 30_000,
})
