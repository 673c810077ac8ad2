import { describe, expect, test } from 'vitest'
import { createProfileFinder } from '../../src/config/profiles.ts'
import { compileAccess } from '../../src/core/access.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import type { Entry, Principal, Provider } from '../../src/core/provider.ts'
import type { View } from '../../src/core/view.ts'
import { memory } from '../support/memory.ts'

const alice: Principal = { id: 'alice', roles: ['reader'] }
const client = (name: string) => ({ name, version: '1' })

async function urisOf(view: View): Promise<{ readonly uris: readonly string[]; readonly pages: number }> {
  const uris: string[] = []
  let cursor: string | undefined
  let pages = 0
  do {
    const page = await view.list(cursor === undefined ? {} : { cursor })
    uris.push(...page.items.map(({ uri }) => uri))
    cursor = page.nextCursor
    pages++
  } while (cursor !== undefined)
  return { uris, pages }
}

/** Settings before files in the alphabet, and more files than Codex takes. */
function world(pages = {}, count = 2500) {
  const names = Array.from({ length: count }, (_, i) => `src/f${String(i).padStart(5, '0')}`)
  const files = memory({
    ...Object.fromEntries(names.map((name) => [name, name])),
    'z.md': { text: '', priority: 0.9 },
    'src/last': { text: '', priority: 0.8 },
    'a-boring': { text: '', priority: 0.1 },
    'secret.md': { text: '', priority: 1 },
  })
  const settings = memory(Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`s${i}`, ''])))
  const access = compileAccess([{ allow: ['*'] }, { deny: ['*'], match: 'secret.md' }])
  const catalog = createCatalog({
    mounts: [
      { address: 'config://app', provider: settings, derived: true },
      { address: 'file:///app', provider: files, access },
    ],
    secret: new Uint8Array(32),
    pages,
  })
  return { catalog, files, profileOf: createProfileFinder(undefined, catalog) }
}

const viewOf = (
  catalog: ReturnType<typeof world>,
  name: string,
  config?: Parameters<typeof createProfileFinder>[0],
) => {
  const profile = createProfileFinder(config, catalog.catalog)(client(name))
  return { profile, view: profile.view?.(alice) ?? catalog.catalog.view(alice) }
}

describe('the list of resources for a host:', () => {
  test('Codex gets 2,000 resources: those of high priority, then files, and no settings', async () => {
    const { uris } = await urisOf(viewOf(world(), 'codex-mcp-client').view)
    expect(uris).toHaveLength(2000)
    expect(uris.slice(0, 3)).toEqual(['file:///app/z.md', 'file:///app/src/last', 'file:///app/src/f00000'])
    expect(uris.filter((uri) => uri.startsWith('config:'))).toEqual([])
    expect(uris).not.toContain('file:///app/secret.md')
    expect(uris).not.toContain('file:///app/a-boring')
  })

  test('Gemini CLI gets 300 resources, and tools for the rest', async () => {
    const { profile, view } = viewOf(world(), 'gemini-cli-mcp-client')
    expect((await urisOf(view)).uris).toHaveLength(300)
    expect(profile.tools).toBe(true)
    expect(profile.note).toContain('300 most important')
  })

  test('Claude Code gets 20 pages, files first', async () => {
    const { profile, view } = viewOf(world({ first: 10, most: 50 }), 'claude-code')
    const { uris, pages } = await urisOf(view)
    expect(pages).toBe(20)
    expect(uris).toHaveLength(10 + 19 * 50)
    expect(uris.every((uri) => uri.startsWith('file:'))).toBe(true)
    expect(profile.note).toContain('20 pages')
  })

  test('a host with a limit can read, browse, complete and find by template the resources that are not listed', async () => {
    const { view } = viewOf(world(), 'codex-mcp-client')
    expect((await view.read('config://app/s499')).contents).toHaveLength(1)
    expect((await view.directory({ uri: 'config://app/' })).items.length).toBeGreaterThan(100)
    expect((await view.templates()).items).toHaveLength(2)
    const argument = { name: 'path', value: 's49' }
    expect((await view.complete({ uriTemplate: 'config://app/{+path}', argument })).values).toContain('s499')
  })

  test('hosts without a limit get all resources, and no note', async () => {
    const { profile, view } = viewOf(world(), 'some-host')
    expect((await urisOf(view)).uris).toHaveLength(3003)
    // A host that is not known has the tools to read with.
    expect(profile).toEqual({ tools: true })
    expect(createProfileFinder(undefined, world().catalog)(undefined)).toEqual({ tools: true })
  })

  test('the operator can change or remove a limit', async () => {
    const listed = async (list: { readonly most?: number | 'all' }) => {
      const { view } = viewOf(world(), 'codex-mcp-client', { profiles: [{ name: 'codex*', list }] })
      return (await urisOf(view)).uris.length
    }
    expect(await listed({ most: 7 })).toBe(7)
    expect(await listed({ most: 'all' })).toBe(3003)
    expect(await listed({})).toBe(2000)
  })
})

