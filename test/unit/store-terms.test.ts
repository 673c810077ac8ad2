import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import { startFeed } from '../../src/search/feed.ts'
import { openSearchIndex } from '../../src/search/index.ts'
import { openStore, type Store } from '../../src/store/index.ts'
import { openDatabase } from '../../src/store/sqlite/database.ts'
import { migrate, migrations } from '../../src/store/sqlite/schema.ts'
import { createKeeper } from '../../src/store/sqlite/worker.ts'
import type { CheckedText } from '../../src/store/texts.ts'
import { eventually } from '../support/authorized.ts'
import { memory } from '../support/memory.ts'
import { volumeOf } from '../support/volume.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

let folder: string
beforeAll(() => {
  folder = fs.mkdtempSync(join(tmpdir(), 'hikidashi-terms-'))
})
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }))

/** Numbers that are the same in each run. */
function chance(seed: number) {
  let state = seed
  return (most: number) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * most)
  }
}

const vocabulary = Array.from({ length: 600 }, (_, i) => `${'abcdefghij'[i % 10]}${'term'.repeat(1 + (i % 5))}${i}`)

function textOf(key: string, next: (most: number) => number): CheckedText {
  const parts = Array.from({ length: 1 + next(4) }, (_, place) => {
    // Some terms are in many parts, others in few.
    const terms = new Set(
      Array.from({ length: 60 }, () => vocabulary[Math.floor(next(600) * (next(1000) / 1000))] ?? ''),
    )
    return { value: `${key}#${place}`, terms: [...terms].join(' '), length: terms.size }
  })
  return { key, version: '1', edition: 1, labels: { mount: 'm' }, value: key, parts }
}

let made = 0
const fileOf = () => {
  const file = join(folder, `${++made}`, 'store.sqlite')
  fs.mkdirSync(join(folder, `${made}`))
  return file
}

/** Puts, replaces and removes texts in many writes, so that the index has many parts that FTS5 merges now and then. */
function fill(file: string, writes: number, each: number): void {
  const keeper = createKeeper({ file }, () => {})
  const next = chance(11)
  for (let write = 0; write < writes; write++) {
    const texts = new Map(Array.from({ length: each }, () => `k${next(writes * each)}`).map((key) => [key, key]))
    keeper.perform((to) =>
      to.textsPut(
        'x',
        [...texts.keys()].map((key) => textOf(key, next)),
      ),
    )
    if (write % 7 === 3) keeper.perform((to) => to.textsRemove('x', [...texts.keys()].slice(0, each / 2)))
  }
  keeper.close()
  // The connection is not over before the thread is, so its log stays.
  const database = new DatabaseSync(file)
  database.exec('pragma wal_checkpoint(truncate)')
  database.close()
}

/** Puts a log beside a file, which SQLite removes when it closes the file. SQLite ignores this one: it has no header. */
function notClosed(file: string): void {
  fs.writeFileSync(`${file}-wal`, Buffer.alloc(32))
}

/** Everything that the index answers: the parts of each term. */
function answersOf(file: string) {
  const warnings: string[] = []
  const keeper = createKeeper({ file }, (warning) => warnings.push(warning))
  const counts = keeper.perform((from) => from.textsCounts('x', vocabulary))
  const found = vocabulary.map((term) =>
    keeper.perform((from) => from.textsFind('x', { terms: [{ term, weight: 1 }], limit: 10_000 })),
  )
  keeper.close()
  return { warnings, answers: JSON.stringify({ counts, found }) }
}

/** The pages of the file in which FTS5 keeps the index. */
function pagesOf(file: string): readonly { readonly at: number; readonly size: number }[] {
  const database = new DatabaseSync(file)
  const rows = database
    .prepare(
      `select pgoffset as at, pgsize as size from dbstat where name in ('part_terms_data', 'part_terms_idx') order by pgoffset`,
    )
    .all() as { at: number; size: number }[]
  database.close()
  return rows
}

