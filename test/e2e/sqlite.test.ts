import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { pathToFileURL } from 'node:url'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { compileAccess } from '../../src/core/access.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import type { Provider } from '../../src/core/provider.ts'
import {
  checksOf,
  definitionItemsOf,
  generatedColumnsOf,
  tokenRangeText as textOfTokens,
} from '../../src/providers/sqlite/definitions.ts'
import { type SqliteOptions, sqlite } from '../../src/providers/sqlite/index.ts'
import { bundled } from '../support/bundled.ts'
import { createFolder, type Folder, jsonOf, pathsOf, textOf } from '../support/folder.ts'
import { eventually, recovers } from '../support/recovery.ts'
import { startWatching } from '../support/watching.ts'

const sql = `
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL DEFAULT 'nobody' CHECK (length(name) > 0), email TEXT UNIQUE,
  twice AS (id * 2) STORED, CONSTRAINT known CHECK (email <> ','));
CREATE TABLE orders (customer INTEGER REFERENCES Customers ON DELETE CASCADE, line TEXT, note, PRIMARY KEY (customer, line)) WITHOUT ROWID;
CREATE INDEX orders_note ON orders (lower(note) DESC, line) WHERE note IS NOT NULL;
CREATE TRIGGER told AFTER INSERT ON orders BEGIN SELECT 1; END;
CREATE VIEW names AS SELECT id, name FROM customers;
CREATE VIEW endless AS WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r) SELECT count(*) AS n FROM r;
CREATE TABLE anything (k PRIMARY KEY, v) WITHOUT ROWID;
CREATE TABLE keyless (a, b);
INSERT INTO customers (name, email) WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < 250) SELECT 'name ' || n, 'e' || n FROM i;
INSERT INTO orders SELECT id % 3 + 1, 'a,b/' || id, 'note' FROM customers WHERE id < 10;
ANALYZE`

let folder: Folder
let file: string
let writer: InstanceType<typeof DatabaseSync>
const opened: Provider[] = []
beforeEach(() => {
  folder = createFolder()
  file = folder.at('app.db')
  writer = new DatabaseSync(file)
  // What a process has written outlives it: that is all these tests need.
  writer.exec(`PRAGMA synchronous = off; ${sql}`)
})
afterEach(async () => {
  for (const provider of opened.splice(0)) await provider.close?.()
  if (writer.isOpen) writer.close()
  folder.remove()
})

async function open(options: Partial<SqliteOptions> = {}): Promise<Provider> {
  const provider = await sqlite({ file, rows: {}, reconcile: 200, lockTimeoutMs: 300, ...options })
  opened.push(provider)
  return provider
}

const contextOf = (signal = new AbortController().signal) => ({ principal: { id: 'someone', roles: [] }, signal })

/** That something fails, in words that hold nothing of the machine or of SQLite. */
async function failureOf(work: Promise<unknown>): Promise<{ kind: string; message: string }> {
  const error = await work.then(
    () => ({}),
    (thrown: unknown) => thrown,
  )
  expect(error).toMatchObject({ name: 'ResourceError' })
  const { kind, message, detail } = error as { kind: string; message: string; detail: unknown }
  if (kind !== 'invalid')
    expect(`${message} ${JSON.stringify(detail)}`).not.toMatch(
      /\/root|app\.db|no such (?:table|column)|SELECT|malformed/,
    )
  return { kind, message }
}

