import { execFileSync } from 'node:child_process'
import { chownSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Provider } from '../../src/core/provider.ts'
import { type GitOptions, git } from '../../src/providers/git/index.ts'
import { open as openGit } from '../../src/providers/git/open.ts'
import type { OpenContext } from '../../src/providers/source.ts'
import { bundled } from '../support/bundled.ts'
import {
  type Asked,
  ask,
  createGitFolder,
  type GitFolder,
  type GitRepository,
  hasReftable,
  makeReftable,
  openTestRepository,
  plainEnvironment,
} from '../support/git.ts'
import { fakeGit } from '../support/git-hostile.ts'
import { requires } from '../support/require.ts'

let folder: GitFolder
let repository: GitRepository
const opened: Provider[] = []

beforeEach(() => {
  folder = createGitFolder()
  repository = folder.repository('repository')
  repository.write('a.txt', 'one\n')
  repository.commit('first')
  repository.write('a.txt', 'one\ntwo\n')
  repository.commit('second')
})

afterEach(async () => {
  for (const one of opened.splice(0)) await one.close?.()
  folder.dispose()
})

async function open(at: string, options: Partial<GitOptions> = {}): Promise<Asked> {
  const provider = await git({ repository: at, ...options })
  opened.push(provider)
  return ask(provider)
}

/** What the operator is told when a repository cannot be served. */
async function complaint(options: Partial<GitOptions> = {}): Promise<string> {
  try {
    opened.push(await git({ repository: repository.dir, ...options }))
    return 'it was opened'
  } catch (error) {
    return error instanceof Error && 'kind' in error ? `${error.kind}: ${error.message}` : String(error)
  }
}

const clone = (name: string, ...options: string[]): GitRepository => {
  const dir = join(folder.path, name)
  execFileSync('git', ['clone', '-q', ...options, `file://${repository.dir}`, dir], {
    env: plainEnvironment,
    stdio: 'ignore',
  })
  return openTestRepository(dir, options.includes('--bare') ? dir : undefined)
}

