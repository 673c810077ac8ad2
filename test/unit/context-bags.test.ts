import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createAssembleTool } from '../../src/context/index.ts'
import { createReadingCaches } from '../../src/context/memory.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import type { Principal, Provider } from '../../src/core/provider.ts'
import { queryTerms, termsIn } from '../../src/text/analyser.ts'
import { bagOf, createBagCount, createTermCount } from '../../src/text/words.ts'
import { memory } from '../support/memory.ts'

const now = Date.parse('2026-01-31T00:00:00Z')
const alice: Principal = { id: 'alice', roles: ['a'] }
const bob: Principal = { id: 'bob', roles: [] }

test('a bag of terms has the same counts as its text', () => {
  const word = fc.constantFrom('tea', 'kettles', 'cacheSize', 'cache_size', '東京タワー', '湖', 'ไทย', 'x1', 'Ⅳ', '!?')
  fc.assert(
    fc.property(fc.array(word, { maxLength: 80 }), fc.array(word, { maxLength: 6 }), (text, query) => {
      const terms = queryTerms(query.join(' '))
      expect(createBagCount(terms)(bagOf(text.join(' ')))).toEqual(createTermCount(terms)(text.join(' ')))
    }),
  )
})

test.each([
  ['caches Caching', ['cach', 'cach']],
  ['cacheSize HTTPServer', ['cachesiz', 'cach', 'siz', 'httpserver', 'http', 'server']],
  ['snake_case_name __init__', ['snakecasenam', 'snak', 'cas', 'nam', 'init']],
  ['utf8ToString aB_C9', ['utf8tostring', 'utf8', 'to', 'string', 'abc9', 'a', 'b', 'c9']],
  ['naïve Straße ﬁles', ['naïve', 'straße', 'fil']],
  ['東京タワー', ['東', '東京', '京', '京タ', 'タワ', 'ワー']],
  ['_ !?', []],
])('a bag of terms has the terms of %j', (text, terms) => {
  expect(termsIn(text)).toEqual(terms)
  expect(bagOf(text).length).toBe(terms.length)
})

test('a bag of terms has all terms of any text', () => {
  const unit = fc.oneof(
    fc.constantFrom(
      ' ',
      '_',
      'a',
      'B',
      '7',
      '-',
      'é',
      'e\u0301',
      'ſ',
      '漢',
      'カ',
      '😀',
      '𝒜',
      '\ud83d',
      '\udc00',
      'İ',
      'ﬁ',
    ),
    fc.string({ unit: 'grapheme', maxLength: 2 }),
    fc.constantFrom('x'.repeat(63), 'word_'.repeat(13), '9'.repeat(130)),
  )
  fc.assert(
    fc.property(fc.array(unit, { maxLength: 60 }), (units) => {
      const text = units.join('')
      const terms = termsIn(text)
      const each = [...new Set(terms)]
      const bag = bagOf(text)
      expect(bag.length).toBe(terms.length)
      expect(createBagCount(each)(bag).counts).toEqual(
        each.map((term) => terms.filter((other) => other === term).length),
      )
      expect(bag.counts.reduce((sum, count) => sum + count, 0)).toBe(terms.length)
      expect(createTermCount(each)(text)).toEqual(createBagCount(each)(bag))
    }),
    { numRuns: 2000 },
  )
})

test('a bag of terms is the same when the cache of words is full and when it is cleared', () => {
  const texts = Array.from({ length: 13 }, (_, part) =>
    Array.from({ length: 5000 }, (_, index) => `word${part * 5000 + index}End`).join(' '),
  )
  const [first = ''] = texts
  const before = bagOf(first)
  const count = createTermCount(termsIn('word1End word777End'))
  const counted = count(first)
  // More words than the cache holds, in one text and in several.
  expect(bagOf(texts.join(' ')).length).toBe(termsIn(texts.join(' ')).length)
  for (const text of texts) expect(bagOf(text).length).toBe(termsIn(text).length)
  expect(bagOf(first)).toEqual(before)
  expect(count(first)).toEqual(counted)
})

