import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import type { Provider } from '../../src/core/provider.ts'
import { createGit, type GitOptions, git } from '../../src/providers/git/index.ts'
import { sliced } from '../../src/wrap/sliced.ts'
import { type Asked, ask, context, createGitFolder, type GitFolder, type GitRepository } from '../support/git.ts'

let folder: GitFolder
let repository: GitRepository
let provider: Provider
const opened: Provider[] = []

beforeEach(() => {
  folder = createGitFolder()
  repository = folder.repository('repository')
})

afterEach(async () => {
  for (const one of opened.splice(0)) await one.close?.()
  folder.dispose()
})

async function open(options: Partial<GitOptions> = {}): Promise<Asked> {
  // Refs are looked at again for every question, and a slow machine has all the time that it needs.
  provider = await createGit({ repository: repository.dir, ...options }, { maxAgeMs: 0, dateBudgetMs: 60_000 })
  opened.push(provider)
  return ask(provider)
}

const complete = async (template: string, name: string, value: string, filled: Record<string, string> = {}) =>
  (
    await provider.complete?.(
      { template, argument: { name, value }, arguments: new Map(Object.entries(filled)) },
      context(),
    )
  )?.values ?? []

/** Three commits on `main`, one more on `feature/x`, a tag of each kind. */
function fill() {
  return repository.fillAs('branches', () => {
    repository.write('src/main.ts', 'one\n')
    repository.write('README.md', '# Title\n')
    const first = repository.commit('first')
    repository.write('src/main.ts', 'one\ntwo\n')
    const second = repository.commit('second\n\nBecause of\n  reasons.', { author: 'Grace Hopper <grace@example.com>' })
    repository.git('tag', 'light', first)
    repository.git('tag', '-a', 'v1.0', '-m', 'the first release', second)
    repository.git('checkout', '-q', '-b', 'feature/x')
    repository.write('src/feature.ts', 'feature\n')
    const feature = repository.commit('a feature')
    repository.git('checkout', '-q', 'main')
    repository.git('mv', 'README.md', 'docs.md')
    const third = repository.commit('third')
    return { first, second, third, feature }
  })
}

