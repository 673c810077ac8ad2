import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Provider } from '../../src/core/provider.ts'
import { createFiles, type FilesOptions, type FilesTestOptions } from '../../src/providers/files/index.ts'
import { watchFiles } from '../../src/providers/files/watch-worker.ts'
import { bundled } from '../support/bundled.ts'
import { createFolder, type Folder, listPaths, openBelow, sleep, textAt } from '../support/folder.ts'
import { requires } from '../support/require.ts'
import { volumeOf } from '../support/volume.ts'
import { eventually, startWatching, type Watching } from '../support/watching.ts'
import { requiresWatchLimit, withWatches } from './harness/watch-limit.ts'

let folder: Folder
let provider: Provider | undefined
let watch: Watching | undefined
let logged: string[]

beforeEach(() => {
  folder = createFolder()
  logged = []
})
afterEach(async () => {
  await watch?.stop()
  await provider?.close?.()
  watch = provider = undefined
  folder.remove()
})

async function begin(
  options: Partial<FilesOptions> = {},
  system: FilesTestOptions = {},
): Promise<[Watching, Provider]> {
  const log: FilesOptions['log'] = (level, message) => void logged.push(`${level}: ${message}`)
  const opened = await createFiles({ root: folder.root, log, ...options }, system)
  provider = opened
  await sleep(40)
  const watching = await startWatching(opened)
  watch = watching
  await watching.quiet()
  return [watching, opened]
}

/** Runs a script in another process. */
async function runScript(code: string, ...args: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, ['-e', code, ...args], { stdio: 'inherit' })
  const [status] = await once(child, 'exit')
  if (status !== 0) throw new Error(`a script ended with ${status}`)
}

const numbered = (count: number, name: (i: number) => string) => Array.from({ length: count }, (_, i) => name(i))
const treeOf = (paths: readonly string[], text = '') => Object.fromEntries(paths.map((name) => [name, text]))

describe('a change while a watch of files starts', () => {
  test('is in the listing that follows, or is reported (SB09)', async () => {
    folder.write(treeOf(numbered(volumeOf(500, 100), (i) => `d${i % 50}/${i}`)))
    const opened = await createFiles({ root: folder.root }, {})
    provider = opened
    const writer = spawn(
      process.execPath,
      [
        '-e',
        `const fs = require('fs'), root = process.argv[1]
        for (let i = 0; i < 20000; i++) {
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2)
          if (i % 7 === 0) fs.mkdirSync(root + '/d' + i % 50 + '/n' + i)
          fs.writeFileSync(root + '/d' + i % 50 + (i % 7 === 0 ? '/n' + i : '') + '/w' + i, '')
        }`,
        folder.root,
      ],
      { stdio: 'inherit' },
    )
    let seen = 0
    try {
      for (let round = 0; round < 4 || seen < 20; round++) {
        await sleep(50)
        const watching = await startWatching(opened)
        const listed = await listPaths(opened)
        await sleep(100)
        const later = await listPaths(opened)
        const known = new Set(listed)
        const since = later.filter((name) => !known.has(name))
        seen += since.length
        await watching.until(...since)
        await watching.stop()
      }
    } finally {
      writer.kill('SIGKILL')
      await once(writer, 'exit')
    }
  }, 60_000)
})