describe('the term index of a store', () => {
  let sound: { readonly bytes: Buffer; readonly answers: string; readonly pages: ReturnType<typeof pagesOf> }
  let none: string
  beforeAll(() => {
    const file = fileOf()
    fill(file, 80, 16)
    sound = { bytes: fs.readFileSync(file), answers: answersOf(file).answers, pages: pagesOf(file) }
    none = answersOf(fileOf()).answers
  })

  /** Writes something into a page of a copy, and compares what the copy answers with what it should. */
  const damaged = (at: number, bytes: Uint8Array, wasClosed: boolean): 'begun anew' | 'same' | 'other' => {
    const file = fileOf()
    const copy = Buffer.from(sound.bytes)
    copy.set(bytes, at)
    fs.writeFileSync(file, copy)
    if (!wasClosed) notClosed(file)
    const { warnings, answers } = answersOf(file)
    fs.rmSync(join(file, '..'), { recursive: true })
    if (warnings.length === 0) return answers === sound.answers ? 'same' : 'other'
    expect(warnings).toEqual([
      expect.stringMatching(/The file of the store was damaged\. It was renamed to .*, and a new one was created/),
    ])
    expect(answers).toBe(none)
    return 'begun anew'
  }

  test('is replaced by an empty one with a warning if any of its pages was overwritten and the file was not closed', () => {
    expect(sound.pages.length).toBeGreaterThan(30)
    const next = chance(5)
    for (const { at, size } of sound.pages) {
      const bytes = Buffer.from(Array.from({ length: size }, () => next(256)))
      expect(damaged(at, [Buffer.alloc(size), Buffer.alloc(size, 'other'), bytes][next(3)] ?? bytes, false)).toBe(
        'begun anew',
      )
    }
  })

  test('answers, or is replaced by an empty one with a warning, after a change of any bit', () => {
    const next = chance(17)
    const seen = new Map<string, number>()
    for (let round = 0; round < volumeOf(120, 40); round++) {
      const page = sound.pages[next(sound.pages.length)]
      if (page === undefined) continue
      const at = page.at + next(page.size)
      const effect = damaged(at, Uint8Array.of((sound.bytes[at] ?? 0) ^ (1 << next(8))), round % 2 === 0)
      seen.set(effect, (seen.get(effect) ?? 0) + 1)
    }
    expect(seen.get('begun anew') ?? 0).toBeGreaterThan(0)
  })

  test('of a store of an earlier version takes new texts', () => {
    const file = fileOf()
    const database = openDatabase(file, 1000)
    migrate(database, migrations.slice(0, 2))
    database.exec(`insert into part_terms (rowid, terms) values (7, '1~old 1~older')`)
    database.close()
    const keeper = createKeeper({ file }, () => {})
    keeper.perform((to) => to.textsPut('x', [textOf('k', chance(3))]))
    expect(keeper.perform((from) => from.textsSize('x'))).toMatchObject({ texts: 1 })
    keeper.close()
  })
})

describe('a search with a damaged term index', () => {
  const files = Object.fromEntries(
    Array.from({ length: 300 }, (_, i) => [`f${i}.txt`, { text: `anchor number${i} of the harbour`, version: '1' }]),
  )
  const found = async (store: Store, text: string) => {
    const index = await openSearchIndex({ store, name: 'docs' })
    const uris: string[] = []
    for await (const { uri } of index.search({ text, limit: 5 })) uris.push(uri)
    return uris
  }
  const begin = async (file: string) => {
    const warnings: string[] = []
    const log = (_: string, message: string) => void warnings.push(message)
    const store = await openStore({ sqlite: { file }, log })
    const index = await openSearchIndex({ store, name: 'docs' })
    const catalog = createCatalog({ mounts: [{ address: 'memory://m', provider: memory(files) }] })
    const reader = catalog.reader('memory://m')
    const mounts = reader === undefined ? [] : [{ mount: reader, way: 'plain' }]
    const feed = startFeed({ index, store, name: 'docs', mounts, leaseMs: 1000, log: () => {} })
    const state = async () => (await feed.status())?.mounts[0]?.state
    const end = async () => {
      await feed.close()
      await catalog.close()
      await index.close()
      await store.close()
    }
    return { store, warnings, end, state }
  }
  /** Overwrites the fullest page of the index. */
  const damage = (file: string) => {
    const database = new DatabaseSync(file)
    const { at, size } = database
      .prepare(
        `select pgoffset as at, pgsize as size from dbstat where name = 'part_terms_data' order by unused limit 1`,
      )
      .get() as { at: number; size: number }
    database.close()
    const opened = fs.openSync(file, 'r+')
    fs.writeSync(opened, Buffer.alloc(size), 0, size, at)
    fs.closeSync(opened)
    notClosed(file)
  }

  test('builds it again from the sources, with a warning', async () => {
    const file = fileOf()
    const first = await begin(file)
    await eventually(first.state, (state) => state === 'current')
    expect(await found(first.store, 'number77')).toEqual(['memory://m/f77.txt'])
    await first.end()
    damage(file)
    const second = await begin(file)
    expect(second.warnings).toEqual([expect.stringContaining('was damaged. It was renamed to')])
    await eventually(second.state, (state) => state === 'current')
    for (const i of [0, 77, 299]) expect(await found(second.store, `number${i}`)).toEqual([`memory://m/f${i}.txt`])
    await second.end()
  })

  test('builds it again while the store is open', async () => {
    const file = fileOf()
    const { store, warnings, end, state } = await begin(file)
    await eventually(state, (now) => now === 'current')
    const other = new DatabaseSync(file, { timeout: 5000 })
    other.enableDefensive(false)
    // What SQLite keeps in memory is read again after another connection has written.
    other.exec(`update part_terms_data set block = x'00ff00ff00ff00ff' where id > 10`)
    other.close()
    await expect(found(store, 'number77')).resolves.toEqual([])
    expect(warnings).toEqual([expect.stringContaining('was damaged. It was renamed to')])
    await eventually(
      () => found(store, 'number77'),
      (uris) => uris.length === 1,
    )
    await end()
  })
})
