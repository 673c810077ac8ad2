import { describe, expect, test } from 'vitest'
import { compileAccess } from '../../src/core/access.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { notFound, ResourceError } from '../../src/core/errors.ts'
import { completePaging, pageLength } from '../../src/core/paging.ts'
import type { Principal, Provider } from '../../src/core/provider.ts'
import { compileTemplate } from '../../src/core/template.ts'
import type { Page, Resource, View } from '../../src/core/view.ts'
import { resourcesToWire } from '../../src/server/protocol/wire.ts'
import { type Memory, memory } from '../support/memory.ts'

const alice: Principal = { id: 'alice', roles: ['reader'] }
const bob: Principal = { id: 'bob', roles: ['reader'] }
const admin: Principal = { id: 'root', roles: ['admin'] }
const address = 'file:///r'

const many = (count: number, name = (i: number) => `f${String(i).padStart(6, '0')}`) =>
  memory(Object.fromEntries(Array.from({ length: count }, (_, i) => [name(i), String(i)])))

async function allPages(view: View, change?: (page: Page<Resource>) => void): Promise<Page<Resource>[]> {
  const pages: Page<Resource>[] = []
  let cursor: string | undefined
  do {
    const page = await view.list(cursor === undefined ? {} : { cursor })
    pages.push(page)
    change?.(page)
    cursor = page.nextCursor
  } while (cursor !== undefined && pages.length < 10_000)
  return pages
}

const uris = (pages: readonly Page<Resource>[]) => pages.flatMap((page) => page.items.map((item) => item.uri))

