import { renameSync, symlinkSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createPool, type Pool } from '../../src/providers/files/access.ts'
import { createHot, createTurns, hasMountsInside } from '../../src/providers/files/descriptor.ts'
import { createFiles } from '../../src/providers/files/index.ts'
import { openLinuxPlaces } from '../../src/providers/files/linux.ts'
import { createPageCache } from '../../src/providers/files/page-cache.ts'
import { lookAtAll } from '../../src/providers/files/stats.ts'
import { contextOf, createFolder, type Folder, listPaths } from '../support/folder.ts'

describe('what the kernel has in memory', () => {
  let time = 0
  const hot = () => createHot({ now: () => time })
  beforeEach(() => {
    time = 1000
  })

  test('is what was reached in the last two seconds', () => {
    const names = hot()
    expect(names.has('a')).toBe(false)
    names.add('a')
    time += 1999
    expect(names.has('a')).toBe(true)
    expect(names.has('b')).toBe(false)
    time += 2
    expect(names.has('a')).toBe(false)
  })
})

describe('the page cache', () => {
  let time = 0
  let readsOfDisks = 0
  const cache = () => createPageCache({ now: () => time }, () => readsOfDisks)
  /** Makes calls that need the disk or do not. */
  const call = async (of: ReturnType<typeof cache>, times: number, reads = 0) => {
    for (let made = 0; made < times; made++) {
      const answer = of.inPool(async () => {
        readsOfDisks += reads
        return made
      })
      expect(await answer).toBe(made)
    }
  }
  beforeEach(() => {
    time = 1000
    readsOfDisks = 7
  })

  test('is warm after 32 calls that did not need the disk, for two seconds after the last', async () => {
    const warm = cache()
    await call(warm, 31)
    expect(warm.isWarm()).toBe(false)
    await call(warm, 1)
    expect(warm.isWarm()).toBe(true)
    time += 1999
    expect(warm.isWarm()).toBe(true)
    expect(warm.here(() => 'answer')).toBe('answer')
    time += 1999
    expect(warm.isWarm()).toBe(true)
    time += 1
    expect(warm.isWarm()).toBe(false)
  })

  test('is not warm any more once one call needed the disk, in a thread or here', async () => {
    const warm = cache()
    await call(warm, 31)
    await call(warm, 1, 1)
    await call(warm, 31)
    expect(warm.isWarm()).toBe(false)
    await call(warm, 1)
    expect(warm.isWarm()).toBe(true)
    const here = (ms: number, reads: number) =>
      warm.here(() => {
        time += ms
        readsOfDisks += reads
      })
    here(2, 1)
    expect(warm.isWarm()).toBe(true)
    // Other processes held it up.
    await call(warm, 1, 1)
    await call(warm, 32)
    here(20, 0)
    expect(warm.isWarm()).toBe(true)
    here(3, 1)
    expect(warm.isWarm()).toBe(false)
    // A file system whose reads are not counted.
    await call(warm, 32)
    here(21, 0)
    expect(warm.isWarm()).toBe(false)
  })

  test('is judged by calls that fail, too, and their errors are those of the calls', async () => {
    const warm = cache()
    const failing = () => warm.inPool(() => Promise.reject(new Error('no such name')))
    for (let made = 0; made < 32; made++) await expect(failing()).rejects.toThrow('no such name')
    expect(warm.isWarm()).toBe(true)
    const slow = () => {
      time += 30
      throw new Error('the disk fails')
    }
    expect(() => warm.here(slow)).toThrow('the disk fails')
    expect(warm.isWarm()).toBe(false)
  })
})

describe('mounts inside a directory', () => {
  const table = [
    '22 27 0:21 / /proc rw,relatime - proc proc rw',
    '27 1 254:0 / / rw,relatime - ext4 /dev/vda rw',
    '31 27 0:40 / /home/me/a\\040b/far rw - nfs4 server:/x rw',
    `32 27 0:41 / ${Buffer.from('/home/あ/far').toString('latin1')} rw - fuse.sshfs x rw`,
    '',
  ].join('\n')

  test('are those whose path begins with its own', () => {
    for (const directory of ['/', '/home', '/home/me', '/home/me/a b', '/home/あ'])
      expect(hasMountsInside(directory, table), directory).toBe(true)
    for (const directory of ['/proc', '/home/me/a', '/home/me/a b/far', '/home/me/a b/f', '/ho', '/srv'])
      expect(hasMountsInside(directory, table), directory).toBe(false)
    // Where the system does not tell, there may be some.
    expect(hasMountsInside('/srv', undefined)).toBe(true)
  })
})

