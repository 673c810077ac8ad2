import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type LongResultBounds, type LongResults, resultsToRemove } from '../../src/core/shared.ts'
import { openStore, resultsInStore, type Store } from '../../src/store/index.ts'
import { resultsInMemory } from '../../src/wrap/spill.ts'

/** The two places for long results of tools: the memory of a process, and a store, in which two processes have the same. */

const wide: LongResultBounds = { keepMs: 3600_000, maxResults: 100, maxBytes: 10_000, maxTotalBytes: 30_000 }
const text = (body: string, name = 'a.txt') => ({ name, title: `The ${name}`, mimeType: 'text/plain', body })
const ofSize = (bytes: number) => [text('x'.repeat(bytes))]

describe('making room for a long result of a tool', () => {
  const bounds = { ...wide, maxResults: 3, maxBytes: 100, maxTotalBytes: 200 }
  const kept = (owner: string, ...sizes: readonly number[]) =>
    sizes.map((bytes, at) => ({ id: `${owner}${at}`, owner, bytes }))
  const dropped = (...given: Parameters<typeof resultsToRemove>) => resultsToRemove(...given).map(({ id }) => id)

  test('removes as many of the oldest results of its owner as needed', () => {
    expect(dropped(kept('a', 10, 10), { owner: 'a', bytes: 10 }, bounds)).toEqual([])
    expect(dropped(kept('a', 10, 10, 10), { owner: 'a', bytes: 10 }, bounds)).toEqual(['a0'])
    expect(dropped(kept('a', 40, 40, 10), { owner: 'a', bytes: 80 }, bounds)).toEqual(['a0', 'a1'])
  })
  test('removes results of the owner with the most bytes, and of nobody else, if all results together are too large', () => {
    const others = [...kept('b', 20), ...kept('c', 50, 40), ...kept('d', 60)]
    expect(dropped(others, { owner: 'a', bytes: 90 }, bounds)).toEqual(['c0', 'd0'])
    expect(dropped(others, { owner: 'a', bytes: 30 }, bounds)).toEqual([])
  })
  test('ends when no result is left to remove', () => {
    expect(dropped([], { owner: 'a', bytes: 1000 }, bounds)).toEqual([])
    expect(dropped(kept('b', 0, 0), { owner: 'a', bytes: 1000 }, bounds)).toEqual([])
  })
})

let folder: string
let other: LongResults
let store: Store
const ends: (() => Promise<void>)[] = []
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hikidashi-long-'))
})
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
  rmSync(folder, { recursive: true, force: true })
})

const inMemory = async (bounds: LongResultBounds) => {
  const results = resultsInMemory(bounds)
  ends.push(() => results.close())
  other = results
  return results
}
const openOver = async (bounds: LongResultBounds) => {
  store = await openStore({ sqlite: { file: join(folder, 'store.sqlite') } })
  const results = resultsInStore(store, bounds)
  const opened = store
  ends.push(async () => {
    await results.close()
    await opened.close()
  })
  return results
}
const inStore = async (bounds: LongResultBounds) => {
  const results = await openOver(bounds)
  other = await openOver(bounds)
  return results
}