describe('saving a file as editors and tools do', () => {
  const saves: Readonly<Record<string, (at: (name: string) => string, text: string) => void>> = {
    'truncate and write': (at, text) => {
      fs.truncateSync(at('a.txt'))
      fs.writeFileSync(at('a.txt'), text)
    },
    'write another file and rename it': (at, text) => {
      fs.writeFileSync(at('.a.txt.tmp'), text)
      fs.renameSync(at('.a.txt.tmp'), at('a.txt'))
    },
    'keep a backup, as vim does': (at, text) => {
      fs.writeFileSync(at('4913'), '')
      fs.rmSync(at('4913'))
      fs.renameSync(at('a.txt'), at('a.txt~'))
      fs.writeFileSync(at('a.txt'), text)
      fs.rmSync(at('a.txt~'))
    },
    'delete and write again': (at, text) => {
      fs.rmSync(at('a.txt'))
      fs.writeFileSync(at('a.txt'), text)
    },
    'write in pieces': (at, text) => {
      const fd = fs.openSync(at('a.txt'), 'w')
      for (const letter of text) fs.writeSync(fd, letter)
      fs.closeSync(fd)
    },
  }
  test.each(Object.entries(saves))('by %s is reported, and the next read has the change (SB11)', async (_, save) => {
    folder.write({ 'd/a.txt': 'before' })
    const [watching, opened] = await begin()
    for (let i = 0; i < 10; i++) {
      watching.clear()
      save((name) => folder.at(`d/${name}`), `version ${i}`)
      await watching.until('d/a.txt')
      expect(await textAt(opened, 'd/a.txt')).toBe(`version ${i}`)
      await sleep(i * 4)
    }
  })

  test('by swapping a symbolic link above the files, as Kubernetes does, is reported for each file (SB11)', async () => {
    const publish = (version: number) => {
      folder.write({ [`..v${version}/config.yaml`]: `version: ${version}`, [`..v${version}/other`]: `${version}` })
      fs.symlinkSync(`..v${version}`, folder.at('..data_tmp'))
      fs.renameSync(folder.at('..data_tmp'), folder.at('..data'))
      if (version > 0) fs.rmSync(folder.at(`..v${version - 1}`), { recursive: true })
    }
    publish(0)
    for (const name of ['config.yaml', 'other']) fs.symlinkSync(`..data/${name}`, folder.at(name))
    const [watching, opened] = await begin({ symlinks: 'beneath' })
    for (let version = 1; version < 8; version++) {
      watching.clear()
      publish(version)
      await watching.until('config.yaml', 'other', '..data/config.yaml')
      expect(await textAt(opened, 'config.yaml')).toBe(`version: ${version}`)
    }
  })
})

describe('a file', () => {
  test('that is renamed away and back is reported, as are 301 exchanges with another file, in less than 200 reports (SB12)', async () => {
    folder.write({ 'd/a': 'a', 'd/b': 'b' })
    const [watching, opened] = await begin()
    fs.renameSync(folder.at('d/a'), folder.at('d/c'))
    fs.renameSync(folder.at('d/c'), folder.at('d/a'))
    await watching.until('d/a')
    await watching.quiet()
    watching.clear()
    // The two change places, and do so an odd number of times.
    for (let i = 0; i < 301; i++) {
      fs.renameSync(folder.at('d/a'), folder.at('d/c'))
      fs.renameSync(folder.at('d/b'), folder.at('d/a'))
      fs.renameSync(folder.at('d/c'), folder.at('d/b'))
    }
    await watching.until('d/a', 'd/b')
    await watching.quiet()
    expect(await textAt(opened, 'd/a')).toBe('b')
    expect(watching.changes.length).toBeLessThan(200)
  })

  test('that is deleted and created with other content, but the same size and time, is reported (SB12)', async () => {
    folder.write({ 'd/a': 'before' })
    const [watching, opened] = await begin()
    const { atime, mtime } = fs.statSync(folder.at('d/a'))
    fs.rmSync(folder.at('d/a'))
    folder.write({ 'd/a': 'after!' })
    fs.utimesSync(folder.at('d/a'), atime, mtime)
    await watching.until('d/a')
    expect(await textAt(opened, 'd/a')).toBe('after!')
  })
})

