import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { deflateSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Provider } from '../../src/core/provider.ts'
import { createGit } from '../../src/providers/git/index.ts'
import { outcome } from '../support/folder.ts'
import { type Asked, ask, createGitFolder, type GitFolder, type GitRepository } from '../support/git.ts'
import { commitTree, fakeGit, fillPlainly, processesWith, rawTree, writeRaw } from '../support/git-hostile.ts'
import { watchChildren } from './harness/child-memory.ts'

// Builds pack files by hand, see gitformat-pack(5). Ids of objects that are too large to hash are invented.

/** Returns the type and size of an object in the format of a pack. */
function headerOf(type: number, size: number): Buffer {
  const bytes: number[] = []
  let rest = Math.floor(size / 16)
  let byte = type * 16 + (size % 16)
  for (; rest > 0; rest = Math.floor(rest / 128)) {
    bytes.push(byte + 128)
    byte = rest % 128
  }
  return Buffer.from([...bytes, byte])
}

/** Returns the distance to the base of a delta in the format of a pack. */
function offsetOf(distance: number): Buffer {
  const bytes = [distance % 128]
  for (let rest = Math.floor(distance / 128); rest > 0; rest = Math.floor(rest / 128)) {
    rest--
    bytes.unshift(128 + (rest % 128))
  }
  return Buffer.from(bytes)
}

function sizeOf(size: number): Buffer {
  const bytes: number[] = []
  for (let rest = size; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return Buffer.from([...bytes, rest])
    bytes.push(128 + (rest % 128))
  }
}

type Copy = readonly [at: number, length: number]
const maxCopy = 0xffffff

function copyOf([at, length]: Copy): Buffer {
  const little = (value: number, count: number) =>
    Array.from({ length: count }, (_, i) => Math.floor(value / 256 ** i) % 256)
  return Buffer.from([0xff, ...little(at, 4), ...little(length, 3)])
}

/** Returns a delta that copies parts of its base. */
function deltaOf(baseSize: number, copies: readonly Copy[]): Buffer {
  const size = copies.reduce((sum, [, length]) => sum + length, 0)
  return Buffer.concat([sizeOf(baseSize), sizeOf(size), ...copies.map(copyOf)])
}

/** Copies the whole base twice. */
function twice(size: number): readonly Copy[] {
  const once: Copy[] = []
  for (let at = 0; at < size; at += maxCopy) once.push([at, Math.min(maxCopy, size - at)])
  return [...once, ...once]
}

/**
 * Adds a pack to a repository in which a blob of 1,000 bytes is a delta of one of `2 ** doublings` MiB, which is a delta of one
 * of half that size, and so on.
 * @returns The id of the small blob, and the length of the pack.
 */
function packDeltaBomb(repository: GitRepository, doublings: number): { readonly oid: string; readonly bytes: number } {
  const objects: { readonly oid: string; readonly at: number; readonly data: Buffer }[] = []
  let end = 12
  const put = (oid: string, type: number, content: Buffer, base?: number): number => {
    const at = end
    const distance = base === undefined ? [] : [offsetOf(at - base)]
    const data = Buffer.concat([headerOf(type, content.length), ...distance, deflateSync(content)])
    objects.push({ oid, at, data })
    end += data.length
    return at
  }
  const idOf = (number: number) => number.toString(16).padStart(40, '0')
  let size = 1024 * 1024
  let base = put(idOf(1), 3, Buffer.alloc(size, 'a'))
  for (let i = 0; i < doublings; i++) {
    base = put(idOf(i + 2), 6, deltaOf(size, twice(size)), base)
    size *= 2
  }
  const oid = 'ab'.repeat(20)
  put(oid, 6, deltaOf(size, [[0, 1000]]), base)

  const number = (value: number) => {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32BE(value)
    return bytes
  }
  const body = Buffer.concat([
    Buffer.from('PACK'),
    number(2),
    number(objects.length),
    ...objects.map(({ data }) => data),
  ])
  const hashOf = (bytes: Buffer) => createHash('sha1').update(bytes).digest()
  const sorted = [...objects].sort((a, b) => (a.oid < b.oid ? -1 : 1))
  const fan = Array.from({ length: 256 }, (_, first) =>
    number(sorted.filter((one) => Number.parseInt(one.oid.slice(0, 2), 16) <= first).length),
  )
  const index = Buffer.concat([
    Buffer.from([0xff, 0x74, 0x4f, 0x63]),
    number(2),
    ...fan,
    ...sorted.map((one) => Buffer.from(one.oid, 'hex')),
    // Reading does not verify the checksums in an index of a pack.
    ...sorted.map(() => number(0)),
    ...sorted.map(({ at }) => number(at)),
    hashOf(body),
  ])
  const path = join(repository.gitDir, 'objects/pack', `pack-${hashOf(body).toString('hex')}`)
  writeFileSync(`${path}.pack`, Buffer.concat([body, hashOf(body)]))
  writeFileSync(`${path}.idx`, Buffer.concat([index, hashOf(index)]))
  return { oid, bytes: body.length + 20 }
}