describe('a git mount serves', () => {
  test('a bare repository, without a status', async () => {
    const bare = clone('bare.git', '--bare')
    const asked = await open(bare.dir)
    expect(await asked.paths()).toEqual(['HEAD/a.txt', 'branches', 'log', 'tags'])
    expect(await asked.text('log')).toContain('second')
    await expect(asked.read('status')).rejects.toThrow('a bare repository has no status')
  })

  test('a repository whose HEAD is not served, without a status', async () => {
    const asked = await open(repository.dir, { refs: ['refs/tags/*'] })
    await expect(asked.read('status')).rejects.toThrow('without HEAD there is no status')
  })

  test('a .git directory that is named itself, without a status', async () => {
    const asked = await open(repository.gitDir)
    expect(await asked.paths()).toEqual(['HEAD/a.txt', 'branches', 'log', 'tags'])
  })

  test('a repository without commits, and then its first commit', async () => {
    const empty = folder.repository('empty')
    empty.write('untracked.txt', '')
    const asked = await open(empty.dir)
    expect(await asked.paths()).toEqual(['branches', 'log', 'status', 'tags'])
    expect(await asked.text('log')).toBe('HEAD has no commits yet.\n')
    expect(await asked.text('branches')).toContain('HEAD is on refs/heads/main, which has no commits yet.')
    expect(await asked.text('status')).toBe('On main, which has no commits yet.\nUntracked:\n  untracked.txt\n')
    await expect(asked.read('HEAD/untracked.txt')).rejects.toMatchObject({ kind: 'not-found' })
    await expect(asked.read('commits/HEAD')).rejects.toMatchObject({ kind: 'not-found' })
    empty.commit('first')
    await expect.poll(() => asked.paths(), { timeout: 3000 }).toContain('HEAD/untracked.txt')
  })

  test('a shallow clone, as far as its history goes, also after the rest of it was fetched', async () => {
    const shallow = clone('shallow', '--depth=1')
    const asked = await open(shallow.dir)
    expect(await asked.text('HEAD/a.txt')).toBe('one\ntwo\n')
    expect((await asked.text('log')).match(/: (?:second|first)$/gm)).toEqual([': second'])
    expect(await asked.text('commits/HEAD')).toContain('not in this shallow clone')
    expect(await asked.text('blame/HEAD/a.txt')).toContain('two')
    // When it last changed is not known here.
    expect((await asked.stat('HEAD/a.txt')).modified).toBeUndefined()
    shallow.git('fetch', '-q', '--unshallow')
    await expect.poll(() => asked.text('log'), { timeout: 3000 }).toContain(': first')
  })

  test('a repository with SHA-256 object ids', async () => {
    const long = folder.repository('long', { format: 'sha256' })
    long.write('a.txt', 'one\n')
    const first = long.commit('first')
    long.write('a.txt', 'two\n')
    const second = long.commit('second')
    const asked = await open(long.dir)
    expect(first).toHaveLength(64)
    expect(await asked.text(`${first}/a.txt`)).toBe('one\n')
    expect(await asked.text(`${first.slice(0, 40)}/a.txt`)).toBe('one\n')
    expect(await asked.text(`commits/${first}`)).toContain('+one')
    expect(await asked.text(`diff/${first}/${second}`)).toContain('-one\n+two')
    expect(await asked.text('blame/HEAD/a.txt')).toContain(second.slice(0, 12))
    expect(await asked.text('status')).toContain('Nothing has changed.')
    expect((await asked.stat('HEAD/a.txt')).modified).toBe(Number(long.git('log', '-1', '--format=%ct')) * 1000)
  })

  test('a repository with a detached HEAD', async () => {
    repository.git('checkout', '-q', '--detach', 'HEAD~1')
    const asked = await open(repository.dir)
    expect(await asked.text('HEAD/a.txt')).toBe('one\n')
    expect(await asked.text('branches')).toContain('HEAD is detached at')
    expect(await asked.text('status')).toContain('HEAD is detached at')
  })

  test('a repository with refs whose objects are missing, and names these refs in the lists of branches and tags', async () => {
    const lose = (id: string) => rmSync(join(repository.gitDir, 'objects', id.slice(0, 2), id.slice(2)))
    const make = (message: string) => repository.git('commit-tree', '-m', message, 'HEAD^{tree}').trim()
    const [onBranch, onTag] = [make('on a branch'), make('under a tag')]
    repository.git('branch', 'broken', onBranch)
    repository.git('tag', 'good', 'HEAD')
    repository.git('tag', '-a', '-m', 'annotated', 'lost', onTag)
    lose(onBranch)
    lose(onTag)
    const asked = await open(repository.dir)
    const branches = await asked.text('branches')
    expect(branches).toMatch(/^\* main [0-9a-f]{12} \S+ second$/m)
    expect(branches).toContain(
      `Their objects are missing in the repository (branches: 1):\n  broken ${onBranch.slice(0, 12)}\n`,
    )
    const tags = await asked.text('tags')
    expect(tags).toMatch(/^ {2}good [0-9a-f]{12}/m)
    expect(tags).toMatch(/are missing in the repository \(tags: 1\):\n {2}lost [0-9a-f]{12}\n$/)
    expect(await asked.text('main/a.txt')).toBe('one\ntwo\n')
  })

  test('a linked working tree, with its own HEAD, index and status', async () => {
    repository.git('worktree', 'add', '-q', '-b', 'linked', '../linked', 'HEAD~1')
    const linked = openTestRepository(join(folder.path, 'linked'))
    linked.write('new.txt', 'new\n')
    const asked = await open(linked.dir)
    expect(await asked.text('HEAD/a.txt')).toBe('one\n')
    expect(await asked.text('main/a.txt')).toBe('one\ntwo\n')
    expect(await asked.text('status')).toMatch(/^On linked at [0-9a-f]{12}\.\nUntracked:\n {2}new\.txt\n$/)
    expect(await asked.text('branches')).toContain('* linked')
    // Its git directory can be named, too.
    expect(await (await open(join(repository.gitDir, 'worktrees/linked'))).text('HEAD/a.txt')).toBe('one\n')
  })

  test('the checkout of a submodule', async () => {
    const outer = folder.repository('outer')
    outer.git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', repository.dir, 'inner')
    outer.commit('a submodule')
    expect(await (await open(outer.dir)).text('HEAD/inner')).toMatch(/^Submodule at commit [0-9a-f]{40}/)
    expect(await (await open(join(outer.dir, 'inner'))).text('HEAD/a.txt')).toBe('one\ntwo\n')
  })

  test('a repository behind a symbolic link, or with unusual characters in its path', async () => {
    symlinkSync(repository.dir, join(folder.path, 'link'))
    expect(await (await open(join(folder.path, 'link'))).text('HEAD/a.txt')).toBe('one\ntwo\n')
    const odd = folder.repository('a:b "c" \u{20bb7} $(x)\nd')
    odd.write('a.txt', 'odd\n')
    odd.commit('odd')
    const asked = await open(odd.dir)
    expect(await asked.text('HEAD/a.txt')).toBe('odd\n')
    expect(await asked.text('status')).toContain('Nothing has changed.')
  })

  test('a repository with alternates, if the other repository is named', async () => {
    const shared = openTestRepository(join(folder.path, 'shared'))
    repository.git('clone', '-q', '--shared', repository.dir, shared.dir)
    expect(readFileSync(join(shared.gitDir, 'objects/info/alternates'), 'utf8')).toContain(repository.dir)
    expect(await complaint({ repository: shared.dir })).toMatch(/^unavailable: .*Name that folder in "alternates"/)
    expect(await (await open(shared.dir, { alternates: [repository.dir] })).text('HEAD/a.txt')).toBe('one\ntwo\n')
  })

  test('a partial clone, as far as its objects go', async () => {
    repository.git('config', 'uploadpack.allowFilter', 'true')
    const partial = clone('partial.git', '--bare', '--filter=blob:none')
    const asked = await open(partial.dir)
    expect(await asked.list({ prefix: 'HEAD/' })).toMatchObject([{ path: 'HEAD/a.txt' }])
    expect((await asked.list({ prefix: 'HEAD/' }))[0]?.size).toBeUndefined()
    await expect(asked.read('HEAD/a.txt')).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining('partial clone'),
    })
    expect(await asked.text('log')).toContain('second')
  })

  test.each(['blob:none', 'tree:0'])(
    'an error with the command that fetches missing objects, instead of a page that needs objects which a partial clone (%s) lacks',
    async (filter) => {
      repository.git('config', 'uploadpack.allowFilter', 'true')
      const asked = await open(clone(`${filter.replace(':', '-')}.git`, '--bare', `--filter=${filter}`).dir)
      const head = repository.git('rev-parse', 'HEAD').trim()
      const pages = [
        `commits/${head}`,
        `diff/${repository.git('rev-parse', 'HEAD~').trim()}/${head}`,
        'blame/HEAD/a.txt',
        'HEAD/a.txt',
      ]
      for (const path of pages) await expect(asked.text(path)).rejects.toThrow('git fetch --refetch --no-filter')
      if (filter !== 'tree:0') return
      await expect(asked.text('log', { path: 'a.txt' })).rejects.toThrow('git fetch --refetch --no-filter')
      await expect(asked.list({ prefix: 'HEAD/' })).rejects.toThrow('git fetch --refetch --no-filter')
    },
  )

  test('a repository of another user, with a warning', async ({ skip }) => {
    skip(process.geteuid?.() !== 0, 'only root can give a folder away')
    for (const name of readdirSync(repository.dir, { recursive: true, encoding: 'utf8' }))
      chownSync(join(repository.dir, name), 1234, 1234)
    chownSync(repository.dir, 1234, 1234)
    expect(() => execFileSync('git', ['log'], { cwd: repository.dir, env: plainEnvironment, stdio: 'pipe' })).toThrow(
      'dubious ownership',
    )
    const logged: unknown[] = []
    const asked = await open(repository.dir, { log: (...args) => logged.push(args) })
    expect(await asked.text('HEAD/a.txt')).toBe('one\ntwo\n')
    expect(await asked.text('status')).toContain('Nothing has changed.')
    expect(logged).toEqual([['warn', expect.stringContaining('belongs to another user'), { uid: 1234 }]])
  })
})