describe('a changed file whose modification time is set back', () => {
  // The second time, nothing is heard: only what is compared from time to time can tell.
  test.each([{}, { watches: 0 }])('is reported even if its size is the same (%o) (SB13)', async (system) => {
    folder.write({ 'd/a': 'before' })
    const [watching, opened] = await begin({ reconcile: 200 }, system)
    const { atime, mtime } = fs.statSync(folder.at('d/a'))
    folder.write({ 'd/a': 'after!' })
    fs.utimesSync(folder.at('d/a'), atime, mtime)
    await watching.until('d/a')
    expect(await textAt(opened, 'd/a')).toBe('after!')
  })
})

describe('a touch without a change', () => {
  test('is merged with a thousand others into few reports (SB14)', async () => {
    folder.write({ 'd/a': 'a' })
    const [watching] = await begin()
    const start = performance.now()
    for (let i = 0; i < 1000; i++) {
      fs.utimesSync(folder.at('d/a'), i, i)
      if (i % 100 === 0) await sleep(5)
    }
    await watching.quiet()
    expect(watching.changes.length).toBeLessThan(5 + (performance.now() - start) / 20)
  })
})

describe('the limit of watches', () => {
  test('is logged, and directories beyond it are compared periodically (SB16)', async () => {
    const names = numbered(30, (i) => `d${i}/x`)
    folder.write(treeOf(names))
    const [watching] = await begin({ reconcile: 200 }, { watches: 10 })
    expect(logged).toEqual(['warn: not every directory can be watched: the others are compared periodically'])
    for (let round = 0; round < 3; round++) {
      watching.clear()
      for (const name of names) fs.writeFileSync(folder.at(name), `${round}`)
      folder.write({ [`new${round}/y`]: '' })
      fs.rmSync(folder.at(`d${29 - round}`), { recursive: true })
      await watching.until(...names, `new${round}/y`)
      folder.write({ [`d${29 - round}/x`]: '' })
      await watching.until(`d${29 - round}/x`)
      await watching.quiet(500)
    }
    expect(logged).toHaveLength(1)
  })

  test('is logged as over once there is room (SB16)', async () => {
    folder.write(treeOf(numbered(12, (i) => `d${i}/x`)))
    await begin({ reconcile: 100 }, { watches: 10 })
    for (let i = 0; i < 6; i++) fs.rmSync(folder.at(`d${i}`), { recursive: true })
    await eventually(() => logged.includes('info: every directory is watched again'), 'it is lifted')
  })

  requiresWatchLimit()('of the system', () => {
    test('is logged too if the system reports it as ENOSPC (SB16)', () => {
      const names = numbered(30, (i) => `d${i}/x`)
      folder.write(treeOf(names))
      const script = bundled('tests/watch-child')
      const [command = '', ...before] = withWatches(10)
      const args = [...before, process.execPath, script, 'watches', folder.root]
      const output = execFileSync(command, args, { encoding: 'utf8' })
      const { missing, notified, logged } = JSON.parse(output) as Record<string, string[]>
      expect(missing).toEqual([])
      expect(notified).toBe(10)
      expect(logged?.[0]).toMatch(/^warn: not every directory can be watched.*"watched":10,"reason":"ENOSPC"/)
    })
  })
})

