import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { openCatalog } from '../../src/config/build.ts'
import { loadConfig } from '../../src/config/load.ts'
import { planConfig, searchesOf } from '../../src/config/plan.ts'
import type { Catalog } from '../../src/core/catalog.ts'
import { metaKeys } from '../../src/core/meta.ts'
import type { Principal } from '../../src/core/provider.ts'
import { parseSearchAnswer, type SearchAnswer } from '../../src/core/search-answer.ts'
import { startDriveMount } from '../support/drive-samples.ts'
import { account, permission } from '../support/drive-table.ts'
import { createFolder, type Folder } from '../support/folder.ts'

// A machine with other work takes its time.
vi.setConfig({ testTimeout: 120_000 })

let folder: Folder
let mounted: Awaited<ReturnType<typeof startDriveMount>>
const opened = new Set<Catalog>()
beforeEach(async () => {
  folder = createFolder()
  mounted = await startDriveMount()
})
afterEach(async () => {
  await Promise.all([...opened].map((catalog) => catalog.close()))
  opened.clear()
  await mounted.close()
  folder.remove()
})

async function load(mounts: unknown) {
  folder.write({ 'hikidashi.json': JSON.stringify({ mounts }) })
  return loadConfig(folder.at('hikidashi.json'))
}

async function open(mounts: unknown): Promise<Catalog> {
  const loaded = await load(mounts)
  if ('problems' in loaded) throw new Error(JSON.stringify(loaded.problems))
  const catalog = await openCatalog(planConfig(loaded.config), { log: () => {}, store: loaded.config.store })
  opened.add(catalog)
  return catalog
}

const person = (...roles: readonly string[]): Principal => ({ id: roles.join(' '), roles })
const eventually = <T>(work: () => Promise<T>) => vi.waitFor(work, { timeout: 60_000, interval: 100 })

describe('a Google Drive mount of a configuration', () => {
  test('serves documents like every other mount, with the link and the revision of each part', async () => {
    const view = (await open({ 'gdrive://me': mounted.mount })).view(person())
    const { items } = await view.list()
    expect(items.find(({ uri }) => uri === 'gdrive://me/docs/plan')).toMatchObject({ name: 'plan', title: 'Plan' })
    const [part] = (await view.read('gdrive://me/docs/plan?lines=3-3')).contents
    expect(part).toMatchObject({ text: 'Hello, 世界.\n' })
    expect(part?.meta?.[metaKeys.drive]).toMatchObject({ link: expect.stringContaining('plan'), revision: '1' })
    const { items: children } = await view.directory({ uri: 'gdrive://me/' })
    expect(children.find(({ uri }) => uri === 'gdrive://me/docs/')?.title).toBe('Documents')
  })

  test.each([
    [{ folder: 'x', drives: true }, 'drives'],
    [{ folder: "x' or 'y" }, 'folder'],
    [{ drives: [] }, 'drives'],
    [{ drives: ['a/b'] }, 'drives[0]'],
    [{ clientId: { env: 'ID' } }, 'key'],
    [{ clientSecret: { env: 'SECRET' } }, 'clientSecret'],
    [{ key: undefined, subject: 'a@example.com' }, 'subject'],
    [{ key: 'literal' }, 'key'],
    [{ interval: '1ms' }, 'interval'],
    [{ maxBytes: '1GiB' }, 'maxBytes'],
  ])('is refused with %j', async (keys, at) => {
    const loaded = await load({ 'gdrive://x': { ...mounted.mount, ...keys } })
    const problems = 'problems' in loaded ? loaded.problems.map(({ key }) => key) : []
    expect(problems).toEqual([`mounts["gdrive://x"].${at}`])
  })

  test('is refused if its credentials would be served with other files', async () => {
    folder.write({ 'in/x': '' })
    const person = { provider: 'gdrive', clientId: { env: 'PATH' } }
    const problemsOf = async (mount: unknown) => {
      const loaded = await load({ 'gdrive://x': mount, 'file:///in': { provider: 'files', root: '.' } })
      return 'problems' in loaded ? loaded.problems.map(({ key, message }) => `${key}: ${message}`) : []
    }
    expect(await problemsOf(person)).toEqual([
      'mounts["gdrive://x"]: The file gdrive-token.json would lie in the folder that "file:///in" serves.',
    ])
    expect(await problemsOf({ ...person, tokenFile: 'in/t.json' })).toHaveLength(1)
    expect(await problemsOf({ provider: 'gdrive', key: { file: 'in/x' } })).toHaveLength(1)
    expect(await problemsOf({ ...person, tokenFile: '../elsewhere.json' })).toEqual([])
  })

  test('connects to Google only, needs the secrets that it names, and takes no "poll"', async () => {
    await expect(open({ 'gdrive://x': { ...mounted.mount, endpoint: 'https://drive.example.com' } })).rejects.toThrow(
      /other servers must not get the tokens/,
    )
    await expect(open({ 'gdrive://x': { ...mounted.mount, key: { file: 'none.json' } } })).rejects.toThrow(
      /"key" has no value/,
    )
    await expect(open({ 'gdrive://x': { ...mounted.mount, poll: '1m' } })).rejects.toThrow(/Remove "poll"/)
  })

  test('is searched by each caller within the permissions that the caller has in Drive', async () => {
    const { table } = mounted.drive
    const shared = [permission(account, 'owner'), permission('alice@example.com')]
    table.add({ id: 'orders', name: 'Orders', content: 'Zeppelins in stock: seven.\n', permissions: shared })
    const catalog = await open({
      'gdrive://me': { ...mounted.mount, permissions: true, interval: '200ms' },
      'search://drive': { provider: 'search', over: ['gdrive://me'] },
    })
    for (const { provider } of searchesOf(catalog)) provider.feed()
    const find = async (principal: Principal): Promise<SearchAnswer> => {
      const [answer] = (await catalog.view(principal).read('search://drive/zeppelins')).contents
      const found = answer !== undefined && 'text' in answer ? parseSearchAnswer(answer.text) : undefined
      if (found === undefined) throw new Error('it answered something else')
      return found
    }
    await eventually(async () => {
      const [hit] = (await find(person('alice@example.com'))).hits
      expect(hit).toMatchObject({ document: 'gdrive://me/orders', title: 'Orders' })
      const [passage] = (await catalog.view(person('alice@example.com')).read(hit?.uri ?? '')).contents
      expect(passage?.meta?.[metaKeys.drive]).toMatchObject({ revision: expect.any(String), link: expect.any(String) })
    })
    expect((await find(person('bob@example.com'))).hits).toEqual([])
    table.change('orders', { permissions: [permission(account, 'owner')] })
    await eventually(async () => expect((await find(person('alice@example.com'))).hits).toEqual([]))
  })
})
