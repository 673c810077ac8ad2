import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { compileAccess } from '../../src/core/access.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import type { View } from '../../src/core/view.ts'
import { search } from '../../src/providers/search/index.ts'
import { type Allows, openSearchIndex, type SearchDocument, type SearchIndex } from '../../src/search/index.ts'
import { openStore, type Store } from '../../src/store/index.ts'
import { memory } from '../support/memory.ts'
import { boss, guest } from '../support/searched.ts'
import { volumeOf } from '../support/volume.ts'

// DR13: what may not be seen is as if it were not indexed. An index of everything answers whoever sees a part of it to the byte as
// an index does that holds this part alone.

// Hundreds of indexes: slow where the machine is busy.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 })

const folder = mkdtempSync(join(tmpdir(), 'hikidashi-hidden-'))
let store: Store
let embedder: Server
let url: string

/** A vector that depends on the words alone: how often some of the letters occur. */
const vectorOf = (text: string): readonly number[] =>
  [...'aeiouklnrst東京湖水光猫'].map((letter) => text.split(letter).length - 1 + 0.01)

beforeAll(async () => {
  store = await openStore({ sqlite: { file: join(folder, 'store.sqlite') } })
  embedder = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { input } = JSON.parse(Buffer.concat(chunks).toString()) as { input: readonly string[] }
    response.end(JSON.stringify({ embeddings: input.map(vectorOf) }))
  })
  await new Promise<void>((resolve) => embedder.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(embedder.address() as AddressInfo).port}`
})
afterAll(async () => {
  await store.close()
  embedder.closeAllConnections()
  await new Promise((resolve) => embedder.close(resolve))
  rmSync(folder, { recursive: true, force: true })
})

let names = 0
const openIndex = (vectors = false) =>
  openSearchIndex({
    store,
    name: `hidden-${++names}`,
    ...(vectors ? { embedder: { model: 'm', ollama: { url } } } : {}),
  })
const embedded = (index: SearchIndex) =>
  vi.waitFor(async () => expect((await index.embedding())?.waiting).toBe(0), { timeout: 60_000, interval: 20 })

const words = [
  'lake',
  'lantern',
  'lanterns',
  'stone',
  'rust',
  'kettle',
  'tea',
  'cacheSize',
  '東京',
  '湖水',
  '光る',
  '猫',
  'の',
  'ひかり',
]
const mounts = ['files://open', 'files://mixed', 'files://closed'] as const

interface Made {
  readonly name: number
  readonly mount: number
  readonly text: readonly (readonly string[])[]
  readonly isHidden: boolean
  readonly mimeType: string
}

const made = fc.uniqueArray(
  fc.record<Made>({
    name: fc.integer({ min: 0, max: 60 }),
    mount: fc.integer({ min: 0, max: 2 }),
    text: fc.array(fc.array(fc.constantFrom(...words), { minLength: 1, maxLength: 12 }), {
      minLength: 1,
      maxLength: 6,
    }),
    isHidden: fc.boolean(),
    mimeType: fc.constantFrom('text/plain', 'text/markdown', 'text/csv'),
  }),
  { selector: ({ name, mount }) => `${mount}/${name}`, minLength: 1, maxLength: 30 },
)
const queries = fc.array(
  fc
    .array(fc.constantFrom(...words, '湖', 'か', '"tea の"', 'nothing'), { minLength: 1, maxLength: 5 })
    .map((some) => some.join(' ')),
  { minLength: 1, maxLength: 4 },
)

const isSeen = ({ mount, isHidden }: Made) => mount === 0 || (mount === 1 && !isHidden)
/** A visible document and a hidden one have other paths, so that each can be told by its URI alone. */
const documentOf = (one: Made): SearchDocument => ({
  uri: `${mounts[one.mount]}/${isSeen(one) ? 'seen' : 'hidden'}/${one.name}.md`,
  mount: mounts[one.mount] ?? '',
  version: '1',
  title: one.text[0]?.[0] ?? '',
  mimeType: one.mimeType,
  text: one.text.map((line) => line.join(one.name % 2 === 0 ? ' ' : '')).join('\n\n'),
})
const sees = ({ uri, mount }: { readonly uri: string; readonly mount: string }) =>
  mount === mounts[0] || (mount === mounts[1] && uri.includes('/seen/'))
/** The rules as a search mount knows them, with what holds for whole mounts; and as a function that tells nothing besides. */
const ruled = (): Allows =>
  Object.assign(sees, {
    mounts: new Map([
      [mounts[0], { reach: 'all' }],
      [mounts[1], { reach: 'some', callers: 'readers' }],
      [mounts[2], { reach: 'none' }],
    ] as const),
  })
const unknown = (): Allows => (document) => sees(document)

async function all<T>(source: AsyncIterable<T>): Promise<readonly T[]> {
  const items: T[] = []
  for await (const item of source) items.push(item)
  return items
}

/** All that an index says to somebody. */
async function everything(index: SearchIndex, texts: readonly string[], allows?: Allows): Promise<string> {
  const seen = allows === undefined ? {} : { allows }
  const told: unknown[] = [await index.mimeTypes(seen), await index.mounts(mounts, seen)]
  for (const text of texts) {
    told.push(await all(index.search({ text, ...seen })))
    told.push(await all(index.search({ text, ...seen, where: { mimeType: 'text/plain' } })))
    const suggested = await all(index.suggest({ prefix: text.slice(0, 2), ...seen }))
    told.push(suggested.map(({ text, uris }) => [text, uris]))
  }
  return JSON.stringify(told)
}

async function isAsAlone(documents: readonly Made[], texts: readonly string[], vectors: boolean): Promise<void> {
  const [whole, alone] = await Promise.all([openIndex(vectors), openIndex(vectors)])
  const check = async () => {
    if (vectors) await Promise.all([embedded(whole), embedded(alone)])
    const expected = await everything(alone, texts)
    for (const allows of [ruled(), unknown(), ruled()]) expect(await everything(whole, texts, allows)).toBe(expected)
  }
  try {
    await whole.put(documents.map(documentOf))
    await alone.put(documents.filter(isSeen).map(documentOf))
    await check()
    // What is put again, removed and added counts as it is now.
    const [first, second] = documents
    const changed = [first, second].flatMap((one) => (one === undefined ? [] : [{ ...one, text: [['tea', '湖水']] }]))
    await whole.remove(documents.slice(2, 5).map((one) => documentOf(one).uri))
    await alone.remove(documents.slice(2, 5).map((one) => documentOf(one).uri))
    await whole.put(changed.map(documentOf))
    await alone.put(changed.filter(isSeen).map(documentOf))
    await check()
  } finally {
    await Promise.all([whole.close(), alone.close()])
  }
}

describe('hidden documents', () => {
  test('change neither hits, order, scores, snippets nor suggestions of a search by words (DR13)', async () => {
    await fc.assert(
      fc.asyncProperty(made, queries, (documents, texts) => isAsAlone(documents, texts, false)),
      { numRuns: volumeOf(24, 6) },
    )
  })

  test('change no answer of a search by vectors (DR13)', async () => {
    await fc.assert(
      fc.asyncProperty(made, queries, (documents, texts) => isAsAlone(documents, texts, true)),
      { numRuns: volumeOf(4, 3) },
    )
  })

  test('change no answer of a search by words if there are 700 of them beside 120 visible ones (DR13)', async () => {
    const shown = Array.from({ length: 120 }, (_, i) => ({
      name: i,
      mount: 1,
      isHidden: false,
      mimeType: 'text/plain',
      text: [i % 3 === 0 ? ['kettle', 'tea', `only${i}`] : ['stone', 'kettle', '東京', `only${i}`]],
    }))
    const hidden = Array.from({ length: 700 }, (_, i) => ({
      name: 1000 + i,
      mount: 1,
      isHidden: true,
      mimeType: `text/x-${i % 2}`,
      text: [['kettle', 'kettle', 'tea', 'tea', '東京', `secret${i}`, 'stone']],
    }))
    await isAsAlone(
      [...hidden.slice(0, 350), ...shown, ...hidden.slice(350)],
      ['kettle tea', 'tea stone', '東京', 'kettle', 'secret1'],
      false,
    )
  })

  test('that are 150 neighbours of the vector of a query displace no visible neighbour (DR13)', async () => {
    const index = await openIndex(true)
    const close = (name: string): SearchDocument => ({
      uri: `files://mixed/${name}.md`,
      mount: 'files://mixed',
      version: '1',
      text: `karakuri kettle ${name}`,
    })
    await index.put([...Array.from({ length: 150 }, (_, i) => close(`hidden/${i}`)), close('seen/far away from it')])
    await embedded(index)
    const allows = ruled()
    // None of the words stands anywhere: only the vector tells.
    const hits = await all(index.search({ text: 'kitarekutta', allows }))
    expect(hits.map(({ uri }) => uri)).toEqual(['files://mixed/seen/far away from it.md'])
    expect((await all(index.search({ text: 'kitarekutta' }))).length).toBe(100)
    await index.close()
  })
})