describe('a listing of a catalog', () => {
  // Issue 16, item 26: pages grow to 16,000, so that 64 of them hold a million entries.
  test('has pages that grow from 1,024 to 16,000 entries, with every entry once and in order', async () => {
    const view = createCatalog({ mounts: [{ address, provider: many(50_000) }] }).view(alice)
    const pages = await allPages(view)
    expect(pages.map((page) => page.items.length)).toEqual([1024, 16_000, 16_000, 16_000, 976])
    const all = uris(pages)
    expect(new Set(all).size).toBe(50_000)
    expect(all).toEqual([...all].sort())
  })

  test('reaches a million entries in the 64 pages that the client of SDK version 2 follows', () => {
    const paging = completePaging()
    const reached = Array.from({ length: 64 }, (_, page) => pageLength(paging, page)).reduce((sum, one) => sum + one)
    expect(reached).toBe(1024 + 63 * 16_000)
    expect(reached).toBeGreaterThanOrEqual(1_000_000)
  })

  test.each(['2026-07-28', '2025-11-25', '2024-11-05'] as const)(
    'keeps the JSON of a page below 4 MiB in revision %s, whatever metadata its entries have',
    async (revision) => {
      const odd = 'あ"\\\u0007é'.repeat(20)
      const facts = (i: number) => ({
        text: '',
        title: odd,
        description: `${odd}${i}`,
        mimeType: 'text/markdown',
        size: 123_456_789,
        modified: 1_700_000_000_000 + i,
        version: `"${odd}"`,
        priority: 0.123_456_789_012_345,
        audience: ['user', 'assistant'] as const,
        icons: [{ src: `https://example.org/${'i'.repeat(200)}.png`, mimeType: 'image/png', sizes: ['48x48'] }],
        meta: { 'example.org/note': odd },
      })
      const provider = memory(
        Object.fromEntries(Array.from({ length: 9000 }, (_, i) => [`folder "é"/名${i}`, facts(i)])),
      )
      const pages = await allPages(createCatalog({ mounts: [{ address, provider }] }).view(alice))
      const lengths = pages.map((page) => Buffer.byteLength(JSON.stringify(resourcesToWire(page, revision).resources)))
      expect(uris(pages)).toHaveLength(9000)
      expect(Math.max(...lengths)).toBeLessThanOrEqual(4 * 1024 * 1024)
      // The bound is close: pages are not much shorter than they may be.
      if (revision === '2026-07-28') expect(Math.max(...lengths)).toBeGreaterThan(3 * 1024 * 1024)
    },
  )

  test('covers all mounts in the order of their addresses', async () => {
    const mounts = ['git://b', 'file:///z', 'file:///a'].map((at) => ({ address: at, provider: many(700) }))
    const all = uris(await allPages(createCatalog({ mounts }).view(alice)))
    expect(all).toHaveLength(2100)
    expect([0, 700, 1400].map((i) => all[i])).toEqual(['file:///a/f000000', 'file:///z/f000000', 'git://b/f000000'])
  })

  test('has unchanged entries exactly once while others change, and continues after the last entry of a page is deleted', async () => {
    const provider = many(2000)
    const view = createCatalog({ mounts: [{ address, provider }] }).view(alice)
    let turn = 0
    const pages = await allPages(view, (page) => {
      const last = page.items.at(-1)?.uri.slice(`${address}/`.length) ?? ''
      // The entry that the cursor stands for goes, one comes before it and one behind it.
      provider.entries.delete(last)
      provider.entries.set(`a-new-${turn}`, { text: '' })
      provider.entries.set(`z-new-${turn++}`, { text: '' })
    })
    const stable = uris(pages).filter((uri) => !uri.includes('new'))
    expect(new Set(stable).size).toBe(stable.length)
    expect(stable).toHaveLength(2000)
  })

  test('has pages of a limited number of bytes', async () => {
    const provider = memory(
      Object.fromEntries(
        Array.from({ length: 100 }, (_, i) => [`f${i}`, { text: '', description: 'x'.repeat(10_000) }]),
      ),
    )
    const view = createCatalog({ mounts: [{ address, provider }], pages: { bytes: 100_000 } }).view(alice)
    const pages = await allPages(view)
    expect(uris(pages)).toHaveLength(100)
    for (const page of pages) expect(JSON.stringify(page.items).length).toBeLessThan(110_000)
  })

  test('reads no more of a source than a page needs', async () => {
    const provider = many(100_000)
    const view = createCatalog({ mounts: [{ address, provider }] }).view(alice)
    await view.list()
    expect(provider.calls.yielded).toBeLessThan(1034)
  })

  test('is the same for the same principal, page for page and cursor for cursor', async () => {
    const catalog = createCatalog({ mounts: [{ address, provider: many(4000) }] })
    expect(await allPages(catalog.view(alice))).toEqual(await allPages(catalog.view({ ...alice })))
  })

  test('refuses an unknown cursor, and the cursor of another principal or listing', async () => {
    const catalog = createCatalog({ mounts: [{ address, provider: many(4000) }] })
    const { nextCursor = '' } = await catalog.view(alice).list()
    for (const cursor of ['', 'junk', nextCursor.slice(1), `${nextCursor}A`])
      await expect(catalog.view(alice).list({ cursor })).rejects.toMatchObject({
        kind: 'invalid',
        detail: { reason: 'cursor' },
      })
    await expect(catalog.view(bob).list({ cursor: nextCursor })).rejects.toMatchObject({ detail: { reason: 'cursor' } })
    await expect(catalog.view({ ...alice, roles: [] }).list({ cursor: nextCursor })).rejects.toMatchObject({
      kind: 'invalid',
    })
    await expect(catalog.view(alice).templates({ cursor: nextCursor })).rejects.toMatchObject({ kind: 'invalid' })
    await expect(catalog.view(alice).directory({ uri: address, cursor: nextCursor })).rejects.toMatchObject({
      kind: 'invalid',
    })
  })

  test('continues on a replica that shares the secret, and after a mount that was removed', async () => {
    const secret = Buffer.from('shared')
    const mounts = ['file:///a', 'file:///b', 'file:///c'].map((at) => ({ address: at, provider: many(1100) }))
    const { nextCursor } = await createCatalog({ mounts, secret }).view(alice).list()
    const replica = createCatalog({ mounts: mounts.slice(1), secret }).view(alice)
    const page = await replica.list({ cursor: nextCursor ?? '' })
    expect(page.items[0]?.uri).toBe('file:///b/f000000')
  })

  test('leaves out a source that does not answer, and names it', async () => {
    const broken: Memory = {
      ...many(1),
      async *list() {
        yield* []
        throw new ResourceError('unavailable', 'connection refused to 10.0.0.1')
      },
    }
    const mounts = [
      { address: 'file:///a', provider: broken },
      { address: 'file:///b', provider: many(3) },
    ]
    const page = await createCatalog({ mounts }).view(alice).list()
    expect(page.items).toHaveLength(3)
    expect(page.unavailable).toEqual(['file:///a'])
    await expect(
      createCatalog({ mounts: mounts.slice(0, 1) })
        .view(alice)
        .list(),
    ).rejects.toMatchObject({ kind: 'unavailable' })
  })
})

