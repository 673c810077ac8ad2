import type { BigIntStats } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { createFileStates } from '../../src/providers/files/watch-worker.ts'

const since = 1_000_000
const at = (ms: number, size = 1): BigIntStats => {
  const [time, ns] = [BigInt(ms), BigInt(ms) * 1_000_000n]
  return { ino: 1n, size: BigInt(size), mtimeMs: time, ctimeMs: time, mtimeNs: ns, ctimeNs: ns } as BigIntStats
}
const snapshot = () => createFileStates({ names: ['a'], links: new Set() }, since)
const look = (from: number, until = from) => ({ from, until })

describe('the first stat of a file in a watched directory', () => {
  test('reports no change of a file that did not change since the watch began', () => {
    expect(snapshot().note(0, at(since - 500), false, look(since + 50))).toBeUndefined()
  })

  test('reports a change since the watch began, even without its event', () => {
    const files = snapshot()
    expect(files.note(0, at(since + 500), false, look(since + 900))).toBe('changed')
    expect(files.note(0, at(since + 500), true, look(since + 950))).toBeUndefined()
  })
})

test('a directory whose names have changed reports the names that came and went', () => {
  const files = snapshot()
  files.note(0, at(since - 500), false, look(since + 50))
  const { came, gone } = files.renew({ names: ['b', 'c/'], links: new Set() })
  expect({ came, gone }).toEqual({ came: ['b', 'c/'], gone: ['a'] })
})

describe('a second change within one tick of the clock', () => {
  test('is found by its event', () => {
    const files = snapshot()
    files.note(0, at(since - 500), false, look(since + 50))
    expect(files.note(0, at(since + 100), true, look(since + 101))).toBe('changed')
    expect(files.note(0, at(since + 100), true, look(since + 200))).toBe('changed')
  })

  test('is found if the stat was made long after the comparison began', () => {
    const files = snapshot()
    files.note(0, at(since - 500), false, look(since + 50))
    expect(files.note(0, at(since + 100), true, look(since + 60, since + 101))).toBe('changed')
    expect(files.note(0, at(since + 100), true, look(since + 200))).toBe('changed')
  })
})
