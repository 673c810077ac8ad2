import { describe, expect, test, vi } from 'vitest'
import { type Allows, openSearchIndex, type SearchDocument, type SearchHit } from '../../src/search/index.ts'
import type { Store } from '../../src/store/index.ts'
import { useEngineStores } from '../support/search-stores.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const stores = useEngineStores()

const documentOf = (name: string, text: string): SearchDocument => ({
  uri: `files://m/${name}`,
  mount: 'files://m',
  version: '1',
  text,
})
const filler = (number: number) => `about${number} other${number} thing${number}`

/** Ten documents that are about the query, seventy that have a word of it, and one of these that speaks of a windlass as the ten do. */
const documents: readonly SearchDocument[] = [
  ...Array.from({ length: 10 }, (_, n) =>
    documentOf(`a${n}.md`, `drop the anchor with the windlass chain ${filler(n)}`),
  ),
  ...Array.from({ length: 70 }, (_, n) => documentOf(`b${n}.md`, `the drop ${filler(100 + n)}`)),
  documentOf('z.md', `the drop: windlass and chain ${'long text without any meaning '.repeat(3)} ${filler(900)}`),
  ...Array.from({ length: 100 }, (_, n) =>
    documentOf(`c${n}.md`, `${n === 0 ? 'windlass chain' : ''} ${filler(200 + n)}`),
  ),
]

async function search(store: Store, name: string, limit: number, hasHidden = false): Promise<readonly SearchHit[]> {
  const index = await openSearchIndex({ store, name })
  const hidden = (n: number) => documentOf(`hidden${n}.md`, 'the drop of an anchor: capstan capstan')
  await index.put(hasHidden ? documents.flatMap((one, n) => [one, hidden(n)]) : documents)
  const allows: Allows = ({ uri }) => !uri.includes('/hidden')
  const found: SearchHit[] = []
  for await (const hit of index.search({ text: 'drop the anchor', limit, ...(hasHidden ? { allows } : {}) }))
    if (found.push(hit) === 100) break
  await index.close()
  return found
}
const urisOf = (hits: readonly SearchHit[]) => hits.map(({ uri }) => uri.slice('files://m/'.length))

describe('many hits of a search', () => {
  test('are ranked, below the best ones, also by words that the best ones contain', async () => {
    // A caller who wants few hits, and then reads on, gets them in the plain order.
    const plain = urisOf(await search(stores.SQLite, 'feedback', 30))
    const many = await search(stores.SQLite, 'feedback', 100)
    const uris = urisOf(many)
    expect(uris.slice(0, 30)).toEqual(plain.slice(0, 30))
    expect([...uris].sort()).toEqual([...plain].sort())
    expect(plain.indexOf('z.md')).toBeGreaterThan(75)
    expect(uris.indexOf('z.md')).toBeLessThan(50)
    const scores = many.map(({ score }) => score)
    expect(scores).toEqual([...scores].sort((a, b) => b - a))
  })

  test('each have a word of the query', async () => {
    const uris = urisOf(await search(stores.SQLite, 'feedback', 100))
    expect(uris).toHaveLength(81)
    expect(new Set(uris).size).toBe(81)
    expect(uris.filter((uri) => uri.startsWith('c'))).toEqual([])
  })

  test('are the same with SQLite and with PostgreSQL as the store', async () => {
    expect(await search(stores.PostgreSQL, 'feedback', 100)).toEqual(await search(stores.SQLite, 'feedback', 100))
  })

  test('are not influenced by hidden documents', async () => {
    expect(await search(stores.SQLite, 'feedback-hidden', 100, true)).toEqual(
      await search(stores.SQLite, 'feedback', 100),
    )
  })
})
