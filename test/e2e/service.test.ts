import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { findProgram } from '../../src/providers/program.ts'
import { requires } from '../support/require.ts'

// The unit in deploy/hikidashi.service.

const root = join(import.meta.dirname, '../..')
const unit = join(root, 'deploy/hikidashi.service')
const analyze = await findProgram('systemd-analyze')

requires(
  'systemd-analyze',
  analyze !== undefined,
  'there is no systemd-analyze',
)('the systemd unit', () => {
  test('the systemd unit has an exposure of at most 2', () => {
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
)('systemd starts the unit', () => {
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
