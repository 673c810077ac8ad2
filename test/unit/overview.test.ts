import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type MountedCatalog, openCatalog } from '../../src/config/build.ts'
import { loadConfig } from '../../src/config/load.ts'
import { withOverview } from '../../src/config/overview.ts'
import { planConfig, searchesOf } from '../../src/config/plan.ts'
import { listAll } from '../../src/context/searched.ts'
import { defaultLimits } from '../../src/context/types.ts'
import { overviewUri } from '../../src/core/meta.ts'
import { createOpeningViews, createPendingOpen } from '../../src/core/opening.ts'
import type { Principal } from '../../src/core/provider.ts'
import type { View, ViewChange } from '../../src/core/view.ts'
import { createFolder, type Folder } from '../support/folder.ts'

const guest: Principal = { id: 'guest', roles: [] }
const analyst: Principal = { id: 'analyst', roles: ['analyst'] }

let folder: Folder
let state = ''
let catalog: MountedCatalog | undefined
beforeEach(() => {
  folder = createFolder()
  folder.write({ 'docs/a.md': '# A\n', 'docs/b.md': '# B\n', 'secret/c.md': '# C\n' })
  state = mkdtempSync(join(tmpdir(), 'hikidashi-overview-'))
})
afterEach(async () => {
  await catalog?.close()
  catalog = undefined
  folder.remove()
  rmSync(state, { recursive: true })
})

const docs = { provider: 'files', root: 'docs', title: 'Manual' }
const secret = { provider: 'files', root: 'secret', title: 'Secret', access: ['analyst'] }

async function loaded(config: object) {
  folder.write({ 'hikidashi.json': JSON.stringify(config) })
  return loadConfig(join(folder.root, 'hikidashi.json'))
}

async function plannedOf(mounts: object) {
  const found = await loaded({ mounts })
  if ('problems' in found) throw new Error(JSON.stringify(found.problems))
  return planConfig(found.config)
}

/** The views of a catalog whose mounts open at their first use, with the overview in front. */
async function served(
  mounts: object,
  settings: { readonly lazily?: boolean; readonly pages?: { first: number } } = {},
) {
  const planned = await plannedOf(mounts)
  const store = { sqlite: { file: join(state, 'store.sqlite') } }
  catalog = await openCatalog(planned, { log: () => {}, lazily: true, store, ...settings })
  return withOverview(catalog, { name: 'test', mounts: planned, opened: () => catalog, compareIntervalMs: 20 })
}

async function overviewOf(view: View, uri = overviewUri): Promise<string> {
  const { contents } = await view.read(uri)
  const [content] = contents
  if (content === undefined || !('text' in content)) throw new Error('There is no text.')
  expect(content).toMatchObject({ uri, mimeType: 'text/markdown' })
  return content.text
}

