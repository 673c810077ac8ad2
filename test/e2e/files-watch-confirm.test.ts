import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Entry, Provider } from '../../src/core/provider.ts'
import { createFiles } from '../../src/providers/files/index.ts'
import { createDirectoryStates, createUpdateCollector } from '../../src/providers/files/watch.ts'
import { createFolder, type Folder, listAll, sleep } from '../support/folder.ts'
import { startWatching, type Watching } from '../support/watching.ts'

const { lstatSync } = fs
const { lstat } = fs.promises

let folder: Folder
let watched: Provider
/** Looks at the disk for every list. */
let plain: Provider
let watch: Watching | undefined
let looks = 0

beforeEach(async () => {
  folder = createFolder()
  folder.write(Object.fromEntries([...Array(300).keys()].map((n) => [`${n % 3}/f${n}.txt`, `${n}`])))
  await sleep(40)
  const options = { root: folder.root, hardlinks: true, symlinks: 'beneath' as const }
  watched = await createFiles(options, {})
  plain = await createFiles({ ...options, watch: false }, {})
  watch = await startWatching(watched)
  Object.assign(fs, {
    lstatSync: (...args: Parameters<typeof lstatSync>) => {
      looks++
      return lstatSync(...args)
    },
  })
  // A look goes to the pool where the looks before it took long.
  Object.assign(fs.promises, {
    lstat: (...args: Parameters<typeof lstat>) => {
      looks++
      return lstat(...args)
    },
  })
  syncBuiltinESMExports()
})
afterEach(async () => {
  Object.assign(fs, { lstatSync })
  Object.assign(fs.promises, { lstat })
  syncBuiltinESMExports()
  await watch?.stop()
  await watched.close?.()
  await plain.close?.()
  folder.remove()
})

async function looksOf(provider: Provider): Promise<number> {
  looks = 0
  expect(await listAll(provider)).toHaveLength(300)
  return looks
}

/** The same as the disk says, whatever the memory of the watched one. */
async function expectSame(what: string): Promise<readonly Entry[]> {
  const list = await listAll(watched)
  expect(list, what).toEqual(await listAll(plain))
  return list
}

