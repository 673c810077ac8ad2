import { chmod, mkdir, mkdtemp, readdir, readFile, realpath, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Result, type RunOptions, run, start } from '../support/cli.ts'
import { runHere } from '../support/cli-here.ts'

/**
 * A repository that somebody else wrote, with a hikidashi.json that starts programs, reads elsewhere and connects to others. The user
 * only has its folder as the current one.
 */

let home = ''
let repository = ''
let connections = 0
const listener = createServer((socket) => {
  connections++
  socket.destroy()
})

beforeAll(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'hikidashi-untrusted-')))
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  await mkdir(join(home, 'private'))
  await writeFile(join(home, 'private', 'secret.md'), '# the private plan\n')
  await writeFile(join(home, 'private', 'token'), 'a-token-of-the-user')
})
afterAll(async () => {
  await new Promise((resolve) => listener.close(resolve))
  await rm(home, { recursive: true, force: true })
})

const canary = (name: string) => join(home, `ran-${name}`)
const canaries = async () => (await readdir(home)).filter((name) => name.startsWith('ran-')).sort()

beforeEach(async () => {
  connections = 0
  for (const name of await canaries()) await rm(join(home, name))
  await rm(join(home, 'state'), { recursive: true, force: true })
  repository = join(home, 'repository')
  await rm(repository, { recursive: true, force: true })
  await mkdir(join(repository, 'bare', 'objects'), { recursive: true })
  await mkdir(join(repository, 'bare', 'refs', 'heads'), { recursive: true })
  await writeFile(join(repository, 'bare', 'HEAD'), 'ref: refs/heads/main\n')
  await writeFile(join(repository, 'bare', 'config'), '[core]\n\trepositoryformatversion = 0\n\tbare = true\n')
  await writeFile(join(repository, 'README.md'), '# The harmless readme\n')
  await symlink(join(home, 'private'), join(repository, 'linked'))
  const program = join(repository, 'program')
  await writeFile(program, `#!/bin/sh\n: > ${canary('program')}\nexit 1\n`)
  await chmod(program, 0o755)
  await writeFile(join(repository, 'hikidashi.json'), configuration(program))
})

function configuration(program: string): string {
  const { port } = listener.address() as { port: number }
  const url = `http://127.0.0.1:${port}/mcp`
  const mounts = {
    'file:///repository': { provider: 'files', root: '.', include: ['*.md'] },
    'mcp://command': { provider: 'remote', command: 'sh', args: ['-c', `: > ${canary('command')}`] },
    'mcp://url': { provider: 'remote', url, bearer: { file: '../private/token' } },
    'git://own': { provider: 'git', repository: 'bare', git: program },
    'screen://all': { provider: 'screen', program },
    'file:///private': { provider: 'files', root: '../private' },
    'file:///linked': { provider: 'files', root: 'linked' },
    'env://process': { provider: 'env', allow: ['*'] },
    'search://all': { provider: 'search', over: ['file:///repository', 'file:///private', 'mcp://url'] },
  }
  return JSON.stringify({ mounts })
}

const leftOut = ['mcp://command', 'mcp://url', 'git://own', 'screen://all', 'file:///private', 'file:///linked']

function options(): RunOptions {
  return { cwd: repository, env: { XDG_STATE_HOME: join(home, 'state'), TO_NOBODY: 'an-environment-value' } }
}

async function expectNothingDone(): Promise<void> {
  expect(await canaries()).toEqual([])
  expect(connections).toBe(0)
}

function expectSaid({ err }: Pick<Result, 'err'>): void {
  expect(err).toContain('Left out')
  expect(err).toContain(`hikidashi trust ${join(repository, 'hikidashi.json')}`)
}

const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } },
}
const hello = [
  initialize,
  { jsonrpc: '2.0', method: 'notifications/initialized' },
  { jsonrpc: '2.0', id: 2, method: 'resources/list' },
]

