import * as fs from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Context, Provider } from '../../src/core/provider.ts'
import { files } from '../../src/providers/files/index.ts'
import { createFolder, type Folder, openBelow } from '../support/folder.ts'

const context: Context = { principal: { id: 'someone', roles: [] }, signal: new AbortController().signal }

/** Waits until the clock of the file system has moved on, so that the next change has another time than the last one. */
function nextTick(folder: Folder): void {
  const probe = join(folder.outside, 'probe')
  const timeOf = () => {
    fs.writeFileSync(probe, '')
    return fs.lstatSync(probe, { bigint: true }).ctimeNs
  }
  for (const before = timeOf(); timeOf() === before; );
}

describe.runIf(process.platform === 'linux')('a file that is read many times a second', () => {
  let folder: Folder
  const opened: Provider[] = []
  beforeEach(() => {
    folder = createFolder()
    folder.write(tree)
  })
  afterEach(async () => {
    for (const provider of opened.splice(0)) await provider.close?.()
    await expect.poll(() => openBelow(folder.root), { message: 'no descriptor is left open' }).toEqual([])
    folder.remove()
  })

  const path = 'a/b/note.md'
  const tree = { [path]: '# One\n', 'a/.gitignore': 'other.md\n', 'a/b/other.md': '# Other\n' }

  const open = async (): Promise<Provider> => {
    const provider = await files({ root: folder.root, gitignore: true })
    opened.push(provider)
    return provider
  }
  const answersOf = async (provider: Provider) => [
    await provider.read({ path, params: new Map() }, context).catch((error: Error) => error.message),
    await provider.stat?.(path, context).catch((error: Error) => error.message),
  ]

  const inFolder = (name: string) => join(folder.root, name)
  const changes: readonly (readonly [string, () => void])[] = [
    ['it is written to', () => fs.writeFileSync(inFolder(path), '# Two\n')],
    ['it is removed', () => fs.unlinkSync(inFolder(path))],
    [
      'another file takes its place',
      () => {
        fs.writeFileSync(inFolder('new'), '# New\n')
        const { atime, mtime } = fs.statSync(inFolder(path))
        fs.utimesSync(inFolder('new'), atime, mtime)
        fs.renameSync(inFolder('new'), inFolder(path))
      },
    ],
    [
      'another folder takes the place of a folder in its path',
      () => {
        fs.cpSync(inFolder('a'), inFolder('c'), { recursive: true, preserveTimestamps: true })
        fs.writeFileSync(inFolder('c/b/note.md'), '# New\n')
        fs.renameSync(inFolder('a'), inFolder('old'))
        fs.renameSync(inFolder('c'), inFolder('a'))
      },
    ],
    [
      'a link takes the place of a folder in its path',
      () => {
        fs.renameSync(inFolder('a'), inFolder('old'))
        fs.symlinkSync('old', inFolder('a'))
      },
    ],
    ['it gets a second name', () => fs.linkSync(inFolder(path), inFolder('second'))],
    ['ignore rules appear in a folder of its path', () => fs.writeFileSync(inFolder('.gitignore'), '*.md\n')],
    ['ignore rules in a folder of its path change', () => fs.writeFileSync(inFolder('a/.gitignore'), 'note*.md\n')],
    ['ignore rules in a folder of its path are removed', () => fs.unlinkSync(inFolder('a/.gitignore'))],
  ]

  test.each(changes)('has the same answers as in a newly opened source, when %s', async (_, change) => {
    const provider = await open()
    for (let time = 0; time < 4; time++) await answersOf(provider)
    nextTick(folder)
    change()
    expect(await answersOf(provider)).toEqual(await answersOf(await open()))
  })

  test('is not read for a request that was aborted', async () => {
    const provider = await open()
    for (let time = 0; time < 4; time++) await answersOf(provider)
    const gone = { ...context, signal: AbortSignal.abort(new Error('gone')) }
    await expect(provider.read({ path, params: new Map() }, gone)).rejects.toThrow('gone')
    await expect(provider.stat?.(path, gone)).rejects.toThrow('gone')
  })

  test('is not read after its source was closed', async () => {
    const provider = await open()
    await answersOf(provider)
    await provider.close?.()
    expect((await answersOf(provider))[0]).toMatch(/closed/)
  })
})
