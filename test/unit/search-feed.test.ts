import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createCatalog, type Mount } from '../../src/core/catalog.ts'
import { ResourceError } from '../../src/core/errors.ts'
import type { Provider } from '../../src/core/provider.ts'
import { createScrubber, type Scrubber } from '../../src/core/scrub.ts'
import { files } from '../../src/providers/files/index.ts'
import { git } from '../../src/providers/git/index.ts'
import { askToCatchUp, readFeedStatus, startFeed } from '../../src/search/feed.ts'
import type { SearchIndex } from '../../src/search/search-index.ts'
import { openStore, type Store } from '../../src/store/index.ts'
import { polled } from '../../src/wrap/polled.ts'
import { readable } from '../../src/wrap/readable.ts'
import { redacted } from '../../src/wrap/redacted.ts'
import { sliced } from '../../src/wrap/sliced.ts'
import { eventually } from '../support/authorized.ts'
import { createGitFolder } from '../support/git.ts'
import { live } from '../support/live.ts'
import { memory } from '../support/memory.ts'
import { memoryIndex } from '../support/memory-index.ts'
import { contentOf, factsOf, read, refusal } from '../support/sources.ts'

let folder: string
let store: Store
const ends: (() => Promise<void>)[] = []

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hikidashi-feed-'))
  store = await openStore({ sqlite: { file: join(folder, 'store.sqlite') } })
})
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})
afterAll(async () => {
  await store.close()
  await rm(folder, { recursive: true })
})

let number = 0
const log = () => {}

/** Feeds an index from mounts, each at `memory://NAME`. */
function feed(
  providers: Readonly<Record<string, Provider>>,
  {
    index = memoryIndex(),
    name = `feed-${++number}`,
    way = 'plain',
    ...rest
  }: {
    readonly index?: SearchIndex
    readonly name?: string
    readonly way?: string
    readonly intervalMs?: number
    readonly window?: number
    readonly scrubber?: Scrubber
    readonly maxParts?: number
    readonly maxBytes?: number
  } = {},
) {
  const mounts: readonly Mount[] = Object.entries(providers).map(([at, provider]) => ({
    address: `memory://${at}`,
    provider,
  }))
  const catalog = createCatalog({ mounts })
  const fed = mounts.flatMap(({ address }) => {
    const mount = catalog.reader(address)
    return mount === undefined ? [] : [{ mount, way }]
  })
  const running = startFeed({ index, store, name, mounts: fed, leaseMs: 2000, log, ...rest })
  let ended = false
  const end = async () => {
    if (ended) return
    ended = true
    await running.close()
    await catalog.close()
  }
  ends.push(end)
  const states = async () => (await running.status())?.mounts.map(({ state }) => state) ?? []
  const current = () => eventually(states, (seen) => seen.length > 0 && seen.every((state) => state === 'current'))
  return { running, end, current, name }
}

const indexed = (index: ReturnType<typeof memoryIndex>) =>
  Object.fromEntries([...index.all.values()].map(({ uri, text }) => [uri, text]))

const becomes = (index: ReturnType<typeof memoryIndex>, wanted: Readonly<Record<string, string>>) =>
  eventually(
    async () => indexed(index),
    (seen) => JSON.stringify(Object.entries(seen).sort()) === JSON.stringify(Object.entries(wanted).sort()),
  )

