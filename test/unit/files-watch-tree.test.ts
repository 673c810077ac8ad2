import { EventEmitter } from 'node:events'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { WatchFile } from '../../src/providers/files/watch.ts'
import { watchFiles } from '../../src/providers/files/watch-worker.ts'
import { createFolder, type Folder, sleep } from '../support/folder.ts'
import { eventually } from '../support/watching.ts'

/** Delay with which libuv asks FSEvents for events, in milliseconds. */
const latencyMs = 50

/**
 * Simulates `fs.watch` with the rules of FSEvents on macOS: all watches of the process share one stream, which has at most `mostPaths` paths. With
 * more, no watch gets events, and each addition raises EMFILE, as an event, at all watches. Events come late, with the path below the
 * watched directory.
 */
function createFsEvents(root: string, mostPaths = 4096) {
  const watches = new Set<
    EventEmitter & { readonly at: string; readonly recursive: boolean; listener: Parameters<WatchFile>[2] }
  >()
  const sources = new Map<string, fs.FSWatcher>()
  const pending = new Set<string>()
  const system = { mostPaths, opened: 0, open: () => watches.size, lose: () => {}, close: () => {} }
  let timer: NodeJS.Timeout | undefined

  const deliver = () => {
    timer = undefined
    const changed = [...pending]
    pending.clear()
    if (watches.size > system.mostPaths) return
    for (const { at, recursive, listener } of watches)
      for (const file of changed) {
        const name = path.relative(at, file)
        if (name === '' || name.startsWith('..') || (!recursive && name.includes('/'))) continue
        listener('rename', name)
      }
  }

  const observe = (directory: string) => {
    if (sources.has(directory)) return
    try {
      const source = fs.watch(directory, { persistent: false }, (_, name) => {
        const file = path.join(directory, name ?? '')
        pending.add(file)
        timer ??= setTimeout(deliver, latencyMs)
        if (fs.statSync(file, { throwIfNoEntry: false })?.isDirectory()) observe(file)
      })
      source.on('error', () => {})
      sources.set(directory, source)
      for (const entry of fs.readdirSync(directory, { withFileTypes: true })) {
        // Files that were created before the directory was watched are reported too.
        if (timer !== undefined) pending.add(path.join(directory, entry.name))
        if (entry.isDirectory()) observe(path.join(directory, entry.name))
      }
    } catch {
      // The directory is gone meanwhile.
    }
  }
  observe(root)

  const watch: WatchFile = (at, { recursive }, listener) => {
    const mine = Object.assign(new EventEmitter(), { at, recursive, listener, close: () => void watches.delete(mine) })
    watches.add(mine)
    system.opened++
    if (watches.size > system.mostPaths)
      setImmediate(() => {
        const error = Object.assign(new Error('EMFILE: too many open files, watch'), { code: 'EMFILE' })
        for (const one of [...watches]) one.emit('error', error)
      })
    return mine
  }
  system.lose = () => {
    for (const { listener } of watches) listener('rename', null)
  }
  system.close = () => {
    clearTimeout(timer)
    for (const source of sources.values()) source.close()
  }
  return Object.assign(system, { watch })
}

let folder: Folder
let system: ReturnType<typeof createFsEvents>
let told: Set<string>
let logged: string[]
let degraded: string | undefined
let stop: () => Promise<void>

beforeEach(() => {
  folder = createFolder()
  told = new Set()
  logged = []
  stop = async () => {}
})
afterEach(async () => {
  await stop()
  system.close()
  folder.remove()
})

const hour = 3_600_000

