import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, win32 } from 'node:path'
import { describe, expect, test } from 'vitest'
import { splitCommand } from '../../src/cli/operations/command-line.ts'
import { findProgram } from '../../src/providers/program.ts'
import { start } from '../support/cli.ts'
import { requires } from '../support/require.ts'

// The services in deploy/: a unit of systemd, a job of launchd and a scheduled task.

const root = join(import.meta.dirname, '../..')
const unit = join(root, 'deploy/hikidashi.service')
const analyze = await findProgram('systemd-analyze')

requires(
  'systemd-analyze',
  analyze !== undefined,
  'there is no systemd-analyze',
)('checked by systemd-analyze,', () => {
  test('the systemd unit has an exposure level of at most 2', () => {
    const said = execFileSync('systemd-analyze', ['security', '--offline=true', '--no-pager', unit], {
      encoding: 'utf8',
    })
    const [, exposure] = /Overall exposure level for hikidashi\.service: ([\d.]+)/.exec(said) ?? []
    expect(Number(exposure)).toBeLessThanOrEqual(2)
  })
})

/** Whether everybody may read a file and enter its folders: the unit runs as a dynamic user. */
function isPublic(path: string): boolean {
  const { mode } = statSync(path)
  const needed = statSync(path).isDirectory() ? 0o005 : 0o004
  return (mode & needed) === needed && (dirname(path) === path || isPublic(dirname(path)))
}

const isSystemd = process.platform === 'linux' && readFileSync('/proc/1/comm', 'latin1').trim() === 'systemd'
const main = join(root, 'dist/cli/main.js')
const canStart = isSystemd && process.getuid?.() === 0 && isPublic(process.execPath) && isPublic(main)

requires(
  'systemd',
  canStart,
  'systemd is not the first process, this user is not root, or other users may not read Node and the build',
)('started by systemd,', () => {
  test('the systemd unit serves files, git, a database and documents, and stops', async () => {
    const name = `hikidashi-test-${process.pid}`
    // PrivateTmp hides /tmp from the service.
    const place = `/run/${name}`
    const served = join(place, 'served')
    const file = `/run/systemd/system/${name}.service`
    mkdirSync(served, { recursive: true, mode: 0o755 })
    const git = (...args: readonly string[]) =>
      execFileSync('git', ['-C', served, '-c', 'user.name=a', '-c', 'user.email=a@example.org', ...args])
    git('init', '-q', '-b', 'main')
    writeFileSync(join(served, 'a.md'), 'one\n')
    writeFileSync(join(served, 'a.html'), '<p>a document</p>')
    git('add', '-A')
    git('commit', '-q', '-m', 'first')
    const { DatabaseSync } = await import('@photostructure/sqlite')
    const database = new DatabaseSync(join(served, 'a.db'))
    database.exec('create table words (word text)')
    database.close()
    const config = join(place, 'hikidashi.json')
    const mounts = {
      'file:///served': { provider: 'files', root: 'served' },
      'git://served': { provider: 'git', repository: 'served' },
      'sqlite://served': { provider: 'sqlite', file: 'served/a.db' },
    }
    writeFileSync(config, JSON.stringify({ mounts, store: { sqlite: `/var/lib/${name}/store.sqlite` } }))
    const port = 20_000 + (process.pid % 20_000)
    const start = `ExecStart=${process.execPath} ${main} serve --config ${config} --http ${port} --log-format json`
    const text = readFileSync(unit, 'utf8')
      .replace(/^ExecStart=.*$/m, start)
      .replace('StateDirectory=hikidashi', `StateDirectory=${name}`)
      .replaceAll('/var/lib/hikidashi', `/var/lib/${name}`)
    writeFileSync(file, text)
    const systemctl = (...args: readonly string[]) => execFileSync('systemctl', args, { encoding: 'utf8' })
    const { connect } = await import('../../src/client/index.ts')
    try {
      systemctl('daemon-reload')
      systemctl('start', name)
      const url = `http://127.0.0.1:${port}/mcp`
      const view = await expect
        .poll(() => connect({ url }).catch(() => undefined), { timeout: 20_000 })
        .toBeDefined()
        .then(() => connect({ url }))
      const read = async (uri: string) => JSON.stringify(await view.read(uri))
      expect(await read('file:///served/a.md')).toContain('one')
      expect(await read('file:///served/a.html?as=text')).toContain('a document')
      expect(await read('git://served/main/a.md')).toContain('one')
      expect(JSON.stringify(await view.list({}))).toContain('sqlite://served/words')
      await view.close()
      systemctl('stop', name)
      expect(systemctl('show', '-P', 'Result', name).trim()).toBe('success')
    } finally {
      systemctl('stop', name)
      rmSync(file)
      systemctl('daemon-reload')
      rmSync(place, { recursive: true })
      rmSync(`/var/lib/${name}`, { recursive: true, force: true })
      rmSync(`/var/lib/private/${name}`, { recursive: true, force: true })
    }
  }, 120_000)
})

