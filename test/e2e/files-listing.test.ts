import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { afterSubtree, comparePaths } from '../../src/core/path.ts'
import { iterateChildren } from '../../src/core/tree.ts'
import { useFiles } from '../support/files.ts'
import { contextOf, listAll, listPaths, listSome, openBelow, sleep } from '../support/folder.ts'
import { volumeOf } from '../support/volume.ts'

const { folder, open } = useFiles()

const hard = {
  'a-b': '1',
  'a.txt': '2',
  'a/b': '3',
  'a/b-c/d': '4',
  'a/b.d': '5',
  a0: '6',
  B: '7',
  'z/\uff61.txt': '8',
  'z/𠮷.txt': '9',
  'z/ 空白 .md': '10',
  é: '11',
}

describe.each([
  ['by file descriptors', false],
  ['by paths, as on systems without /proc', true],
])('a listing of a folder %s', (_, portable) => {
  test('has all files of the tree in the order of their UTF-8 bytes, and no directories', async () => {
    folder.write({ ...hard, 'empty/': null })
    const paths = await listPaths(await open({}, portable))
    expect(paths).toEqual(Object.keys(hard).sort(comparePaths))
    expect(paths).toEqual([...paths].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))))
  })

  test('resumes after any path, existing or not, and stays under its prefix', async () => {
    folder.write(hard)
    const provider = await open({}, portable)
    const all = Object.keys(hard).sort(comparePaths)
    const afters = [
      ...all,
      '',
      'a',
      'a/',
      'a/b/',
      'a/b-',
      afterSubtree('a/'),
      afterSubtree('z/'),
      '\uffff',
      '0',
      'zz',
      'a/b-c/',
    ]
    for (const prefix of ['', 'a/', 'a/b-c/', 'z/', 'none/', 'a.txt/', 'a-b/'])
      for (const after of [undefined, ...afters]) {
        const wanted = all.filter(
          (path) => path.startsWith(prefix) && (after === undefined || comparePaths(path, after) > 0),
        )
        const query = after === undefined ? { prefix } : { prefix, after }
        expect(await listPaths(provider, query), JSON.stringify(query)).toEqual(wanted)
      }
  })

  test('equals the sorted list of files after the cursor, for any tree and any cursor', async () => {
    const segment = fc.stringMatching(/^[ab.\- 𠮷\uff61]{1,3}$/u).filter((name) => name !== '.' && name !== '..')
    const paths = fc.array(fc.array(segment, { minLength: 1, maxLength: 3 }), { maxLength: 12 })
    const provider = await open({}, portable)
    await fc.assert(
      fc.asyncProperty(paths, fc.array(segment, { maxLength: 4 }), async (tree, cursor) => {
        fs.rmSync(folder.root, { recursive: true })
        fs.mkdirSync(folder.root)
        for (const parts of tree) {
          try {
            folder.write({ [parts.join('/')]: 'x' })
          } catch {
            // A file is where a directory is wanted, or the other way round.
          }
        }
        const all = fs
          .readdirSync(folder.root, { withFileTypes: true, recursive: true })
          .filter((entry) => entry.isFile())
          .map((entry) => `${entry.parentPath}/${entry.name}`.slice(folder.root.length + 1))
          .sort(comparePaths)
        const after = cursor.join('/')
        expect(await listPaths(provider, { after })).toEqual(all.filter((path) => comparePaths(path, after) > 0))
      }),
      { numRuns: volumeOf(40, 20) },
    )
  })

  test('can be stopped at any entry, and then leaves nothing open', async () => {
    folder.write(hard)
    const provider = await open({}, portable)
    const all = Object.keys(hard).sort(comparePaths)
    const before = openBelow(folder.root).length
    for (let count = 0; count <= all.length; count++)
      expect(await listSome(provider, {}, count)).toEqual(all.slice(0, count))
    expect(openBelow(folder.root)).toHaveLength(before)
  })

  test('ends at once when its signal aborts, and leaves nothing open', async () => {
    folder.write(Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`d${i}/f`, 'x'])))
    const provider = await open({}, portable)
    const before = openBelow(folder.root).length
    for (const entries of [0, 1, 17, 200]) {
      const controller = new AbortController()
      let seen = 0
      const listing = async () => {
        if (entries === 0) controller.abort()
        for await (const _ of provider.list({}, contextOf(controller.signal)))
          if (++seen === entries) controller.abort()
      }
      await expect(listing()).rejects.toThrow(/abort/i)
      expect(seen).toBe(entries)
    }
    // Aborted from outside, in the middle of whatever it does.
    for (let i = 0; i < 30; i++) {
      const controller = new AbortController()
      const listing = listAll(provider, {}, contextOf(controller.signal))
      setTimeout(() => controller.abort(), i / 4)
      await listing.catch(() => {})
    }
    await expect.poll(() => openBelow(folder.root)).toHaveLength(before)
  })

  test('shows files that were added, removed and renamed since the last listing', async () => {
    folder.write({ 'a/1': '', 'b/1': '' })
    const provider = await open({}, portable)
    for (let i = 0; i < 30; i++) {
      folder.write({ [`a/x${i}`]: '' })
      expect(await listPaths(provider, { prefix: 'a/' })).toContain(`a/x${i}`)
      fs.renameSync(folder.at(`a/x${i}`), folder.at(`b/y${i}`))
      expect(await listPaths(provider)).toContain(`b/y${i}`)
      fs.rmSync(folder.at(`b/y${i}`))
      expect(await listPaths(provider)).toEqual(['a/1', 'b/1'])
    }
    await sleep(30)
    expect(await listPaths(provider)).toEqual(['a/1', 'b/1'])
    fs.rmSync(folder.at('a'), { recursive: true })
    folder.write({ a: 'a file now' })
    expect(await listPaths(provider)).toEqual(['a', 'b/1'])
  })
})