describe('access in a catalog', () => {
  const rules = [
    { allow: ['admin'] },
    { allow: ['reader'], match: ['public/**'] },
    { deny: ['reader'], match: '**/*.key' },
  ]
  const provider = memory({
    'private/plan.md': 'plan',
    'public/a.txt': 'a',
    'public/deep/b.txt': 'b',
    'public/server.key': 'k',
    'top.txt': 't',
  })
  const catalog = createCatalog({ mounts: [{ address, provider, access: compileAccess(rules) }] })

  test('shows each principal its own resources', async () => {
    expect(uris(await allPages(catalog.view(admin)))).toHaveLength(5)
    expect(uris(await allPages(catalog.view(alice)))).toEqual(['file:///r/public/a.txt', 'file:///r/public/deep/b.txt'])
    expect(uris(await allPages(catalog.view({ id: 'x', roles: [] })))).toEqual([])
  })

  test('makes denied resources look exactly like absent ones', async () => {
    const outcome = async (uri: string, principal = alice) => {
      try {
        return await catalog.view(principal).read(uri)
      } catch (error) {
        if (!(error instanceof ResourceError)) return error
        // Of what is not there, the rest stays in the log.
        return error.kind === 'not-found' ? { kind: error.kind } : { kind: error.kind, detail: error.detail }
      }
    }
    const absent = await outcome('file:///r/none.txt')
    expect(absent).toEqual({ kind: 'not-found' })
    for (const uri of ['top.txt', 'private/plan.md', 'private/', 'private', 'public/server.key'])
      expect(await outcome(`file:///r/${uri}`)).toEqual(absent)
    // A query that nothing declares is refused, whatever it is asked of.
    const judged = await outcome('file:///r/public/none?x=1')
    expect(judged).toMatchObject({ kind: 'invalid', detail: { reason: 'query' } })
    for (const uri of ['top.txt', 'public/server.key', 'private/', 'none'])
      expect(await outcome(`file:///r/${uri}?x=1`)).toEqual(judged)
    expect(await outcome('file:///r/top.txt?x=1', { id: 'x', roles: [] })).toEqual(absent)
    expect(await outcome('file:///elsewhere/a')).toEqual(absent)
  })

  test('asks the source for an absent path instead of a denied one', async () => {
    const asked: string[] = []
    const spied: Provider = {
      ...provider,
      list: (query, context) => {
        asked.push(query.prefix ?? '')
        return provider.list(query, context)
      },
      read: (request, context) => {
        asked.push(request.path)
        return provider.read(request, context)
      },
      stat: async (path, context) => {
        asked.push(path)
        return (await provider.stat?.(path, context)) ?? Promise.reject(notFound())
      },
    }
    const view = createCatalog({ mounts: [{ address, provider: spied, access: compileAccess(rules) }] }).view(alice)
    const shapes = []
    for (const path of ['private/plan.md', 'public/server.key', 'public/none.key']) {
      asked.length = 0
      await expect(view.read(`file:///r/${path}`)).rejects.toMatchObject({ kind: 'not-found' })
      expect(asked).not.toContain(path)
      expect(asked.join('\n')).not.toContain('private')
      shapes.push(asked.length)
    }
    asked.length = 0
    await expect(view.read('file:///r/public/none.txt')).rejects.toThrow()
    expect(shapes).toEqual([asked.length, asked.length, asked.length])
    // Nothing at all of a mount that is not there for whoever asks.
    asked.length = 0
    const nobody = createCatalog({ mounts: [{ address, provider: spied, access: compileAccess(rules) }] }).view({
      id: 'x',
      roles: [],
    })
    await expect(nobody.read('file:///r/top.txt')).rejects.toMatchObject({ kind: 'not-found' })
    await nobody.list()
    await nobody.mounts()
    expect(asked).toEqual([])
  })

  test('is applied in directories, completion, mounts and templates', async () => {
    const view = catalog.view(alice)
    const { items } = await view.directory({ uri: 'file:///r/' })
    expect(items.map((item) => item.uri)).toEqual(['file:///r/public/'])
    const inside = await view.directory({ uri: 'file:///r/public' })
    expect(inside.items.map((item) => item.name)).toEqual(['a.txt', 'deep'])
    const complete = (value: string, who = alice) =>
      catalog.view(who).complete({ uriTemplate: 'file:///r/{+path}', argument: { name: 'path', value } })
    expect((await complete('p')).values).toEqual(['public/'])
    expect((await complete('public/s')).values).toEqual([])
    expect((await complete('private/')).values).toEqual([])
    expect((await complete('p', admin)).values).toEqual(['private/', 'public/'])
    const nobody = catalog.view({ id: 'x', roles: [] })
    expect(await nobody.mounts()).toEqual([])
    expect((await nobody.templates()).items).toEqual([])
    expect((await view.mounts()).map((mount) => mount.uri)).toEqual([address])
  })

  test('marks no answer of a restricted mount as public', async () => {
    const cache = { ttlMs: 1000, scope: 'public' } as const
    const open = createCatalog({ mounts: [{ address, provider, cache }] }).view(alice)
    const closed = createCatalog({ mounts: [{ address, provider, cache, access: compileAccess(rules) }] }).view(admin)
    expect((await open.list()).cache).toEqual(cache)
    expect((await closed.list()).cache.scope).toBe('private')
    expect((await closed.read('file:///r/top.txt')).cache.scope).toBe('private')
  })

  test('skips very many denied entries in few pages, whose cursors differ and contain no denied name', async () => {
    const entries = Object.fromEntries(
      Array.from({ length: 5000 }, (_, i) => [`hidden/${String(i).padStart(5, '0')}`, '']),
    )
    const guarded = createCatalog({
      mounts: [{ address, provider: memory({ ...entries, 'public/last': 'x' }), access: compileAccess(rules) }],
      pages: { scan: 1000 },
    })
    const pages = await allPages(guarded.view(alice))
    expect(uris(pages)).toEqual(['file:///r/public/last'])
    expect(pages.length).toBeLessThan(8)
    expect(new Set(pages.map((page) => page.nextCursor)).size).toBe(pages.length)
    for (const { nextCursor } of pages)
      expect(Buffer.from(nextCursor ?? '', 'base64url').toString('latin1')).not.toContain('hidden')
  })
})

