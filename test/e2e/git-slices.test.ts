import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createSlices, maxEntriesPerSlice, sortInSlices } from '../../src/core/kit/event-loop-yield.ts'
import type { Provider } from '../../src/core/provider.ts'
import { createGit } from '../../src/providers/git/index.ts'
import { type Asked, ask, context, createGitFolder, type GitFolder, type GitRepository } from '../support/git.ts'
import { commitTree, fillPlainly, rawTree, writeRaw } from '../support/git-hostile.ts'
import { volumeOf } from '../support/volume.ts'

// What is worked on at once is counted, not timed: entries (refs, names in a tree) between two turns of the event loop.

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')
const originals = { set: Map.prototype.set, add: Set.prototype.add, now: performance.now.bind(performance) }

/**
 * How far the clock goes with each slice, in milliseconds. Slices share the 8 ms of a turn, however fast the machine is, so at most
 * four are worked on in a turn: three until the time is over, and one that has begun. Between two immediates of a test lie parts of two turns.
 */
const sliceMs = 3
const slicesPerTurn = 4

let aheadMs = 0
let folder: GitFolder
let repository: GitRepository
const opened: Provider[] = []

beforeEach(() => {
  aheadMs = 0
  // Not a spy, which would hold every call in memory.
  performance.now = () => originals.now() + aheadMs
  folder = createGitFolder()
  repository = folder.repository('repository')
})

afterEach(async () => {
  performance.now = originals.now
  for (const provider of opened.splice(0)) await provider.close?.()
  folder.dispose()
})

interface Counted {
  readonly asked: Asked
  readonly provider: Provider
  /** How many entries each slice had, so far. */
  readonly slices: number[]
  /** The largest number of slices that were worked on without a turn of the event loop, in which others are handled. */
  mostAtOnce(): number
}

async function open(dateBudgetMs = 1): Promise<Counted> {
  const slices: number[] = []
  let [atOnce, most] = [0, 0]
  const onEntries = (entries: number) => {
    slices.push(entries)
    aheadMs += sliceMs
    if (atOnce === 0)
      setImmediate(() => {
        atOnce = 0
      })
    most = Math.max(most, ++atOnce)
  }
  const provider = await createGit(
    { repository: repository.dir, watch: false, timeoutMs: 60_000 },
    { maxAgeMs: 0, dateBudgetMs, onEntries },
  )
  opened.push(provider)
  return { asked: ask(provider), provider, slices, mostAtOnce: () => most }
}

function expectShort({ slices, mostAtOnce }: Counted, entries: number): void {
  const sum = slices.reduce((all, one) => all + one, 0)
  expect(sum).toBeGreaterThan(entries - maxEntriesPerSlice)
  // A few are counted at once where they are looked at together.
  expect(Math.max(...slices)).toBeLessThanOrEqual(2 * maxEntriesPerSlice)
  expect(mostAtOnce()).toBeLessThanOrEqual(2 * slicesPerTurn)
}

describe('work on very many git entries yields to other work', () => {
  const refs = volumeOf(100_000, 5 * maxEntriesPerSlice)
  const last = String(refs - 1)

  test('while very many refs are read, listed and completed', async () => {
    fillPlainly(repository)
    const commit = repository.git('rev-parse', 'HEAD')
    const names = Array.from({ length: refs }, (_, i) => `refs/heads/branch-${String(i).padStart(6, '0')}`)
    // Not in order: they have to be sorted.
    const lines = names.map((name, i) => `${commit} ${names[(i * 7919) % refs] ?? name}\n`)
    writeFileSync(join(repository.gitDir, 'packed-refs'), lines.join(''))
    const counted = await open()
    expectShort(counted, refs)
    const before = counted.slices.length
    expect(await counted.asked.text(`branch-${last.padStart(6, '0')}/a.txt`)).toBe('one\ntwo\n')
    const paths: string[] = []
    for await (const { path } of counted.provider.list({ prefix: 'refs/heads/' }, context())) {
      paths.push(path)
      if (paths.length === 3) break
    }
    expect(paths[0]).toBe('refs/heads/branch-000000/a.txt')
    const [template] = (await counted.provider.templates?.(context())) ?? []
    const completion = await counted.provider.complete?.(
      { template: template?.template ?? '', argument: { name: 'ref', value: 'branch-' }, arguments: new Map() },
      context(),
    )
    expect(completion?.total).toBe(refs)
    expect(counted.slices.length - before).toBeGreaterThan((3 * refs) / (2 * maxEntriesPerSlice))
    expectShort(counted, 4 * refs)
  }, 120_000)

  test('while a tree of very many unsorted names is read', async () => {
    fillPlainly(repository)
    const blob = repository.git('rev-parse', 'HEAD:a.txt')
    const entries = Array.from({ length: refs }, (_, i) => ['100644', `f${String((i * 7919) % refs)}`, blob] as const)
    commitTree(repository, writeRaw(repository, 'tree', rawTree(entries)), 'wide')
    const counted = await open()
    let listed = 0
    for await (const _ of counted.provider.list({ prefix: 'wide/' }, context())) if (++listed === 500) break
    expect(listed).toBe(500)
    expectShort(counted, 2 * refs)
    expect(await counted.asked.text(`wide/f${last}`)).toBe('one\ntwo\n')
  }, 120_000)
})

