import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { mountsOfFolder } from '../../src/cli/commands/init.ts'
import { surveyForInit } from '../../src/cli/operations/survey.ts'
import { type MountedCatalog, openCatalog } from '../../src/config/build.ts'
import { loadConfig } from '../../src/config/load.ts'
import { type PlannedMount, planConfig } from '../../src/config/plan.ts'
import { planSetUp } from '../../src/config/set-up.ts'
import { openWithin } from '../../src/core/kit/within.ts'
import type { View } from '../../src/core/view.ts'
import { createFolder, type Folder } from '../support/folder.ts'
import { createGitFolder, type GitFolder } from '../support/git.ts'

/**
 * Paths that no person named: the standard set-up finds them in a folder, or a configuration that nobody trusts names them. A symbolic link at
 * any level of them shows nothing of its target.
 */

const canary = 'the canary of the private folder'
const own = 'a harmless text'

let folder: Folder
let opened: MountedCatalog[]
beforeEach(() => {
  folder = createFolder()
  opened = []
})
afterEach(async () => {
  for (const catalog of opened) await catalog.close()
  folder.remove()
})

function database(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true })
  const made = new DatabaseSync(file)
  made.exec(`create table "${text.replaceAll(' ', '_')}" (text text)`)
  made.close()
}

/** Fills a place with everything that the standard set-up finds at the paths of {@link entries}. */
function fill(root: string, text: string): void {
  const files = {
    'prompts/a.md': text,
    '.github/prompts/a.md': text,
    '.claude/commands/a.md': text,
    '.claude/skills/one/SKILL.md': `---\nname: one\ndescription: ${text}\n---\n${text}`,
    '.agents/skills/one/SKILL.md': `---\nname: one\ndescription: ${text}\n---\n${text}`,
    'skills/one/SKILL.md': `---\nname: one\ndescription: ${text}\n---\n${text}`,
    '.env': `PORT=1\n${text.replaceAll(' ', '_').toUpperCase()}=1\nDATABASE_URL=postgres://${text.replaceAll(' ', '_')}@x/y\n`,
    'openapi.json': JSON.stringify({
      servers: [{ url: `https://${text === canary ? 'canary' : 'own'}.example` }],
      paths: { '/a': { get: {} } },
    }),
    '.mcp.json': JSON.stringify({ mcpServers: { [text]: { command: text } } }),
    'package.json': JSON.stringify({ description: text }),
  }
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), content)
  }
  database(join(root, 'data', 'app.db'), text)
}

/** Everything that a view lists and reads, and its prompts, in one text. */
async function allOf(view: View): Promise<string> {
  const parts: string[] = []
  const told = async (work: Promise<unknown>) => void parts.push(await work.then(JSON.stringify, String))
  for (let cursor: string | undefined; ; ) {
    const page = await view.list(cursor === undefined ? {} : { cursor })
    for (const { uri } of page.items) {
      parts.push(uri)
      if (!uri.startsWith('search:')) await told(view.read(uri))
    }
    cursor = page.nextCursor
    if (cursor === undefined) break
  }
  return parts.join('\n')
}

async function viewOf(mounts: readonly PlannedMount[]): Promise<View> {
  const served = mounts.filter(({ config }) => config.provider !== 'search')
  const catalog = await openCatalog(served, { log: () => {}, lazily: true })
  opened.push(catalog)
  return catalog.view({ id: 'test', roles: [] })
}

/** Whether a text shows something of the private folder, or of a secret that is derived from its text. */
const leaks = (text: string) =>
  text.toLowerCase().replaceAll('_', ' ').includes(canary) || text.includes('canary.example')

/** Each entry that the standard set-up looks for, with the parents of it in the folder. */
const entries = [
  'prompts',
  '.github/prompts',
  '.claude/commands',
  '.claude/skills',
  '.agents/skills',
  'skills',
  '.env',
  'openapi.json',
  '.mcp.json',
  'package.json',
  'data/app.db',
]
const levels = [...new Set(entries.flatMap((path) => [path, dirname(path)]))].filter((path) => path !== '.')

/** Puts a link into the place of a name. */
function link(path: string, target: string): void {
  rmSync(folder.at(path), { recursive: true, force: true })
  mkdirSync(dirname(folder.at(path)), { recursive: true })
  symlinkSync(target, folder.at(path))
}