describe('an overflow of the event queue', () => {
  test.each([
    ['loses no change', 500],
    ['loses no change before the first comparison has ended', 0],
  ])(
    '%s (SB17)',
    async (_, beforeMs) => {
      const names = numbered(2000, (i) => `d${i % 20}/${i}`)
      folder.write(treeOf(names))
      await sleep(40)
      const abort = new AbortController()
      // On this thread, so that it can be kept from hearing; rounds are too far away to help.
      const { batches, closed } = await watchFiles(
        {
          root: { real: folder.root, at: folder.root },
          ...{ gitignore: true, worktrees: false, symlinks: 'deny', portable: false, recursive: false },
          ...{ reconcile: 3_600_000, watches: 100 },
          ...{ defaultExcludes: true, hidden: true, hardlinks: false, allowMounts: false },
        },
        (level, message) => void logged.push(`${level}: ${message}`),
        abort.signal,
      )
      // What is looked for all the time is counted as it comes: the watch runs on this thread, too.
      const told = new Set<string | undefined>()
      const listening = (async () => {
        for await (const batch of batches) for (const { path: at } of batch) told.add(at)
      })()
      if (beforeMs > 0) await sleep(beforeMs)
      const child = spawn(
        process.execPath,
        [
          '-e',
          `const fs = require('fs'), root = process.argv[1]
        // Not the same thing twice in a row: that would be one event.
        for (let i = 0; i < 30000; i++) fs.utimesSync(root + '/d0/' + i % 2 * 20, i, i)
        for (let i = 0; i < 2000; i += 3) fs.writeFileSync(root + '/d' + i % 20 + '/' + i, 'x')
        fs.mkdirSync(root + '/new')
        fs.writeFileSync(root + '/new/file', '')
        fs.writeFileSync(root + '/done', '')`,
          folder.root,
        ],
        { stdio: 'inherit' },
      )
      // Deaf until all is done.
      while (!fs.existsSync(folder.at('done'))) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50)
      const wanted = [...names.filter((_, i) => i % 3 === 0), 'new/file', 'd0/20', 'done']
      try {
        await eventually(() => wanted.every((name) => told.has(name)), 'everything is told', 60_000)
        expect(logged.filter((line) => line.startsWith('info: many files changed at once')).length).toBeGreaterThan(0)
      } finally {
        abort.abort()
        await Promise.all([listening, closed, child.exitCode ?? once(child, 'exit')])
      }
    },
    120_000,
  )
})

describe('changes without events', () => {
  const canMap = () => {
    try {
      execFileSync('python3', ['-c', 'import mmap'], { stdio: 'ignore' })
      return true
    } catch {
      return false
    }
  }
  requires(
    'python3',
    canMap(),
    'there is no python3',
  )('by writes to mapped memory,', () => {
    test('are found by comparing (SB18)', async () => {
      folder.write({ 'd/a': 'before' })
      const [watching, opened] = await begin({ reconcile: 300 })
      const code = `import mmap, sys
with open(sys.argv[1], 'r+b') as f:
    m = mmap.mmap(f.fileno(), 0)
    m[0:6] = b'after!'
    m.flush()`
      execFileSync('python3', ['-c', code, folder.at('d/a')])
      await watching.until('d/a')
      expect(await textAt(opened, 'd/a')).toBe('after!')
    })
  })

  const canMount = () => {
    const at = fs.mkdtempSync('/tmp/hikidashi-mount-')
    try {
      execFileSync('mount', ['-t', 'tmpfs', 'none', at], { stdio: 'ignore' })
      execFileSync('umount', [at])
      return true
    } catch {
      return false
    } finally {
      fs.rmdirSync(at)
    }
  }
  requires(
    'mount',
    process.getuid?.() === 0 && canMount(),
    'nothing can be mounted',
  )('in other file systems,', () => {
    afterEach(async () => {
      await watch?.stop()
      await provider?.close?.()
      await expect.poll(() => openBelow(folder.root), { message: 'nothing in it is open' }).toEqual([])
      execFileSync('umount', [folder.at('m')])
    })

    test('are found by comparing, if mounted file systems are served (SB18)', async () => {
      folder.write({ 'm/': null, here: '' })
      execFileSync('mount', ['-t', 'tmpfs', 'none', folder.at('m')])
      folder.write({ 'm/d/a': '' })
      const [watching] = await begin({ reconcile: 200, allowMounts: true })
      folder.write({ 'm/d/a': 'x', 'm/n/b': '' })
      await watching.until('m/d/a', 'm/n/b')
    })

    test('are found by comparing, and a file system without events is logged (SB18)', async () => {
      folder.write({ 'm/': null })
      // It holds files, and is none of those that are known to be of this machine.
      execFileSync('mount', ['-t', 'hugetlbfs', 'none', folder.at('m')])
      folder.write({ 'm/d/a': '' })
      const [watching] = await begin({ reconcile: 200, root: folder.at('m') })
      expect(logged).toEqual(['info: the file system of a mount does not report changes: it is compared periodically'])
      folder.write({ 'm/e/b': '' })
      fs.truncateSync(folder.at('m/d/a'), 2 * 1024 * 1024)
      await watching.until('d/a', 'e/b')
      fs.rmSync(folder.at('m/d'), { recursive: true })
      watching.clear()
      await watching.until('d/a')
    })
  })
})

