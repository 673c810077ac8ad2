import { describe, expect, test } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import { ResourceError } from '../../src/core/errors.ts'
import type { View } from '../../src/core/view.ts'
import { createForest } from '../../src/explorer/web/listing/forest.ts'
import type { TreeRow } from '../../src/explorer/web/listing/rows.ts'
import { createTypeAhead, isTyped, keyEffect } from '../../src/explorer/web/tree/keys.ts'
import {
  anchorOf,
  findAnchoredRow,
  maxHeightPx,
  nearestScrollPosition,
  scrollPositionOf,
  windowOf,
} from '../../src/explorer/web/tree/use-rows.ts'
import { type Memory, memory } from '../support/memory.ts'

const principal = { id: 'reader', roles: [] }
const root = 'mem://m'

function grow(provider: Memory, change: (view: View) => View = (view) => view) {
  const view = change(createCatalog({ mounts: [{ address: root, provider }] }).view(principal))
  const forest = createForest(view, { onChange: () => {} })
  return { forest, ...provider }
}

const names = (rows: readonly TreeRow[]) =>
  rows.map(({ kind, level, resource }) => `${'  '.repeat(level - 1)}${kind === 'node' ? resource.name : kind}`)

/** Lets whatever is under way come to its end: all of it waits for promises alone. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

const numbered = (count: number, folder = '') =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`${folder}f${String(i).padStart(5, '0')}`, '']))

describe('the tree of the explorer', () => {
  test('opens the only mount at once, and requests the entries of a directory when the user opens it for the first time', async () => {
    const { forest, calls } = grow(memory({ 'a.md': '', 'b/c.md': '', 'b/d/e.md': '' }))
    await forest.start()
    await settled()
    expect(names(forest.rows)).toEqual(['m', '  b', '  a.md'])
    const before = calls.list
    forest.open(`${root}/b/`)
    expect(names(forest.rows)).toEqual(['m', '  b', '    loading', '  a.md'])
    await settled()
    expect(names(forest.rows)).toEqual(['m', '  b', '    d', '    c.md', '  a.md'])
    expect(calls.list).toBeGreaterThan(before)
    forest.close(`${root}/b/`)
    const closed = calls.list
    forest.open(`${root}/b/`)
    await settled()
    expect(names(forest.rows)).toContain('    d')
    expect(calls.list).toBe(closed)
  })

  test('gives a row its level, its position and the number of its siblings, which is -1 while it is unknown', async () => {
    const { forest } = grow(memory(numbered(1100)))
    await forest.start()
    await settled()
    const [mount, first] = forest.rows
    expect([mount?.level, mount?.position, mount?.siblings.count]).toEqual([1, 1, 1])
    expect([first?.level, first?.position, first?.siblings.count]).toEqual([2, 1, -1])
    expect(forest.rows.at(-1)?.kind).toBe('more')
    forest.more(root)
    await settled()
    expect(forest.rows.at(-1)?.position).toBe(1100)
    expect(forest.rows.at(-1)?.siblings.count).toBe(1100)
  })

  test('shows an error in the directory that failed, and lists this directory after a retry', async () => {
    let isDown = true
    const { forest } = grow(memory({ 'b/c.md': '' }), (view) => ({
      ...view,
      directory: async (query) => {
        if (isDown && query.uri !== root) throw new ResourceError('unavailable', 'away')
        return view.directory(query)
      },
    }))
    await forest.start()
    await settled()
    forest.open(`${root}/b/`)
    await settled()
    expect(names(forest.rows)).toEqual(['m', '  b', '    failed'])
    isDown = false
    forest.more(`${root}/b/`)
    await settled()
    expect(names(forest.rows)).toEqual(['m', '  b', '    c.md'])
  })

  test('shows that a directory is empty', async () => {
    const { forest } = grow(memory({ 'a/b': '' }), (view) => ({
      ...view,
      directory: async (query) => ({ ...(await view.directory(query)), items: [] }),
    }))
    await forest.start()
    await settled()
    expect(names(forest.rows)).toEqual(['m', '  empty'])
  })

  test('updates its entries, keeps directories open, and marks new and changed entries', async () => {
    const provider = memory({ 'a.md': { version: '1' }, 'b/c.md': '', 'z.md': '' })
    const { forest } = grow(provider)
    await forest.start()
    await settled()
    forest.open(`${root}/b/`)
    await settled()
    provider.entries.set('a.md', { version: '2' })
    provider.entries.set('b/new.md', { text: '' })
    provider.entries.delete('z.md')
    provider.entries.set('y.md', { text: '' })
    const changed = await forest.refresh()
    expect(names(forest.rows)).toEqual(['m', '  b', '    c.md', '    new.md', '  a.md', '  y.md'])
    expect([...changed].sort()).toEqual([`${root}/a.md`, `${root}/b/new.md`, `${root}/y.md`])
    expect(forest.rows.find(({ key }) => key === `${root}/b/`)?.isOpen).toBe(true)
    expect(await forest.reveal(`${root}/z.md`, new AbortController().signal)).toBeUndefined()
  })

  test('loads as many pages of a large directory again after a change as were shown before', async () => {
    const provider = memory(numbered(20_000))
    const { forest } = grow(provider)
    await forest.start()
    await settled()
    forest.more(root)
    await settled()
    expect(forest.rows).toHaveLength(1 + 1024 + 16_000 + 1)
    provider.entries.set('a', { text: '' })
    await forest.refresh()
    expect(forest.rows[1]?.resource.name).toBe('a')
    expect(forest.rows).toHaveLength(1 + 1024 + 16_000 + 1)
  })

  test('shows a resource in directories that were not open, and on later pages', async () => {
    const { forest } = grow(memory({ ...numbered(3000, 'deep/er/'), 'x.md': '' }))
    await forest.start()
    const { signal } = new AbortController()
    expect(await forest.reveal(`${root}/deep/er/f02900`, signal)).toBe(`${root}/deep/er/f02900`)
    const index = forest.rows.findIndex(({ key }) => key === `${root}/deep/er/f02900`)
    expect(forest.rows[index]?.position).toBe(2901)
    expect(await forest.reveal(`${root}/deep`, signal)).toBe(`${root}/deep/`)
    // The tree has the whole resource of which this is a part.
    expect(await forest.reveal(`${root}/deep/er/f02900?lines=1`, signal)).toBe(`${root}/deep/er/f02900`)
    expect(await forest.reveal(`${root}/deep/er/none`, signal)).toBeUndefined()
    expect(await forest.reveal('other://x', signal)).toBeUndefined()
  })
})

const row = (name: string, level: number, open?: boolean): TreeRow => ({
  kind: 'node',
  key: name,
  resource: { uri: name, name },
  level,
  position: 1,
  siblings: { count: -1 },
  isDirectory: open !== undefined,
  isOpen: open === true,
})

describe('the keyboard in the tree of the explorer', () => {
  const rows = [row('a', 1, true), row('b', 2), row('c', 2, false), row('d', 1, true), row('e', 2)]
  const step = (key: string, active: number) => keyEffect(key, rows, active, 3)

  test('moves up, down, by pages and to both ends, and stops at the ends', () => {
    expect(step('ArrowDown', 0)).toEqual({ to: 1 })
    expect(step('ArrowDown', 4)).toEqual({ to: 4 })
    expect(step('ArrowUp', 0)).toEqual({ to: 0 })
    expect(step('End', 0)).toEqual({ to: 4 })
    expect(step('Home', 3)).toEqual({ to: 0 })
    expect(step('PageDown', 0)).toEqual({ to: 2 })
    expect(step('PageUp', 1)).toEqual({ to: 0 })
  })

  test('opens and enters a directory with Right, and closes and leaves it with Left', () => {
    expect(step('ArrowRight', 2)).toEqual({ act: 'open' })
    expect(step('ArrowRight', 0)).toEqual({ to: 1 })
    expect(step('ArrowRight', 1)).toBeUndefined()
    expect(step('ArrowLeft', 0)).toEqual({ act: 'close' })
    expect(step('ArrowLeft', 2)).toEqual({ to: 0 })
    expect(step('ArrowLeft', 4)).toEqual({ to: 3 })
  })

  test('picks with Space, shows a preview with Enter, and opens all siblings with *', () => {
    expect([step(' ', 1), step('Enter', 1), step('*', 2)]).toEqual([
      { act: 'pick' },
      { act: 'preview' },
      { act: 'openSiblings' },
    ])
  })

  test('moves to a name that begins with the typed letters, in any form of kana; keys such as / and Enter are no letters', () => {
    const named = [row('apple', 1), row('avocado', 1), row('カタログ', 1), row('ﾊﾝｶｸ', 1), row('Banana', 1)]
    const typeAhead = createTypeAhead()
    expect(typeAhead('a', named, 0, 0)).toBe(1)
    expect(typeAhead('a', named, 1, 100)).toBe(0)
    expect(typeAhead('か', named, 0, 5000)).toBe(2)
    expect(typeAhead('は', named, 0, 9000)).toBe(3)
    expect(typeAhead('b', named, 3, 12_000)).toBe(4)
    expect(typeAhead('a', named, 4, 12_100)).toBe(4)
    expect(typeAhead('x', named, 4, 12_200)).toBeUndefined()
    const typed = { shiftKey: false, ctrlKey: false, metaKey: false, altKey: false }
    expect(['a', 'か', '/', '?', '*', ' ', 'Enter'].map((key) => isTyped({ ...typed, key }))).toEqual([
      ...[true, true, false, false, false, false, false],
    ])
    expect(isTyped({ ...typed, key: 'k', ctrlKey: true })).toBe(false)
  })
})

describe('the virtual window over many rows', () => {
  test('draws the visible rows, and a few more', () => {
    expect(windowOf(0, { top: 0, height: 600 })).toMatchObject({ first: 0, end: 0, height: 0, top: 0 })
    expect(windowOf(100_000, { top: 24_010, height: 600 })).toEqual({
      ...{ first: 988, end: 1038, height: 2_400_000, top: 988 * 24, visible: 1000, above: 10 },
    })
  })

  test('reaches every row, even if all rows exceed the maximum height of an element', () => {
    const count = 2_000_000
    const view = 600
    for (const index of [0, 1, 999_999, 1_999_970, count - 1]) {
      const top = scrollPositionOf(count, view, index)
      const { first, end, height } = windowOf(count, { top, height: view })
      expect(height).toBe(maxHeightPx)
      expect(first <= index && index < end).toBe(true)
    }
    const last = windowOf(count, { top: maxHeightPx - view, height: view })
    expect(last.end).toBe(count)
    // The last row ends where the whole does.
    expect(last.top + (count - last.first) * 24).toBeCloseTo(maxHeightPx, 3)
  })

  test('scrolls no more than needed', () => {
    const scroll = { top: 240, height: 240 }
    expect(nearestScrollPosition(1000, scroll, 12)).toBeUndefined()
    expect(nearestScrollPosition(1000, scroll, 5)).toBe(120)
    expect(nearestScrollPosition(1000, scroll, 20)).toBe(21 * 24 - 240)
  })

  test('keeps its position when rows are added and removed', () => {
    const rowsOf = (keys: readonly string[]) => ({ count: keys.length, keyOf: (index: number) => keys[index] ?? '' })
    const keys = Array.from({ length: 100 }, (_, i) => `k${i}`)
    const now = windowOf(100, { top: 50 * 24 + 7, height: 240 })
    const anchor = anchorOf(rowsOf(keys), now, 240, -1)
    expect(findAnchoredRow(rowsOf(['new', ...keys]), anchor)).toEqual({ index: 51, from: -7 })
    // What was first is gone: the next one keeps the height at which it stood.
    expect(findAnchoredRow(rowsOf(keys.filter((key) => key !== 'k50')), anchor)).toEqual({ index: 50, from: 17 })
    expect(findAnchoredRow(rowsOf(['other']), anchor)).toBeUndefined()
    // The row that the reader stands on comes before all others.
    const active = anchorOf(rowsOf(keys), now, 240, 53)
    expect(findAnchoredRow(rowsOf(keys.filter((key) => key !== 'k51')), active)).toEqual({ index: 52, from: 65 })
  })
})