describe('a turn of the event loop', () => {
  test('is over once it has lasted 20 ms, and who waits goes on in the next one, in the order of asking', async () => {
    let time = 1000
    let nextTurn = () => {}
    const turns = createTurns({ now: () => time }, (then) => {
      nextTurn = then
    })
    // However many calls fit into that time.
    for (let call = 0; call < 100; call++) expect(turns.over()).toBe(undefined)
    time += 19
    expect(turns.over()).toBe(undefined)
    time += 1
    const gone: string[] = []
    const waiting = ['a', 'b', 'c'].map(async (name) => {
      await turns.over()
      gone.push(name)
    })
    await undefined
    expect(gone).toEqual([])
    nextTurn()
    await Promise.all(waiting)
    expect(gone).toEqual(['a', 'b', 'c'])
    expect(turns.over()).toBe(undefined)
    time += 19
    expect(turns.over()).toBe(undefined)
  })

  test('comes for others beside a task that reads one file after the other', async () => {
    const turns = createTurns()
    let others = 0
    const count = () => {
      others++
      if (others < 3) setImmediate(count)
    }
    setImmediate(count)
    // Nothing in here leaves the thread, unless it is told to.
    while (others < 3) await turns.over()
    expect(others).toBeGreaterThanOrEqual(3)
  })
})

