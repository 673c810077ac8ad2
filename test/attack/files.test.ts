import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as net from 'node:net'
import { expect, test } from 'vitest'
import { comparePaths } from '../../src/core/path.ts'
import type { Provider } from '../../src/core/provider.ts'
import { useFiles } from '../support/files.ts'
import { contextOf, listPaths, readOne, textAt } from '../support/folder.ts'

const canary = 'CANARY-51c3aa'

const { folder, open } = useFiles(canary)

/** Checks that paths are neither listed, nor described, nor read, and that each is so in the same way. */
async function expectAbsent(provider: Provider, paths: readonly string[]) {
  const listed = await listPaths(provider)
  const kinds = new Set<string>()
  for (const at of paths) {
    expect(listed, at).not.toContain(at)
    expect(await listPaths(provider, { prefix: `${at}/` }), at).toEqual([])
    for (const call of [() => provider.stat?.(at, contextOf()), () => readOne(provider, at)])
      kinds.add(
        await Promise.resolve(call()).then(
          (answer) => `${at}: ${JSON.stringify(answer)}`,
          (error: { kind: string }) => error.kind,
        ),
      )
  }
  expect([...kinds]).toEqual(['not-found'])
}

test('symbolic links that lead out of the root are neither listed nor read, whether symlinks is deny or beneath (PT17, PT18, PT19)', async () => {
  folder.write({ 'in.txt': 'in', 'dir/in.txt': 'in' })
  const links = {
    absolute: `${folder.outside}/f`,
    relative: '../outside/f',
    'dir/up': '../../outside/f',
    directory: folder.outside,
    environ: '/proc/self/environ',
    root: '/proc/self/root',
    passwd: '/proc/self/root/etc/passwd',
    stdin: '/dev/fd/0',
    zero: '/dev/zero',
    hosts: '/etc/hosts',
    sibling: '../root-evil',
  }
  fs.mkdirSync(`${folder.root}-evil`)
  for (const [name, target] of Object.entries(links)) fs.symlinkSync(target, folder.at(name))
  for (const symlinks of ['deny', 'beneath'] as const) {
    const provider = await open({ symlinks })
    expect(await listPaths(provider)).toEqual(['dir/in.txt', 'in.txt'])
    await expectAbsent(provider, [...Object.keys(links), 'directory/f', 'root/etc/passwd', 'root/etc', 'sibling/f'])
  }
})

test('a symbolic link within the root gives its target, and is absent if links are denied (PT21)', async () => {
  folder.write({ 'a/f': 'inside' })
  fs.symlinkSync('a', folder.at('to-a'))
  fs.symlinkSync('a/f', folder.at('to-f'))
  await expectAbsent(await open({ symlinks: 'deny' }), ['to-a', 'to-a/f', 'to-f'])
  const beneath = await open()
  expect(await listPaths(beneath)).toEqual(['a/f', 'to-a/f', 'to-f'])
  expect(await textAt(beneath, 'to-a/f')).toBe('inside')
})

test('64 reads of FIFOs at once give not-found, and open no FIFO (PT27)', async () => {
  const names = Array.from({ length: 64 }, (_, i) => `fifo${i}`)
  execFileSync('mkfifo', names.map(folder.at))
  folder.write({ 'f.txt': 'text' })
  const provider = await open()
  const { O_NONBLOCK, O_WRONLY } = fs.constants
  // A FIFO that somebody holds open for reading can be opened for writing.
  const readers = () =>
    names.filter((name) => {
      try {
        fs.closeSync(fs.openSync(folder.at(name), O_WRONLY | O_NONBLOCK))
        return true
      } catch {
        return false
      }
    })
  const watch = setInterval(() => expect(readers()).toEqual([]), 1)
  const answers = await Promise.all(names.map((name) => textAt(provider, name)))
  expect(await textAt(provider, 'f.txt')).toBe('text')
  clearInterval(watch)
  expect(new Set(answers)).toEqual(new Set(['!not-found']))
  expect(await listPaths(provider)).toEqual(['f.txt'])
})

test('a socket in a directory is neither listed nor read (PT28)', async () => {
  const server = net.createServer().listen(folder.at('socket'))
  await new Promise((resolve) => server.once('listening', resolve))
  await expectAbsent(await open(), ['socket'])
  server.close()
})

test('a directory cannot be read as a file, nor a file as a directory (PT33)', async () => {
  folder.write({ 'a/f': 'x' })
  const provider = await open()
  for (const at of ['a', 'a/', 'a/f/', 'a/f/x', 'a/f/../f', ''])
    expect(await textAt(provider, at), at).toBe('!not-found')
  for (const at of ['a', 'a/f/', 'a/f/x'])
    await expect(provider.stat?.(at, contextOf())).rejects.toMatchObject({ kind: 'not-found' })
  expect(await listPaths(provider, { prefix: 'a/f/' })).toEqual([])
})

