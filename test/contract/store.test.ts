import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  type Collection,
  type NewRow,
  type NewText,
  openStore,
  type Row,
  type Store,
  type Texts,
  type WeightedTerm,
} from '../../src/store/index.ts'
import { type Postgres, startPostgres } from '../support/postgres.ts'
import { eventually } from '../support/watching.ts'

/** The contract of every engine of the store. */
interface StoreUnderTest {
  /** Opens a store: a second one sees the same rows, as another process does. */
  open(): Promise<Store>
}

const bytes = (text: string) => new TextEncoder().encode(text)
const valueText = (row: Row | undefined) => (row === undefined ? undefined : new TextDecoder().decode(row.value))
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

function contract(name: string, subject: StoreUnderTest): void {
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
    test('are read as they were written, byte by byte', async () => {
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

    test('keep their creation time when they are replaced, and are not found by their former terms', async () => {
      const rows = begin()
      const first = await rows.put({ key: 'a', value: bytes('1'), terms: ['x', 'y'] })
      const second = await rows.put({ key: 'a', value: bytes('22'), terms: ['y', 'z'] })
      expect(second?.created).toBe(first?.created)
      expect(valueText(await rows.get('a'))).toBe('22')
      expect(keysOf(await rows.list({ limit: 10, term: 'x' }))).toEqual([])
      expect(keysOf(await rows.list({ limit: 10, term: 'y' }))).toEqual(['a'])
      expect(keysOf(await rows.list({ limit: 10, term: 'z' }))).toEqual(['a'])
      await rows.put({ key: 'a', value: bytes('3') })
      expect(keysOf(await rows.list({ limit: 10, term: 'y' }))).toEqual([])
    })

    test('are visible only in their own collection', async () => {
      const store = shared
      const [one, other] = [store.collection(fresh()), store.collection(fresh())]
      await put(one, { key: 'a', value: bytes('one'), terms: ['t'] })
      await put(other, { key: 'a', value: bytes('other'), terms: ['t'] }, 'b')
      expect([valueText(await one.get('a')), valueText(await other.get('a'))]).toEqual(['one', 'other'])
      expect(await one.delete('b')).toBe(false)
      expect(await one.similar(['t'], 9)).toEqual([{ key: 'a', shared: 1 }])
      expect(await one.size()).toEqual({ rows: 1, bytes: 3 })
      expect(await one.evict({ rows: 0 })).toEqual(['a'])
      expect(keysOf(await other.list({ limit: 9 }))).toEqual(['a', 'b'])
    })

    test('remain after the store that wrote them has closed', async () => {
      const name = fresh()
      const first = await open()
      await put(first.collection(name), 'a')
      const second = await open()
      expect(valueText(await second.collection(name).get('a'))).toBe('a')
      await first.close()
      await put(second.collection(name), 'b')
      await second.close()
      const third = await open()
      expect(keysOf(await third.collection(name).list({ limit: 9 }))).toEqual(['a', 'b'])
    })

    test('are neither written, read nor listed with an invalid collection name, key, term, expiry or limit, and are written with the longest key and terms', async () => {
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
    test('that a key is absent lets only a new row be written', async () => {
      const rows = begin()
      expect((await rows.put({ key: 'a', value: bytes('1') }, { absent: true }))?.key).toBe('a')
      expect(await rows.put({ key: 'a', value: bytes('2') }, { absent: true })).toBeUndefined()
      expect(valueText(await rows.get('a'))).toBe('1')
      await put(rows, { key: 'over', value: bytes('1'), expires: Date.now() - 1000 })
      expect(valueText(await rows.put({ key: 'over', value: bytes('2') }, { absent: true }))).toBe('2')
    })

    test('on a revision lets only the row of that revision be written or removed', async () => {
      const rows = begin()
      expect(await rows.put({ key: 'a', value: bytes('') }, { revision: 1 })).toBeUndefined()
      const first = await rows.put({ key: 'a', value: bytes('1') })
      const second = await rows.put({ key: 'a', value: bytes('2') }, { revision: first?.revision ?? 0 })
      expect(await rows.put({ key: 'a', value: bytes('3') }, { revision: first?.revision ?? 0 })).toBeUndefined()
      expect(await rows.delete('a', { revision: first?.revision ?? 0 })).toBe(false)
      expect(valueText(await rows.get('a'))).toBe('2')
      expect(await rows.delete('a', { revision: second?.revision ?? 0 })).toBe(true)
      expect(await rows.delete('a')).toBe(false)
      expect(await rows.get('a')).toBeUndefined()
    })

    test('holds for only one of many simultaneous writes', async () => {
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
          const next = { key: 'n', value: bytes(`${Number(valueText(now) ?? 0) + 1}`) }
          if (await rows.put(next, now === undefined ? { absent: true } : { revision: now.revision })) return
        }
      }
      await Promise.all(Array.from({ length: 20 }, (_, i) => count(stores[i % 2]!)))
      expect(valueText(await stores[1].collection(name).get('n'))).toBe('20')
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

    test('is in the byte order of the keys, and continues after any key', async () => {
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

    test('has the rows whose keys begin with a prefix', async () => {
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

    test('has the newest rows first on request, and continues before a revision', async () => {
      const rows = begin()
      await put(rows, 'c', 'a', 'd', 'b')
      await put(rows, 'a')
      const newest = await rows.list({ limit: 9, newest: true })
      expect(keysOf(newest)).toEqual(['a', 'b', 'd', 'c'])
      expect(keysOf(await rows.list({ limit: 2, newest: true, before: newest[0]?.revision ?? 0 }))).toEqual(['b', 'd'])
      expect(keysOf(await rows.list({ limit: 9, newest: true, prefix: 'd' }))).toEqual(['d'])
    })

    test('has only the rows with a given term, also with a prefix, after a key, or with the newest first', async () => {
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

    test('has the values of rows only on request', async () => {
      const rows = begin()
      await put(rows, { key: 'a', value: bytes('value'), terms: ['t'] })
      expect((await rows.list({ limit: 9 }))[0]?.value.byteLength).toBe(0)
      expect(await rows.list({ limit: 9, values: true })).toEqual([await rows.get('a')])
      expect(await rows.list({ limit: 9, values: true, term: 't', newest: true })).toEqual([await rows.get('a')])
    })
  })

  describe(`${name}: the search of similar rows`, () => {
    test('returns the rows that share the most terms, with the number of shared terms', async () => {
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

    test('finds a row that shares many terms among many rows that share few', async () => {
      const rows = begin()
      const some = Array.from({ length: 300 }, (_, i) =>
        rows.put({ key: `k${i}`, value: bytes(''), terms: ['common', `own:${i}`] }),
      )
      await Promise.all(some)
      expect((await rows.similar(['common', 'own:299'], 1))[0]).toEqual({ key: 'k299', shared: 2 })
    })
  })

  describe(`${name}: an expired row`, () => {
    test('is in no read, list or search, but counts towards the size of its collection until it is removed', async () => {
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

    test('disappears at its time, and not before', async () => {
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
    test('removes expired rows, and then those that were written longest ago', async () => {
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

    test('removes the rows that are older than a limit', async () => {
      const rows = begin()
      const old = await rows.put({ key: 'old', value: bytes('') })
      await eventually(() => Date.now() > (old?.modified ?? 0) + 5, 'time goes by')
      expect(await rows.evict({ age: 3_600_000 })).toEqual([])
      expect(await rows.evict({ age: 1 })).toEqual(['old'])
      expect(await rows.size()).toEqual({ rows: 0, bytes: 0 })
    })

    test('removes as many rows as a limit requires', async () => {
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
    test('reports the keys of written and removed rows, whichever store wrote or removed them', async () => {
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

    test('reports every change after its start, and a read after the report has the change', async () => {
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

    test('merges changes that were not taken yet', async () => {
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

    test('reports nothing about other collections, and ends with its signal or its store', async () => {
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

    test('that begins right after another one has ended misses no change', async () => {
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
    test('of no time is refused', async () => {
      await expect(shared.lease('x', 0)).rejects.toMatchObject({ kind: 'invalid' })
    })

    test('has one holder until it is released, which is told to the others', async () => {
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

    test('goes to one of many simultaneous requests', async () => {
      const stores = [shared, await open()] as const
      const name = fresh()
      const leases = await Promise.all(Array.from({ length: 40 }, (_, i) => stores[i % 2]!.lease(name, 60_000)))
      expect(leases.filter((lease) => lease !== undefined)).toHaveLength(1)
    })

    test('is renewed as long as its holder lives, or its holder knows that it was lost', async () => {
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
    test('refuses to read, write, lease and watch with the fault "gone"', async () => {
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

    test('finishes the writes that were already requested', async () => {
      const store = await open()
      const name = fresh()
      const begun = Array.from({ length: 50 }, (_, i) => store.collection(name).put({ key: `${i}`, value: bytes('') }))
      await store.close()
      expect((await Promise.allSettled(begun)).every(({ status }) => status === 'fulfilled')).toBe(true)
      expect(await (await open()).collection(name).size()).toEqual({ rows: 50, bytes: 0 })
    })
  })
}

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
function textsContract(name: string, subject: StoreUnderTest): void {
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
    test('are found by their terms: the highest weight first, and among equal weights the older text', async () => {
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

    test('are found by the beginning of a term', async () => {
      const texts = begin()
      await texts.put([textOf('a', [['かい', 'x']]), textOf('b', [['か']]), textOf('c', [['いか']])])
      expect(await found(texts, weigh({ term: 'か', weight: 1, prefix: true }))).toEqual(['a#0', 'b#0'])
    })

    test('are written whole or not at all, replace the former text of their key, and are counted by term and by prefix', async () => {
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

    test('with a value of more than 64 MiB, counted in bytes of UTF-8, are refused', async () => {
      const texts = begin()
      const long = '€'.repeat(30_000_000)
      const refusal = { kind: 'invalid', detail: { reason: 'too-large' } }
      const { parts, ...text } = textOf('a', [['x']])
      await expect(texts.put([{ ...text, parts, value: long }])).rejects.toMatchObject(refusal)
      const large = parts.map((part) => ({ ...part, value: long }))
      await expect(texts.put([{ ...text, parts: large }])).rejects.toMatchObject(refusal)
      expect(await texts.size()).toMatchObject({ texts: 0 })
    })

    test('are removed by their keys, or by a prefix of keys', async () => {
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

    test('are listed in the byte order of their keys, with their versions', async () => {
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

    test('are filtered by mount, MIME type, audience, priority and time, and their MIME types are listed', async () => {
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

    test('in a set of ids are counted and found, and their MIME types listed, as if no other texts existed', async () => {
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

    test('that are stored under one name are invisible under another name', async () => {
      const [one, other] = [begin(), begin()]
      await one.put([textOf('a', [['x', 'only']])])
      await other.put([textOf('a', [['x']])])
      await other.remove(['a'])
      expect(await found(one, weigh('x'))).toEqual(['a#0'])
      expect(await other.counts(['x', 'only'])).toEqual([0, 0])
      const ids = await one.find({ terms: weigh('x'), limit: 9 })
      expect(await other.read(ids)).toEqual([])
    })

    test('are visible to every store that is opened on the same database, and remain after their writer has closed', async () => {
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

    test('keep the vectors of their parts, for one model each, until the text is removed, and list the parts without one', async () => {
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

    test('are all kept when two stores write them at the same time', async () => {
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

// Each takes a second or less; on a machine that is busy with other things, whatever that makes of it.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

let folder: string
let server: Postgres

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'hikidashi-store-'))
  server = await startPostgres()
})
afterAll(async () => {
  await server?.remove()
  rmSync(folder, { recursive: true, force: true })
})

const sqlite = { open: () => openStore({ sqlite: { file: join(folder, 'state', 'store.sqlite') } }) }
const postgres = { open: () => openStore({ postgres: { connectionString: server.url, connections: 4 } }) }

contract('SQLite', sqlite)
textsContract('SQLite', sqlite)
contract('PostgreSQL', postgres)
textsContract('PostgreSQL', postgres)