describe('files of a git mount', () => {
  test('are read at HEAD, branches, tags and commits, by short and by full names', async () => {
    const { first, second } = fill()
    const asked = await open()
    const at = {
      HEAD: 'one\ntwo\n',
      main: 'one\ntwo\n',
      light: 'one\n',
      'v1.0': 'one\ntwo\n',
      'feature/x': 'one\ntwo\n',
    }
    for (const [ref, text] of Object.entries(at)) expect(await asked.text(`${ref}/src/main.ts`), ref).toBe(text)
    for (const ref of ['refs/heads/feature/x', 'feature/x'])
      expect(await asked.text(`${ref}/src/feature.ts`)).toBe('feature\n')
    for (const ref of ['refs/tags/light', first, first.slice(0, 10)])
      expect(await asked.text(`${ref}/src/main.ts`)).toBe('one\n')
    for (const path of [
      'HEAD/README.md',
      'HEAD/src',
      'feature/src/main.ts',
      'feature/x',
      `${second}x/src/main.ts`,
      'HEAD/src/main.ts/x',
    ])
      await expect(asked.read(path), path).rejects.toMatchObject({ kind: 'not-found' })
  })

  test('have their object id, size, type and commit, and at a full commit id are marked as immutable', async () => {
    const { first } = fill()
    const asked = await open()
    const version = repository.git('rev-parse', `${first}:src/main.ts`)
    const content = {
      text: 'one\n',
      version,
      size: 4,
      mimeType: 'text/typescript',
      meta: { 'dev.hikidashi/commit': first },
    }
    expect(await asked.read('light/src/main.ts')).toEqual(content)
    expect(await asked.read(`${first}/src/main.ts`)).toEqual({ ...content, immutable: true })
    expect(await asked.read(`${first.slice(0, 12)}/src/main.ts`)).toEqual(content)
    expect(await asked.stat('light/src/main.ts')).toMatchObject({ version, size: 4, mimeType: 'text/typescript' })
  })

  test('that are binary are read as bytes', async () => {
    repository.write('nul.txt', 'a\0b')
    repository.write('latin.txt', Uint8Array.of(0x67, 0x72, 0xfc))
    repository.commit('binary')
    const asked = await open()
    expect(await asked.read('HEAD/nul.txt')).toMatchObject({ bytes: Buffer.from('a\0b') })
    expect(await asked.read('HEAD/latin.txt')).toMatchObject({ bytes: Buffer.of(0x67, 0x72, 0xfc) })
  })

  test('that are too large are read in parts, at any offset', async () => {
    const text = Array.from({ length: 400_000 }, (_, i) => `${i} 吾輩は猫である\n`).join('')
    repository.write('large.txt', text)
    repository.write('large.bin', Buffer.alloc(9_000_000, Buffer.from([0, 1, 2, 3, 4])))
    repository.commit('large')
    const asked = await open({ maxBytes: 100_000 })
    const bytes = Buffer.from(text)
    await expect(asked.read('HEAD/large.txt')).rejects.toMatchObject({
      kind: 'too-large',
      detail: { size: bytes.length, limit: 100_000 },
    })
    await expect(asked.read('HEAD/large.txt', {}, { start: 0, end: 200_000 })).rejects.toMatchObject({
      kind: 'too-large',
    })
    await expect(asked.read('HEAD/large.txt', {}, { start: bytes.length })).rejects.toMatchObject({ kind: 'invalid' })
    for (const start of [0, 5_000_001, bytes.length - 50_000]) {
      const part = await asked.read('HEAD/large.txt', {}, { start, end: start + 50_000 })
      expect(part.size).toBe(bytes.length)
      const { start: from = 0, end = 0 } = part.range ?? {}
      expect('text' in part && part.text).toBe(bytes.toString('utf8', from, end))
      expect(Math.abs(from - start) + Math.abs(end - start - 50_000)).toBeLessThan(6)
    }
    expect(await asked.read('HEAD/large.bin', {}, { start: 8_999_995 })).toMatchObject({
      bytes: Buffer.from([0, 1, 2, 3, 4]),
    })
    expect((await asked.stat('HEAD/large.bin')).size).toBe(9_000_000)
  })
})

describe('a catalog with a git mount', () => {
  async function readAll(...uris: readonly string[]) {
    const catalog = createCatalog({
      mounts: [{ address: 'git://app', provider: sliced(await git({ repository: repository.dir })) }],
    })
    try {
      const view = catalog.view({ id: 'test', roles: [] })
      return await Promise.all(uris.map((uri) => view.read(uri)))
    } finally {
      await catalog.close()
    }
  }

  test('answers a read of a file with ?lines with these lines', async () => {
    fill()
    const [part] = await readAll('git://app/HEAD/src/main.ts?lines=2-2')
    expect(part?.contents).toMatchObject([{ text: 'two\n' }])
  })

  test('passes the parameters limit and ref on to the log', async () => {
    const { feature } = fill()
    const [log] = await readAll('git://app/log?limit=1&ref=feature/x')
    const [content] = log?.contents ?? []
    const text = content !== undefined && 'text' in content ? content.text : ''
    expect(text.match(/^[0-9a-f]{12} .*$/gm)).toEqual([expect.stringContaining('a feature')])
    expect(text).toContain(feature.slice(0, 12))
  })

  test('lets clients cache a commit with a full id for more than ten days, and not the commit of a branch', async () => {
    const { third } = fill()
    const [whole, moving] = await readAll(`git://app/commits/${third}`, 'git://app/commits/main')
    expect(whole?.cache.ttlMs).toBeGreaterThan(10 * 86_400_000)
    expect(moving?.cache.ttlMs).toBeLessThan(10 * 86_400_000)
  })
})