/** A process that holds something open until it is ended. */
function elsewhere(script: string) {
  const module = new URL('../../node_modules/@photostructure/sqlite/dist/index.mjs', import.meta.url).href
  const code = `import { DatabaseSync } from ${JSON.stringify(module)}; const database = globalThis.held = new DatabaseSync(${JSON.stringify(file)}); ${script}; process.stdout.write('ready'); setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ready = new Promise<void>((resolve) => child.stdout.once('data', () => resolve()))
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  return {
    ready,
    end: async () => {
      child.kill('SIGKILL')
      await ended
    },
  }
}

describe('the page of an SQLite table', () => {
  test('is JSON with its columns, keys, checks, triggers and indexes, and SQL that creates a table', async () => {
    const provider = await open()
    expect(await jsonOf(provider, 'customers/schema')).toMatchObject({
      ...{ table: 'customers', kind: 'table', owner: null, comment: null, rowEstimate: 250 },
      columns: [
        { name: 'id', type: 'INTEGER', nullable: false },
        { name: 'name', nullable: false, default: "'nobody'" },
        { name: 'email', nullable: true },
        { name: 'twice', generated: 'id * 2' },
      ],
      primaryKey: { columns: ['id'] },
      uniqueKeys: [{ columns: ['email'] }],
      checks: [
        { name: '', definition: 'CHECK (length(name) > 0)' },
        { name: 'known', definition: "CHECK (email <> ',')" },
      ],
      referencedBy: [{ from: { table: 'orders', columns: ['customer'] }, columns: ['id'] }],
    })
    const orders = await jsonOf(provider, 'orders/schema')
    expect(orders).toMatchObject({
      foreignKeys: [
        { columns: ['customer'], references: { table: 'customers', columns: ['id'] }, onDelete: 'cascade' },
      ],
      triggers: [{ name: 'told', definition: expect.stringContaining('AFTER INSERT') }],
    })
    expect(orders.indexes).toMatchObject([
      { name: 'orders_note', unique: false, columns: ['lower(note) DESC', 'line'] },
      { unique: true, columns: ['customer', 'line'], definition: 'PRIMARY KEY ("customer", "line")' },
    ])
    const again = new DatabaseSync(':memory:')
    for (const name of ['customers', 'orders', 'names']) again.exec(await textOf(provider, `${name}/schema.sql`))
    again.close()
    const overview = await jsonOf(provider, 'overview')
    expect(overview.relations).toEqual([
      {
        name: 'orders_customer_fkey',
        from: { table: 'orders', columns: ['customer'] },
        to: { table: 'customers', columns: ['id'] },
      },
    ])
    expect(overview.mermaid).toContain('erDiagram')
  })

  test('has the checks and generated columns of CREATE statements with comments and any kind of quotes', () => {
    const made = `CREATE TABLE "t(1" /* (a, */ ( "a""b" TEXT DEFAULT ')' CHECK("a""b" <> '(,'), -- b, (
      [c d] AS ((1 + (2))) VIRTUAL, CONSTRAINT \`x,y\` CHECK ( ( [c d] > 0 ) ) )`
    expect(definitionItemsOf(made).map((item) => textOfTokens(made, item).slice(0, 5))).toEqual([
      '"a""b',
      '[c d]',
      'CONST',
    ])
    expect(checksOf(made)).toEqual([
      { name: '', definition: `CHECK ("a""b" <> '(,')` },
      { name: 'x,y', definition: 'CHECK ( ( [c d] > 0 ) )' },
    ])
    expect(generatedColumnsOf(made)).toEqual(new Map([['c d', '(1 + (2))']]))
    for (const broken of ['', '(', ')', "'", '/*', 'CREATE TABLE x', 'CHECK (', '[', '"'])
      expect(checksOf(broken)).toEqual([])
  })

  test('is listed for each of a thousand tables, also if the listing resumes near its end', async () => {
    const count = 1000
    writer.exec('BEGIN')
    for (let i = 0; i < count; i++) writer.exec(`CREATE TABLE t${i} (id INTEGER PRIMARY KEY, p REFERENCES customers)`)
    writer.exec('COMMIT')
    const provider = await open()
    expect(await pathsOf(provider.list({}, contextOf()))).toHaveLength(3 * (count + 6) + 1 - 2)
    const last = `t${count - 1}`
    expect(await pathsOf(provider.list({ after: `${last}/rows` }, contextOf()))).toEqual([
      `${last}/schema`,
      `${last}/schema.sql`,
    ])
    expect((await jsonOf(provider, 'customers/schema')).referencedBy).toHaveLength(count + 1)
  }, 60_000)
})

