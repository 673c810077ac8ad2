import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Provider } from '../../src/core/provider.ts'
import { createFiles, type FilesOptions, files } from '../../src/providers/files/index.ts'
import { createPool, type Pool } from '../../src/providers/files/place.ts'
import {
  contextOf,
  createFolder,
  type Folder,
  listAll,
  listPaths,
  openBelow,
  sleep,
  textAt,
} from '../support/folder.ts'
import { requires } from '../support/require.ts'
import { startWatching } from '../support/watching.ts'

let folder: Folder
const opened: Provider[] = []
const mounted: string[] = []

beforeEach(() => {
  folder = createFolder()
  folder.write({ 'f.txt': 'inside', 'm/under': 'covered' })
  fs.writeFileSync(`${folder.outside}/secret`, 'CANARY-77b1e0')
})
afterEach(async () => {
  for (const provider of opened.splice(0)) await provider.close?.()
  await expect.poll(() => openBelow(folder.root), { message: 'no descriptor is left open' }).toEqual([])
  for (const at of mounted.splice(0).reverse()) execFileSync('umount', ['-l', at])
  folder.remove()
})

async function open(options: Partial<FilesOptions> = {}): Promise<Provider> {
  const provider = await files({ root: folder.root, ...options })
  opened.push(provider)
  return provider
}

function mount(at: string, ...args: string[]) {
  execFileSync('mount', [...args, folder.at(at)])
  mounted.push(folder.at(at))
}

const run = (command: string, ...args: string[]) => spawnSync(command, args, { stdio: 'ignore' }).status === 0