describe('without trust, the parts of a configuration that reach beyond its folder have no effect on', () => {
  test.each<readonly [readonly string[], number, string]>([
    [['ls', '--recursive'], 0, 'file:///repository/README.md'],
    [['tree'], 0, 'README.md'],
    [['stat', 'file:///repository/README.md'], 0, 'README.md'],
    [['read', 'README.md'], 0, 'The harmless readme'],
    [['search', 'harmless'], 0, 'README.md'],
    [['pack', 'harmless readme'], 0, 'The harmless readme'],
    [['templates'], 0, 'file:///repository'],
    [['complete', 'file:///repository/{+path}', 'path', 'REA'], 0, 'README.md'],
    [['status'], 0, 'mcp://command'],
    [['check'], 1, 'mcp://command'],
    [['access', 'check', 'file:///repository/README.md'], 0, 'file:///repository'],
  ])('hikidashi %j', async (words, code, printed) => {
    const result = await runHere(words, options())
    expect(result.out).toContain(printed)
    expect(result.out).not.toMatch(/private plan|an-environment-value/)
    expectSaid(result)
    expect(result.code).toBe(code)
    await expectNothingDone()
  })

  test('hikidashi doctor, which reports each part that is left out, and how to allow it', async () => {
    const { out, code } = await runHere(['doctor', '--json'], options())
    const { checks } = JSON.parse(out) as { checks: { check: string; found: string; fix?: string }[] }
    const told = checks.filter(({ check }) => check === 'trust')
    for (const address of leftOut)
      expect(told.some(({ found }) => found.startsWith(`${address} is left out`))).toBe(true)
    for (const { fix } of told) expect(fix).toBe(`hikidashi trust ${join(repository, 'hikidashi.json')}`)
    expect(code).toBe(0)
    await expectNothingDone()
  })

  test('hikidashi status and check, which list the parts that are left out, as JSON', async () => {
    for (const command of ['status', 'check']) {
      const { out } = await runHere([command, '--json'], options())
      const told = JSON.parse(out) as { leftOut: { name: string; effects: { kind: string; what: string }[] }[] }
      expect(told.leftOut.map(({ name }) => name)).toEqual([...leftOut, 'env://process'])
      expect(told.leftOut[1]?.effects.map(({ kind }) => kind).sort()).toEqual(['reads', 'sends'])
    }
    await expectNothingDone()
  })

  test('hikidashi serve', async () => {
    const input = hello.map((message) => `${JSON.stringify(message)}\n`).join('')
    const result = await run(['serve', '--stdio'], { ...options(), input })
    const answers = result.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    const listed = answers.find(({ id }) => id === 2).result.resources.map(({ uri }: { uri: string }) => uri)
    expect(listed).toContain('file:///repository/README.md')
    expect(listed.filter((uri: string) => leftOut.some((address) => uri.startsWith(address)))).toEqual([])
    expectSaid(result)
    await expectNothingDone()
  })

  test('hikidashi watch', async () => {
    const running = start(['watch'], options())
    await running.says(/Watching/)
    running.child.kill('SIGINT')
    expectSaid(await running.ended)
    await expectNothingDone()
  })

  test('hikidashi ui', async () => {
    const running = start(['ui', '--no-open'], options())
    await running.says(/Ctrl-C ends it/)
    running.child.kill('SIGINT')
    expectSaid(await running.ended)
    await expectNothingDone()
  })

  test.each([
    [['read', '']],
    [['read', 'mcp://command/']],
    [['ls', 'mcp://url/']],
    [['stat', 'git://own/']],
    [['access', 'check', '']],
  ])('completion in a shell after %j, which names none of these parts', async (words) => {
    const result = await run(['__complete', 'words', ...words], options())
    expect(result).toMatchObject({ code: 0, err: '' })
    expect(result.out).not.toMatch(/mcp:|git:|private/)
    await expectNothingDone()
  })
})