test('every valid name is listed and read, and no other name is listed (PT34)', async () => {
  const names = [
    '-rf',
    '--',
    ' ',
    ' lead',
    'trail ',
    '*',
    '?',
    'a\\b',
    '\u202egpj.exe',
    '\u200b',
    '🗄️',
    'x'.repeat(255),
    'é',
    'e\u0301',
    '%41',
    '"',
    "'",
    '$(id)',
    '`id`',
    '~root',
    '...',
    'con',
    'C:',
    '\ufffd',
    '\u{10ffff}',
    'あ'.repeat(85),
  ]
  folder.write(Object.fromEntries(names.map((name, i) => [name, `content ${i}`])))
  const unspeakable = ['a\nb', 'a\tb', 'a\u001b[31mb', 'a\rb', '\u0001', 'a\u007fb', 'a\u0085b', '\u2028', '\u2029']
  for (const name of unspeakable) folder.write({ [name]: canary })
  const root = Buffer.from(`${folder.root}/`)
  for (const hex of ['ff', '61fe62', 'c0ae', 'eda080', 'f4908080'])
    fs.writeFileSync(Buffer.concat([root, Buffer.from(hex, 'hex')]), canary)
  const provider = await open()
  expect(await listPaths(provider)).toEqual([...names].sort(comparePaths))
  for (const [i, name] of names.entries()) expect(await textAt(provider, name), name).toBe(`content ${i}`)
  await expectAbsent(provider, [...unspeakable, '\ud800', 'a\ufffdb', '\ufffd\ufffd', '\ufffd\ufffd\ufffd'])
})

const hidden = [
  '.git/config', '.env', '.env.local', '.env.production', 'id_rsa', 'a/server.pem', 'a/server.key', '.env~', '.#x', 'x.swp', 'a.txt~',
  'node_modules/.cache/x', 'node_modules/m/index.js', '.ssh/id_ed25519', '.aws/credentials', '.netrc', '.npmrc', 'a/b/.git/HEAD',
] // biome-ignore format: a list

test('an excluded name is excluded with capital letters too (PT36)', async () => {
  const upper = hidden.flatMap((at) => [at.toUpperCase(), at.replace(/[a-z]/, (letter) => letter.toUpperCase())])
  for (const at of upper)
    try {
      folder.write({ [at]: canary })
    } catch {
      // The same name twice, as a file and as a directory.
    }
  folder.write({ 'fine.txt': '', 'private/x': '', 'Private/y': '' })
  const provider = await open({ exclude: ['PRIVATE'] })
  expect(await listPaths(provider)).toEqual(['fine.txt'])
  await expectAbsent(provider, [...upper, '.ENV', '.Git/config', 'private/x', 'Private/y'])
})

test('hidden files of tools, keys, dependencies and backups are in no answer (PT37)', async () => {
  folder.write(Object.fromEntries(hidden.map((at) => [at, canary])))
  folder.write({ '.github/x.yml': '', '.env.example': '', 'a/f': '' })
  const provider = await open()
  expect(await listPaths(provider)).toEqual(['.env.example', '.github/x.yml', 'a/f'])
  await expectAbsent(provider, hidden)
  for (const at of ['.git/', 'node_modules/', '.ssh/', 'a/b/.git/'])
    await expect(provider.stat?.(at, contextOf())).rejects.toMatchObject({ kind: 'not-found' })
})

test('no spelling of an excluded path is read (PT38)', async () => {
  folder.write({ 'a/.env': canary, '.env': canary, 'b/f': canary, '.env ': canary, ' .envs': 'another name' })
  const provider = await open({ exclude: ['b/f'] })
  for (const at of [
    'a/./.env',
    './.env',
    'a//.env',
    'a/../.env',
    '.env/',
    '.env ',
    '.env\0',
    '.env/.',
    'b/./f',
    'b//f',
    '/b/f',
    'b/f/',
    'b/x/../f',
    '.env\u200b',
    '.e\u00adnv',
    'a/.ENV',
  ])
    expect(await textAt(provider, at), JSON.stringify(at)).toBe('!not-found')
  expect(await listPaths(provider)).toEqual([' .envs'])
})

test('hostile globs of the configuration take less than 5 ms for each directory of a path (PT39)', async () => {
  const glob = `${'**/*/'.repeat(40)}x`
  const stars = `${'*a'.repeat(100)}b`
  const provider = await open({ exclude: [glob, stars], rules: [{ match: [glob, stars], priority: 1 }] })
  folder.write({ ['a'.repeat(250)]: '', [`${'d/'.repeat(199)}f`]: '' })
  await listPaths(provider)
  const start = process.cpuUsage()
  expect(await textAt(provider, `${'d/'.repeat(199)}f`)).toBe('')
  expect(await textAt(provider, 'a'.repeat(250))).toBe('')
  // 200 steps of the walk, each with two globs: 5 ms each at most.
  const { user, system } = process.cpuUsage(start)
  expect((user + system) / 1000).toBeLessThan(200 * 5)
})

test('files are listed and read under names with dots, and under names that look percent-encoded (PT43)', async () => {
  const names = ['..hidden', 'a..b', '...', '.a.', '%41', 'A', '%2e%2e', '..\\..', 'a.']
  folder.write(Object.fromEntries(names.map((name) => [name, name])))
  const provider = await open()
  expect(await listPaths(provider)).toEqual([...names].sort(comparePaths))
  for (const name of names) expect(await textAt(provider, name)).toBe(name)
})
