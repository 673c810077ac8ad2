import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { comparePaths } from '../../src/core/path.ts'
import type { Provider } from '../../src/core/provider.ts'
import { createFiles, type FilesOptions, openLeftOut } from '../../src/providers/files/index.ts'
import { createFolder, type Folder, listPaths, textAt } from '../support/folder.ts'
import { plainEnvironment } from '../support/git.ts'

// Each test starts some processes of git, and the machine may be busy.
vi.setConfig({ testTimeout: 60_000 })

let folder: Folder
let home: string
const opened: Provider[] = []

beforeEach(() => {
  folder = createFolder()
  home = join(folder.outside, 'home')
  fs.mkdirSync(home)
  vi.stubEnv('HOME', home)
  vi.stubEnv('XDG_CONFIG_HOME', '')
})
afterEach(async () => {
  for (const provider of opened.splice(0)) await provider.close?.()
  vi.unstubAllEnvs()
  folder.remove()
})

/** Runs git as this user, whose home is a folder of the test. */
function git(cwd: string, ...args: readonly string[]): string {
  const { GIT_CONFIG_GLOBAL: _, ...env } = plainEnvironment
  const user = ['-c', 'user.name=a', '-c', 'user.email=a@b', '-c', 'protocol.file.allow=always']
  return execFileSync('git', [...user, ...args], { cwd, env: { ...env, HOME: home }, encoding: 'utf8', stdio: 'pipe' })
}

/** Makes a repository with a commit of these files, of which some are ignored and tracked. */
function repository(name: string, files: Readonly<Record<string, string>>): string {
  const at = folder.at(name)
  fs.mkdirSync(at, { recursive: true })
  git(at, 'init', '-q', '-b', 'main')
  folder.write(Object.fromEntries(Object.entries(files).map(([path, text]) => [join(name, path), text])))
  git(at, 'add', '-f', '.')
  git(at, 'commit', '-qm', 'first')
  return at
}

async function open(root: string, options: Partial<FilesOptions> = {}): Promise<Provider> {
  const provider = await createFiles({ root, ...options }, {})
  opened.push(provider)
  return provider
}

async function served(root: string, options: Partial<FilesOptions> = {}): Promise<readonly string[]> {
  return listPaths(await open(root, options))
}

/** What git lists in working trees: their tracked files and those that it does not ignore. */
function listedByGit(root: string, ...trees: readonly string[]): readonly string[] {
  const files = (tree: string) =>
    git(join(root, tree), 'ls-files', '-co', '--exclude-standard', '-z')
      .split('\0')
      .filter((path) => path !== '' && !path.endsWith('/'))
      .map((path) => join(tree, path))
  const found = new Set((trees.length === 0 ? [''] : trees).flatMap(files))
  return [...found].filter((path) => fs.statSync(join(root, path)).isFile()).sort(comparePaths)
}

const standard = {
  '.gitignore': '*.log\n/build/\n',
  'a.md': 'a',
  'kept.log': 'tracked, although a pattern matches it',
  'build/kept.md': 'tracked in a folder that is ignored',
  'docs/b.md': 'b',
  'docs/.gitignore': '!fine.log\n',
}

/** Files that no commit has. */
function dirty(at: string): void {
  const files = {
    ...{ 'x.log': '', 'new.md': '', 'build/x.md': '', 'build/deep/y.md': '', 'docs/fine.log': '', 'docs/x.log': '' },
    ...{ 'docs/mine.tmp': '', 'docs/all.bak': '', 'mine.tmp': '', 'all.bak': '', 'docs/deep/mine.tmp': '' },
  }
  for (const [path, text] of Object.entries(files)) {
    fs.mkdirSync(join(at, path, '..'), { recursive: true })
    fs.writeFileSync(join(at, path), text)
  }
}

/** Ignores `*.bak` for all repositories of the user. */
function ignoreForUser(): void {
  fs.mkdirSync(join(home, '.config/git'), { recursive: true })
  fs.writeFileSync(join(home, '.config/git/ignore'), '*.bak\n')
}