describe('the memory for very many git entries', () => {
  /** A map of so many entries is rebuilt in one step when it grows: about 5 ms. One of 300,000 takes ten times as long. */
  const maxInOneMap = 65_536
  /** More than may be in one map. */
  const many = 90_000

  /** Runs something, and answers the size of the largest map or set that was added to meanwhile. */
  const largestMap = async (run: () => Promise<void>): Promise<number> => {
    let largest = 0
    // Not spies, which would hold every call in memory.
    Map.prototype.set = function (key, value) {
      originals.set.call(this, key, value)
      largest = Math.max(largest, this.size)
      return this
    }
    Set.prototype.add = function (value) {
      originals.add.call(this, value)
      largest = Math.max(largest, this.size)
      return this
    }
    try {
      await run()
      return largest
    } finally {
      Map.prototype.set = originals.set
      Set.prototype.add = originals.add
    }
  }

  const memory = () => {
    // The second collection waits until what the first one found is taken from the count of buffers.
    collectGarbage()
    collectGarbage()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return { heapUsed, arrayBuffers }
  }

  test('is at most 250 bytes for each ref outside the heap and 20 on the heap, and in no map of over 65,536 entries', async () => {
    fillPlainly(repository)
    const commit = repository.git('rev-parse', 'HEAD')
    const lines = Array.from({ length: many }, (_, i) => `${commit} refs/heads/branch-${(i * 7919) % many}\n`)
    writeFileSync(join(repository.gitDir, 'packed-refs'), lines.join(''))
    lines.length = 0
    const before = memory()
    const largest = await largestMap(async () => {
      const { asked, provider } = await open()
      expect(await asked.text(`branch-${many - 1}/a.txt`)).toBe('one\ntwo\n')
      for await (const { path } of provider.list({ prefix: 'refs/heads/' }, context())) {
        expect(path).toBe('refs/heads/branch-0/a.txt')
        break
      }
    })
    expect(largest).toBeLessThan(maxInOneMap)
    const after = memory()
    expect(after.heapUsed - before.heapUsed).toBeLessThan(20 * many)
    expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(250 * many)
  }, 120_000)

  test('for the files and dates of a tree is in no map of over 65,536 entries, and at most 20 bytes for each file are on the heap', async () => {
    fillPlainly(repository)
    const blob = repository.git('rev-parse', 'HEAD:a.txt')
    const tree = rawTree(Array.from({ length: many }, (_, i) => ['100644', `f${(i * 7919) % many}`, blob] as const))
    const sorted = repository.feed(
      Array.from({ length: many }, (_, i) => `100644 blob ${blob}\tf${i}\n`).join(''),
      'mktree',
    )
    commitTree(repository, writeRaw(repository, 'tree', tree), 'wide')
    commitTree(repository, sorted, 'ordered')
    const { provider, asked } = await open(60_000)
    const listed = async (prefix: string) => {
      for await (const entry of provider.list({ prefix }, context())) return entry
      return undefined
    }
    const before = memory()
    expect(await asked.text(`wide/f${many - 1}`)).toBe('one\ntwo\n')
    expect(memory().heapUsed - before.heapUsed).toBeLessThan(20 * many)
    const largest = await largestMap(async () => {
      expect((await listed('wide/'))?.path).toBe('wide/f0')
      expect((await listed('ordered/'))?.modified).toBeDefined()
    })
    expect(largest).toBeLessThan(maxInOneMap)
  }, 120_000)
})

describe('sorting in time slices', () => {
  test('gives the same order as Array.sort, for random orders and any length', async () => {
    for (const length of [0, 1, 2, maxEntriesPerSlice, maxEntriesPerSlice + 1, 5 * maxEntriesPerSlice + 17]) {
      let state = length + 1
      const random = () => {
        state = (state * 1_103_515_245 + 12_345) & 0x7fffffff
        return state >> 8
      }
      const items = Array.from({ length }, (_, i) => ({ key: random() % 1000, i }))
      const compare = (a: { key: number }, b: { key: number }) => a.key - b.key
      const slices: number[] = []
      const sorted = await sortInSlices(
        items,
        compare,
        createSlices((entries) => slices.push(entries)),
      )
      expect(sorted).toEqual([...items].sort(compare))
      expect(Math.max(0, ...slices)).toBeLessThanOrEqual(2 * maxEntriesPerSlice)
    }
  })
})
