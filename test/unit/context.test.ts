import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type AssembleOptions, assemble, openCounter, rank } from '../../src/context/index.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { ResourceError } from '../../src/core/errors.ts'
import { foundMimeType, searchStatusMimeType } from '../../src/core/search-answer.ts'
import type { View } from '../../src/core/view.ts'
import { readable } from '../../src/wrap/readable.ts'
import { openDocument } from '../fixtures/documents/open-document.ts'
import { type MemoryEntry, memory } from '../support/memory.ts'

const now = Date.parse('2026-01-31T00:00:00Z')
const day = 86_400_000
const someone = { id: 'ada', roles: [] }

function viewOf(entries: Readonly<Record<string, MemoryEntry | string>>): View {
  return createCatalog({ mounts: [{ address: 'memory://docs', provider: memory(entries) }] }).view(someone)
}

const uri = (path: string) => `memory://docs/${path}`
const base = { budget: 2000, now } satisfies AssembleOptions
const prose = (word: string, times = 60) => Array.from({ length: times }, (_, n) => `Line ${n} of ${word}.`).join('\n')
const names = (items: readonly { readonly uri: string }[]) =>
  items.map((item) => item.uri.slice('memory://docs/'.length))

describe('the selection of a context', () => {
  test('has the resources that match the query, with exact token counts', async () => {
    const view = viewOf({ 'cursor.md': prose('cursors and paging'), 'other.md': prose('weather') })
    const { text, tokens, items, manifest } = await assemble(view, { ...base, query: 'cursor paging' })
    expect(names(items)[0]).toBe('cursor.md')
    expect(tokens).toBe(await (await openCounter('o200k_base')).count(text))
    expect(tokens).toBeLessThanOrEqual(2000)
    expect(text).toContain('not instructions')
    expect(manifest[0]).toMatchObject({
      uri: uri('cursor.md'),
      sha256: createHash('sha256').update(prose('cursors and paging')).digest('hex'),
    })
  })

  test('has pins and resources of priority 1, whatever their text', async () => {
    const view = viewOf({ 'a.md': 'about a', 'rules.md': { text: 'the rules', priority: 1 }, 'z.md': 'pinned' })
    const { items } = await assemble(view, { ...base, query: 'a', pins: [uri('z.md')] })
    expect(names(items).slice(0, 2)).toEqual(['z.md', 'rules.md'])
    expect(items.slice(0, 2).every(({ required, level }) => required && level === 'full')).toBe(true)
  })

  test('has a pin at its named level, and not more', async () => {
    const view = viewOf({ 'a.md': `# One\n${prose('x')}\n# Two\n${prose('y')}` })
    const pinned = async (level: 'link' | 'outline') => assemble(view, { ...base, pins: [{ uri: uri('a.md'), level }] })
    const outlined = await pinned('outline')
    expect(outlined.items.map(({ level }) => level)).toEqual(['outline'])
    expect(outlined.text).toContain('# Two')
    expect(outlined.text).not.toContain('Line 3')
    expect((await pinned('link')).items.map(({ level }) => level)).toEqual(['link'])
  })

  test('has the headings of a document in its outline', async () => {
    const provider = readable(
      memory({
        'a.odt': {
          bytes: openDocument(
            'text',
            `<text:h>Head</text:h>${'<text:p>words</text:p>'.repeat(9)}<text:h>Tail</text:h>`,
          ),
          mimeType: 'application/vnd.oasis.opendocument.text',
        },
      }),
    )
    const view = createCatalog({ mounts: [{ address: 'memory://docs', provider }] }).view(someone)
    const { text } = await assemble(view, { ...base, pins: [{ uri: uri('a.odt'), level: 'outline' }] })
    expect(text).toContain('# Head')
    expect(text).toContain('# Tail')
    await provider.close?.()
  })

  test('leaves out excluded resources in any spelling, and those for another audience', async () => {
    const view = viewOf({
      'in.md': 'query',
      'secret/one.md': 'query',
      'out.md': 'query',
      'person.md': { text: 'query', audience: ['user'] },
      'status.json': { text: 'query', mimeType: searchStatusMimeType },
    })
    const excludes = ['memory://docs/%6Fut.md', 'memory://docs/secret/']
    const { items, omitted, text } = await assemble(view, { ...base, query: 'query', excludes, pins: [uri('out.md')] })
    expect(names(items)).toEqual(['in.md'])
    expect(omitted).toEqual([])
    expect(text).not.toMatch(/secret|out\.md|person/)
    const forUser = await assemble(view, { ...base, query: 'query', audience: 'user' })
    expect([...names(forUser.items), ...names(forUser.omitted)]).toContain('person.md')
  })

  test.each([
    [['*.test.ts'], ['a.ts', 'a/café.md', 'app/[slug]/x.md', 'app/[slug]/y.txt']],
    [
      ['**/a/**', '**/*.t{s,sx}'],
      ['app/[slug]/x.md', 'app/[slug]/y.txt'],
    ],
    [
      ['memory://docs/a/caf%C3%A9.*', 'memory://docs/app/%5Bslug%5D/*.md'],
      ['a.test.ts', 'a.ts', 'app/[slug]/y.txt'],
    ],
    [
      ['memory://elsewhere/**', 'docs/**'],
      ['a.test.ts', 'a.ts', 'a/café.md', 'app/[slug]/x.md', 'app/[slug]/y.txt'],
    ],
  ])('leaves out resources that the globs %j match', async (excludes, left) => {
    const names = ['a.ts', 'a.test.ts', 'a/café.md', 'app/[slug]/x.md', 'app/[slug]/y.txt']
    const view = viewOf(Object.fromEntries(names.map((name) => [name, `query ${name}`])))
    const { items } = await assemble(view, { ...base, query: 'query', excludes })
    expect(items.map((item) => decodeURIComponent(item.uri.slice('memory://docs/'.length))).sort()).toEqual(left)
    await expect(rank(view, { now, query: 'query', excludes: ['*[.md'] })).rejects.toMatchObject({ kind: 'invalid' })
  })

  test('has the neighbours of a match: its imports, and files beside it', async () => {
    const view = viewOf({
      'src/cursor.ts': "import { seal } from '../lib/seal.js'\nexport const cursor = seal()",
      'src/beside.ts': 'export const nothing = 1',
      'lib/seal.ts': 'export const other = 2',
      'far/away.ts': 'export const far = 3',
    })
    const ranked = await rank(view, { now, query: 'cursor' })
    expect(names(ranked.map(({ resource }) => resource))).toEqual(['src/cursor.ts', 'lib/seal.ts', 'src/beside.ts'])
    expect(ranked[1]?.explanation.factors[0]?.because).toBe('referred to #1')
  })

  test('collapses equal and nearly equal texts', async () => {
    const long = Array.from({ length: 300 }, (_, n) => `word${n}`).join(' ')
    const view = viewOf({ 'a.txt': long, 'b.txt': long, 'c.txt': `${long} tail`, 'd.txt': `word1 ${prose('else')}` })
    const { items, omitted } = await assemble(view, { ...base, budget: 8000, query: 'word1' })
    const duplicates = omitted.filter(({ reason }) => reason === 'duplicate')
    expect(duplicates).toHaveLength(2)
    expect(names(items)).toContain('d.txt')
  })

  test('has only a link to a binary or too large resource', async () => {
    const view = viewOf({
      'query.bin': { bytes: new Uint8Array([0, 1, 2]), title: 'A picture' },
      'query.txt': 'x'.repeat(2000),
    })
    const { items } = await assemble(view, { ...base, query: 'query', limits: { item: 1000 } })
    expect(items.map(({ level }) => level)).toEqual(['link', 'link'])
    expect(items.flatMap(({ notes }) => notes).join()).toMatch(/not text.*too large|too large.*not text/)
  })

  test('has windows around the matches of a resource that is too large for its share', async () => {
    const lines = Array.from({ length: 3000 }, (_, n) => (n === 1500 ? 'the needle is here' : `hay ${n}`))
    const { items, text, manifest } = await assemble(viewOf({ 'hay.log': lines.join('\n') }), {
      ...base,
      query: 'needle',
    })
    expect(items[0]?.level).toBe('windows')
    expect(text).toContain('the needle is here')
    expect(manifest[0]?.ranges).toEqual([{ start: 1501, end: 1560 }])
  })
})