requires(
  'reftable',
  hasReftable(),
  'needs git 2.45 or newer',
)('with git 2.45 or later,', () => {
  test.each(['sha1', 'sha256'])(
    'with reftable, a repository is served with its branches, tags, HEAD and status, with ids of %s',
    async (format) => {
      const tables = makeReftable(join(folder.path, 'tables'), format)
      const asked = await open(tables.dir)
      expect(await asked.text('branches')).toContain('HEAD is on refs/heads/main, which has no commits yet.')
      tables.write('a.txt', 'one\n')
      const first = tables.commit('first')
      tables.git('branch', 'feature/x')
      tables.git('tag', 'v1')
      tables.write('a.txt', 'two\n')
      tables.commit('second')
      tables.git('pack-refs', '--all')
      await expect.poll(() => asked.text('HEAD/a.txt').catch(() => ''), { timeout: 5000 }).toBe('two\n')
      for (const ref of ['feature/x', 'refs/heads/feature/x', 'v1', first])
        expect(await asked.text(`${ref}/a.txt`)).toBe('one\n')
      expect(await asked.text('branches')).toMatch(/^\* main [0-9a-f]{12} \S+ second$/m)
      expect(await asked.text('tags')).toContain(`v1 ${first.slice(0, 12)}`)
      expect(await asked.text('log')).toContain('(HEAD, main): second')
      expect(await asked.text('status')).toContain('Nothing has changed.')
      tables.git('checkout', '-q', '--detach', first)
      await expect.poll(() => asked.text('status'), { timeout: 5000 }).toContain('HEAD is detached at')
      expect(await asked.text('HEAD/a.txt')).toBe('one\n')
    },
  )

  test('with reftable, a linked working tree is served with its own HEAD', async () => {
    const tables = makeReftable(join(folder.path, 'tables'))
    tables.write('a.txt', 'one\n')
    tables.commit('first')
    tables.git('worktree', 'add', '-q', '-b', 'linked', '../linked')
    tables.write('a.txt', 'two\n')
    tables.commit('second')
    const asked = await open(join(folder.path, 'linked'))
    expect(await asked.text('HEAD/a.txt')).toBe('one\n')
    expect(await asked.text('main/a.txt')).toBe('two\n')
    expect(await asked.text('branches')).toContain('* linked')
    expect(await asked.text('status')).toMatch(/^On linked at /)
  })

  test('with reftable, a repository whose tables are symbolic links is unavailable', async () => {
    const [tables, other] = ['tables', 'other'].map((name) => makeReftable(join(folder.path, name)))
    other?.commit('canary')
    const place = join(tables?.gitDir ?? '', 'reftable')
    rmSync(place, { recursive: true })
    symlinkSync(join(other?.gitDir ?? '', 'reftable'), place)
    expect(await complaint({ repository: tables?.dir ?? '' })).toMatch(/^unavailable: .*symbolic link.*reftable/)
    rmSync(place)
    mkdirSync(place)
    for (const name of readdirSync(join(other?.gitDir ?? '', 'reftable')))
      symlinkSync(join(other?.gitDir ?? '', 'reftable', name), join(place, name))
    expect(await complaint({ repository: tables?.dir ?? '' })).toMatch(/^unavailable: .*symbolic link.*reftable/)
  })
})

