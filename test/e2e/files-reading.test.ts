import { spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { useFiles } from '../support/files.ts'
import { contextOf, listAll, openBelow, readOne, sleep, textAt } from '../support/folder.ts'

const { folder, open } = useFiles()

describe.each([
  ['by file descriptors', false],
  ['by paths, as on systems without /proc', true],
])('a read of a file %s', (_, portable) => {
  test('is text for UTF-8 without NUL, whatever the name, and bytes otherwise', async () => {
    folder.write({
      'a.md': '# 見出し𠮷\n',
      'a.png': 'not a picture',
      'a.ts': new Uint8Array([1, 0, 2]),
      'latin.txt': new Uint8Array([0x63, 0x61, 0x66, 0xe9]),
      bom: '\ufeffhello',
      empty: '',
      'half.txt': Buffer.from('あ').subarray(0, 2),
    })
    const provider = await open({}, portable)
    expect(await readOne(provider, 'a.md')).toMatchObject({ text: '# 見出し𠮷\n', mimeType: 'text/markdown', size: 16 })
    expect(await readOne(provider, 'a.png')).toMatchObject({ text: 'not a picture', mimeType: 'text/plain' })
    const binary = { bytes: Buffer.from([1, 0, 2]), mimeType: 'application/octet-stream', size: 3 }
    expect(await readOne(provider, 'a.ts')).toMatchObject(binary)
    expect(await readOne(provider, 'latin.txt')).toMatchObject({ mimeType: 'application/octet-stream', size: 4 })
    expect(await readOne(provider, 'half.txt')).toHaveProperty('bytes')
    expect(await readOne(provider, 'bom')).toMatchObject({ text: 'hello', size: 8 })
    expect(await readOne(provider, 'empty')).toMatchObject({ text: '', size: 0, mimeType: 'text/plain' })
  })

  test('gives the same version as the listing', async () => {
    folder.write({ 'a/b.txt': 'x' })
    const provider = await open({}, portable)
    const [entry] = await listAll(provider)
    expect((await readOne(provider, 'a/b.txt')).version).toBe(entry?.version)
    expect((await readOne(provider, 'a/b.txt', { range: { start: 0, end: 1 } })).version).toBe(entry?.version)
  })

  test('returns a requested part, cut between characters, with its range, and refuses an invalid range', async () => {
    folder.write({
      'a.txt': 'aあ𠮷b',
      'a.bin': new Uint8Array([0, 1, 2, 3]),
      'b.bin': Buffer.from('あいabc\0'),
      'late.txt': `${'x'.repeat(9000)}あ`,
    })
    const provider = await open({}, portable)
    const part = (path: string, start: number, end?: number) =>
      readOne(provider, path, { range: { start, ...(end === undefined ? {} : { end }) } })
    expect(await part('a.txt', 0, 1)).toMatchObject({ text: 'a', range: { start: 0, end: 1 }, size: 9 })
    expect(await part('a.txt', 2, 8)).toMatchObject({ text: '𠮷', range: { start: 4, end: 8 } })
    expect(await part('a.txt', 0, 7)).toMatchObject({ text: 'aあ', range: { start: 0, end: 4 } })
    expect(await part('a.txt', 4)).toMatchObject({ text: '𠮷b', range: { start: 4, end: 9 } })
    expect(await part('a.txt', 0, 1000)).toMatchObject({ text: 'aあ𠮷b', range: { start: 0, end: 9 } })
    expect(await part('a.txt', 2, 3)).toMatchObject({ bytes: Buffer.from([0x81]), range: { start: 2, end: 3 } })
    expect(await part('late.txt', 9000)).toMatchObject({ text: 'あ', range: { start: 9000, end: 9003 } })
    expect(await part('a.bin', 1, 3)).toMatchObject({ bytes: Buffer.from([1, 2]), range: { start: 1, end: 3 } })
    // The beginning of the file decides, also for a part that is shorter and looks like text by itself.
    expect(await part('b.bin', 0, 3)).toMatchObject({ bytes: Buffer.from('あ'), range: { start: 0, end: 3 } })
    expect(await part('b.bin', 0, 1)).toMatchObject({ bytes: Buffer.from([0xe3]), range: { start: 0, end: 1 } })
    for (const [start, end] of [
      [4, 5],
      [5, undefined],
      [-1, 2],
      [2, 1],
      [0.5, 1],
    ] as const)
      await expect(part('a.bin', start, end)).rejects.toMatchObject({
        kind: 'invalid',
        detail: { reason: 'range', size: 4 },
      })
  })

  test('is refused above the limit, with the size, the limit and how to read a part', async () => {
    folder.write({ 'a.txt': 'x'.repeat(11), 'b.txt': 'x'.repeat(10) })
    const provider = await open({ maxBytes: 10 }, portable)
    await expect(readOne(provider, 'a.txt')).rejects.toMatchObject({
      kind: 'too-large',
      message: expect.stringMatching(/\?bytes=0-9.*\?lines=1-/) as string,
      detail: { reason: 'too-large', size: 11, limit: 10 },
    })
    await expect(readOne(provider, 'a.txt', { range: { start: 0 } })).rejects.toMatchObject({ kind: 'too-large' })
    expect(await readOne(provider, 'a.txt', { range: { start: 1 } })).toMatchObject({ text: 'x'.repeat(10) })
    expect(await textAt(provider, 'b.txt')).toBe('x'.repeat(10))
  })

  test('is not-found for a directory, a path below a file, and an invalid path', async () => {
    folder.write({ 'a/b.txt': 'x' })
    const provider = await open({}, portable)
    for (const path of [
      '',
      'a',
      'a/',
      'a/b.txt/',
      'a/b.txt/c',
      'a//b.txt',
      './a/b.txt',
      'a/../a/b.txt',
      '../root/a/b.txt',
      '/a/b.txt',
      'a/b.txt\0',
      'x'.repeat(256),
      'x/'.repeat(3000),
    ])
      expect(await textAt(provider, path), JSON.stringify(path.slice(0, 30))).toBe('!not-found')
  })

  test('gives one version, however fast the file is replaced', async () => {
    const size = 300_000
    folder.write({ 'a.txt': 'a'.repeat(size) })
    const provider = await open({}, portable)
    // Each version is another letter all through.
    const writer = spawn(process.execPath, [
      '-e',
      `const fs = require('fs'); const at = process.argv[1]
       for (let i = 0; ; i++) {
         const text = String.fromCharCode(97 + i % 26).repeat(${size})
         fs.writeFileSync(at + '.new', text); fs.renameSync(at + '.new', at)
       }`,
      folder.at('a.txt'),
    ])
    try {
      const seen = new Set<string>()
      // Some of each, however slow the machine is.
      for (let reads = 0; reads < 200 || seen.size < 4; reads++) {
        const text = await textAt(provider, 'a.txt')
        if (text.startsWith('!')) continue
        // Compared here, since a failure would print all of it.
        const mixed = text.length !== size || text !== (text[0] ?? '').repeat(size)
        expect(mixed, `${text.slice(0, 10)}…${text.slice(-10)} (${text.length})`).toBe(false)
        seen.add(text[0] ?? '')
      }
    } finally {
      writer.kill()
    }
  })

  test('gives whole lines of a file that keeps growing, and is refused when the file is too large', async () => {
    folder.write({ 'a.log': '' })
    const provider = await open({ maxBytes: 20_000 }, portable)
    const writer = spawn(process.execPath, [
      '-e',
      `const fs = require('fs'); const fd = fs.openSync(process.argv[1], 'a'); let i = 0
       setInterval(() => fs.writeSync(fd, 'line ' + i++ + '\\n'), 2)`,
      folder.at('a.log'),
    ])
    try {
      await expect.poll(() => textAt(provider, 'a.log'), { timeout: 20_000 }).toContain('line 9')
      let last = ''
      for (let i = 0; i < 10; i++) {
        const text = await textAt(provider, 'a.log')
        expect(text.startsWith(last)).toBe(true)
        last = text
      }
      expect(last).toMatch(/^line 0\n(.*\n)*line \d+\n$/)
      fs.appendFileSync(folder.at('a.log'), 'many lines at once\n'.repeat(1000))
      await expect
        .poll(() => readOne(provider, 'a.log').catch((error: unknown) => error), { timeout: 20_000, interval: 200 })
        .toMatchObject({ kind: 'too-large' })
    } finally {
      writer.kill()
    }
  })

  test.runIf(portable)('that is aborted just after its file was opened leaves nothing open', async () => {
    folder.write({ 'a/b/c.txt': 'x' })
    const provider = await open({}, portable)
    await textAt(provider, 'a/b/c.txt')
    const before = openBelow(folder.root).length
    const controller = new AbortController()
    const lstat = fs.promises.lstat
    let aborted = false
    vi.spyOn(fs.promises, 'lstat').mockImplementation(((...given: Parameters<typeof lstat>) => {
      if (openBelow(folder.root).length > before) {
        aborted = true
        controller.abort()
      }
      return lstat(...given)
    }) as typeof lstat)
    onTestFinished(() => void vi.restoreAllMocks())
    const reading = provider.read({ path: 'a/b/c.txt', params: new Map() }, contextOf(controller.signal))
    await expect(reading).rejects.toThrow()
    expect(aborted).toBe(true)
    await expect.poll(() => openBelow(folder.root)).toHaveLength(before)
  })

  test('that is aborted at any moment leaves nothing open', async () => {
    folder.write({ 'a/b/c.txt': 'x'.repeat(5_000_000) })
    const provider = await open({}, portable)
    await textAt(provider, 'a/b/c.txt')
    const before = openBelow(folder.root).length
    for (let i = 0; i < 60; i++) {
      const controller = new AbortController()
      if (i === 0) controller.abort()
      const reading = provider.read({ path: 'a/b/c.txt', params: new Map() }, contextOf(controller.signal))
      setTimeout(() => controller.abort(), i / 10)
      await reading.catch(() => {})
    }
    await expect.poll(() => openBelow(folder.root)).toHaveLength(before)
  })
})

test('a hundred reads may share one abort signal without a warning of Node', async () => {
  folder.write({ 'a.txt': 'a' })
  const provider = await open()
  const warnings: unknown[] = []
  const note = (warning: Error) => warnings.push(warning)
  process.on('warning', note)
  const context = contextOf()
  await Promise.all(Array.from({ length: 100 }, () => provider.read({ path: 'a.txt', params: new Map() }, context)))
  await sleep(10)
  process.off('warning', note)
  expect(warnings).toEqual([])
})
