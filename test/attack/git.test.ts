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
import { createGit, type GitOptions, git } from '../../src/providers/git/index.ts'
import { outcome } from '../support/folder.ts'
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
import { someOf, volumeOf } from '../support/volume.ts'
import { startWatching } from '../support/watching.ts'

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

/** Opens the repository; refs are looked at again for every question, so that no test has to wait. */
async function open(options: Partial<GitOptions> = {}): Promise<Asked> {
  const provider = await createGit({ repository: repository.dir, ...options }, { maxAgeMs: 0 })
  opened.push(provider)
  return ask(provider)
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
  for (const path of ['commits/HEAD', 'diff/main/HEAD', 'blame/HEAD/a.txt']) await asked.read(path)
  const first = repository.git('rev-list', '--max-parents=0', 'HEAD')
  for (const path of [`commits/${first}`, `diff/${first}/HEAD`, `${first}/a.txt`]) await asked.read(path)
  await asked.read('log', { path: 'a.txt', author: 'a', since: '1 year' })
  for (const template of (await provider?.templates?.(context())) ?? [])
    for (const name of ['ref', 'path', 'sha', 'author', 'from', 'to'])
      await provider?.complete?.(
        { template: template.template, argument: { name, value: '' }, arguments: new Map() },
        context(),
      )
}

