import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { basename, join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { joinCommand, ownCommand } from '../../src/cli/operations/command-line.ts'
import { warnOfMachineLimits } from '../../src/cli/operations/serving.ts'
import { isNotTlsCode } from '../../src/core/http-url.ts'
import { makeFolder } from '../../src/core/kit/make-folder.ts'
import { fileAddress, parseUri } from '../../src/core/uri.ts'
import { findProgram } from '../../src/providers/program.ts'
import { startReaderProcess } from '../../src/providers/sqlite/process.ts'
import { openStore } from '../../src/store/index.ts'
import { notLoadedError, storeError } from '../../src/store/rules.ts'
import { loadFaultOf } from '../../src/store/sqlite/codes.ts'
import { bundled } from '../support/bundled.ts'

// What differs between systems, and between versions of Node.

describe('a native module that cannot be loaded', () => {
  const dlopen = (message: string) => Object.assign(new Error(message), { code: 'ERR_DLOPEN_FAILED' })

  test.each([
    ["/lib64/libc.so.6: version `GLIBC_2.29' not found (required by /x/y.node)", /GLIBC 2\.29.*Use a newer system/],
    ['/x/y.node: failed to map segment from shared object', /mounted without noexec/],
    ['/x/y.node: failed to map segment from shared object: Operation not permitted', /mounted without noexec/],
    [
      'libstdc++.so.6: cannot open shared object file: No such file or directory',
      /library libstdc\+\+\.so\.6 is missing/,
    ],
    ['Error loading shared library libstdc++.so.6: No such file or directory', /library libstdc\+\+\.so\.6 is missing/],
    ['/x/secret/y.node: invalid ELF header', /refuses it \(invalid ELF header\)/],
    ['/x/secret/y.node', /the system refuses it\.$/],
  ])('gives an error with the reason and advice: %s', (message, expected) => {
    const why = loadFaultOf(dlopen(message)) ?? ''
    expect(why).toMatch(expected)
    expect(notLoadedError(why).message).toMatch(/^SQLite cannot be loaded: /)
    expect(why).not.toContain('/x')
  })

  test('without a build for this platform gives an error with the platform', () => {
    expect(loadFaultOf(new Error('There is no build of SQLite for aix on ppc64.'))).toMatch(/no build of it for/)
  })

  test('is distinguished from other errors', () => {
    expect(loadFaultOf(new Error('disk I/O error'))).toBeUndefined()
    expect(loadFaultOf('text')).toBeUndefined()
  })
})

test('a store on a read-only file system, or on a full disk, gives an error with advice', () => {
  expect(storeError('read-only', 'EROFS').message).toMatch(
    /mounted read-only\. To change that, keep the store elsewhere.*\(EROFS\)$/,
  )
  expect(storeError('read-only', 'EACCES').message).toMatch(
    /Let this user write to its folder.*or keep the store elsewhere/,
  )
  expect(storeError('full', 'ENOSPC').message).toMatch(/disk of the store is full/)
})

test.each(['EPROTO', 'ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG', 'ERR_SSL_HTTP_REQUEST'])(
  'the error %s means that a server does not speak TLS',
  (code) => expect(isNotTlsCode(code)).toBe(true),
)

test('an untrusted certificate does not mean a server without TLS', () => {
  expect(isNotTlsCode('DEPTH_ZERO_SELF_SIGNED_CERT')).toBe(false)
  expect(isNotTlsCode('ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION')).toBe(false)
})

describe('on Windows,', () => {
  const partsOf = (uri: string) => {
    const { authority, segments, directory } = parseUri(uri, 'win32')
    return [authority, segments.join('/'), directory]
  }

  test.each([
    ['file:///C:/docs/a.md', 'C:/docs/a.md'],
    ['file:///c:/docs/a.md', 'C:/docs/a.md'],
    ['file:///c%3A/docs/a.md', 'C:/docs/a.md'],
    ['file:///C%3a/docs/a.md', 'C:/docs/a.md'],
    ['file:/c:/docs/a.md', 'C:/docs/a.md'],
    ['file://localhost/c:/docs/a.md', 'C:/docs/a.md'],
  ])('the URI %s names a file on a drive, in either case of the drive letter', (uri, path) =>
    expect(partsOf(uri)).toEqual(['', path, false]),
  )

  test('no segment but the drive letter at the start of a file URI changes its case, and none does on Linux', () => {
    expect(parseUri('file:///c:/a', 'linux').segments).toEqual(['c:', 'a'])
    expect(partsOf('file:///C:/d:/a')).toEqual(['', 'C:/d:/a', false])
    expect(partsOf('git://c:/d:/a')[0]).toBe('c:')
  })

  test('a file URI may name a server, which other systems refuse', () => {
    expect(partsOf('file://SERVER/share/a%20b/')).toEqual(['server', 'share/a b', true])
    expect(() => parseUri('file://server/share/a', 'linux')).toThrow('no host other than localhost')
    expect(() => parseUri('file://me@server/share', 'win32')).toThrow('userinfo')
    expect(() => parseUri('file://server/share/../x', 'win32')).toThrow()
  })

  test.each([
    ['C:\\docs\\a b', 'file:///C:/docs/a%20b'],
    ['c:\\docs', 'file:///C:/docs'],
    ['c:/docs/', 'file:///C:/docs'],
    ['C:\\', 'file:///C:'],
    ['\\\\Server\\share\\docs', 'file://server/share/docs'],
    ['//server/share/docs', 'file://server/share/docs'],
    ['\\\\?\\C:\\docs', 'file:///C:/docs'],
    ['\\\\?\\UNC\\server\\share\\docs', 'file://server/share/docs'],
    ['\\\\wsl.localhost\\Debian\\home', 'file://wsl.localhost/Debian/home'],
  ])('the folder %s has the address %s, which is canonical', (path, address) => {
    expect(fileAddress(path, 'win32')).toBe(address)
    const { authority, segments } = parseUri(address, 'win32')
    expect(`file://${authority}/${segments.map(encodeURIComponent).join('/').replace('%3A', ':')}`).toBe(address)
  })

  test('a program is found with an ending of PATHEXT, in order, and a file without such an ending is not', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'hikidashi-programs-'))
    for (const name of ['npx', 'npx.cmd', 'tool.bat', 'tool.exe', 'other.ps1'])
      writeFileSync(join(folder, name), '', { mode: 0o755 })
    const find = async (name: string, env: object = {}) => {
      const path = await findProgram(name, { PATH: `relative;${folder}`, ...env }, 'win32')
      return path && basename(path)
    }
    expect(await find('npx')).toBe('npx.cmd')
    expect(await find('tool')).toBe('tool.exe')
    expect(await find('tool', { PATHEXT: '.BAT;.EXE' })).toBe('tool.bat')
    expect(await find('tool.exe')).toBe('tool.exe')
    expect(await find('other')).toBeUndefined()
    expect(await find('other', { PATHEXT: '.PS1' })).toBe('other.ps1')
    expect(await find('other.ps1')).toBeUndefined()
    expect(await findProgram('npx', { PATH: folder }, 'linux')).toBe(join(folder, 'npx'))
    rmSync(folder, { recursive: true })
  })

  test.each([
    [['hikidashi', 'ls', 'C:\\docs\\a.md'], 'hikidashi ls C:\\docs\\a.md'],
    [['serve', 'C:\\my docs\\'], 'serve "C:\\my docs\\\\"'],
    [['serve', "it's", 'a&b', '%PATH%'], 'serve "it\'s" "a&b" "%PATH%"'],
    [['{"a":"b"}', ''], '"{\\"a\\":\\"b\\"}" ""'],
    [['a\\"b'], '"a\\\\\\"b"'],
  ])('the words %j are printed as Windows programs parse them', (words, line) =>
    expect(joinCommand(words, 'win32')).toBe(line),
  )
})