describe('a read in a catalog', () => {
  const provider = memory(
    {
      'README.md': { text: '# Hello', mimeType: 'text/markdown', size: 7, modified: 0, version: 'v1' },
      'src/[id].tsx': 'id',
      'src/a.ts': { text: 'a', size: 1 },
      'src/lib/b.ts': 'b',
      'src/日本.md': 'ja',
    },
    [
      { template: '{+path}', name: 'All' },
      { template: '{+path}{?lines}', name: 'Part' },
    ],
  )
  const view = createCatalog({ mounts: [{ address, provider }] }).view(alice)

  test('answers with the URI of the request, in its spelling', async () => {
    for (const uri of ['file:///r/src/[id].tsx', 'file:///r/src/%5Bid%5D.tsx', 'file:///r/%73rc/[id%5D.tsx'])
      expect((await view.read(uri)).contents).toEqual([{ uri, name: '[id].tsx', text: 'id' }])
    expect((await view.read('file:///r/src/日本.md')).contents[0]).toMatchObject({ text: 'ja' })
    expect((await view.list()).items.map((item) => item.uri)).toContain('file:///r/src/%5Bid%5D.tsx')
  })

  test('of a directory URI gives its listing as one text', async () => {
    const { contents } = await view.read('file:///r/')
    expect(contents).toEqual([
      {
        uri: 'file:///r/',
        name: 'r',
        mimeType: 'inode/directory',
        text: 'README.md  7 bytes  1970-01-01T00:00Z  text/markdown\nsrc/  directory\n',
      },
    ])
  })

  test('of a directory without its slash gives its children, spelled below the requested URI', async () => {
    const { contents } = await view.read('file:///r/%73rc')
    expect(
      contents.map(({ uri, mimeType, ...rest }) => [uri, 'text' in rest ? rest.text : undefined, mimeType]),
    ).toEqual([
      ['file:///r/%73rc/%5Bid%5D.tsx', 'id', undefined],
      ['file:///r/%73rc/a.ts', 'a', undefined],
      ['file:///r/%73rc/lib', '', 'inode/directory'],
      ['file:///r/%73rc/%E6%97%A5%E6%9C%AC.md', 'ja', undefined],
    ])
  })

  test('of a large directory gives files whole up to 256 KiB, then their beginnings, marked', async () => {
    const big = 'x'.repeat(100_000)
    const files = Object.fromEntries(['a', 'b', 'c', 'd'].map((name) => [`d/${name}`, { text: big, size: big.length }]))
    const { contents } = await createCatalog({ mounts: [{ address, provider: memory(files) }] })
      .view(alice)
      .read('file:///r/d')
    expect(contents.map((content) => ('text' in content ? content.text.length : 0))).toEqual([
      100_000, 100_000, 62_144, 256,
    ])
    expect(contents.map((content) => content.meta)).toEqual([
      undefined,
      undefined,
      { 'dev.hikidashi/truncated': true, 'dev.hikidashi/size': 100_000 },
      { 'dev.hikidashi/truncated': true, 'dev.hikidashi/size': 100_000 },
    ])
  })

  test('accepts a query only if a template declares it', async () => {
    expect((await view.read('file:///r/src/a.ts?lines=1-2')).contents).toHaveLength(1)
    for (const query of ['x=1', 'lines=1&x=1', 'lines=1&lines=2', ''])
      await expect(view.read(`file:///r/src/a.ts?${query}`)).rejects.toMatchObject({ kind: 'invalid' })
  })

  test.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])('gives not-found for %s', async (name) => {
    await expect(view.read(`file:///r/${name}`)).rejects.toMatchObject({ kind: 'not-found' })
    await expect(view.read(`${name.toLowerCase().replaceAll('_', 'x')}://a/b`)).rejects.toMatchObject({
      kind: 'not-found',
    })
  })

  test('may be cached for a year if the provider says that the content never changes', async () => {
    const fixed: Provider = { ...memory({ a: 'a' }), read: async () => [{ text: 'a', immutable: true }] }
    const { cache } = await createCatalog({ mounts: [{ address, provider: fixed }] })
      .view(alice)
      .read('file:///r/a')
    expect(cache).toEqual({ ttlMs: 31_536_000_000, scope: 'private' })
  })

  test('fails if it is already cancelled', async () => {
    await expect(view.read('file:///r/README.md', { signal: AbortSignal.abort() })).rejects.toThrow()
  })
})