describe('services of macOS and Windows:', () => {
  /** Runs the words of a service with a configuration, and stops it. Resolves to its log, and to its exit code. */
  async function runService([, , ...words]: readonly string[], env: Readonly<Record<string, string>> = {}) {
    const place = mkdtempSync(join(tmpdir(), 'hikidashi-service-'))
    try {
      const config = join(place, 'hikidashi.json')
      const mounts = { 'docs://a': { provider: 'inline', resources: { 'a.md': { text: 'one' } } } }
      writeFileSync(config, JSON.stringify({ mounts, http: { listen: '127.0.0.1:0' } }))
      const args = words.map((word) => (word.endsWith('hikidashi.json') ? config : word))
      const { child, says, ended } = start(args, { cwd: place, env: { ...env, XDG_STATE_HOME: place } })
      const [line] = await says(/.*http:\/\/127\.0\.0\.1:\d+\/mcp.*/)
      child.kill('SIGTERM')
      return { line, code: (await ended).code }
    } finally {
      rmSync(place, { recursive: true })
    }
  }
  const served = { line: expect.stringMatching(/^\{.*\}$/) as string, code: 0 }

  test('the job of launchd starts a server that ends at SIGTERM', async () => {
    const text = readFileSync(join(root, 'deploy/hikidashi.plist'), 'utf8')
    const inside = (key: string, name: string) =>
      new RegExp(`<key>${key}</key>\\s*<${name}>(.*?)</${name}>`, 's').exec(text)?.[1] ?? ''
    const words = [...inside('ProgramArguments', 'array').matchAll(/<string>(.*)<\/string>/g)].map(
      ([, word = '']) => word,
    )
    const variables = inside('EnvironmentVariables', 'dict').matchAll(/<key>(.*)<\/key>\s*<string>(.*)<\/string>/g)
    const env = Object.fromEntries([...variables].map(([, key, value]) => [key, value])) as Record<string, string>
    expect(words.slice(0, 2).map((word) => basename(word))).toEqual(['node', 'main.js'])
    expect(env).toHaveProperty('XDG_STATE_HOME')
    expect(await runService(words, env)).toEqual(served)
  })

  test('the scheduled task starts a server, and its log goes to a file with an absolute path', async () => {
    const text = readFileSync(join(root, 'deploy/hikidashi-task.ps1'), 'utf8')
    const [, line = '', log = ''] = /^\$arguments = '\/d \/s \/c "(.*) 2>>"(.*)""'$/m.exec(text) ?? []
    const words = splitCommand(line, 'win32')
    expect(words.slice(0, 2).map((word) => win32.basename(word))).toEqual(['node.exe', 'main.js'])
    expect(win32.isAbsolute(log)).toBe(true)
    expect(await runService(words)).toEqual(served)
  })
})