describe('rows of SQLite', () => {
  test('are served only with the option "rows", and of views only if configured', async () => {
    const none = await open({ rows: undefined as never })
    expect(await failureOf(none.read({ path: 'customers/rows', params: new Map() }, contextOf()))).toMatchObject({
      kind: 'not-found',
    })
    const tables = await open()
    expect(await failureOf(textOf(tables, 'names/rows'))).toMatchObject({ kind: 'not-found' })
    const views = await open({ rows: { views: true } })
    expect((await jsonOf(views, 'names/rows', { limit: '2' })).rows).toEqual([
      { id: 1, name: 'name 1' },
      { id: 2, name: 'name 2' },
    ])
  })

  test('are paged by the key, each once', async () => {
    const provider = await open()
    for (const [table, column, count] of [
      ['customers', 'id', 250],
      ['orders', 'line', 9],
    ] as const) {
      const seen: unknown[] = []
      for (let after: string | undefined; ; ) {
        const page = await jsonOf(provider, `${table}/rows`, {
          limit: '4',
          columns: column,
          ...(after === undefined ? {} : { after }),
        })
        seen.push(...page.rows.map((row: Record<string, unknown>) => row[column]))
        if (page.next === null) break
        after = page.next
      }
      expect([seen.length, new Set(seen).size]).toEqual([count, count])
    }
    expect((await jsonOf(provider, 'orders/rows/2,a~2cb~2f1')).rows).toEqual([
      { customer: 2, line: 'a,b/1', note: 'note' },
    ])
    expect(await jsonOf(provider, 'keyless/rows')).toMatchObject({ key: [], next: null })
  })

  test('have keys of any type, each different from all others, by which they are read', async () => {
    const keys = ['1', "'1'", "x'31'", '1.5', 'é', "'it''s'", "'x''00'''", '-9223372036854775808', '1e+300']
    writer.exec(`INSERT INTO anything VALUES (1, 'whole'), ('1', 'text'), (x'31', 'bytes'), (1.5, 'real'), ('é', 'letter'),
      ('''it''''s''', 'quoted'), ('x''00''', 'looks like bytes'), (-9223372036854775808, 'least'), (1e300, 'large')`)
    const provider = await open()
    const found = await jsonOf(provider, 'anything/rows')
    expect(found.rows).toHaveLength(9)
    const seen = new Set<string>()
    for (let after: string | undefined; seen.size < 20; ) {
      const page = await jsonOf(provider, 'anything/rows', { limit: '1', ...(after === undefined ? {} : { after }) })
      for (const { v } of page.rows) seen.add(v)
      if (page.next === null) break
      after = page.next
    }
    expect(seen.size).toBe(9)
    const values = []
    for (const key of keys)
      values.push(
        await jsonOf(provider, `anything/rows/${key}`).then(
          ({ rows }) => rows[0].v,
          () => key,
        ),
      )
    expect(values).toEqual(['whole', 'text', 'bytes', 'real', 'letter', 'quoted', 'looks like bytes', 'least', 'large'])
    for (const key of ['01', '+1', '1.0', "x'3'", "''", 'none'])
      expect(await failureOf(textOf(provider, `anything/rows/${key}`)), key).toMatchObject({ kind: 'not-found' })
  })

  test('are found by their keys as they are shown', async () => {
    writer.exec(`CREATE TABLE shown (a, b BLOB, u UUID, n DECIMAL(10,2), at DATETIME, PRIMARY KEY (a, b, u, n, at));
      INSERT INTO shown VALUES ('7', x'fb00ff', '0000000a-0000-0000-0000-00000000000b', 1.5, '2026-11-21T18:00:00Z'), (7, 'text', 'u', 2, 'x')`)
    const provider = await open()
    const { rows } = await jsonOf(provider, 'shown/rows')
    expect(rows).toHaveLength(2)
    for (const row of rows) {
      const key = Object.values(row)
        .map((value) => String(value).replaceAll('/', '~2f'))
        .join(',')
      expect((await jsonOf(provider, `shown/rows/${key}`)).rows, key).toEqual([row])
      expect(await failureOf(textOf(provider, `shown/rows/${key}x`))).toMatchObject({ kind: 'not-found' })
    }
  })

  test('of a view that names a missing column or function give an error that says that the view cannot be read', async () => {
    writer.exec(`CREATE TABLE base (id); CREATE VIEW broken AS SELECT id FROM base; CREATE VIEW absent AS SELECT unknown(id) AS x FROM base;
      DROP TABLE base; CREATE TABLE base (other)`)
    const provider = await open({ rows: { views: true } })
    for (const view of ['broken', 'absent'])
      expect(await failureOf(textOf(provider, `${view}/rows`)), view).toMatchObject({
        kind: 'invalid',
        message: expect.stringContaining('The view or generated column cannot be read'),
      })
  })

  test('have values of every type without loss', async () => {
    writer.exec(`CREATE TABLE wide (id INTEGER PRIMARY KEY, v);
      INSERT INTO wide VALUES (1, 9007199254740993), (2, -9223372036854775808), (3, 9007199254740991), (4, 1e400), (5, -1e400), (6, 2.0),
      (7, 0.1), (8, x'00ff'), (9, 'a' || char(0) || 'b"é日本'), (10, NULL), (11, ''), (12, x''), (13, 1e400 - 1e400)`)
    const { rows } = await jsonOf(await open(), 'wide/rows')
    expect(rows.map(({ v }: { v: unknown }) => v)).toEqual([
      ...['9007199254740993', '-9223372036854775808', 9007199254740991, 'Infinity', '-Infinity', 2, 0.1, 'AP8='],
      ...['a\0b"é日本', null, '', '', null],
    ])
    expect(await textOf(await open(), 'wide/rows/6')).toContain('"v": 2.0')
  })

  test('of a database in UTF-16 have their texts and keys unchanged', async () => {
    const other = folder.at('wide.db')
    const database = new DatabaseSync(other)
    database.exec(
      `PRAGMA encoding = 'UTF-16be'; CREATE TABLE "日本" (k TEXT PRIMARY KEY NOT NULL, v); INSERT INTO "日本" VALUES ('é', '𠮷' || char(0)), ('b', x'fe')`,
    )
    database.close()
    const { rows } = await jsonOf(await open({ file: other }), '日本/rows')
    expect(rows).toEqual([
      { k: 'b', v: '/g==' },
      { k: 'é', v: '𠮷\0' },
    ])
  })

  test('are truncated if a value or an answer is too long, and huge values are not read', async () => {
    writer.exec(`CREATE TABLE big (id INTEGER PRIMARY KEY, t, b); INSERT INTO big VALUES (1, replace(hex(zeroblob(20000)), '0', 'あ'), zeroblob(30000)),
      (2, 'small', zeroblob(40000000)), (3, 'last', NULL)`)
    const provider = await open({ rows: { maxValueBytes: 1000 } })
    const found = await jsonOf(provider, 'big/rows')
    expect(found.cut).toEqual([
      { row: 0, column: 't', bytes: 120_000 },
      { row: 0, column: 'b', bytes: 30_000 },
      { row: 1, column: 'b', bytes: 40_000_000 },
    ])
    expect(found.rows[0].t).toBe('あ'.repeat(250))
    expect(Buffer.from(found.rows[0].b, 'base64')).toHaveLength(1000)
    expect(found.rows[1]).toEqual({ id: 2, t: 'small', b: '' })
    const little = await jsonOf(await open({ rows: { maxBytes: 20, maxValueBytes: 100 } }), 'big/rows')
    expect([little.rows.length, little.more, little.next]).toEqual([1, true, '1'])
  })

  test('have no denied column, and no key that would disclose one', async () => {
    const provider = await open({ rows: { columns: { deny: ['customers/email', 'orders/line'] } } })
    expect(Object.keys((await jsonOf(provider, 'customers/rows/1')).rows[0])).toEqual(['id', 'name', 'twice'])
    expect(await failureOf(textOf(provider, 'customers/rows', { columns: 'email' }))).toMatchObject({ kind: 'invalid' })
    expect(await jsonOf(provider, 'orders/rows')).toMatchObject({ key: [], next: null })
    expect(await failureOf(textOf(provider, 'orders/rows/2,a~2cb~2f1'))).toMatchObject({ kind: 'not-found' })
    expect(await failureOf(textOf(provider, 'customers/rows', { after: 'x' }))).toMatchObject({ kind: 'invalid' })
  })

  test('have completions for tables, columns and keys', async () => {
    const provider = await open()
    const complete = async (name: string, value: string, given: Record<string, string> = {}) =>
      (
        await provider.complete?.(
          { template: '', argument: { name, value }, arguments: new Map(Object.entries(given)) } as never,
          contextOf(),
        )
      )?.values
    expect(await complete('table', 'cu')).toEqual(['customers'])
    expect(await complete('columns', 'id,n', { table: 'customers' })).toEqual(['id,name'])
    expect(await complete('key', '24', { table: 'customers' })).toEqual([
      '24',
      ...Array.from({ length: 10 }, (_, i) => `24${i}`),
    ])
    expect(await complete('key', "x' OR 1=1", { table: 'customers' })).toEqual([])
  })

  test('of a view that never ends give a time-out, and later requests are answered', async () => {
    const provider = await open({
      rows: { views: true },
      statementTimeoutMs: 500,
      connections: 1,
      waitTimeoutMs: 30_000,
    })
    const [first] = await Promise.all([
      failureOf(textOf(provider, 'endless/rows')),
      failureOf(textOf(provider, 'endless/rows')),
    ])
    expect(first).toMatchObject({ kind: 'unavailable', message: expect.stringContaining('exceeded its time-out') })
    const gone = new AbortController()
    const left = provider.read({ path: 'endless/rows', params: new Map() }, contextOf(gone.signal))
    gone.abort()
    await expect(left).rejects.toBe(gone.signal.reason)
    await recovers(() => textOf(provider, 'customers/rows/1'))
  }, 60_000)
})