describe('directories in a catalog', () => {
  const entries = Object.fromEntries(
    Array.from({ length: 1200 }, (_, d) => Array.from({ length: 40 }, (_, f) => [`dir${d}/f${f}`, ''])).flat(),
  )
  const provider = memory({ ...entries, 'dir0-a': '', 'dir0.txt': '', 'odd/\u{10ffff}\u{10ffff}x/y': '', 'odd/z': '' })
  const view = createCatalog({ mounts: [{ address, provider }] }).view(alice)

  test('are listed in pages, without a read of every entry below them', async () => {
    const before = provider.calls.yielded
    const names: string[] = []
    let cursor: string | undefined
    do {
      const page = await view.directory({ uri: address, ...(cursor === undefined ? {} : { cursor }) })
      names.push(...page.items.map((item) => item.uri.slice(address.length + 1)))
      cursor = page.nextCursor
    } while (cursor !== undefined)
    expect(names).toHaveLength(1203)
    expect(new Set(names).size).toBe(1203)
    expect(names.slice(0, 3)).toEqual(['dir0-a', 'dir0.txt', 'dir0/'])
    expect(provider.calls.yielded - before).toBeLessThan((1200 * 40) / 2)
  })

  test('with names that sort last are listed', async () => {
    const { items } = await view.directory({ uri: 'file:///r/odd' })
    expect(items.map((item) => item.name)).toEqual(['z', '\u{10ffff}\u{10ffff}x'])
  })

  test('give different errors for a file and for an absent path', async () => {
    await expect(view.directory({ uri: 'file:///r/dir0.txt' })).rejects.toMatchObject({
      detail: { reason: 'not-a-directory' },
    })
    await expect(view.directory({ uri: 'file:///r/nothing' })).rejects.toMatchObject({ kind: 'not-found' })
  })

  test('are not served in place of a listed entry that the source does not find', async () => {
    const source: Provider = {
      list: async function* () {
        yield { path: 'gone' }
      },
      read: async () => {
        throw notFound('the source answers 404')
      },
    }
    const all = createCatalog({ mounts: [{ address: 'web://w', provider: source }] }).view({ id: 'x', roles: [] })
    await expect(all.read('web://w/gone')).rejects.toMatchObject({ kind: 'not-found' })
  })
})

