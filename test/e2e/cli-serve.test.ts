import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { main, picture, run, start, writeNotes } from '../support/cli.ts'
import { runHere } from '../support/cli-here.ts'

let home = ''
let folder = ''
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'hikidashi-serve-'))
  folder = await writeNotes(home)
})
afterAll(() => rm(home, { recursive: true, force: true }))

const uri = (path: string) => `file://${folder}${path === '' ? '' : `/${path}`}`
const cli = (...args: readonly string[]) => run(args, { cwd: folder })

describe('hikidashi serve', () => {
  test('over stdio writes only the protocol to stdout', async () => {
    const request = { jsonrpc: '2.0', id: 1, method: 'ping' }
    const { code, out, err } = await run(['serve', '.'], { cwd: folder, input: `${JSON.stringify(request)}\n` })
    expect(code).toBe(0)
    expect(
      out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual([{ jsonrpc: '2.0', id: 1, result: {} }])
    expect(err).toMatch(/^\S+Z info {2}serving on stdio mounts=file:.*\n$/)
  })

  test('over stdio writes to stderr what a library prints while a source reads', async () => {
    // Node runs it before the command: a library that tells the console of each file that it is asked for.
    const library = `
      import fs from 'node:fs'
      import { syncBuiltinESMExports } from 'node:module'
      for (const members of [fs, fs.promises])
        for (const name of ['lstat', 'open', 'openSync', 'lstatSync', 'readFile', 'stat']) {
          const own = members[name]
          members[name] = function (...args) {
            if (String(args[0]).endsWith('numbers.txt')) {
              console.log('the library says: %s', name)
              console.table([{ told: 'in a table' }])
            }
            return own.apply(this, args)
          }
        }
      syncBuiltinESMExports()`
    const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(library)}` }
    const read = { jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri: uri('docs/numbers.txt') } }
    const ping = { jsonrpc: '2.0', id: 2, method: 'ping' }
    const input = [read, ping].map((message) => `${JSON.stringify(message)}\n`).join('')
    const { code, out, err } = await run(['serve', '.', '--only', 'files'], { cwd: folder, env, input })
    expect(code).toBe(0)
    const answers = out.trimEnd().split('\n')
    expect(answers.map((line) => JSON.parse(line).id).sort()).toEqual([1, 2])
    expect(err).toContain('the library says: ')
    expect(err).toContain('in a table')
  })

  test('logs in JSON with --log-format json', async () => {
    const { err } = await run(['serve', '.', '--log-format', 'json'], { cwd: folder })
    expect(JSON.parse(err)).toMatchObject({
      level: 'info',
      message: 'serving on stdio',
      mounts: [uri(''), 'search://notes'],
    })
  })

  test('over stdio gives a client the listings, texts and templates of the folder', async () => {
    const command = `${process.execPath} ${main} serve notes --name mine --only files`
    const remote = (...args: readonly string[]) => runHere([...args, '--command', command], { cwd: home })
    expect(await remote('ls')).toMatchObject({ code: 0, out: 'file:///mine\n', err: '' })
    const [first, ...listed] = (await remote('ls', '-r')).out.trim().split('\n')
    expect(first).toBe('hikidashi://overview')
    expect(listed).toHaveLength(4)
    expect((await remote('ls', '-r', 'file:///mine')).out.trim().split('\n')).toEqual(listed)
    expect((await remote('ls', '-r', 'file:///mine/docs/')).out.trim().split('\n')).toHaveLength(3)
    expect((await remote('read', 'file:///mine/README.md')).out).toBe('# Notes\n')
    expect(await remote('read', 'file:///mine/nope')).toMatchObject({ code: 4, out: '' })
    expect((await remote('templates')).out).toContain('file:///mine/{+path}')
  })

  test('over HTTP gives a client the listings and contents of the folder, refuses a port in use, and exits with 0 at the first Ctrl-C', async () => {
    const server = start(['serve', '.', '--http', '0'], { cwd: folder })
    const [, url = ''] = await server.says(/serves 2 mounts at (http:\/\/127\.0\.0\.1:\d+\/mcp)\n/)
    await server.says(/Ctrl-C stops it/)
    const remote = (...args: readonly string[]) => runHere([...args, '--url', url], { cwd: folder })
    expect(await remote('ls')).toMatchObject({ code: 0, out: `${uri('')}\nsearch://notes\n`, err: '' })
    expect((await remote('ls', '-l', 'docs')).out).toContain('292 B')
    expect((await remote('read', 'docs/numbers.txt', '--lines', '5')).out).toMatch(/^5\n/)
    expect(await remote('read', 'nope.txt')).toMatchObject({ code: 4, out: '' })
    expect(await remote('ls', 'README.md')).toMatchObject({ code: 2, out: '' })
    expect(JSON.parse((await remote('read', '--json', 'docs/picture.png')).out).contents[0].blob).toBe(
      picture.toString('base64'),
    )

    const second = await run(['serve', '.', '--http', new URL(url).port], { cwd: folder })
    expect(second).toMatchObject({ code: 1, out: '' })
    expect(second.err).toContain('the port is in use')

    server.child.kill('SIGINT')
    const { code, signal, out, err } = await server.ended
    expect({ code, signal, out }).toEqual({ code: 0, signal: null, out: '' })
    expect(err).toContain(`claude mcp add --transport http hikidashi ${url}`)
    expect(err).toContain('"type":"http"')
    expect(err).toContain(`serve ${folder} --stdio`)
  })

  test('listens on HTTP if the configuration has the key http, except with --stdio', async () => {
    await writeFile(
      join(home, 'http.json'),
      JSON.stringify({ mounts: { 'x://a': { provider: 'files', root: 'notes' } }, http: { listen: 0, path: '/here' } }),
    )
    const server = start(['serve', '--config', 'http.json'], { cwd: home })
    const [, url = ''] = await server.says(/at (http:\S+\/here)\n/)
    expect((await runHere(['ls', '--url', url], { cwd: home })).out).toBe('x://a\n')
    server.child.kill('SIGTERM')
    expect(await server.ended).toMatchObject({ code: 0, signal: null })
    expect((await run(['serve', '--config', 'http.json', '--stdio'], { cwd: home })).err).toContain('serving on stdio')
  })

  test('over stdio exits with 0 at SIGTERM, though the input is still open', async () => {
    const server = start(['serve', '.'], { cwd: folder })
    await server.says(/serving on stdio/)
    server.child.kill('SIGTERM')
    expect(await server.ended).toMatchObject({ code: 0, signal: null, out: '' })
  })

  test('exits at once at a second signal', async () => {
    const server = start(['serve', '.', '--http', '0'], { cwd: folder })
    const [, url = ''] = await server.says(/at (http:\S+)\n/)
    // A request that never ends holds up the end for as long as requests may take.
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.write('POST /mcp HTTP/1.1\r\n'))
    socket.on('error', () => {})
    await once(socket, 'connect')
    await new Promise((resolve) => setTimeout(resolve, 100))
    server.child.kill('SIGTERM')
    await server.says(/stopping signal=SIGTERM/)
    server.child.kill('SIGTERM')
    expect(await server.ended).toMatchObject({ code: 143, signal: null })
    socket.destroy()
  })

  test('over stdio exits without an error message when its answers are no longer read', async () => {
    const server = start(['serve', '.', '--log-level', 'warn'], { cwd: folder })
    server.child.stdout.destroy()
    server.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })}\n`)
    expect(await server.ended).toMatchObject({ code: 0, signal: null, err: '' })
  })

  test('without authentication listens beyond the loopback interface only with --allow-host and --insecure', async () => {
    const refused = await cli('serve', '.', '--http', '0.0.0.0:0')
    expect(refused).toMatchObject({ code: 1, out: '' })
    expect(refused.err).toContain('--allow-host')
    const named = ['serve', '.', '--http', '0.0.0.0:0', '--allow-host', 'context.example.org']
    expect(await cli(...named)).toMatchObject({ code: 1, out: '', err: expect.stringContaining('--insecure') })
    const server = start([...named, '--insecure'], { cwd: folder })
    await server.says(/serves 2 mounts/)
    // A name without a port is that of a proxy with TLS.
    await server.says(/hikidashi add HOST --url https:\/\/context\.example\.org\/mcp\n/)
    server.child.kill('SIGTERM')
    expect(await server.ended).toMatchObject({ code: 0 })
    const direct = start([...named.slice(0, -1), 'context.example.org:8787', '--insecure'], { cwd: folder })
    await direct.says(/hikidashi add HOST --url http:\/\/context\.example\.org:8787\/mcp\n/)
    direct.child.kill('SIGTERM')
    await direct.ended
  })

  test.each([
    [['serve', 'nope'], 1, 'There is no folder'],
    [['serve', 'README.md'], 1, 'is not a folder'],
    [['serve', 'docs', '.'], 1, 'overlap'],
    [['serve', '--config', 'nope.json'], 1, 'The file does not exist'],
    [
      ['serve', '.', '--http', '0', '--tokens', 'docs/tokens.json'],
      1,
      'docs/tokens.json lies in the folder that the mount "file:',
    ],
  ])('refuses the arguments %j: it exits with %i and says what is wrong', async (args, code, message) => {
    const result = await cli(...args)
    expect(result).toMatchObject({ code, out: '' })
    expect(result.err).toContain(message)
  })

  test('serves the rest of a configuration while a folder is missing, and the folder once it exists; with --strict it does not start', async () => {
    const mounts = {
      'file:///here': { provider: 'files', root: folder },
      'file:///later': { provider: 'files', root: 'later' },
      'file:///never': { provider: 'files', root: 'never' },
    }
    const file = join(home, 'absent.json')
    await writeFile(file, JSON.stringify({ mounts }))
    const absent =
      /^Unavailable for now: .*absent\.json:1:\d+: mounts\["file:\/\/\/(\w+)"\]\.root: There is no folder .*$/gm
    const named = (text: string) => [...text.matchAll(absent)].map(([, name]) => name)

    const listed = await runHere(['ls', '--config', file], { cwd: home })
    expect(listed).toMatchObject({ code: 0, out: 'file:///here\nfile:///later\nfile:///never\n' })
    expect(named(listed.err)).toEqual(['later', 'never'])

    const server = start(['serve', '--config', file, '--http', '0'], { cwd: home })
    const [, url = ''] = await server.says(/serves 3 mounts at (\S+)/)
    const remote = (...args: readonly string[]) => runHere([...args, '--url', url], { cwd: home })
    expect((await remote('read', 'file:///here/README.md')).out).toBe('# Notes\n')
    expect(await remote('read', 'file:///later/a.txt')).toMatchObject({ code: 1, out: '' })
    await mkdir(join(home, 'later'))
    await writeFile(join(home, 'later', 'a.txt'), 'here now\n')
    // It is tried again after a pause that grows from one second.
    for (;;) {
      const { out } = await remote('read', 'file:///later/a.txt')
      if (out === '') {
        await sleep(50)
        continue
      }
      expect(out).toBe('here now\n')
      break
    }
    server.child.kill('SIGTERM')
    expect(await server.ended).toMatchObject({ code: 0 })

    const strict = await run(['serve', '--config', file, '--http', '0', '--strict'], { cwd: home })
    expect(strict).toMatchObject({ code: 1, err: expect.stringMatching(/1 problem:\n.*never.*There is no folder/) })
    const checked = await runHere(['check', '--config', file], { cwd: home })
    expect(checked).toMatchObject({ code: 1, err: expect.stringContaining('1 of 3 mounts failed the check.') })
    expect(checked.out).toMatch(/There is no folder .*never.*\nok {5}file:\/\/\/here .*\nok {5}file:\/\/\/later/)
    const examined = await runHere(['doctor', '--config', file], { cwd: home })
    expect(examined.out.match(/FAILED/g)).toHaveLength(1)
  })

  test('serves the other folders of its arguments while one is missing, and this one once it exists; with --strict it does not start', async () => {
    const serve = ['serve', folder, 'coming', '--only', 'files', '--http', '0']
    const strict = await run([...serve, '--strict'], { cwd: home })
    expect(strict).toMatchObject({ code: 1, err: expect.stringMatching(/There is no folder .*coming/) })
    const server = start(serve, { cwd: home })
    const [said, url = ''] = await server.says(/[\s\S]*serves 2 mounts at (\S+)/)
    expect(said).toMatch(/Unavailable for now: There is no folder .*coming/)
    const read = async (uri: string) => (await runHere(['read', uri, '--url', url], { cwd: home })).out
    expect(await read(`file://${folder}/README.md`)).toBe('# Notes\n')
    await mkdir(join(home, 'coming'))
    await writeFile(join(home, 'coming', 'a.txt'), 'here now\n')
    await expect.poll(() => read(`file://${home}/coming/a.txt`), { timeout: 20_000 }).toBe('here now\n')
    server.child.kill('SIGTERM')
    expect(await server.ended).toMatchObject({ code: 0 })
    const none = await run(['serve', 'absent', 'absent-too', '--http', '0'], { cwd: home })
    expect(none).toMatchObject({ code: 1, err: expect.stringMatching(/There is no folder .*absent/) })
  })

  test('without arguments refuses to serve the home folder or the root of the file system', async () => {
    for (const cwd of ['/', home]) {
      const { code, err } = await run(['serve'], { cwd, env: { HOME: home } })
      expect(code).toBe(2)
      expect(err).toContain('Name a folder')
    }
  })
})

describe('a command with much output', () => {
  test('exits with 0 and no error message when its pipe is closed early', async () => {
    const execute = promisify(execFile)
    const many = join(home, 'many')
    await mkdir(many)
    await Promise.all(Array.from({ length: 3000 }, (_, i) => writeFile(join(many, `a-rather-long-name-${i}`), '')))
    const script = `set -o pipefail; "$0" "$1" ls -r --json | head -1; echo "code $?"; "$0" "$1" doctor | head -1; echo "code $?"`
    const { stdout, stderr } = await execute('bash', ['-c', script, process.execPath, main], { cwd: many })
    expect(stdout).toMatch(/^\[\ncode 0\nok {6}node .*\ncode 0\n$/)
    expect(stderr).toBe('')
  })
})