describe('the file of an SQLite database', () => {
  const snapshot = () =>
    fs
      .readdirSync(folder.root)
      .map((name) => `${name} ${fs.statSync(folder.at(name)).mtimeMs} ${fs.statSync(folder.at(name)).size}`)

  test.each(['delete', 'wal'])('is not written, and no file is created beside it (%s)', async (mode) => {
    writer.exec(`PRAGMA journal_mode = ${mode}`)
    writer.close()
    const before = snapshot()
    const provider = await open({ rows: { views: true } })
    await textOf(provider, 'customers/rows')
    await textOf(provider, 'names/rows')
    await textOf(provider, 'overview')
    expect(snapshot()).toEqual(before)
  })

  test('with a write-ahead log is read in its current state, while others have it open', async () => {
    writer.exec('PRAGMA journal_mode = wal')
    writer.close()
    const provider = await open()
    const count = async () => (await jsonOf(provider, 'keyless/rows')).rows.length
    expect(await count()).toBe(0)
    const other = new DatabaseSync(file)
    other.exec('INSERT INTO keyless VALUES (1, 1)')
    expect(await count()).toBe(1)
    other.exec('BEGIN; INSERT INTO keyless VALUES (2, 2)')
    expect(await count()).toBe(1)
    other.exec('COMMIT; PRAGMA wal_checkpoint(TRUNCATE); INSERT INTO keyless VALUES (3, 3)')
    expect(await count()).toBe(3)
    other.close()
    expect(await count()).toBe(3)
  })

  test('that is no database, is no regular file, or has a link as its journal is refused with the reason, and an empty file is a database without tables', async () => {
    folder.write({
      'text.db':
        'this is a text and no database of anything, however long it may be made to be, again and again and again',
    })
    folder.write({ 'short.db': 'SQLite format 3\0' })
    fs.symlinkSync(file, folder.at('link.db'))
    fs.mkdirSync(folder.at('folder.db'))
    execFileSync('mkfifo', [folder.at('pipe.db')])
    fs.copyFileSync(file, folder.at('odd.db'))
    fs.symlinkSync('/etc/hostname', folder.at('odd.db-journal'))
    for (const [name, told] of [
      ['text.db', /not a database/],
      ['short.db', /not a database/],
      ['link.db', /symbolic link/],
      ['folder.db', /not a regular file/],
      ['pipe.db', /not a regular file/],
      ['odd.db', /journal/],
    ] as const)
      expect(await failureOf(sqlite({ file: folder.at(name) })), name).toMatchObject({
        ...{ kind: 'invalid', message: expect.stringMatching(told) },
      })
    expect(await failureOf(sqlite({ file: 'app.db' }))).toMatchObject({ kind: 'invalid' })
    // An empty one is a database in which nothing was made yet.
    folder.write({ 'empty.db': '' })
    expect(await pathsOf((await open({ file: folder.at('empty.db') })).list({}, contextOf()))).toEqual(['overview'])
    expect(fs.statSync(folder.at('empty.db')).size).toBe(0)
  })

  test('with a write-ahead log that no program has recovered is unavailable, and is served once a program has opened it', async () => {
    const child = elsewhere("database.exec('PRAGMA journal_mode = wal; INSERT INTO keyless VALUES (1, 1)')")
    writer.close()
    await child.ready
    await child.end()
    fs.rmSync(`${file}-shm`)
    const provider = await open()
    expect(await failureOf(textOf(provider, 'keyless/rows'))).toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining('log'),
    })
    const repair = new DatabaseSync(file)
    repair.prepare('SELECT count(*) FROM keyless').get()
    repair.close()
    await recovers(async () => expect((await jsonOf(provider, 'keyless/rows')).rows).toHaveLength(1))
  })
})