describe('a git mount gives an error with advice for', () => {
  test.each([
    ['relative/path', 'is not a valid absolute path. Did you mean'],
    ['', 'is not a valid absolute path'],
    ['/none/such', 'does not exist'],
    ['/etc/hostname', 'is not a git repository'],
  ])('a repository at %j', async (at, words) => {
    expect(await complaint({ repository: at })).toMatch(/^invalid: /)
    expect(await complaint({ repository: at })).toContain(words)
  })

  test('a folder that is no repository, or one without HEAD or objects', async () => {
    expect(await complaint({ repository: folder.path })).toContain('or run git init there')
    rmSync(join(repository.gitDir, 'HEAD'))
    expect(await complaint()).toContain('has no HEAD')
    mkdirSync(join(folder.path, 'half'))
    writeFileSync(join(folder.path, 'half/HEAD'), 'ref: refs/heads/main\n')
    expect(await complaint({ repository: join(folder.path, 'half') })).toContain('has no objects')
  })

  test('a .git file that leads to a missing place, with the path of the missing git directory', async () => {
    const lost = join(folder.path, 'lost')
    mkdirSync(lost)
    for (const target of ['../none/.git/worktrees/x', join(folder.path, 'none/.git/worktrees/x')]) {
      writeFileSync(join(lost, '.git'), `gitdir: ${target}\n`)
      const words = `the git directory ${JSON.stringify(join(folder.path, 'none/.git/worktrees/x'))}, which does not exist`
      expect(await complaint({ repository: lost })).toContain(words)
    }
  })

  test('a subfolder of a working tree, with the path of its top folder', async () => {
    mkdirSync(join(repository.dir, 'docs'), { recursive: true })
    const words = `It lies in the working tree ${JSON.stringify(repository.dir)}. Name that instead.`
    expect(await complaint({ repository: join(repository.dir, 'docs') })).toContain(words)
  })

  test('a repository format that is unknown, a config that git cannot parse, or a format that the installed git is too old for', async () => {
    const old = 'if [ "$3" = --version ]; then echo "git version 2.44.1"; else exec "$REAL" "$@"; fi'
    repository.git('config', 'extensions.refStorage', 'reftable')
    expect(await complaint({ git: fakeGit(folder, 'old', old) })).toMatch(
      /^invalid: .* keeps its refs as reftable, which git 2\.45 or newer reads, and this is git 2\.44\./,
    )
    writeFileSync(join(repository.gitDir, 'config'), '[extensions]\n\trefStorage = cuneiform\n')
    expect(await complaint()).toContain('keeps its refs in the format "cuneiform", which hikidashi does not know')
    writeFileSync(join(repository.gitDir, 'config'), '[extensions]\n\tobjectFormat = sha512\n')
    expect(await complaint()).toContain('which hikidashi does not know')
    writeFileSync(join(repository.gitDir, 'config'), '[[[')
    expect(await complaint()).toContain('a config that git cannot parse')
  })

  test('a git program that is missing, too old, failing, not git, or given by a relative path, but not for that of Apple', async () => {
    const path = process.env.PATH
    const old = fakeGit(folder, 'old', 'echo git version 2.20.1')
    const apple = 'if [ "$3" = --version ]; then echo "git version 2.39.5 (Apple Git-154)"; else exec "$REAL" "$@"; fi'
    try {
      process.env.PATH = `relative:${join(folder.path, 'empty')}`
      expect(await complaint()).toMatch(
        /^invalid: The program "git" is not on the PATH\. git 2\.32 or newer is needed: install it/,
      )
      process.env.PATH = dirname(old)
      expect(await complaint()).toMatch(/is git 2\.20, which is too old\. git 2\.32 or newer is needed/)
      process.env.PATH = path
      process.env.PATH = `${dirname(fakeGit(folder, 'apple', apple))}:${path}`
      expect(await complaint()).toBe('it was opened')
    } finally {
      process.env.PATH = path
    }
    expect(await complaint({ git: fakeGit(folder, 'other', 'echo hello') })).toContain('is not git')
    expect(await complaint({ git: fakeGit(folder, 'failing', 'exit 3') })).toMatch(
      /^unavailable: git --version failed \(exit code 3\)/,
    )
    expect(await complaint({ git: '/none/git' })).toContain(
      'The option "git" names "/none/git", which is no program that this user can run.',
    )
    expect(await complaint({ git: './git' })).toContain('must be the name of a program or an absolute path')
  })

  test('a repository that git refuses because of its owner', async () => {
    const message = "fatal: detected dubious ownership in repository at '/secret/path'"
    const minds = fakeGit(
      folder,
      'minds',
      `case " $* " in *for-each-ref*) echo "${message}" >&2; exit 128 ;; esac\nexec "$REAL" "$@"`,
    )
    const said = await complaint({ git: minds })
    expect(said).toBe(
      'unavailable: git for-each-ref refuses the repository, since another user owns it. Run this server as its owner, or give the repository to this user (chown -R).',
    )
  })

  test.each([{ maxBytes: 0 }, { maxCommits: 1.5 }, { timeoutMs: -1 }, { maxBytes: 1e12 }])(
    'an invalid limit: %j',
    async (options) => {
      expect(await complaint(options)).toMatch(/^invalid: \w+ must be a whole number from 1 to \d+\.$/)
    },
  )

  test('a malformed glob of refs', async () => {
    expect(await complaint({ refs: ['refs/heads/['] })).toContain('malformed')
  })
})