describe('the feed of a search index', () => {
  const inTime = () => AbortSignal.timeout(20_000)

  test('catches up with files that were written or deleted just before the call', async () => {
    const root = await mkdtemp(join(folder, 'fresh-'))
    const index = memoryIndex()
    const { running, current } = feed({ docs: await files({ root }) }, { index })
    await current()
    for (const [path, text] of [
      ['a.txt', 'one'],
      ['a.txt', 'two!'],
      ['b.txt', 'three'],
    ] as const) {
      await writeFile(join(root, path), text)
      expect(await running.catchUp(undefined, inTime())).toBe(true)
      expect(index.all.get(`memory://docs/${path}`)?.text).toBe(text)
    }
    await mkdir(join(root, 'new/deep'), { recursive: true })
    await writeFile(join(root, 'new/deep/c.txt'), 'four')
    await rm(join(root, 'b.txt'))
    expect(await running.catchUp(undefined, inTime())).toBe(true)
    expect(indexed(index)).toEqual({ 'memory://docs/a.txt': 'two!', 'memory://docs/new/deep/c.txt': 'four' })
    expect(running.freshnessOf('memory://docs')).toMatchObject({ pending: 0, asOf: expect.any(Number) })
  })

  test('catches up with a source that is polled, and with one that reports nothing, without waiting for the interval', async () => {
    const [polledSource, silent] = [live({ 'a.txt': { text: 'one', version: '1' } }), live({})].map(
      ({ watch: _, ...rest }) => rest,
    ) as [ReturnType<typeof live>, ReturnType<typeof live>]
    const index = memoryIndex()
    const { running, current } = feed(
      { polled: polled(polledSource, { intervalMs: 3_600_000 }), silent },
      { index, intervalMs: 3_600_000 },
    )
    await current()
    polledSource.set('a.txt', { text: 'two', version: '2' })
    silent.set('b.txt', { text: 'three', version: '1' })
    expect(await running.catchUp(undefined, inTime())).toBe(true)
    expect(indexed(index)).toEqual({ 'memory://polled/a.txt': 'two', 'memory://silent/b.txt': 'three' })
  })

  test('catches up through the store when another process feeds the index, and says when none does', async () => {
    const source = live({ 'a.txt': { text: 'one', version: '1' } })
    const { watch: _, ...silent } = source
    const index = memoryIndex()
    const { name, current, end } = feed({ docs: silent }, { index, intervalMs: 3_600_000 })
    await current()
    await eventually(
      () => readFeedStatus(store, name),
      (status) => status !== undefined,
    )
    source.set('b.txt', { text: 'two', version: '1' })
    expect(await askToCatchUp(store, name, undefined, inTime())).toBe(true)
    expect(index.all.get('memory://docs/b.txt')?.text).toBe('two')
    await end()
    expect(await askToCatchUp(store, name, undefined, inTime())).toBe(false)
  })

  test('says that it could not catch up with a source that does not answer', async () => {
    const source = live({ 'a.txt': { text: 'one', version: '1' } })
    let isAway = false
    const { watch: _, ...silent } = source
    const away: Provider = {
      ...silent,
      list: (query, context) => {
        if (isAway) throw new ResourceError('unavailable', 'It is away.')
        return silent.list(query, context)
      },
    }
    const { running, current } = feed({ docs: away })
    await current()
    isAway = true
    expect(await running.catchUp(undefined, inTime())).toBe(false)
  })

  test('stops waiting for a source that hangs when its caller stops', async () => {
    const hangs: Provider = {
      ...live({ 'a.txt': { text: 'one', version: '1' } }),
      catchUp: () => new Promise(() => {}),
    }
    const { running, current } = feed({ docs: hangs })
    await current()
    const caller = new AbortController()
    const caughtUp = running.catchUp(undefined, caller.signal)
    caller.abort()
    expect(await caughtUp).toBe(false)
  })

  test('of a git repository indexes what is listed, also after a commit and a new branch', async () => {
    const { repository, dispose } = createGitFolder()
    ends.push(async () => dispose())
    const { dir, write, commit, git: run } = repository('indexed')
    write('a.txt', 'one')
    commit('first')
    const index = memoryIndex()
    const { running, current } = feed({ code: await git({ repository: dir }) }, { index })
    await current()
    const before = [...index.all.keys()].sort()
    expect(before).toContain('memory://code/HEAD/a.txt')
    write('a.txt', 'two')
    commit('second')
    run('branch', 'other')
    expect(await running.catchUp(undefined, inTime())).toBe(true)
    expect(index.all.get('memory://code/HEAD/a.txt')?.text).toBe('two')
    expect([...index.all.keys()].sort()).toEqual(before)
  })

  test('indexes a long log in its newest part, with the lines of the whole log, also when it has grown', async () => {
    const root = await mkdtemp(join(folder, 'log-'))
    const line = (number: number) => `line ${number} ${'x'.repeat(90)}\n`
    const lines = Array.from({ length: 2000 }, (_, index) => line(index + 1))
    await writeFile(join(root, 'a.log'), lines.join(''))
    await writeFile(join(root, 'a.txt'), lines.join(''))
    const index = memoryIndex()
    const { running, current } = feed({ docs: sliced(await files({ root })) }, { index, maxBytes: 10_000 })
    await current()
    const log = () => index.all.get('memory://docs/a.log')
    const firstOf = () => Number(/^line (\d+) /.exec(log()?.text ?? '')?.[1])
    expect(log()?.text).toContain('line 2000 ')
    expect(log()?.firstLine).toBe(firstOf())
    expect(index.all.get('memory://docs/a.txt')?.text).toMatch(/^line 1 /)
    await writeFile(join(root, 'a.log'), [...lines, ...lines.map((_, at) => line(2001 + at))].join(''))
    expect(await running.catchUp(undefined, inTime())).toBe(true)
    expect(log()?.text).toContain('line 4000 ')
    expect(log()?.firstLine).toBe(firstOf())
    expect((await running.status())?.mounts[0]?.partial).toEqual({ texts: 2, maxBytes: 10_000 })
  })

  test('counts pending changes only of the paths that the caller may see', async () => {
    let release = () => {}
    const gate = new Promise<void>((resolve) => {
      release = resolve
    })
    let isGated = false
    const source = live({ 'a.txt': { text: 'one', version: '1' } })
    const gated: Provider = {
      ...source,
      read: async (request, context) => {
        if (isGated) await gate
        return source.read(request, context)
      },
    }
    const { running, current } = feed({ docs: gated })
    await current()
    isGated = true
    source.set('a.txt', { text: 'two', version: '2' })
    await eventually(
      async () => running.freshnessOf('memory://docs')?.pending,
      (pending) => pending === 1,
    )
    expect(running.freshnessOf('memory://docs', () => false)?.pending).toBe(0)
    release()
    await eventually(
      async () => running.freshnessOf('memory://docs')?.pending,
      (pending) => pending === 0,
    )
  })

  test('indexes the parts of an entry, up to a limit, and counts them', async () => {
    const rows = new Map(Array.from({ length: 700 }, (_, at) => [`t/rows/${String(at).padStart(3, '0')}`, `row ${at}`]))
    const source = live({ 'a.txt': { text: 'one', version: '1' }, 't/rows': { text: 'the first page' } })
    let asked = 0
    const parts: Provider['parts'] = async (path) => {
      asked++
      if (path !== 't/rows') return undefined
      return (async function* () {
        for (const [at, text] of rows) yield { path: at, title: at, text }
      })()
    }
    const provider = Object.assign(source, { parts })
    const index = memoryIndex()
    const { running, current } = feed({ db: provider }, { index, maxParts: 500 })
    await current()
    const status = async () => (await running.status())?.mounts[0]
    expect(index.all.size).toBe(502)
    expect(indexed(index)).toMatchObject({ 'memory://db/t/rows': '', 'memory://db/t/rows/499': 'row 499' })
    expect(await status()).toMatchObject({ looked: 502, of: 502, partial: { entries: 1, limit: 500 } })
    rows.clear()
    for (const at of ['1', '2']) rows.set(`t/rows/${at}`, `new ${at}`)
    source.tell({ path: 't/rows' })
    source.tell({ path: 't/rows/' })
    const small = {
      'memory://db/a.txt': 'one',
      'memory://db/t/rows': '',
      'memory://db/t/rows/1': 'new 1',
      'memory://db/t/rows/2': 'new 2',
    }
    await becomes(index, small)
    await eventually(status, (seen) => seen?.of === 4 && seen.looked === 4 && seen.partial === undefined)
    expect(asked).toBeGreaterThan(0)
    source.set('b.txt', { text: 'two', version: '1' })
    await becomes(index, { ...small, 'memory://db/b.txt': 'two' })
    await eventually(status, (seen) => seen?.of === 5 && seen.looked === 5)
    source.set('b.txt', undefined)
    await becomes(index, small)
    await eventually(status, (seen) => seen?.of === 4)
  })

  test('reads all listed entries, and follows changed, new, deleted and renamed ones', async () => {
    const source = live({ 'a.txt': { text: 'one', version: '1' }, 'b/c.txt': { text: 'two', version: '1' } })
    const index = memoryIndex()
    await feed({ docs: source }, { index }).current()
    expect(indexed(index)).toEqual({ 'memory://docs/a.txt': 'one', 'memory://docs/b/c.txt': 'two' })
    source.set('a.txt', { text: 'three', version: '2' })
    await becomes(index, { 'memory://docs/a.txt': 'three', 'memory://docs/b/c.txt': 'two' })
    source.set('b/c.txt', undefined)
    source.set('b/d.txt', { text: 'two', version: '1' })
    await becomes(index, { 'memory://docs/a.txt': 'three', 'memory://docs/b/d.txt': 'two' })
    source.entries.delete('b/d.txt')
    source.tell({ path: 'b/', listed: true })
    await becomes(index, { 'memory://docs/a.txt': 'three' })
    source.entries.set('b/e.txt', { text: 'new', version: '1' })
    source.tell({ path: 'b/', listed: true })
    await becomes(index, { 'memory://docs/a.txt': 'three', 'memory://docs/b/e.txt': 'new' })
    source.entries.set('z.txt', { text: 'unheard', version: '1' })
    source.tell({})
    await becomes(index, {
      'memory://docs/a.txt': 'three',
      'memory://docs/b/e.txt': 'new',
      'memory://docs/z.txt': 'unheard',
    })
  })

  test('reads only changed entries after a restart, and all of them after a change of the settings', async () => {
    const source = memory({ 'a.txt': { text: 'one', version: '1' }, 'b.txt': { text: 'two', version: '1' } })
    const index = memoryIndex()
    const first = feed({ docs: source }, { index })
    await first.current()
    await first.end()
    expect(source.calls.read).toBe(2)
    source.entries.set('b.txt', { text: 'changed', version: '2' })
    source.entries.set('c.txt', { text: 'new', version: '1' })
    const second = feed({ docs: source }, { index, name: first.name })
    await second.current()
    await second.end()
    expect(source.calls.read).toBe(4)
    expect(indexed(index)).toEqual({
      'memory://docs/a.txt': 'one',
      'memory://docs/b.txt': 'changed',
      'memory://docs/c.txt': 'new',
    })
    await feed({ docs: source }, { index, name: first.name, way: 'redacted' }).current()
    expect(source.calls.read).toBe(7)
  })

  test('removes the documents of a mount that is no longer searched', async () => {
    const index = memoryIndex()
    const [one, two] = [
      memory({ 'a.txt': { text: 'one', version: '1' } }),
      memory({ 'b.txt': { text: 'two', version: '1' } }),
    ]
    const first = feed({ one, two, 'one-more': memory({ 'c.txt': 'three' }) }, { index })
    await first.current()
    expect(index.all.size).toBe(3)
    await first.end()
    await feed({ two }, { index, name: first.name }).current()
    expect([...index.all.keys()]).toEqual(['memory://two/b.txt'])
  })

  test('keeps the documents of a source that does not answer, and updates them when it does', async () => {
    const source = live({ 'a.txt': { text: 'one', version: '1' } })
    const index = memoryIndex()
    let away = false
    const refuse = () => {
      if (away) throw new ResourceError('unavailable', 'away')
    }
    const flaky: Provider = {
      ...source,
      list: async function* (query, context) {
        refuse()
        yield* source.list(query, context)
      },
      stat: async (path, context) => {
        refuse()
        return (await source.stat?.(path, context)) as never
      },
    }
    const { current, running } = feed({ docs: flaky }, { index })
    await current()
    away = true
    source.set('a.txt', { text: 'two', version: '2' })
    await eventually(
      async () => (await running.status())?.mounts[0]?.state,
      (state) => state === 'unavailable',
    )
    expect(running.isCurrent('memory://docs')).toBe(false)
    expect(indexed(index)).toEqual({ 'memory://docs/a.txt': 'one' })
    away = false
    await becomes(index, { 'memory://docs/a.txt': 'two' })
  })

  test('begins again if the index cannot be written for a while, and then indexes every entry', async () => {
    const source = live({ 'a.txt': { text: 'one', version: '1' }, 'b.txt': { text: 'two', version: '1' } })
    const index = memoryIndex()
    let failures = 3
    const flaky: SearchIndex = {
      ...index,
      put: async (documents) => {
        if (failures-- > 0) throw new ResourceError('unavailable', 'The disk is full.', { fault: 'full' })
        await index.put(documents)
      },
    }
    await feed({ docs: source }, { index: flaky }).current()
    expect(indexed(index)).toEqual({ 'memory://docs/a.txt': 'one', 'memory://docs/b.txt': 'two' })
  })

  test('compares periodically if a source cannot report changes', async () => {
    const source = memory({ 'a.txt': { text: 'one' }, 'b.txt': { text: 'kept' } })
    const index = memoryIndex()
    await feed({ docs: source }, { index, intervalMs: 50 }).current()
    source.entries.set('a.txt', { text: 'two' })
    await becomes(index, { 'memory://docs/a.txt': 'two', 'memory://docs/b.txt': 'kept' })
    source.entries.delete('a.txt')
    await becomes(index, { 'memory://docs/b.txt': 'kept' })
  })

  test('indexes a binary file without text, a document by its text, and a long text up to the limit', async () => {
    const html = '<html><body><h1>Title</h1><p>In a paragraph</p></body></html>'
    const source = readable(
      memory({
        'a.png': { bytes: Buffer.from('not read'), mimeType: 'image/png', version: '1' },
        'b.bin': { bytes: Buffer.from([1, 0, 2]), version: '1' },
        'c.txt': { bytes: Buffer.from('text in bytes'), version: '1' },
        'd.html': { text: html, mimeType: 'text/html', version: '1' },
        'e.txt': { text: '\u5f15'.repeat(2 ** 19), version: '1' },
      }),
    )
    const index = memoryIndex()
    const { running, current } = feed({ docs: source }, { index, maxBytes: 2 ** 20 })
    await current()
    expect((await running.status())?.mounts[0]?.partial).toEqual({ texts: 1, maxBytes: 2 ** 20 })
    const { 'memory://docs/d.html': page, 'memory://docs/e.txt': long, ...rest } = indexed(index)
    expect(rest).toEqual({
      'memory://docs/a.png': '',
      'memory://docs/b.bin': '',
      'memory://docs/c.txt': 'text in bytes',
    })
    expect(page).toContain('In a paragraph')
    expect(page).not.toContain('<p>')
    expect(long).toBe('\u5f15'.repeat(Math.floor(2 ** 20 / 3)))
  })

  test('knows after a restart which texts are indexed in part, and reads them again if the limit differs', async () => {
    const text = 'word '.repeat(4000)
    const source = memory({ 'long.txt': { text, version: '1' }, 'short.txt': { text: 'short', version: '1' } })
    const index = memoryIndex()
    for (const [maxBytes, texts] of [
      [10_000, 1],
      [10_000, 1],
      [15_000, 1],
      [30_000, undefined],
    ] as const) {
      const { running, current, end } = feed({ docs: source }, { index, maxBytes })
      await current()
      const told = texts === undefined ? undefined : { texts, maxBytes }
      expect((await running.status())?.mounts[0]?.partial).toEqual(told)
      expect(index.all.get('memory://docs/long.txt')?.text).toBe(text.slice(0, maxBytes))
      await end()
    }
  })

  test('reads the beginning of a text that is too large to read at once, and says so', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'hikidashi-long-'))
    await writeFile(join(folder, 'long.txt'), `${'word '.repeat(4000)}last`)
    const index = memoryIndex()
    const { running, current } = feed({ docs: await files({ root: folder, maxBytes: 5000 }) }, { index })
    await current()
    expect(index.all.get('memory://docs/long.txt')?.text).toHaveLength(5000)
    expect((await running.status())?.mounts[0]?.partial).toMatchObject({ texts: 1 })
    await running.close()
    await rm(folder, { recursive: true })
  })

  test('indexes the part of a log before the NULs at its end, with the same lines as a read', async () => {
    const lines = Array.from({ length: 5000 }, (_, at) => `line ${at} of the log\n`).join('')
    const nuls = Buffer.alloc(4096)
    const folder = await mkdtemp(join(tmpdir(), 'hikidashi-nuls-'))
    for (const [name, text] of [
      ['large.log', lines],
      ['small.log', 'one\ntwo'],
      ['none', 'one\ntwo\n'],
    ] as const)
      await writeFile(join(folder, name), Buffer.concat([Buffer.from(text), nuls]))
    await writeFile(join(folder, 'binary'), Buffer.from('one\n\0\0\x01\n'))
    await writeFile(join(folder, 'nothing'), nuls)
    const source = sliced(await files({ root: folder }))
    const index = memoryIndex()
    const { current, end } = feed({ docs: source }, { index })
    await current()
    for (const [name, text, last] of [
      ['large.log', lines, 5000],
      ['small.log', 'one\ntwo', 2],
      ['none', 'one\ntwo\n', 2],
    ] as const) {
      expect(index.all.get(`memory://docs/${name}`)?.text).toBe(text)
      const whole = await read(source, { lines: `1-${last}` }, name)
      expect(contentOf(whole)).toBe(text)
      expect(whole).toMatchObject({ mimeType: 'text/plain' })
      expect(factsOf(whole)).toMatchObject({ last, next: expect.any(String) })
      expect(contentOf(await read(source, { lines: '2-9000' }, name))).toBe(text.slice(text.indexOf('\n') + 1))
      expect(await refusal(source, { lines: '8000' }, name)).toMatch(/^invalid range: Only the first/)
    }
    for (const name of ['binary', 'nothing']) {
      expect(index.all.get(`memory://docs/${name}`)?.text).toBe('')
      expect(await refusal(source, { lines: '1' }, name)).toMatch(/not text/)
    }
    await end()
    await rm(folder, { recursive: true })
  })

  test('never counts more documents as compared than there are', async () => {
    const source = live(
      Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`${at}.txt`, { text: 'x', version: '1' }])),
    )
    const inner = source.read
    let number = 0
    source.read = async (request, context) => {
      if (!request.path.startsWith('new') && ++number % 20 === 1)
        source.set(`new${number}.txt`, { text: 'y', version: '1' })
      return inner(request, context)
    }
    const { running } = feed({ docs: source })
    const seen = await eventually(
      async () => (await running.status())?.mounts[0],
      (status) => {
        if (status?.of !== undefined) expect(status.looked).toBeLessThanOrEqual(status.of)
        return status?.state === 'current' && status.of !== undefined && status.of > 205
      },
    )
    expect(seen).toMatchObject({ looked: 210, of: 210 })
  })

  test('counts a document only once if it changes, appears or disappears while everything is compared', async () => {
    const names = Array.from({ length: 8 }, (_, at) => `${at}.txt`)
    const source = live(Object.fromEntries(names.map((name) => [name, { text: 'x', version: '1' }])))
    const inner = source.read
    let isFirst = true
    source.read = async (request, context) => {
      if (isFirst) {
        isFirst = false
        for (const name of names.slice(2, 5)) source.set(name, { text: 'y', version: '2' })
        source.set('new.txt', { text: 'n', version: '1' })
        source.set('7.txt', undefined)
        await new Promise((resolve) => setImmediate(resolve))
      }
      return inner(request, context)
    }
    const index = memoryIndex()
    const { running, current } = feed({ docs: source }, { index })
    await current()
    const status = async () => (await running.status())?.mounts[0]
    await becomes(index, {
      ...Object.fromEntries(['0', '1', '5', '6'].map((name) => [`memory://docs/${name}.txt`, 'x'])),
      ...Object.fromEntries(['2', '3', '4'].map((name) => [`memory://docs/${name}.txt`, 'y'])),
      'memory://docs/new.txt': 'n',
    })
    await eventually(status, (seen) => seen?.state === 'current' && seen.pending === 0)
    expect(await status()).toMatchObject({ looked: 8, of: 8 })
  })

  test('counts the documents outside of a directory as compared while the directory is compared', async () => {
    const names = ['a/1', 'a/2', ...Array.from({ length: 30 }, (_, at) => `b/${at}`)]
    const source = live(Object.fromEntries(names.map((name) => [name, { text: 'x', version: '1' }])))
    const { running, current } = feed({ docs: source })
    await current()
    const status = async () => (await running.status())?.mounts[0]
    const inner = source.read
    let seen: Awaited<ReturnType<typeof status>>
    source.read = async (request, context) => {
      seen ??= await status()
      return inner(request, context)
    }
    source.entries.set('a/2', { text: 'y', version: '2' })
    source.entries.set('a/3', { text: 'y', version: '1' })
    source.tell({ path: 'a/', listed: true })
    await eventually(status, (now) => now?.state === 'current' && now.of === 33)
    expect(seen).toMatchObject({ state: 'comparing', looked: 31, of: 33 })
    source.read = async () => {
      throw new ResourceError('unavailable', 'The source does not answer.')
    }
    for (let at = 0; at < 30; at++) source.entries.set(`b/${at}`, { text: 'z', version: '2' })
    source.tell({ path: 'b/', listed: true })
    await eventually(status, (now) => now?.state === 'unavailable')
    source.read = inner
    await eventually(status, (now) => now?.state === 'current' && now.pending === 0)
    expect(await status()).toMatchObject({ looked: 33, of: 33 })
  })

  test('redacts known secrets before indexing, and other secrets only if the mount redacts them', async () => {
    const [known, found] = ['a-value-that-is-known', `ghp_${'0123456789abcdefghijklmnopqrstuvwxyz'}`]
    const source = memory({
      'a.txt': { text: `one ${known} two`, version: '1' },
      'b.txt': { text: `token ${found}`, version: '1' },
    })
    const index = memoryIndex()
    const scrubber = createScrubber([known])
    await feed({ docs: redacted(source), plain: source }, { index, scrubber }).current()
    expect(index.all.get('memory://docs/a.txt')?.text).toBe('one [redacted] two')
    expect(index.all.get('memory://plain/a.txt')?.text).toBe('one [redacted] two')
    expect(index.all.get('memory://docs/b.txt')?.text).toBe('token [redacted]')
    // What a client may read in clear is found in clear.
    expect(index.all.get('memory://plain/b.txt')?.text).toBe(`token ${found}`)
  })

  test('runs in one of several processes, and another takes over when it ends', async () => {
    const [one, two] = [
      live({ 'a.txt': { text: 'one', version: '1' } }),
      live({ 'a.txt': { text: 'one', version: '1' } }),
    ]
    const index = memoryIndex()
    const first = feed({ docs: one }, { index })
    await first.current()
    const second = feed({ docs: two }, { index, name: first.name })
    // It tells what the other one told.
    await second.current()
    expect(two.calls.list).toBe(0)
    await first.end()
    await eventually(
      async () => two.calls.list,
      (lists) => lists > 0,
    )
    two.set('a.txt', { text: 'two', version: '2' })
    await becomes(index, { 'memory://docs/a.txt': 'two' })
  })
})

