import { describe, expect, test } from 'vitest'
import { ResourceError } from '../../src/core/errors.ts'
import type { Resource, View } from '../../src/core/view.ts'
import { sortNaturally } from '../../src/explorer/web/listing/columns.ts'
import { createForest } from '../../src/explorer/web/listing/forest.ts'
import { typeName } from '../../src/explorer/web/preview/model/kind.ts'
import { matchesIn, maxMatches } from '../../src/explorer/web/preview/model/lines.ts'
import { parseLineRange } from '../../src/explorer/web/state/route.ts'

test('the tree of the explorer is sorted with folders first, then by name, with numbers in numeric order, in any letter case', () => {
  const named = (name: string, mimeType = 'text/plain'): Resource => ({ uri: `file:///a/${name}`, name, mimeType })
  const entries = [
    ...['part10.txt', 'Zebra.txt', 'part9.txt', 'apple.txt', 'README.md'].map((name) => named(name)),
    named('src', 'inode/directory'),
    named('Docs', 'inode/directory'),
  ]
  expect(sortNaturally(entries).map(({ name }) => name)).toEqual([
    ...['Docs', 'src', 'apple.txt', 'part9.txt', 'part10.txt', 'README.md', 'Zebra.txt'],
  ])
})

describe('the search in a text', () => {
  test('matches within a line, in any letter case and width, without overlaps', () => {
    expect(matchesIn(['Tea tea', 'none', 'ＴＥＡ'], 'tea')).toEqual([
      { line: 0, start: 0, end: 3 },
      { line: 0, start: 4, end: 7 },
      { line: 2, start: 0, end: 3 },
    ])
    expect(matchesIn(['aaaa'], 'aa')).toHaveLength(2)
    expect(matchesIn(['anything'], '')).toEqual([])
  })
  test('marks the right characters in a line whose normalized form is longer', () => {
    expect(matchesIn(['㍿ tea'], 'tea')).toEqual([{ line: 0, start: 2, end: 5 }])
  })
  test('finds at most a limited number of matches', () => {
    expect(matchesIn(['a'.repeat(maxMatches + 5)], 'a')).toHaveLength(maxMatches)
  })
})

test('the lines of a permalink are read as the first and last line: a number, or a range in either order', () => {
  expect([
    parseLineRange('12'),
    parseLineRange('12-20'),
    parseLineRange('20-12'),
    parseLineRange('x'),
    parseLineRange(undefined),
  ]).toEqual([{ first: 12, last: 12 }, { first: 12, last: 20 }, { first: 12, last: 20 }, undefined, undefined])
})

test('a MIME type is shown by a readable name', () => {
  const office = 'application/vnd.openxmlformats-officedocument'
  const types = ['text/typescript', `${office}.wordprocessingml.document`, 'application/json', 'text/x-python', '']
  expect(types.map((type) => typeName(type))).toEqual(['TypeScript', 'Word', 'JSON', 'Python', ''])
  const others = ['text/csv', 'image/png', 'audio/ogg', 'text/x-rust', 'application/x-tar', 'application/problem+json']
  expect(others.map((type) => typeName(type))).toEqual(['CSV', 'PNG', 'OGG', 'Rust', 'TAR', 'JSON'])
  expect(typeName('application/json', 'file:///a/demand.ipynb?x')).toBe('Notebook')
})

describe('a mount in the tree of the explorer', () => {
  const viewOf = (directory: View['directory']): View => {
    const cache = { ttlMs: 0, scope: 'private' } as const
    const none = async () => ({ items: [], cache })
    return {
      mounts: async () => [{ uri: 'memo://one', name: 'one', mimeType: 'inode/directory' }],
      ...{ list: none, templates: none, directory },
      read: async (uri) => ({ contents: [{ uri, mimeType: 'text/plain', text: 'Hello.' }], cache }),
      complete: async () => ({ values: [] }),
    }
  }
  const cache = { ttlMs: 0, scope: 'private' } as const

  test('that is a single resource is shown as that resource', async () => {
    const single = { uri: 'memo://one', name: 'one', title: 'A memo', mimeType: 'text/plain' }
    for (const items of [[single], []]) {
      const forest = createForest(
        viewOf(async () => ({ items, cache })),
        { onChange: () => {}, mayBeSingle: () => true },
      )
      await forest.start()
      expect(forest.rows).toMatchObject([{ isDirectory: false, resource: { mimeType: 'text/plain' } }])
    }
  })
  test('that holds a resource with another URI than its own is shown as a folder', async () => {
    const other = { uri: 'memo://one/a', name: 'a' }
    const forest = createForest(
      viewOf(async () => ({ items: [other], cache })),
      { onChange: () => {}, mayBeSingle: () => true },
    )
    await forest.start()
    expect(forest.rows[0]).toMatchObject({ isDirectory: true })
  })
  test('that could not be opened shows its entries after a retry when the server is back', async () => {
    let isAway = true
    const view = viewOf(async () => {
      if (isAway) throw new ResourceError('unavailable', 'away')
      return { items: [{ uri: 'memo://one/a.txt', name: 'a.txt' }], cache }
    })
    let told = () => {}
    const forest = createForest(view, { onChange: () => told() })
    await forest.start()
    const until = (kind: string) =>
      new Promise<void>((resolve) => {
        told = () => {
          if (forest.rows.some((row) => row.kind === kind && row.level === 2)) resolve()
        }
        told()
      })
    await until('failed')
    isAway = false
    const healed = until('node')
    forest.retry()
    await healed
  })
})
