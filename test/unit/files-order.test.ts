import { expect, test } from 'vitest'
import { createLruCache } from '../../src/core/kit/lru.ts'
import { indexAfter } from '../../src/core/kit/sorted.ts'
import { comparePaths } from '../../src/core/path.ts'
import { sortNames } from '../../src/providers/files/walk.ts'

test('30,000 names of files are sorted by their bytes, each once, and the first name after any path is found', async () => {
  const parts = ['a', 'b', 'é', '\uff61', '𠮷', '-', '.', '0']
  const random = (seed: number) => (seed * 16_807) % 2_147_483_647
  let seed = 42
  const names = Array.from({ length: 30_000 }, () => {
    let name = ''
    for (let length = 1 + (seed % 6); length > 0; length--) {
      seed = random(seed)
      name += parts[seed % parts.length] ?? ''
    }
    return seed % 3 === 0 ? `${name}/` : name
  })
  const wanted = [...new Set(names)].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
  const sorted = await sortNames(names)
  expect(sorted).toEqual(wanted)
  for (const path of ['', 'a', 'é/', '𠮷𠮷𠮷𠮷𠮷𠮷𠮷', '\u{10ffff}', wanted[7] ?? ''])
    expect(indexAfter(sorted, path)).toBe(wanted.filter((name) => comparePaths(name, path) <= 0).length)
})

test('an LRU cache is bounded by the weight of its entries, and drops the least recently used entry first', () => {
  const recent = createLruCache<string>(10, (value) => value.length)
  recent.set('a', 'xxxx')
  recent.set('b', 'xxxx')
  expect(recent.get('a')).toBe('xxxx')
  recent.set('c', 'xxxx')
  expect(['a', 'b', 'c'].map(recent.get)).toEqual(['xxxx', undefined, 'xxxx'])
  recent.set('huge', 'x'.repeat(50))
  expect(['a', 'c', 'huge'].map((key) => recent.get(key)?.length)).toEqual([undefined, undefined, 50])
  recent.set('small', 'x')
  expect(recent.get('huge')).toBe(undefined)
})
