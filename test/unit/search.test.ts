import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openCatalog } from '../../src/config/build.ts'
import { loadConfig } from '../../src/config/load.ts'
import { planConfig } from '../../src/config/plan.ts'
import type { Principal } from '../../src/core/provider.ts'
import {
  type FoundQuery,
  parseSearchAnswer,
  parseSearchStatus,
  type SearchAnswer,
} from '../../src/core/search-answer.ts'
import { openSearchIndex } from '../../src/search/index.ts'
import { openStore, type Store } from '../../src/store/index.ts'
import { address, boss, find, guest, hitsOf, openSearched, refusal, type World } from '../support/searched.ts'

let folder: string
let store: Store

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hikidashi-search-'))
  store = await openStore({ sqlite: { file: join(folder, 'store.sqlite') } })
})
afterAll(async () => {
  await store.close()
  await rm(folder, { recursive: true })
})
const open = (world: World) => openSearched(store, world)

describe('a search', () => {
  const entries = {
    'guides/a b.md': {
      text: 'apple\nbanana',
      title: 'Fruit',
      mimeType: 'text/markdown',
      priority: 0.9,
      modified: 1_000_000,
    },
    'src/code.ts': { text: 'const apple = 1', mimeType: 'text/x-typescript', modified: Date.now() },
    'notes.txt': { text: 'apple banana', audience: ['user'] as const, mimeType: 'text/plain' },
  }

  test('answers with links to parts, best first, with matches marked', async () => {
    const view = (await open({ entries })).view(guest)
    const found = await find(view, { query: 'apple banana' })
    expect(found.hits.map(({ uri, score }) => [uri, score])).toEqual([
      ['memory://docs/notes.txt?lines=1-1', 1],
      ['memory://docs/guides/a%20b.md?lines=1-1', 0.5],
      ['memory://docs/guides/a%20b.md?lines=2-2', 0.5],
      ['memory://docs/src/code.ts?lines=1-1', 0.5],
    ])
    expect(found).toMatchObject({ total: 4, query: 'apple banana' })
    expect(found.hits[0]?.snippet).toEqual({
      text: 'apple banana',
      line: 1,
      marks: [
        [0, 5],
        [6, 12],
      ],
    })
    const { contents } = await view.read(found.hits[2]?.uri ?? '')
    expect(contents).toMatchObject([{ text: 'banana' }])
  })

  test('is filtered by mount, type, time, priority, audience and path', async () => {
    const view = (await open({ entries })).view(guest)
    const of = (query: Omit<FoundQuery, 'query'>) => hitsOf(view, { query: 'apple', ...query })
    const [guide, code, notes] = ['guides/a%20b.md', 'src/code.ts', 'notes.txt'].map(
      (path) => `${address}/${path}?lines=1-1`,
    )
    expect(await of({ mount: 'memory://docs/' })).toHaveLength(3)
    expect(await of({ mount: 'memory://other' })).toEqual([])
    expect(await of({ mime: 'TEXT/Markdown' })).toEqual([guide])
    expect(await of({ since: '1d' })).toEqual([code])
    expect(await of({ since: '1970-01-01T00:10Z' })).toEqual([guide, code])
    expect(await of({ minPriority: 0.5 })).toEqual([guide])
    expect(await of({ audience: 'assistant' })).not.toContain(notes)
    expect(await of({ path: 'src/**' })).toEqual([code])
  })

  test('accepts words as a path, and any text as a parameter', async () => {
    const view = (await open({ entries: { 'a.txt': { text: 'what is this? 100% "a/b" status.json' } } })).view(guest)
    const read = async (uri: string) =>
      (await view.read(uri)).contents.map(
        (content) => 'text' in content && parseSearchAnswer(content.text)?.hits.length,
      )
    expect(await read('search://all/what%20is?limit=5')).toEqual([1])
    expect(await read('search://all/a/b')).toEqual([1])
    expect(await read('search://all/status.json?limit=5')).toEqual([1])
    for (const query of ['this?', '100%', '"a/b"', '../a', './b', 'a\\b #', '&a=b', 'status.json'])
      expect((await find(view, { query })).query).toBe(query)
    expect(await refusal(view, 'search://all/none/')).toBe(await refusal(view, 'search://all/nothing/at/all/'))
  })

  test('continues with the next page, and says when it is the last', async () => {
    const many = Object.fromEntries(Array.from({ length: 45 }, (_, at) => [`${at}.txt`, { text: `word ${at}` }]))
    const view = (await open({ entries: many })).view(guest)
    const seen: string[] = []
    const sizes: number[] = []
    let after: string | undefined
    do {
      const found: SearchAnswer = await find(view, { query: 'word', ...(after === undefined ? {} : { after }) })
      seen.push(...found.hits.map(({ uri }) => uri))
      sizes.push(found.hits.length)
      after = found.next
    } while (after !== undefined)
    expect(sizes).toEqual([20, 20, 5])
    expect(new Set(seen).size).toBe(45)
  })

  test('refuses a request with an invalid parameter', async () => {
    const view = (await open({ entries })).view(guest)
    const faults = [
      'q=%20',
      `q=${'x'.repeat(1001)}`,
      'q=a&limit=0',
      'q=a&limit=1e9',
      'q=a&after=-1',
      'q=a&mount=here',
      'q=a&mime=text',
    ]
    faults.push(
      'q=a&since=yesterday',
      'q=a&since=2026-99-99',
      'q=a&minPriority=2',
      'q=a&audience=all',
      'q=a&path=%5B',
      'q=a&as=xml',
    )
    for (const fault of faults)
      await expect(view.read(`search://all?${fault}`), fault).rejects.toMatchObject({
        kind: 'invalid',
        detail: { reason: 'parameter', parameter: expect.any(String) },
      })
    for (const fault of ['q=a%00b', 'q=a&q=b', 'x=1', 'q=a&limit=1&limit=2'])
      await expect(view.read(`search://all?${fault}`), fault).rejects.toMatchObject({ kind: 'invalid' })
  })

  test('leaves out deleted documents that are still indexed', async () => {
    const { 'notes.txt': _, ...left } = entries
    const view = (await open({ entries: left, indexed: entries })).view(guest)
    expect(await hitsOf(view, { query: 'banana' })).toEqual(['memory://docs/guides/a%20b.md?lines=2-2'])
  })

  test('escapes the Markdown in the passages and titles of its hits when it answers in Markdown', async () => {
    const view = (
      await open({ entries: { 'a.md': { text: '# [x](evil://x) *apple* <b>', title: '](evil://y)' } } })
    ).view(guest)
    const { contents } = await view.read('search://all?q=apple&as=markdown')
    const [content] = contents
    expect(content).toMatchObject({ mimeType: 'text/markdown' })
    const text = content !== undefined && 'text' in content ? content.text : ''
    expect(text).toContain('\\# \\[x\\](evil://x) \\***apple**\\* \\<b\\>')
    expect(text).toContain('[\\](evil://y)](<memory://docs/a.md?lines=1-1>)')
  })

  test('makes no list, heading or rule of the lines of a passage when it answers in Markdown', async () => {
    const lines = ['- apple', '+ one', '1. two', '  2) three', 'Title', '===', 'other', '---', 'a - b = 3.14']
    const index = await openSearchIndex({ store, name: 'lines-in-markdown' })
    const view = (await open({ entries: { 'a.txt': { text: lines.join('\n') } }, index })).view(guest)
    const { contents } = await view.read('search://all?q=apple&as=markdown')
    const [content] = contents
    const text = content !== undefined && 'text' in content ? content.text : ''
    expect(text.split('\n').filter((line) => line.startsWith('   > '))).toEqual(
      ['\\- **apple**', '\\+ one', '1\\. two', '  2\\) three', 'Title', '\\===', 'other', '\\---', 'a - b = 3.14'].map(
        (line) => `   > ${line}`,
      ),
    )
    await index.close()
  })

  test('says above its hits that they match single characters of a word only', async () => {
    const index = await openSearchIndex({ store, name: 'single-characters' })
    const view = (await open({ entries: { 'a.txt': { text: '予定を決定した' } }, index })).view(guest)
    const found = await find(view, { query: '決済' })
    expect(found.hits).toHaveLength(1)
    expect(found.fallback).toContain('only single characters')
    const { contents } = await view.read('search://all?q=%E6%B1%BA%E6%B8%88&as=markdown')
    const [content] = contents
    const lines = content !== undefined && 'text' in content ? content.text.split('\n') : []
    const says = lines.indexOf(found.fallback ?? '')
    expect(says).toBeGreaterThan(0)
    expect(lines.findIndex((line) => line.startsWith('1. '))).toBeGreaterThan(says)
    expect((await find(view, { query: '決定' })).fallback).toBeUndefined()
    expect((await find(view, { query: '犬猫' })).fallback).toBeUndefined()
    await index.close()
  })

  test('finds all visible hits even if the best hits are hidden', async () => {
    const hidden = Array.from(
      { length: 1500 },
      (_, at) => [`hidden/${at}.txt`, { text: `needle in a haystack ${at}` }] as const,
    )
    const world = { entries: { ...Object.fromEntries(hidden), 'open.txt': { text: 'a needle' } }, shown: ['open.txt'] }
    const found = await find((await open(world)).view(guest), { query: 'needle in' })
    expect(found).toMatchObject({ total: 1, hits: [{ document: 'memory://docs/open.txt', score: 1 }] })
  })

  test('shows in its status only what the caller may know', async () => {
    const world = { entries: { 'open.txt': { text: 'a' }, 'hidden.txt': { text: 'b' } } }
    const status = async (shown: readonly string[], principal: Principal) => {
      const { contents } = await (await open({ ...world, shown })).view(principal).read('search://all/status.json')
      const [content] = contents
      return content !== undefined && 'text' in content ? parseSearchStatus(content.text) : undefined
    }
    const waiting = { address, state: 'waiting' }
    expect(await status(['open.txt'], boss)).toEqual({
      indexing: 'stopped',
      mounts: [waiting],
      documents: 2,
      passages: 2,
    })
    expect(await status(['open.txt'], guest)).toEqual({ indexing: 'stopped', mounts: [waiting] })
    expect(await status([], guest)).toEqual({ indexing: 'stopped', mounts: [] })
  })
})

