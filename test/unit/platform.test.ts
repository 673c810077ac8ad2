import { execFileSync } from 'node:child_process'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { speaksNoTls } from '../../src/core/http-url.ts'
import { failure, notLoaded } from '../../src/store/rules.ts'
import { loadFaultOf } from '../../src/store/sqlite/codes.ts'
import { bundled } from '../support/bundled.ts'

// What differs between systems, and between versions of Node.

describe('a native part that cannot be loaded', () => {
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
  ])('says why, and what to do: %s', (message, expected) => {
    const why = loadFaultOf(dlopen(message)) ?? ''
    expect(why).toMatch(expected)
    expect(notLoaded(why).message).toMatch(/^SQLite cannot be loaded: /)
    expect(why).not.toContain('/x')
  })

  test('for which there is no build says for which platform', () => {
    expect(loadFaultOf(new Error('There is no build of SQLite for aix on ppc64.'))).toMatch(/no build of it for/)
  })

  test('is told from other errors', () => {
    expect(loadFaultOf(new Error('disk I/O error'))).toBeUndefined()
    expect(loadFaultOf('text')).toBeUndefined()
  })
})

test('a store on a read-only file system is to be kept elsewhere, and one on a full disk needs space', () => {
  expect(failure('read-only', 'EROFS').message).toMatch(/mounted read-only: keep the store elsewhere.*\(EROFS\)$/)
  expect(failure('read-only', 'EACCES').message).toMatch(
    /Let this user write to its folder.*Or keep the store elsewhere/,
  )
  expect(failure('full', 'ENOSPC').message).toMatch(/disk of the store is full/)
})

test.each(['EPROTO', 'ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG', 'ERR_SSL_HTTP_REQUEST'])(
  '%s says that a server does not speak TLS',
  (code) => expect(speaksNoTls(code)).toBe(true),
)

test('an untrusted certificate is no server without TLS', () => {
  expect(speaksNoTls('DEPTH_ZERO_SELF_SIGNED_CERT')).toBe(false)
  expect(speaksNoTls('ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION')).toBe(false)
})

describe.runIf(process.platform === 'linux')('an empty HOME', () => {
  const list = (cwd: string, env: Readonly<Record<string, string>>) =>
    execFileSync(process.execPath, [bundled('cli/main'), 'ls'], {
      cwd,
      env: { PATH: process.env.PATH ?? '', ...env },
      encoding: 'utf8',
    })

  test.each(['', 'relative'])('or one that is not absolute (%j) makes no folder too much to serve', (home) => {
    const cwd = join(import.meta.dirname, '../data/start')
    expect(list(cwd, { HOME: home, XDG_STATE_HOME: tmpdir() })).toContain('file://')
  })

  test('leaves the home folder too much to serve', () => {
    const cwd = userInfo().homedir
    expect(() => list(cwd, { HOME: '', XDG_STATE_HOME: tmpdir() })).toThrow(/too much to serve/)
  })
})