test('a bag of terms counts words with equal hashes separately', () => {
  const fnv = (word: string) => {
    let hash = 0x811c9dc5 | 0
    for (let index = 0; index < word.length; index++) hash = Math.imul(hash ^ word.charCodeAt(index), 0x01000193)
    return hash & (2 ** 17 - 1)
  }
  const alike: string[] = []
  const wanted = fnv('harbour')
  for (let number = 0; alike.length < 100; number++) if (fnv(`w${number}`) === wanted) alike.push(`w${number}`)
  const text = [...alike, 'harbour', ...alike, 'harbour'].join(' ')
  const terms = termsIn(text)
  const bag = bagOf(text)
  expect(bag.length).toBe(terms.length)
  for (const word of ['harbour', ...alike]) {
    const each = termsIn(word)
    expect(createBagCount(each)(bag).counts).toEqual(each.map((term) => terms.filter((one) => one === term).length))
  }
})

/** A catalog without a search, which tells what is read of it. */
function world() {
  const files: Record<string, { text: string; version?: string }> = {}
  for (let i = 0; i < 400; i++)
    files[`${i}.md`] = { text: `note ${i} about ${i % 7 === 0 ? 'kettles' : 'stones'}`, version: '1' }
  files['unversioned.md'] = { text: 'kettles without a version' }
  const reads: string[] = []
  // As the files are at that moment.
  const provider: Provider = {
    list: (query, context) => memory(files).list(query, context),
    read: (request, context) => {
      reads.push(request.path)
      return memory(files).read(request, context)
    },
  }
  const catalog = createCatalog({ mounts: [{ address: 'memory://notes', provider }] })
  const memoryOf = createReadingCaches()
  const call = async (query: string, principal = alice) => {
    reads.length = 0
    const tool = createAssembleTool(catalog.view(principal), { now: () => now, memoryOf, limits: { detailed: 10 } })
    const answer = await tool.call({ query, budget: 2000 }, { principal, signal: new AbortController().signal })
    return { answer: JSON.stringify(answer), reads: new Set(reads).size, unversioned: reads.includes('unversioned.md') }
  }
  return { files, call }
}

test('a later context for the same question and caller reads only the resources that it shows or that have no version, and equals the first', async () => {
  const { call } = world()
  const first = await call('kettles')
  expect(first.reads).toBe(401)
  const later = await call('kettles')
  expect(later.answer).toBe(first.answer)
  expect(later.reads).toBeLessThan(30)
  expect(later.unversioned).toBe(true)
  // For other words the same is remembered, and for another caller nothing is.
  const fresh = world()
  expect((await call('stones note')).answer).toBe((await fresh.call('stones note')).answer)
  expect((await call('kettles', bob)).reads).toBe(401)
})

test('a later context reads changed resources again, and matches their new text', async () => {
  const { call, files } = world()
  await call('zeppelin')
  files['3.md'] = { text: 'the zeppelin', version: '2' }
  const found = await call('zeppelin')
  expect(found.answer).toContain('memory://notes/3.md')
  expect(found.reads).toBeLessThan(30)
})

test('the limit of texts that a context reads does not depend on cached texts', async () => {
  const { files } = world()
  const catalog = createCatalog({ mounts: [{ address: 'memory://notes', provider: memory(files) }] })
  const memoryOf = createReadingCaches()
  const limits = { bytes: 4000, concurrency: 8 }
  const answers: string[] = []
  for (let turn = 0; turn < 3; turn++) {
    const tool = createAssembleTool(catalog.view(alice), { now: () => now, memoryOf, limits })
    const signal = new AbortController().signal
    answers.push(JSON.stringify(await tool.call({ query: 'kettles', budget: 2000 }, { principal: alice, signal })))
  }
  expect(answers[0]).toContain('were not read')
  expect(new Set(answers).size).toBe(1)
})