function exclude(gitDir: string): void {
  fs.mkdirSync(join(gitDir, 'info'), { recursive: true })
  fs.writeFileSync(join(gitDir, 'info/exclude'), '*.tmp\n')
}

describe('the files of a root are those that git lists', () => {
  beforeEach(ignoreForUser)

  test('when the root is a working tree, with tracked files that a pattern matches', async () => {
    const at = repository('main', standard)
    exclude(join(at, '.git'))
    dirty(at)
    const files = await served(at)
    expect(files).toEqual(listedByGit(at))
    expect(files).toEqual(expect.arrayContaining(['kept.log', 'build/kept.md', 'docs/fine.log', 'new.md']))
    expect(await textAt(await open(at), 'build/kept.md')).toBe(standard['build/kept.md'])
    expect(await textAt(await open(at), 'build/x.md')).toBe('!not-found')
  })

  test.each([
    [2, 'two files'],
    [4, 'one file'],
  ] as const)('with a git index of version %i in %s', async (version, held) => {
    const at = repository('main', standard)
    git(at, 'update-index', '--index-version', String(version), ...(held === 'one file' ? [] : ['--split-index']))
    dirty(at)
    expect(await served(at)).toEqual(listedByGit(at))
  })

  test('when the root is a linked working tree', async () => {
    const main = repository('main', standard)
    exclude(join(main, '.git'))
    git(main, 'worktree', 'add', '-q', '../linked')
    const at = folder.at('linked')
    dirty(at)
    const files = await served(at)
    expect(files).toEqual(listedByGit(at))
    expect(files).toContain('kept.log')
    expect(files).not.toContain('mine.tmp')
  })

  test('when the root is a submodule', async () => {
    repository('lib', standard)
    const main = repository('main', { 'a.md': 'a' })
    git(main, 'submodule', '--quiet', 'add', '../lib', 'sub')
    exclude(join(main, '.git/modules/sub'))
    dirty(join(main, 'sub'))
    expect(await served(join(main, 'sub'))).toEqual(listedByGit(join(main, 'sub')))
  })

  test('when the root has a submodule, and an embedded clone', async () => {
    repository('lib', standard)
    const main = repository('main', { ...standard, '.gitignore': '*.log\n/build/\n*.md\n' })
    git(main, 'submodule', '--quiet', 'add', '../lib', 'sub')
    git(main, 'clone', '-q', '../lib', 'clone')
    exclude(join(main, '.git/modules/sub'))
    for (const at of [main, join(main, 'sub'), join(main, 'clone')]) dirty(at)
    const files = await served(main)
    expect(files).toEqual(listedByGit(main, '', 'sub', 'clone'))
    expect(files).toEqual(expect.arrayContaining(['sub/new.md', 'clone/kept.log', 'clone/mine.tmp']))
    expect(files).not.toContain('sub/mine.tmp')
  })

  test.each(['docs', 'docs/deep'])('when the root is the subfolder %s of a working tree', async (name) => {
    const at = repository('main', { ...standard, 'docs/deep/kept.log': 'tracked' })
    exclude(join(at, '.git'))
    dirty(at)
    fs.writeFileSync(join(at, 'docs/deep/x.log'), '')
    fs.writeFileSync(join(at, 'docs/deep/new.md'), '')
    expect(await served(join(at, name))).toEqual(listedByGit(join(at, name)))
  })

  test('when several repositories lie below the root', async () => {
    for (const name of ['one', 'in/two']) {
      exclude(join(repository(name, standard), '.git'))
      dirty(folder.at(name))
    }
    fs.writeFileSync(folder.at('in/two/.git/info/exclude'), '*.md\n')
    expect(await served(folder.root)).toEqual(listedByGit(folder.root, 'one', 'in/two'))
  })

  test.each(['~/mine', 'absolute', 'of the repository'])('with core.excludesFile: %s', async (kind) => {
    const at = repository('main', standard)
    dirty(at)
    fs.writeFileSync(join(home, 'mine'), '*.tmp\ndocs/\n')
    const path = kind === '~/mine' ? kind : join(home, 'mine')
    git(at, 'config', kind === 'of the repository' ? '--local' : '--global', 'core.excludesFile', path)
    const files = await served(at)
    expect(files).toEqual(listedByGit(at))
    expect(files).not.toContain('mine.tmp')
    expect(files).toContain('all.bak')
  })

  test('also after a file was added to the git index, and after .gitignore has changed', async () => {
    const at = repository('main', standard)
    dirty(at)
    const provider = await open(at)
    expect(await listPaths(provider)).toEqual(listedByGit(at))
    git(at, 'add', '-f', 'x.log')
    await expect.poll(() => listPaths(provider), { timeout: 10_000 }).toEqual(listedByGit(at))
    fs.writeFileSync(join(at, '.gitignore'), 'a.md\nnew.md\n')
    await expect.poll(() => listPaths(provider), { timeout: 10_000 }).toEqual(listedByGit(at))
    expect(await listPaths(provider)).toEqual(expect.arrayContaining(['a.md', 'x.log']))
  })

  test('without running a command that the repository configures', async () => {
    const at = repository('main', standard)
    const ran = join(folder.outside, 'ran')
    const script = join(folder.outside, 'hook')
    fs.writeFileSync(script, `#!/bin/sh\ntouch ${ran}\n`, { mode: 0o755 })
    for (const key of ['core.fsmonitor', 'core.pager', 'core.editor', 'filter.x.clean', 'core.sshCommand'])
      git(at, 'config', key, script)
    fs.writeFileSync(join(at, '.git/info/attributes'), '* filter=x\n')
    fs.rmSync(ran, { force: true })
    expect(await served(at)).toContain('kept.log')
    expect(fs.existsSync(ran)).toBe(false)
  })

  test('plus ignored files, when gitignore is off', async () => {
    const at = repository('main', standard)
    dirty(at)
    expect(await served(at, { gitignore: false })).toEqual(
      expect.arrayContaining(['x.log', 'build/deep/y.md', 'all.bak']),
    )
  })
})

