import { describe, expect, test } from 'vitest'
import { createGroupedIterable, eachGroup, iterateGroups, mapGroups } from '../../src/core/kit/groups.ts'

let ended = 0
const grouped = (signal?: AbortSignal) =>
  createGroupedIterable(async function* () {
    try {
      yield [1, 2]
      yield []
      yield [3]
    } finally {
      ended++
    }
  }, signal)

async function* single() {
  try {
    yield 1
    yield 2
  } finally {
    ended++
  }
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}

describe('items in groups', () => {
  test('are iterated one by one, or as groups', async () => {
    expect(await all(grouped())).toEqual([1, 2, 3])
    expect(await all(eachGroup(grouped()))).toEqual([[1, 2], [], [3]])
    expect(await all(eachGroup(single()))).toEqual([[1], [2]])
  })

  test('keep their groups when they are mapped and filtered', async () => {
    const odd = (item: number) => (item % 2 === 1 ? `${item}` : undefined)
    expect(await all(eachGroup(mapGroups(grouped(), odd)))).toEqual([['1'], ['3']])
    expect(await all(mapGroups(single(), odd))).toEqual(['1'])
  })

  test('end when their reader stops, in both kinds of iteration', async () => {
    for (const items of [
      grouped(),
      single(),
      mapGroups(grouped(), (item) => item),
      mapGroups(single(), (item) => item),
    ]) {
      ended = 0
      for await (const item of items) if (item === 1) break
      expect(ended).toBe(1)
      for await (const group of eachGroup(items)) if (group.includes(1)) break
      const iterator = iterateGroups(grouped())
      await iterator.next()
      await iterator.return?.()
      expect(ended).toBeGreaterThanOrEqual(2)
    }
  })

  test('stop between two items of a group when their reader aborts', async () => {
    const abort = new AbortController()
    const seen: number[] = []
    const taking = async () => {
      for await (const item of grouped(abort.signal)) {
        seen.push(item)
        abort.abort(new Error('enough'))
      }
    }
    await expect(taking()).rejects.toThrow('enough')
    expect(seen).toEqual([1])
  })
})
