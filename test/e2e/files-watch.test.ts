import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { pathToFileURL } from 'node:url'
import type { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Provider } from '../../src/core/provider.ts'
import { createFiles, type FilesOptions, type FilesTestOptions } from '../../src/providers/files/index.ts'
import { createPendingChanges } from '../../src/providers/files/watch.ts'
import { bundled } from '../support/bundled.ts'
import { createFolder, type Folder, openBelow, sleep, textAt } from '../support/folder.ts'
import { countNotified, eventually, startWatching, type Watching } from '../support/watching.ts'

let folder: Folder
let provider: Provider
let watch: Watching | undefined
let logged: string[]

beforeEach(() => {
  folder = createFolder()
  logged = []
})
afterEach(async () => {
  await watch?.stop()
  watch = undefined
  await provider.close?.()
  folder.remove()
})

async function open(options: Partial<FilesOptions> = {}, system: FilesTestOptions = {}): Promise<Provider> {
  const log: FilesOptions['log'] = (level, message) => void logged.push(`${level}: ${message}`)
  provider = await createFiles({ root: folder.root, log, ...options }, system)
  return provider
}

/** Watches the folder, once it has been quiet for so long that nothing in it counts as just changed. */
async function begin(options: Partial<FilesOptions> = {}, system: FilesTestOptions = {}): Promise<Watching> {
  await open(options, system)
  await sleep(40)
  watch = await startWatching(provider)
  return watch
}

/** What is told of what is done. */
async function toldOf(watching: Watching, act: () => unknown): Promise<readonly string[]> {
  await watching.quiet()
  watching.clear()
  await act()
  await eventually(() => watching.changes.length > 0, 'anything is told')
  await watching.quiet()
  return watching.summary()
}

/** Waits until what earlier tests listened to is over. */
async function idle(): Promise<number> {
  await eventually(() => countNotified() === 0, 'no directory is listened to')
  return 0
}