describe('links in a folder without a configuration:', () => {
  test('without links, the standard set-up finds all entries that it looks for', async () => {
    fill(folder.root, own)
    const { complete } = await planSetUp([folder.root])
    const planned = await complete()
    const roots = planned.map(({ config }) => ('root' in config ? config.root : 'file' in config ? config.file : ''))
    expect(roots).toEqual(expect.arrayContaining(entries.filter((path) => !path.endsWith('.json'))))
    const survey = await surveyForInit(folder.root)
    expect(survey).toMatchObject({ postgres: 'DATABASE_URL', api: { file: 'openapi.json' }, servers: [{ name: own }] })
  })

  test.each(levels)(
    'a link in the place of %s does not lead out of the folder, if it exists from the start',
    async (path) => {
      fill(folder.root, own)
      fill(folder.outside, canary)
      link(path, join(folder.outside, path))
      const { complete } = await planSetUp([folder.root])
      expect(leaks(await allOf(await viewOf(await complete())))).toBe(false)
      const survey = await surveyForInit(folder.root)
      expect(leaks(JSON.stringify(survey))).toBe(false)
      const written = JSON.stringify(mountsOfFolder(folder.root, 'file:///x', survey))
      for (const entry of entries.filter((one) => one === path || one.startsWith(`${path}/`)))
        expect(written).not.toMatch(new RegExp(`"(?:root|file)":"${entry.replaceAll('.', '\\.')}"`))
    },
  )

  test.each(levels)(
    'a link in the place of %s does not lead out of the folder, if it appears after the folder was examined and before its first use',
    async (path) => {
      fill(folder.root, own)
      fill(folder.outside, canary)
      const { complete } = await planSetUp([folder.root])
      const view = await viewOf(await complete())
      link(path, join(folder.outside, path))
      expect(leaks(await allOf(view))).toBe(false)
    },
  )

  test.each(['.claude/commands', 'skills'])(
    'a link in the place of %s is left out even if it leads to a place inside the folder',
    async (path) => {
      folder.write({ 'private/a.md': own, 'private/one/SKILL.md': `---\nname: one\ndescription: x\n---\n` })
      link(path, folder.at('private'))
      const { mounts } = await planSetUp([folder.root])
      expect(JSON.stringify(mounts)).not.toContain(path)
    },
  )

  test.each([
    ['a link that leads nowhere', (path: string) => link(path, join(folder.outside, 'missing'))],
    ['a link to a file', (path: string) => link(path, folder.at('README.md'))],
    ['a file', (path: string) => folder.write({ [path]: 'x' })],
  ])('a root that is %s is left out, and the others are served', async (_, put) => {
    folder.write({ 'README.md': own, 'prompts/a.md': own })
    for (const path of ['.claude/commands', '.github/prompts', '.claude/skills', 'skills']) put(path)
    const { mounts } = await planSetUp([folder.root])
    expect(mounts.map(({ config }) => ('root' in config ? config.root : ''))).toEqual(['.', 'prompts', ''])
  })

  test('a folder that a person named is served even if it is a link', async () => {
    fill(folder.root, own)
    const named = join(folder.outside, 'named')
    symlinkSync(folder.root, named)
    const { complete } = await planSetUp([named])
    const text = await allOf(await viewOf(await complete()))
    expect(text.split(own).length).toBeGreaterThan(7)
  })
})

/** A configuration of all sources that read a folder; none of its paths is a link when it is judged. */
const mounts = {
  'file:///files': { provider: 'files', root: 'prompts' },
  'file:///deep': { provider: 'files', root: '.claude/commands' },
  'zed://prompts': { provider: 'prompts', root: '.github/prompts' },
  'config://settings': { provider: 'settings', root: 'app' },
  'env://env': { provider: 'env', file: 'app/.env', allow: ['*'] },
  'sqlite://db': { provider: 'sqlite', file: 'data/app.db' },
}
const paths = [
  'prompts',
  '.claude',
  '.claude/commands',
  '.github',
  '.github/prompts',
  'app',
  'app/.env',
  'data',
  'data/app.db',
]

async function planned(isTrusted: boolean, more: object = {}): Promise<readonly PlannedMount[]> {
  const file = folder.at('hikidashi.json')
  writeFileSync(file, JSON.stringify({ mounts, ...more }))
  const loaded = await loadConfig(file, { isTrusted: async () => isTrusted })
  if ('problems' in loaded) throw new Error(JSON.stringify(loaded.problems))
  expect(loaded.config.withheld).toEqual([])
  return planConfig(loaded.config)
}