describe.runIf(process.platform === 'linux')('an empty or relative HOME', () => {
  const list = (cwd: string, env: Readonly<Record<string, string>>) =>
    execFileSync(process.execPath, [bundled('cli/main'), 'ls'], {
      cwd,
      env: { PATH: process.env.PATH ?? '', ...env },
      encoding: 'utf8',
    })

  test.each(['', 'relative'])('does not keep a folder from being listed (HOME=%j)', (home) => {
    const cwd = join(import.meta.dirname, '../data/start')
    expect(list(cwd, { HOME: home, XDG_STATE_HOME: tmpdir() })).toContain('file://')
  })

  test('does not let the home folder of the user be served', () => {
    const cwd = userInfo().homedir
    expect(() => list(cwd, { HOME: '', XDG_STATE_HOME: tmpdir() })).toThrow(/too much to serve/)
  })
})

test('a folder is made with its parents; making it again is no error, but a file in its place is an error', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hikidashi-made-'))
  try {
    const made = join(folder, 'a/b/資料')
    makeFolder(made, 0o700)
    makeFolder(made)
    expect(statSync(made).mode & 0o777).toBe(process.platform === 'win32' ? 0o777 : 0o700)
    writeFileSync(join(folder, 'file'), '')
    for (const name of ['file', 'file/below'])
      expect(() => makeFolder(join(folder, name))).toThrow(/EEXIST|ENOTDIR|ENOENT/)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

describe.runIf(process.platform === 'linux')('a state folder that cannot be written', () => {
  const cwd = join(import.meta.dirname, '../data/start')
  const run = (args: readonly string[], env: Readonly<Record<string, string>>, user?: number) =>
    spawnSync(process.execPath, [bundled('cli/main'), ...args], {
      cwd,
      env: { PATH: process.env.PATH ?? '', ...env },
      encoding: 'utf8',
      timeout: 60_000,
      ...(user === undefined ? {} : { uid: user, gid: user }),
    })

  test.each([
    ['below /proc', { XDG_STATE_HOME: '/proc/x' }],
    ['below a file', { XDG_STATE_HOME: '', HOME: '/dev/null' }],
  ])('(%s) does not stop a search: its index is in memory, and standard error says so', (_, env) => {
    const { status, stdout, stderr } = run(['search', 'kit'], env)
    expect({ status, stderr }).toMatchObject({
      status: 0,
      stderr: expect.stringMatching(/index is in memory and is lost when this process ends/),
    })
    expect(stdout).toContain('.txt?lines=')
  })

  test.runIf(process.getuid?.() === 0)('of a user without a name or a home does not stop a search', ({ skip }) => {
    const user = 64_242
    skip(run(['--version'], {}, user).status !== 0, 'another user may not run this Node, or read these files')
    const { status, stderr } = run(['search', 'the'], {}, user)
    expect({ status, stderr }).toMatchObject({ status: 0, stderr: expect.stringContaining('EACCES') })
  })

  test('is reported by doctor in a note, and doctor finishes its other checks', () => {
    const { status, stdout } = run(['doctor'], { XDG_STATE_HOME: '/proc/x' })
    expect(stdout).toMatch(/^note +store +.*\/proc cannot be written \(ENOENT\)\. The index is kept in memory\.$/m)
    expect({ status, isComplete: /^ok +mount +search:/m.test(stdout) }).toEqual({ status: 0, isComplete: true })
  })

  test('gives the error of the system if the configuration names the file of the store', async () => {
    const warnings: string[] = []
    const log = (_: string, message: string) => void warnings.push(message)
    const store = await openStore({ sqlite: { file: '/proc/x/store.sqlite' }, log })
    await expect(store.collection('c').get('a')).rejects.toMatchObject({ kind: 'unavailable' })
    await store.close()
    expect(warnings).toEqual([expect.stringContaining('(ENOENT)')])
  })

  test('gives a store in memory that keeps rows, and makes no folder', async () => {
    const store = await openStore({ sqlite: { file: '/proc/x/store.sqlite', orMemory: true } })
    const rows = store.collection('c')
    await rows.put({ key: 'a', value: Buffer.from('one') })
    expect(Buffer.from((await rows.get('a'))?.value ?? '').toString()).toBe('one')
    await store.close()
    expect(existsSync('/proc/x')).toBe(false)
  })
})

describe.runIf(process.platform === 'linux')('without git,', () => {
  test('a folder with a repository is served without its history; serve and doctor say so in one line', () => {
    const cwd = mkdtempSync(join(tmpdir(), 'hikidashi-no-git-'))
    try {
      execFileSync('git', ['init', '-q', cwd])
      writeFileSync(join(cwd, 'a.md'), 'a walrus')
      const env = { PATH: '/nowhere', HOME: '/nowhere', XDG_STATE_HOME: join(cwd, 'state') }
      const run = (...args: readonly string[]) =>
        spawnSync(process.execPath, [bundled('cli/main'), ...args], { cwd, env, encoding: 'utf8', timeout: 60_000 })
      const told = /^(?=.*git is not on the PATH).*history.*$/gm
      const served = run('serve', '.')
      expect(served.stderr.match(told)).toEqual([expect.stringContaining(cwd)])
      expect(served.stderr).not.toContain('git://')
      const { status, stdout } = run('doctor')
      expect(status).toBe(0)
      expect(stdout.match(told)).toEqual([expect.stringMatching(/^note +programs /)])
      expect(run('read', 'a.md')).toMatchObject({ status: 0, stdout: 'a walrus', stderr: '' })
    } finally {
      rmSync(cwd, { recursive: true })
    }
  })
})

test('in Deno, a database of SQLite is refused, the server says so at its start, and hosts start hikidashi with `deno run`', async () => {
  Object.defineProperty(process.versions, 'deno', { value: '2.9.6', configurable: true })
  try {
    await expect(startReaderProcess()).rejects.toMatchObject({
      message: expect.stringContaining('cannot be read with Deno'),
    })
    const log = vi.fn()
    warnOfMachineLimits({ withoutGit: [] }, log)
    expect(log.mock.calls).toEqual([['warn', expect.stringMatching(/^this is Deno 2\.9\.6, not Node: .*SQLite/)]])
    const words = ['run', '--allow-all', '--no-config', '/a/main.js', 'serve']
    expect(ownCommand(['serve'], '/a/main.js', 'linux', () => false).slice(1)).toEqual(words)
  } finally {
    Reflect.deleteProperty(process.versions, 'deno')
  }
})
