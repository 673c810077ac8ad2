import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { notApplicable } from './not-applicable.ts'
import rows from './rows.json' with { type: 'json' }

/** Where a row can be named: in the names of tests, and in the tables that make them. */
const lines = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !/^(?:coverage\.test|not-applicable)\.ts$/.test(file))
  .flatMap((file) => readFileSync(join(import.meta.dirname, file), 'utf8').split('\n'))

/** The rows that some string names: comments do not count. */
const named = new Set(
  lines
    .filter((line) => /['"`]/.test(line) && !/^\s*(?:\/\/|\/\*|\*)/.test(line))
    .flatMap((line) => line.slice(Math.max(0, line.search(/['"`]/))).match(/\b[A-Z]{2}\d{2}\b/g) ?? []),
)

describe('the attack corpus', () => {
  test.each(Object.entries(rows))('every row of %s has a test, or a reason why it has none', (_, ids) => {
    expect(ids.filter((id) => !named.has(id) && !(id in notApplicable))).toEqual([])
  })

  test('no row has both, and no reason is for a row that does not exist', () => {
    const all = new Set(Object.values(rows).flat())
    for (const [id, reason] of Object.entries(notApplicable)) {
      expect(all, id).toContain(id)
      expect(reason.length, id).toBeGreaterThan(20)
      expect(named, id).not.toContain(id)
    }
  })

  test('the table of rows is whole', () => {
    expect(Object.values(rows).map((ids) => ids.length)).toEqual([36, 21, 13, 26, 29])
  })
})
