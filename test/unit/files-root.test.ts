import * as fs from 'node:fs'
import { describe, expect, test } from 'vitest'
import { createFiles } from '../../src/providers/files/index.ts'
import { useFiles } from '../support/files.ts'
import { contextOf, listAll, listPaths, readOne, sleep, textAt } from '../support/folder.ts'

const { folder, open } = useFiles()

describe('symbolic links below the root', () => {
  const links = async (portable: boolean) => {
    folder.write({
      'a/b.txt': 'b',
      'a/deep/c.txt': 'c',
      '.env': 'secret',
      '.gitignore': 'ignored*\n',
      'ignored.txt': 'no',
    })
    fs.writeFileSync(`${folder.outside}/out.txt`, 'canary')
    const link = (target: string, name: string) => fs.symlinkSync(target, folder.at(name))
    link('a/b.txt', 'to-file')
    link(folder.at('a/deep'), 'to-directory')
    link('to-file', 'to-link')
    link('..', 'a/up')
    link('../a', 'a/self')
    link('.env', 'to-secret')
    link('ignored.txt', 'to-ignored')
    link('.git', 'to-git')
    link(`${folder.outside}/out.txt`, 'to-outside')
    link('../outside', 'to-outside-directory')
    link('none', 'to-nothing')
    link('circle', 'circle')
    link('/proc/self/environ', 'to-proc')
    return open({}, portable)
  }

  test.each([false, true])(
    'are served as their targets, if the targets are served themselves (by paths: %s)',
    async (portable) => {
      const provider = await links(portable)
      expect(await listPaths(provider)).toEqual([
      '.gitignore', 'a/b.txt', 'a/deep/c.txt', 'to-directory/c.txt', 'to-file', 'to-link',
    ]) // biome-ignore format: a list
      expect(await textAt(provider, 'to-link')).toBe('b')
      expect(await textAt(provider, 'to-directory/c.txt')).toBe('c')
      for (const path of [
        'a/up/a/b.txt',
        'a/self/b.txt',
        'to-secret',
        'to-ignored',
        'to-outside',
        'to-outside-directory/out.txt',
        'to-nothing',
        'circle',
        'to-proc',
        'to-file/',
        'to-directory',
      ])
        expect(await textAt(provider, path), path).toBe('!not-found')
      const [file, target] = await Promise.all(['to-file', 'a/b.txt'].map((path) => provider.stat?.(path, contextOf())))
      expect(file?.version).toBe(target?.version)
      expect((await listAll(provider)).find(({ path }) => path === 'to-file')).toEqual(file)
    },
  )

  test('are followed to their current targets', async () => {
    const provider = await links(false)
    await listPaths(provider)
    await sleep(30)
    await listPaths(provider)
    fs.rmSync(folder.at('a/b.txt'))
    folder.write({ 'a/b.txt/inner': 'now a directory' })
    expect(await listPaths(provider)).toContain('to-file/inner')
    expect(await textAt(provider, 'to-file/inner')).toBe('now a directory')
  })

  test('are absent with the option symlinks: "deny"', async () => {
    await links(false)
    const provider = await open({ symlinks: 'deny' })
    expect(await listPaths(provider)).toEqual(['.gitignore', 'a/b.txt', 'a/deep/c.txt'])
    expect(await textAt(provider, 'to-file')).toBe('!not-found')
  })
})

describe('the root of a files mount', () => {
  const refusal = (root: string) =>
    createFiles({ root }, {}).then(
      async (provider) => {
        await provider.close?.()
        return 'opened'
      },
      (error: unknown) =>
        error instanceof Error && 'kind' in error ? `${error.kind}: ${error.message}` : String(error),
    )

  test('is followed when it is moved, and opened again when it is deleted and created', async () => {
    folder.write({ 'a.txt': '1' })
    const provider = await open()
    expect(await textAt(provider, 'a.txt')).toBe('1')
    fs.rmSync(folder.root, { recursive: true })
    await expect(listPaths(provider)).rejects.toMatchObject({ kind: 'unavailable' })
    expect(await textAt(provider, 'a.txt')).toBe('!unavailable')
    folder.write({ 'a.txt': '2' })
    expect(await Promise.all([textAt(provider, 'a.txt'), listPaths(provider)])).toEqual(['2', ['a.txt']])
    fs.renameSync(folder.root, `${folder.root}-moved`)
    expect(await textAt(provider, 'a.txt')).toBe('2')
  })

  test('is not opened again through a link after it was deleted', async () => {
    folder.write({ 'a.txt': '1' })
    fs.writeFileSync(`${folder.outside}/a.txt`, 'canary')
    const provider = await open()
    fs.rmSync(folder.root, { recursive: true })
    fs.symlinkSync(folder.outside, folder.root)
    expect(await textAt(provider, 'a.txt')).toBe('!unavailable')
  })

  test('can be closed twice; then its listings end, and it answers no call', async () => {
    folder.write({ 'a.txt': '1' })
    const provider = await open()
    const listing = provider.list({}, contextOf())[Symbol.asyncIterator]()
    await provider.close?.()
    await provider.close?.()
    await expect(listing.next()).rejects.toMatchObject({ kind: 'unavailable' })
    await expect(readOne(provider, 'a.txt')).rejects.toMatchObject({ kind: 'unavailable' })
    await expect(provider.stat?.('a.txt', contextOf())).rejects.toMatchObject({ kind: 'unavailable' })
  })

  test('has one template, for a path', async () => {
    expect(await (await open()).templates?.(contextOf())).toMatchObject([{ template: '{+path}', name: 'Files' }])
  })

  test('is refused if it is relative, absent or not a directory, with a message that says so', async () => {
    folder.write({ file: '' })
    expect(await refusal('docs')).toMatch(/^invalid: .*"docs".*not absolute.*\/docs"/)
    expect(await refusal(folder.at('none'))).toMatch(/^invalid: .*does not exist/)
    expect(await refusal(folder.at('file'))).toMatch(/^invalid: .*not a directory/)
  })
})

test('a file with a second hard link is served only with the option hardlinks', async () => {
  folder.write({ 'a.txt': 'a' })
  fs.linkSync(folder.at('a.txt'), `${folder.outside}/second`)
  for (const [hardlinks, paths] of [
    [false, []],
    [true, ['a.txt']],
  ] as const) {
    const provider = await open({ hardlinks })
    expect(await listPaths(provider)).toEqual(paths)
    expect(await textAt(provider, 'a.txt')).toBe(hardlinks ? 'a' : '!not-found')
  }
})
