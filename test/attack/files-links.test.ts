import * as fs from 'node:fs'
import { afterEach, describe, expect, test } from 'vitest'
import { compileAccess } from '../../src/core/access.ts'
import { type Catalog, createCatalog } from '../../src/core/catalog.ts'
import type { Principal } from '../../src/core/provider.ts'
import type { ViewChange } from '../../src/core/view.ts'
import { useFiles } from '../support/files.ts'

const { folder, open } = useFiles()
const catalogs: Catalog[] = []
afterEach(async () => {
  for (const catalog of catalogs.splice(0)) await catalog.close()
})

const address = 'file:///docs'
const guest: Principal = { id: 'guest', roles: ['guest'] }
const boss: Principal = { id: 'boss', roles: ['boss'] }

/** Links out of what a guest may see, into what it may not, and within it. */
async function serve(portable: boolean) {
  folder.write({
    'secret/plan.md': 'CANARY',
    'secret/deep/more.md': 'CANARY',
    'pub/open.md': 'open',
    'pub/dir/in.md': 'in',
  })
  const link = (target: string, name: string) => fs.symlinkSync(target, folder.at(name))
  link('../secret/plan.md', 'pub/link.md')
  link('../secret', 'pub/folder')
  link('link.md', 'pub/twice.md')
  link('../secret/deep', 'pub/deep')
  link('open.md', 'pub/fine.md')
  link('dir', 'pub/finedir')
  link('../pub/open.md', 'secret/back.md')
  const access = compileAccess([{ allow: ['boss'] }, { allow: ['guest'], match: 'pub/**' }])
  const provider = await open({ symlinks: 'beneath', reconcile: 200 }, portable)
  const catalog = createCatalog({ mounts: [{ address, provider, access }] })
  catalogs.push(catalog)
  return catalog
}

const listed = ['pub/dir/in.md', 'pub/fine.md', 'pub/finedir/in.md', 'pub/open.md']
const denied = ['pub/link.md', 'pub/folder/plan.md', 'pub/twice.md', 'pub/deep/more.md', 'pub/folder/deep/more.md']

describe.each([false, true])('links to hidden files (without directory descriptors: %s)', (portable) => {
  test('are absent from listings, reads, directories and completions of a caller who may not see the files', async () => {
    const catalog = await serve(portable)
    const view = catalog.view(guest)
    const paths = async (who: Principal) =>
      (await catalog.view(who).list()).items.map(({ uri }) => uri.slice(address.length + 1))
    expect(await paths(guest)).toEqual(listed)
    expect(await paths(boss)).toEqual(expect.arrayContaining([...listed, ...denied]))
    const refusal = (path: string) =>
      view.read(`${address}/${path}`).then(
        () => 'read',
        (error: { kind: string }) => error.kind,
      )
    const absent = await refusal('pub/none.md')
    expect(absent).toBe('not-found')
    for (const path of [...denied, 'pub/folder', 'pub/folder/', 'pub/deep/', 'secret/plan.md', 'secret/back.md'])
      expect(await refusal(path), path).toBe(absent)
    expect(await refusal('pub/fine.md')).toBe('read')
    expect((await catalog.view(boss).read(`${address}/pub/twice.md`)).contents).toMatchObject([{ text: 'CANARY' }])
    const names = async (who: Principal) =>
      (await catalog.view(who).directory({ uri: `${address}/pub/` })).items.map(({ name }) => name)
    expect(await names(guest)).toEqual(['dir', 'fine.md', 'finedir', 'open.md'])
    expect(await names(boss)).toEqual(expect.arrayContaining(['folder', 'link.md', 'deep']))
    const [template] = (await view.templates()).items
    const complete = async (who: Principal, value: string) =>
      (
        await catalog
          .view(who)
          .complete({ uriTemplate: template?.uriTemplate ?? '', argument: { name: 'path', value } })
      ).values
    expect(await complete(guest, 'pub/')).toEqual(['pub/dir/', 'pub/fine.md', 'pub/finedir/', 'pub/open.md'])
    expect(await complete(guest, 'pub/folder/')).toEqual([])
    expect(await complete(boss, 'pub/folder/')).toContain('pub/folder/plan.md')
  })

  test('are not indexed: their target is indexed under its own path', async () => {
    const reader = (await serve(portable)).reader(address)
    const { signal } = new AbortController()
    const paths: string[] = []
    for await (const { path } of reader?.list({}, signal) ?? []) paths.push(path)
    expect(paths).toEqual(['pub/dir/in.md', 'pub/open.md', 'secret/deep/more.md', 'secret/plan.md'])
    for (const path of denied) {
      expect(await reader?.find(path, signal), path).toBeUndefined()
      await expect(reader?.read({ path, params: new Map() }, signal), path).rejects.toMatchObject({ kind: 'not-found' })
    }
  })

  test('report no change of their target to a caller who may not see it', async () => {
    const catalog = await serve(portable)
    const listen = async (who: Principal) => {
      const told: ViewChange[] = []
      const subscription = catalog.view(who).subscribe?.((change) => void told.push(change))
      await subscription?.add([...denied, 'pub/fine.md', 'pub/open.md'].map((path) => `${address}/${path}`))
      await subscription?.addList()
      return { told, uris: () => new Set(told.flatMap(({ uris }) => uris.map((uri) => uri.slice(address.length + 1)))) }
    }
    const [guests, bosses] = [await listen(guest), await listen(boss)]
    // What was read before a change is told; here, the first comparison is awaited by what all may see.
    await expect
      .poll(
        () => {
          fs.writeFileSync(folder.at('pub/open.md'), String(Math.random()))
          return [...bosses.uris()]
        },
        { timeout: 20_000, interval: 200 },
      )
      .toContain('pub/fine.md')
    folder.write({ 'secret/plan.md': 'CANARY 2', 'secret/deep/more.md': 'CANARY 2' })
    await expect
      .poll(() => [...bosses.uris()].sort(), { timeout: 20_000 })
      .toEqual(expect.arrayContaining(['pub/link.md', 'pub/folder/plan.md', 'pub/deep/more.md']))
    fs.rmSync(folder.at('secret/plan.md'))
    await expect.poll(() => bosses.told.some((change) => change.listed), { timeout: 20_000 }).toBe(true)
    // Something behind all that, which a guest hears of.
    const before = guests.told.length
    fs.writeFileSync(folder.at('pub/open.md'), 'last')
    await expect
      .poll(() => guests.told.slice(before).flatMap(({ uris }) => uris), { timeout: 20_000 })
      .toContain(`${address}/pub/fine.md`)
    for (const path of denied) expect([...guests.uris()], path).not.toContain(path)
    expect(guests.told.some((change) => change.listed)).toBe(false)
  })
})