describe('an entry of a folder', () => {
  test('has a size, time, type, and a version that changes with the content', async () => {
    folder.write({ 'main.rs': 'fn main() {}' })
    fs.utimesSync(folder.at('main.rs'), 1_700_000_000, 1_700_000_000.25)
    const provider = await open()
    const [entry] = await listAll(provider)
    expect(entry).toEqual({
      path: 'main.rs',
      size: 12,
      modified: 1_700_000_000_250,
      mimeType: 'text/x-rust',
      version: expect.any(String) as string,
    })
    expect(await provider.stat?.('main.rs', contextOf())).toEqual(entry)
    folder.write({ 'main.rs': 'fn main() !!' })
    fs.utimesSync(folder.at('main.rs'), 1_700_000_000, 1_700_000_000.25)
    const [changed] = await listAll(provider)
    expect(changed?.version).not.toBe(entry?.version)
  })

  test('for a directory is returned by stat for a path with a slash at its end, and not without the slash', async () => {
    folder.write({ 'a/b.txt': '', 'empty/': null })
    const provider = await open()
    const stat = (path: string) => provider.stat?.(path, contextOf())
    // A version comes once the directory has been left alone for a moment, which a slow machine may take before this.
    expect({ ...(await stat('a/')), version: undefined }).toEqual({
      path: 'a/',
      mimeType: 'inode/directory',
      modified: expect.any(Number) as number,
    })
    expect(await stat('')).toMatchObject({ path: '', mimeType: 'inode/directory' })
    expect(await stat('empty/')).toMatchObject({ path: 'empty/' })
    for (const path of ['a', 'a/b.txt/', 'none/', 'none', 'a/none'])
      await expect(stat(path), path).rejects.toMatchObject({ kind: 'not-found' })
  })
})

describe('file names', () => {
  test('that are not valid UTF-8 or have control characters are not listed and cannot be read', async () => {
    const bytes = (hex: string) => Buffer.concat([Buffer.from(`${folder.root}/`), Buffer.from(hex, 'hex')])
    folder.write({ 'fine.txt': '', '\ufffd.txt': 'a real U+FFFD' })
    for (const hex of ['61ff2e747874', 'ff2e747874', 'eda080', '610a62', '611b62', '61c285', 'e280a8'])
      fs.writeFileSync(bytes(hex), 'x')
    fs.mkdirSync(bytes('fe2e747874'))
    fs.writeFileSync(Buffer.concat([bytes('fe2e747874'), Buffer.from('/inner')]), 'x')
    const provider = await open()
    expect(await listPaths(provider)).toEqual(['fine.txt', '\ufffd.txt'])
    for (const path of ['a\nb', 'a\u001bb', 'a\u0085b', '\u2028', 'a\ufffd.txt', '\ufffd.txt/inner', '\ud800'])
      await expect(provider.read({ path, params: new Map() }, contextOf()), JSON.stringify(path)).rejects.toMatchObject(
        {
          kind: 'not-found',
        },
      )
  })

  test('that are 255 directories deep are listed and found; those that are 300 directories deep are neither', async () => {
    const deep = (depth: number) => Array.from({ length: depth }, () => 'd').join('/')
    folder.write({ [`${deep(255)}/in`]: 'x', [`${deep(300)}/out`]: 'x' })
    const provider = await open()
    expect(await listPaths(provider)).toEqual([`${deep(255)}/in`])
    await expect(provider.stat?.(`${deep(300)}/out`, contextOf())).rejects.toMatchObject({ kind: 'not-found' })
    expect(await provider.stat?.(`${deep(255)}/in`, contextOf())).toMatchObject({ size: 1 })
  })
})

test('a directory of very many files is listed whole, page by page, in memory that does not grow with the pages', {
  timeout: 180_000,
}, async () => {
  const count = volumeOf(30_000, 10_000)
  // A shell is faster than Node at this.
  execFileSync('sh', ['-c', `seq -f '%06.0f' 0 ${count - 1} | xargs touch`], { cwd: folder.root })
  await sleep(30)
  const provider = await open()
  const pass = async () => {
    let total = 0
    for (let after: string | undefined; ; ) {
      const page = await listSome(provider, after === undefined ? {} : { after }, 4000)
      total += page.length
      after = page.at(-1)
      if (after === undefined) return total
    }
  }
  expect(await pass()).toBe(count)
  const before = process.memoryUsage().rss
  expect(await pass()).toBe(count)
  expect(process.memoryUsage().rss - before).toBeLessThan(60e6)
})

test('a listing that skips from directory to directory finds each directory once, in order', async () => {
  folder.write(
    Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`${String(i).padStart(3, '0')}/${i % 20}`, ''])),
  )
  for (let i = 0; i < 500; i++) folder.write({ [`000/more${i}`]: '' })
  const provider = await open()
  const found: string[] = []
  for await (const child of iterateChildren((query) => provider.list(query, contextOf()), '')) found.push(child.path)
  expect(found).toEqual(Array.from({ length: 400 }, (_, i) => `${String(i).padStart(3, '0')}/`))
})

test('many listings at once are complete, also if another one is aborted', async () => {
  folder.write(Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`f${i}`, ''])))
  await sleep(30)
  const provider = await open()
  const controller = new AbortController()
  const aborted = listAll(provider, {}, contextOf(controller.signal)).catch(() => 'aborted')
  const others = Array.from({ length: 10 }, () => listPaths(provider))
  setTimeout(() => controller.abort(), 2)
  expect(await aborted).toBe('aborted')
  for (const paths of await Promise.all(others)) expect(paths).toHaveLength(3000)
})
