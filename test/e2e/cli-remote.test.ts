import { execFileSync, spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { parseRemote } from '../../src/cli/operations/remote.ts'
import { run } from '../support/cli.ts'
import { runHere } from '../support/cli-here.ts'

// Each command starts git: slow where the machine is busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

let root: string
let origin: string
let url: string

const git = (...args: readonly string[]) =>
  execFileSync('git', ['-c', 'user.email=a@example.com', '-c', 'user.name=A', ...args], { cwd: origin, stdio: 'pipe' })
const commit = (message: string) => {
  git('add', '--all')
  git('commit', '--quiet', '--message', message)
}
/** A user whose git has a filter that leaves a trace. */
const user = () => ({
  cwd: root,
  env: {
    XDG_CACHE_HOME: join(root, 'cache'),
    XDG_STATE_HOME: join(root, 'state'),
    GIT_CONFIG_GLOBAL: join(root, 'gitconfig'),
  },
})
/** A command, in this process; and one as users start it. */
const hikidashi = (...args: readonly string[]) => runHere(args, user())
const started = (...args: readonly string[]) => run(args, user())

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'hikidashi-remote-'))
  origin = join(root, 'team/demo')
  url = pathToFileURL(origin).href
  mkdirSync(join(origin, 'src'), { recursive: true })
  writeFileSync(join(root, 'gitconfig'), `[filter "trace"]\n\tsmudge = touch ${join(root, 'trace')}; cat\n`)
  git('init', '--quiet')
  writeFileSync(join(origin, 'README.md'), '# Demo\n\nHow anchors are weighed.\n')
  writeFileSync(join(origin, 'src/anchor.ts'), 'export const anchor = 1\n')
  writeFileSync(join(origin, '.gitattributes'), '*.md filter=trace\n*.ts text eol=crlf\n')
  writeFileSync(join(origin, 'hikidashi.json'), '{ "mounts": { "env://all": { "provider": "env", "allow": ["*"] } } }')
  symlinkSync('/etc/passwd', join(origin, 'link'))
  commit('one')
  git('tag', 'v1')
})
afterAll(() => rmSync(root, { recursive: true, force: true }))

