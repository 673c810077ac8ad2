import { afterAll, beforeAll, describe, test } from 'vitest'
import { mysql } from '../../src/providers/mysql/index.ts'
import { nameToSegment } from '../../src/providers/relational/names.ts'
import { describeProvider, type Subject } from '../../src/testing/index.ts'
import { hasMariadb, type Mariadb, mariadbReason, startMariadb } from '../support/mariadb.ts'
import { requires } from '../support/require.ts'

/** Names that are hard to sort and to spell. The server takes none that ends in a space, and no character beyond U+FFFF. */
const names = ['a-b', 'a', 'A', 'a/b', '~', '日本語', 'new\n`line`', "t'; drop table t; --"]

const mimeType = 'application/json;format=hikidashi.DatabaseSchema'

const quote = (name: string) => `\`${name.replaceAll('`', '``')}\``

const sql = [
  ...names.map((name) => `CREATE TABLE ${quote(name)} (id int PRIMARY KEY, ${quote(name)} text)`),
  ...names.map((name) => `INSERT INTO ${quote(name)} VALUES (1, 'row 1'), (2, 'row 2'), (3, 'row 3')`),
  'CREATE VIEW seen AS SELECT * FROM a',
  'CREATE FUNCTION `a/b`() RETURNS int RETURN 1; CREATE PROCEDURE `日本語` (IN x int) BEGIN END; CREATE FUNCTION unseen() RETURNS int RETURN 1',
  "GRANT EXECUTE ON FUNCTION app.`a/b` TO reader@'%'; GRANT EXECUTE ON PROCEDURE app.`日本語` TO reader@'%'",
  'CREATE TABLE parted (id int, y int, PRIMARY KEY (id, y)) PARTITION BY RANGE (y) (PARTITION p VALUES LESS THAN MAXVALUE)',
  'CREATE DATABASE `sales/2026`',
  'CREATE TABLE `sales/2026`.orders (id bigint PRIMARY KEY, a int)',
  'CREATE DATABASE `a-b`; CREATE TABLE `a-b`.a (id int PRIMARY KEY); INSERT INTO `a-b`.a VALUES (1)',
  "GRANT SELECT, SHOW VIEW ON `sales/2026`.* TO reader@'%'; GRANT SELECT ON `a-b`.* TO reader@'%'",
  'CREATE DATABASE hidden; CREATE TABLE hidden.secret (id int)',
].join('; ')

requires(
  'mariadb',
  hasMariadb,
  mariadbReason,
)('with a real MariaDB,', () => {
  let server: Mariadb
  beforeAll(async () => {
    server = await startMariadb(sql)
  }, 120_000)
  afterAll(() => server?.remove(), 120_000)

  const leaves = ['rows', 'schema', 'schema.sql']
  const relations = [...names.map(nameToSegment), 'seen', 'parted'].flatMap((name) =>
    leaves.map((leaf) => `${name}/${leaf}`),
  )
  const paths = [...relations, 'a~2fb/function', '日本語/function']
  const missing = [
    ...[
      'a',
      'b',
      'none/schema',
      'a/none',
      'a/enum',
      'a/function',
      'unseen/function',
      'a~2Fb/schema',
      '~61/schema',
      '~/schema',
      'a/rows/4',
      'secret/schema',
    ],
    ...['a/rows/01', 'a/rows/1,2', "a/rows/1' or '1'='1", 'a/rows/x', `${'x'.repeat(65)}/schema`, 'extensions'],
  ]

  const expectationOf = (all: readonly string[], gone: readonly string[]) => ({
    entries: Object.fromEntries(all.map((path) => [path, path.endsWith('/schema') ? { mimeType } : {}])),
    missing: gone,
  })
  const one = async (): Promise<Subject> => ({
    provider: await mysql({ url: server.readerUrl, rows: { views: true }, reconcile: 200 }),
    expectation: expectationOf([...paths, 'overview'], missing),
  })
  const several = async (): Promise<Subject> => {
    const schemas = ['sales/2026', 'a-b']
    const tables = ['sales~2f2026/orders', 'a-b/a'].flatMap((name) => leaves.map((leaf) => `${name}/${leaf}`))
    return {
      provider: await mysql({ url: server.readerUrl, schemas, rows: {}, reconcile: 200 }),
      expectation: expectationOf(
        [...tables, 'overview', 'a-b/overview', 'sales~2f2026/overview'],
        ['app/a/schema', 'hidden/secret/schema', 'mysql/user/schema', 'a-b/orders/schema', 'A-B/a/schema'],
      ),
    }
  }

  describeProvider({ describe, test }, 'the provider mysql over one schema', one, { timeoutMs: 30_000 })
  describeProvider({ describe, test }, 'the provider mysql over several schemas', several, { timeoutMs: 30_000 })
})