describe('the selected resources for a limited list', () => {
  test('are the same between pages and connections, and on every replica with the secret; their cursors are refused for another list or caller', async () => {
    // Bytes end the pages: what one does not hold comes on the next.
    const bounded = { bytes: 20_000 }
    const one = await urisOf(viewOf(world(bounded), 'codex-mcp-client').view)
    const whole = await urisOf(viewOf(world(), 'codex-mcp-client').view)
    expect(one.pages).toBeGreaterThan(5)
    expect(one.uris).toEqual(whole.uris)
    const first = await viewOf(world(bounded), 'codex-mcp-client').view.list()
    const cursor = first.nextCursor ?? ''
    const next = await viewOf(world(bounded), 'codex-mcp-client').view.list({ cursor })
    expect(next.items.map(({ uri }) => uri)).toEqual(
      whole.uris.slice(first.items.length, first.items.length + next.items.length),
    )
    // A cursor is good for its listing and its caller alone.
    await expect(world(bounded).catalog.view(alice).list({ cursor })).rejects.toMatchObject({
      detail: { reason: 'cursor' },
    })
    const bob = createProfileFinder(
      undefined,
      world(bounded).catalog,
    )(client('codex-mcp-client')).view?.({ id: 'bob', roles: [] })
    await expect(bob?.list({ cursor })).rejects.toMatchObject({ detail: { reason: 'cursor' } })
  })

  test('do not depend on hidden resources', async () => {
    const hidden = Object.fromEntries(
      Array.from({ length: 5000 }, (_, i) => [`hidden/h${i}`, { text: '', priority: 1 }]),
    )
    const shown = Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`shown/s${i}`, '']))
    const access = compileAccess([{ allow: ['*'] }, { deny: ['*'], match: 'hidden/**' }])
    const listed = async (entries: Parameters<typeof memory>[0]) => {
      const catalog = createCatalog({ mounts: [{ address: 'mem://m', provider: memory(entries), access }] })
      return (await urisOf(catalog.narrowed({ most: 300 })(alice))).uris
    }
    expect(await listed({ ...hidden, ...shown })).toEqual(await listed(shown))
  })

  test('are chosen from at most 20,000 entries, with a share for each mount', async () => {
    let asked = 0
    const endless: Provider = {
      async *list({ after }): AsyncGenerator<Entry> {
        for (let i = after === undefined ? 0 : Number(after) + 1; i < 1_000_000; i++) {
          asked++
          yield { path: String(i).padStart(7, '0') }
        }
      },
      read: async () => [{ text: '' }],
    }
    const small = memory({ important: { text: '', priority: 1 }, other: '' })
    const catalog = createCatalog({
      mounts: [
        { address: 'a://endless', provider: endless },
        { address: 'b://endless', provider: endless, derived: true },
        { address: 'c://small', provider: small },
      ],
    })
    const { items } = await catalog.narrowed({ most: 100 })(alice).list()
    expect(asked).toBeLessThanOrEqual(20_000)
    expect(items).toHaveLength(100)
    expect(items.slice(0, 2).map(({ uri }) => uri)).toEqual(['c://small/important', 'a://endless/0000000'])
  })
})