describe.each([
  ['in memory', inMemory],
  ['in a store, by another process', inStore],
] as const)('long results of tools %s', (_, open) => {
  test('are found by their owner, with their facts and contents', async () => {
    const results = await open(wide)
    const bytes = Uint8Array.of(0, 255, 1)
    const files = [text('# Größe\0\n', 'a.md'), { ...text('', 'b.png'), mimeType: 'image/png', body: bytes }]
    const kept = await results.put('me', files)
    const id = kept?.id ?? expect.fail('it is kept')
    const found = await other.get('me', id)
    expect(found?.files).toEqual([
      { name: 'a.md', title: 'The a.md', mimeType: 'text/plain', size: 11, isText: true },
      { name: 'b.png', title: 'The b.png', mimeType: 'image/png', size: 3, isText: false },
    ])
    expect(found?.expires).toBe(kept?.expires)
    expect(await other.body('me', id, 'a.md')).toBe('# Größe\0\n')
    const body = await other.body('me', id, 'b.png')
    expect(Buffer.from(body ?? '')).toEqual(Buffer.from(bytes))
    const later = await results.put('me', [text('later')])
    expect((await other.list('me')).map((one) => one.id)).toEqual([id, later?.id])
  })

  test('are absent for everybody else, and for their owner under any other id', async () => {
    const results = await open(wide)
    const { id = '' } = (await results.put('me', [text('mine')])) ?? {}
    for (const owner of ['you', 'me/', '', 'm', `me/${id}`]) {
      expect(await other.list(owner)).toEqual([])
      expect(await other.get(owner, id)).toBeUndefined()
      expect(await other.body(owner, id, 'a.txt')).toBeUndefined()
    }
    for (const strange of ['', id.slice(1), `${id}/a.txt`, `../${id}`, 'x'.repeat(5000), '\0'])
      expect(await other.get('me', strange)).toBeUndefined()
  })

  test('are limited in number and size for an owner, and in total', async () => {
    const results = await open({ ...wide, maxResults: 3, maxBytes: 1000, maxTotalBytes: 1500 })
    expect(await results.put('me', ofSize(1001))).toBeUndefined()
    const ids = []
    for (let at = 0; at < 5; at++) ids.push((await results.put('me', ofSize(100)))?.id)
    expect((await other.list('me')).map(({ id }) => id)).toEqual(ids.slice(2))
    await other.put('me', ofSize(900))
    expect(await results.list('me')).toHaveLength(2)
    const yours = await results.put('you', ofSize(600))
    expect(await other.list('me')).toHaveLength(1)
    expect((await other.list('you')).map(({ id }) => id)).toEqual([yours?.id])
  })

  test('are absent after their expiry', async () => {
    const results = await open({ ...wide, keepMs: 300 })
    const { id = '' } = (await results.put('me', [text('short')])) ?? {}
    await vi.waitFor(async () => expect(await other.get('me', id)).toBeUndefined(), { timeout: 20_000 })
    expect(await other.list('me')).toEqual([])
    expect(await other.body('me', id, 'a.txt')).toBeUndefined()
  })
})

describe('long results of tools in a store', () => {
  test('leave no row behind when they are removed or expire', async () => {
    const results = await inStore({ ...wide, keepMs: 60_000, maxResults: 1 })
    const rows = store.collection('spill')
    for (let at = 0; at < 3; at++) await results.put('me', [text('one'), text('two', 'b.txt')])
    expect(await rows.size()).toMatchObject({ rows: 3 })
    const short = await openOver({ ...wide, keepMs: 1 })
    await short.put('you', [text('gone at once')])
    await vi.waitFor(async () => expect(await short.list('you')).toEqual([]), { timeout: 20_000 })
    await results.put('me', [text('one')])
    expect(await rows.size()).toMatchObject({ rows: 2 })
  })

  test('keep the limits when several processes write at once', async () => {
    const results = await inStore({ ...wide, maxResults: 4 })
    await Promise.all(Array.from({ length: 12 }, (_, at) => (at % 2 ? results : other).put('me', ofSize(10))))
    await results.put('me', ofSize(10))
    expect(await other.list('me')).toHaveLength(4)
    expect(await store.collection('spill').size()).toMatchObject({ rows: 8 })
  })

  test.each([-86_400_000, 86_400_000])('expire at the right time although a clock is off by %i ms', async (jump) => {
    const bounds = { ...wide, keepMs: 600_000 }
    other = await openOver(bounds)
    let off = 0
    const results = resultsInStore(store, bounds, () => Date.now() + off)
    ends.push(() => results.close())
    const before = Date.now()
    const kept = []
    for (const now of [0, jump, jump, 0]) {
      off = now
      kept.push(await results.put('me', [text(`with ${now}`)]))
    }
    const after = Date.now()
    for (const one of kept) {
      expect(one?.expires).toBeGreaterThanOrEqual(before + 600_000 - 1000)
      expect(one?.expires).toBeLessThanOrEqual(after + 600_000 + 1000)
    }
    expect((await other.list('me')).map(({ id }) => id)).toEqual(kept.map((one) => one?.id))
    expect(await other.body('me', kept[1]?.id ?? '', 'a.txt')).toBe(`with ${jump}`)
  })
})
