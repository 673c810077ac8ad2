import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openCatalog } from '../../src/config/build.ts'
import { loadConfig } from '../../src/config/load.ts'
import { planConfig, planFolders, searchedMounts } from '../../src/config/plan.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hikidashi-build-'))
  mkdirSync(join(folder, 'docs'))
  writeFileSync(join(folder, 'docs', 'a.md'), '# A\n')
  writeFileSync(join(folder, 'docs', 'b.md'), 'one\ntwo\nthree\n')
})
afterEach(() => rmSync(folder, { recursive: true }))

const log = () => {}
const reader = { id: 'x', roles: ['reader'] }
const guest = { id: 'y', roles: [] }

async function openConfig(config: unknown) {
  const file = join(folder, 'hikidashi.json')
  writeFileSync(file, JSON.stringify(config))
  const loaded = await loadConfig(file)
  if ('problems' in loaded) throw new Error(JSON.stringify(loaded.problems))
  const { pages } = loaded.config
  return openCatalog(planConfig(loaded.config), { log, ...(pages === undefined ? {} : { pages }) })
}

test('a folder is mounted at its absolute path, or at a name', () => {
  expect(planFolders(['/srv/my docs', '/srv/文']).map(({ address }) => address)).toEqual([
    'file:///srv/my%20docs',
    'file:///srv/%E6%96%87',
  ])
  expect(planFolders(['/srv/x'], { name: 'team/docs' })[0]?.address).toBe('file:///team/docs')
})

test.each(['', '..', '/x', 'x/', 'a//b', 'a\u0000'])('%j is not a name for a folder', (name) => {
  expect(() => planFolders(['/srv/x'], { name })).toThrow('is not a valid name')
})

test('a name that is given for two folders is refused', () => {
  expect(() => planFolders(['/a', '/b'], { name: 'x' })).toThrow('A name needs exactly one folder')
})

test('a configuration becomes a catalog with its mounts, titles, priorities, page sizes, cache times and access rules', async () => {
  const catalog = await openConfig({
    mounts: {
      'docs://manual': {
        provider: 'files',
        root: 'docs',
        title: 'The manual',
        access: [{ allow: ['*'], match: 'a.md' }, 'reader'],
        cache: { ttl: '1m', scope: 'public' },
        rules: [{ match: '*.md', priority: 0.5, title: 'heading' }],
      },
    },
    pages: { first: 1, most: 1 },
  })
  try {
    const view = catalog.view(reader)
    expect(await view.mounts()).toEqual([expect.objectContaining({ uri: 'docs://manual', title: 'The manual' })])
    const first = await view.list()
    expect(first.items).toEqual([expect.objectContaining({ uri: 'docs://manual/a.md', title: 'A', priority: 0.5 })])
    const second = await view.list({ cursor: first.nextCursor ?? '' })
    expect(second.items.map(({ uri }) => uri)).toEqual(['docs://manual/b.md'])
    expect(first.cache).toEqual({ ttlMs: 60_000, scope: 'private' })
    expect((await view.read('docs://manual/b.md?lines=2-2')).contents[0]).toMatchObject({ text: 'two\n' })
    const guests = catalog.view(guest)
    expect((await guests.read('docs://manual/a.md')).contents).toHaveLength(1)
    await expect(guests.read('docs://manual/b.md')).rejects.toMatchObject({ kind: 'not-found' })
  } finally {
    await catalog.close()
  }
})

test('a catalog is opened completely or not at all, and the error names the mount', async () => {
  const missing = { provider: 'files', root: join(folder, 'nope') } as const
  const there = { provider: 'files', root: join(folder, 'docs') } as const
  const planned = [
    { address: 'a://a', config: there, folder },
    { address: 'b://b', config: missing, folder },
  ]
  await expect(openCatalog(planned, { log })).rejects.toThrow('The mount b://b cannot be opened.')
})

test('the mounts that a search needs are the search itself and the mounts that it covers, or all mounts for a search over *', async () => {
  const covered = async (over: string | readonly string[]) => {
    const file = join(folder, 'hikidashi.json')
    const mounts = {
      'docs://manual': { provider: 'files', root: 'docs' },
      'env://process': { provider: 'env' },
      'search://all': { provider: 'search', over },
    }
    writeFileSync(file, JSON.stringify({ mounts }))
    const loaded = await loadConfig(file)
    if ('problems' in loaded) throw new Error(JSON.stringify(loaded.problems))
    return searchedMounts(planConfig(loaded.config)).map(({ address }) => address)
  }
  expect(await covered(['docs://manual'])).toEqual(['docs://manual', 'search://all'])
  expect(await covered('*')).toEqual(['docs://manual', 'env://process', 'search://all'])
})