describe('the temporary folder of a git mount', () => {
  const before = process.env.TMPDIR
  let temporary: string

  beforeEach(() => {
    temporary = join(folder.path, 'temporary')
    mkdirSync(temporary)
    process.env.TMPDIR = temporary
  })

  afterEach(() => {
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
  })

  test('is removed with all processes, whether a repository was opened or not', async () => {
    await complaint({ repository: folder.path })
    expect(readdirSync(temporary)).toEqual([])
    const provider = await git({ repository: repository.dir })
    const asked = ask(provider)
    await Promise.all([asked.text('HEAD/a.txt'), asked.text('status'), asked.text('log')])
    expect(readdirSync(temporary)).toHaveLength(1)
    await provider.close?.()
    const children = execFileSync('ps', ['-o', 'args=', '--ppid', String(process.pid)], { encoding: 'utf8' })
    expect(children).not.toContain('cat-file')
    expect(readdirSync(temporary)).toEqual([])
    await expect(asked.read('log')).rejects.toMatchObject({ kind: 'unavailable' })
    await provider.close?.()
  })

  test('is removed when the process exits without closing anything', async () => {
    const script = `import { git } from ${JSON.stringify(bundled('providers/git/index'))}
      const provider = await git({ repository: ${JSON.stringify(repository.dir)} })
      await provider.read({ path: 'HEAD/a.txt', params: new Map() }, { principal: { id: '', roles: [] }, signal: new AbortController().signal })
      process.exit(0)`
    writeFileSync(join(folder.path, 'exits.mjs'), script)
    execFileSync(process.execPath, [join(folder.path, 'exits.mjs')])
    expect(readdirSync(temporary)).not.toContainEqual(expect.stringMatching(/^hikidashi-git-/))
  })

  test('is created again after it was deleted, and is not used if it belongs to another user', async ({ skip }) => {
    const asked = await open(repository.dir)
    const [name = ''] = readdirSync(temporary)
    rmSync(join(temporary, name), { recursive: true })
    await sleep(1050)
    expect(await asked.text('log')).toContain('second')
    expect(await asked.text('status')).toContain('Nothing has changed.')
    skip(process.geteuid?.() !== 0, 'only root can give a folder away')
    chownSync(join(temporary, name), 1234, 1234)
    await expect(asked.read('log')).rejects.toMatchObject({ kind: 'unavailable' })
  })
})

