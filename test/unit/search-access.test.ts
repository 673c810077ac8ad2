import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import { ResourceError } from '../../src/core/errors.ts'
import type { Context, Entry, Principal } from '../../src/core/provider.ts'
import type { View } from '../../src/core/view.ts'
import { search } from '../../src/providers/search/index.ts'
import { openSearchIndex } from '../../src/search/index.ts'
import { openStore, type Store } from '../../src/store/index.ts'
import { memory } from '../support/memory.ts'
import { memoryIndex } from '../support/memory-index.ts'
import { address, boss, guest, hitsOf, openSearched, type World } from '../support/searched.ts'
import { volumeOf } from '../support/volume.ts'

const folder = mkdtempSync(join(tmpdir(), 'hikidashi-search-'))
let store: Store
beforeAll(async () => {
  store = await openStore({ sqlite: { file: join(folder, 'store.sqlite') } })
})
afterAll(async () => {
  await store.close()
  rmSync(folder, { recursive: true })
})
const open = (world: World) => openSearched(store, world)

const words = ['alpha', 'beta', 'gamma', 'delta', 'needle'] as const
const documents = fc.uniqueArray(
  fc.record({
    name: fc.integer({ min: 0, max: 40 }),
    lines: fc.array(fc.array(fc.constantFrom(...words), { minLength: 1, maxLength: 3 }), {
      minLength: 1,
      maxLength: 3,
    }),
    type: fc.constantFrom('text/plain', 'text/markdown', 'text/csv'),
    hidden: fc.boolean(),
  }),
  { selector: ({ name }) => name, maxLength: 12 },
)

/** Everything that a search tells: answers page after page, in both forms, completions, and its status. */
async function everything(view: View, text: string, limit: number): Promise<string> {
  const told: unknown[] = []
  const read = async (uri: string) =>
    told.push(await view.read(uri).catch((error: { message: string }) => error.message))
  for (const after of [0, limit, 2 * limit]) await read(`search://all?q=${text}&limit=${limit}&after=${after}`)
  await read(`search://all/${text}?as=markdown`)
  await read('search://all/status.json')
  const templates = await view.templates()
  for (const { uriTemplate } of templates.items.filter((one) => one.uriTemplate.startsWith('search:')))
    for (const [name, value] of [
      ['q', ''],
      ['query', text.slice(0, 2)],
      ['q', `x ${text.slice(0, 1)}`],
      ['mime', 'text/'],
      ['mount', ''],
    ])
      told.push(await view.complete({ uriTemplate, argument: { name: name ?? '', value: value ?? '' } }))
  return JSON.stringify(told)
}

test('a search answers as if hidden documents did not exist', async () => {
  await fc.assert(
    fc.asyncProperty(
      documents,
      fc.constantFrom(...words),
      fc.integer({ min: 1, max: 4 }),
      async (made, text, limit) => {
        const entriesOf = (some: typeof made) =>
          Object.fromEntries(
            some.map(({ name, lines, type, hidden }) => [
              `${hidden ? 'hidden' : 'open'}/${name}.txt`,
              { text: lines.map((line) => line.join(' ')).join('\n'), mimeType: type },
            ]),
          )
        const shown = ['open/**']
        const whole = await open({ entries: entriesOf(made), shown })
        const alone = await open({ entries: entriesOf(made.filter(({ hidden }) => !hidden)), shown })
        expect(await everything(whole.view(guest), text, limit)).toBe(await everything(alone.view(guest), text, limit))
        // What is hidden from one changes nothing for the other.
        const open2 = await open({ entries: entriesOf(made), shown: ['**'] })
        expect(await everything(whole.view(boss), text, limit)).toBe(await everything(open2.view(boss), text, limit))
      },
    ),
    { numRuns: volumeOf(60) },
  )
})