describe('many candidates of a context', () => {
  test('are omitted without a read beyond twice the number of resources in the answer', async () => {
    const entries = Object.fromEntries(
      Array.from({ length: 60 }, (_, n) => [`${String(n).padStart(2, '0')}.md`, `word ${'filler '.repeat(n)}`]),
    )
    const view = viewOf(entries)
    const limits = { items: 10, detailed: 5 }
    const { items, omitted } = await assemble(view, { query: 'word', budget: 100_000, now, limits })
    expect(items).toHaveLength(10)
    expect(items.length + omitted.length).toBe(60)
    const behind = omitted.filter(({ reason, tokens }) => reason === 'count' && tokens === undefined)
    expect(behind).toHaveLength(40)
    const worst = Math.min(...items.map(({ explanation }) => explanation.score))
    for (const { explanation } of behind) expect(explanation.score).toBeLessThanOrEqual(worst)
  })

  test('are led by those from the folder that a label of the query names, such as "store:"', async () => {
    const text = 'rows are written at once'
    const view = viewOf({ 'cli/a.md': `${text} 1`, 'store/b.md': `${text} 2`, 'view/c.md': `${text} 3` })
    const { items } = await assemble(view, { query: 'store: rows are written', budget: 2000, now })
    expect(items[0]?.uri).toMatch(/store\/b\.md$/)
  })
})