describe('an SQLite database whose file', () => {
  const answers = (provider: Provider) => () => textOf(provider, 'customers/rows/1')

  test('is deleted is unavailable, and is served again when the file returns', async () => {
    const provider = await open()
    await textOf(provider, 'customers/rows/1')
    fs.renameSync(file, `${file}.away`)
    expect(await failureOf(textOf(provider, 'customers/rows/1'))).toMatchObject({ kind: 'unavailable' })
    fs.renameSync(`${file}.away`, file)
    await recovers(answers(provider))
    fs.renameSync(file, `${file}.away`)
    const told: string[] = []
    const later = await open({ log: (level, message) => told.push(`${level} ${message}`) })
    expect(told).toEqual([expect.stringMatching(/^warn the database does not answer/)])
    fs.renameSync(`${file}.away`, file)
    await recovers(answers(later))
  }, 60_000)

  test('is replaced is served from the new file, and is unavailable if the new file is a link', async () => {
    const provider = await open()
    await textOf(provider, 'customers/rows/1')
    const next = new DatabaseSync(folder.at('next.db'))
    next.exec("CREATE TABLE customers (id INTEGER PRIMARY KEY, name); INSERT INTO customers VALUES (1, 'another')")
    next.close()
    fs.renameSync(folder.at('next.db'), file)
    expect((await jsonOf(provider, 'customers/rows/1')).rows).toEqual([{ id: 1, name: 'another' }])
    fs.renameSync(file, folder.at('real.db'))
    fs.symlinkSync(folder.at('real.db'), file)
    expect(await failureOf(textOf(provider, 'customers/rows/1'))).toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining('link'),
    })
    fs.rmSync(file)
    fs.renameSync(folder.at('real.db'), file)
    await recovers(answers(provider))
  }, 60_000)

  test('is locked by another process is unavailable, not absent', async () => {
    const provider = await open()
    await textOf(provider, 'customers/rows/1')
    const child = elsewhere("database.exec('BEGIN EXCLUSIVE')")
    try {
      await child.ready
      expect(await failureOf(textOf(provider, 'customers/rows/1'))).toMatchObject({
        kind: 'unavailable',
        message: expect.stringContaining('lock'),
      })
    } finally {
      await child.end()
    }
    await recovers(answers(provider))
  }, 60_000)

  test('is truncated or overwritten gives no errors but unavailable and not-found, and is served again once it is whole', async () => {
    writer.close()
    const whole = fs.readFileSync(file)
    const provider = await open()
    await textOf(provider, 'customers/rows/1')
    for (const broken of [
      whole.subarray(0, 5000),
      Buffer.concat([whole.subarray(0, 4096), Buffer.alloc(whole.length - 4096, 0xa5)]),
      Buffer.alloc(9000, 1),
    ]) {
      fs.writeFileSync(file, broken)
      for (const path of ['customers/rows/1', 'customers/rows', 'orders/schema'])
        await provider.read({ path, params: new Map() }, contextOf()).catch((error: unknown) => {
          expect(error).toMatchObject({
            name: 'ResourceError',
            kind: expect.stringMatching(/^(?:unavailable|not-found)$/),
          })
        })
      fs.writeFileSync(file, whole)
      await recovers(answers(provider))
    }
  }, 60_000)

  test('is read by a child process is served again after this process was killed', async () => {
    const provider = await open({ connections: 1 })
    await textOf(provider, 'customers/rows/1')
    const own = () =>
      execFileSync('ps', ['-o', 'pid=,args=', '--ppid', String(process.pid)], { encoding: 'utf8' }).split('\n')
    const [reader] = own()
      .filter((line) => /providers\/sqlite\/child/.test(line))
      .map((line) => Number.parseInt(line, 10))
    expect(reader).toBeGreaterThan(0)
    process.kill(reader ?? 0, 'SIGKILL')
    await recovers(answers(provider))
    await provider.close?.()
    await eventually(async () => !own().some((line) => /providers\/sqlite\/child/.test(line) && !/defunct/.test(line)))
  }, 60_000)

  test('is read by a child process gives an error with the signal if this process is killed during a statement', async () => {
    const provider = await open({ connections: 1, rows: { views: true }, statementTimeoutMs: 60_000 })
    const failed = failureOf(provider.read({ path: 'endless/rows', params: new Map() }, contextOf()))
    const [reader = 0] = readersOf(process.pid)
    process.kill(reader, 'SIGKILL')
    const message =
      'The process that reads the database has ended: it was killed by SIGKILL, as the system does when memory is short.'
    expect(await failed).toMatchObject({ kind: 'unavailable', message })
  }, 60_000)

  test('is read by a child process leaves no process behind when the server is killed during a statement', async () => {
    const script = `const { sqlite } = await import(${JSON.stringify(pathToFileURL(bundled('providers/sqlite/index')).href)})
      const options = { file: ${JSON.stringify(file)}, rows: { views: true }, statementTimeoutMs: 600_000, connections: 1 }
      const provider = await sqlite(options)
      process.stdout.write('open')
      await provider.read({ path: 'endless/rows', params: new Map() }, { principal: { id: 'a', roles: [] }, signal: new AbortController().signal })`
    const server = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await once(server.stdout, 'data')
    const [reader = 0] = readersOf(server.pid ?? 0)
    expect(reader).toBeGreaterThan(0)
    server.kill('SIGKILL')
    await eventually(async () => !isRunning(reader))
  }, 60_000)
})