describe('mounting in a catalog', () => {
  test.each([
    ['file:///a', 'file:///a'],
    ['file:///a', 'file:///a/b'],
    ['file:///a/b', 'file:///a'],
    ['file:///a/', 'file:///a'],
    ['git://x', 'git://x/y/z'],
    ['file:///%61', 'file:///a/b'],
  ])('refuses %s beside %s', (one, other) => {
    const mounts = [one, other].map((at) => ({ address: at, provider: many(1) }))
    expect(() => createCatalog({ mounts })).toThrow('overlap')
  })

  test('accepts addresses that share only a beginning', () => {
    const mounts = ['file:///a', 'file:///ab', 'git://a', 'git://ab/c', 'git://ab/cd'].map((at) => ({
      address: at,
      provider: many(1),
    }))
    expect(() => createCatalog({ mounts })).not.toThrow()
  })

  test.each(['file:///a?x', 'file://u@h/a', '/a', 'file:///a/../b'])('refuses the address %s', (at) => {
    expect(() => createCatalog({ mounts: [{ address: at, provider: many(1) }] })).toThrow()
  })
})

describe('completion of names with #, ? and %', () => {
  const names = ['100%.md', 'a#b.md', 'q?x=1', '%41.md', '50%41', 'd%20/in#side.md', '[id].tsx', '%', '%25']
  const provider = memory(Object.fromEntries(names.map((name) => [name, `text of ${name}`])))
  const knowing = { ...provider, complete: async () => ({ values: names, total: names.length }) }
  const denying = compileAccess([{ allow: ['*'] }, { deny: ['*'], match: 'A.md' }])

  test.each([
    ['from the tree', { address, provider }],
    ['by a provider', { address, provider: knowing }],
    ['by a provider, with rules', { address, provider: knowing, access: denying }],
  ])('gives values that expand to the URI of the resource, %s', async (_, mount) => {
    const templates = [
      { template: '{+path}', name: 'all' },
      { template: '{path}', name: 'one' },
    ]
    const view = createCatalog({
      mounts: [{ ...mount, provider: { ...mount.provider, templates: async () => templates } }],
    }).view(alice)
    for (const { template } of templates) {
      const uriTemplate = `${address}/${template}`
      const compiled = compileTemplate(uriTemplate)
      const valuesFor = async (value: string) =>
        (await view.complete({ uriTemplate, argument: { name: 'path', value } })).values
      const found = await valuesFor('')
      for (const name of names) {
        if (template === '{path}' && name.includes('/')) continue
        const text = `text of ${name}`
        const texts = async (values: readonly string[]) =>
          Promise.all(
            values
              .filter((value) => template === '{+path}' || !value.includes('/'))
              .map(async (path) =>
                (await view.read(compiled.expand({ path }))).contents.map((one) => 'text' in one && one.text).join(),
              ),
          )
        const direct = name.includes('/') && mount.provider === provider ? await valuesFor(name) : found
        expect(await texts(direct.filter((value) => !value.endsWith('/'))), name).toContain(text)
        // What was typed as the name, or as a value that was given before, leads there again.
        if (mount.provider === provider)
          for (const typed of [name, compiled.valueFor('path', name)])
            expect(await texts(await valuesFor(typed)), typed).toContain(text)
      }
    }
  })
})

