import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { hasTurn, someOf } from '../support/volume.ts'

const wires = ['stdio new', 'stdio old', 'http new', 'http old'] as const
const attacks = join(import.meta.dirname, '../attack')
/** The titles of the rows that are tried over some wires. */
const rows = readdirSync(attacks)
  .filter((name) => name.endsWith('.test.ts'))
  .flatMap((name) => readFileSync(join(attacks, name), 'utf8').match(/(?<=eachWire\([^)]*\)\(\s*')[^']+/g) ?? [])

describe('a row of the attack corpus', () => {
  test('is tested over every transport in full volume', () => {
    for (const row of rows) expect(someOf(row, wires, 1, 1)).toEqual(wires)
  })

  test('is tested over one transport in a tenth of the volume, always the same', () => {
    for (const row of rows) {
      const chosen = someOf(row, wires, 1, 0.1)
      expect(chosen).toHaveLength(1)
      expect(wires).toContain(chosen[0])
      expect(someOf(row, wires, 1, 0.1)).toEqual(chosen)
    }
  })
})

test('over all rows of the attack corpus, each transport has its share', () => {
  expect(rows.length).toBeGreaterThan(30)
  const chosen = rows.flatMap((row) => someOf(row, wires, 1, 0.1))
  for (const wire of wires) expect(chosen.filter((one) => one === wire).length, wire).toBeGreaterThan(rows.length / 8)
})

describe('a sample of many test cases', () => {
  const many = Array.from({ length: 12 }, (_, i) => i)

  test.each([
    [0.1, 1, 2],
    [0.1, 5, 5],
    [0.5, 1, 6],
    [0.99, 1, 12],
    [2, 1, 12],
    [0.1, 20, 12],
  ])('with a share of %d, and at least %i, has %i cases', (share, least, count) => {
    expect(someOf('a row', many, least, share)).toHaveLength(count)
  })

  test('is in order, each case once, and spread evenly', () => {
    for (const row of rows) {
      const chosen = someOf(row, many, 1, 0.3)
      expect(chosen).toEqual([...new Set(chosen)].sort((a, b) => a - b))
      const gaps = chosen.map((one, i) => (i === 0 ? one + 12 - (chosen.at(-1) ?? 0) : one - (chosen[i - 1] ?? 0)))
      expect(Math.max(...gaps)).toBeLessThanOrEqual(3)
    }
  })

  test('of no cases is empty', () => {
    expect(someOf('a row', [], 1, 0.1)).toEqual([])
  })
})

describe('rows that are tested at several places in turn', () => {
  const placesOf = (row: number, share: number) => wires.filter((_, place) => hasTurn(row, place, wires.length, share))

  test('are at every place in full volume, and each at one of them in a tenth', () => {
    for (let row = 0; row < 20; row++) {
      expect(placesOf(row, 1)).toEqual(wires)
      expect(placesOf(row, 0.1)).toHaveLength(1)
      expect(placesOf(row, 0.5)).toHaveLength(2)
    }
  })

  test('leave no place without a row if there are as many rows as places', () => {
    expect(new Set([0, 1, 2, 3].flatMap((row) => placesOf(row, 0.1)))).toEqual(new Set(wires))
  })
})
