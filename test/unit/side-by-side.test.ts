import { describe, expect, test } from 'vitest'
import { mapInOrder } from '../../src/cli/commands/check.ts'

/** Work that ends when it is told to. */
function desk() {
  const ends = new Map<number, () => void>()
  const begun: number[] = []
  const work = (item: number) => {
    begun.push(item)
    return new Promise<string>((resolve) => ends.set(item, () => resolve(`done ${item}`)))
  }
  return { begun, work, end: (item: number) => ends.get(item)?.() }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('parallel work', () => {
  test('starts up to the limit, and yields in the order of the items', async () => {
    const { begun, work, end } = desk()
    const results: string[] = []
    const all = (async () => {
      for await (const result of mapInOrder([1, 2, 3, 4], 2, work)) results.push(result)
    })()
    await turn()
    expect(begun).toEqual([1, 2])
    end(2)
    await turn()
    expect(begun).toEqual([1, 2, 3])
    expect(results).toEqual([])
    end(1)
    await turn()
    expect(results).toEqual(['done 1', 'done 2'])
    end(4)
    end(3)
    await all
    expect(results).toEqual(['done 1', 'done 2', 'done 3', 'done 4'])
  })

  test('without items yields nothing', async () => {
    for await (const _ of mapInOrder([], 2, async () => 1)) expect.unreachable()
  })

  test('fails like the first item that fails, and starts no more', async () => {
    const begun: number[] = []
    const work = async (item: number) => {
      begun.push(item)
      if (item === 2) throw new Error('second')
      return item
    }
    const results: number[] = []
    const all = async () => {
      for await (const result of mapInOrder([1, 2, 3, 4, 5, 6, 7, 8], 1, work)) results.push(result)
    }
    await expect(all()).rejects.toThrow('second')
    expect(results).toEqual([1])
    const count = begun.length
    await turn()
    expect(begun).toHaveLength(count)
  })
})