describe('many changes at once', () => {
  const count = volumeOf(3000, 1000)
  const many = numbered(count, (i) => `s${i % 100}/f${i}`)

  test('to very many files, in new and deleted directories, are all reported', async () => {
    folder.write(treeOf(many))
    const [watching] = await begin()
    await runScript(
      `const fs = require('fs'), root = process.argv[1]
      for (let i = 0; i < ${count}; i++) fs.writeFileSync(root + '/s' + i % 100 + '/f' + i, 'x')`,
      folder.root,
    )
    await watching.until(...many)
    await watching.quiet()
    watching.clear()
    await runScript(
      `const fs = require('fs'), root = process.argv[1]
      for (let i = 0; i < ${count}; i++) {
        const d = root + '/n' + i % 10 + '/o' + i % 100
        fs.mkdirSync(d, { recursive: true })
        fs.writeFileSync(d + '/f' + i, 'x')
      }`,
      folder.root,
    )
    const made = numbered(count, (i) => `n${i % 10}/o${i % 100}/f${i}`)
    await watching.until(...made)
    await watching.quiet()
    watching.clear()
    execFileSync('rm', ['-rf', ...numbered(10, (i) => folder.at(`n${i}`))])
    await watching.until(...made)
    expect(watching.changes.every(({ path: at }) => at === undefined || at.startsWith('n'))).toBe(true)
  }, 120_000)

  test('by a checkout of another branch are reported for every file that differs', async () => {
    const git = (...args: string[]) =>
      execFileSync('git', ['-C', folder.root, '-c', 'user.name=t', '-c', 'user.email=t@example.invalid', ...args], {
        stdio: ['ignore', 'pipe', 'ignore'],
        encoding: 'utf8',
      })
    const part = volumeOf(200, 100)
    git('init', '-q', '-b', 'main')
    folder.write(
      treeOf(
        numbered(6 * part, (i) => `a${i % 60}/b${i % 7}/f${i}`),
        'main',
      ),
    )
    git('add', '-A')
    git('commit', '-qm', 'main')
    git('checkout', '-qb', 'other')
    folder.write(
      treeOf(
        numbered(3 * part, (i) => `a${i % 60}/b${i % 7}/f${i}`),
        'other',
      ),
    )
    folder.write(
      treeOf(
        numbered(2 * part, (i) => `c${i % 40}/f${i}`),
        'other',
      ),
    )
    for (let i = 4 * part; i < 5 * part; i++) fs.rmSync(folder.at(`a${i % 60}/b${i % 7}/f${i}`))
    git('add', '-A')
    git('commit', '-qm', 'other')
    const differ = git('diff', '--name-only', 'main', 'other').trim().split('\n')
    expect(differ).toHaveLength(6 * part)
    const [watching] = await begin()
    for (const branch of ['main', 'other']) {
      git('checkout', '-q', branch)
      await watching.until(...differ)
      await watching.quiet()
      watching.clear()
    }
  }, 120_000)

  test('by constant renames of directories are all reported in the end, and later changes still arrive', async () => {
    folder.write(treeOf(numbered(200, (i) => `p/q${i % 10}/f${i}`)))
    const [watching, opened] = await begin()
    await runScript(
      `const fs = require('fs'), root = process.argv[1]
      let at = root + '/p'
      for (let i = 0; i < 3000; i++) {
        const next = root + '/p' + i % 13
        fs.renameSync(at, next)
        fs.renameSync(next + '/q' + i % 10, next + '/tmp')
        if (i % 2) fs.renameSync(next + '/q' + (i + 1) % 10, next + '/q' + i % 10), fs.renameSync(next + '/tmp', next + '/q' + (i + 1) % 10)
        else fs.renameSync(next + '/tmp', next + '/q' + i % 10)
        at = next
      }
      fs.renameSync(at, root + '/end')`,
      folder.root,
    )
    await watching.until(...numbered(200, (i) => `p/q${i % 10}/f${i}`))
    const listed = await listPaths(opened)
    expect(listed).toHaveLength(200)
    await watching.until(...listed)
    await watching.quiet()
    watching.clear()
    for (const name of listed) fs.writeFileSync(folder.at(name), 'heard')
    await watching.until(...listed)
  }, 120_000)
})

