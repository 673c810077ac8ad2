import fc from 'fast-check'
import { expect, test } from 'vitest'
import { bestIds, type WeightedIds } from '../../src/store/sqlite/texts-finding.ts'
import { volumeOf } from '../support/volume.ts'

/** What it has to answer, in the plainest way. */
function plainly(lists: readonly WeightedIds[], limit: number): readonly number[] {
  const sums = new Map<number, number>()
  for (const { weight, ids } of lists) for (const id of ids) sums.set(id, (sums.get(id) ?? 0) + weight)
  return [...sums]
    .sort(([a, x], [b, y]) => y - x || a - b)
    .slice(0, limit)
    .map(([id]) => id)
}

const ascending = (ids: readonly number[]) => [...new Set(ids)].sort((a, b) => a - b)
// Close together, over a few windows, and as far apart as ids can be.
const ids = fc.oneof(...[200, 60_000, 2 ** 40].map((max) => fc.array(fc.integer({ min: 1, max }), { maxLength: 300 })))
const list = fc.record({ weight: fc.integer({ min: 1, max: 5 }), ids: ids.map(ascending) })

test('the best hits have the greatest sums of scores, and of equal sums the first hit is taken, however far away the next is', () => {
  fc.assert(
    fc.property(fc.array(list, { maxLength: 6 }), fc.integer({ min: 0, max: 400 }), (lists, limit) => {
      expect(bestIds(lists, limit)).toEqual(plainly(lists, limit))
      expect(bestIds(lists, Number.POSITIVE_INFINITY)).toEqual(plainly(lists, Number.POSITIVE_INFINITY))
    }),
    { numRuns: volumeOf(300) },
  )
})

test('of very many equal hits, the first ones are taken, after those that more lists have', () => {
  const all = Array.from({ length: 300_000 }, (_, id) => id + 1)
  const few = [250_000, 299_999]
  expect(bestIds([{ weight: 2, ids: all }], 3)).toEqual([1, 2, 3])
  const both = [
    { weight: 2, ids: all },
    { weight: 1, ids: few },
  ]
  expect(bestIds(both, 4)).toEqual([...few, 1, 2])
  expect(bestIds(both, 0)).toEqual([])
})