/** Watches the folder as on macOS, with a stream of FSEvents for so many paths. */
async function begin({ mostPaths = 4096, reconcile = hour, recursive = true } = {}): Promise<void> {
  system = createFsEvents(folder.root, mostPaths)
  await sleep(40)
  const abort = new AbortController()
  const { batches, closed } = await watchFiles(
    {
      root: { real: folder.root, at: folder.root },
      ...{ gitignore: true, worktrees: false, symlinks: 'beneath', portable: true, recursive, reconcile },
      watches: 100_000,
      ...{ defaultExcludes: true, hidden: true, hardlinks: false, allowMounts: false },
    },
    (level, message) => void logged.push(`${level}: ${message}`),
    abort.signal,
    (now) => {
      degraded = now
    },
    system.watch,
  )
  const listening = (async () => {
    for await (const batch of batches) for (const { path = '*' } of batch) told.add(path)
  })()
  stop = async () => {
    abort.abort()
    await listening
    await closed
  }
}

const tells = (...paths: readonly string[]) =>
  eventually(() => paths.every((path) => told.has(path)), `told: ${paths.join(', ')}`)

const directories = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`d${i}/e/a.txt`, 'a']))

describe('a watch on a system that watches whole trees', () => {
  test('opens one watch for any number of directories, and reports changes at any depth', async () => {
    folder.write({ ...directories(60), 'が/か.txt': 'a' })
    await begin({ mostPaths: 10 })
    folder.write({ 'd7/e/a.txt': 'changed', 'd8/new/deep/b.txt': 'b', 'が/か.txt': 'changed' })
    fs.rmSync(folder.at('d9'), { recursive: true })
    await tells('d7/e/a.txt', 'd8/new/deep/b.txt', 'd9/e/a.txt', 'が/か.txt')
    told.clear()
    folder.write({ 'd8/new/deep/b.txt': 'again', 'top.txt': '' })
    fs.renameSync(folder.at('d10'), folder.at('d11-moved'))
    await tells('d8/new/deep/b.txt', 'top.txt', 'd10/e/a.txt', 'd11-moved/e/a.txt')
    expect(system.opened).toBe(1)
    expect(logged).toEqual([])
  })

  test('finds a changed file after the system reports dropped events', async () => {
    folder.write(directories(3))
    await begin()
    await eventually(() => system.open() === 1, 'watched')
    system.mostPaths = 0
    // The first look at the folder may still be under way, and finds what has changed meanwhile.
    for (let round = 0; round === 0 || told.size > 0; round++) {
      told.clear()
      folder.write({ 'd1/e/a.txt': `changed ${round}` })
      await sleep(150)
    }
    system.lose()
    await tells('d1/e/a.txt')
  })

  test('is replaced by periodic comparing, with one warning, while the system refuses it', async () => {
    folder.write(directories(30))
    await begin({ mostPaths: 0, reconcile: 200 })
    await eventually(() => logged.length > 0, 'a warning')
    await sleep(1000)
    expect(system.opened).toBeLessThan(10)
    expect(logged).toEqual(['warn: the folder cannot be watched: it is compared periodically'])
    expect(degraded).toBe('limited')
    folder.write({ 'd7/e/a.txt': 'changed' })
    await tells('d7/e/a.txt')
    system.mostPaths = 4096
    await eventually(() => degraded === undefined, 'watched again')
    expect(logged.at(-1)).toBe('info: the folder is watched again')
  })

  test('drops a root that is gone, and watches a new one at its place', async () => {
    folder.write({ 'd/a.txt': 'a' })
    await begin({ reconcile: 200 })
    fs.renameSync(folder.root, `${folder.outside}/moved`)
    await tells('*')
    told.clear()
    folder.write({ 'd/b.txt': 'b' })
    await tells('*')
    await eventually(() => system.open() === 1, 'watched')
  })
})

describe('a watch of each directory', () => {
  test('is not retried endlessly if, beyond a maximum number of watches, the system reports an error at all of them', async () => {
    folder.write(directories(30))
    await begin({ mostPaths: 20, recursive: false })
    await eventually(() => logged.length > 0, 'a warning')
    await sleep(1000)
    expect(system.opened).toBeLessThan(70)
    expect(logged).toEqual(['warn: not every directory can be watched: the others are compared periodically'])
    expect(degraded).toBe('limited')
  })
})