describe('a root that disappears', () => {
  test('and returns is found again, and both times a change of everything is reported', async () => {
    folder.write({ 'd/a': 'a' })
    const [watching, opened] = await begin()
    const everything = () => watching.changes.filter((change) => change.path === undefined).length
    fs.rmSync(folder.root, { recursive: true })
    await eventually(() => everything() === 1, 'everything is told')
    expect(await textAt(opened, 'd/a')).toBe('!unavailable')
    folder.write({ 'd/a': 'again' })
    await eventually(() => everything() === 2, 'everything is told again')
    expect(await textAt(opened, 'd/a')).toBe('again')
    watching.clear()
    folder.write({ 'd/a': 'heard' })
    await watching.until('d/a')
    expect(everything()).toBe(0)
  })

  test('and returns at once is found again too', async () => {
    folder.write({ 'd/a': 'a' })
    const [watching] = await begin()
    fs.rmSync(folder.root, { recursive: true })
    folder.write({ 'd/a': 'again' })
    await eventually(() => watching.changes.some((change) => change.path === undefined), 'everything is told')
    await watching.quiet()
    watching.clear()
    folder.write({ 'd/a': 'heard', 'e/b': '' })
    await watching.until('d/a', 'e/b')
  })
})

requires(
  'root',
  process.getuid?.() === 0,
  'only root can become another user',
)('with permissions that change,', () => {
  afterEach(() => process.seteuid?.(0))

  test('files that become unreadable are absent until they are readable again, and each change is reported', async () => {
    folder.write({ 'd/e/a': 'a', 'f.txt': 'f' })
    fs.chmodSync(path.dirname(folder.root), 0o755)
    process.seteuid?.(65_534)
    const [watching, opened] = await begin()
    const chmod = (name: string, mode: number) => {
      process.seteuid?.(0)
      fs.chmodSync(folder.at(name), mode)
      process.seteuid?.(65_534)
    }
    for (let i = 0; i < 3; i++)
      for (const [name, told] of [
        ['d', 'd/e/a'],
        ['f.txt', 'f.txt'],
        ['', 'd/e/a'],
      ] as const) {
        watching.clear()
        chmod(name, 0)
        await watching.until(told)
        expect(await textAt(opened, told)).toBe('!not-found')
        watching.clear()
        chmod(name, name === 'f.txt' ? 0o644 : 0o755)
        await watching.until(told)
        expect(await textAt(opened, told)).toMatch(/^[af]$/)
      }
  })
})

describe('a lack of descriptors', () => {
  test('for a while loses no change', () => {
    const names = numbered(10, (i) => `d${i}/x`)
    folder.write(treeOf(names))
    const script = bundled('tests/watch-child')
    const args = ['-c', 'ulimit -n 100; exec "$0" "$@"', process.execPath, script, 'files', folder.root]
    const { missing } = JSON.parse(execFileSync('sh', args, { encoding: 'utf8' })) as Record<string, string[]>
    expect(missing).toEqual([])
  })
})
