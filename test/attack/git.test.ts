import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { deflateSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Provider } from '../../src/core/provider.ts'
import { type GitOptions, git } from '../../src/providers/git/index.ts'
import {
  type Asked,
  ask,
  context,
  createGitFolder,
  type GitFolder,
  type GitRepository,
  openTestRepository,
} from '../support/git.ts'
import {
  arm,
  carelessly,
  commitTree,
  createTraps,
  fakeGit,
  fillPlainly,
  processesWith,
  rawTree,
  type Traps,
  writeRaw,
} from '../support/git-hostile.ts'

// The rows GT of the attack corpus, on real repositories. Where it is cheap, plain git shows first that the attack is one.

let folder: GitFolder
let repository: GitRepository
let traps: Traps
const opened: Provider[] = []

beforeEach(() => {
  folder = createGitFolder()
  repository = folder.repository('repository')
  traps = createTraps(folder)
})

afterEach(async () => {
  for (const provider of opened.splice(0)) await provider.close?.()
  folder.dispose()
})

async function open(options: Partial<GitOptions> = {}): Promise<Asked> {
  const provider = await git({ repository: repository.dir, ...options })
  opened.push(provider)
  return ask(provider)
}

/** The kind of error that a call ends in, or what it answered. */
async function outcome(call: Promise<unknown>): Promise<string> {
  try {
    return JSON.stringify(await call)
  } catch (error) {
    return error instanceof Error && 'kind' in error ? String(error.kind) : String(error)
  }
}

/** Everywhere that a ref can be written. */
const withRef = (ref: string): readonly (readonly [string, Record<string, string>])[] => [
  [`${ref}/a.txt`, {}],
  ['log', { ref }],
  [`commits/${ref}`, {}],
  [`diff/${ref}/HEAD`, {}],
  [`diff/HEAD/${ref}`, {}],
  [`blame/${ref}/a.txt`, {}],
]

async function expectNothingAt(asked: Asked, ref: string): Promise<void> {
  for (const [path, params] of withRef(ref)) {
    expect(await outcome(asked.read(path, params)), `${path} ${JSON.stringify(params)}`).toBe('not-found')
    if (Object.keys(params).length === 0) expect(await outcome(asked.stat(path)), path).toBe('not-found')
  }
  expect(await asked.paths({ prefix: `${ref}/` }), ref).toEqual([])
}

/** Asks for everything that there is. */
async function useEverything(asked: Asked, provider = opened.at(-1)): Promise<void> {
  const paths = await asked.paths()
  for (const path of paths) {
    await asked.stat(path)
    await asked.read(path)
  }
  for (const path of ['commits/HEAD', 'diff/HEAD~0/HEAD', 'diff/main/HEAD', 'blame/HEAD/a.txt'])
    await outcome(asked.read(path))
  const { first = '' } = { first: repository.git('rev-list', '--max-parents=0', 'HEAD') }
  for (const path of [`commits/${first}`, `diff/${first}/HEAD`, `${first}/a.txt`]) await asked.read(path)
  await asked.read('log', { path: 'a.txt', author: 'a', since: '1 year' })
  for (const template of (await provider?.templates?.(context())) ?? [])
    for (const name of ['ref', 'path', 'sha', 'author', 'from', 'to'])
      await provider?.complete?.(
        { template: template.template, argument: { name, value: '' }, arguments: new Map() },
        context(),
      )
}