test.each([
  ['mask', 'withholds'],
  ['off', 'shows'],
] as const)('with redact %s, a patch of a git mount %s the changes of secret files', async (redact, _) => {
  const names = ['.netrc', 'a b/credentials.json', 'ä/id_rsa', 'notes.txt']
  for (const name of names) repository.write(name, `held ${name.length}\n`)
  const first = repository.commit('third')
  repository.write('.netrc', 'held again\n')
  repository.git('mv', 'a b/credentials.json', 'plain.txt')
  repository.write('image/secring.gpg', Buffer.from([0, 1, 2]))
  repository.git('rm', '-q', 'ä/id_rsa')
  const second = repository.commit('fourth')
  const provider = await openGit({ repository: repository.dir, redact }, {
    folder: repository.dir,
    log: () => {},
    documents: async (inner: Provider) => inner,
  } as unknown as OpenContext)
  opened.push(provider)
  const { text } = ask(provider)
  for (const path of [`commits/${first}`, `commits/${second}`, `diff/${first}/${second}`]) {
    const page = await text(path)
    const held = page.match(/held \S+/g) ?? []
    if (redact === 'off') expect(page).not.toContain('[redacted]')
    else
      expect(
        held.filter((found) => found !== 'held 9'),
        path,
      ).toEqual([])
    expect(page).toContain('.netrc')
  }
  const page = await text(`commits/${first}`)
  expect(page).toContain('+held 9\n')
  if (redact === 'off') expect(page.match(/\+held /g)).toHaveLength(4)
  else expect(page.match(/^\[redacted\] The changes are withheld/gm)).toHaveLength(3)
  if (redact !== 'off') expect(await text(`diff/${first}/${second}`, { path: '.netrc' })).not.toContain('held again')
})