describe('the listing of a git mount', () => {
  test('has the files at HEAD and the pages, with the dates of their last commits', async () => {
    fill()
    const asked = await open()
    const entries = await asked.list()
    expect(entries.map(({ path }) => path)).toEqual([
      'HEAD/docs.md',
      'HEAD/src/main.ts',
      'branches',
      'log',
      'status',
      'tags',
    ])
    for (const { path, modified } of entries.slice(0, 2)) {
      const time = repository.git('log', '-1', '--format=%ct', '--', path.slice('HEAD/'.length))
      expect(modified, path).toBe(Number(time) * 1000)
    }
  })

  test('of a prefix has the files of any ref or commit, and the matching refs', async () => {
    const { first, feature } = fill()
    const asked = await open()
    const files = ['README.md', 'src/feature.ts', 'src/main.ts']
    for (const ref of ['feature/x', 'refs/heads/feature/x', feature, feature.slice(0, 7)])
      expect(await asked.paths({ prefix: `${ref}/` }), ref).toEqual(files.map((path) => `${ref}/${path}`))
    expect(await asked.paths({ prefix: `${first}/src/` })).toEqual([`${first}/src/main.ts`])
    expect(await asked.paths({ prefix: 'feature/' })).toEqual(files.map((path) => `feature/x/${path}`))
    expect(await asked.paths({ prefix: 'refs/heads/', after: 'refs/heads/feature/x/src/feature.ts' })).toEqual([
      'refs/heads/feature/x/src/main.ts',
      'refs/heads/main/docs.md',
      'refs/heads/main/src/main.ts',
    ])
    expect(await asked.paths({ prefix: 'refs/tags/' })).toHaveLength(4)
    for (const prefix of ['none/', 'refs/none/', 'HEAD/src/main.ts/', 'log/', 'commits/', 'refs/heads/main/docs.md/'])
      expect(await asked.paths({ prefix }), prefix).toEqual([])
  })

  test('has a directory for each ref, also for refs with slashes', async () => {
    fill()
    const catalog = createCatalog({
      mounts: [{ address: 'git://app', provider: await git({ repository: repository.dir }) }],
    })
    try {
      const view = catalog.view({ id: 'test', roles: [] })
      const names = async (uri: string) => (await view.directory({ uri })).items.map(({ uri: at }) => at)
      expect(await names('git://app')).toEqual([
        'git://app/HEAD/',
        ...['branches', 'log', 'status', 'tags'].map((name) => `git://app/${name}`),
      ])
      expect(await names('git://app/refs/heads')).toEqual([
        'git://app/refs/heads/feature/',
        'git://app/refs/heads/main/',
      ])
      expect(await names('git://app/feature/x/')).toEqual(['git://app/feature/x/README.md', 'git://app/feature/x/src/'])
      await expect(names('git://app/none')).rejects.toMatchObject({ kind: 'not-found' })
    } finally {
      await catalog.close()
    }
  })

  test('follows changes of the repository within a second', async () => {
    fill()
    const late = await git({ repository: repository.dir })
    opened.push(late)
    const [now, later] = [await open(), ask(late)]
    await Promise.all([now.paths(), later.paths()])
    repository.write('new.txt', 'new\n')
    repository.commit('new')
    repository.git('branch', 'other', 'light')
    const entries = await now.list()
    expect(entries.map(({ path }) => path)).toContain('HEAD/new.txt')
    for (const { path, modified } of entries.slice(0, 3))
      expect(modified, path).toBe(Number(repository.git('log', '-1', '--format=%ct', '--', path.slice(5))) * 1000)
    expect(await now.text('other/src/main.ts')).toBe('one\n')
    await sleep(1050)
    expect(await later.paths()).toContain('HEAD/new.txt')
    expect(await later.text('other/src/main.ts')).toBe('one\n')
  })

  test('has the dates of git log, through merges, reverts and deleted files', async () => {
    const write = (branch: string, files: Record<string, string>) => {
      repository.git('checkout', '-q', branch)
      for (const [path, text] of Object.entries(files)) repository.write(path, text)
      repository.commit(`${branch} ${Object.keys(files)}`)
    }
    const merge = (into: string, from: string, ...options: string[]) => {
      repository.git('checkout', '-q', into)
      repository.git('merge', '-q', '--no-edit', '--no-ff', ...options, from)
    }
    repository.commit('root')
    write('main', Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`f${i}.txt`, `base ${i}\n`])))
    repository.git('branch', 'side')
    repository.git('branch', 'third')
    write('side', { 'f0.txt': 'side\n', 'dir/new.txt': 'side\n' })
    write('main', { 'f1.txt': 'main\n' })
    write('third', { 'f2.txt': 'third\n', 'f3.txt': 'third\n' })
    merge('main', 'side')
    write('side', { 'f4.txt': 'side\n', 'f5.txt': 'side\n' })
    // What the other side changed is thrown away.
    merge('main', 'side', '-s', 'ours')
    // Changed there and back again.
    write('third', { 'f2.txt': 'base 2\n' })
    merge('main', 'third')
    // The other way round: main is merged into a branch, which then becomes main.
    write('third', { 'f6.txt': 'third\n' })
    write('main', { 'f7.txt': 'main\n' })
    merge('third', 'main')
    repository.git('checkout', '-q', '-B', 'main', 'third')
    rmSync(join(repository.dir, 'f8.txt'))
    write('main', { 'f9.txt': 'main\n' })
    repository.write('f8.txt', 'again\n')
    repository.commit('again')
    const asked = await open()
    const compare = async () => {
      for (const { path, modified } of await asked.list({ prefix: 'HEAD/' })) {
        const time = repository.git('log', '-1', '--format=%ct', '--', path.slice('HEAD/'.length))
        expect(modified, path).toBe(Number(time) * 1000)
      }
    }
    await compare()
    // From here on only what is new is walked through.
    write('side', { 'f10.txt': 'side\n' })
    merge('main', 'side', '-X', 'theirs')
    await compare()
    repository.git('checkout', '-q', '--detach', 'side')
    await compare()
  })
})