const canMount = run('unshare', '-m', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt')
requires(
  'mounts',
  canMount && process.getuid?.() === 0,
  'only root may mount',
)('with file systems inside the root,', () => {
  test('mounted file systems are absent, also those of the same device, unless they are allowed (PT26)', async () => {
    mount('m', '-t', 'tmpfs', 'tmpfs')
    folder.write({ 'm/in-tmpfs': 'x', 'b/covered': 'x' })
    mount('b', '--bind', folder.outside)
    const provider = await open()
    expect(await listPaths(provider)).toEqual(['f.txt'])
    for (const path of ['m/in-tmpfs', 'm/under', 'b/secret', 'b/covered'])
      expect(await textAt(provider, path), path).toBe('!not-found')
    for (const path of ['m/', 'b/'])
      await expect(provider.stat?.(path, contextOf()), path).rejects.toMatchObject({ kind: 'not-found' })
    const allowed = await open({ allowMounts: true })
    expect(await listPaths(allowed)).toEqual(['b/secret', 'f.txt', 'm/in-tmpfs'])
    expect(await textAt(allowed, 'm/in-tmpfs')).toBe('x')
  })

  test('files of /proc, whose size is 0, are absent (PT32)', async () => {
    folder.write({ 'p/x': '', version: '' })
    mount('p', '-t', 'proc', 'proc')
    mount('version', '--bind', '/proc/version')
    expect(fs.statSync(folder.at('version'))).toMatchObject({ size: 0 })
    const provider = await open()
    expect(await listPaths(provider)).toEqual(['f.txt', 'm/under'])
    for (const path of ['version', 'p/version', 'p/self/environ', 'p/kmsg'])
      expect(await textAt(provider, path), path).toBe('!not-found')
  })

  test('a root that is unmounted and mounted again is opened again by its path, with its changes reported, but not through a link (PT26)', async () => {
    mount('m', '-t', 'tmpfs', 'tmpfs')
    folder.write({ 'm/old': 'old' })
    const root = folder.at('m')
    const provider = await open({ root, reconcile: 200 })
    const watching = await startWatching(provider)
    expect(await listPaths(provider)).toEqual(['old'])
    const unmount = () => execFileSync('umount', ['-l', mounted.pop() ?? ''])
    const paths = () => listPaths(provider).catch((error: { kind: string }) => error.kind)
    const read = (path: string) => textAt(provider, path)
    unmount()
    await expect.poll(paths, { timeout: 20_000 }).toEqual(['under'])
    expect(await read('old')).toBe('!not-found')
    watching.clear()
    mount('m', '-t', 'tmpfs', 'tmpfs')
    folder.write({ 'm/new': 'new' })
    await expect.poll(paths, { timeout: 20_000 }).toEqual(['new'])
    expect([await read('new'), await read('under')]).toEqual(['new', '!not-found'])
    // A new file system often gets the device number of the last one. Either everything has changed, or each file is told.
    const told = () => watching.changes.map(({ path }) => path)
    await expect
      .poll(() => told().includes(undefined) || ['new', 'old'].every((path) => told().includes(path)), {
        timeout: 20_000,
      })
      .toBe(true)
    watching.clear()
    folder.write({ 'm/later': 'later' })
    await watching.until('later')
    // A link in its place leads elsewhere, and is not followed.
    unmount()
    fs.renameSync(root, `${root}-was`)
    fs.symlinkSync(folder.outside, root)
    await expect.poll(paths, { timeout: 20_000 }).toBe('unavailable')
    expect(await read('secret')).toBe('!unavailable')
    await watching.stop()
  })

  test('in a root with mounted file systems, unknown names are looked up in the thread pool (PT44)', async () => {
    const paths = Array.from({ length: 60 }, (_, index) => `d${index}/f.txt`)
    folder.write(Object.fromEntries(paths.map((path) => [path, 'near'])))
    mount('m', '-t', 'tmpfs', 'tmpfs')
    let calls = 0
    const pool = createPool()
    const counting: Pool = {
      run: (call, terms) => {
        calls++
        return pool.run(call, terms)
      },
    }
    const provider = await createFiles({ root: folder.root, watch: false, gitignore: false }, { pool: counting })
    opened.push(provider)
    for (const path of paths) {
      const before = calls
      expect(await textAt(provider, path)).toBe('near')
      // The directory, and the file in it.
      expect(calls - before, path).toBeGreaterThanOrEqual(2)
    }
  })

  test('device files are absent (PT28)', async () => {
    const devices = {
      zero: ['c', '1', '5'],
      random: ['c', '1', '9'],
      tty: ['c', '5', '0'],
      none: ['c', '250', '250'],
      block: ['b', '7', '0'],
    }
    for (const [name, numbers] of Object.entries(devices))
      execFileSync('mknod', ['-m', '666', folder.at(name), ...numbers])
    const provider = await open()
    expect(await listPaths(provider)).toEqual(['f.txt', 'm/under'])
    for (const name of Object.keys(devices)) {
      expect(await textAt(provider, name), name).toBe('!not-found')
    }
  })
})

/** Mounts a FUSE file system, and answers nothing that the kernel asks. The connection ends with the process. */
const deafMount = `
import ctypes, os, sys, time
fd = os.open('/dev/fuse', os.O_RDWR)
options = ('fd=%d,rootmode=40000,user_id=0,group_id=0' % fd).encode()
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(b'deaf', os.fsencode(sys.argv[1]), b'fuse', 0, options) != 0: sys.exit(1)
os.write(1, b'mounted')
time.sleep(20)
`
const canFuse =
  canMount &&
  fs.existsSync('/dev/fuse') &&
  run('python3', '-c', 'import ctypes, os; os.close(os.open("/dev/fuse", os.O_RDWR))')
requires(
  'fuse',
  canFuse,
  'root, /dev/fuse and python3 are needed for a mount that never answers',
)('with a file system that never answers,', () => {
  let daemon: ChildProcess
  beforeEach(async () => {
    daemon = spawn('python3', ['-c', deafMount, folder.at('m')], { stdio: ['ignore', 'pipe', 'inherit'] })
    mounted.push(folder.at('m'))
    await once(daemon.stdout!, 'data')
  })
  // Before the hook above: the calls that wait end with the connection.
  afterEach(async () => {
    daemon.kill('SIGKILL')
    await once(daemon, 'exit')
  })

  test('a hanging file system inside a root is not accessed if mounts are not served (PT44)', async () => {
    const provider = await open()
    expect(await listPaths(provider)).toEqual(['f.txt'])
    expect(await textAt(provider, 'm/anything')).toBe('!not-found')
    expect(await textAt(provider, 'f.txt')).toBe('inside')
  })

  test('a hanging file system delays a call until its deadline, and no other call (PT44)', async () => {
    const provider = await open({ allowMounts: true })
    const beside = createFolder()
    beside.write({ 'g.txt': 'beside' })
    const other = await files({ root: beside.root })
    const delay = monitorEventLoopDelay({ resolution: 5 })
    delay.enable()
    const calls = [0, 1, 2, 3].flatMap(() => {
      const context = contextOf(AbortSignal.timeout(400))
      const read = provider.read({ path: 'm/x', params: new Map() }, context)
      return [read, listAll(provider, {}, context)]
    })
    const settled = Promise.allSettled(calls)
    await sleep(50)
    for (let i = 0; i < 20; i++) {
      expect(await textAt(other, 'g.txt')).toBe('beside')
      expect(await listPaths(other)).toEqual(['g.txt'])
    }
    const results = await settled
    expect(results.map(({ status }) => status)).toEqual(calls.map(() => 'rejected'))
    delay.disable()
    // Held by the mount, it would be for 20 s.
    expect(delay.max / 1e6).toBeLessThan(10_000)
    await other.close?.()
    beside.remove()
  })
})