describe('the watch of a files mount', () => {
  test('reports files that are created, changed and deleted, and no directory', async () => {
    folder.write({ 'a.txt': 'a', 'd/b.txt': 'b' })
    const watching = await begin()
    expect(await toldOf(watching, () => folder.write({ 'a.txt': 'x' }))).toEqual(['a.txt'])
    expect(await toldOf(watching, () => folder.write({ 'd/c.txt': '' }))).toEqual(['+d/c.txt'])
    expect(await toldOf(watching, () => fs.rmSync(folder.at('d/b.txt')))).toEqual(['+d/b.txt'])
    folder.write({ 'empty/': null })
    expect(await toldOf(watching, () => folder.write({ 'd/c.txt': 'more' }))).toEqual(['d/c.txt'])
  })

  test('reports of a directory only the file that was replaced, even before the first comparison of all files is done', async () => {
    folder.write({ 'd/a.txt': 'a', 'd/b.txt': 'b', 'd/c.txt': 'c' })
    await open()
    await sleep(40)
    watch = await startWatching(provider)
    // In the place of the file comes another one, so that the names of the directory change.
    fs.writeFileSync(folder.at('d/b.txt~'), 'other')
    fs.renameSync(folder.at('d/b.txt~'), folder.at('d/b.txt'))
    await eventually(() => watch?.changes.length !== 0, 'anything is told')
    await watch.quiet()
    expect(watch.summary()).toEqual(['d/b.txt'])
  })

  test('reports a served file that existed for a moment only, though no listing has changed', async () => {
    folder.write({ 'd/a.txt': 'a' })
    const watching = await begin({ exclude: ['*.tmp'] })
    const pass = () => {
      for (const name of ['d/b.txt', 'd/b.tmp', 'd/b.txt~']) {
        fs.writeFileSync(folder.at(name), 'b')
        fs.rmSync(folder.at(name))
      }
    }
    expect(await toldOf(watching, pass)).toEqual(['d/b.txt'])
  })

  test('reports changes from the moment when it says that it is ready', async () => {
    folder.write(Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`d${i % 30}/${i}.txt`, 'x'])))
    await open()
    for (let round = 0; round < 10; round++) {
      const watching = await startWatching(provider)
      fs.writeFileSync(folder.at(`d${round}/${round}.txt`), `${round}`)
      fs.writeFileSync(folder.at(`d${round}/new-${round}.txt`), '')
      fs.rmSync(folder.at(`d${round}/${round + 30}.txt`))
      await watching.until(`d${round}/${round}.txt`, `d${round}/new-${round}.txt`, `d${round}/${round + 30}.txt`)
      await watching.stop()
    }
  })

  test('reports each of twenty consecutive changes', async () => {
    folder.write({ 'd/a.txt': 'a' })
    const watching = await begin()
    for (let i = 0; i < 20; i++) {
      watching.clear()
      folder.write({ 'd/a.txt': `${i}` })
      await watching.until('d/a.txt')
      await sleep(40)
    }
  })

  test('enters new directories at any depth, and reports everything in deleted ones', async () => {
    folder.write({ 'keep/x': '' })
    const watching = await begin()
    const paths = ['n/a', 'n/o/b', 'n/o/p/c', 'n/o/p/q/d']
    expect(await toldOf(watching, () => folder.write(Object.fromEntries(paths.map((path) => [path, 'x']))))).toEqual(
      paths.map((path) => `+${path}`),
    )
    expect(await toldOf(watching, () => folder.write({ 'n/o/p/q/d': 'y' }))).toEqual(['n/o/p/q/d'])
    expect(await toldOf(watching, () => fs.rmSync(folder.at('n'), { recursive: true }))).toEqual(
      paths.map((path) => `+${path}`),
    )
  })

  test('follows directories that are renamed, swapped, moved in and out, or replaced by a file', async () => {
    folder.write({ 'a/x': 'a', 'b/x': 'b' })
    fs.mkdirSync(`${folder.outside}/in/deep`, { recursive: true })
    fs.writeFileSync(`${folder.outside}/in/deep/y`, '')
    const watching = await begin()
    const move = (from: string, to: string) => fs.renameSync(folder.at(from), folder.at(to))
    expect(await toldOf(watching, () => move('a', 'c'))).toEqual(['+a/x', '+c/x'])
    expect(await toldOf(watching, () => folder.write({ 'c/x': 'changed' }))).toEqual(['c/x'])
    const swap = () => {
      move('b', 'tmp')
      move('c', 'b')
      move('tmp', 'c')
    }
    expect((await toldOf(watching, swap)).filter((path) => !path.includes('tmp'))).toEqual(['+b/x', '+c/x'])
    expect(await toldOf(watching, () => folder.write({ 'b/x': 'now here' }))).toEqual(['b/x'])
    expect(await toldOf(watching, () => fs.renameSync(`${folder.outside}/in`, folder.at('in')))).toEqual(['+in/deep/y'])
    expect(await toldOf(watching, () => folder.write({ 'in/deep/y': 'z' }))).toEqual(['in/deep/y'])
    expect(await toldOf(watching, () => fs.renameSync(folder.at('in'), `${folder.outside}/in`))).toEqual(['+in/deep/y'])
    const replace = () => {
      fs.rmSync(folder.at('b'), { recursive: true })
      folder.write({ b: 'a file now' })
    }
    expect(await toldOf(watching, replace)).toEqual(['+b', '+b/x'])
  })

  test('reports a directory that was deleted and created again, also with the same inode', async () => {
    folder.write({ 'd/x': '', 'e/y': '' })
    const watching = await begin()
    for (let i = 0; i < 20; i++) {
      fs.rmSync(folder.at('d'), { recursive: true })
      folder.write({ 'd/x': '' })
      await watching.quiet(i % 2 === 0 ? 5 : 60)
    }
    expect(await toldOf(watching, () => folder.write({ 'd/x': 'heard' }))).toEqual(['d/x'])
  })

  test('reports no path that is not served', async () => {
    folder.write({
      '.gitignore': 'ignored/\n*.log\n',
      'ignored/a': '',
      'out/a': '',
      '.git/HEAD': '',
      'node_modules/p/i.js': '',
      'served.txt': '',
      '.dot/a': '',
    })
    fs.symlinkSync('served.txt', folder.at('link'))
    fs.linkSync(`${folder.root}/out/a`, folder.at('hard'))
    const watching = await begin({ exclude: ['out/'], hidden: false, symlinks: 'deny' })
    const told = await toldOf(watching, () => {
      folder.write({ 'ignored/a': 'x', 'b.log': '', 'out/a': 'x', '.git/HEAD': 'x', 'node_modules/p/i.js': 'x' })
      folder.write({ '.dot/a': 'x', '.dot/b': '', 'ignored/c/d': '', 'e.pem': '', '.env': '' })
      fs.symlinkSync('served.txt', folder.at('other-link'))
      folder.write({ 'served.txt': 'x' })
    })
    expect(told).toEqual(['served.txt'])
  })

  test('watches only the paths that `include` names', async () => {
    folder.write({ 'docs/a.md': '', 'src/a.ts': '' })
    const watching = await begin({ include: ['docs/**/*.md'] })
    const told = await toldOf(watching, () => folder.write({ 'docs/n/b.md': '', 'docs/c.txt': '', 'src/a.ts': 'x' }))
    expect(told).toEqual(['+docs/n/b.md'])
  })

  test('reports the paths that a created, changed or deleted .gitignore hides or shows', async () => {
    folder.write({ 'p/a.log': '', 'p/q/b.log': '', 'p/q/c.txt': '', 'other/d.log': '' })
    const watching = await begin()
    expect(await toldOf(watching, () => folder.write({ 'p/.gitignore': '*.log\n' }))).toEqual([
      '+p/.gitignore',
      '+p/a.log',
      '+p/q/b.log',
    ])
    expect(await toldOf(watching, () => folder.write({ 'p/.gitignore': 'q/\n' }))).toEqual([
      '+p/a.log',
      '+p/q/c.txt',
      'p/.gitignore',
    ])
    expect(await toldOf(watching, () => fs.rmSync(folder.at('p/.gitignore')))).toEqual([
      '+p/.gitignore',
      '+p/q/b.log',
      '+p/q/c.txt',
    ])
    expect(await toldOf(watching, () => folder.write({ 'p/q/b.log': 'x' }))).toEqual(['p/q/b.log'])
  })

  test('reports the paths that a .gitignore hides, also if it is not served itself', async () => {
    folder.write({ 'a.log': '', 'd/b.log': '' })
    const watching = await begin({ hidden: false })
    expect(await toldOf(watching, () => folder.write({ '.gitignore': '*.log\n' }))).toEqual(['+a.log', '+d/b.log'])
  })

  test('reports changes of the targets of symbolic links, if links are followed', async () => {
    folder.write({ 'data/x': 'x', 'data/sub/y': 'y', 'z/': null })
    fs.symlinkSync('../data/x', folder.at('z/file'))
    fs.symlinkSync('data', folder.at('dir'))
    const watching = await begin()
    expect(await toldOf(watching, () => folder.write({ 'data/x': 'xx' }))).toEqual(['data/x', 'dir/x', 'z/file'])
    expect(await toldOf(watching, () => folder.write({ 'data/sub/new': '' }))).toEqual([
      '+data/sub/new',
      '+dir/sub/new',
    ])
    const point = () => {
      fs.symlinkSync('../data/sub/y', folder.at('z/tmp'))
      fs.renameSync(folder.at('z/tmp'), folder.at('z/file'))
    }
    expect((await toldOf(watching, point)).filter((path) => !path.includes('tmp'))).toEqual(['z/file'])
    expect(await toldOf(watching, () => folder.write({ 'data/sub/y': 'yy' }))).toEqual([
      'data/sub/y',
      'dir/sub/y',
      'z/file',
    ])
    expect(await toldOf(watching, () => fs.rmSync(folder.at('dir')))).toEqual(
      ['new', 'y']
        .map((name) => `+dir/sub/${name}`)
        .concat('+dir/x')
        .sort(),
    )
  })

  test('reports names in the spelling of the listing', async () => {
    folder.write({ 'a/x': '' })
    const watching = await begin()
    const odd = Buffer.concat([Buffer.from(`${folder.root}/a/`), Buffer.from([0xff, 0xfe])])
    const names = ['a/%41 [b].txt', 'a/日本語.txt', 'a/e\u0301', 'a/back\\slash']
    const told = await toldOf(watching, () => {
      fs.writeFileSync(odd, '')
      folder.write(Object.fromEntries(names.map((name) => [name, ''])))
    })
    expect(told).toEqual(names.map((name) => `+${name}`).sort())
  })

  test('ends with its signal or with the provider, and leaves nothing open', async () => {
    folder.write(Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`d${i}/x`, ''])))
    const before = await idle()
    const watching = await begin()
    expect(countNotified()).toBe(before + 41)
    // Neither the watched directories nor anything on the way to them: only the roots. (The first round may still be reading.)
    await eventually(
      () => openBelow(folder.root).join() === [folder.root, folder.root].join(),
      'the roots alone are open',
    )
    await watching.stop()
    expect(watching.error).toBeUndefined()
    await eventually(() => countNotified() === before, 'nothing is listened to')
    await eventually(() => openBelow(folder.root).length === 1, 'the provider holds the root alone')

    const second = await startWatching(provider)
    await provider.close?.()
    await second.ended
    expect(second.error).toBeUndefined()
    await eventually(() => countNotified() === before, 'nothing is listened to')
    await eventually(() => openBelow(folder.root).length === 0, 'nothing is open')
    await expect(startWatching(provider)).rejects.toThrow()
  })

  test('ends even if its iteration never began, and when its iteration is left', async () => {
    folder.write({ 'd/x': '' })
    const before = await idle()
    await open()
    const abort = new AbortController()
    await provider.watch?.(abort.signal)
    expect(countNotified()).toBe(before + 2)
    abort.abort()
    await eventually(() => countNotified() === before, 'nothing is listened to')
    const left = await provider.watch?.(new AbortController().signal)
    fs.writeFileSync(folder.at('d/x'), 'x')
    for await (const change of left ?? []) {
      expect(change).toEqual({ path: 'd/x' })
      break
    }
    await eventually(() => countNotified() === before, 'a watch that is left ends')
  })

  test('ends with an error when its thread dies, and can be started again', async () => {
    folder.write({ 'd/x': '' })
    await open()
    // The thread outlives its users by two seconds.
    await sleep(2500)
    const threads: Worker[] = []
    const note = (worker: Worker) => void threads.push(worker)
    process.on('worker', note)
    watch = await startWatching(provider)
    const other = await startWatching(provider)
    process.off('worker', note)
    expect(threads).toHaveLength(1)
    await threads[0]?.terminate()
    await watch.ended
    await other.ended
    expect(watch.error).toMatchObject({ kind: 'unavailable' })
    expect(other.error).toMatchObject({ kind: 'unavailable' })
    watch = await startWatching(provider)
    expect(await toldOf(watch, () => folder.write({ 'd/x': 'x' }))).toEqual(['d/x'])
  })

  test('does not keep the process alive', async () => {
    folder.write({ 'd/x': '' })
    await open()
    const module = pathToFileURL(bundled('providers/files/index')).href
    const code = `const { files } = await import(${JSON.stringify(module)})
      const watch = await (await files({ root: ${JSON.stringify(folder.root)} })).watch(new AbortController().signal)
      void (async () => { for await (const change of watch) console.log(change) })()`
    execFileSync(process.execPath, ['--input-type=module', '-e', code], { timeout: 20_000 })
  })

  test('is absent if it is switched off, and an invalid interval for its comparisons is refused', async () => {
    expect((await open({ watch: false })).watch).toBeUndefined()
    await provider.close?.()
    for (const reconcile of [0, 99, Number.NaN, 2 ** 31])
      await expect(open({ reconcile })).rejects.toMatchObject({
        kind: 'invalid',
        message: expect.stringContaining('reconcile must be'),
        detail: { reason: 'configuration' },
      })
  })

  test('reports changes also without /proc, where files are opened by path', async () => {
    folder.write({ 'd/a': '', 'd/b': '' })
    const watching = await begin({}, { portable: true })
    expect(await toldOf(watching, () => folder.write({ 'd/a': 'x', 'n/c': '' }))).toEqual(['+n/c', 'd/a'])
    expect(await toldOf(watching, () => fs.rmSync(folder.at('d'), { recursive: true }))).toEqual(['+d/a', '+d/b'])
  })

  test('stays with the served folder when that is renamed, and logs it once', async () => {
    folder.write({ 'd/a': 'a' })
    await open()
    fs.renameSync(folder.root, `${folder.outside}/moved`)
    fs.mkdirSync(folder.root)
    watch = await startWatching(provider)
    const write = () => fs.writeFileSync(`${folder.outside}/moved/d/a`, 'b')
    expect(await toldOf(watch, write)).toEqual(['d/a'])
    expect(await textAt(provider, 'd/a')).toBe('b')
    const said = () => logged.filter((line) => line.includes('was moved'))
    await eventually(() => said().length > 0, 'the operator is told')
    fs.rmdirSync(folder.root)
    fs.renameSync(`${folder.outside}/moved`, folder.root)
    await watch.quiet()
    expect(said()).toEqual(['warn: the root of a files mount was moved, and is served from there'])
  })
})

describe('changes that the consumer has not taken yet', () => {
  test('are merged, and become one change of everything if there are too many', async () => {
    const pending = createPendingChanges()
    const batches = pending.batches()
    pending.add({ path: 'a', listed: false })
    pending.add({ path: 'b', listed: true })
    pending.add({ path: 'a', listed: true })
    pending.add({ path: 'a', listed: false })
    expect((await batches.next()).value).toEqual([
      { path: 'a', listed: true },
      { path: 'b', listed: true },
    ])
    for (let i = 0; i < 10_000; i++) pending.add({ path: `${i}`, listed: false })
    expect((await batches.next()).value).toHaveLength(10_000)
    for (let i = 0; i < 25_000; i++) pending.add({ path: `${i}`, listed: false })
    expect((await batches.next()).value).toEqual([{}])
    pending.add({ path: 'last', listed: false })
    expect((await batches.next()).value).toEqual([{ path: 'last' }])
    const next = batches.next()
    pending.end(new Error('lost'))
    await expect(next).rejects.toThrow('lost')
  })
})