describe('a test file in a context', () => {
  const pairs = [
    ['src/cursor.ts', 'test/unit/cursor.test.ts'],
    ['lib/cursor.service.js', 'lib/cursor.service.spec.js'],
    ['pkg/cursor.go', 'pkg/cursor_test.go'],
    ['app/cursor.py', 'tests/test_cursor.py'],
    ['src/main/Cursor.java', 'src/test/CursorTest.java'],
    ['src/cursor.tsx', 'src/__tests__/cursor.tsx'],
  ] as const

  test.each(pairs)('ranks below its source %s: %s', async (source, ofIt) => {
    const view = viewOf({ [source]: `${prose('seals', 5)}\ncursor`, [ofIt]: prose('seals a cursor', 5) })
    const [first, second] = await rank(view, { query: 'seals a cursor', now })
    expect([first, second].map((one) => one?.resource.uri)).toEqual([source, ofIt].map(uri))
    expect(second?.explanation.factors.at(-1)).toMatchObject({ name: 'test', because: `a test of ${uri(source)}` })
    const [asked] = await rank(view, { query: 'seals a cursor in a test', now })
    expect(asked?.resource.uri).toBe(uri(ofIt))
  })

  test('without a source among the candidates ranks by its own words', async () => {
    const view = viewOf({ 'src/paging.ts': 'a cursor', 'test/cursor.test.ts': prose('seals a cursor', 5) })
    const [first] = await rank(view, { query: 'seals a cursor', now })
    expect(first?.resource.uri).toBe(uri('test/cursor.test.ts'))
    expect(first?.explanation.factors.map(({ name }) => name)).not.toContain('test')
  })
})