describe('another working tree of a repository', () => {
  const why = async (root: string, path: string) => {
    const explainer = await openLeftOut({ root })
    try {
      const { counts } = await explainer.count(1000, new AbortController().signal)
      return { found: await explainer.explain(path, new AbortController().signal), counts }
    } finally {
      explainer.close()
    }
  }

  test.each(['.claude/worktrees/old', 'copies/x', 'a b'])(
    'is left out of the main working tree, unless the option "worktrees" is on: %s',
    async (name) => {
      const at = repository('main', { 'b.md': 'b' })
      git(at, 'worktree', 'add', '-q', '-b', 'other', name)
      expect(await served(at)).toEqual(['b.md'])
      expect(await textAt(await open(at), `${name}/b.md`)).toBe('!not-found')
      expect(await served(at, { worktrees: true })).toContain(`${name}/b.md`)
      expect(await served(at, { gitignore: false })).toEqual(['b.md'])
      const { found, counts } = await why(at, `${name}/b.md`)
      expect(found).toEqual({ reason: 'worktree', path: `${name}/` })
      expect(counts).toMatchObject({ worktree: 1 })
      // The root of its own is what agents work in.
      expect(await served(join(at, name))).toContain('b.md')
    },
  )

  test('is left out of a subfolder, a submodule, an embedded clone, and another linked working tree', async () => {
    const lib = repository('lib', { 'b.md': 'b' })
    const main = repository('main', { 'docs/b.md': 'b' })
    git(main, 'submodule', '--quiet', 'add', lib, 'sub')
    git(main, 'clone', '-q', lib, 'clone')
    for (const name of ['docs', 'sub', 'clone']) git(join(main, name), 'worktree', 'add', '-q', 'again', '-b', name)
    expect(await served(main)).toEqual(['.gitmodules', 'clone/b.md', 'docs/b.md', 'sub/b.md'])
    expect(await served(join(main, 'docs'))).toEqual(['b.md'])
    git(main, 'worktree', 'add', '-q', '../linked')
    git(main, 'worktree', 'add', '-q', '../linked/inner')
    expect(await served(folder.at('linked'))).toEqual(['docs/b.md'])
  })

  test('is left out beside the main working tree, and served if the main working tree is outside of the mount', async () => {
    const main = repository('in/main', { 'b.md': 'b' })
    git(main, 'worktree', 'add', '-q', folder.at('in/linked'))
    git(main, 'worktree', 'add', '-q', '-b', 'far', folder.at('far/linked'))
    expect(await served(folder.at('in'))).toEqual(['main/b.md'])
    expect(await served(folder.at('far'))).toEqual(['linked/b.md'])
  })

  test('is served as the main working tree if the repository is bare', async () => {
    const lib = repository('lib', { 'b.md': 'b' })
    for (const [name, bare] of [
      ['dot', '.git'],
      ['bare', '.bare'],
    ] as const) {
      const at = folder.at(name)
      fs.mkdirSync(at)
      git(at, 'clone', '-q', '--bare', lib, bare)
      if (bare === '.bare') fs.writeFileSync(join(at, '.git'), 'gitdir: ./.bare\n')
      git(at, 'worktree', 'add', '-q', 'main')
      git(at, 'worktree', 'add', '-q', 'main/.agents/x', '-b', 'x')
      expect(await served(at), name).toEqual(['main/b.md'])
      expect(await served(join(at, 'main')), name).toEqual(['b.md'])
    }
  })

  test('is left out also after the repository was moved', async () => {
    const at = repository('main', { 'b.md': 'b' })
    git(at, 'worktree', 'add', '-q', 'copy')
    fs.renameSync(at, folder.at('moved'))
    expect(await served(folder.at('moved'))).toEqual(['b.md'])
  })

  test('is not assumed in a folder with a stray .git file, or with one that points elsewhere', async () => {
    const other = repository('other', { 'b.md': 'b' })
    git(other, 'worktree', 'add', '-q', '../linked')
    const at = repository('main', { 'b.md': 'b' })
    const pointer = fs.readFileSync(folder.at('linked/.git'), 'utf8')
    folder.write({ 'main/a/.git': pointer, 'main/a/x.md': '', 'main/b/.git': 'gitdir: /nowhere\n', 'main/b/x.md': '' })
    folder.write({ 'main/c/.git': 'anything', 'main/c/x.md': '', 'main/d/.git/': null, 'main/d/x.md': '' })
    expect(await served(at)).toEqual(['a/x.md', 'b.md', 'b/x.md', 'c/x.md', 'd/x.md'])
  })
})