describe('hostile refs and paths in requests:', () => {
  test('a ref that looks like an output option writes no file (GT01)', async () => {
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

  test('a ref that looks like an option to run a program runs nothing (GT02)', async () => {
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

  test('a ref that looks like an option of git is absent (GT03)', async () => {
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

  test('a path that looks like a pathspec with magic is a plain path (GT04)', async () => {
    const { first } = fillPlainly(repository)
    repository.write(':(top)*', 'a real name\n')
    repository.write('-x', 'a real option\n')
    repository.commit('odd names')
    expect(carelessly(repository, 'log', '--oneline', '--', ':(exclude)nothing')).not.toBe('')
    const asked = await open()
    for (const path of [':(exclude)nothing', ':/', ':(attr:diff)', ':!x', '*', '*.txt', '[a].txt', ':(glob)**', '--']) {
      expect(await outcome(asked.read(`HEAD/${path}`)), path).toBe('not-found')
      expect(await outcome(asked.read(`blame/HEAD/${path}`)), path).toBe('not-found')
      expect(await asked.text('log', { path }), path).toContain('No commits.')
      expect(await asked.text(`diff/${first}/HEAD`, { path }), path).toContain('No changes.')
    }
    expect(await asked.text('HEAD/:(top)*')).toBe('a real name\n')
    expect(await asked.text('blame/HEAD/-x')).toContain('a real option')
    expect(await asked.text('log', { path: '-x' })).toContain('odd names')
  })

  test('revisions of git such as HEAD~1 or main@{u} are absent: only names and ids are accepted (GT06)', async () => {
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

  test('a ref or path with a line feed does not send a second query to git (GT07)', async () => {
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

  test('branches named like options, pages or ids are read by their names or full names, and an ambiguous name is refused (GT28)', async () => {
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

describe('programs that a repository tells git to run:', () => {
  const careless: readonly (readonly [row: string, trap: string, args: readonly string[]])[] = [
    ['GT08 a file system monitor', 'fsmonitor', ['status']],
    ['GT09 a text conversion', 'textconv', ['show', '--textconv', 'HEAD~1']],
    ['GT09 an external diff', 'diff-driver', ['diff', 'HEAD']],
    ['GT11 a smudge filter', 'smudge', ['cat-file', '--filters', 'HEAD:a.txt']],
    ['GT12 a hook', 'hook-post-index-change', ['update-index', '--refresh']],
    ['GT13 a command for SSH', 'ssh', ['ls-remote', 'ssh://nowhere.invalid/x']],
    ['GT13 a remote of its own kind', 'ext', ['ls-remote', 'origin']],
  ]

  /** Where everything is asked for. In all of them the same traps are set, as in the test that follows. */
  const asksAll = someOf('whatever is asked for', careless)

  test.each(careless)('no program runs for a request: %s', async (row, trap, args) => {
    fillPlainly(repository)
    arm(repository, traps)
    traps.clear()
    carelessly(repository, ...args)
    expect(traps.sprung()).toContain(trap)
    traps.clear()
    const asked = await open()
    if (asksAll.some(([one]) => one === row)) await useEverything(asked)
    else await asked.paths()
    expect(traps.sprung()).toEqual([])
  })

  test('no program runs in a repository that sets a monitor, conversions, filters, hooks and remotes at once (GT08, GT09, GT11, GT12, GT13)', async () => {
    const { first, second } = fillPlainly(repository)
    arm(repository, traps)
    repository.write('staged.txt', 'staged\n')
    const asked = await open()
    traps.clear()
    await useEverything(asked)
    expect(await asked.text('status')).toContain('modified a.txt')
    expect(await asked.text('status')).toContain('staged.txt')
    expect(await asked.text(`diff/${first}/${second}`)).toContain('+two')
    const watch = await startWatching(opened.at(-1) as Provider)
    writeFileSync(join(repository.gitDir, 'refs', 'heads', 'main'), `${first}\n`)
    await watch.until('main/a.txt', 'status')
    await watch.stop()
    expect(traps.sprung()).toEqual([])
  })

  test('a read of the status does not write the index (GT12)', async () => {
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

  test('an included configuration file has no effect (GT14)', async () => {
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

  test('a repository inside a committed directory is not entered, and none is looked for above the configured directory (GT19)', async () => {
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

  test('a submodule is shown as the id of its commit, and is neither fetched nor entered (GT24)', async () => {
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

  test('variables for git in the environment of the server have no effect (GT31)', async () => {
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

  test('git gets exactly the environment variables of a fixed list (GT31)', async () => {
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
      'GIT_CONFIG_COUNT',
      'GIT_CONFIG_GLOBAL',
      ...[0, 1, 2, 3, 4].map((index) => `GIT_CONFIG_KEY_${index}`),
      'GIT_CONFIG_NOSYSTEM',
      ...[0, 1, 2, 3, 4].map((index) => `GIT_CONFIG_VALUE_${index}`),
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

describe('files of a git directory that point elsewhere:', () => {
  let other: GitRepository
  let secret: string

  beforeEach(() => {
    other = folder.repository('outside')
    other.write('secret.txt', 'canary\n')
    secret = other.commit('secret')
  })

  test('objects of another repository are read only if the option "alternates" names it (GT16)', async () => {
    fillPlainly(repository)
    const alternates = join(repository.gitDir, 'objects/info/alternates')
    writeFileSync(alternates, `${other.gitDir}/objects\n`)
    repository.git('update-ref', 'refs/heads/borrowed', secret)
    expect(carelessly(repository, 'show', 'borrowed:secret.txt')).toBe('canary\n')
    const refused = await git({ repository: repository.dir }).catch((error: unknown) => error)
    expect(refused).toMatchObject({ kind: 'unavailable', message: expect.stringContaining('"alternates"') })
    const allowed = await open({ alternates: [other.dir] })
    expect(await allowed.text('borrowed/secret.txt')).toBe('canary\n')
    // A chain of them leads no further either.
    writeFileSync(alternates, '../../../between/.git/objects\n')
    const between = folder.repository('between')
    writeFileSync(join(between.gitDir, 'objects/info/alternates'), `${other.gitDir}/objects\n`)
    expect(await outcome(git({ repository: repository.dir, alternates: [between.dir] }))).toBe('unavailable')
  })

  test('objects of an alternate that is added after the start are unavailable or absent (GT16)', async () => {
    fillPlainly(repository)
    const late = await git({ repository: repository.dir })
    opened.push(late)
    const asked = await open()
    expect(await ask(late).text('HEAD/a.txt')).toBe('one\ntwo\n')
    writeFileSync(join(repository.gitDir, 'refs/heads/borrowed'), `${secret}\n`)
    writeFileSync(join(repository.gitDir, 'objects/info/alternates'), `${other.gitDir}/objects\n`)
    expect(await outcome(asked.read('borrowed/secret.txt'))).toBe('unavailable')
    // Before refs are looked at again, the objects are simply not there.
    expect(['not-found', 'unavailable']).toContain(await outcome(ask(late).read(`${secret}/secret.txt`)))
    rmSync(join(repository.gitDir, 'objects/info/alternates'))
    expect(await outcome(asked.read('borrowed/secret.txt'))).toBe('not-found')
    expect(await asked.text('HEAD/a.txt')).toBe('one\ntwo\n')
  })

  test.each(['pack', 'aa'])('a symbolic link in place of objects/%s is refused (GT16)', async (name) => {
    fillPlainly(repository)
    other.git('gc', '-q')
    const place = join(repository.gitDir, 'objects', name)
    rmSync(place, { recursive: true, force: true })
    symlinkSync(join(other.gitDir, 'objects/pack'), place)
    expect(await outcome(git({ repository: repository.dir }))).toBe('unavailable')
  })

  test('a .git file opens only a repository that points back to it (GT17)', async () => {
    const dir = join(folder.path, 'fake')
    mkdirSync(dir)
    writeFileSync(join(dir, '.git'), `gitdir: ${other.gitDir}\n`)
    expect(carelessly(openTestRepository(dir), 'show', 'HEAD:secret.txt')).toBe('canary\n')
    expect(await outcome(git({ repository: dir }))).toBe('invalid')
    // Nor a linked working tree that is another's.
    other.git('worktree', 'add', '-q', join(folder.path, 'linked'))
    writeFileSync(join(dir, '.git'), `gitdir: ${other.gitDir}/worktrees/linked\n`)
    expect(await outcome(git({ repository: dir }))).toBe('invalid')
    const linked = await git({ repository: join(folder.path, 'linked') })
    opened.push(linked)
    expect(await ask(linked).text('HEAD/secret.txt')).toBe('canary\n')
  })

  test('a commondir file opens no other repository (GT17)', async () => {
    fillPlainly(repository)
    writeFileSync(join(repository.gitDir, 'commondir'), `${other.gitDir}\n`)
    repository.git('update-ref', '--no-deref', 'HEAD', secret)
    expect(carelessly(repository, 'show', 'HEAD:secret.txt')).toBe('canary\n')
    expect(await outcome(git({ repository: repository.dir }))).toBe('invalid')
  })

  test('a .git that is a symbolic link is refused (GT18)', async () => {
    const dir = join(folder.path, 'fake')
    mkdirSync(dir)
    symlinkSync(other.gitDir, join(dir, '.git'))
    expect(carelessly(openTestRepository(dir), 'show', 'HEAD:secret.txt')).toBe('canary\n')
    expect(await outcome(git({ repository: dir }))).toBe('invalid')
  })

  test.each(['objects', 'refs'])('a symbolic link in place of %s is refused (GT18)', async (name) => {
    fillPlainly(repository)
    rmSync(join(repository.gitDir, name), { recursive: true })
    symlinkSync(join(other.gitDir, name), join(repository.gitDir, name))
    expect(await outcome(git({ repository: repository.dir }))).toBe('invalid')
  })

  test.each(['packed-refs', 'refs/heads', 'config', 'shallow', 'HEAD', 'refs/heads/link', 'info/exclude', 'index'])(
    'a symbolic link in place of %s is not followed, and nothing of its target is disclosed (GT18)',
    async (name) => {
      fillPlainly(repository)
      const target = join(folder.path, 'passwd')
      writeFileSync(target, 'root:canary:0:0\n')
      const place = join(repository.gitDir, name)
      rmSync(place, { recursive: true, force: true })
      symlinkSync(name === 'refs/heads' ? join(other.gitDir, name) : target, place)
      const logged: string[] = []
      const told: string[] = []
      try {
        const asked = await open({ log: (...args) => logged.push(JSON.stringify(args)) })
        for (const path of ['HEAD/a.txt', 'main/secret.txt', 'link/a.txt', 'log', 'branches', 'status', 'commits/HEAD'])
          told.push(await outcome(asked.read(path)))
        if (name === 'HEAD') expect(await asked.paths()).toEqual(['branches', 'log', 'tags'])
        expect(await outcome(asked.read('link/a.txt'))).toBe('not-found')
      } catch (error) {
        told.push(error instanceof Error ? error.message : String(error))
      }
      expect(`${told.join()}${logged.join()}`).not.toContain('canary')
    },
  )

  test('a FIFO in place of a file of the git directory blocks no read, and makes the status unavailable (GT18)', async () => {
    fillPlainly(repository)
    for (const name of ['shallow', 'info/exclude', 'index']) {
      rmSync(join(repository.gitDir, name), { force: true })
      execFileSync('mkfifo', [join(repository.gitDir, name)])
    }
    const asked = await open()
    expect(await asked.text('HEAD/a.txt')).toBe('one\ntwo\n')
    expect(await outcome(asked.read('status'))).toBe('unavailable')
  })

  test('replace refs and grafts have no effect (GT21)', async () => {
    const { first, second } = fillPlainly(repository)
    const blob = repository.git('rev-parse', 'HEAD:a.txt')
    const evil = repository.feed('replaced\n', 'hash-object', '-w', '--stdin')
    repository.git('replace', blob, evil)
    writeFileSync(join(repository.gitDir, 'info/grafts'), `${second}\n`)
    expect(carelessly(repository, 'show', 'HEAD:a.txt')).toBe('replaced\n')
    expect(carelessly(repository, 'rev-list', '--count', 'HEAD').trim()).toBe('1')
    const asked = await open()
    expect(await asked.text('HEAD/a.txt')).toBe('one\ntwo\n')
    expect(await asked.text('log')).toContain(first.slice(0, 12))
    expect(await asked.text('commits/HEAD')).toContain(`parent ${first}`)
    expect(await asked.text('blame/HEAD/a.txt')).not.toContain('replaced')
  })

  test('a symbolic link is served as its text, and is never followed (GT23)', async () => {
    fillPlainly(repository)
    symlinkSync('/etc/passwd', join(repository.dir, 'link'))
    symlinkSync('dir', join(repository.dir, 'folder'))
    symlinkSync(folder.path, join(repository.dir, 'out'))
    repository.commit('links')
    const asked = await open()
    expect(await asked.read('HEAD/link')).toMatchObject({ text: '/etc/passwd', mimeType: 'inode/symlink' })
    expect(await asked.stat('HEAD/link')).toMatchObject({ size: 11, mimeType: 'inode/symlink' })
    for (const path of ['HEAD/folder/b.txt', 'HEAD/out/passwd', 'HEAD/link/x', 'blame/HEAD/link'])
      expect(await outcome(asked.read(path)), path).toBe('not-found')
    expect(await asked.paths({ prefix: 'HEAD/folder/' })).toEqual([])
    expect(await asked.text('status')).not.toContain('passwd')
  })

  test('commits that no served ref reaches are absent (GT29)', async () => {
    const { first } = fillPlainly(repository)
    repository.write('secret.txt', 'canary\n')
    const dangling = repository.commit('a secret')
    repository.git('update-ref', 'refs/pull/1/head', dangling)
    repository.git('update-ref', 'refs/original/refs/heads/main', dangling)
    repository.git('reset', '-q', '--hard', first)
    repository.write('a.txt', 'stashed\n')
    repository.git('stash')
    const stash = repository.git('rev-parse', 'refs/stash')
    repository.write('remote.txt', 'remote\n')
    const remote = repository.commit('remote')
    repository.git('update-ref', 'refs/remotes/origin/main', remote)
    repository.git('reset', '-q', '--hard', first)
    const ancestor = repository.git('rev-parse', `${dangling}^`)
    expect(carelessly(repository, 'show', `${dangling}:secret.txt`)).toBe('canary\n')

    const asked = await open()
    const tree = repository.git('rev-parse', `${dangling}^{tree}`)
    const blob = repository.git('rev-parse', `${dangling}:secret.txt`)
    const names = [
      'refs/pull/1/head',
      'refs/stash',
      'stash',
      'refs/original/refs/heads/main',
      'refs/remotes/origin/main',
      'origin/main',
      'ORIG_HEAD',
    ]
    for (const ref of [dangling, dangling.slice(0, 12), ancestor, stash, remote, tree, blob, ...names])
      await expectNothingAt(asked, ref)
    expect(await asked.text(`${first}/a.txt`)).toBe('one\n')
    expect(await asked.text(`${first.slice(0, 7)}/a.txt`)).toBe('one\n')
    // Once a served ref leads there, it is; and no longer when it does not.
    repository.git('branch', 'kept', dangling)
    expect(await asked.text(`${ancestor}/a.txt`)).toBe('one\ntwo\n')
    expect(await asked.text(`commits/${dangling}`)).toContain('canary')
    repository.git('branch', '-D', 'kept')
    await expectNothingAt(asked, dangling)
    await expectNothingAt(asked, ancestor)
  })

  test('with the option "refs", only the refs that match it are served (GT29)', async () => {
    const { first, second } = fillPlainly(repository)
    repository.git('branch', 'public/a', first)
    repository.git('tag', 'v1', second)
    const asked = await open({ refs: ['refs/heads/public/**'] })
    expect(await asked.paths()).toEqual(['branches', 'log', 'tags'])
    for (const ref of ['HEAD', 'main', 'v1', second]) await expectNothingAt(asked, ref)
    expect(await asked.text('public/a/a.txt')).toBe('one\n')
    expect(await asked.text('branches')).not.toContain('main')
    expect(await asked.text('tags')).toContain('No tags.')
    expect(await outcome(asked.read('commits/HEAD'))).toBe('not-found')
    expect(await outcome(asked.read('status'))).toBe('not-found')
  })
})

describe('hostile git objects:', () => {
  test('tree entries with names that no path can hold are left out, and never used as paths (GT22)', async () => {
    fillPlainly(repository)
    const blob = repository.git('rev-parse', 'HEAD:a.txt')
    const inner = writeRaw(repository, 'tree', rawTree([['100644', 'x', blob]]))
    const names = [
      '..',
      '.',
      '.git',
      '.GIT',
      'git~1',
      'a/b',
      '/etc/passwd',
      '../../x',
      'line\nfeed',
      'esc\u001b[2J',
      'ok',
      'x\\y',
      '\u202etxt.exe',
    ]
    const tree = rawTree([
      ...names.map((name) => ['100644', name, blob] as const),
      ['100644', Uint8Array.of(0x66, 0xff, 0xfe), blob],
      ['40000', '..', inner],
      ['40000', '.git', inner],
      ['40000', 'ok', inner],
      ['777', 'odd mode', blob],
      ['100644', 'ok', blob],
    ])
    commitTree(repository, writeRaw(repository, 'tree', tree), 'odd')
    const asked = await open()
    expect(await asked.paths({ prefix: 'odd/' })).toEqual(['odd/ok', 'odd/x\\y', 'odd/\u202etxt.exe'])
    expect(await asked.text('odd/x\\y')).toBe('one\ntwo\n')
    for (const name of [
      '..',
      '../x',
      '.git',
      '.git/x',
      '.GIT',
      'git~1',
      'a/b',
      'ok/x',
      'odd mode',
      'f\ufffd\ufffd',
      'line\nfeed',
    ])
      expect(await outcome(asked.read(`odd/${name}`)), name).toBe('not-found')
    expect(await asked.text('commits/odd')).not.toContain('\u001b')
  })

  test('an enormous tree is listed only as far as the caller reads, and a tree that is too deep has no entries (GT22)', async () => {
    fillPlainly(repository)
    let wide = writeRaw(repository, 'tree', rawTree([['100644', 'x', repository.git('rev-parse', 'HEAD:a.txt')]]))
    for (let i = 0; i < 12; i++)
      wide = writeRaw(
        repository,
        'tree',
        rawTree(Array.from({ length: 10 }, (_, n) => ['40000', `d${n}`, wide] as const)),
      )
    commitTree(repository, wide, 'wide')
    let deep = wide
    for (let i = 0; i < 400; i++) deep = writeRaw(repository, 'tree', rawTree([['40000', 'd', deep]]))
    commitTree(repository, deep, 'deep')
    await open()
    const provider = opened.at(-1)
    let seen = 0
    for await (const _ of provider?.list({ prefix: 'wide/' }, context()) ?? []) if (++seen === 500) break
    expect(seen).toBe(500)
    const asked = ask(provider as Provider)
    expect(await asked.paths({ prefix: 'deep/' })).toEqual([])
    expect(await outcome(asked.read(`deep/${'d/'.repeat(400)}d0`))).toBe('not-found')
  })

  test('a damaged object gives an error and no part of its content, and other objects are served (GT26)', async () => {
    fillPlainly(repository)
    const put = (path: string, text: string) => {
      repository.write(path, text)
      repository.commit(path)
      const oid = repository.git('rev-parse', `HEAD:${path}`)
      const file = join(repository.gitDir, 'objects', oid.slice(0, 2), oid.slice(2))
      chmodSync(file, 0o644)
      return { oid, file }
    }
    const body = 'canary '.repeat(5000)
    truncateSync(put('truncated.txt', `${body}1`).file, 40)
    writeFileSync(put('other.txt', `${body}2`).file, deflateSync('blob 6\0canary'))
    writeFileSync(put('longer.txt', `${body}3`).file, deflateSync(`blob 6\0${body}`))
    writeFileSync(
      put('bomb.txt', `${body}4`).file,
      deflateSync(Buffer.concat([Buffer.from('blob 10\0'), Buffer.alloc(64 * 1024 * 1024)])),
    )
    writeFileSync(put('boast.txt', `${body}5`).file, deflateSync('blob 999999999999\0canary'))
    writeFileSync(put('garbage.txt', `${body}6`).file, 'canary')
    writeFileSync(put('empty.txt', `${body}7`).file, '')
    writeFileSync(put('type.txt', `${body}8`).file, deflateSync('tree 6\0canary'))
    const asked = await open()
    const damaged = ['truncated', 'other', 'longer', 'bomb', 'boast', 'garbage', 'empty', 'type']
    const answers = await Promise.all(
      damaged.map(async (name) => [
        name,
        await outcome(asked.read(`HEAD/${name}.txt`)),
        await asked.text('HEAD/a.txt'),
      ]),
    )
    for (const [name, answer, control] of answers) {
      expect(['not-found', 'unavailable', 'too-large'], `${name} ${answer}`).toContain(answer)
      expect(control).toBe('one\ntwo\nthree\n')
    }
    for (const name of damaged)
      expect(await outcome(asked.read(`HEAD/${name}.txt`, {}, { start: 0, end: 100 }))).not.toContain('canary')
    expect((await asked.paths()).length).toBeGreaterThan(damaged.length)
  })

  test('an object of a truncated pack is absent or unavailable, and the objects outside of the pack are served (GT26)', async () => {
    fillPlainly(repository)
    repository.write(
      'noise.bin',
      Uint8Array.from({ length: 200_000 }, (_, i) => (i * i * 31) % 251),
    )
    repository.commit('noise')
    repository.git('gc', '-q')
    repository.write('loose.txt', 'loose\n')
    repository.commit('loose')
    const packs = join(repository.gitDir, 'objects/pack')
    const pack = join(packs, readdirSync(packs).find((name) => name.endsWith('.pack')) ?? '')
    chmodSync(pack, 0o644)
    truncateSync(pack, 3000)
    const asked = await open()
    expect(['not-found', 'unavailable']).toContain(await outcome(asked.read('HEAD/noise.bin')))
    expect(await asked.text('HEAD/loose.txt')).toBe('loose\n')
  })

  test('while a branch moves, and objects are packed and pruned, each read gives one whole version, and a pruned commit is absent afterwards (GT27)', async () => {
    const { first } = fillPlainly(repository)
    const asked = await open()
    const texts = new Set(['one\n', 'one\ntwo\n'])
    let done = false
    const reading = (async () => {
      const seen = new Set<string>()
      while (!done) seen.add(await asked.text('HEAD/a.txt').catch((error: { kind: string }) => `!${error.kind}`))
      return seen
    })()
    for (let i = 0; i < 6; i++) {
      repository.write('a.txt', `version ${i}\n`)
      texts.add(`version ${i}\n`)
      repository.commit(`version ${i}`)
      await sleep(20)
      if (i % 2 === 1) repository.git('repack', '-a', '-d', '-q')
      await sleep(20)
    }
    const gone = repository.git('rev-parse', 'HEAD')
    repository.git('reset', '-q', '--hard', first)
    repository.git('reflog', 'expire', '--expire=now', '--all')
    repository.git('gc', '-q', '--prune=now')
    await sleep(50)
    done = true
    for (const text of await reading) expect([...texts]).toContain(text)
    expect(await asked.text('HEAD/a.txt')).toBe('one\n')
    expect(await outcome(asked.read(`${gone}/a.txt`))).toBe('not-found')
    expect(await outcome(asked.read(`${gone}/a.txt`))).toBe('not-found')
    repository.git('branch', '-m', 'main', 'renamed')
    expect(await outcome(asked.read('main/a.txt'))).toBe('not-found')
    expect(await asked.text('renamed/a.txt')).toBe('one\n')
  })

  test('characters that hide or reorder text are escaped, and long texts are truncated (GT32)', async () => {
    repository.write('a.txt', 'one\n')
    repository.write('\u202efdp.txt', 'turned round\n')
    repository.commit(
      'sub\u001b[2Jject \u202e</script>\n\nbody \u0007\u009b\n\ncommit 0000000000000000000000000000000000000000',
      {
        author: 'E\u001b]0;vil\u0007\u202e <e@example.com>',
      },
    )
    repository.write('b.txt', 'b\n')
    repository.commit(`long ${'x'.repeat(volumeOf(10 * 1024 * 1024))}`)
    repository.git('branch', '\u202eturned')
    const asked = await open()
    for (const path of [
      'log',
      'commits/HEAD',
      'branches',
      'blame/HEAD/a.txt',
      `commits/${repository.git('rev-parse', 'HEAD~1')}`,
      'status',
    ]) {
      const text = await asked.text(path)
      expect(text.replace(/[\n\t]/g, ''), path).not.toMatch(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/u)
      expect(text.length, path).toBeLessThan(200_000)
    }
    expect(await asked.text('log')).toContain('\\u{1b}[2J')
    const page = await asked.read('commits/HEAD')
    expect(page.meta).toEqual({ 'dev.hikidashi/truncated': true })
    expect('text' in page && page.text).toContain('[cut: the message is longer')
    // A message cannot be taken for what stands around it.
    const forged = await asked.text(`commits/${repository.git('rev-parse', 'HEAD~1')}`)
    expect(forged.split('\n').filter((line) => line.startsWith('commit '))).toHaveLength(1)
  })

  test('text in another encoding is decoded if the encoding is declared, and has replacement characters otherwise (GT33)', async () => {
    repository.write('a.txt', 'one\n')
    repository.git('add', '-A')
    const tree = repository.git('write-tree')
    const who = (name: Buffer) => Buffer.concat([name, Buffer.from(' <j@example.com> 1767323045 +0100\n')])
    const commitOf = (encoding: string, name: Buffer, message: Buffer) =>
      Buffer.concat([
        Buffer.from(`tree ${tree}\nauthor `),
        who(name),
        Buffer.from('committer '),
        who(name),
        Buffer.from(`${encoding}\n`),
        message,
      ])
    const latin = writeRaw(
      repository,
      'commit',
      commitOf('encoding ISO-8859-1\n', Buffer.from('J\xfcrgen', 'latin1'), Buffer.from('gr\xfc\xdfe\n', 'latin1')),
    )
    const broken = writeRaw(
      repository,
      'commit',
      commitOf('', Buffer.from('J\xfcrgen', 'latin1'), Buffer.from('gr\xfc\xdfe\n', 'latin1')),
    )
    const lying = writeRaw(
      repository,
      'commit',
      commitOf('encoding no-such-encoding\n', Buffer.from('x'), Buffer.from('\xff\xfe\n', 'latin1')),
    )
    for (const [name, oid] of Object.entries({ latin, broken, lying }))
      repository.git('update-ref', `refs/heads/${name}`, oid)
    repository.git('update-ref', 'refs/heads/main', latin)
    const asked = await open()
    expect(await asked.text('commits/latin')).toMatch(/author Jürgen[\s\S]*grüße/)
    expect(await asked.text('log', { ref: 'latin' })).toContain('Jürgen (HEAD, latin, main): grüße')
    for (const ref of ['broken', 'lying']) {
      expect((await asked.text(`commits/${ref}`)).isWellFormed()).toBe(true)
      expect(await asked.text(`commits/${ref}`)).toContain('\ufffd')
    }
  })
})

describe('git processes that misbehave:', () => {
  /** A git that is real but for one subcommand. */
  const except = (subcommand: string, script: string) =>
    fakeGit(folder, 'fake', `case " $* " in *" ${subcommand} "*) ${script} ;; esac\nexec "$REAL" "$@"`)

  test.each([
    ['log', 'log'],
    ['diff-tree', 'commits/HEAD'],
    ['status', 'status'],
    ['blame', 'blame/HEAD/a.txt'],
  ])('a git %s that hangs is killed with its child processes (GT34)', async (subcommand, path) => {
    fillPlainly(repository)
    const mark = `TRAP=${folder.path}/hangs`
    const asked = await open({ git: except(subcommand, `${mark} sleep 600 & ${mark} exec sleep 600`), timeoutMs: 3000 })
    expect(await outcome(asked.read(path))).toBe('unavailable')
    await expect.poll(() => processesWith(mark), { timeout: 20_000 }).toEqual([])
  })

  test('a git cat-file that hangs is killed, and the next one answers (GT34)', async () => {
    fillPlainly(repository)
    const mark = `TRAP=${folder.path}/hangs`
    const once = join(folder.path, 'once')
    const script = `if [ ! -e '${once}' ]; then : > '${once}'; ${mark} exec sleep 600; fi`
    const asked = await open({ git: except('cat-file --batch', script), timeoutMs: 3000 })
    const answers = await Promise.all([outcome(asked.read('HEAD/a.txt')), outcome(asked.read('HEAD/dir/b.txt'))])
    expect(answers).toContain('unavailable')
    expect(await asked.text('HEAD/a.txt')).toBe('one\ntwo\n')
    await expect.poll(() => processesWith(mark), { timeout: 20_000 }).toEqual([])
  })

  test('git processes end when their caller leaves, and when the provider closes (GT34)', async () => {
    fillPlainly(repository)
    const mark = `TRAP=${folder.path}/hangs`
    await open({ git: except('log', `${mark} exec sleep 600`), timeoutMs: 60_000 })
    const provider = opened.at(-1)
    const abort = new AbortController()
    const read = (signal: AbortSignal) =>
      outcome(Promise.resolve(provider?.read({ path: 'log', params: new Map() }, { ...context(), signal })))
    const gone = read(abort.signal)
    while (processesWith(mark).length === 0) await sleep(10)
    abort.abort()
    expect(await gone).toContain('abort')
    while (processesWith(mark).length > 0) await sleep(10)
    const closed = read(new AbortController().signal)
    while (processesWith(mark).length === 0) await sleep(10)
    await provider?.close?.()
    expect(await closed).toBe('unavailable')
    while (processesWith(mark).length > 0) await sleep(10)
    expect(await read(new AbortController().signal)).toBe('unavailable')
  })

  test('a git that writes endlessly is killed, and the answer is truncated (GT34)', async () => {
    fillPlainly(repository)
    const mark = `TRAP=${folder.path}/endless`
    const asked = await open({ git: except('diff-tree', `${mark} exec yes`), maxBytes: 1024 * 1024 })
    const page = await asked.read('commits/HEAD')
    expect(page.meta).toEqual({ 'dev.hikidashi/truncated': true })
    expect('text' in page && page.text.length).toBeLessThan(1024 * 1024)
    await expect.poll(() => processesWith(mark), { timeout: 20_000 }).toEqual([])
  })

  test('a git cat-file that dies is started again, and the request is answered (GT34)', async () => {
    const { first } = fillPlainly(repository)
    const asked = await open()
    expect(await asked.text('HEAD/a.txt')).toBe('one\ntwo\n')
    for (let i = 0; i < 5; i++) {
      const children = execFileSync('ps', ['-o', 'pid=,args=', '--ppid', String(process.pid)], { encoding: 'utf8' })
      for (const line of children.split('\n').filter((text) => text.includes('cat-file')))
        process.kill(Number.parseInt(line, 10), 'SIGKILL')
      const texts = await Promise.all([
        asked.text('HEAD/dir/b.txt'),
        asked.text(`${first}/a.txt`),
        asked.stat('HEAD/a.txt'),
      ])
      expect(texts.slice(0, 2)).toEqual(['b\n', 'one\n'])
    }
  })

  test('an invalid answer of git cat-file makes a read unavailable (GT34)', async () => {
    fillPlainly(repository)
    const asked = await open({ git: except('cat-file', "exec sh -c 'while read x; do echo canary canary; done'") })
    expect(await outcome(asked.read('HEAD/a.txt'))).toBe('unavailable')
    expect(await outcome(asked.read('log'))).not.toContain('canary')
  })
})
