import { describe, expect, test, vi } from 'vitest'
import { openSearchIndex, type SearchDocument } from '../../src/search/index.ts'
import { parseQuery } from '../../src/text/analyser.ts'
import { useEngineStores } from '../support/search-stores.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const stores = useEngineStores()

let made = 0
async function pathsFor(text: string, documents: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const index = await openSearchIndex({ store: stores.SQLite, name: `questions-${++made}` })
  const others = Array.from({ length: 40 }, (_, n) => [`other${n}.md`, `about${n} thing${n} words${n}`] as const)
  await index.put(
    [...Object.entries(documents), ...others].map(
      ([path, words]): SearchDocument => ({
        uri: `files://m/${path}`,
        mount: 'files://m',
        version: '1',
        text: words,
      }),
    ),
  )
  const paths: string[] = []
  for await (const { uri } of index.search({ text })) paths.push(uri.slice('files://m/'.length))
  await index.close()
  return paths
}
const weightsOf = (text: string) => new Map(parseQuery(text).terms.map(({ term, weight }) => [term, weight]))

describe('a question in English', () => {
  test('ranks documents by its other words before its function words, however rare these are', async () => {
    const documents = { 'a.py': 'how is the method: how is the end', 'b.py': 'lower it: an anchor, then a chain' }
    expect(await pathsFor('how is the anchor chain dropped', documents)).toEqual(['b.py', 'a.py'])
  })

  test('gives its function words less weight only if it has three other words', () => {
    const long = weightsOf('how is the anchor chain dropped')
    expect(long.get('anchor')).toBe(1)
    for (const word of ['how', 'is']) expect(long.get(word)).toBeLessThan(0.1)
    expect(long.get('the')).toBeLessThan(0.5)
    expect(weightsOf('the anchor guide').get('the')).toBe(1)
    // A part of an identifier counts like a word.
    expect(weightsOf('anchor chain dropped in_iterable').get('iterabl')).toBe(1)
  })

  test('ranks a text with a word that the question repeats before one with a word that it has once', async () => {
    const documents = { 'a.md': 'many lamps', 'b.md': 'many libraries' }
    expect(await pathsFor('library chairs, library lamps and a library', documents)).toEqual(['b.md', 'a.md'])
    expect(await pathsFor('library chairs and lamps', documents)).toEqual(['a.md', 'b.md'])
  })

  test('ignores the repetition of a frequent word', async () => {
    const frequent = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`f${n}.md`, `libraries number${n}`]))
    const text = 'library chairs, library lamps, a library and a library of a library'
    expect((await pathsFor(text, { 'z.md': 'many lamps', ...frequent }))[0]).toBe('z.md')
  })
})
