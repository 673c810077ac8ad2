import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runHere as run } from '../support/cli-here.ts'

const home = realpathSync(mkdtempSync(join(tmpdir(), 'hikidashi-rows-')))
const env = { XDG_STATE_HOME: join(home, 'state') }
const sql = `
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, secret TEXT);
CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT);
INSERT INTO customers SELECT value, 'lantern' || value, 'hush' || value FROM (
  WITH RECURSIVE i(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM i WHERE value < 2500) SELECT value FROM i);
INSERT INTO notes SELECT id, 'anchor' || id FROM customers WHERE id <= 5;`

const configure = (search: Readonly<Record<string, unknown>> = {}) =>
  writeFileSync(
    join(home, 'hikidashi.json'),
    JSON.stringify({
      store: { sqlite: 'index.sqlite' },
      mounts: {
        'sqlite://app': {
          ...{ provider: 'sqlite', file: 'app.db', rows: { columns: { deny: ['customers/secret'] } } },
          access: [{ allow: ['*'] }, { deny: ['guest'], match: 'notes/**' }],
        },
        'search://all': { provider: 'search', over: '*', ...search },
      },
    }),
  )

let writer: InstanceType<typeof DatabaseSync>
beforeAll(() => {
  writer = new DatabaseSync(join(home, 'app.db'))
  writer.exec(sql)
  configure()
})
afterAll(() => {
  writer.close()
  rmSync(home, { recursive: true })
})

async function search(...words: readonly string[]) {
  const { code, out, err } = await run(['search', ...words, '--fresh', '--json', '--config', 'hikidashi.json'], {
    cwd: home,
    env,
  })
  expect(code, err).toBe(0)
  return JSON.parse(out) as { hits: { uri: string; title: string }[]; notes: string[] }
}

describe('a search over a database', () => {
  test('finds rows far behind the first page, and links to the row', async () => {
    const { hits, notes } = await search('lantern2400')
    expect(hits.map(({ uri }) => uri)).toEqual(['sqlite://app/customers/rows/2400'])
    expect(hits[0]?.title).toBe('customers 2400')
    expect(notes.join()).not.toContain('rows')
    const { out } = await run(['read', hits[0]?.uri ?? '', '--config', 'hikidashi.json'], { cwd: home, env })
    expect(JSON.parse(out).rows).toEqual([{ id: 2400, name: 'lantern2400' }])
  })

  test('finds nothing in denied columns, and nothing in tables that the caller may not see', async () => {
    expect((await search('hush2400')).hits).toEqual([])
    expect((await search('anchor3')).hits.map(({ uri }) => uri)).toEqual(['sqlite://app/notes/rows/3'])
    const config = join(home, 'guest.json')
    const { readFileSync } = await import('node:fs')
    const own = JSON.parse(readFileSync(join(home, 'hikidashi.json'), 'utf8'))
    writeFileSync(config, JSON.stringify({ ...own, roles: ['guest'] }))
    const guest = await run(['search', 'anchor3', '--json', '--config', config], { cwd: home, env })
    expect(JSON.parse(guest.out).hits).toEqual([])
  })

  test('follows rows that are inserted, changed and deleted', async () => {
    writer.exec(
      `INSERT INTO notes VALUES (9, 'bollard'); UPDATE notes SET text = 'capstan' WHERE id = 1; DELETE FROM notes WHERE id = 2`,
    )
    expect((await search('bollard')).hits.map(({ uri }) => uri)).toEqual(['sqlite://app/notes/rows/9'])
    expect((await search('capstan')).hits.map(({ uri }) => uri)).toEqual(['sqlite://app/notes/rows/1'])
    expect((await search('anchor1')).hits).toEqual([])
    expect((await search('anchor2')).hits).toEqual([])
  })

  test('says that only the first page of a table without a key is searched, as long as it has more rows', async () => {
    writer.exec(`CREATE TABLE log (line TEXT); INSERT INTO log SELECT 'halyard' || id FROM customers`)
    const { hits, notes } = await search('halyard7')
    expect(hits.map(({ uri }) => uri)).toEqual(['sqlite://app/log/rows'])
    expect(notes).toContain('Of one table of sqlite://app without a key, only the first page of rows is searched.')
    expect((await search('halyard2400')).hits).toEqual([])
    const again = await run(['search', 'halyard7', '--config', 'hikidashi.json'], { cwd: home, env })
    expect(again.err).toContain('without a key, only the first page')
    writer.exec(`DELETE FROM log WHERE rowid > 50`)
    expect((await search('halyard7')).notes.join()).not.toContain('without a key')
    writer.exec(`INSERT INTO log SELECT 'halyard' || id FROM customers`)
    expect((await search('halyard7')).notes.join()).toContain('without a key')
    writer.exec('DROP TABLE log')
    const { hits: none, notes: after } = await search('halyard7')
    expect(none).toEqual([])
    expect(after.join()).not.toContain('without a key')
  })

  test('says in its notes and on the command line that only the rows up to the limit are searched', async () => {
    configure({ maxRows: 100 })
    const { hits, notes } = await search('lantern2400')
    expect(hits).toEqual([])
    expect(notes).toContain('Of one table of sqlite://app, only the first 100 rows are searched.')
    // An index that is seconds old is as it was left, with its limit.
    const again = await run(['search', 'lantern2400', '--config', 'hikidashi.json'], { cwd: home, env })
    expect(again.err).toMatch(/The index is \d+ s old/)
    expect(again.err).toContain('only the first 100 rows are searched')
    expect((await search('lantern100')).hits.map(({ uri }) => uri)).toContain('sqlite://app/customers/rows/100')
  })
})
