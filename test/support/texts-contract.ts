import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { NewText, Store, Texts, WeightedTerm } from '../../src/store/index.ts'
import type { StoreUnderTest } from './store-contract.ts'

let made = 0
/** Returns a unique name. */
const fresh = () => `texts/${process.pid}/${++made}`

/** Returns a text whose parts have these terms. */
const textOf = (
  key: string,
  parts: readonly (readonly string[])[],
  labels: Partial<NewText['labels']> = {},
): NewText => ({
  key,
  version: `v-${key}`,
  edition: 1,
  labels: { mount: 'files://m', ...labels },
  value: JSON.stringify({ key }),
  parts: parts.map((terms, place) => ({ value: `${key}#${place}`, terms, length: terms.length })),
})

const weigh = (...terms: readonly (string | WeightedTerm)[]): readonly WeightedTerm[] =>
  terms.map((term) => (typeof term === 'string' ? { term, weight: 1 } : term))

/** The contract of every engine of the store for texts. */
export function textsContract(name: string, subject: StoreUnderTest): void {
  let store: Store
  beforeAll(async () => {
    store = await subject.open()
  })
  afterAll(() => store?.close())
  const begin = (): Texts => store.texts(fresh())
  const found = async (texts: Texts, terms: readonly WeightedTerm[], where = {}, limit = 100) => {
    const parts = await texts.read(await texts.find({ terms, where, limit }))
    return parts.map(({ value }) => value)
  }

  describe(`${name}: texts`, () => {
    test('are found by their terms: most weight first, then the older', async () => {
      const texts = begin()
      await texts.put([textOf('a', [['x', 'y'], ['x']]), textOf('b', [['東京', 'x', 'z!']])])
      expect(await found(texts, weigh('x'))).toEqual(['a#0', 'a#1', 'b#0'])
      expect(await found(texts, weigh('x', { term: 'y', weight: 5 }, { term: '東京', weight: 3 }))).toEqual([
        'a#0',
        'b#0',
        'a#1',
      ])
      expect(await found(texts, weigh('x'), {}, 2)).toEqual(['a#0', 'a#1'])
      expect(await found(texts, weigh('nothing'))).toEqual([])
      expect(await texts.find({ terms: [], limit: 9 })).toEqual([])
      const query = { terms: weigh('x', { term: 'y', weight: 5 }), limit: 2 }
      const weighed = await texts.weigh(query)
      expect(weighed.map(({ weight }) => weight)).toEqual([6, 1])
      expect(weighed.map(({ id }) => id)).toEqual(await texts.find(query))
      const all = await texts.weigh({ ...query, terms: weigh({ term: 'x', weight: 2 }, '東京', 'z!'), limit: 9 })
      expect(all.map(({ weight, key, mount, parts }) => [weight, key, mount, parts])).toEqual([
        [4, 'b', 'files://m', 1],
        [2, 'a', 'files://m', 2],
        [2, 'a', 'files://m', 2],
      ])
      const where = { mounts: ['files://none'] }
      expect(await texts.weigh({ ...query, where })).toEqual([])
      expect(await texts.weigh({ terms: [], limit: 9 })).toEqual([])
    })

    test('are found by what terms begin with', async () => {
      const texts = begin()
      await texts.put([textOf('a', [['かい', 'x']]), textOf('b', [['か']]), textOf('c', [['いか']])])
      expect(await found(texts, weigh({ term: 'か', weight: 1, prefix: true }))).toEqual(['a#0', 'b#0'])
    })

    test('are whole or not there, and what took their place is all there is', async () => {
      const texts = begin()
      await texts.put([textOf('a', [['old', 'x'], ['old']])])
      await texts.put([textOf('a', [['new', 'x']])])
      expect(await found(texts, weigh('old'))).toEqual([])
      expect(await found(texts, weigh('x'))).toEqual(['a#0'])
      expect(await texts.counts(['x', 'old', 'new', 'never'])).toEqual([1, 0, 1, 0])
      await texts.put([
        textOf('b', [
          ['new', 'newest', 'newé', '.1new'],
          ['newest', 'né'],
        ]),
      ])
      const near = ['newer', 'newest', 'new', 'x', 'newé', 'né', 'never']
      expect(await texts.counts(near, undefined, ['new', 'nothing', '!'])).toEqual([0, 2, 2, 1, 1, 1, 0])
      expect(await texts.counts(near)).toEqual([0, 2, 2, 1, 1, 1, 0])
      await texts.remove(['b'])
      expect(await texts.size()).toMatchObject({ texts: 1, parts: 1, length: 2 })
      await expect(texts.put([textOf('b', [['fine']]), textOf('c', [['not fine']])])).rejects.toMatchObject({
        kind: 'invalid',
      })
      expect(await found(texts, weigh('fine'))).toEqual([])
    })

    test('have values of at most 64 MiB in UTF-8, and not in characters', async () => {
      const texts = begin()
      const long = '€'.repeat(30_000_000)
      const refusal = { kind: 'invalid', detail: { reason: 'too-large' } }
      const { parts, ...text } = textOf('a', [['x']])
      await expect(texts.put([{ ...text, parts, value: long }])).rejects.toMatchObject(refusal)
      const large = parts.map((part) => ({ ...part, value: long }))
      await expect(texts.put([{ ...text, parts: large }])).rejects.toMatchObject(refusal)
      expect(await texts.size()).toMatchObject({ texts: 0 })
    })

    test('are removed by their keys and by what keys begin with', async () => {
      const texts = begin()
      const keys = ['a/b', 'a/b/c', 'a/b/d/e', 'a/bc', 'z']
      await texts.put(keys.map((key) => textOf(key, [['x']])))
      await texts.remove(['a/b/', 'z', 'never', 'never/'])
      expect((await texts.list({ limit: 9 })).map(({ key }) => key)).toEqual(['a/b', 'a/bc'])
      expect(await found(texts, weigh('x'))).toEqual(['a/b#0', 'a/bc#0'])
      expect(await texts.size()).toMatchObject({ texts: 2, parts: 2 })
      // More texts than one write removes.
      await texts.put(Array.from({ length: 450 }, (_, i) => textOf(`many/${i}`, [['x']])))
      await texts.remove(['many/'])
      expect(await texts.size()).toMatchObject({ texts: 2, parts: 2 })
    })

    test('are listed by the bytes of their keys, with their versions', async () => {
      const texts = begin()
      const keys = ['b', 'B', 'あ', '𠮷', 'ｱ', 'a/1', 'a']
      await texts.put(keys.map((key) => textOf(key, [])))
      const sorted = [...keys].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
      expect((await texts.list({ limit: 9 })).map(({ key }) => key)).toEqual(sorted)
      expect((await texts.list({ limit: 2, after: 'a' })).map(({ key }) => key)).toEqual(['a/1', 'b'])
      expect(await texts.list({ limit: 9, prefix: 'a' })).toEqual([
        { key: 'a', version: 'v-a', edition: 1 },
        { key: 'a/1', version: 'v-a/1', edition: 1 },
      ])
    })

    test('are sifted by their labels', async () => {
      const texts = begin()
      await texts.put([
        textOf('a', [['x']], { mimeType: 'text/plain', audience: ['user'], priority: 0.5, modified: 1000 }),
        textOf('b', [['x']], { mount: 'git://n', mimeType: 'text/markdown', priority: 0.1, modified: 2000 }),
        textOf('c', [['x']], { mimeType: 'image/png', audience: ['assistant', 'user'] }),
      ])
      const sifted = async (where: object) => (await found(texts, weigh('x'), where)).map((value) => value[0]).join('')
      expect(await sifted({ mounts: ['git://n', 'other://'] })).toBe('b')
      expect(await sifted({ mounts: [] })).toBe('')
      expect(await sifted({ mimeType: 'text/*' })).toBe('ab')
      expect(await sifted({ mimeType: 'text/plain' })).toBe('a')
      expect(await texts.mimeTypes()).toEqual(['image/png', 'text/markdown', 'text/plain'])
      expect((await texts.list({ limit: 9, mimeType: 'text/plain' })).map(({ key }) => key)).toEqual(['a'])
      expect(await begin().mimeTypes()).toEqual([])
      expect(await sifted({ audience: 'user' })).toBe('abc')
      expect(await sifted({ audience: 'assistant' })).toBe('bc')
      expect(await sifted({ minPriority: 0.5 })).toBe('a')
      expect(await sifted({ since: 2000 })).toBe('b')
      expect(await sifted({ mimeType: 'text/*', minPriority: 0.1, since: 1, mounts: ['files://m'] })).toBe('a')
    })

    test('that are in a set are counted, found and told of as if there were no others', async () => {
      const [texts, alone] = [begin(), begin()]
      const all = Array.from({ length: 60 }, (_, i) =>
        textOf(
          `k/${i}`,
          [
            [`only${i % 7}`, 'x', ...(i % 5 === 0 ? ['rare'] : [])],
            ['x', 'かい', ...(i % 3 === 0 ? ['often'] : [])],
          ],
          {
            mimeType: i % 4 === 0 ? 'text/hidden' : i % 4 === 1 ? 'text/plain' : 'text/csv',
          },
        ),
      )
      const isSeen = (key: string) => Number(key.slice(2)) % 4 !== 0 && key !== 'k/21'
      await texts.put(all)
      await texts.remove(['k/7', 'k/8'])
      await texts.put([textOf('k/9', [['x', 'again']])])
      for (const text of all) if (isSeen(text.key) && text.key !== 'k/7' && text.key !== 'k/9') await alone.put([text])
      await alone.put([textOf('k/9', [['x', 'again']])])
      const entries = await texts.entries(0, 1000)
      expect(entries.map(({ id }) => id)).toEqual(await texts.ids())
      expect(entries.at(-1)).toMatchObject({ key: 'k/9', mount: 'files://m', parts: 1, length: 2 })
      expect(await texts.entries(entries.at(-2)?.id ?? 0, 10)).toEqual(entries.slice(-1))
      const first = entries[0]?.id ?? 0
      const bits = new Uint8Array(40)
      for (const { id, key } of entries)
        if (isSeen(key)) bits[(id - first) >> 3] = (bits[(id - first) >> 3] ?? 0) | (1 << ((id - first) & 7))
      const among = { version: 1, first, bits }
      const terms = ['x', 'rare', 'often', 'only0', 'again', 'never']
      expect(await texts.counts(terms, among)).toEqual(await alone.counts(terms))
      expect(await texts.counts(terms, among)).toEqual(await alone.counts(terms))
      expect(await texts.counts(['only0', 'only1', 'only'], among, ['only'])).toEqual(
        await alone.counts(['only0', 'only1', 'only']),
      )
      expect(await texts.counts(terms)).not.toEqual(await alone.counts(terms))
      expect(await texts.mimeTypes(among)).toEqual(await alone.mimeTypes())
      const queries = [
        { terms: weigh('x') },
        { terms: weigh('rare', 'often') },
        { terms: weigh({ term: 'か', weight: 1, prefix: true }) },
        { terms: weigh('x', 'only0'), where: { mimeType: 'text/plain' } },
      ]
      for (const query of queries)
        for (const limit of [5, 1000]) {
          const some = await texts.read(await texts.find({ ...query, among, limit }))
          const expected = await alone.read(await alone.find({ ...query, limit }))
          expect(some.map(({ value }) => value)).toEqual(expected.map(({ value }) => value))
          expect(some.length).toBeGreaterThan(0)
        }
      // An empty set.
      const none = { version: 2, first: 0, bits: new Uint8Array(0) }
      expect([
        await texts.counts(['x'], none),
        await texts.find({ ...queries[0], terms: weigh('x'), among: none, limit: 9 }),
      ]).toEqual([[0], []])
    })

    test('are of their name alone', async () => {
      const [one, other] = [begin(), begin()]
      await one.put([textOf('a', [['x', 'only']])])
      await other.put([textOf('a', [['x']])])
      await other.remove(['a'])
      expect(await found(one, weigh('x'))).toEqual(['a#0'])
      expect(await other.counts(['x', 'only'])).toEqual([0, 0])
      const ids = await one.find({ terms: weigh('x'), limit: 9 })
      expect(await other.read(ids)).toEqual([])
    })

    test('are seen by whoever opens the store besides, and outlive who wrote them', async () => {
      const name = fresh()
      const first = await subject.open()
      await first.texts(name).put([textOf('a', [['x']])])
      expect(await found(store.texts(name), weigh('x'))).toEqual(['a#0'])
      await first.close()
      await store.texts(name).put([textOf('a', [['y']])])
      const second = await subject.open()
      expect(await found(second.texts(name), weigh('x', 'y'))).toEqual(['a#0'])
      await second.close()
    })

    test('keep the vectors of their parts, as long as these are there', async () => {
      const texts = begin()
      await texts.put([textOf('a', [['x'], ['y']]), textOf('b', [['z']])])
      const entries = await texts.entries(0, 10)
      const waiting = await texts.unembedded('m', 0, 10)
      expect(waiting.map(({ value }) => value)).toEqual(['a#0', 'a#1', 'b#0'])
      const vector = Uint8Array.of(1, 2, 255)
      await texts.embed('m', [...waiting.slice(0, 2).map(({ id }) => ({ id, vector })), { id: 1e9, vector }])
      expect((await texts.unembedded('m', 0, 10)).map(({ value }) => value)).toEqual(['b#0'])
      expect(await texts.unembedded('other', 0, 10)).toHaveLength(3)
      const kept = await texts.vectors('m', 0, 10)
      expect(kept.map(({ text }) => text)).toEqual([1, 1].map(() => entries[0]?.id))
      expect(kept.map(({ id, vector }) => [id, [...vector]])).toEqual(
        waiting.slice(0, 2).map(({ id }) => [id, [1, 2, 255]]),
      )
      expect(await texts.vectors('m', kept[0]?.order ?? 0, 10)).toHaveLength(1)
      expect((await texts.size()).embedded).toBe(2)
      await texts.remove(['a'])
      expect(await texts.vectors('m', 0, 10)).toEqual([])
      expect((await texts.size()).embedded).toBe(0)
    })

    test('are put by many at once, and none is lost', async () => {
      const name = fresh()
      const other = await subject.open()
      await Promise.all(
        Array.from({ length: 40 }, (_, i) => (i % 2 === 0 ? store : other).texts(name).put([textOf(`k${i}`, [['x']])])),
      )
      expect(await store.texts(name).size()).toMatchObject({ texts: 40, parts: 40 })
      expect(await other.texts(name).counts(['x'])).toEqual([40])
      await other.close()
    })
  })
}