describe('a git directory in a files mount', () => {
  test.each(['.bare', 'mirror.git', 'deep/any name'])(
    'is left out, whatever its name is, unless the default excludes are off or except it: %s',
    async (name) => {
      const lib = repository('lib', { 'b.md': 'b' })
      folder.write({ 'main/a.md': 'a', [`main/${name}/`]: null })
      git(folder.at('main'), 'clone', '-q', '--mirror', lib, name)
      fs.appendFileSync(folder.at(`main/${name}/config`), '[remote "o"]\n\turl = https://user:CANARY@example.org/x\n')
      const provider = await open(folder.at('main'))
      expect(await listPaths(provider)).toEqual(['a.md'])
      for (const path of ['config', 'HEAD', 'hooks/pre-commit.sample', 'packed-refs'])
        expect(await textAt(provider, `${name}/${path}`)).toBe('!not-found')
      const explainer = await openLeftOut({ root: folder.at('main') })
      const found = await explainer.explain(`${name}/config`, new AbortController().signal)
      explainer.close()
      expect(found).toEqual({ reason: 'git-directory', path: `${name}/` })
      const except = { defaultExcludes: { except: [`${name}/`] } }
      for (const options of [{ defaultExcludes: false }, except])
        expect(await served(folder.at('main'), options)).toContain(`${name}/config`)
    },
  )

  test('that was copied without its empty folders is left out as well', async () => {
    folder.write({
      'x/HEAD': '',
      'x/packed-refs': '',
      'x/objects/pack/p': '',
      'x/config': '',
      'y/HEAD': '',
      'y/refs/a': '',
    })
    expect(await served(folder.root)).toEqual(['y/HEAD', 'y/refs/a'])
  })

  test('is refused as a root', async () => {
    const at = repository('main', { 'b.md': 'b' })
    git(folder.root, 'clone', '-q', '--bare', at, 'x.git')
    for (const root of ['x.git', 'x.git/hooks', 'main/.git', 'main/.git/info'])
      await expect(open(folder.at(root)), root).rejects.toMatchObject({
        kind: 'invalid',
        message: expect.stringMatching(/git directory.*provider "git"/),
      })
    git(folder.at('x.git'), 'worktree', 'add', '-q', 'tree')
    expect(await served(folder.at('x.git/tree'))).toEqual(['b.md'])
  })

  test('is left out, and so are the directories of other version control systems', async () => {
    const names = ['.git', '.hg', '.svn', '.jj', '.sl', '.pijul', '.bzr', '_darcs', '.got', '_FOSSIL_', '.fslckout']
    folder.write(Object.fromEntries([...names.map((name) => [`${name}/x`, '']), ['a.md', '']]))
    expect(await served(folder.root)).toEqual(['a.md'])
  })
})

