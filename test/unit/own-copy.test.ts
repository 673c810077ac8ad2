import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { heapGrowthFor } from '../../src/cli/operations/heap.ts'
import { openCounter } from '../../src/context/tokens.ts'
import { ownCopy } from '../../src/core/kit/own-copy.ts'
import { bagOf, createTermCount } from '../../src/text/words.ts'

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void

/** Collects all garbage, twice, because values of a finished task may live until the next turn. */
async function collect(): Promise<void> {
  for (let time = 0; time < 2; time++) {
    await turn()
    gc()
  }
}

describe('a copied piece of a text', () => {
  test.each([
    'short',
    'a-longer-piece-of-a-text',
    'naïve façades of Zürich',
    '引き出しの中にあるものを全部出してください',
    'lone surrogates \ud800 and \udc00 stay',
    '',
  ])('equals the piece: %j', (piece) => {
    expect(ownCopy(`before ${piece} after`.slice(7, 7 + piece.length))).toBe(piece)
  })
})

/** Memory of objects and strings. A long string may lie outside of the heap. */
function heldBytes(): number {
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** Returns the growth of the memory by `count` texts of a mebibyte, each with one word that no other has. */
async function growthBy(count: number, read: (text: string) => unknown): Promise<number> {
  const padding = 'a b '.repeat(2 ** 18)
  const textOf = (index: number) =>
    Buffer.from(`${padding}distinctWord${index}Number ${padding.length}`).toString('latin1')
  for (const index of [1000, 1001, 1002]) await read(textOf(index))
  await collect()
  const before = heldBytes()
  for (let index = 0; index < count; index++) await read(textOf(index))
  await collect()
  return heldBytes() - before
}

describe('a cache of the words of a text does not keep the text in memory', () => {
  const texts = 30
  const mostBytes = (texts / 3) * 2 ** 20

  test('when it counts terms', async () => {
    const count = createTermCount(['number'])
    expect(await growthBy(texts, count)).toBeLessThan(mostBytes)
    expect(count('distinctWord3Number').counts).toEqual([1])
  })

  test('when it hashes words', async () => {
    expect(await growthBy(texts, bagOf)).toBeLessThan(mostBytes)
  })

  test('when it counts tokens', async () => {
    const counter = await openCounter('o200k_base')
    expect(await growthBy(texts, (text) => counter.count(text.slice(-240)))).toBeLessThan(mostBytes)
  })
})

test('the limit of heap growth is 100 % for 20 MiB of live data, 20 MiB for 64 MiB, and 30 % for 1 GiB', () => {
  expect(heapGrowthFor(20 * 2 ** 20)).toBe(100)
  expect(heapGrowthFor(64 * 2 ** 20)).toBe(31)
  expect(heapGrowthFor(2 ** 30)).toBe(30)
})