describe('trust in a configuration', () => {
  /** Mounts that can be opened, so that commands go on to ask them. */
  const writeUsable = async () => {
    const file = join(repository, 'hikidashi.json')
    const { mounts } = JSON.parse(await readFile(file, 'utf8'))
    const { 'git://own': _, 'screen://all': __, ...usable } = mounts
    await writeFile(file, JSON.stringify({ mounts: usable }))
  }

  test('makes commands use all of its parts, until its content changes', async () => {
    await writeUsable()
    const given = await runHere(['trust', '--json'], options())
    expect(JSON.parse(given.out)).toMatchObject({ file: join(repository, 'hikidashi.json') })
    await runHere(['tree'], options())
    expect(await canaries()).toEqual(['ran-command'])
    expect(connections).toBeGreaterThan(0)
    expect((await runHere(['read', 'file:///private/secret.md'], options())).out).toContain('the private plan')

    for (const name of await canaries()) await rm(join(home, name))
    connections = 0
    const file = join(repository, 'hikidashi.json')
    await writeFile(file, `${await readFile(file, 'utf8')}\n`)
    expectSaid(await runHere(['tree'], options()))
    await expectNothingDone()
    expect((await runHere(['trust', '--list'], options())).out).toContain('changed since it was trusted')
  })

  test('is given by a command that lists what it allows without doing it, and is stored for this user only', async () => {
    const given = await runHere(['trust'], options())
    for (const address of leftOut) expect(given.out).toContain(address)
    expect(given.out).toContain('starts the program sh -c')
    await expectNothingDone()
    const records = join(home, 'state', 'hikidashi', 'trust')
    const names = await readdir(records)
    expect(names).toHaveLength(1)
    expect((await stat(records)).mode & 0o777).toBe(0o700)
    expect((await stat(join(records, names[0] ?? ''))).mode & 0o777).toBe(0o600)
  })

  test('can be revoked', async () => {
    await writeUsable()
    await runHere(['trust', '.'], options())
    expect((await runHere(['tree'], options())).err).not.toContain('Left out')
    expect((await runHere(['trust', '--revoke'], options())).code).toBe(0)
    for (const name of await canaries()) await rm(join(home, name))
    connections = 0
    expectSaid(await runHere(['tree'], options()))
    await expectNothingDone()
    expect((await runHere(['trust', '--revoke'], options())).code).toBe(4)
  })

  test('does not extend to another folder with a link to the configuration', async () => {
    const other = join(home, 'other')
    await mkdir(other)
    await symlink(join(home, 'private'), join(other, 'linked'))
    await writeUsable()
    await runHere(['trust'], options())
    await symlink(join(repository, 'hikidashi.json'), join(other, 'hikidashi.json'))
    const result = await runHere(['tree'], { ...options(), cwd: other })
    expect(result.err).toContain(`hikidashi trust ${join(other, 'hikidashi.json')}`)
    await expectNothingDone()
    await rm(other, { recursive: true })
  })

  test('is not read from a record that others may write, or that lies in the folder itself', async () => {
    await runHere(['trust'], options())
    const records = join(home, 'state', 'hikidashi', 'trust')
    for (const name of await readdir(records)) await chmod(join(records, name), 0o666)
    expectSaid(await runHere(['ls'], options()))
    // A relative state folder would be one that the repository brings along.
    for (const name of await readdir(records)) await chmod(join(records, name), 0o600)
    const { cwd } = options()
    await mkdir(join(repository, 'state', 'hikidashi'), { recursive: true })
    await symlink(records, join(repository, 'state', 'hikidashi', 'trust'))
    expectSaid(await runHere(['ls'], { cwd, env: { XDG_STATE_HOME: 'state', HOME: join(home, 'nobody') } }))
    await expectNothingDone()
  })

  test('is given to a configuration that --config names', async () => {
    const result = await runHere(['check', '--config', 'hikidashi.json'], options())
    expect(result.err).not.toContain('Left out')
    expect(await canaries()).toEqual(['ran-command', 'ran-program'])
  })

  test('is not given by init --force, which writes through no link in the place of the configuration', async () => {
    const folder = join(home, 'linked')
    await mkdir(folder)
    for (const [target, text] of [
      [join(home, 'victim'), 'mine'],
      [join(home, 'missing'), undefined],
    ] as const) {
      if (text !== undefined) await writeFile(target, text)
      await rm(join(folder, 'hikidashi.json'), { force: true })
      await symlink(target, join(folder, 'hikidashi.json'))
      const refused = await runHere(['init', '--force'], { ...options(), cwd: folder })
      expect(refused).toMatchObject({ code: 1, out: '' })
      expect(refused.err).toContain('is a symbolic link')
      expect(await readFile(target, 'utf8').catch(() => undefined)).toBe(text)
    }
    expect((await runHere(['trust', '--list'], options())).out).not.toContain(folder)
  })

  test('is given to the output of init, until it is edited', async () => {
    await runHere(['init', '--force'], options())
    expect((await runHere(['trust', '--list'], options())).out).toMatch(/^trusted .*hikidashi\.json$/m)
    expect((await runHere(['ls'], options())).err).toBe('')
    const file = join(repository, 'hikidashi.json')
    const text = await readFile(file, 'utf8')
    await writeFile(file, text.replace('"mounts": {', `"mounts": { "env://mine": { "provider": "env" },`))
    expectSaid(await runHere(['ls'], options()))
  })

  test('is needed before hikidashi add puts a configuration into a host, unless the user names it with --config', async () => {
    const host = {
      ...options(),
      env: { ...options().env, HOME: join(home, 'user'), XDG_CONFIG_HOME: join(home, 'user') },
    }
    await mkdir(join(home, 'user'), { recursive: true })
    const refused = await run(['add', 'claude-code', '--scope', 'project'], host)
    expect(refused.code).toBe(1)
    expectSaid({ err: refused.err })
    expect(await readdir(repository)).not.toContain('.mcp.json')
    const added = await run(['add', 'claude-code', '--scope', 'project', '--config', 'hikidashi.json'], host)
    expect(added.code).toBe(0)
    expect((await runHere(['trust', '--list'], host)).out).toMatch(/^trusted /m)
    await expectNothingDone()
  })
})