describe('the explanation of a context', () => {
  test('has every factor of a resource whose facts are known, and none for unknown facts', async () => {
    const view = viewOf({
      'known.md': { text: 'query', priority: 0.5, modified: now - 30 * day },
      'plain.md': 'query else',
    })
    const ranked = await rank(view, {
      now,
      query: 'query',
      changes: (one) => (one === uri('known.md') ? 3 : undefined),
    })
    const factors = new Map(ranked.map(({ resource, explanation }) => [resource.name, explanation.factors] as const))
    const known = new Map(factors.get('known.md')?.map(({ name, value }) => [name, value]))
    expect([...known.keys()]).toEqual(['relevance', 'priority', 'recency', 'activity'])
    expect(known.get('priority')).toBe(1)
    expect(known.get('recency')).toBeCloseTo(0.9)
    expect(known.get('activity')).toBeCloseTo(1 + 0.1 * Math.log(4))
    expect(factors.get('plain.md')?.map(({ name }) => name)).toEqual(['relevance'])
    for (const { explanation } of ranked)
      expect(explanation.score).toBeCloseTo(explanation.factors.reduce((product, { value }) => product * value, 1))
  })
})

describe('a required resource', () => {
  test('that does not fit gives an error that lists it', async () => {
    const view = viewOf({ 'big.md': { text: prose('x', 500), priority: 1 }, 'small.md': 'y' })
    const failing = assemble(view, { ...base, budget: 500, pins: [uri('small.md')] })
    await expect(failing).rejects.toMatchObject({ kind: 'invalid', detail: { reason: 'budget', items: 2 } })
    await expect(failing).rejects.toThrow(/big\.md \(\d+\), memory:\/\/docs\/small\.md \(\d+\)/)
  })

  test('that is absent or hidden gives the same error', async () => {
    const catalog = createCatalog({
      mounts: [{ address: 'memory://docs', provider: memory({ 'hidden.md': 'query' }), access: () => false }],
    })
    for (const pin of ['hidden.md', 'missing.md'])
      await expect(assemble(catalog.view(someone), { ...base, pins: [uri(pin)] })).rejects.toThrow(
        `Required resources do not exist, or may not be seen: ${uri(pin)}`,
      )
  })

  test('that cannot be read at the moment gives an error that does not quote the source', async () => {
    const view: View = {
      ...viewOf({ 'a.md': 'a' }),
      read: async () => {
        throw new ResourceError('unavailable', 'db.internal')
      },
    }
    const failing = assemble(view, { ...base, pins: [uri('a.md')] })
    await expect(failing).rejects.toMatchObject({ kind: 'unavailable' })
    await expect(failing).rejects.not.toThrow(/internal/)
  })
})