/** The ids of the processes that read files for a process. */
function readersOf(pid: number): readonly number[] {
  const all = execFileSync('ps', ['-o', 'pid=,args=', '--ppid', String(pid)], { encoding: 'utf8' }).split('\n')
  return all.filter((line) => /providers\/sqlite\/child/.test(line)).map((line) => Number.parseInt(line, 10))
}

function isRunning(pid: number): boolean {
  return fs.existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(fs.readFileSync(`/proc/${pid}/status`, 'latin1'))
}

test('changes of the catalog and of rows of SQLite are reported, and so are added and removed tables when the file is replaced', async () => {
  const provider = await open({ reconcile: 3_600_000 })
  const watching = await startWatching(provider)
  try {
    writer.exec('ALTER TABLE keyless ADD COLUMN c')
    await watching.until('keyless/schema', 'keyless/schema.sql', 'overview')
    expect(watching.missing(['customers/schema'])).toEqual(['customers/schema'])
    watching.clear()
    writer.exec("INSERT INTO customers (name) VALUES ('new')")
    await watching.until('customers/rows', 'customers/rows/')
    watching.clear()
    const next = new DatabaseSync(folder.at('next.db'))
    next.exec('CREATE TABLE other (id INTEGER PRIMARY KEY)')
    next.close()
    fs.renameSync(folder.at('next.db'), file)
    await watching.until('other/', 'customers/')
  } finally {
    await watching.stop()
  }
}, 60_000)