describe('refs and paths from strangers', () => {
  test('GT01 a ref that is an option for output writes no file', async () => {
    fillPlainly(repository)
    const file = join(folder.path, 'written')
    carelessly(repository, 'log', `--output=${file}`)
    expect(existsSync(file)).toBe(true)
    rmSync(file)
    const asked = await open()
    await expectNothingAt(asked, `--output=${file}`)
    await expectNothingAt(asked, `--output=${file.slice(1)}`)
    expect(
      await outcome(asked.read('log', { author: `x --output=${file}`, path: `--output=${file.slice(1)}` })),
    ).not.toBe('')
    expect(existsSync(file)).toBe(false)
  })

  test('GT02 a ref that is an option to run something runs nothing', async () => {
    fillPlainly(repository)
    const program = traps.set('exec')
    carelessly(repository, 'grep', `--open-files-in-pager=${program}`, 'one')
    expect(traps.sprung()).toEqual(['exec'])
    traps.clear()
    const asked = await open()
    for (const option of ['--upload-pack', '--exec', '--open-files-in-pager', '--ext-diff', '--textconv'])
      await expectNothingAt(asked, `${option}=${program}`)
    expect(traps.sprung()).toEqual([])
  })

  test('GT03 a ref that is an option of git itself is no ref', async () => {
    fillPlainly(repository)
    const other = folder.repository('other')
    fillPlainly(other)
    expect(carelessly(repository, `--git-dir=${other.gitDir}`, 'rev-parse', '--git-dir')).toContain('other')
    const asked = await open()
    for (const ref of [
      '-c core.pager=x',
      '-C/',
      `--git-dir=${other.gitDir}`,
      '--no-index /etc/passwd',
      '--no-index',
      '-p',
      '--all',
      '--stdin',
    ])
      await expectNothingAt(asked, ref)
  })

  test('GT04 a path with magic is a path', async () => {
    fillPlainly(repository)
    repository.write(':(top)*', 'a real name\n')
    repository.write('-x', 'a real option\n')
    repository.commit('odd names')
    expect(carelessly(repository, 'log', '--oneline', '--', ':(exclude)nothing')).not.toBe('')
    const asked = await open()
    for (const path of [':(exclude)nothing', ':/', ':(attr:diff)', ':!x', '*', '*.txt', '[a].txt', ':(glob)**', '--']) {
      expect(await outcome(asked.read(`HEAD/${path}`)), path).toBe('not-found')
      expect(await outcome(asked.read(`blame/HEAD/${path}`)), path).toBe('not-found')
      expect(await asked.text('log', { path }), path).toContain('No commits.')
      expect(await asked.text('diff/HEAD~0/HEAD', { path }).catch(() => 'No changes.'), path).toContain('No changes.')
    }
    expect(await asked.text('HEAD/:(top)*')).toBe('a real name\n')
    expect(await asked.text('blame/HEAD/-x')).toContain('a real option')
    expect(await asked.text('log', { path: '-x' })).toContain('odd names')
  })

  test('GT06 of the syntax for revisions nothing is known but names and ids', async () => {
    const { first } = fillPlainly(repository)
    expect(carelessly(repository, 'rev-parse', 'HEAD@{1}').trim()).toBe(first)
    const asked = await open()
    const revisions = [
      'HEAD@{1}',
      '@{-1}',
      '@',
      ':/first',
      'HEAD^{/first}',
      'HEAD^{tree}',
      `${first}..HEAD`,
      `${first}...HEAD`,
      ':0:a.txt',
      ':a.txt',
      'HEAD:a.txt',
      'HEAD~1',
      'HEAD^',
      'HEAD~999999999',
      '^HEAD',
      'HEAD@{yesterday}',
      'main@{u}',
      'HEAD^{commit}',
      'head',
      `:/${'(a+)+'.repeat(40)}$`,
    ]
    for (const revision of revisions) await expectNothingAt(asked, revision)
  })

  test('GT07 a ref or a path with a line feed asks one question', async () => {
    const { first, second } = fillPlainly(repository)
    const answers = repository.feed(`${first}:a.txt\n${second}:a.txt\n`, 'cat-file', '--batch-check')
    expect(answers.split('\n')).toHaveLength(2)
    const asked = await open()
    for (const text of [`HEAD\n${first}`, `${first}\n${second}`, `HEAD\0${first}`, `\n${first}`]) {
      await expectNothingAt(asked, text)
      expect(await outcome(asked.read(`HEAD/a.txt\n${text}`))).toBe('not-found')
    }
    const texts = await Promise.all([
      asked.text(`${first}/a.txt`),
      asked.text(`${second}/a.txt`),
      asked.text('HEAD/dir/b.txt'),
    ])
    expect(texts).toEqual(['one\n', 'one\ntwo\n', 'b\n'])
  })

  test('GT28 names of refs are taken as they are, and never for something else', async () => {
    const { first, second } = fillPlainly(repository)
    for (const [name, at] of [
      ['heads/-x', first],
      ['heads/HEAD', first],
      ['heads/log', first],
      ['heads/refs/heads/main', first],
      [`heads/${second}`, first],
      ['heads/both', first],
      ['tags/both', second],
      ['heads/name/x', first],
      ['tags/name', second],
    ])
      repository.git('update-ref', `refs/${name}`, at ?? '')
    writeFileSync(join(repository.gitDir, 'refs/heads/a.lock'), `${first}\n`)
    const asked = await open()
    expect(await asked.text('-x/a.txt')).toBe('one\n')
    expect(await asked.text('refs/heads/-x/a.txt')).toBe('one\n')
    expect(await asked.text('HEAD/a.txt')).toBe('one\ntwo\n')
    expect(await asked.text('refs/heads/HEAD/a.txt')).toBe('one\n')
    expect(await asked.text('log')).toContain('Log of HEAD')
    expect(await asked.text('refs/heads/log/a.txt')).toBe('one\n')
    expect(await asked.text('refs/heads/main/a.txt')).toBe('one\ntwo\n')
    expect(await asked.text('refs/heads/refs/heads/main/a.txt')).toBe('one\n')
    expect(await asked.text(`${second}/a.txt`)).toBe('one\ntwo\n')
    expect(await asked.text(`refs/heads/${second}/a.txt`)).toBe('one\n')
    expect(await outcome(asked.read('both/a.txt'))).toBe('invalid')
    expect(await asked.paths({ prefix: 'both/' })).toEqual([])
    expect(await asked.text('refs/heads/both/a.txt')).toBe('one\n')
    expect(await asked.text('refs/tags/both/a.txt')).toBe('one\ntwo\n')
    expect(await asked.text('name/x/a.txt')).toBe('one\n')
    expect(await asked.text('name/a.txt')).toBe('one\ntwo\n')
    expect(await asked.paths({ prefix: 'name/' })).toEqual([
      'name/a.txt',
      'name/dir/b.txt',
      'name/x/a.txt',
      'name/x/dir/b.txt',
    ])
    await expectNothingAt(asked, 'a.lock')
    expect(await asked.text('branches')).not.toContain('a.lock')
  })
})

