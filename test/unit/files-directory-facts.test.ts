import { lstatSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Place } from '../../src/providers/files/place.ts'
import { createDirectoryFacts } from '../../src/providers/files/place.ts'
import { createFolder, type Folder } from '../support/folder.ts'

describe('cached facts about the names in a directory', () => {
  let folder: Folder
  /** Added to the time of the machine, in milliseconds. */
  let later = 0
  beforeEach(() => {
    later = 3001
    folder = createFolder()
  })
  afterEach(() => folder.remove())

  const facts = () => {
    const { of, note } = createDirectoryFacts({ now: () => Date.now() + later })
    return { has: (directory: Place, fact: string) => of(directory)?.has(fact) === true, note }
  }
  const place = (local = true): Place => ({
    at: folder.root,
    stats: lstatSync(folder.root, { bigint: true }),
    ...{ local, mount: undefined, keep: () => {}, close: () => {} },
  })

  test('are valid until the directory changes', () => {
    const known = facts()
    expect(known.has(place(), 'a')).toBe(false)
    known.note(place(), 'a')
    known.note(place(), 'b')
    expect([known.has(place(), 'a'), known.has(place(), 'b'), known.has(place(), 'c')]).toEqual([true, true, false])
    writeFileSync(join(folder.root, 'new.txt'), '')
    expect([known.has(place(), 'a'), known.has(place(), 'b')]).toEqual([false, false])
    known.note(place(), 'a')
    expect(known.has(place(), 'a')).toBe(true)
    unlinkSync(join(folder.root, 'new.txt'))
    expect(known.has(place(), 'a')).toBe(false)
  })

  test('are invalid after the time of the directory was set back', () => {
    const known = facts()
    const before = place()
    known.note(before, 'a')
    writeFileSync(join(folder.root, 'new.txt'), '')
    utimesSync(folder.root, new Date(Number(before.stats.mtimeMs)), new Date(Number(before.stats.mtimeMs)))
    expect(known.has(place(), 'a')).toBe(false)
  })

  test('are not kept for a directory that has just changed, nor on a remote disk', () => {
    const known = facts()
    later = 0
    known.note(place(), 'a')
    expect(known.has(place(), 'a')).toBe(false)
    later = 3001
    known.note(place(false), 'a')
    expect([known.has(place(), 'a'), known.has(place(false), 'a')]).toEqual([false, false])
  })
})
