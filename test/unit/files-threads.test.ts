import { symlinkSync, unlinkSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createFiles } from '../../src/providers/files/index.ts'
import { createPool, type Pool } from '../../src/providers/files/place.ts'
import { hasMountsInside, openLinuxRoot } from '../../src/providers/files/root.ts'
import { contextOf, createFolder, type Folder, listPaths } from '../support/folder.ts'

describe('mounted file systems inside a directory', () => {
  const table = [
    '22 27 0:21 / /proc rw,relatime - proc proc rw',
    '27 1 254:0 / / rw,relatime - ext4 /dev/vda rw',
    '31 27 0:40 / /home/me/a\\040b/far rw - nfs4 server:/x rw',
    `32 27 0:41 / ${Buffer.from('/home/あ/far').toString('latin1')} rw - fuse.sshfs x rw`,
    '',
  ].join('\n')

  test('are found in the list of mounts of the system, and are assumed if there is no such list', () => {
    for (const directory of ['/', '/home', '/home/me', '/home/me/a b', '/home/あ'])
      expect(hasMountsInside(directory, table), directory).toBe(true)
    for (const directory of ['/proc', '/home/me/a', '/home/me/a b/far', '/home/me/a b/f', '/ho', '/srv'])
      expect(hasMountsInside(directory, table), directory).toBe(false)
    // Where the system does not tell, there may be some.
    expect(hasMountsInside('/srv', undefined)).toBe(true)
  })
})

describe.runIf(process.platform === 'linux')('a file on a local disk', () => {
  const { signal } = new AbortController()
  let folder: Folder
  let calls = 0
  const pool: Pool = {
    run: (call, terms) => {
      calls++
      return createPool(2).run(call, terms)
    },
  }
  beforeEach(() => {
    folder = createFolder()
  })
  afterEach(() => folder.remove())

  const opened = async () => openLinuxRoot(folder.root, false, pool)

  /** Returns the content of a file, and how many calls of the thread pool its read took. */
  const read = async (places: Awaited<ReturnType<typeof opened>>, name: string) => {
    const before = calls
    const root = await places.root(signal)
    const place = await places.child(root, name, { directory: false }, signal).finally(root.close)
    const handle = await places.open(place, signal).finally(place.close)
    const buffer = Buffer.alloc(100_000)
    const length = await handle
      .read(buffer, { offset: 0, length: buffer.length, position: 0 }, signal)
      .finally(handle.close)
    return { text: buffer.toString('utf8', 0, length), calls: calls - before }
  }

  test('is read without the thread pool up to 64 KiB, and with it if it is longer', async () => {
    folder.write({ 'a.txt': 'one', 'long.txt': 'x'.repeat(70_000) })
    const places = await opened()
    expect(await read(places, 'a.txt')).toEqual({ text: 'one', calls: 0 })
    expect(await read(places, 'long.txt')).toEqual({ text: 'x'.repeat(70_000), calls: 1 })
    unlinkSync(folder.at('a.txt'))
    await expect(read(places, 'a.txt')).rejects.toMatchObject({ kind: 'not-found' })
    places.close()
  })

  test('takes as many calls of the thread pool if it may not be served as if it does not exist', async () => {
    folder.write({ 'one.txt': 'one' })
    symlinkSync(folder.at('one.txt'), folder.at('link.txt'))
    const provider = await createFiles(
      { root: folder.root, watch: false, gitignore: false, symlinks: 'deny' },
      { pool },
    )
    const ask = async (path: string) => {
      const before = calls
      await expect(provider.read({ path, params: new Map() }, contextOf(signal))).rejects.toMatchObject({
        kind: 'not-found',
      })
      return calls - before
    }
    // The first call also looks for the repository of the root.
    await ask('none.txt')
    expect(await ask('none.txt')).toBe(await ask('link.txt'))
    await provider.close?.()
  })

  test('is read in turns with other work if a task reads many files', async () => {
    folder.write({ 'a/one.txt': 'one' })
    const provider = await createFiles({ root: folder.root, watch: false, gitignore: false }, { pool })
    expect(await listPaths(provider)).toEqual(['a/one.txt'])
    let others = 0
    const count = () => {
      others++
      if (others < 3) setImmediate(count)
    }
    setImmediate(count)
    while (others < 3) await provider.read({ path: 'a/one.txt', params: new Map() }, contextOf(signal))
    expect(others).toBe(3)
    await provider.close?.()
  })

  test('is not looked up for a request that was aborted', async () => {
    folder.write({ 'a.txt': 'one' })
    const places = await opened()
    await read(places, 'a.txt')
    const root = await places.root(signal)
    const gone = AbortSignal.abort(new Error('gone'))
    await expect(places.child(root, 'a.txt', { directory: false }, gone)).rejects.toThrow('gone')
    for (const one of [root, places]) one.close()
  })
})
