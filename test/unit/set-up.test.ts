import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { configText, mountsOfFolder } from '../../src/cli/commands/init.ts'
import { surveyForInit } from '../../src/cli/operations/survey.ts'
import { openCatalog } from '../../src/config/build.ts'
import { defaultStoreFile } from '../../src/config/folder.ts'
import { loadConfig } from '../../src/config/load.ts'
import { methodsOf, planConfig } from '../../src/config/plan.ts'
import { planSetUp } from '../../src/config/set-up.ts'
import { createFolder, type Folder } from '../support/folder.ts'

let folder: Folder
let state = ''
beforeEach(() => {
  folder = createFolder()
  state = mkdtempSync(join(tmpdir(), 'hikidashi-set-up-'))
})
afterEach(() => {
  folder.remove()
  rmSync(state, { recursive: true })
})

const database = Buffer.from(`SQLite format 3\0${'\0'.repeat(84)}`, 'latin1')

/** A folder that has every source. */
function fill({ root, write }: Folder): string {
  write({ 'README.md': '# Hello\n', 'docs/a.md': '---\ntitle: A\n---\nText\n', 'package.json': '{"a":1}' })
  write({ '.env': 'A=1\n', 'prompts/say.md': 'Say {{x}}', 'data/app.db': database })
  mkdirSync(join(root, '.git'))
  writeFileSync(join(root, '.git', 'HEAD'), 'ref: refs/heads/main\n')
  return basename(root).toLowerCase()
}

describe('the set-up of a folder', () => {
  test('has a mount for each source in it, and a search over the documents', async () => {
    const name = fill(folder)
    const { mounts, complete } = await planSetUp([folder.root])
    const kinds = (all: typeof mounts) =>
      all.map(({ address, config: { provider, title } }) => [address, provider, title])
    const [first = [], ...others] = kinds(mounts)
    expect(first.slice(1)).toEqual(['files', 'Files'])
    const top = [
      [`git://${name}`, 'git', 'History'],
      [`config://${name}`, 'settings', 'Settings'],
      [`env://${name}`, 'env', 'Environment'],
      ['zed://prompt-library', 'prompts', 'Prompts'],
    ]
    const search = [`search://${name}`, 'search', 'Search']
    expect(others).toEqual([...top, search])
    // Databases are looked for below, once the mounts are opened.
    expect(kinds(await complete()).slice(1)).toEqual([...top, [`sqlite://${name}`, 'sqlite', 'Database'], search])
    expect(mounts.at(-1)?.config).toMatchObject({ over: [first[0], 'zed://prompt-library'] })
  })

  test('is the same as the configuration that init writes', async () => {
    const name = fill(folder)
    const address = 'file:///notes'
    const survey = await surveyForInit(folder.root)
    const file = join(folder.root, 'hikidashi.json')
    writeFileSync(file, configText(folder.root, address, survey))
    const loaded = await loadConfig(file)
    if ('problems' in loaded) throw new Error(JSON.stringify(loaded.problems))
    const written = planConfig(loaded.config).map((mount) => [mount.address, mount.config])
    expect(written).toEqual(mountsOfFolder(folder.root, address, survey).map((mount) => [mount.address, mount.config]))

    const { complete } = await planSetUp([folder.root], { name: 'notes' })
    const served = await Promise.all(
      (await complete()).map(async (mount) => [mount.address, (await mount.refine?.()) ?? mount.config]),
    )
    expect(served).toEqual(written)
    expect(written.map(([at]) => at)).toContain(`sqlite://${name}`)
  })

  test('has mounts with exactly the methods, once they are open, that were announced before', async () => {
    fill(folder)
    const { complete } = await planSetUp([folder.root])
    const planned = (await complete()).filter(({ config }) => config.provider !== 'git' && config.provider !== 'sqlite')
    const catalog = await openCatalog(planned, {
      log: () => {},
      store: { sqlite: { file: join(state, 'store.sqlite') } },
    })
    try {
      expect(catalog.mounts).toHaveLength(5)
      for (const [index, { provider }] of catalog.mounts.entries()) {
        const { config } = planned[index] ?? {}
        const { watch, prompts, sees, parts, tools } = provider
        expect([
          config?.provider,
          {
            ...{ watch: watch !== undefined, prompts: prompts !== undefined },
            ...{ sees: sees !== undefined, parts: parts !== undefined, tools: tools !== undefined },
          },
        ]).toEqual([config?.provider, config === undefined ? {} : methodsOf(config)])
      }
    } finally {
      await catalog.close()
    }
  })

  test('without other sources has only its files and a search', async () => {
    folder.write({ 'a.txt': 'a' })
    const { complete } = await planSetUp([folder.root])
    expect((await complete()).map(({ config }) => config.provider)).toEqual(['files', 'search'])
  })

  test.each(['x.git', 'other'])(
    'with a bare repository has only its history and a search over it: %s',
    async (name) => {
      folder.write({ [`${name}/HEAD`]: 'ref: refs/heads/main\n', [`${name}/objects/`]: null, [`${name}/refs/`]: null })
      folder.write({ [`${name}/config`]: '[core]\n\tbare = true\n', [`${name}/description`]: '' })
      const { complete } = await planSetUp([folder.at(name)])
      const mounts = await complete()
      expect(mounts.map(({ config }) => config.provider)).toEqual(['git', 'search'])
      expect(mounts[1]?.config).toMatchObject({ over: [mounts[0]?.address] })
    },
  )

  test.each(['', '# no repository'])(
    'has no history for a folder .git that is no repository (its file "description": %j)',
    async (head) => {
      mkdirSync(join(folder.root, '.git'))
      if (head !== '') writeFileSync(join(folder.root, '.git', 'description'), head)
      const { mounts } = await planSetUp([folder.root])
      expect(mounts.map(({ config }) => config.provider)).toEqual(['files', 'search'])
    },
  )
})