// What a repository can make git take of the machine: memory, time and disk.

let folder: GitFolder
let repository: GitRepository
const opened: Provider[] = []

beforeEach(() => {
  folder = createGitFolder()
  repository = folder.repository('repository')
})

afterEach(async () => {
  for (const provider of opened.splice(0)) await provider.close?.()
  folder.dispose()
})

async function open(options: { readonly git?: string; readonly timeoutMs?: number } = {}): Promise<Asked> {
  const provider = await createGit({ repository: repository.dir, ...options }, { maxAgeMs: 0 })
  opened.push(provider)
  return ask(provider)
}

/** 2 GiB are made on the way to a file of 1,000 bytes: without a limit, git takes 3.6 GiB for it. */
const doublings = 11
/** The limits are 1 GiB, and 256 MiB for what reads objects; what git maps of files comes on top of it. */
const [mostOfAll, mostOfObjects] = [1300, 400]

describe.runIf(process.platform === 'linux')('the memory of git processes', () => {
  /** A branch with the bomb as `bomb.txt`. */
  const plantBomb = () => {
    fillPlainly(repository)
    const { oid, bytes } = packDeltaBomb(repository, doublings)
    expect(bytes).toBeLessThan(64 * 1024)
    commitTree(repository, writeRaw(repository, 'tree', rawTree([['100644', 'bomb.txt', oid]])), 'bomb')
  }

  test('stays below its limit when a file made from a gigantic delta is refused as too large, and other files are read meanwhile (GT26)', async () => {
    plantBomb()
    const memory = watchChildren(/cat-file/)
    try {
      // A busy machine may take long: the limit of memory must end the read, not the time-out.
      const asked = await open({ timeoutMs: 50_000 })
      const bombs = Array.from({ length: 3 }, () => outcome(asked.read('bomb/bomb.txt')))
      const others = Array.from({ length: 20 }, () => asked.text('HEAD/a.txt'))
      expect(new Set(await Promise.all(others))).toEqual(new Set(['one\ntwo\n']))
      expect(new Set(await Promise.all(bombs))).toEqual(new Set(['too-large']))
      expect(await outcome(asked.read('bomb/bomb.txt'))).toBe('too-large')
      expect(await asked.text('HEAD/dir/b.txt')).toBe('b\n')
      expect(memory.peak()).toBeGreaterThan(0)
      expect(memory.peak()).toBeLessThan(mostOfObjects)
    } finally {
      memory.stop()
    }
  })

  test('stays below its limit when a diff, a commit and a blame of a gigantic file are refused as too large (GT26)', async () => {
    plantBomb()
    const memory = watchChildren(/git/)
    try {
      const asked = await open({ timeoutMs: 60_000 })
      const paths = ['commits/bomb', 'diff/HEAD/bomb', 'blame/bomb/bomb.txt']
      for (const path of paths) expect(await outcome(asked.read(path)), path).toBe('too-large')
      expect(await asked.text('log', { ref: 'bomb' })).toContain('made by hand')
      expect(await asked.text('HEAD/a.txt')).toBe('one\ntwo\n')
      expect(memory.peak()).toBeLessThan(mostOfAll)
    } finally {
      memory.stop()
    }
  }, 240_000)

  test('is limited, as are the size of the files that they write, their core dumps, and the CPU time of a process for one request (GT34)', async () => {
    fillPlainly(repository)
    const limits: string[] = []
    const mark = `TRAP=${folder.path}/limits`
    const git = fakeGit(
      folder,
      'fake',
      `case " $* " in *" log "*|*" cat-file --batch "*) ${mark} exec sleep 600 ;; esac\nexec "$REAL" "$@"`,
    )
    const asked = await open({ git, timeoutMs: 60_000 })
    const calls = [outcome(asked.read('log')), outcome(asked.read('HEAD/a.txt'))]
    await expect.poll(() => processesWith(mark).length, { timeout: 20_000, interval: 10 }).toBe(2)
    for (const pid of processesWith(mark)) limits.push(readFileSync(`/proc/${pid}/limits`, 'latin1'))
    for (const text of limits) {
      expect(text).toMatch(/^Max data size\s+\d+\s+\d+\s+bytes/m)
      expect(text).toMatch(/^Max file size\s+1048576\s+1048576\s+bytes/m)
      expect(text).toMatch(/^Max core file size\s+0\s+0\s+bytes/m)
    }
    expect(limits.filter((text) => /^Max cpu time\s+61\s+61\s+seconds/m.test(text))).toHaveLength(1)
    await opened.at(-1)?.close?.()
    expect(await Promise.all(calls)).toEqual(['unavailable', 'unavailable'])
  })
})