function fillBoth(): void {
  for (const [root, text] of [
    [folder.root, own],
    [folder.outside, canary],
  ] as const) {
    fill(root, text)
    mkdirSync(join(root, 'app'))
    writeFileSync(join(root, 'app', '.env'), `${text.replaceAll(' ', '_').toUpperCase()}=1\n`)
    writeFileSync(join(root, 'app', 'package.json'), JSON.stringify({ description: text }))
  }
}

describe('links that appear after a configuration was checked:', () => {
  test('without links, all mounts of an untrusted configuration are served', async () => {
    fillBoth()
    const text = await allOf(await viewOf(await planned(false)))
    expect(text.toLowerCase().replaceAll('_', ' ').split(own).length).toBeGreaterThan(6)
  })

  test.each(paths)(
    'a link in the place of %s does not lead out of the folder of an untrusted configuration, if it appears before the first use',
    async (path) => {
      fillBoth()
      const view = await viewOf(await planned(false))
      link(path, join(folder.outside, path))
      expect(leaks(await allOf(view))).toBe(false)
    },
  )

  test.each(paths)(
    'a link in the place of %s does not lead out of the folder of an untrusted configuration, if it appears after the first use',
    async (path) => {
      fillBoth()
      const view = await viewOf(await planned(false))
      await allOf(view)
      link(path, join(folder.outside, path))
      expect(leaks(await allOf(view))).toBe(false)
    },
  )

  test.each(paths)(
    'a link in the place of %s does not lead out of the folder of a trusted configuration with "linkedRoots": false',
    async (path) => {
      fillBoth()
      const view = await viewOf(await planned(true, { linkedRoots: false }))
      link(path, join(folder.outside, path))
      expect(leaks(await allOf(view))).toBe(false)
    },
  )

  test('a link to a place inside the folder is followed, but not with "linkedRoots": false', async () => {
    fillBoth()
    renameSync(folder.at('prompts'), folder.at('moved'))
    symlinkSync('moved', folder.at('prompts'))
    expect(await allOf(await viewOf(await planned(false)))).toContain('file:///files/a.md')
    expect(await allOf(await viewOf(await planned(false, { linkedRoots: false })))).not.toContain('file:///files/a.md')
  })

  test('a trusted configuration follows links', async () => {
    fillBoth()
    link('prompts', join(folder.outside, 'prompts'))
    expect(await allOf(await viewOf(await planned(true)))).toContain(canary)
  })
})

describe('a repository of an untrusted configuration', () => {
  let repositories: GitFolder
  beforeEach(() => {
    repositories = createGitFolder()
  })
  afterEach(() => repositories.dispose())

  test('is not opened behind a link that has taken its place', async () => {
    const other = repositories.repository('other')
    other.write('a.txt', canary)
    other.commit(canary)
    folder.write({ 'sub/.git/HEAD': 'ref: refs/heads/main\n' })
    const file = folder.at('hikidashi.json')
    writeFileSync(file, JSON.stringify({ mounts: { 'git://sub': { provider: 'git', repository: 'sub' } } }))
    const loaded = await loadConfig(file, { isTrusted: async () => false })
    if ('problems' in loaded) throw new Error(JSON.stringify(loaded.problems))
    const view = await viewOf(planConfig(loaded.config))
    link('sub', other.dir)
    const text = await view.read('git://sub/HEAD/a.txt').then(JSON.stringify, String)
    expect(text).not.toContain(canary)
    expect(text).toMatch(/unavailable|ResourceError/)
  })
})

describe('a path that no user named', () => {
  const read = (path: string, symlinks: 'deny' | 'beneath') =>
    openWithin(folder.at(path), { folder: folder.root, symlinks }, async ({ at }) => readFileSync(at, 'utf8'))

  test('is opened through a link inside the folder only if such links are allowed, and never through a link that leads out', async () => {
    folder.write({ 'a/b/c.txt': own })
    writeFileSync(join(folder.outside, 'c.txt'), canary)
    symlinkSync(folder.outside, folder.at('out'))
    symlinkSync('a', folder.at('in'))
    symlinkSync(join(folder.outside, 'c.txt'), folder.at('a/leaf'))
    expect(await read('a/b/c.txt', 'deny')).toBe(own)
    expect(await read('in/b/c.txt', 'beneath')).toBe(own)
    await expect(read('in/b/c.txt', 'deny')).rejects.toThrow('symbolic link')
    for (const path of ['out/c.txt', 'a/leaf', '../outside/c.txt'])
      for (const symlinks of ['deny', 'beneath'] as const) await expect(read(path, symlinks)).rejects.toThrow(/link/)
  })
})