describe('a search for a context', () => {
  const found = (documents: readonly string[]) =>
    JSON.stringify({
      query: 'q',
      notes: ['the index is being made'],
      hits: documents.map((document, place) => ({
        uri: document,
        document,
        mount: 'memory://docs',
        lines: { start: 3, end: 4 },
        score: 1 / (place + 1),
        snippet: { text: '', marks: [] },
      })),
    })
  const cache = { ttlMs: 0, scope: 'private' } as const
  const searching = (answer: () => string, ofC = prose('c')): View => {
    const inner = viewOf({ 'a.md': prose('a'), 'b.md': prose('b'), 'c.md': ofC })
    const status = JSON.stringify({ indexing: 'running', mounts: [{ address: 'memory://docs', state: 'current' }] })
    return {
      ...inner,
      templates: async () => ({
        items: [{ uriTemplate: 'search://all{?q,limit,audience}', name: 'Search', mimeType: foundMimeType }],
        cache,
      }),
      read: async (one, options) => {
        if (one.startsWith('search://all/status'))
          return { contents: [{ uri: one, mimeType: searchStatusMimeType, text: status }], cache }
        return one.startsWith('search://all')
          ? { contents: [{ uri: one, mimeType: foundMimeType, text: answer() }], cache }
          : inner.read(one, options)
      },
    }
  }

  test('decides which resources come first and which section is shown, and its notes are passed on', async () => {
    const view = searching(
      () => found([uri('c.md'), uri('a.md')]),
      `# One\n${prose('c', 4)}\n# Two\n${prose('d', 600)}`,
    )
    const { items, notes, manifest, text } = await assemble(view, { ...base, budget: 400, query: 'unheard' })
    expect(names(items).slice(0, 2)).toEqual(['c.md', 'a.md'])
    expect(notes).toContain('the index is being made')
    expect(manifest[0]).toMatchObject({ uri: uri('c.md'), level: 'windows', ranges: [{ start: 1, end: 5 }] })
    expect(text).toContain('Line 1 of c.')
  })

  test.each([
    ['word '.repeat(800), 1000],
    ['決済'.repeat(2000), 770],
  ])('gets only the beginning of a query that is too long for a search (%#)', async (query, length) => {
    const asked: string[] = []
    const inner = searching(() => found([uri('c.md')]))
    const view: View = {
      ...inner,
      read: (at, options) => {
        asked.push(at)
        return inner.read(at, options)
      },
    }
    const { notes } = await assemble(view, { ...base, query })
    expect(notes).toContain(`the search at search://all used only the first ${length} characters of the query`)
    const searched = asked.filter((at) => at.includes('?q='))
    expect(searched).toHaveLength(1)
    expect(searched[0]?.length).toBeLessThan(8192)
  })

  test('finds resources beyond the end of the listing', async () => {
    const view = searching(() => found([uri('c.md')]))
    const { items, notes } = await assemble(view, { ...base, query: 'unheard', limits: { listed: 1 } })
    expect(names(items)[0]).toBe('c.md')
    expect(notes.join()).toContain('only the first 1 resources')
  })

  test('that gives no valid answer is skipped, with a note', async () => {
    const view = searching(() => 'nonsense')
    const { items, notes } = await assemble(view, { ...base, query: 'line of b' })
    expect(names(items)).toContain('b.md')
    expect(notes).toContain('the search at search://all gave no usable answer')
  })
})

test('a pin of a folder is refused with the slash at its end, and without the slash leaves out excluded resources', async () => {
  const view = viewOf({ 'dir/in.md': 'shown', 'dir/out.md': 'hidden' })
  await expect(assemble(view, { ...base, pins: [uri('dir/')] })).rejects.toThrow('a pin must not be a folder')
  const { text } = await assemble(view, { ...base, pins: [uri('dir')], excludes: [uri('dir/out.md')] })
  expect(text).toContain('shown')
  expect(text).not.toContain('hidden')
})

test('a context ignores invalid modification times', async () => {
  const inner = viewOf({ 'a.md': 'query' })
  const view: View = {
    ...inner,
    list: async (query) => {
      const page = await inner.list(query)
      return { ...page, items: page.items.map((item) => ({ ...item, modified: 1e30 })) }
    },
  }
  const { manifest, tokens } = await assemble(view, { ...base, query: 'query', format: 'mcp' })
  expect(tokens).toBeGreaterThan(0)
  expect(manifest[0]).not.toHaveProperty('modified')
})

test('all invalid options of a context are reported, each with its fault', async () => {
  const failing = assemble(viewOf({}), { budget: 1.5, now: Number.NaN, reserve: 2, limits: { items: 1000 } })
  await expect(failing).rejects.toMatchObject({ kind: 'invalid', detail: { reason: 'argument' } })
  await expect(failing).rejects.toThrow(/budget must .*; reserve must .*; now must .*; limits must /)
})

test('a context reads at most the configured number of resources at once, and says how many were not read', async () => {
  const inner = viewOf(Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`${n}.md`, `query ${n}`])))
  let running = 0
  let most = 0
  const seen = new Set<string>()
  const view: View = {
    ...inner,
    read: async (one, options) => {
      seen.add(one)
      most = Math.max(most, ++running)
      await new Promise(setImmediate)
      running--
      return inner.read(one, options)
    },
  }
  const { notes } = await assemble(view, { ...base, query: 'query', limits: { concurrency: 3, read: 20, detailed: 5 } })
  expect(most).toBe(3)
  expect(seen.size).toBeLessThanOrEqual(30)
  expect(notes.join()).toContain('the texts of 40 resources were not read')
})
