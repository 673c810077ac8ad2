import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { comparePaths } from '../../src/core/path.ts'
import type { Provider } from '../../src/core/provider.ts'
import { isExcludedByDefault } from '../../src/providers/files/ignores.ts'
import { type FilesOptions, files } from '../../src/providers/files/index.ts'
import { contextOf, createFolder, type Folder, listAll, listPaths, sleep, textAt } from '../support/folder.ts'
import { volumeOf } from '../support/volume.ts'

let folder: Folder
const opened: Provider[] = []

beforeEach(() => {
  folder = createFolder()
})
afterEach(async () => {
  for (const provider of opened.splice(0)) await provider.close?.()
  folder.remove()
})

async function open(options: Partial<FilesOptions> = {}): Promise<Provider> {
  const provider = await files({ root: folder.root, ...options })
  opened.push(provider)
  return provider
}

/** What is listed, after checking of every file in the folder that it is readable exactly when it is listed. */
async function served(provider: Provider): Promise<string[]> {
  const listed = await listPaths(provider)
  const all = fs
    .readdirSync(folder.root, { withFileTypes: true, recursive: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => `${entry.parentPath}/${entry.name}`.slice(folder.root.length + 1))
  for (const path of all) {
    const text = await textAt(provider, path)
    expect(text === '!not-found', `${path} is read as ${text}`).toBe(!listed.includes(path))
    const found = await provider.stat?.(path, contextOf()).then(
      () => true,
      () => false,
    )
    expect(found, `stat of ${path}`).toBe(listed.includes(path))
  }
  return listed
}

describe('the default excludes of a files mount', () => {
  const left = [
    '.git/config', '.hg/hgrc', '.svn/entries', '.jj/repo', 'a/node_modules/b/index.js', '.venv/bin/x', 'x/__pycache__/a.pyc',
    '.cache/a', '.next/a', '.turbo/a', 'server.pem', 'server.key', 'server.key.bak', 'id_rsa', 'id_rsa.pub', 'id_ed25519_work',
    'a.p12', 'a.pfx', 'a.jks', '.netrc', '.npmrc', '.pypirc', '.pgpass', '.htpasswd', '.aws/credentials', '.ssh/config',
    '.gnupg/x', '.docker/config.json', '.kube/config', '.env', '.env.local', '.envrc', '.env~', 'a.txt~', '.#a.txt', 'x.swp',
    '#a.txt#', '.DS_Store', '.bash_history', 'prod.tfstate', '.config/gh/hosts.yml', '.git-credentials', '._a.txt',
  ] // biome-ignore format: a list of names
  const kept = [
    '.env.example', '.env.local.sample', '.env.template', '.github/workflows/ci.yml', '.gitignore', '.gitattributes',
    '.editorconfig', 'target/a', 'vendor/a', 'build/a', 'dist/a', 'env/a', '.docker/readme', 'keys.md', 'a.keynote.md',
    '..hidden', 'git/config', 'environment.ts', 'pem.txt', '.vscode/settings.json', 'a.swift', '#a', 'c#.md', 'id.txt',
  ] // biome-ignore format: a list of names

  test('leave out version control, dependencies, caches, keys, environments and backups only', async () => {
    folder.write(Object.fromEntries([...left, ...kept].map((path) => [path, 'x'])))
    fs.writeFileSync(folder.at('.gitignore'), '')
    expect(await served(await open())).toEqual([...kept].sort(comparePaths))
  })

  test('can be turned off, and are not overridden by an include', async () => {
    folder.write({ '.env': 'x', 'a.txt': 'x', '.git/config': 'x' })
    expect(await served(await open({ include: ['**/*', '.env', '.git/'] }))).toEqual(['a.txt'])
    expect(await served(await open({ defaultExcludes: false }))).toEqual(['.env', '.git/config', 'a.txt'])
  })

  test('match a name in every spelling that some file system accepts', () => {
    for (const path of [
      '.ENV',
      '.Git/',
      'a/NODE_MODULES/',
      'ID_RSA',
      'x.PEM',
      '.\u017fsh/',
      '.gi\u200ct/',
      '.git./',
      '.git /',
      'GIT~1/',
      '．env',
      '.Docker/CONFIG.json',
    ])
      expect(isExcludedByDefault(path), path).toBe(true)
    for (const path of ['digit/', 'éa', 'A.TXT', 'a..', '図']) expect(isExcludedByDefault(path), path).toBe(false)
  })
})

describe('the options of a files mount', () => {
  const tree = {
    'a.md': '',
    'docs/b.md': '',
    'docs/deep/c.md': '',
    'docs/d.txt': '',
    'src/e.ts': '',
    'src/docs/f.md': '',
  }

  test.each<[string, Partial<FilesOptions>, string[]]>([
    ['a glob by base name', { include: ['*.md'] }, ['a.md', 'docs/b.md', 'docs/deep/c.md', 'src/docs/f.md']],
    ['a directory at any depth', { include: ['docs'] }, ['docs/b.md', 'docs/d.txt', 'docs/deep/c.md', 'src/docs/f.md']],
    ['a directory at the root', { include: ['/docs/'] }, ['docs/b.md', 'docs/d.txt', 'docs/deep/c.md']],
    ['a path', { include: ['docs/*.md'] }, ['docs/b.md']],
    ['alternatives', { include: ['{docs/deep,src}/**'] }, ['docs/deep/c.md', 'src/docs/f.md', 'src/e.ts']],
    ['an empty include', { include: [] }, []],
    ['an excluded directory', { exclude: ['docs'] }, ['a.md', 'src/e.ts']],
    ['an include and an exclude', { include: ['**/*.md'], exclude: ['DOCS/'] }, ['a.md']],
    ['an excluded glob in another case', { exclude: ['*.MD'] }, ['docs/d.txt', 'src/e.ts']],
  ])('decide which files are served: %s', async (_, options, wanted) => {
    folder.write(tree)
    expect(await served(await open(options))).toEqual(wanted)
  })

  test('hide dot files if "hidden" is false', async () => {
    folder.write({ '.a/b': '', '.c': '', d: '', 'e/.f': '' })
    expect(await served(await open({ hidden: false }))).toEqual(['d'])
  })

  test('are refused if they are invalid, with a malformed glob in the message', async () => {
    await expect(open({ exclude: ['a[b'] })).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('a[b') as string,
    })
    await expect(open({ rules: [{ match: 'a', priority: 2 }] })).rejects.toMatchObject({ kind: 'invalid' })
    await expect(open({ maxBytes: 0 })).rejects.toMatchObject({ kind: 'invalid' })
  })
})