describe('settings that protect data:', () => {
  const files = { 'file:///repository': { provider: 'files', root: '.' } }
  const write = (settings: object) =>
    writeFile(join(repository, 'hikidashi.json'), JSON.stringify({ mounts: files, ...settings }))

  test.each([
    [{ audit: { file: '../private/log' } }, 'audit', ['--stdio']],
    [{ http: { listen: 0, auth: { tokens: '../private/token' } } }, 'http', []],
    [{ http: { listen: '0.0.0.0:0', allowedHosts: ['evil.example'] } }, 'http', ['--insecure']],
    [{ http: { allowedOrigins: ['https://evil.example'] } }, 'http', ['--http', '0']],
  ])('serve refuses to run without %j, which an untrusted configuration cannot set', async (settings, name, words) => {
    await write(settings)
    const result = await run(['serve', ...words], options())
    expect(result.code).toBe(1)
    expect(result.err).toContain(`"${name}" is left out`)
    expect(result.err).toContain('hikidashi trust')
    expect(await readdir(join(home, 'private'))).toEqual(['secret.md', 'token'])
  })

  test('hikidashi token writes to no file outside the folder of an untrusted configuration', async () => {
    await write({ http: { auth: { tokens: '../private/tokens.json' } } })
    const refused = await run(['token', 'add', '--name', 'x'], options())
    expect(refused.code).toBe(1)
    expect(refused.err).toContain('hikidashi trust')
    expect(await readdir(join(home, 'private'))).toEqual(['secret.md', 'token'])
  })

  test('a secret in a file outside the folder is left out, with a message', async () => {
    await write({ cursorSecret: { file: '../private/token' } })
    const result = await run(['ls'], options())
    expect(result.err).toContain('cursorSecret (reads ../private/token)')
    expect(result.code).toBe(0)
  })
})