describe('what a repository makes git run', () => {
  const careless: readonly (readonly [row: string, trap: string, args: readonly string[]])[] = [
    ['GT08 a file system monitor', 'fsmonitor', ['status']],
    ['GT09 a text conversion', 'textconv', ['show', '--textconv', 'HEAD~1']],
    ['GT09 an external diff', 'diff-external', ['diff', 'HEAD~1']],
    ['GT11 a smudge filter', 'smudge', ['cat-file', '--filters', 'HEAD:a.txt']],
    ['GT12 a hook', 'hook-post-index-change', ['update-index', '--refresh']],
    ['GT13 a command for SSH', 'ssh', ['ls-remote', 'ssh://nowhere.invalid/x']],
    ['GT13 a remote of its own kind', 'ext', ['ls-remote', 'origin']],
  ]

  test.each(careless)('%s does not run, whatever is asked for', async (_, trap, args) => {
    fillPlainly(repository)
    arm(repository, traps)
    traps.clear()
    // Only one of the two can be seen at work at a time.
    const unset =
      trap === 'diff-external' ? ['-c', 'diff.evil.command='] : trap === 'textconv' ? ['-c', 'diff.external='] : []
    if (trap === 'diff-external') rmSync(join(repository.dir, '.gitattributes'))
    if (trap === 'diff-external') rmSync(join(repository.gitDir, 'info/attributes'))
    carelessly(repository, ...unset, ...args)
    expect(traps.sprung()).toContain(trap)
    traps.clear()
    await useEverything(await open())
    expect(traps.sprung()).toEqual([])
  })

  test('GT08 GT09 GT11 GT12 GT13 nothing at all runs in a repository that sets every trap', async () => {
    const { first, second } = fillPlainly(repository)
    arm(repository, traps)
    repository.write('staged.txt', 'staged\n')
    const asked = await open()
    traps.clear()
    await useEverything(asked)
    expect(await asked.text('status')).toContain('modified a.txt')
    expect(await asked.text('status')).toContain('staged.txt')
    expect(await asked.text(`diff/${first}/${second}`)).toContain('+two')
    expect(traps.sprung()).toEqual([])
  })

  test('GT12 the index is not written', async () => {
    fillPlainly(repository)
    const index = join(repository.gitDir, 'index')
    const before = readFileSync(index)
    const asked = await open()
    // A new time of the same content makes git want to remember it.
    repository.write('dir/b.txt', 'b\n')
    await asked.text('status')
    expect(readFileSync(index).equals(before)).toBe(true)
    expect(readdirSync(repository.gitDir)).not.toContain('index.lock')
  })

  test('GT14 a configuration that is included does not hold', async () => {
    fillPlainly(repository)
    const included = join(folder.path, 'included')
    writeFileSync(included, `[core]\n\tfsmonitor = ${traps.set('included')}\n`)
    repository.git('config', 'include.path', included)
    repository.git('config', `includeIf.gitdir:/.path`, included)
    carelessly(repository, 'status')
    expect(traps.sprung()).toEqual(['included'])
    traps.clear()
    await useEverything(await open())
    expect(traps.sprung()).toEqual([])
  })

  test('GT19 a repository inside a directory that is checked in is not entered', async () => {
    fillPlainly(repository)
    const nested = folder.repository('repository/nested', { bare: true })
    nested.git('config', 'core.bare', 'false')
    nested.git('config', 'core.worktree', nested.dir)
    nested.git('config', 'core.fsmonitor', traps.set('nested'))
    repository.commit('a repository as files')
    carelessly(nested, 'status')
    expect(traps.sprung()).toEqual(['nested'])
    traps.clear()
    const asked = await open()
    await useEverything(asked)
    expect(traps.sprung()).toEqual([])
    expect(await asked.paths()).toContain('HEAD/nested/config')
    // Nor is one looked for above what was named.
    mkdirSync(join(repository.dir, 'plain'))
    expect(await outcome(git({ repository: join(repository.dir, 'plain') }))).toBe('invalid')
  })

  test('GT24 a submodule is the id of its commit, and is neither fetched nor entered', async () => {
    fillPlainly(repository)
    const inner = folder.repository('repository/sub')
    const { second } = fillPlainly(inner)
    inner.git('config', 'core.fsmonitor', traps.set('submodule'))
    repository.write(
      '.gitmodules',
      `[submodule "sub"]\n\tpath = sub\n\turl = ext::sh -c '${traps.set('url')}'\n[submodule "-u./x"]\n\tpath = -u./x\n\turl = -u./x\n`,
    )
    repository.commit('a submodule')
    inner.write('dirty.txt', 'dirty')
    carelessly(repository, 'status')
    expect(traps.sprung()).toContain('submodule')
    traps.clear()
    const asked = await open()
    await useEverything(asked)
    expect(await asked.text('HEAD/sub')).toContain(second)
    expect(await outcome(asked.read('HEAD/sub/a.txt'))).toBe('not-found')
    expect(await asked.paths({ prefix: 'HEAD/sub/' })).toEqual([])
    expect(traps.sprung()).toEqual([])
  })

  test('GT31 nothing of the environment reaches git', async () => {
    const { second } = fillPlainly(repository)
    const other = folder.repository('other')
    other.write('a.txt', 'elsewhere\n')
    other.commit('elsewhere')
    const trace = join(folder.path, 'trace')
    const hostile: Readonly<Record<string, string>> = {
      GIT_DIR: other.gitDir,
      GIT_WORK_TREE: other.dir,
      GIT_INDEX_FILE: join(other.gitDir, 'index'),
      GIT_OBJECT_DIRECTORY: join(other.gitDir, 'objects'),
      GIT_NAMESPACE: 'evil',
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: 'core.fsmonitor',
      GIT_CONFIG_VALUE_0: traps.set('environment'),
      GIT_CONFIG_PARAMETERS: `'core.fsmonitor'='${traps.set('parameters')}'`,
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_EXTERNAL_DIFF: traps.set('external'),
      GIT_SSH_COMMAND: traps.set('ssh'),
      GIT_PROXY_COMMAND: traps.set('proxy'),
      GIT_PAGER: traps.set('pager'),
      GIT_TRACE: trace,
      GIT_TRACE2_EVENT: trace,
      GIT_EXEC_PATH: folder.path,
      GIT_REPLACE_REF_BASE: 'refs/heads/',
    }
    execFileSync('git', ['--version'], { env: { ...process.env, GIT_TRACE: trace } })
    expect(existsSync(trace)).toBe(true)
    rmSync(trace)
    const before = new Map(Object.keys(hostile).map((name) => [name, process.env[name]]))
    try {
      Object.assign(process.env, hostile)
      const asked = await open()
      expect(await asked.text('HEAD/a.txt')).toBe('one\ntwo\n')
      expect(await asked.text('log')).toContain(second.slice(0, 12))
      expect(await asked.text('status')).toContain('modified a.txt')
      await asked.text('commits/HEAD')
    } finally {
      for (const [name, value] of before) {
        if (value === undefined) delete process.env[name]
        else process.env[name] = value
      }
    }
    expect(traps.sprung()).toEqual([])
    expect(existsSync(trace)).toBe(false)
  })

  test('GT31 git gets these variables and no others', async () => {
    fillPlainly(repository)
    const seen = join(folder.path, 'environment')
    const fake = fakeGit(folder, 'fake', `env >> '${seen}'\nexec "$REAL" "$@"`)
    process.env.LD_PRELOAD = ''
    process.env.HIKIDASHI_TEST_SECRET = 'canary'
    try {
      const asked = await open({ git: fake })
      await asked.text('status')
      await asked.text('HEAD/a.txt')
    } finally {
      delete process.env.LD_PRELOAD
      delete process.env.HIKIDASHI_TEST_SECRET
    }
    const names = new Set(
      readFileSync(seen, 'utf8')
        .split('\n')
        .map((line) => line.split('=')[0] ?? ''),
    )
    // The shell that the fake is written in adds some of its own.
    for (const own of ['', 'PWD', 'SHLVL', '_', 'OLDPWD']) names.delete(own)
    expect([...names].sort()).toEqual([
      'GIT_ALLOW_PROTOCOL',
      'GIT_ALTERNATE_OBJECT_DIRECTORIES',
      'GIT_ATTR_NOSYSTEM',
      'GIT_CEILING_DIRECTORIES',
      'GIT_CONFIG_GLOBAL',
      'GIT_CONFIG_NOSYSTEM',
      'GIT_DIR',
      'GIT_INDEX_FILE',
      'GIT_NO_LAZY_FETCH',
      'GIT_NO_REPLACE_OBJECTS',
      'GIT_OPTIONAL_LOCKS',
      'GIT_TERMINAL_PROMPT',
      'GIT_WORK_TREE',
      'HOME',
      'LC_ALL',
      'PATH',
    ])
    const values = readFileSync(seen, 'utf8')
    expect(values).not.toContain('canary')
    expect(values).not.toContain(`GIT_DIR=${repository.gitDir}`)
  })
})