describe.runIf(process.platform === 'linux')('a file that is read again', () => {
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
    // However busy the machine is, no two seconds pass.
    vi.useFakeTimers({ toFake: ['performance'] })
    folder = createFolder()
  })
  afterEach(() => {
    vi.useRealTimers()
    folder.remove()
  })

  const opened = async () => openLinuxPlaces(folder.root, false, pool)

  /** What a file holds, and how many calls that took of the pool. */
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

  test('takes no call of the thread pool, and is the file as it is', async () => {
    folder.write({ 'a.txt': 'one' })
    const places = await opened()
    expect(await read(places, 'a.txt')).toEqual({ text: 'one', calls: 2 })
    expect(await read(places, 'a.txt')).toEqual({ text: 'one', calls: 0 })
    // Written to: its name is known, its content is not.
    writeFileSync(join(folder.root, 'a.txt'), 'other')
    expect(await read(places, 'a.txt')).toEqual({ text: 'other', calls: 1 })
    // Another file in its place, with the same length and time.
    writeFileSync(join(folder.root, 'b.txt'), 'third')
    utimesSync(join(folder.root, 'b.txt'), 1, 1)
    renameSync(join(folder.root, 'b.txt'), join(folder.root, 'a.txt'))
    expect(await read(places, 'a.txt')).toEqual({ text: 'third', calls: 1 })
    unlinkSync(join(folder.root, 'a.txt'))
    await expect(read(places, 'a.txt')).rejects.toMatchObject({ kind: 'not-found' })
    places.close()
  })

  test('goes to the pool where it is long, and is not followed where it has become a link', async () => {
    folder.write({ 'long.txt': 'x'.repeat(70_000), 'a.txt': 'one' })
    const places = await opened()
    await read(places, 'long.txt')
    expect(await read(places, 'long.txt')).toEqual({ text: 'x'.repeat(70_000), calls: 1 })
    await read(places, 'a.txt')
    unlinkSync(join(folder.root, 'a.txt'))
    symlinkSync(join(folder.root, 'long.txt'), join(folder.root, 'a.txt'))
    const root = await places.root(signal)
    const place = await places.child(root, 'a.txt', { directory: false }, signal)
    expect(place.stats.isSymbolicLink()).toBe(true)
    for (const one of [place, root, places]) one.close()
  })

  test('is found no faster where it may not be served than where it is not there', async () => {
    folder.write({ 'one.txt': 'one', 'link.txt': '' })
    unlinkSync(folder.at('link.txt'))
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
    expect([await ask('none.txt'), await ask('link.txt')]).toEqual([1, 1])
    expect([await ask('none.txt'), await ask('link.txt')]).toEqual([0, 0])
    await provider.close?.()
  })

  test('is opened without the thread pool for a while after its directory was listed', async () => {
    folder.write({ 'a/one.txt': 'one', 'a/two.txt': 'two' })
    const provider = await createFiles({ root: folder.root, watch: false, gitignore: false }, { pool })
    const ask = async (path: string) => {
      const before = calls
      await provider.read({ path, params: new Map() }, contextOf(signal))
      return calls - before
    }
    expect(await ask('a/one.txt')).toBe(3)
    expect(await listPaths(provider)).toEqual(['a/one.txt', 'a/two.txt'])
    // Its bytes are still read by a thread.
    expect(await ask('a/two.txt')).toBe(1)
    await provider.close?.()
  })

  test('counts as looked up in a listing only where the disk was not slow, and something was looked at', async () => {
    folder.write({ 'a.txt': 'one' })
    const places = await opened()
    const root = await places.root(signal)
    let marks = 0
    const place = { ...root, looked: () => void marks++ }
    expect(await lookAtAll(place, [], pool, signal)).toEqual([])
    expect(marks).toBe(0)
    let now = 0
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => {
      now += 10
      return now
    })
    expect(await lookAtAll(place, ['a.txt'], pool, signal)).toHaveLength(1)
    clock.mockRestore()
    expect(marks).toBe(0)
    expect(await lookAtAll(place, ['a.txt'], pool, signal)).toHaveLength(1)
    expect(marks).toBe(1)
    for (const one of [root, places]) one.close()
  })

  test('takes no thread where it waited for a slot of the pool until others had read the file', async () => {
    folder.write({ 'a.txt': 'one' })
    let turns = 0
    let isOver = false
    const count = () => {
      turns++
      if (!isOver) setImmediate(count)
    }
    let threads = 0
    const one = createPool(1)
    const counting: Pool = {
      run: (call, terms) => {
        const counted = async () => {
          const before = turns
          const value = await call()
          // A thread answers in another turn of the event loop.
          if (turns > before) threads++
          return value
        }
        return one.run(counted, terms)
      },
    }
    const places = await openLinuxPlaces(folder.root, false, counting)
    setImmediate(count)
    threads = 0
    const texts = await Promise.all(Array.from({ length: 20 }, () => read(places, 'a.txt')))
    isOver = true
    expect(texts.map(({ text }) => text)).toEqual(Array(20).fill('one'))
    // The name and the bytes of the first, and of those that began beside it.
    expect(threads).toBeLessThanOrEqual(6)
    places.close()
  })

  test('is read on this thread, and its directory listed, once calls have needed no disk for a while', async () => {
    // However cold the machine is.
    const usage = process.resourceUsage()
    const spy = vi.spyOn(process, 'resourceUsage').mockReturnValue(usage)
    const files = Array.from({ length: 120 }, (_, index) => [`${index}/${index}.txt`, `text ${index}`] as const)
    folder.write({ ...Object.fromEntries(files), 'long.txt': 'x'.repeat(70_000) })
    const provider = await createFiles({ root: folder.root, watch: false, gitignore: false }, { pool })
    const ask = async (path: string) => {
      const before = calls
      const [content] = await provider.read({ path, params: new Map() }, contextOf(signal))
      return { text: content !== undefined && 'text' in content ? content.text : undefined, calls: calls - before }
    }
    const needed: number[] = []
    for (const [path, text] of files.slice(0, 40)) {
      const answer = await ask(path)
      expect(answer.text).toBe(text)
      needed.push(answer.calls)
    }
    // The first has the root's ignore files too. A directory, a file and its bytes, until 32 calls needed no disk.
    expect(needed.slice(1, 10)).toEqual(Array(9).fill(3))
    expect(needed.slice(12)).toEqual(Array(28).fill(0))
    // A long file is read by a thread.
    expect((await ask('long.txt')).calls).toBe(1)
    const before = calls
    expect(await listPaths(provider)).toHaveLength(121)
    expect(calls - before).toBe(0)
    spy.mockRestore()
    await provider.close?.()
  })

  test('ends where its caller has gone', async () => {
    folder.write({ 'a.txt': 'one' })
    const places = await opened()
    await read(places, 'a.txt')
    const root = await places.root(signal)
    const gone = AbortSignal.abort(new Error('gone'))
    await expect(places.child(root, 'a.txt', { directory: false }, gone)).rejects.toThrow('gone')
    for (const one of [root, places]) one.close()
  })
})