describe('.ignore and .hikidashiignore', () => {
  test('have the syntax of .gitignore in every folder, and override .gitignore in this order', async () => {
    folder.write({
      '.gitignore': '*.log\n*.md\n',
      '.ignore': '!a.log\n*.txt\n/out/\n',
      '.hikidashiignore': '!b.txt\nsecret/\n',
      'in/.gitignore': '!secret/\n!c.txt\n',
      'in/.ignore': '!c.log\n',
      ...{ 'a.log': '', 'x.log': '', 'b.txt': '', 'x.txt': '', 'out/x': '', 'secret/x': '', 'in/secret/x': '' },
      ...{ 'in/c.txt': '', 'in/c.log': '', 'in/a.log': '', 'in/out/x': '' },
    })
    const files = (await served(folder.root)).filter((path) => !path.endsWith('ignore'))
    expect(files).toEqual(['a.log', 'b.txt', 'in/a.log', 'in/c.log', 'in/out/x'])
    const offs = (await served(folder.root, { gitignore: false })).filter((path) => !path.endsWith('ignore'))
    expect(offs).toEqual(['a.log', 'b.txt', 'in/a.log', 'in/c.log', 'in/out/x', 'x.log'])
  })

  test('of the folders above the root in its repository apply, also in repositories inside the root', async () => {
    const at = repository('main', { '.ignore': '*.txt\n', 'docs/a.md': '', 'docs/x.txt': '', 'docs/deep/y.txt': '' })
    repository('main/docs/clone', { 'z.txt': '', 'z.md': '' })
    expect(await served(join(at, 'docs'))).toEqual(['a.md', 'clone/z.md'])
    const explainer = await openLeftOut({ root: join(at, 'docs') })
    const found = await explainer.explain('x.txt', new AbortController().signal)
    explainer.close()
    expect(found).toMatchObject({ reason: 'gitignore', line: { file: '../.ignore', line: 1, pattern: '*.txt' } })
  })

  test('take effect when they change', async () => {
    folder.write({ 'a.md': '', 'b.md': '' })
    const provider = await open(folder.root)
    expect(await listPaths(provider)).toEqual(['a.md', 'b.md'])
    folder.write({ '.hikidashiignore': 'a.md\n' })
    expect(await listPaths(provider)).toEqual(['.hikidashiignore', 'b.md'])
    expect(await textAt(provider, 'a.md')).toBe('!not-found')
    folder.write({ '.hikidashiignore': 'b.md\n' })
    expect(await listPaths(provider)).toEqual(['.hikidashiignore', 'a.md'])
    folder.write({ '.ignore': 'a.md\n' })
    expect(await listPaths(provider)).toEqual(['.hikidashiignore', '.ignore'])
  })
})