describe('a gigantic git index', () => {
  const mebibyte = 1024 * 1024
  let temporary: string
  let before: string | undefined

  beforeEach(() => {
    temporary = join(folder.path, 'temporary')
    mkdirSync(temporary)
    before = process.env.TMPDIR
    process.env.TMPDIR = temporary
  })
  afterEach(() => {
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
  })

  /** How long all files below the folder for temporary files are, in bytes. */
  const written = () =>
    readdirSync(temporary, { recursive: true, encoding: 'utf8' })
      .map((name) => lstatSync(join(temporary, name), { throwIfNoEntry: false }))
      .reduce((sum, stats) => sum + (stats?.isFile() === true ? stats.size : 0), 0)

  const sparse = (path: string, bytes: number) => {
    writeFileSync(path, 'DIRC')
    truncateSync(path, bytes)
  }

  test('among the shared indexes is not copied, and the status is answered (BM09)', async () => {
    fillPlainly(repository)
    for (let i = 0; i < 8; i++) sparse(join(repository.gitDir, `sharedindex.${String(i).repeat(40)}`), 500 * mebibyte)
    const asked = await open()
    expect(await asked.text('status')).toContain('modified a.txt')
    expect(written()).toBeLessThan(10 * mebibyte)
  })

  test('or a gigantic shared index makes the status unavailable, and files are still read (BM09)', async () => {
    fillPlainly(repository)
    repository.git('update-index', '--split-index')
    const shared = readdirSync(repository.gitDir).find((name) => name.startsWith('sharedindex.')) ?? ''
    const asked = await open()
    expect(await asked.text('status')).toContain('modified a.txt')
    expect(await asked.text('status')).not.toContain('dir/b.txt')
    truncateSync(join(repository.gitDir, shared), 500 * mebibyte)
    expect(await outcome(asked.read('status'))).toBe('unavailable')
    sparse(join(repository.gitDir, 'index'), 500 * mebibyte)
    expect(await outcome(asked.read('status'))).toBe('unavailable')
    expect(written()).toBeLessThan(10 * mebibyte)
    expect(await asked.text('HEAD/a.txt')).toBe('one\ntwo\n')
  })
})