describe('pages of a git mount', () => {
  test('include a log with a line for each commit, which accepts a path, times, an author, a number and a ref, and refuses invalid values', async () => {
    const { first, second, third, feature } = fill()
    const asked = await open()
    const id = (oid: string) => oid.slice(0, 12)
    expect(await asked.text('log')).toBe(
      [
        `Log of HEAD at ${id(third)}, newest first.`,
        `${id(third)} 2026-01-02T12:08:05+09:00 Ada Lovelace (HEAD, main): third`,
        `${id(second)} 2026-01-02T12:06:05+09:00 Grace Hopper (v1.0): second`,
        `${id(first)} 2026-01-02T12:05:05+09:00 Ada Lovelace (light): first`,
        '',
      ].join('\n'),
    )
    const ids = async (params: Record<string, string>) =>
      [...(await asked.text('log', params)).matchAll(/^([0-9a-f]{12}) /gm)].map(([, oid]) => oid)
    expect(await ids({ path: 'src/main.ts' })).toEqual([id(second), id(first)])
    expect(await ids({ path: 'src/' })).toEqual([id(second), id(first)])
    expect(await ids({ author: 'GRACE@' })).toEqual([id(second)])
    expect(await ids({ author: '.*' })).toEqual([])
    expect(await ids({ since: '2026-01-02T03:06:00Z', until: '2026-01-02T03:07:00Z' })).toEqual([id(second)])
    expect(await ids({ until: '2026-01-01' })).toEqual([])
    expect(await ids({ ref: 'feature/x', limit: '1' })).toEqual([id(feature)])
    expect(await ids({ ref: second })).toEqual([id(second), id(first)])
    const cut = await asked.read('log', { limit: '2' })
    expect(cut).toMatchObject({ text: expect.stringContaining('[cut: '), meta: { 'dev.hikidashi/truncated': true } })
    for (const params of [
      { limit: '0' },
      { limit: '10001' },
      { limit: '1e2' },
      { since: 'whenever' },
      { path: '../x' },
      { path: '' },
      { author: '' },
    ])
      await expect(asked.read('log', params), JSON.stringify(params)).rejects.toMatchObject({ kind: 'invalid' })
    await expect(asked.read('log', { ref: 'none' })).rejects.toMatchObject({ kind: 'not-found' })
  })

  test('include each commit, with its message, people, numbers of changed lines and patch', async () => {
    const { first, second, third } = fill()
    const asked = await open()
    expect(await asked.read(`commits/${second}`)).toEqual({
      mimeType: 'text/plain',
      immutable: true,
      text: [
        `commit ${second}`,
        `parent ${first}`,
        'author Grace Hopper <grace@example.com> 2026-01-02T12:06:05+09:00',
        '',
        '    second',
        '',
        '    Because of',
        '      reasons.',
        '',
        '1 file, +1 -0',
        '+1 -0 src/main.ts',
        '',
        'diff --git a/src/main.ts b/src/main.ts',
        'index 5626abf..814f4a4 100644',
        '--- a/src/main.ts',
        '+++ b/src/main.ts',
        '@@ -1 +1,2 @@',
        ' one',
        '+two',
        '',
      ].join('\n'),
    })
    const root = await asked.text(`commits/${first.slice(0, 8)}`)
    expect(root).not.toContain('parent')
    expect(root).toContain('2 files, +2 -0')
    expect(await asked.text(`commits/${third}`)).toContain('+0 -0 README.md → docs.md')
    expect((await asked.read(`commits/${third.slice(0, 8)}`)).immutable).toBeUndefined()
    repository.git('merge', '-q', '--no-edit', 'feature/x')
    const merged = await asked.text('commits/HEAD')
    expect(merged).toContain(`parents ${third} `)
    expect(merged).toContain('1 file, +1 -0, compared with the first parent\n+1 -0 src/feature.ts')
  })

  test('show patches and blame in UTF-8, also for a file in Shift_JIS', async () => {
    fill()
    // 「設定ファイルを変更した後は、必ずサービスを再起動してください。」, in Shift_JIS.
    const sentence = 'kN2S6IN0g0CDQ4OLgvCVz41YgrWCvYzjgs2BQZVLgriDVIFbg3KDWILwjcSLTpOugrWCxIKtgr6Cs4KigUI='
    repository.write('手引き.txt', Buffer.concat([Buffer.from(sentence, 'base64'), Buffer.from('\n')]))
    repository.write('utf8.txt', '設定\n')
    repository.commit('手引き')
    const asked = await open()
    const patch = await asked.text('commits/HEAD')
    expect(patch).toContain('\n+++ b/手引き.txt\n@@ -0,0 +1 @@\n+設定ファイルを変更した後は')
    expect(patch).toContain('\n+設定\n')
    const blame = await asked.text('blame/HEAD/手引き.txt')
    expect(blame).toContain('Ada Lovelace: 手引き\n     1  設定ファイルを変更した後は')
  })

  test('include patches, which show names with spaces unquoted', async () => {
    fill()
    repository.write('two words.txt', 'one\n')
    repository.commit('Two words')
    const patch = await (await open()).text('commits/HEAD')
    expect(patch).toContain('\n+++ b/two words.txt\n')
  })

  test('include a diff of any two refs, also if both have slashes, of all files or of one path', async () => {
    const { first, second } = fill()
    const asked = await open()
    const text = await asked.text('diff/feature/x/refs/heads/main')
    expect(text).toMatch(/^Diff feature\/x \([0-9a-f]{12}\) → refs\/heads\/main \([0-9a-f]{12}\)\n2 files, \+0 -1\n/)
    expect(text).toContain('-feature')
    expect(await asked.text('diff/light/main', { path: 'src/main.ts' })).toContain('1 file, +1 -0')
    expect(await asked.text('diff/light/main', { path: 'none' })).toContain('No changes.')
    expect((await asked.read(`diff/${first}/${second}`)).immutable).toBe(true)
    expect((await asked.read(`diff/${first}/main`)).immutable).not.toBe(true)
    for (const path of ['diff/main', 'diff/main/none', 'diff/none/main', 'diff/main/src/main.ts', 'diff/main/main/'])
      await expect(asked.read(path), path).rejects.toMatchObject({ kind: 'not-found' })
  })

  test('include a blame with the author of each line, and refuse that of a file that is binary, in UTF-16 or too large', async () => {
    const { first, second } = fill()
    const asked = await open()
    expect(await asked.text('blame/main/src/main.ts')).toBe(
      [
        `Blame of src/main.ts at main (${repository.git('rev-parse', 'main').slice(0, 12)}).`,
        `${first.slice(0, 12)} 2026-01-02 Ada Lovelace: first`,
        '     1  one',
        `${second.slice(0, 12)} 2026-01-02 Grace Hopper: second`,
        '     2  two',
        '',
      ].join('\n'),
    )
    repository.write('binary', 'a\0b')
    repository.write('large', 'x\n'.repeat(600_000))
    repository.commit('no text')
    await expect(asked.read('blame/HEAD/binary')).rejects.toMatchObject({ kind: 'invalid' })
    await expect(asked.read('blame/HEAD/large')).rejects.toMatchObject({ kind: 'too-large' })
    await expect(asked.read('blame/HEAD/src')).rejects.toMatchObject({ kind: 'not-found' })
    repository.write('wide', Buffer.from('\ufeffone\n', 'utf16le'))
    repository.write('small', 'x\n'.repeat(1000))
    repository.commit('limits')
    await expect(asked.read('blame/HEAD/wide')).rejects.toThrow('UTF-16')
    const limited = await open({ maxBytes: 1000 })
    await expect(limited.read('blame/HEAD/small')).rejects.toThrow('2000 bytes, and at most 1000 bytes')
  })

  test('include the branches and tags with their commits', async () => {
    const { first, second, third, feature } = fill()
    const asked = await open()
    expect(await asked.text('branches')).toBe(
      [
        'Branches, newest first. HEAD is on the one with a *.',
        `* main ${third.slice(0, 12)} 2026-01-02T12:08:05+09:00 third`,
        `  feature/x ${feature.slice(0, 12)} 2026-01-02T12:07:05+09:00 a feature`,
        '',
      ].join('\n'),
    )
    expect(await asked.text('tags')).toBe(
      [
        'Tags, newest first.',
        `  v1.0 ${second.slice(0, 12)} 2026-01-02T12:06:05+09:00 the first release`,
        `  light ${first.slice(0, 12)} 2026-01-02T12:05:05+09:00 first`,
        '',
      ].join('\n'),
    )
  })

  test('include a status of staged, changed, untracked and conflicting files', async () => {
    fill()
    const asked = await open()
    const at = repository.git('rev-parse', 'HEAD').slice(0, 12)
    expect(await asked.text('status')).toBe(`On main at ${at}.\nNothing has changed.\n`)
    repository.write('staged.txt', 'x')
    repository.write('.gitignore', 'ignored\n')
    writeFileSync(join(repository.gitDir, 'info/exclude'), 'excluded\n')
    repository.git('add', '-A')
    repository.git('mv', 'docs.md', 'renamed.md')
    repository.write('src/main.ts', 'changed\n')
    for (const name of ['unknown/a', 'unknown/b', 'ignored', 'excluded']) repository.write(name, name)
    expect(await asked.text('status')).toBe(
      [
        `On main at ${at}.`,
        'Staged:',
        '  added .gitignore',
        '  renamed docs.md → renamed.md',
        '  added staged.txt',
        'Not staged:',
        '  modified src/main.ts',
        'Untracked:',
        '  unknown/',
        '',
      ].join('\n'),
    )
    repository.git('stash', '-q', '-u')
    repository.write('src/feature.ts', 'another\n')
    repository.commit('in the way')
    execFileSync('sh', ['-c', 'git merge -q feature/x || true'], {
      cwd: repository.dir,
      stdio: 'ignore',
      env: {
        PATH: process.env.PATH,
        HOME: '/nonexistent',
        GIT_COMMITTER_NAME: 'x',
        GIT_COMMITTER_EMAIL: 'x',
        GIT_AUTHOR_NAME: 'x',
        GIT_AUTHOR_EMAIL: 'x',
      },
    })
    expect(await asked.text('status')).toContain('Conflicts:\n  src/feature.ts')
  })

  test('are truncated if they are long, and say so', async () => {
    for (let i = 0; i < 400; i++) repository.write(`many/${i}.txt`, `${'line\n'.repeat(300)}${i}\n`)
    repository.commit('many')
    const asked = await open()
    const page = await asked.read('commits/HEAD')
    const text = 'text' in page ? page.text : ''
    expect(page.meta).toEqual({ 'dev.hikidashi/truncated': true })
    expect(text).toContain('400 files, +120400 -0')
    expect(text).toContain('[cut: only 300 of the changed files are shown]')
    const inFirst = /\[cut: the patch is longer than 262144 bytes; read its files as (\w+)\/PATH\]\n$/.exec(text)?.[1]
    expect(await asked.text(`${inFirst}/many/1.txt`)).toContain('line\n1\n')
    for (let i = 0; i < 400; i++) repository.write(`many/${i}.txt`, `${'other line\n'.repeat(300)}${i}\n`)
    repository.commit('other lines')
    const second = await asked.text('commits/HEAD')
    const difference = /bytes; see one file with (diff\/\w+\/\w+)\?path=PATH\]\n$/.exec(second)?.[1]
    expect(await asked.text(`${difference}`, { path: 'many/1.txt' })).toContain('+other line\n')
    for (let i = 0; i < 1100; i++) repository.write(`untracked-${i}`, '')
    expect((await asked.read('status')).meta).toEqual({ 'dev.hikidashi/truncated': true })
  })

  test('are found by stat, as are directories, and other paths are not found', async () => {
    fill()
    const asked = await open()
    expect(await asked.stat('log')).toMatchObject({ path: 'log', mimeType: 'text/plain' })
    expect(await asked.stat('commits/HEAD')).toEqual({ path: 'commits/HEAD', mimeType: 'text/plain' })
    expect(await asked.stat('HEAD/src/')).toEqual({ path: 'HEAD/src/', mimeType: 'inode/directory' })
    for (const path of [
      'commits',
      'diff',
      'blame',
      'commits/none',
      'blame/HEAD/none',
      'stash',
      '',
      'none/',
      'HEAD/none/',
    ])
      await expect(asked.stat(path), path).rejects.toMatchObject({ kind: 'not-found' })
  })
})

