import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Collection, NewRow, Row, Store } from '../../src/store/index.ts'
import { eventually } from './watching.ts'

/** The contract of every engine of the store. */
export interface StoreUnderTest {
  /** Opens a store: a second one sees the same rows, as another process does. */
  open(): Promise<Store>
}

const bytes = (text: string) => new TextEncoder().encode(text)
const textOf = (row: Row | undefined) => (row === undefined ? undefined : new TextDecoder().decode(row.value))
const keysOf = (rows: readonly { readonly key: string }[]) => rows.map(({ key }) => key)
const byBytes = (keys: readonly string[]) => [...keys].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))

let made = 0
/** Returns a unique name. */
const fresh = () => `contract/${process.pid}/${++made}`

/** The notifications of a watch. */
interface Heard {
  readonly changes: (readonly string[] | undefined)[]
  /** Whether it has reported a key, or a change of anything. */
  has(key: string): boolean
  readonly ended: Promise<void>
  stop(): void
}

/** Repeats a request until it succeeds: a store must recover by itself, and report `unavailable` meanwhile. */
export async function untilAvailable<Result>(ask: () => Promise<Result>): Promise<Result> {
  const end = performance.now() + 40_000
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      expect(error).toMatchObject({ kind: 'unavailable' })
      if (performance.now() > end) throw error
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}

