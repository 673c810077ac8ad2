import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Provider } from '../../src/core/provider.ts'
import { sqlite } from '../../src/providers/sqlite/index.ts'
import { createFolder, type Folder, outcome } from '../support/folder.ts'
import { ask } from '../support/git.ts'
import { watchChildren } from './harness/child-memory.ts'

// A file of SQLite whose columns and views compute more than a machine has.

/** Columns that are computed when they are read, added behind a row: SQLite computes them once to insert one. */
const table = (name: string, values: readonly string[]) =>
  [
    `CREATE TABLE "${name}" (id INTEGER PRIMARY KEY); INSERT INTO "${name}" VALUES (1)`,
    ...values.map((value, i) => `ALTER TABLE "${name}" ADD COLUMN c${i} AS (${value})`),
  ].join(';')

/** 4,000,000 rows of 1,000 bytes. */
const rows = `WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 4000000)`

/** Each takes gigabytes where nothing limits it. */
const bombs: Readonly<Record<string, string>> = {
  long: table('long', ['hex(zeroblob(450000000))']),
  replaced: table('replaced', ["replace(hex(zeroblob(400000000)), '0', '00')"]),
  wide: table('wide', new Array(60).fill('hex(zeroblob(30000000))')),
  sorted: `CREATE VIEW sorted AS ${rows} SELECT n, hex(zeroblob(500)) || n AS c0 FROM r ORDER BY c0 DESC`,
  joined: `CREATE VIEW joined AS ${rows} SELECT group_concat(hex(zeroblob(500))) AS c0 FROM r`,
}

let folder: Folder
let provider: Provider

beforeEach(async () => {
  folder = createFolder()
  const writer = new DatabaseSync(folder.at('bomb.db'))
  for (const sql of Object.values(bombs)) writer.exec(sql)
  writer.exec("CREATE TABLE plain (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO plain VALUES (1, 'one')")
  writer.close()
  provider = await sqlite({ file: folder.at('bomb.db'), rows: { views: true }, statementTimeoutMs: 60_000 })
})

afterEach(async () => {
  await provider.close?.()
  folder.remove()
})

/** The limit is 512 MiB. What Node itself takes comes on top of it: of the addresses that V8 reserves, it uses little. */
const mostMb = 700

describe.runIf(process.platform === 'linux')('a process that reads SQLite', () => {
  test.each(Object.keys(bombs))(
    'refuses the rows of a bomb (%s) with less than 700 MiB of memory, and answers other requests (BM06)',
    async (name) => {
      const asked = ask(provider)
      const memory = watchChildren(/sqlite.child/)
      try {
        const bomb = outcome(asked.read(`${name}/rows`))
        expect(await asked.text('plain/rows')).toContain('one')
        expect(['too-large', 'unavailable']).toContain(await bomb)
        expect(memory.peak()).toBeGreaterThan(0)
        expect(memory.peak()).toBeLessThan(mostMb)
        // A new process answers.
        expect(await asked.text('plain/rows')).toContain('one')
      } finally {
        memory.stop()
      }
    },
  )

  test('has a limit of memory, and can write to no file (BM06)', async () => {
    await ask(provider).text('plain/rows')
    const children = readdirSync('/proc').filter((pid) => {
      if (!/^\d+$/.test(pid)) return false
      try {
        const isOurs = readFileSync(`/proc/${pid}/status`, 'latin1').includes(`PPid:\t${process.pid}\n`)
        return isOurs && /sqlite.child/.test(readFileSync(`/proc/${pid}/cmdline`, 'latin1'))
      } catch {
        return false
      }
    })
    expect(children.length).toBeGreaterThan(0)
    for (const pid of children) {
      const limits = readFileSync(`/proc/${pid}/limits`, 'latin1')
      const bytes = Number(/^Max data size\s+(\d+)\s+\1\s+bytes/m.exec(limits)?.[1])
      const ownBytes = bytes - 512 * mebibyte
      // What this Node takes before it has done anything, and not a second isolate, which would take as much again.
      expect(ownBytes).toBeGreaterThanOrEqual(idleDataBytes())
      expect(ownBytes).toBeLessThan(idleDataBytes() + 64 * mebibyte)
      expect(limits).toMatch(/^Max file size\s+0\s+0\s+bytes/m)
    }
  })
})

const mebibyte = 2 ** 20

/** Data memory of an idle process of this Node with the heap of the process that reads SQLite, in bytes. */
function idleDataBytes(): number {
  const script = "process.stdout.write(fs.readFileSync('/proc/self/status', 'latin1'))"
  const status = execFileSync(process.execPath, ['--max-old-space-size=128', '-e', script], { encoding: 'latin1' })
  return Number(/^VmData:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024
}
