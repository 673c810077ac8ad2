import type * as fs from 'node:fs'
import { createRequire, syncBuiltinESMExports } from 'node:module'
import { afterEach, expect, test } from 'vitest'
import type { FilesOptions } from '../../src/providers/files/index.ts'
import { useFiles } from '../support/files.ts'
import { contextOf, listPaths, textAt } from '../support/folder.ts'

const { folder, open } = useFiles()
const system = createRequire(import.meta.url)('node:fs') as typeof fs
const { lstatSync, openSync, promises } = system
const { lstat } = promises

/** Makes the calls on a name fail. */
function failOn(name: string, code: string): void {
  const error = () => Object.assign(new Error(`${code}: simulated`), { code })
  const isIt = (at: unknown) => String(at).endsWith(`/${name}`)
  const failing = (call: (...args: never[]) => unknown, isAsync = false) =>
    ((...args: never[]) => {
      if (!isIt(args[0])) return call(...args)
      if (isAsync) return Promise.reject(error())
      throw error()
    }) as never
  Object.assign(system, { lstatSync: failing(lstatSync as never), openSync: failing(openSync as never) })
  Object.assign(promises, { lstat: failing(lstat as never, true) })
  syncBuiltinESMExports()
}

afterEach(() => {
  Object.assign(system, { lstatSync, openSync })
  Object.assign(promises, { lstat })
  syncBuiltinESMExports()
})

const logged: string[] = []
const log: FilesOptions['log'] = (level, message, fields) =>
  void logged.push(`${level}: ${message} ${JSON.stringify(fields)}`)

test.each([
  ['EIO', false],
  ['UNKNOWN', true],
  ['ENOTCONN', false],
])(
  'a file for which the system reports %s is left out of the listing, with one warning (portable: %s)',
  async (code, portable) => {
    logged.length = 0
    folder.write({ 'd/a.txt': 'a', 'd/bad.txt': 'b', 'd/c.txt': 'c', 'e.txt': 'e' })
    const provider = await open({ log }, portable)
    failOn('bad.txt', code)
    for (let i = 0; i < 2; i++) expect(await listPaths(provider)).toEqual(['d/a.txt', 'd/c.txt', 'e.txt'])
    expect(await listPaths(provider, { prefix: 'd/' })).toEqual(['d/a.txt', 'd/c.txt'])
    expect(logged).toEqual([
      `warn: the file system fails on a name: it is left out {"path":"d/bad.txt","error":"${code}"}`,
    ])
  },
)

test('a folder that gives an error of the system is left out of the listing, with one warning, and what is in it is unavailable', async () => {
  logged.length = 0
  folder.write({ 'bad/a.txt': 'a', 'c.txt': 'c' })
  const provider = await open({ log }, true)
  failOn('bad', 'EIO')
  expect(await listPaths(provider)).toEqual(['c.txt'])
  expect(logged).toHaveLength(1)
  expect(await textAt(provider, 'bad/a.txt')).toBe('!unavailable')
})

test('a listing fails when the process has no file descriptors left, instead of being incomplete', async () => {
  folder.write({ 'a.txt': 'a', 'bad.txt': 'b' })
  const provider = await open({ log }, true)
  failOn('bad.txt', 'EMFILE')
  await expect(listPaths(provider)).rejects.toMatchObject({ kind: 'unavailable' })
})

test('a file that cannot be read hides neither other files nor the titles that come from their headings', async () => {
  logged.length = 0
  folder.write({ 'a.md': '# A', 'bad.md': '# B' })
  const provider = await open({ log, rules: [{ match: '*.md', title: 'heading' }] })
  failOn('bad.md', 'EIO')
  expect(await listPaths(provider)).toContain('a.md')
  await expect(provider.stat?.('a.md', contextOf())).resolves.toMatchObject({ title: 'A' })
})