export function contract(name: string, subject: StoreUnderTest): void {
  let shared: Store
  const opened: Store[] = []
  const heard: Heard[] = []
  const open = async () => {
    const store = await subject.open()
    opened.push(store)
    return store
  }
  const begin = (): Collection => shared.collection(fresh())
  const listen = async (store: Store, collection: string): Promise<Heard> => {
    const abort = new AbortController()
    const news = await store.watch(collection, abort.signal)
    const changes: (readonly string[] | undefined)[] = []
    const follow = async () => {
      for await (const change of news) changes.push(change)
    }
    const one = {
      changes,
      has: (key: string) => changes.some((keys) => keys === undefined || keys.includes(key)),
      ended: follow(),
      stop: () => abort.abort(),
    }
    heard.push(one)
    return one
  }
  beforeAll(async () => {
    shared = await subject.open()
  })
  afterAll(() => shared?.close())
  afterEach(async () => {
    for (const one of heard.splice(0)) one.stop()
    await Promise.all(opened.splice(0).map((store) => store.close()))
  })
  const put = async (rows: Collection, ...written: (string | NewRow)[]) => {
    for (const row of written) await rows.put(typeof row === 'string' ? { key: row, value: bytes(row) } : row)
  }

  describe(`${name}: rows`, () => {
    test('are what was written, byte by byte', async () => {
      const rows = begin()
      const value = Uint8Array.from({ length: 70_000 }, (_, i) => (i * 31) % 256)
      const expires = Date.now() + 3_600_000
      const written = await rows.put({ key: 'あ/𠮷', value, expires, terms: ['tag:b', 'tag:a', 'tag:b'] })
      const found = await rows.get('あ/𠮷')
      expect(found).toEqual(written)
      expect(found).toMatchObject({ key: 'あ/𠮷', expires, terms: ['tag:b', 'tag:a'] })
      expect(Buffer.compare(found?.value ?? bytes(''), value)).toBe(0)
      expect(found?.created).toBe(found?.modified)
      expect(Math.abs((found?.created ?? 0) - Date.now())).toBeLessThan(60_000)
      expect(await rows.get('あ')).toBeUndefined()
      await put(rows, { key: 'empty', value: new Uint8Array() })
      expect((await rows.get('empty'))?.value.byteLength).toBe(0)
      // A view of a larger buffer is stored without the rest of the buffer.
      await put(rows, { key: 'part', value: value.subarray(10, 20) })
      expect([...((await rows.get('part'))?.value ?? [])]).toEqual([...value.subarray(10, 20)])
    })

    test('have a revision that grows with every write to the collection', async () => {
      const rows = begin()
      const revisions: number[] = []
      for (const key of ['a', 'b', 'a', 'c', 'a'])
        revisions.push((await rows.put({ key, value: bytes('') }))?.revision ?? 0)
      await rows.delete('a')
      revisions.push((await rows.put({ key: 'a', value: bytes('') }))?.revision ?? 0)
      expect(revisions).toEqual([...new Set(revisions)].sort((a, b) => a - b))
      expect(revisions.every(Number.isSafeInteger)).toBe(true)
    })

    test('keep when they were made, and lose the terms that they have no more', async () => {
      const rows = begin()
      const first = await rows.put({ key: 'a', value: bytes('1'), terms: ['x', 'y'] })
      const second = await rows.put({ key: 'a', value: bytes('22'), terms: ['y', 'z'] })
      expect(second?.created).toBe(first?.created)
      expect(textOf(await rows.get('a'))).toBe('22')
      expect(keysOf(await rows.list({ limit: 10, term: 'x' }))).toEqual([])
      expect(keysOf(await rows.list({ limit: 10, term: 'y' }))).toEqual(['a'])
      expect(keysOf(await rows.list({ limit: 10, term: 'z' }))).toEqual(['a'])
      await rows.put({ key: 'a', value: bytes('3') })
      expect(keysOf(await rows.list({ limit: 10, term: 'y' }))).toEqual([])
    })

    test('are of their collection alone', async () => {
      const store = shared
      const [one, other] = [store.collection(fresh()), store.collection(fresh())]
      await put(one, { key: 'a', value: bytes('one'), terms: ['t'] })
      await put(other, { key: 'a', value: bytes('other'), terms: ['t'] }, 'b')
      expect([textOf(await one.get('a')), textOf(await other.get('a'))]).toEqual(['one', 'other'])
      expect(await one.delete('b')).toBe(false)
      expect(await one.similar(['t'], 9)).toEqual([{ key: 'a', shared: 1 }])
      expect(await one.size()).toEqual({ rows: 1, bytes: 3 })
      expect(await one.evict({ rows: 0 })).toEqual(['a'])
      expect(keysOf(await other.list({ limit: 9 }))).toEqual(['a', 'b'])
    })

    test('outlive the store that wrote them', async () => {
      const name = fresh()
      const first = await open()
      await put(first.collection(name), 'a')
      const second = await open()
      expect(textOf(await second.collection(name).get('a'))).toBe('a')
      await first.close()
      await put(second.collection(name), 'b')
      await second.close()
      const third = await open()
      expect(keysOf(await third.collection(name).list({ limit: 9 }))).toEqual(['a', 'b'])
    })

    test('that have no name, no key or no bounds are refused', async () => {
      const store = shared
      const rows = store.collection(fresh())
      const value = bytes('')
      const refusal = { kind: 'invalid' }
      for (const name of ['', 'a\0b', 'x'.repeat(256), 'leases', '\ud800'])
        expect(() => store.collection(name)).toThrow(expect.objectContaining(refusal))
      for (const key of ['', 'a\0b', 'あ'.repeat(342), '\ud800']) {
        await expect(rows.put({ key, value })).rejects.toMatchObject(refusal)
        await expect(rows.get(key)).rejects.toMatchObject(refusal)
      }
      await expect(rows.put({ key: 'a', value, terms: ['x'.repeat(257)] })).rejects.toMatchObject(refusal)
      await expect(rows.put({ key: 'a', value, terms: [''] })).rejects.toMatchObject(refusal)
      await expect(rows.put({ key: 'a', value, expires: 1.5 })).rejects.toMatchObject(refusal)
      const many = Array.from({ length: 4097 }, (_, i) => `${i}`)
      await expect(rows.put({ key: 'a', value, terms: many })).rejects.toMatchObject(refusal)
      await expect(rows.list({ limit: -1 })).rejects.toMatchObject(refusal)
      await expect(store.lease('x', 0)).rejects.toMatchObject(refusal)
      expect(await rows.size()).toEqual({ rows: 0, bytes: 0 })
      // Values of maximum length are stored and found.
      const longest = {
        key: 'k'.repeat(1024),
        value,
        terms: many.slice(1).map((term) => term.padEnd(256, 'あ').slice(0, 80)),
      }
      await rows.put({ ...longest, terms: [...longest.terms.slice(1), 't'.repeat(256)] })
      expect(keysOf(await rows.list({ limit: 9, term: 't'.repeat(256) }))).toEqual([longest.key])
    })
  })

  describe(`${name}: a condition`, () => {
    test('lets a row be written where nothing is', async () => {
      const rows = begin()
      expect((await rows.put({ key: 'a', value: bytes('1') }, { absent: true }))?.key).toBe('a')
      expect(await rows.put({ key: 'a', value: bytes('2') }, { absent: true })).toBeUndefined()
      expect(textOf(await rows.get('a'))).toBe('1')
      await put(rows, { key: 'over', value: bytes('1'), expires: Date.now() - 1000 })
      expect(textOf(await rows.put({ key: 'over', value: bytes('2') }, { absent: true }))).toBe('2')
    })

    test('lets just the row that was seen be written or removed', async () => {
      const rows = begin()
      expect(await rows.put({ key: 'a', value: bytes('') }, { revision: 1 })).toBeUndefined()
      const first = await rows.put({ key: 'a', value: bytes('1') })
      const second = await rows.put({ key: 'a', value: bytes('2') }, { revision: first?.revision ?? 0 })
      expect(await rows.put({ key: 'a', value: bytes('3') }, { revision: first?.revision ?? 0 })).toBeUndefined()
      expect(await rows.delete('a', { revision: first?.revision ?? 0 })).toBe(false)
      expect(textOf(await rows.get('a'))).toBe('2')
      expect(await rows.delete('a', { revision: second?.revision ?? 0 })).toBe(true)
      expect(await rows.delete('a')).toBe(false)
      expect(await rows.get('a')).toBeUndefined()
    })

    test('holds for one of many that write at once', async () => {
      const name = fresh()
      const stores = [shared, await open()] as const
      const attempts = Array.from({ length: 40 }, (_, i) =>
        stores[i % 2]!.collection(name).put({ key: 'a', value: bytes(`${i}`) }, { absent: true }),
      )
      const written = (await Promise.all(attempts)).filter((row) => row !== undefined)
      expect(written).toHaveLength(1)
      expect(await stores[0].collection(name).get('a')).toEqual(written[0])
      // Increments a counter without losing an update.
      const count = async (store: Store) => {
        const rows = store.collection(name)
        for (;;) {
          const now = await rows.get('n')
          const next = { key: 'n', value: bytes(`${Number(textOf(now) ?? 0) + 1}`) }
          if (await rows.put(next, now === undefined ? { absent: true } : { revision: now.revision })) return
        }
      }
      await Promise.all(Array.from({ length: 20 }, (_, i) => count(stores[i % 2]!)))
      expect(textOf(await stores[1].collection(name).get('n'))).toBe('20')
    })
  })

  describe(`${name}: a list`, () => {
    const keys = [
      'a',
      'a-b',
      'a/b',
      'a.txt',
      'b',
      'B',
      'ア',
      'ｱ',
      '𠮷',
      'あ',
      'z\uffff',
      'é',
      'a\ud7ff',
      'a\ue000',
      'a b',
      '%',
      '_',
      "'",
    ]

    test('is in the order of the bytes of the keys, and goes on after any', async () => {
      const rows = begin()
      await put(rows, ...keys)
      const sorted = byBytes(keys)
      expect(keysOf(await rows.list({ limit: 100 }))).toEqual(sorted)
      for (let at = 0; at < sorted.length; at += 3)
        expect(keysOf(await rows.list({ limit: 2, after: sorted[at] ?? '' }))).toEqual(sorted.slice(at + 1, at + 3))
      const paged: string[] = []
      for (let after: string | undefined; ; ) {
        const page = keysOf(await rows.list({ limit: 5, ...(after === undefined ? {} : { after }) }))
        paged.push(...page)
        after = page.at(-1)
        if (after === undefined) break
      }
      expect(paged).toEqual(sorted)
      expect(await rows.list({ limit: 0 })).toEqual([])
    })

    test('has what begins with a prefix', async () => {
      const rows = begin()
      await put(rows, ...keys, '\u{10ffff}', '\u{10ffff}x')
      const all = byBytes([...keys, '\u{10ffff}', '\u{10ffff}x'])
      for (const prefix of ['a', 'a/', 'あ', '𠮷', 'a\ud7ff', 'z', '\u{10ffff}', '%', '_', 'nothing', ''])
        expect(keysOf(await rows.list({ limit: 100, prefix }))).toEqual(all.filter((key) => key.startsWith(prefix)))
      const after = keysOf(await rows.list({ limit: 100, prefix: 'a', after: 'a-b' }))
      expect(after).toEqual(
        all.filter((key) => key.startsWith('a') && Buffer.from(key).compare(Buffer.from('a-b')) > 0),
      )
    })

    test('has the newest first, and goes on before a revision', async () => {
      const rows = begin()
      await put(rows, 'c', 'a', 'd', 'b')
      await put(rows, 'a')
      const newest = await rows.list({ limit: 9, newest: true })
      expect(keysOf(newest)).toEqual(['a', 'b', 'd', 'c'])
      expect(keysOf(await rows.list({ limit: 2, newest: true, before: newest[0]?.revision ?? 0 }))).toEqual(['b', 'd'])
      expect(keysOf(await rows.list({ limit: 9, newest: true, prefix: 'd' }))).toEqual(['d'])
    })

    test('has the rows of a term', async () => {
      const rows = begin()
      for (const key of ['c', 'a', 'ab', 'b'])
        await put(rows, { key, value: bytes(key), terms: key === 'b' ? ['u'] : ['t', 'u'] })
      expect(keysOf(await rows.list({ limit: 9, term: 't' }))).toEqual(['a', 'ab', 'c'])
      expect(keysOf(await rows.list({ limit: 1, term: 't', after: 'a' }))).toEqual(['ab'])
      expect(keysOf(await rows.list({ limit: 9, term: 't', prefix: 'a' }))).toEqual(['a', 'ab'])
      expect(keysOf(await rows.list({ limit: 2, term: 'u', newest: true }))).toEqual(['b', 'ab'])
      expect(keysOf(await rows.list({ limit: 9, term: 'T' }))).toEqual([])
      await rows.delete('ab')
      expect(keysOf(await rows.list({ limit: 9, term: 't' }))).toEqual(['a', 'c'])
    })

    test('has values where they are asked for', async () => {
      const rows = begin()
      await put(rows, { key: 'a', value: bytes('value'), terms: ['t'] })
      expect((await rows.list({ limit: 9 }))[0]?.value.byteLength).toBe(0)
      expect(await rows.list({ limit: 9, values: true })).toEqual([await rows.get('a')])
      expect(await rows.list({ limit: 9, values: true, term: 't', newest: true })).toEqual([await rows.get('a')])
    })
  })

  describe(`${name}: what is similar`, () => {
    test('shares most terms, and says how many', async () => {
      const rows = begin()
      const terms = (text: string) => [...text].map((letter) => `gram:${letter}`)
      for (const text of ['abcd', 'abc', 'ab', 'xyz', 'bcd'])
        await put(rows, { key: text, value: bytes(text), terms: terms(text) })
      expect(await rows.similar(terms('abcd'), 3)).toEqual([
        { key: 'abcd', shared: 4 },
        { key: 'abc', shared: 3 },
        { key: 'bcd', shared: 3 },
      ])
      expect(await rows.similar(terms('aaz'), 9)).toHaveLength(4)
      expect(await rows.similar(terms('q'), 9)).toEqual([])
      expect(await rows.similar([], 9)).toEqual([])
    })

    test('is found, and quickly, among many rows that share a little', async () => {
      const rows = begin()
      const some = Array.from({ length: 300 }, (_, i) =>
        rows.put({ key: `k${i}`, value: bytes(''), terms: ['common', `own:${i}`] }),
      )
      await Promise.all(some)
      expect((await rows.similar(['common', 'own:299'], 1))[0]).toEqual({ key: 'k299', shared: 2 })
    })
  })

  describe(`${name}: what has expired`, () => {
    test('is nowhere', async () => {
      const rows = begin()
      await put(rows, 'a', { key: 'b', value: bytes('b'), expires: Date.now() - 1, terms: ['t'] })
      expect(await rows.get('b')).toBeUndefined()
      expect(keysOf(await rows.list({ limit: 9, values: true }))).toEqual(['a'])
      expect(await rows.list({ limit: 9, term: 't' })).toEqual([])
      expect(keysOf(await rows.list({ limit: 9, newest: true }))).toEqual(['a'])
      expect(await rows.similar(['t'], 9)).toEqual([])
      expect(await rows.size()).toEqual({ rows: 2, bytes: 2 })
      expect(await rows.delete('b')).toBe(false)
      expect(await rows.size()).toEqual({ rows: 1, bytes: 1 })
    })

    test('goes when its time comes, and not before', async () => {
      const rows = begin()
      const expires = Date.now() + 700
      await put(rows, { key: 'a', value: bytes('a'), expires })
      let seen: { readonly row: Row | undefined; readonly at: number }
      do {
        const row = await rows.get('a')
        seen = { row, at: Date.now() }
      } while (seen.row !== undefined)
      expect(seen.at).toBeGreaterThanOrEqual(expires)
      const again = await rows.put({ key: 'a', value: bytes('a') })
      expect(again?.created).toBeGreaterThanOrEqual(expires)
    })
  })

  describe(`${name}: an eviction`, () => {
    test('removes what has expired, and then what was written longest ago', async () => {
      const rows = begin()
      await put(rows, 'a', 'b', { key: 'over', value: bytes('over'), expires: Date.now() - 1 }, 'c', 'd')
      await put(rows, 'a')
      expect(await rows.evict({})).toEqual(['over'])
      expect(await rows.evict({ rows: 4, bytes: 4, age: 3_600_000 })).toEqual([])
      expect(await rows.evict({ rows: 3 })).toEqual(['b'])
      await put(rows, { key: 'large', value: new Uint8Array(100), terms: ['t'] })
      expect([...(await rows.evict({ bytes: 101 }))].sort()).toEqual(['c', 'd'])
      expect(keysOf(await rows.list({ limit: 9 }))).toEqual(['a', 'large'])
      expect(await rows.size()).toEqual({ rows: 2, bytes: 101 })
      expect([...(await rows.evict({ bytes: 99 }))].sort()).toEqual(['a', 'large'])
      expect(await rows.similar(['t'], 9)).toEqual([])
      expect(await rows.size()).toEqual({ rows: 0, bytes: 0 })
    })

    test('removes what is too old', async () => {
      const rows = begin()
      const old = await rows.put({ key: 'old', value: bytes('') })
      await eventually(() => Date.now() > (old?.modified ?? 0) + 5, 'time goes by')
      expect(await rows.evict({ age: 3_600_000 })).toEqual([])
      expect(await rows.evict({ age: 1 })).toEqual(['old'])
      expect(await rows.size()).toEqual({ rows: 0, bytes: 0 })
    })

    test('removes as many as it takes', async () => {
      const rows = begin()
      // In groups, because on a busy machine the last one would exceed the time-out of a statement.
      for (let first = 0; first < 1203; first += 100) {
        const keys = Array.from({ length: Math.min(100, 1203 - first) }, (_, i) => `k${first + i}`)
        await Promise.all(keys.map((key) => rows.put({ key, value: bytes('xy'), terms: ['t'] })))
      }
      const gone = await rows.evict({ rows: 2 })
      expect(new Set(gone).size).toBe(1201)
      expect(await rows.size()).toEqual({ rows: 2, bytes: 4 })
      expect(await rows.list({ limit: 9, term: 't' })).toHaveLength(2)
    })
  })

  describe(`${name}: a watch`, () => {
    test('tells what was written, by whichever store', async () => {
      const name = fresh()
      const [one, other] = [shared, await open()]
      const told = await listen(one, name)
      await put(one.collection(name), 'mine')
      await eventually(() => told.has('mine'), 'its own change is told')
      await put(other.collection(name), 'theirs')
      await eventually(() => told.has('theirs'), 'the change of another is told')
      expect(
        told.changes
          .filter((keys) => keys !== undefined)
          .flat()
          .sort(),
      ).toEqual(['mine', 'theirs'])
      const before = told.changes.length
      await other.collection(name).delete('mine')
      await eventually(
        () => told.changes.slice(before).some((keys) => keys?.includes('mine') ?? true),
        'that it was removed is told',
      )
    })

    test('tells of every change after it was armed, and a read after it sees it', async () => {
      const name = fresh()
      const [one, other] = [shared, await open()]
      await put(other.collection(name), 'early')
      const told = await listen(one, name)
      const keys = Array.from({ length: 200 }, (_, i) => `k${i}`)
      await Promise.all(keys.map((key) => put(other.collection(name), key)))
      await eventually(() => keys.every(told.has), 'every change is told')
      expect(keysOf(await one.collection(name).list({ limit: 1000 }))).toHaveLength(201)
      expect(told.changes.every((keys) => keys === undefined || !keys.includes('early'))).toBe(true)
    })

    test('joins what is not taken yet', async () => {
      const name = fresh()
      const store = shared
      const abort = new AbortController()
      const news = (await store.watch(name, abort.signal))[Symbol.asyncIterator]()
      for (let i = 0; i < 50; i++) await put(store.collection(name), 'a', 'b')
      const told: string[] = []
      while (!(told.includes('a') && told.includes('b'))) told.push(...((await news.next()).value ?? ['a', 'b']))
      expect(told.length).toBeLessThan(20)
      abort.abort()
      expect((await news.next()).done).toBe(true)
    })

    test('tells nothing of other collections, and ends with its signal or its store', async () => {
      const store = await open()
      const [name, other] = [fresh(), fresh()]
      const [told, alsoTold] = [await listen(store, name), await listen(store, other)]
      await put(store.collection(other), 'a')
      await eventually(() => alsoTold.has('a'), 'the other is told')
      expect(told.changes).toEqual([])
      told.stop()
      await told.ended
      await store.close()
      await alsoTold.ended
    })

    test('that begins where one has ended misses nothing', async () => {
      const store = shared
      const name = fresh()
      for (let round = 0; round < 10; round++) {
        const told = await listen(store, name)
        await put(store.collection(name), `k${round}`)
        await eventually(() => told.has(`k${round}`), 'the change is told')
        told.stop()
      }
    })
  })

  describe(`${name}: a lease`, () => {
    test('is one holder’s, until it is given back', async () => {
      const [one, other] = [shared, await open()]
      const name = fresh()
      const lease = await one.lease(name, 60_000)
      expect(lease?.signal.aborted).toBe(false)
      expect(await one.lease(name, 60_000)).toBeUndefined()
      expect(await other.lease(name, 60_000)).toBeUndefined()
      expect(await other.lease(fresh(), 60_000)).toBeDefined()
      const told = await listen(other, 'leases')
      await lease?.release()
      await lease?.release()
      await eventually(() => told.has(name), 'that it was given back is told')
      const next = await other.lease(name, 60_000)
      expect(next).toBeDefined()
      // A lease that was already released does not release that of another holder.
      await lease?.release()
      expect(await one.lease(name, 60_000)).toBeUndefined()
    })

    test('is one’s of many that ask at once', async () => {
      const stores = [shared, await open()] as const
      const name = fresh()
      const leases = await Promise.all(Array.from({ length: 40 }, (_, i) => stores[i % 2]!.lease(name, 60_000)))
      expect(leases.filter((lease) => lease !== undefined)).toHaveLength(1)
    })

    test('is renewed as long as its holder lives', async () => {
      const [one, other] = [shared, await open()]
      const name = fresh()
      const lease = await one.lease(name, 1000)
      const end = performance.now() + 2000
      while (performance.now() < end) {
        const taken = await other.lease(name, 1000)
        // On a stalled machine the lease may be lost, and its holder then knows it.
        if (taken !== undefined) {
          await eventually(() => lease?.signal.aborted === true, 'it knows that it was lost')
          return
        }
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      await lease?.release()
      expect(await other.lease(name, 1000)).toBeDefined()
    })

    test('is free after its holder has closed', async () => {
      const [one, other] = [await open(), shared]
      const name = fresh()
      await one.lease(name, 60_000)
      await one.close()
      expect(await other.lease(name, 60_000)).toBeDefined()
    })
  })

  describe(`${name}: a store that is closed`, () => {
    test('answers nothing, and says so', async () => {
      const store = await open()
      const rows = store.collection(fresh())
      await put(rows, 'a')
      await Promise.all([store.close(), store.close()])
      const gone = { kind: 'unavailable', detail: { fault: 'gone' } }
      await expect(rows.get('a')).rejects.toMatchObject(gone)
      await expect(rows.put({ key: 'a', value: bytes('') })).rejects.toMatchObject(gone)
      await expect(store.lease('x', 1000)).rejects.toMatchObject(gone)
      await expect(store.watch(fresh(), new AbortController().signal)).rejects.toMatchObject(gone)
    })

    test('finishes what was begun', async () => {
      const store = await open()
      const name = fresh()
      const begun = Array.from({ length: 50 }, (_, i) => store.collection(name).put({ key: `${i}`, value: bytes('') }))
      await store.close()
      expect((await Promise.allSettled(begun)).every(({ status }) => status === 'fulfilled')).toBe(true)
      expect(await (await open()).collection(name).size()).toEqual({ rows: 50, bytes: 0 })
    })
  })
}
