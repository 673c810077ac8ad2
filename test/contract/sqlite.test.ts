import { rmSync } from 'node:fs'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterAll, describe, test } from 'vitest'
import { nameToSegment } from '../../src/providers/relational/names.ts'
import { sqlite } from '../../src/providers/sqlite/index.ts'
import { describeProvider, type Subject } from '../../src/testing/index.ts'
import { createFolder } from '../support/folder.ts'

/** Names that are hard to sort and to spell. No two differ in the case of ASCII letters alone: SQLite has only one of them. */
const names = [
  ...['a-b', 'a.txt', 'a', 'a0', 'a/b', '~', '.', '..', ' leading and trailing ', '%41', 'back\\slash', '[id]'],
  ...['\u{ff71}', '\u{20bb7}野家', '日本語', '\u{304c}', '\u{304b}\u{3099}', 'new\nline', 'tab\there', '\u0085'],
  ...['\u2028', '"quoted"', "it's", 'overview', 'extensions', 'schema', 'rows', '__proto__', 'constructor', 'É', 'é'],
  ...[
    '\u{10ffff}',
    'x'.repeat(200),
    'order by',
    "t'; drop table t; --",
    '?1',
    '{table}',
    '?limit=1',
    '#',
    '',
    '\ufeff',
  ],
]

const quote = (name: string) => `"${name.replaceAll('"', '""')}"`

const folder = createFolder()
const file = folder.at('names.db')
const database = new DatabaseSync(file)
database.exec('PRAGMA synchronous = off')
for (const name of names) {
  database.exec(`CREATE TABLE ${quote(name)} (id integer PRIMARY KEY, ${quote(`${name}_`)} text)`)
  database.exec(`INSERT INTO ${quote(name)} VALUES (1, 'row 1'), (2, 'row 2'), (3, 'row 3')`)
}
database.exec('CREATE VIEW seen AS SELECT * FROM a; CREATE TABLE texts (k text PRIMARY KEY) WITHOUT ROWID')
database.exec('CREATE VIRTUAL TABLE words USING fts5(word)')
database.close()
afterAll(() => {
  rmSync(file)
  folder.remove()
})

const leaves = ['rows', 'schema', 'schema.sql']
const paths = [
  ...[...names.map(nameToSegment), 'seen', 'texts'].flatMap((name) => leaves.map((leaf) => `${name}/${leaf}`)),
  ...['words/schema', 'words/schema.sql', 'overview'],
]

async function subject(): Promise<Subject> {
  const provider = await sqlite({ file, rows: { views: true }, reconcile: 200 })
  return {
    provider,
    expectation: {
      entries: {
        ...Object.fromEntries(paths.map((path) => [path, {}])),
        'a/schema': { mimeType: 'application/json;format=hikidashi.DatabaseSchema' },
        '~7e/schema.sql': { mimeType: 'application/sql' },
      },
      missing: [
        ...[
          'a',
          'b',
          'A/schema',
          'none/schema',
          'a/none',
          'a/enum',
          'a~2Fb/schema',
          '~61/schema',
          'a/rows/4',
          'main/a/schema',
        ],
        ...['a/rows/01', 'a/rows/1,2', "a/rows/1' or '1'='1", 'a/rows/x', "a/rows/'1'", 'sqlite_schema/schema'],
        ...['words/rows', 'words_data/schema', 'extensions', 'texts/rows/x'],
      ],
    },
  }
}

describeProvider({ describe, test }, 'the provider sqlite', subject)
