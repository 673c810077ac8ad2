import { describe, expect, test } from 'vitest'
import { rank } from '../../src/context/index.ts'
import { estimateRarity } from '../../src/context/lexical.ts'
import { createReadingCaches } from '../../src/context/memory.ts'
import { type ContextReader, createContextReader } from '../../src/context/reader.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { rarityIn } from '../../src/text/relevance.ts'
import { createTermCount } from '../../src/text/words.ts'
import { type MemoryEntry, memory } from '../support/memory.ts'

const limits = {
  listed: 1000,
  searched: 100,
  read: 1000,
  bytes: 1e6,
  item: 1e5,
  detailed: 200,
  items: 999,
  concurrency: 8,
}
const terms = ['cursor', 'the']

function openView(entries: Readonly<Record<string, MemoryEntry | string>>) {
  const provider = memory(entries)
  const view = createCatalog({ mounts: [{ address: 'memory://docs', provider }] }).view({ id: 'ada', roles: [] })
  return { provider, view }
}

const textOf = (n: number) => (n % 10 === 0 ? 'the cursor' : 'the weather')
const entries = (count: number) =>
  Object.fromEntries(
    Array.from({ length: count }, (_, n) => [
      `${String(n).padStart(4, '0')}.md`,
      { text: textOf(n), version: '1', modified: 0 },
    ]),
  )
const resources = (count: number) =>
  Object.keys(entries(count)).map((name) => ({ uri: `memory://docs/${name}`, name, version: '1', modified: 0 }))
const readerOf = (count: number, options = {}): ContextReader =>
  createContextReader(openView(entries(count)).view, limits, () => false, options)

describe('the rarity of words', () => {
  test('is exact if all texts are read', async () => {
    const leaders = ['the cursor', 'a cursor'].map((text) => createTermCount(terms)(text))
    const all = [...leaders, ...Array.from({ length: 40 }, (_, n) => createTermCount(terms)(textOf(n)))]
    const found = await estimateRarity(leaders, resources(40), terms, readerOf(40), undefined)
    expect(found).toEqual(rarityIn(all))
  })

  test('is estimated from a sample if there are many texts, and a word that is common only in the best texts counts as rare', async () => {
    const { provider, view } = openView(entries(900))
    const reader = createContextReader(view, limits, () => false, {})
    const leaders = Array.from({ length: 64 }, () => createTermCount(terms)('the cursor'))
    const [cursor = 0, the = 0] = await estimateRarity(leaders, resources(900), terms, reader, undefined)
    expect(cursor).toBeGreaterThan(the + 1)
    expect(provider.calls.read).toBe(64)
  })

  test('is the same from cached texts, without another read', async () => {
    const { provider, view } = openView(entries(300))
    const remembered = createReadingCaches()('ada')
    const ask = () => {
      const reader = createContextReader(view, limits, () => false, { memory: remembered })
      reader.expect(resources(300))
      return estimateRarity([], resources(300), terms, reader, remembered)
    }
    const first = await ask()
    const reads = provider.calls.read
    expect(await ask()).toEqual(first)
    expect(provider.calls.read).toBe(reads)
  })
})

describe('a changelog as a candidate for a context', () => {
  const changes = 'Cursors are sealed. The cursor of a page. Fixed: cursors, sealed again.'
  const { view } = openView({ 'CHANGELOG.md': changes, 'docs/page.md': changes, 'src/changes.ts': changes })
  const factorOf = async (query: string, name: string) => {
    const candidates = await rank(view, { query, now: 0 })
    const one = candidates.find(({ resource }) => resource.uri.endsWith(name))
    return one?.explanation.factors.find((factor) => factor.name === 'history')?.value
  }

  test('weighs less, and its explanation has a factor for this', async () => {
    expect(await factorOf('how cursors are sealed', 'CHANGELOG.md')).toBe(0.25)
  })

  test('has its full weight if the query asks for the changelog', async () => {
    expect(await factorOf('cursors in the changelog', 'CHANGELOG.md')).toBeUndefined()
  })

  test('is not confused with a source file named "changes", nor with another page', async () => {
    expect(await factorOf('how cursors are sealed', 'changes.ts')).toBeUndefined()
    expect(await factorOf('how cursors are sealed', 'page.md')).toBeUndefined()
  })
})