/** A catalog with a search over two mounts, one of which has rules. */
async function openCatalog(files: Readonly<Record<string, string>>, others: Readonly<Record<string, string>>) {
  const index = await openIndex()
  const rules = compileAccess([{ allow: ['boss'] }, { allow: ['guest'], match: ['open/**'] }])
  const closed = compileAccess([{ allow: ['boss'] }])
  const catalog = createCatalog({
    mounts: [
      { address: 'memory://docs', provider: memory(files), access: rules },
      { address: 'memory://vault', provider: memory(others), access: closed },
      {
        address: 'search://all',
        provider: search({
          index,
          store,
          name: 'hidden',
          mounts: () =>
            ['memory://docs', 'memory://vault'].flatMap((address) => {
              const mount = catalog.reader(address)
              return mount === undefined ? [] : [{ mount, way: '' }]
            }),
        }),
      },
    ],
    secret: Buffer.alloc(32),
  })
  for (const [address, some] of [
    ['memory://docs', files],
    ['memory://vault', others],
  ] as const)
    await index.put(
      Object.entries(some).map(([path, text]) => ({
        uri: `${address}/${path}`,
        mount: address,
        version: '1',
        text,
        mimeType: 'text/plain',
      })),
    )
  return { view: catalog.view(guest), boss: catalog.view(boss), close: () => catalog.close() }
}

