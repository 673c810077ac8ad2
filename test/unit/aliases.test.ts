import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { openCatalog } from '../../src/config/build.ts'
import { planFolders } from '../../src/config/plan.ts'
import { fileAddress } from '../../src/core/uri.ts'

const base = realpathSync(mkdtempSync(join(tmpdir(), 'hikidashi-aliases-')))
afterAll(() => rmSync(base, { recursive: true, force: true }))
const [real, link] = [join(base, 'real'), join(base, 'link')]
mkdirSync(real)
writeFileSync(join(real, 'a.md'), 'text')
symlinkSync(real, link)

test('a folder behind a symbolic link is read at both of its paths, in the spelling of the request', async () => {
  const catalog = await openCatalog(planFolders([link]), { log: () => {} })
  const view = catalog.view({ id: 'me', roles: [] })
  for (const folder of [link, real]) {
    const uri = `${fileAddress(folder)}/a.md`
    expect((await view.read(uri)).contents).toMatchObject([{ uri, text: 'text' }])
    expect((await view.directory({ uri: `${fileAddress(folder)}/` })).items).toHaveLength(1)
  }
  expect((await view.list()).items.map(({ uri }) => uri)).toEqual([`${fileAddress(link)}/a.md`])
  await catalog.close()
})

test('a folder that is mounted at its own path and at a symbolic link is listed at both', async () => {
  const catalog = await openCatalog(planFolders([link, real]), { log: () => {} })
  const view = catalog.view({ id: 'me', roles: [] })
  expect((await view.list()).items).toHaveLength(2)
  await catalog.close()
})
