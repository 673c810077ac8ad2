import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { rowsIn, sections } from './harness/rows.ts'
import { notApplicable, notApplicableSections } from './not-applicable.ts'
import rows from './rows.json' with { type: 'json' }

/** Where a row can be named: in the names of tests, and in the tables that make them. */
const lines = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !/^(?:harness|coverage\.test|not-applicable)\b/.test(file))
  .flatMap((file) => readFileSync(join(import.meta.dirname, file), 'utf8').split('\n'))

/** The rows that some string names: comments do not count. */
const named = new Set(
  lines
    .filter((line) => /['"`]/.test(line) && !/^\s*(?:\/\/|\/\*|\*)/.test(line))
    .flatMap((line) => rowsIn(line.slice(Math.max(0, line.search(/['"`]/))))),
)

describe('the attack corpus:', () => {
  test.each(Object.entries(rows))('every row of %s has a test, or a reason why it has none', (section, ids) => {
    const without = ids.filter((id) => !named.has(id) && !(id in notApplicable))
    if (!(section in notApplicableSections)) expect(without).toEqual([])
  })

  test('no row has both a test and a reason to have none, and each such reason belongs to a row or section', () => {
    const all = new Set(Object.values(rows).flat())
    for (const [id, reason] of Object.entries(notApplicable)) {
      expect(all, id).toContain(id)
      expect(reason.length, id).toBeGreaterThan(20)
      expect(named, id).not.toContain(id)
    }
    for (const [section, reason] of Object.entries(notApplicableSections)) {
      expect(Object.keys(rows)).toContain(section)
      expect(reason.length, section).toBeGreaterThan(20)
    }
  })

  test('the table of rows has the known number of rows in each section, each section has a name, and each id is unique and begins with its section', () => {
    expect(Object.fromEntries(Object.entries(rows).map(([section, ids]) => [section, ids.length]))).toEqual({
      PT: 36,
      UR: 21,
      GT: 28,
      PG: 18,
      S3: 16,
      DR: 13,
      SS: 21,
      TM: 12,
      CU: 13,
      JR: 26,
      HT: 29,
      TK: 28,
      CP: 12,
      SB: 16,
      SE: 20,
      BM: 15,
      UI: 23,
      EV: 10,
    })
    for (const [section, ids] of Object.entries(rows)) {
      expect(Object.keys(sections)).toContain(section)
      expect(new Set(ids).size).toBe(ids.length)
      for (const id of ids) expect(id.startsWith(section)).toBe(true)
    }
  })
})
