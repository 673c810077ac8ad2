import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { type Assembled, type AssembleOptions, assemble } from '../../src/context/index.ts'
import { createReadingCaches } from '../../src/context/memory.ts'
import * as tokens from '../../src/context/tokens.ts'
import { compileAccess } from '../../src/core/access.ts'
import { type Catalog, createCatalog } from '../../src/core/catalog.ts'
import { ResourceError } from '../../src/core/errors.ts'
import type { Principal, Provider } from '../../src/core/provider.ts'
import { files } from '../../src/providers/files/index.ts'
import { type Memory as Entries, memory as entriesOf } from '../support/memory.ts'

const now = Date.parse('2026-01-31T00:00:00Z')
const longAgo = new Date('2026-01-01T00:00:00Z')
const alice: Principal = { id: 'alice', roles: ['staff'] }
const bob: Principal = { id: 'bob', roles: [] }
const queries = ['kettles and stones', 'zeppelin', '']

const cleanups: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
})

interface World {
  readonly catalog: Catalog
  readonly folder: string
  readonly notes: Entries
  /** The paths that were read since this was emptied. */
  readonly reads: string[]
  readonly state: { isDown: boolean }
  write(path: string, text: string): void
}

/** A folder of files, and notes of which `private/` is for staff. */
async function world(): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), 'hikidashi-memory-'))
  const write = (path: string, text: string) => {
    mkdirSync(join(folder, path, '..'), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  for (let i = 0; i < 60; i++) {
    const text = `# Note ${i}\n\n${`The ${i % 3 === 0 ? 'kettle' : 'stone'} of number ${i} is sealed in a cache.\n`.repeat(1 + (i % 9))}`
    const path = i % 2 === 0 ? `docs/${i}.md` : `src/${i}.ts`
    write(path, text)
    utimesSync(join(folder, path), longAgo, longAgo)
  }
  const notes = entriesOf(
    Object.fromEntries(
      Array.from({ length: 30 }, (_, i) => {
        const text =
          `Note ${i}: ${i % 5 === 0 ? 'the zeppelin of' : 'nothing about'} kettles, number ${i % 4}.\n`.repeat(3)
        return [`${i % 3 === 0 ? 'private/' : ''}${i}.md`, { text, version: `v${i}` }]
      }),
    ),
  )
  const reads: string[] = []
  const state = { isDown: false }
  const counted = (inner: Provider): Provider => ({
    ...inner,
    read: (request, context) => {
      reads.push(request.path)
      return inner.read(request, context)
    },
  })
  const served: Provider = {
    ...counted(notes),
    list: async function* (query, context) {
      if (state.isDown) throw new ResourceError('unavailable', 'it is down')
      yield* notes.list(query, context)
    },
  }
  const access = compileAccess([{ match: '/*.md', allow: ['*'] }, { allow: ['staff'] }])
  const catalog = createCatalog({
    mounts: [
      { address: 'file:///work', provider: counted(await files({ root: folder })) },
      { address: 'memory://notes', provider: served, access },
    ],
  })
  cleanups.push(async () => {
    await catalog.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return { catalog, folder, notes, reads, state, write }
}

/** `assemble` of modules that were asked nothing before. The tables of the encoding alone are not loaded again. */
async function freshAssemble(): Promise<typeof assemble> {
  vi.resetModules()
  vi.doMock('../../src/context/tokens.ts', () => tokens)
  const fresh = await import('../../src/context/index.ts')
  return fresh.assemble
}

/** Holds what is answered from memory against what is answered without it, for each caller and query, twice. */
async function compareAll({ catalog }: World, memoryOf: ReturnType<typeof createReadingCaches>) {
  const asked = [alice, bob].flatMap((principal) => queries.map((query) => ({ principal, query })))
  const optionsOf = (query: string): AssembleOptions => ({ query, budget: 1500, now, countLevels: true })
  const plainly = await freshAssemble()
  const plain = new Map<object, Assembled>()
  // In the other order: what the one remembers of texts by their digests is made in another way than what the other does.
  for (const one of asked.toReversed()) plain.set(one, await plainly(catalog.view(one.principal), optionsOf(one.query)))
  for (const one of asked)
    for (let turn = 0; turn < 2; turn++) {
      const options = { ...optionsOf(one.query), memory: memoryOf(one.principal.id) }
      const answer = await assemble(catalog.view(one.principal), options)
      const expected = plain.get(one)
      expect(answer).toEqual(expected)
      expect(answer.text).toBe(expected?.text)
      expect(JSON.stringify(answer.manifest)).toBe(JSON.stringify(expected?.manifest))
      expect(answer.tokens).toBeLessThanOrEqual(options.budget)
    }
}

test('a context from cached texts equals one without a cache, also after files and sources changed', async () => {
  const there = await world()
  const { notes, folder, write, state } = there
  const memoryOf = createReadingCaches()
  await compareAll(there, memoryOf)
  // Files that change, come and go, and are asked for at once; one of them keeps its length.
  write('docs/0.md', '# Note 0\n\nThe zeppelin of number 0 is sealed in a cache.\n')
  write('docs/new.md', '# New\n\nKettles, stones and a zeppelin.\n')
  rmSync(join(folder, 'src/1.ts'))
  notes.entries.set('1.md', { text: 'a zeppelin and its kettles', version: 'other' })
  await compareAll(there, memoryOf)
  write('docs/0.md', '# Note 0\n\nThe zeppelin of number 1 is sealed in a cache.\n')
  await compareAll(there, memoryOf)
  // A source that does not answer, and does again.
  state.isDown = true
  await compareAll(there, memoryOf)
  state.isDown = false
  notes.entries.delete('5.md')
  await compareAll(there, memoryOf)
}, 120_000)

test('cached texts that are in the context of one caller do not reach another caller', async () => {
  const { catalog } = await world()
  const memoryOf = createReadingCaches()
  const ask = (principal: Principal) =>
    assemble(catalog.view(principal), { query: 'zeppelin kettles', budget: 4000, now, memory: memoryOf(principal.id) })
  expect(JSON.stringify(await ask(alice))).toContain('private/')
  expect(JSON.stringify(await ask(bob))).not.toContain('private/')
  // Not even where the texts are equal, or the caller names the resource.
  const pinned = assemble(catalog.view(bob), {
    budget: 4000,
    now,
    pins: ['memory://notes/private/15.md'],
    memory: memoryOf(bob.id),
  })
  await expect(pinned).rejects.toMatchObject({ kind: 'not-found' })
})

test('a later context reads no unchanged text again, and reads recently changed texts each time', async () => {
  const { catalog, reads, write } = await world()
  const memory = createReadingCaches()('alice')
  const ask = async (query: string) => {
    reads.length = 0
    await assemble(catalog.view(alice), { query, budget: 4000, now, memory })
    return [...reads].sort()
  }
  expect((await ask('kettles')).length).toBeGreaterThan(80)
  expect(await ask('kettles')).toEqual([])
  expect(await ask('stones in a cache')).toEqual([])
  write('docs/0.md', 'kettles')
  expect(await ask('kettles')).toEqual(['docs/0.md'])
  // Its version may be that of the next change, within one tick of the file system.
  expect(await ask('kettles')).toEqual(['docs/0.md'])
})

test('a context states the exact tokens of a whole resource, even if the budget has room only for parts of the resource', async () => {
  const long = Array.from({ length: 9000 }, (_, i) => `line ${i} of the kettles`).join('\n')
  const catalog = createCatalog({
    mounts: [{ address: 'memory://long', provider: entriesOf({ 'long.md': { text: long, version: '1' } }) }],
  })
  const counter = await tokens.openCounter('o200k_base')
  const fullAt = async (budget: number) => {
    const options: AssembleOptions = { query: 'kettles', budget, now, countLevels: true }
    const { items } = await assemble(catalog.view(alice), options)
    return items.map(({ level, levels }) => [level, levels?.full])
  }
  // The heading of the one part and its fence are counted with the text.
  const whole = await counter.count(`## 1. \`memory://long/long.md\`\n\n\`\`\`md\n${long}\n\`\`\`\n\n`)
  expect(await fullAt(2000)).toEqual([['windows', whole]])
  expect(await fullAt(8000)).toEqual([['windows', whole]])
  expect(await fullAt(2 * whole)).toEqual([['full', whole]])
})

test('a context does not take a text that changed after the listing for the listed version', async () => {
  const notes = entriesOf({
    'a.md': { text: 'Of kettles.\n', version: '1' },
    'b.md': { text: 'Of stones.\n', version: '1' },
  })
  let isChanged = true
  const read: Provider['read'] = async (request, context) =>
    isChanged && request.path === 'a.md' ? [{ text: 'Of zeppelins.\n', version: '2' }] : notes.read(request, context)
  const catalog = createCatalog({ mounts: [{ address: 'm://m', provider: { ...notes, read } }] })
  const memory = createReadingCaches()('x')
  const ask = (more: Partial<AssembleOptions>) =>
    assemble(catalog.view(alice), { query: 'zeppelins', budget: 1000, now, ...more })
  expect((await ask({ memory })).text).toContain('zeppelins')
  isChanged = false
  expect((await ask({ memory })).manifest).toEqual((await ask({})).manifest)
})