describe('a list of files that are watched', () => {
  test('accesses the disk for a few files only, and for each file once they are no longer watched', async () => {
    // A thread that is busy does not answer in time: then the disk is asked.
    await expect.poll(() => looksOf(watched)).toBeLessThan(100)
    expect(await looksOf(plain)).toBeGreaterThanOrEqual(300)
    await watch?.stop()
    watch = undefined
    expect(await looksOf(watched)).toBeGreaterThanOrEqual(300)
  })

  test('shows each change that was made before the listing', async () => {
    await expectSame('before any change')
    const at = (name: string) => folder.at(name)
    const steps: readonly (readonly [string, () => void])[] = [
      ['a file is written', () => fs.writeFileSync(at('2/f299.txt'), 'longer than before')],
      ['a file grows', () => fs.appendFileSync(at('2/f299.txt'), 'x')],
      ['a file is new', () => fs.writeFileSync(at('2/g.txt'), 'new')],
      ['a file is gone', () => fs.rmSync(at('2/f296.txt'))],
      ['a file beside it is written', () => fs.writeFileSync(at('t'), 'other')],
      ['a file is replaced', () => fs.renameSync(at('t'), at('2/f293.txt'))],
      ['a file is renamed', () => fs.renameSync(at('2/f290.txt'), at('2/h.txt'))],
      ['a file is gone that becomes a directory', () => fs.rmSync(at('2/f287.txt'))],
      ['the directory has a file', () => folder.write({ '2/f287.txt/inner.txt': 'i' })],
      ['the times are set', () => fs.utimesSync(at('2/f284.txt'), 1, 1)],
      ['the mode is changed', () => fs.chmodSync(at('2/f281.txt'), 0o600)],
      ['a link appears', () => fs.symlinkSync('../0/f0.txt', at('2/link.txt'))],
      ['the target of the link is written', () => fs.writeFileSync(at('0/f0.txt'), 'target')],
      ['a directory is renamed', () => fs.renameSync(at('1'), at('3'))],
      ['a file in it is written', () => fs.writeFileSync(at('3/f298.txt'), 'moved and written')],
      ['another directory takes its place', () => folder.write({ '1/f298.txt': 'other' })],
      ['rules leave files out', () => fs.writeFileSync(at('2/.gitignore'), 'f2*\n')],
      ['the rules are gone', () => fs.rmSync(at('2/.gitignore'))],
      ['a directory is gone', () => fs.rmSync(at('3'), { recursive: true })],
    ]
    let before = await expectSame('before')
    for (const [what, act] of steps) {
      act()
      const now = await expectSame(what)
      expect(now, what).not.toEqual(before)
      before = now
    }
  })

  test('shows a change without an event after the interval of reconcile', async () => {
    await watched.close?.()
    watched = await createFiles({ root: folder.root, hardlinks: true, reconcile: 100 }, {})
    plain = await createFiles({ root: folder.root, hardlinks: true, watch: false }, {})
    watch = await startWatching(watched)
    await expectSame('before')
    // The kernel tells of a second name, and of a write by it, in the directory of that name alone.
    fs.linkSync(folder.at('2/f278.txt'), `${folder.outside}/second.txt`)
    fs.writeFileSync(`${folder.outside}/second.txt`, 'by the other name')
    await expect.poll(async () => (await listAll(watched)).find(({ size }) => size === 17)?.path).toBe('2/f278.txt')
    await expectSame('after that time')
  })

  test('never shows an older state after a newer one', async () => {
    await watched.close?.()
    watched = await createFiles({ root: folder.root, hardlinks: true, reconcile: 60_000 }, {})
    watch = await startWatching(watched)
    // The list is answered from memory, but for the first files of it: they are looked at.
    await expect.poll(() => looksOf(watched)).toBeLessThan(100)
    await expect.poll(() => looksOf(watched)).toBeLessThan(20)
    const sizeIn = async (query = {}) => (await listAll(watched, query)).find(({ path }) => path === '2/f278.txt')?.size
    fs.linkSync(folder.at('2/f278.txt'), `${folder.outside}/second.txt`)
    fs.writeFileSync(`${folder.outside}/second.txt`, 'by the other name')
    // The first files of a list are looked at, and this is one of them.
    expect(await sizeIn({ prefix: '2/', after: '2/f275.txt' })).toBe(17)
    expect(await sizeIn(), 'the whole list').toBe(17)
    expect(await sizeIn(), 'the whole list again').toBe(17)
  })

  test('shows the last of many consecutive changes', async () => {
    for (let n = 0; n < 200; n++) {
      fs.writeFileSync(folder.at(`2/f${299 - 3 * (n % 40)}.txt`), 'x'.repeat(n))
      if (n % 5 === 0) await expectSame(`after ${n}`)
    }
    await expectSame('at the end')
  })
})

describe('the state of a watched directory', () => {
  test('is unknown if the watch thread does not answer, or the watch has ended', async () => {
    const silent = createDirectoryStates(() => {})
    expect(await silent.ask()).toBeUndefined()
    const ended = createDirectoryStates(() => {})
    const asked = ended.ask()
    ended.close()
    expect(await asked).toBeUndefined()
    expect(await ended.ask()).toBeUndefined()
  })

  test('is requested again for a caller that came while another request was pending', async () => {
    let sent = 0
    const confirmations = createDirectoryStates(() => void sent++)
    const first = confirmations.ask()
    const second = confirmations.ask()
    const third = confirmations.ask()
    expect(sent).toBe(1)
    confirmations.answered([['1:1', true]])
    expect(sent).toBe(2)
    const state = (await first)?.('1:1')
    expect(state).toBeTypeOf('number')
    confirmations.answered([
      ['1:1', true],
      ['1:2', true],
    ])
    const [later, last] = [await second, await third]
    expect(later?.('1:1')).not.toBe(state)
    expect(last?.('1:2')).toBeTypeOf('number')
    expect(sent).toBe(2)
    const end = confirmations.ask()
    confirmations.answered([['1:1', false]])
    expect((await end)?.('1:1')).toBeUndefined()
  })

  test('is reported once, and the end of its watch is reported only if the state was reported before', () => {
    const ledger = createUpdateCollector()
    ledger.touch('a')
    ledger.touch('b')
    ledger.lose('b')
    expect(ledger.take()).toEqual([['a', true]])
    expect(ledger.take()).toEqual([])
    ledger.lose('a')
    ledger.lose('c')
    expect(ledger.take()).toEqual([['a', false]])
    ledger.lose('a')
    expect(ledger.take()).toEqual([])
  })
})