describe('the configuration of a search', () => {
  const problemsOf = async (search: Readonly<Record<string, unknown>>) => {
    await mkdir(join(folder, 'docs'), { recursive: true })
    const file = join(folder, 'hikidashi.json')
    const mounts = {
      'docs://a': { provider: 'files', root: 'docs' },
      'search://a': { provider: 'search', ...search },
      'search://b': { provider: 'search', over: ['docs://a'] },
    }
    await writeFile(file, JSON.stringify({ mounts, store: { sqlite: '../store.sqlite' } }))
    const loaded = await loadConfig(file)
    return 'problems' in loaded ? loaded.problems.map(({ key, message }) => `${key}: ${message}`) : []
  }

  test('must list existing mounts that are not searches', async () => {
    expect(await problemsOf({ over: ['docs://a/'] })).toEqual([])
    expect(await problemsOf({ over: ['docs://none', 'nothing', 'search://b', 'search://a'] })).toEqual([
      'mounts["search://a"].over[0]: Nothing is mounted at "docs://none".',
      'mounts["search://a"].over[1]: Nothing is mounted at "nothing".',
      'mounts["search://a"].over[2]: A search cannot search another search.',
      'mounts["search://a"].over[3]: A search cannot search another search.',
    ])
    expect(await problemsOf({ over: [] })).toEqual(['mounts["search://a"].over: The list is empty.'])
  })

  test('with "*" covers all mounts that can be indexed, and is refused if there are none', async () => {
    const file = join(folder, 'everything.json')
    await mkdir(join(folder, 'everything'))
    const mounts = {
      'file:///files': { provider: 'files', root: 'everything' },
      'notes://one': { provider: 'inline', text: 'apple' },
      'metrics://own': { provider: 'metrics', source: 'self' },
      'search://some': { provider: 'search', over: ['notes://one'] },
      'search://all': { provider: 'search', over: '*' },
    }
    await writeFile(file, JSON.stringify({ mounts, store: { sqlite: 'all.sqlite' } }))
    const loaded = await loadConfig(file)
    if (!('config' in loaded)) throw new Error(JSON.stringify(loaded.problems))
    const catalog = await openCatalog(planConfig(loaded.config), { log: () => {}, store: loaded.config.store })
    const { contents } = await catalog.view({ id: 'local', roles: [] }).read('search://all/status.json')
    const [content] = contents
    const status = content !== undefined && 'text' in content ? parseSearchStatus(content.text) : undefined
    expect(status?.mounts.map((mount) => mount.address)).toEqual(['file:///files', 'notes://one'])
    await catalog.close()

    await writeFile(file, JSON.stringify({ mounts: { 'search://all': { provider: 'search', over: '*' } } }))
    expect(await loadConfig(file)).toMatchObject({
      problems: [{ message: 'No mount of this configuration can be searched.' }],
    })
    await writeFile(
      file,
      JSON.stringify({ mounts: { ...mounts, 'search://all': { provider: 'search', over: 'all' } } }),
    )
    expect(await loadConfig(file)).toMatchObject({ problems: [{ message: 'This is not a list of mounts.' }] })
  })

  test('must name exactly one source of vectors, and no literal key, which the error does not quote', async () => {
    const over = ['docs://a']
    const model = 'm'
    const ollama = { url: 'http://127.0.0.1:11434' }
    expect(await problemsOf({ over, embeddings: { model, ollama } })).toEqual([])
    expect(await problemsOf({ over, embeddings: { model, local: { folder: 'models' } } })).toEqual([])
    const several = await problemsOf({ over, embeddings: { model, ollama, local: {} } })
    expect(several.join()).toContain('"embeddings" must have one source of vectors.')
    const literal = await problemsOf({ over, embeddings: { model, openai: { url: ollama.url, key: 'a-literal-key' } } })
    expect(literal.join()).toContain('This is a literal secret.')
    expect(literal.join()).not.toContain('a-literal-key')
    const named = await problemsOf({ over, embeddings: { model, ollama: { url: 'http://user:word@127.0.0.1' } } })
    expect(named.join()).toContain('This is not the URL of a service.')
  })
})