test('an overview and the page of an SQLite table do not name a table that is hidden from the caller, and an index for all callers gets no name of a table with access rules', async () => {
  const rules = compileAccess([{ allow: ['*'] }, { deny: ['guest'], match: 'orders/**' }])
  const hidesCustomers = compileAccess([{ allow: ['*'] }, { deny: ['guest'], match: 'customers/**' }])
  const read = async (access: typeof rules, path: string, roles: readonly string[]) => {
    const catalog = createCatalog({ mounts: [{ address: 'sqlite://app', provider: await open(), access }] })
    const [content] = (await catalog.view({ id: 'a', roles }).read(`sqlite://app/${path}`)).contents
    return content !== undefined && 'text' in content ? content.text : ''
  }
  for (const path of ['overview', 'overview?format=mermaid', 'customers/schema']) {
    expect(await read(rules, path, []), path).toMatch(/orders/i)
    expect(await read(rules, path, ['guest']), path).not.toMatch(/orders/i)
  }
  for (const path of ['overview', 'overview?format=mermaid']) {
    const text = await read(hidesCustomers, path, ['guest'])
    expect(text, path).toMatch(/orders/)
    expect(text, path).not.toMatch(/customers/i)
  }
  // The index is for every caller. Without rules nobody is kept from a table.
  for (const access of [rules, undefined]) {
    const mount = { address: 'sqlite://app', provider: await open(), ...(access && { access }) }
    const reader = createCatalog({ mounts: [mount] }).reader('sqlite://app')
    const contents = await reader?.read({ path: 'overview', params: new Map() }, new AbortController().signal)
    const [content] = contents ?? []
    expect(content !== undefined && 'text' in content && /orders/.test(content.text)).toBe(access === undefined)
  }
})
