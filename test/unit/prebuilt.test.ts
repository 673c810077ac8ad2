import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { prebuiltFileName } from '../../src/store/sqlite/prebuilt.ts'

const vendor = join(import.meta.dirname, '../../dist/vendor')

test.each([
  ['darwin', 'arm64', false, 'sqlite-darwin-arm64.node'],
  ['darwin', 'x64', false, 'sqlite-darwin-x64.node'],
  ['win32', 'arm64', false, 'sqlite-win32-arm64.node'],
  ['win32', 'x64', false, 'sqlite-win32-x64.node'],
  ['linux', 'arm64', false, 'sqlite-linux-arm64.node'],
  ['linux', 'x64', false, 'sqlite-linux-x64.node'],
  ['linux', 'arm64', true, 'sqlite-linux-arm64-musl.node'],
  ['linux', 'x64', true, 'sqlite-linux-x64-musl.node'],
])('on %s %s (musl: %s) SQLite is loaded from %s, and the build has that file', (platform, arch, musl, name) => {
  expect(prebuiltFileName(platform, arch, () => musl)).toBe(name)
  expect(readdirSync(vendor)).toContain(name)
})

test('to choose the SQLite file, the C library is examined on Linux only', () => {
  const ask = () => {
    throw new Error('asked')
  }
  expect(prebuiltFileName('win32', 'x64', ask)).toBe('sqlite-win32-x64.node')
  expect(() => prebuiltFileName('linux', 'x64', ask)).toThrow('asked')
})