async function told(view: View): Promise<string> {
  const answers: unknown[] = []
  const read = async (uri: string) => answers.push(await view.read(uri))
  for (const query of ['kettle%20lantern', 'lantern%20stone', '%E6%9D%B1%E4%BA%AC%20kettle', 'zeppelin'])
    for (const rest of ['', '&limit=2&after=1', '&as=markdown']) await read(`search://all?q=${query}${rest}`)
  for (const [name, value] of [
    ['q', 'k'],
    ['q', 'the ke'],
    ['mime', ''],
    ['mount', ''],
  ] as const)
    answers.push(
      await view.complete({
        uriTemplate: (await view.templates()).items.find((one) => one.name === 'search')?.uriTemplate ?? '',
        argument: { name, value },
      }),
    )
  return JSON.stringify(answers)
}

test('a search mount gives a caller the same answers, whatever documents the access rules hide from the caller (DR13)', async () => {
  const open = {
    'open/a.txt': 'kettle lantern stone 東京',
    'open/b.txt': 'kettle kettle stone',
    'open/c.txt': 'lantern lantern 東京タワー and more about it',
    'open/d.txt': 'stone lantern kettle',
  }
  const secret = { ...open }
  for (let i = 0; i < 2100; i++)
    Object.assign(secret, { [`hidden/${i}.txt`]: `${i % 3 ? 'kettle' : 'lantern'} zeppelin ${i}` })
  const [plain, whole, apart] = [
    await openCatalog(open, {}),
    await openCatalog(secret, {}),
    await openCatalog(open, { 'x.txt': 'lantern lantern zeppelin', 'y.txt': '東京' }),
  ]
  const expected = await told(plain.view)
  expect(expected).toContain('memory://docs/open/d.txt')
  expect(await told(whole.view)).toBe(expected)
  expect(await told(apart.view)).toBe(expected)
  // Who sees more is told more.
  expect(await told(whole.boss)).toContain('zeppelin ')
  for (const one of [plain, whole, apart]) await one.close()
})