test('with a stored index, a search answers as if hidden documents did not exist', async () => {
  let name = 0
  await fc.assert(
    fc.asyncProperty(
      documents,
      fc.constantFrom(...words),
      fc.integer({ min: 1, max: 4 }),
      async (made, text, limit) => {
        const entries = Object.fromEntries(
          made.map(({ name: file, lines, type, hidden }) => [
            `${hidden ? 'hidden' : 'open'}/${file}.txt`,
            // Each is another text: of two alike only one is found.
            { text: `${lines.map((line) => line.join(' ')).join(' ')} only${file}`, mimeType: type },
          ]),
        )
        const index = await openSearchIndex({ store, name: `property-${++name}` })
        const hiding = await open({ entries, index, shown: ['open/**'] })
        const showing = await open({ entries, index, shown: ['**'] })
        const told = await everything(hiding.view(boss), text, limit)
        expect(told).toBe(await everything(showing.view(boss), text, limit))
        expect(told).toBe(await everything(showing.view(guest), text, limit))
        const seen = await everything(hiding.view(guest), text, limit)
        expect(seen).not.toContain('hidden/')
        for (const { name: file, hidden } of made) if (hidden) expect(seen).not.toMatch(new RegExp(`only${file}\\b`))
        // What may be seen is found, in the order and with the scores that it has where there is nothing else.
        const other = await openSearchIndex({ store, name: `property-${++name}` })
        const visible = Object.fromEntries(Object.entries(entries).filter(([path]) => path.startsWith('open/')))
        const alone = await open({ entries: visible, index: other, shown: ['open/**'] })
        expect(seen).toBe(await everything(alone.view(guest), text, limit))
        const all = await hitsOf(hiding.view(boss), { query: text, limit: 100 })
        const some = await hitsOf(hiding.view(guest), { query: text, limit: 100 })
        expect([...some].sort()).toEqual(all.filter((uri) => uri.startsWith(`${address}/open/`)).sort())
        await Promise.all([index.close(), other.close()])
      },
    ),
    { numRuns: volumeOf(25, 3) },
  )
})

test('documents of a source with its own permissions are found only after it has confirmed them', async () => {
  const index = memoryIndex()
  const source = memory({ 'a.txt': { text: 'apple' }, 'b.txt': { text: 'apple pie' } })
  let away = true
  const provider = {
    ...source,
    stat: async (path: string, context: Context) => {
      if (away) throw new ResourceError('unavailable', 'away')
      return (await source.stat?.(path, context)) as Entry
    },
    // As one that has not answered yet: it leaves everything to the read.
    sees: ({ id }: Principal, path: string) => away || id === 'boss' || path === 'a.txt',
  }
  const catalog = createCatalog({
    mounts: [
      { address, provider },
      { address: 'search://all', provider: search({ index, store, name: 'sees', mounts: () => fed }) },
    ],
  })
  const fed = [catalog.reader(address)].flatMap((mount) => (mount === undefined ? [] : [{ mount, way: '' }]))
  const document = (path: string, text: string) => ({ uri: `${address}/${path}`, mount: address, version: '1', text })
  await index.put([document('a.txt', 'apple'), document('b.txt', 'apple pie')])
  const complete = async () => {
    const [template] = (await catalog.view(guest).templates()).items.filter(({ name }) => name === 'search')
    const argument = { name: 'q', value: 'p' }
    return (await catalog.view(guest).complete({ uriTemplate: template?.uriTemplate ?? '', argument })).values
  }
  for (const principal of [boss, guest]) expect(await hitsOf(catalog.view(principal), { query: 'apple' })).toEqual([])
  expect(await complete()).toEqual([])
  away = false
  expect(await hitsOf(catalog.view(boss), { query: 'apple' })).toHaveLength(2)
  expect(await hitsOf(catalog.view(guest), { query: 'apple' })).toEqual([`${address}/a.txt`])
  expect(await complete()).toEqual([])
})

test('a store that was deleted while it was open is created again, and callers with access rules find new hits', async () => {
  const own = mkdtempSync(join(folder, 'removed-'))
  const removed = await openStore({ sqlite: { file: join(own, 'store.sqlite') } })
  const index = await openSearchIndex({ store: removed, name: 'removed' })
  const documentOf = (path: string) => ({ uri: `m://m/${path}`, mount: 'm://m', version: '1', text: `needle ${path}` })
  const allows = Object.assign(({ uri }: { readonly uri: string }) => !uri.endsWith('hidden.txt'), {
    mounts: new Map([['m://m', { reach: 'some' as const, callers: 'guests' }]]),
  })
  const found = async () => {
    const uris: string[] = []
    for await (const { uri } of index.search({ text: 'needle', allows })) uris.push(uri)
    return uris.sort()
  }
  await index.put([documentOf('a.txt'), documentOf('hidden.txt')])
  expect(await found()).toEqual(['m://m/a.txt'])
  for (const name of readdirSync(own)) rmSync(join(own, name))
  expect(await found()).toEqual([])
  // The ids begin again: those of the documents that the caller sees are now those of others.
  await index.put([documentOf('hidden.txt'), documentOf('a.txt')])
  expect(await found()).toEqual(['m://m/a.txt'])
  await removed.close()
})