describe('completion in a catalog', () => {
  const provider = memory(
    {
      'src/main.ts': '',
      'src/make/x': '',
      'src/other.ts': '',
      'shop/orders/schema': '',
      'shop/order items/schema': '',
      'src/ma': '',
    },
    [
      { template: '{+path}', name: 'All' },
      { template: '{schema}/{table}/schema', name: 'Schema' },
      { template: '{+path}{?lines}', name: 'Part' },
    ],
  )
  const view = createCatalog({ mounts: [{ address, provider }] }).view(alice)
  const complete = async (template: string, name: string, value: string, filled: Record<string, string> = {}) =>
    (
      await view.complete({
        uriTemplate: `${address}/${template}`,
        argument: { name, value },
        arguments: new Map(Object.entries(filled)),
      })
    ).values

  test('descends into directories, whose values end in a slash', async () => {
    expect(await complete('{+path}', 'path', '')).toEqual(['shop/', 'src/'])
    expect(await complete('{+path}', 'path', 'src')).toEqual(['src/'])
    expect(await complete('{+path}', 'path', 'src/ma')).toEqual(['src/ma', 'src/main.ts', 'src/make/'])
    expect(await complete('{+path}', 'path', 'nope/')).toEqual([])
    expect(await complete('{+path}', 'path', '../')).toEqual([])
    expect(await complete('{+path}', 'path', '\ud800')).toEqual([])
  })

  test('uses the arguments that are already filled in', async () => {
    expect(await complete('{schema}/{table}/schema', 'schema', 's')).toEqual(['shop', 'src'])
    expect(await complete('{schema}/{table}/schema', 'table', 'o', { schema: 'shop' })).toEqual([
      'order items',
      'orders',
    ])
    expect(await complete('{schema}/{table}/schema', 'table', '', { schema: 'none' })).toEqual([])
  })

  test('is empty for a query variable and for an unknown variable, and ignores arguments with unknown names', async () => {
    expect(await complete('{+path}{?lines}', 'lines', '1')).toEqual([])
    expect(await complete('{+path}', 'other', '')).toEqual([])
    expect(await complete('{+path}', 'path', 'src/ma', { __proto__: 'x', constructor: 'y' })).toHaveLength(3)
  })

  test('of an unknown template is an error', async () => {
    await expect(complete('{nothing}', 'nothing', '')).rejects.toMatchObject({ detail: { reason: 'unknown-name' } })
  })

  test('gives at most 100 values and says that there are more', async () => {
    const catalog = createCatalog({ mounts: [{ address, provider: many(150) }] })
    const { values, hasMore, total } = await catalog
      .view(alice)
      .complete({ uriTemplate: `${address}/{+path}`, argument: { name: 'path', value: 'f' } })
    expect([values.length, hasMore, total]).toEqual([100, true, undefined])
  })
})