describe('completion in a git mount', () => {
  test('offers refs, paths at a ref, the latest commits and their authors', async () => {
    const { first, third } = fill()
    repository.git('branch', 'log')
    await open()
    const file = '{+ref}/{+path}'
    expect(await complete(file, 'ref', '')).toEqual(['HEAD', 'feature/x', 'refs/heads/log', 'main', 'light', 'v1.0'])
    expect(await complete(file, 'ref', 'FEA')).toEqual(['feature/x'])
    expect(await complete(file, 'path', '')).toEqual(['docs.md', 'src/'])
    expect(await complete(file, 'path', 'src/')).toEqual(['src/main.ts'])
    expect(await complete(file, 'path', 'src/f', { ref: 'feature/x' })).toEqual(['src/feature.ts'])
    expect(await complete(file, 'path', 'none/')).toEqual([])
    expect(await complete('commits/{sha}', 'sha', '')).toHaveLength(3)
    expect(await complete('commits/{sha}', 'sha', first.slice(0, 6))).toEqual([first])
    expect((await complete('commits/{sha}', 'sha', ''))[0]).toBe(third)
    expect(await complete('log{?author}', 'author', '')).toEqual(['Ada Lovelace', 'Grace Hopper'])
    expect(await complete('diff/{+from}/{+to}{?path}', 'to', 'v')).toEqual(['v1.0'])
    expect(await complete('log{?limit}', 'limit', '1')).toEqual([])
  })

  test('gives at most a hundred values', async () => {
    for (let i = 0; i < 250; i++) repository.write(`f${i}`, '')
    mkdirSync(join(repository.dir, 'd'))
    repository.commit('many')
    await open()
    const request = { template: '{+ref}/{+path}', argument: { name: 'path', value: 'f' }, arguments: new Map() }
    const completion = await provider.complete?.(request, context())
    expect(completion).toMatchObject({ total: 250, hasMore: true })
    expect(completion?.values).toHaveLength(100)
  })
})