test('a folder has one store, for its relative and its absolute path', () => {
  const here = process.cwd()
  expect(defaultStoreFile(['.'])).toBe(defaultStoreFile([here]))
  expect(defaultStoreFile(['src/..'])).toBe(defaultStoreFile([here]))
  expect(basename(join(defaultStoreFile(['.']), '..'))).toMatch(new RegExp(`^${basename(here)}-[0-9a-f]{8}$`))
})

test('databases are searched for in at most 500 folders', async () => {
  for (let at = 0; at < 520; at++) folder.write({ [`f${String(at).padStart(3, '0')}/x`]: '' })
  for (const at of ['f000', 'f519']) folder.write({ [`${at}/app.db`]: database })
  const { complete } = await planSetUp([folder.root])
  const found = (await complete()).filter(({ config }) => config.provider === 'sqlite')
  expect(found.length).toBeLessThan(2)
})

test('the set-up of several folders gives them distinct names and titles, and one search', async () => {
  for (const name of ['a/notes', 'b/notes', 'c/papers'])
    folder.write({ [`${name}/a.json`]: '{}', [`${name}/prompts/p.md`]: 'x' })
  const roots = ['a/notes', 'b/notes', 'c/papers'].map((name) => join(folder.root, name))
  const { mounts } = await planSetUp(roots)
  const of = (kind: string) => mounts.filter(({ config }) => config.provider === kind)
  expect(of('settings').map(({ address, config }) => [address, config.title])).toEqual([
    ['config://notes', 'Settings · notes'],
    ['config://notes-2', 'Settings · notes'],
    ['config://papers', 'Settings · papers'],
  ])
  expect(of('search')).toEqual([expect.objectContaining({ address: 'search://all' })])
  expect(of('search')[0]?.config).toMatchObject({
    over: [...of('files'), ...of('prompts')].map(({ address }) => address).sort((a, b) => order(a) - order(b)),
  })
  function order(address: string) {
    return mounts.findIndex((mount) => mount.address === address)
  }
})

describe('a catalog that can open its mounts at their first use', () => {
  test('serves the other mounts if some cannot be opened, names those, and tries them again', async () => {
    folder.write({ 'there/a.txt': 'a' })
    const logged: unknown[] = []
    const planned = ['gone-1', 'there', 'gone-2'].map((name) => ({
      address: `x://${name}`,
      config: { provider: 'files', root: join(folder.root, name) } as const,
      folder: folder.root,
    }))
    const catalog = await openCatalog(planned, {
      log: (level, message, fields) => void logged.push([level, message, fields?.mount]),
      lazily: true,
    })
    try {
      expect(await catalog.openAll()).toEqual(['x://gone-1', 'x://gone-2'])
      // They are opened at once: whichever fails first is told of first.
      expect(logged.sort()).toEqual(
        ['x://gone-1', 'x://gone-2'].map((mount) => ['warn', 'the mount cannot be opened; it is tried again', mount]),
      )
      expect(catalog.degraded()).toMatchObject([{ address: 'x://gone-1' }, { address: 'x://gone-2' }])
      const view = catalog.view({ id: 'x', roles: [] })
      expect(await view.list()).toMatchObject({
        items: [{ uri: 'x://there/a.txt' }],
        unavailable: ['x://gone-1', 'x://gone-2'],
      })
      await expect(view.read('x://gone-1/a.txt')).rejects.toMatchObject({ kind: 'unavailable' })
      folder.write({ 'gone-1/a.txt': 'back' })
      await expect.poll(() => view.read('x://gone-1/a.txt').catch(() => undefined), { timeout: 30_000 }).toBeDefined()
    } finally {
      await catalog.close()
    }
  })

  test('opens all mounts by default, and a mount that cannot be opened is an error', async () => {
    const planned = [{ address: 'x://y', config: { provider: 'files', root: 'gone' } as const, folder: folder.root }]
    await expect(openCatalog(planned, { log: () => {} })).rejects.toThrow('The mount x://y cannot be opened.')
  })
})