async function urisOf(view: View): Promise<readonly string[]> {
  const uris: string[] = []
  let cursor: string | undefined
  do {
    const page = await view.list(cursor === undefined ? {} : { cursor })
    uris.push(...page.items.map(({ uri }) => uri))
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return uris
}

describe('the overview in the list of resources', () => {
  test('comes first and once, and the pages after it list every resource', async () => {
    const views = await served({ 'docs://a': docs, 'docs://b': docs }, { pages: { first: 1 } })
    const all = ['docs://a/a.md', 'docs://a/b.md', 'docs://b/a.md', 'docs://b/b.md']
    expect(await urisOf(views.view(guest))).toEqual([overviewUri, ...all])
  })

  test('is the only entry if no mount answers, and the page names the unavailable mounts that the caller may see', async () => {
    const gone = join(folder.root, 'gone.db')
    folder.write({ 'gone.db': 'no database' })
    const database = { provider: 'sqlite', file: gone }
    const views = await served({ 'db://a': database, 'db://b': { ...database, access: ['analyst'] } })
    const page = await views.view(guest).list()
    expect(page.items.map(({ uri }) => uri)).toEqual([overviewUri])
    expect(page.unavailable).toEqual(['db://a'])
    expect((await views.view(analyst).list()).unavailable).toEqual(['db://a', 'db://b'])
    expect(await overviewOf(views.view(guest))).toContain('| does not answer |')
  })

  test('is not part of a context', async () => {
    const views = await served({ 'docs://a': docs })
    const { resources } = await listAll(views.view(guest), defaultLimits)
    expect(resources.map(({ uri }) => uri)).toEqual(['docs://a/a.md', 'docs://a/b.md'])
  })

  test('is the only entry if the mounts have no resources', async () => {
    folder.write({ 'empty/.gitkeep': '' })
    const views = await served({ 'docs://a': { ...docs, root: 'empty', include: ['*.none'] } })
    expect(await urisOf(views.view(guest))).toEqual([overviewUri])
  })

  test('counts towards the maximum number of resources for a host, and is left out if that is one', async () => {
    const views = await served({ 'docs://a': docs })
    expect(await urisOf(views.narrowed({ most: 2 })(guest))).toEqual([overviewUri, 'docs://a/a.md'])
    expect(await urisOf(views.narrowed({ most: 1 })(guest))).toEqual(['docs://a/a.md'])
    expect(await urisOf(views.narrowed({ match: ['b*'] })(guest))).toEqual([overviewUri, 'docs://a/b.md'])
    expect(await overviewOf(views.narrowed({ most: 1 })(guest))).toContain('docs://a')
  })
})

describe('the text of the overview', () => {
  test('states why a source did not answer the last request', async () => {
    new DatabaseSync(join(folder.root, 'lost.db')).exec('CREATE TABLE a (b)')
    const views = await served({ 'db://a': { provider: 'sqlite', file: join(folder.root, 'lost.db') } })
    const view = views.view(guest)
    await view.read('db://a/a/schema')
    expect(await overviewOf(view)).toContain('| open |')
    rmSync(join(folder.root, 'lost.db'))
    await expect(view.read('db://a/a/schema')).rejects.toMatchObject({ kind: 'unavailable' })
    expect(await overviewOf(view)).toContain(
      '| does not answer: The file of the database does not exist. Correct the path. |',
    )
  })

  test('lists the mounts, and opens none', async () => {
    const views = await served({ 'docs://a': docs, 'search://a': { provider: 'search', over: ['docs://a'] } })
    const text = await overviewOf(views.view(guest))
    expect(text).toContain('# test')
    expect(text).toContain('2 mounts')
    expect(text).toContain('| Manual (files) | `docs://a` | not opened yet |')
    expect(text).toContain('| search | `search://a` | not opened yet |')
    expect(text).toContain('`search://a?q=WORDS`')
    expect(catalog?.openings().map(({ state }) => state)).toEqual(['closed', 'closed'])
  })

  test('states how much is indexed, and how fresh the index is', async () => {
    const views = await served({ 'docs://a': docs, 'search://a': { provider: 'search', over: ['docs://a'] } })
    const [search] = catalog === undefined ? [] : searchesOf(catalog)
    search?.provider.feed()
    const isCurrent = async () => (await search?.provider.feedStatus())?.mounts.every((one) => one.state === 'current')
    await expect.poll(isCurrent, { timeout: 10_000 }).toBe(true)
    const text = await overviewOf(views.view(guest))
    expect(text).toMatch(
      /\| Manual \(files\) \| `docs:\/\/a` \| open \| 2 documents \| indexed at \d{4}-\d\d-\d\dT[\d:]+Z; changes are reported \|/,
    )
    expect(await overviewOf(views.view(guest))).toBe(text)
  })

  test('neither names a denied mount, nor counts the documents of a partly denied one', async () => {
    const part = { ...docs, title: 'Part', access: [{ allow: ['*'], match: 'a.md' }, 'analyst'] }
    const over = ['docs://a', 'docs://part']
    const views = await served({
      ...{ 'docs://a': secret, 'docs://part': part },
      'search://a': { provider: 'search', over },
    })
    const [search] = catalog === undefined ? [] : searchesOf(catalog)
    search?.provider.feed()
    const isCurrent = async () => (await search?.provider.feedStatus())?.mounts.every((one) => one.state === 'current')
    await expect.poll(isCurrent, { timeout: 10_000 }).toBe(true)
    const seen = await overviewOf(views.view(analyst))
    expect(seen).toContain('| Secret (files) | `docs://a` | open | 1 document |')
    expect(seen).toContain('| Part (files) | `docs://part` | open | 2 documents |')
    const text = await overviewOf(views.view(guest))
    expect(text).not.toMatch(/secret|docs:\/\/a\b/i)
    expect(text).toContain('2 mounts')
    expect(text).toContain('| Part (files) | `docs://part` | open |  | indexed; changes are reported |')
  })

  test('says that there are no mounts to a caller who may see none', async () => {
    const views = await served({ 'docs://a': secret })
    expect(await overviewOf(views.view(guest))).toBe(
      '# test\n\nThis server serves data as MCP resources. Nothing is mounted.\n',
    )
    expect(await urisOf(views.view(guest))).toEqual([overviewUri])
  })

  test('is read in any letter case of its URI, and its URI has no parts, children or directory', async () => {
    const view = (await served({ 'docs://a': docs })).view(guest)
    expect(await overviewOf(view, 'HIKIDASHI://Overview')).toBe(await overviewOf(view))
    for (const uri of [
      `${overviewUri}/`,
      `${overviewUri}/a`,
      `${overviewUri}?a=b`,
      'hikidashi://',
      'hikidashi://other',
    ])
      await expect(view.read(uri), uri).rejects.toThrow()
    await expect(view.directory({ uri: overviewUri })).rejects.toMatchObject({ detail: { reason: 'not-a-directory' } })
  })

  test('escapes Markdown in titles', async () => {
    const views = await served({ 'docs://a': { ...docs, title: 'A | [b](c)\n# d <e>' } })
    expect(await overviewOf(views.view(guest))).toContain('| A \\| \\[b\\](c) \\# d \\<e\\> (files) |')
  })

  test('is made from the configuration until the catalog is open', async () => {
    const planned = await plannedOf({ 'docs://a': docs, 'docs://b': secret })
    const views = withOverview(
      createOpeningViews(
        createPendingOpen(() => new Promise<MountedCatalog>(() => {})),
        { live: true, prompts: undefined },
      ),
      { name: 'test', mounts: planned, opened: () => undefined },
    )
    const text = await overviewOf(views.view(guest))
    expect(text).toContain('| Manual (files) | `docs://a` | not opened yet |')
    expect(text).not.toContain('docs://b')
  })
})

describe('a subscription to the overview', () => {
  test('is notified in its own spelling when a mount is opened, and ends when it is removed in another spelling', async () => {
    const view = (await served({ 'docs://a': docs })).view(guest)
    const changes: ViewChange[] = []
    const subscription = view.subscribe?.((change) => changes.push(change))
    const spelled = 'hikidashi://OVERVIEW'
    expect(await subscription?.add(['docs://none/x', spelled])).toEqual([spelled])
    expect(subscription?.uris).toEqual([spelled])
    await view.read('docs://a/a.md')
    await expect.poll(() => overviewOf(view)).toContain('| open |')
    // The text changes twice, to "being opened" and to "open". A comparison sees both, or only the second one.
    await expect.poll(() => changes.length).toBeGreaterThan(0)
    subscription?.remove(overviewUri)
    expect(changes.length).toBeLessThanOrEqual(2)
    for (const change of changes) expect(change).toEqual({ uris: [spelled], listed: false })
    expect(subscription?.uris).toEqual([])
    subscription?.close()
  })

  test('is not notified of a hidden mount', async () => {
    const views = await served({ 'docs://a': docs, 'docs://b': secret })
    const heard: Record<string, number> = { guest: 0, analyst: 0 }
    for (const principal of [guest, analyst]) {
      const count = () => {
        heard[principal.id] = (heard[principal.id] ?? 0) + 1
      }
      await views.view(principal).subscribe?.(count).add([overviewUri])
    }
    await views.view(analyst).read('docs://b/c.md')
    await expect.poll(() => heard.analyst).toBeGreaterThan(0)
    // Of "being opened", if a comparison comes just then, and of "open".
    expect(heard.analyst).toBeLessThanOrEqual(2)
    expect(heard.guest).toBe(0)
  })

  test('is refused for too many spellings of the URI', async () => {
    const subscription = (await served({ 'docs://a': docs })).view(guest).subscribe?.(() => {})
    const spellings = Array.from({ length: 17 }, (_, i) =>
      [...overviewUri].map((c, at) => ((i >> at) & 1 ? c.toUpperCase() : c)).join(''),
    )
    await expect(subscription?.add(spellings)).rejects.toMatchObject({ detail: { reason: 'too-many' } })
    expect(subscription?.uris).toEqual([])
  })
})

describe('a configuration', () => {
  test('cannot have a mount at the address of the overview, unless it turns the overview off', async () => {
    for (const address of [overviewUri, `${overviewUri}/a`, 'HIKIDASHI://overview']) {
      const found = await loaded({ mounts: { [address]: docs } })
      expect('problems' in found && found.problems).toMatchObject([{ message: expect.stringContaining(overviewUri) }])
      expect(await loaded({ overview: false, mounts: { [address]: docs } })).toHaveProperty('config')
    }
    expect(await loaded({ mounts: { 'hikidashi://other': docs } })).toHaveProperty('config')
  })
})