test('the status of a search names every mount from the start', async () => {
  const { running } = feed({ docs: memory({ a: 'A' }), notes: memory({ b: 'B' }) })
  expect((await running.status())?.mounts).toMatchObject([
    { address: 'memory://docs', state: expect.stringMatching(/^(?:waiting|comparing|current)$/) },
    { address: 'memory://notes', state: expect.stringMatching(/^(?:waiting|comparing|current)$/) },
  ])
})

describe('a mount with many new documents', () => {
  /** An index that remembers in which order documents were put, and whether with a text. */
  function recorded() {
    const index = memoryIndex()
    const puts: string[] = []
    return {
      puts,
      all: index.all,
      index: {
        ...index,
        put: async (documents: Parameters<SearchIndex['put']>[0]) => {
          for (const { uri, text } of documents) puts.push(`${text === '' ? 'name' : 'text'} ${uri}`)
          await index.put(documents)
        },
      },
    }
  }
  const many = Object.fromEntries(
    Array.from({ length: 40 }, (_, at) => [`f${at}`, { text: `text ${at}`, modified: 1000 + ((at * 7) % 40) }]),
  )

  test('is indexed by names first, and then by contents, the latest change first', async () => {
    const { index, puts, all } = recorded()
    const { current } = feed({ docs: memory(many) }, { index })
    await current()
    const of = (kind: string) => puts.filter((put) => put.startsWith(kind)).map((put) => put.slice(5))
    expect(puts.slice(0, 40).every((put) => put.startsWith('name'))).toBe(true)
    expect(new Set(of('name')).size).toBe(40)
    const newest = Object.entries(many).sort(([, a], [, b]) => b.modified - a.modified)
    expect(of('text')).toEqual(newest.map(([path]) => `memory://docs/${path}`))
    expect(indexed({ ...index, all })).toMatchObject({ 'memory://docs/f7': 'text 7' })
  })

  test('is indexed by all of its names first, even if it is read in parts', async () => {
    const { index, puts, all } = recorded()
    const source = memory(many)
    const { current } = feed({ docs: source }, { index, window: 17 })
    await current()
    expect(puts.slice(0, 40).map((put) => put.slice(0, 4))).toEqual(Array(40).fill('name'))
    expect(new Set(puts.slice(0, 40)).size).toBe(40)
    expect(new Set(puts.slice(40))).toEqual(new Set(Object.keys(many).map((path) => `text memory://docs/${path}`)))
    expect(puts).toHaveLength(80)
    expect(indexed({ ...index, all })).toMatchObject({ 'memory://docs/f9': 'text 9' })
  })

  test('has the newest text of a document that changes while texts wait to be written', async () => {
    const { index, puts, all } = recorded()
    const source = live(many)
    const reading = source.read
    const first = 'f17'
    let reads = 0
    const read: Provider['read'] = async (request, context) => {
      const found = await reading(request, context)
      // The text of the first is read, and not yet written.
      if (++reads === 20) source.set(first, { text: 'changed', modified: 9000 })
      return found
    }
    const { current } = feed({ docs: Object.assign(source, { read }) }, { index })
    await current()
    await eventually(
      async () => all.get(`memory://docs/${first}`)?.text,
      (text) => text === 'changed',
    )
    const texts = puts.filter((put) => put === `text memory://docs/${first}`)
    expect(texts.length).toBeGreaterThan(1)
    expect(indexed({ ...index, all })[`memory://docs/${first}`]).toBe('changed')
  })

  test('keeps indexed texts: only new documents are indexed by name first', async () => {
    const { index, puts } = recorded()
    const source = memory(many)
    const first = feed({ docs: source }, { index, name: 'kept' })
    await first.current()
    await first.end()
    puts.length = 0
    for (let at = 0; at < 40; at++) source.entries.set(`f${at}`, { text: `other ${at}`, modified: 5000 + at })
    for (let at = 0; at < 20; at++) source.entries.set(`new${at}`, { text: `new ${at}`, modified: 1 })
    const second = feed({ docs: source }, { index, name: 'kept' })
    await second.current()
    const names = puts.filter((put) => put.startsWith('name'))
    expect(names).toHaveLength(20)
    expect(names.every((put) => put.startsWith('name memory://docs/new'))).toBe(true)
    expect(puts).toHaveLength(20 + 60)
  })
})