describe('a .gitignore in a files mount', () => {
  const gitFiles = () =>
    execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: folder.root })
      .toString()
      .split('\0')
      .filter((path) => path !== '')
      .sort(comparePaths)
  const git = () => execFileSync('git', ['-c', 'init.defaultBranch=main', 'init', '-q'], { cwd: folder.root })

  test('is read as by git: nested, negated, anchored, for directories, and in .git/info/exclude', async () => {
    git()
    folder.write({
      '.gitignore': '*.log\n/build\nout/\n!keep.log\ntmp/*\n!tmp/stay\n# not this\n\\#this\nspace\\ \n',
      '.git/info/exclude': 'secret.txt\n',
      'a.log': '', 'keep.log': '', 'build/x': '', 'sub/build/x': '', 'out/x': '', 'sub/out/x': '', 'tmp/a': '', 'tmp/stay': '',
      '#this': '', 'space ': '', 'secret.txt': '', 'sub/secret.txt': '',
      'sub/.gitignore': '!*.log\nown\n!out/\n', 'sub/b.log': '', 'own': '', 'sub/own': '', 'sub/out/deep/y.log': '', 'out2': '',
      'sub/x/.gitignore': '\ufeffbom\r\ncr\r\n', 'sub/x/bom': '', 'sub/x/cr': '',
    }) // biome-ignore format: a tree
    const listed = await served(await open({ defaultExcludes: false, exclude: ['/.git/'] }))
    expect(listed).toEqual(gitFiles())
    expect(listed).toContain('sub/out/x')
    expect(listed).not.toContain('out/x')
  })

  test('agrees with git for any tree and any patterns', async () => {
    git()
    const name = fc.constantFrom('a', 'b', 'ab', 'c.x', 'a.x')
    const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('/'))
    const token = fc.constantFrom('a', 'b', 'ab', '*', '**', '?', '*.x', '[ab]', 'c.x')
    const pattern = fc
      .tuple(
        fc.constantFrom('', '!', '/', '!/'),
        fc.array(token, { minLength: 1, maxLength: 3 }),
        fc.constantFrom('', '/'),
      )
      .map(([start, tokens, end]) => `${start}${tokens.join('/')}${end}`)
    const ignores = fc.tuple(fc.constantFrom('', 'a/', 'a/b/', 'b/'), fc.array(pattern, { minLength: 1, maxLength: 4 }))
    const provider = await open({ defaultExcludes: false, exclude: ['/.git/'] })
    await fc.assert(
      fc.asyncProperty(
        fc.array(path, { minLength: 1, maxLength: 12 }),
        fc.array(ignores, { maxLength: 3 }),
        async (paths, rules) => {
          for (const name of fs.readdirSync(folder.root))
            if (name !== '.git') fs.rmSync(folder.at(name), { recursive: true })
          for (const path of paths) {
            try {
              folder.write({ [path]: '' })
            } catch {
              // A file is where a directory is wanted, or the other way round.
            }
          }
          for (const [directory, patterns] of rules)
            if (fs.existsSync(folder.at(directory)))
              folder.write({ [`${directory}.gitignore`]: `${patterns.join('\n')}\n` })
          expect(await listPaths(provider)).toEqual(gitFiles())
        },
      ),
      { numRuns: volumeOf(60, 15) },
    )
  })

  test('takes effect at once when it changes, and has no effect if the option "gitignore" is off', async () => {
    folder.write({ '.gitignore': 'a', a: '', b: '', 'c/a': '' })
    const provider = await open()
    for (let i = 0; i < 20; i++) {
      fs.writeFileSync(folder.at('.gitignore'), 'a')
      expect(await listPaths(provider)).toEqual(['.gitignore', 'b'])
      expect(await textAt(provider, 'c/a')).toBe('!not-found')
      fs.writeFileSync(folder.at('.gitignore'), 'b')
      expect(await listPaths(provider)).toEqual(['.gitignore', 'a', 'c/a'])
      expect(await textAt(provider, 'c/a')).toBe('')
    }
    expect(await listPaths(await open({ gitignore: false }))).toEqual(['.gitignore', 'a', 'b', 'c/a'])
  })

  test('that is malformed, a link, a directory, a FIFO or very large causes no error', async () => {
    folder.write({
      'x/.gitignore': '[z-a\n[[\n\\\n!!\n**/**/[\0\nreal\n',
      'x/real': '',
      'x/a': '',
      'd/.gitignore/a': '',
      'l/a': '',
      'f/a': '',
    })
    fs.writeFileSync(`${folder.outside}/rules`, 'a\n')
    fs.symlinkSync(`${folder.outside}/rules`, folder.at('l/.gitignore'))
    execFileSync('mkfifo', [folder.at('f/.gitignore')])
    folder.write({ 'big/.gitignore': `first\n${'# comment\n'.repeat(60_000)}last\n`, 'big/first': '', 'big/last': '' })
    const messages: string[] = []
    const provider = await open({ log: (_, message) => messages.push(message) })
    expect(await served(provider)).toEqual([
      'big/.gitignore',
      'big/last',
      'd/.gitignore/a',
      'f/a',
      'l/a',
      'x/.gitignore',
      'x/a',
    ])
    expect(messages.join()).toContain('too large')
  })
})

describe('the option "rules" of a files mount', () => {
  test('sets priority, audience, title, description and type, each as the last matching rule that has it says', async () => {
    folder.write({ 'a.md': '# The Title\n', 'b/c.md': 'no heading', 'd.txt': 'text' })
    const provider = await open({
      rules: [
        { match: '**/*.md', priority: 0.2, audience: ['user'], title: 'heading' },
        { match: ['b/**', 'x'], priority: 0.8, description: 'In b' },
        { match: 'd.txt', title: 'Fixed', mimeType: 'text/x-special' },
      ],
    })
    const listed = await listAll(provider)
    expect(listed).toMatchObject([
      { path: 'a.md', priority: 0.2, audience: ['user'], title: 'The Title' },
      { path: 'b/c.md', priority: 0.8, audience: ['user'], description: 'In b' },
      { path: 'd.txt', title: 'Fixed', mimeType: 'text/x-special' },
    ])
    expect(listed[1]).not.toHaveProperty('title')
    for (const entry of listed) expect(await provider.stat?.(entry.path, contextOf())).toEqual(entry)
    await sleep(30)
    folder.write({ 'a.md': '# Another\n' })
    expect((await listAll(provider))[0]?.title).toBe('Another')
  })
})