describe('the option --remote', () => {
  it('serves the files of a repository as they were committed, a link as a text, without the filters of the user', async () => {
    const listed = await started('ls', '-r', '--only', 'files', '--remote', url)
    expect(listed.out.split('\n')).toEqual(
      ['.gitattributes', 'README.md', 'hikidashi.json', 'link', 'src/anchor.ts']
        .map((path) => `file:///team/demo/${path}`)
        .concat(''),
    )
    expect((await hikidashi('read', 'src/anchor.ts', '--remote', url)).out).toBe('export const anchor = 1\n')
    expect((await hikidashi('read', 'link', '--remote', url)).out, 'a link is a text').toBe('/etc/passwd')
    expect(existsSync(join(root, 'trace')), 'no filter of the user runs').toBe(false)
  })

  it('takes no configuration from the repository', async () => {
    const { out } = await hikidashi('ls', '--remote', url)
    expect(out).toContain('file:///team/demo')
    expect(out).not.toContain('env://')
  })

  it('packs a context for a question from the repository', async () => {
    const { out, code } = await hikidashi('pack', 'how are anchors weighed', '--budget', '1000', '--remote', url)
    expect(code).toBe(0)
    expect(out).toContain('`file:///team/demo/README.md`')
  })

  it('fetches the new commits of the default branch, or uses the named branch, tag or commit', async () => {
    const first = String(git('rev-parse', 'HEAD')).trim()
    git('branch', 'kept')
    writeFileSync(join(origin, 'README.md'), '# Demo 2\n')
    rmSync(join(origin, 'link'))
    commit('two')
    expect((await hikidashi('read', 'README.md', '--remote', url)).out).toBe('# Demo 2\n')
    expect((await hikidashi('read', 'link', '--remote', url)).code).toBe(4)
    for (const ref of ['kept', 'v1', first])
      expect((await hikidashi('read', 'README.md', '--remote', `${url}#${ref}`)).out).toContain('weighed')
  })

  it('uses an older copy if the repository does not answer, and says so; without a copy it fails', async () => {
    await hikidashi('ls', '--remote', url)
    renameSync(origin, `${origin}-gone`)
    try {
      const { out, err, code } = await hikidashi('read', 'README.md', '--remote', url)
      expect([code, out]).toEqual([0, '# Demo 2\n'])
      expect(err).toMatch(/cannot be fetched.* The copy of 2\d{3}-\S+ is used/s)
      const other = await hikidashi('ls', '--remote', `${url}#main-of-nobody`)
      expect(other.code).toBe(1)
      expect(other.err).toContain('cannot be fetched')
    } finally {
      renameSync(`${origin}-gone`, origin)
    }
  })

  it('fetches also after a killed fetch that left lock files and temporary files behind', async () => {
    await hikidashi('ls', '--remote', url)
    const remotes = join(root, 'cache/hikidashi/remote')
    const folders = readdirSync(remotes).filter((name) => existsSync(join(remotes, name, 'demo/.git/refs/hikidashi')))
    const dead = String(spawnSync(process.execPath, ['--version']).pid)
    for (const name of folders) {
      const repository = join(remotes, name, 'demo/.git')
      for (const file of ['index.lock', 'shallow.lock', 'HEAD.lock', 'config.lock', 'refs/hikidashi/fetched.lock'])
        writeFileSync(join(repository, file), '')
      writeFileSync(join(repository, 'objects/pack/tmp_pack_killed'), '')
      mkdirSync(join(remotes, name, 'lock'))
      writeFileSync(join(remotes, name, 'lock', dead), '')
    }
    const { out, err, code } = await hikidashi('read', 'README.md', '--remote', url)
    expect([code, out, err]).toEqual([0, '# Demo 2\n', ''])
    const left = readdirSync(remotes).filter((name) => existsSync(join(remotes, name, 'lock')))
    expect(left.length, 'the lock of this repository is released').toBe(folders.length - 1)
  })

  it('serves several commands that fetch the same repository at once', async () => {
    git('tag', '--force', 'together')
    const several = await Promise.all(
      Array.from({ length: 4 }, () => started('read', 'README.md', '--remote', `${url}#together`)),
    )
    for (const { out, err, code } of several) {
      expect([code, out]).toEqual([0, '# Demo 2\n'])
      expect(err).not.toContain('cannot be fetched')
    }
  })

  it.each([
    ['more than 200,000 files', 448, 448, 1],
    ['more than 1 GiB', 1, 257, 4 * 1024 * 1024],
  ])('refuses a commit of %s, and writes none of its files', async (refusal, folders, files, bytes) => {
    const piped = (input: Uint8Array | string, ...args: readonly string[]) =>
      String(execFileSync('git', args, { cwd: origin, input, stdio: 'pipe' })).trim()
    const blob = piped(Buffer.alloc(bytes), 'hash-object', '-w', '--stdin')
    const treeOf = (count: number, item: string) =>
      piped(Array.from({ length: count }, (_, at) => `${item}\t${at}\n`).join(''), 'mktree')
    const folder = treeOf(files, `100644 blob ${blob}`)
    const tree = treeOf(folders, `040000 tree ${folder}`)
    const bomb = String(git('commit-tree', '-m', 'bomb', tree)).trim()
    git('tag', '--force', 'bomb', bomb)
    const { code, err } = await started('ls', '--remote', `${url}#bomb`)
    expect(code).toBe(1)
    expect(err).toContain(refusal)
    const caches = readdirSync(join(root, 'cache/hikidashi/remote'))
    expect(caches.some((name) => existsSync(join(root, 'cache/hikidashi/remote', name, 'demo/0/0')))).toBe(false)
  })

  it('does not print the password of the URL', async () => {
    const { err, code } = await hikidashi('ls', '--remote', 'https://bob:hunter2-hunter2@127.0.0.1:1/team/demo')
    expect(code).toBe(1)
    expect(err).toContain('cannot be fetched')
    expect(err).not.toContain('hunter2')
  })

  it.each(['ext::sh -c date', '-u', 'owner/repo#--upload-pack=date', 'owner/repo#a..b', 'owner/repo#', 'owner', ''])(
    'refuses the argument %j',
    async (text) => {
      const { code, err } = await hikidashi('ls', `--remote=${text}`)
      expect(code).toBe(2)
      expect(err).toMatch(/--remote must be owner\/repo|is not the name of a branch or a tag/)
    },
  )

  it('accepts the name of a GitHub repository, and URLs of other servers', () => {
    const head = { ref: 'HEAD', name: 'o/r.js' }
    expect(parseRemote('o/r.js')).toEqual({ ...head, url: 'https://github.com/o/r.js.git' })
    expect(parseRemote('git@example.com:o/r.js.git')).toEqual({ ...head, url: 'git@example.com:o/r.js.git' })
    expect(parseRemote('ssh://git@example.com:22/g/o/r.js#feature/x')).toEqual({
      ...{ url: 'ssh://git@example.com:22/g/o/r.js', ref: 'feature/x', name: 'o/r.js' },
    })
    expect(parseRemote('https://example.com/%20x/../r').name).toBe('-20x/r')
  })
})
