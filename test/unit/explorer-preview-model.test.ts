import fc from 'fast-check'
import hljs from 'highlight.js/lib/common'
import { describe, expect, test } from 'vitest'
import { overviewOf, siblingTableUri, tableUri } from '../../src/explorer/web/preview/model/documents.ts'
import { shapeOf } from '../../src/explorer/web/preview/model/kind.ts'
import { placeTables } from '../../src/explorer/web/preview/model/layout.ts'
import {
  addedLines,
  parseHighlightedLines,
  parsePreviewPart,
  queryAround,
  splitLines,
} from '../../src/explorer/web/preview/model/lines.ts'
import { isOpenAtFirst, jsonRows, parseLines, tabulateObjects } from '../../src/explorer/web/preview/model/rows.ts'
import { hexRow } from '../../src/explorer/web/preview/notes.tsx'
import { gitLogOf } from '../../src/explorer/web/preview/records.tsx'

describe('the rows of a JSON document', () => {
  test('are in document order, with JSON pointers', () => {
    const rows = jsonRows({ 'a/b': [1, { '~': null }], c: 'x' }, () => true)
    expect(rows.map(({ pointer, depth, kind }) => [pointer, depth, kind])).toEqual([
      ['', 0, 'object'],
      ['/a~1b', 1, 'array'],
      ['/a~1b/0', 2, 'number'],
      ['/a~1b/1', 2, 'object'],
      ['/a~1b/1/~0', 3, 'null'],
      ['/c', 1, 'string'],
    ])
    expect(rows[4]).toMatchObject({ position: 1, siblings: 1, name: '~', text: 'null' })
  })

  test('are at first limited to those near the root and to short lists', () => {
    const rows = jsonRows({ short: [1, 2], long: Array(100).fill(0) }, isOpenAtFirst)
    expect(rows.map(({ pointer }) => pointer)).toEqual(['', '/short', '/short/0', '/short/1', '/long'])
    expect(jsonRows(Array(100).fill([1]), isOpenAtFirst)).toHaveLength(101)
  })

  test('are made of a document with 20,000 levels', () => {
    let deep: unknown = 0
    for (let level = 0; level < 20_000; level++) deep = [deep]
    expect(jsonRows(deep, () => true)).toHaveLength(20_001)
  })
})

describe('JSON Lines', () => {
  test('are values: a line that is not JSON stays a text, and an empty line is skipped', () => {
    expect(parseLines('{"a":1}\r\n\nnot json\n')).toEqual([{ a: 1 }, 'not json'])
  })

  test('are a table with the names of all objects, if all lines are objects', () => {
    expect(
      tabulateObjects([
        { a: 1, b: 'x' },
        { a: null, c: [2] },
      ]),
    ).toEqual([
      ['a', 'b', 'c'],
      ['1', 'x', ''],
      ['', '', '[2]'],
    ])
    expect(tabulateObjects([{ a: 1 }, 2])).toBeUndefined()
    const logged = [...Array.from({ length: 300 }, () => ({ level: 'info' })), { level: 'error', error: 'full' }]
    expect(tabulateObjects(logged)).toMatchObject({ 0: ['level', 'error'], 301: ['error', 'full'] })
  })
})

describe('the diff of two texts', () => {
  test('marks the new lines', () => {
    expect(addedLines(['a', 'b', 'c'], ['a', 'x', 'c', 'd'])).toEqual(new Set([1, 3]))
    expect(addedLines(['a'], ['a'])).toEqual(new Set())
  })

  test('leaves only lines unmarked that both texts have in the same order', () => {
    const lines = fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 12 })
    fc.assert(
      fc.property(lines, lines, (before, after) => {
        const changed = addedLines(before, after)
        const kept = after.filter((_, index) => !changed.has(index))
        let at = 0
        for (const line of before) if (line === kept[at]) at++
        expect(at).toBe(kept.length)
      }),
    )
  })

  test('of long texts without common lines marks all lines', () => {
    const before = Array.from({ length: 5000 }, (_, index) => `a${index}`)
    expect(
      addedLines(
        before,
        before.map((line) => `${line}x`),
      ).size,
    ).toBe(5000)
  })
})

describe('highlighting a text', () => {
  test('keeps the text, line by line', () => {
    const code = 'const a = `x\n<b>&amp;"\'`\n/* c\n d */ f(1)\n'
    const lines = parseHighlightedLines(hljs.highlight(code, { language: 'typescript' }).value)
    expect(lines.map((line) => line.map(([text]) => text).join('')).join('\n')).toBe(code)
    expect(lines[3]?.[0]).toEqual([' d */', 'hljs-comment'])
  })
})

test('a git log is previewed as commits and other lines', () => {
  const text = [
    'Log of HEAD at 9f8e7d6c5b4a, newest first.',
    '9f8e7d6c5b4a 2026-11-20T10:00:00+09:00 Ada Lovelace (HEAD, main): Add: the loom (again)',
    '1a2b3c4d5e6f 2026-11-19T09:00:00Z 花子: 直す',
    '[cut: 3 more commits]',
    '',
  ].join('\n')
  expect(shapeOf({ uri: 'git://app/log?limit=2', mimeType: 'text/plain', text }).kind).toBe('log')
  expect(gitLogOf(text)).toEqual({
    title: 'Log of HEAD at 9f8e7d6c5b4a, newest first.',
    commits: [
      {
        id: '9f8e7d6c5b4a',
        date: '2026-11-20T10:00:00+09:00',
        author: 'Ada Lovelace',
        names: 'HEAD, main',
        subject: 'Add: the loom (again)',
      },
      { id: '1a2b3c4d5e6f', date: '2026-11-19T09:00:00Z', author: '花子', subject: '直す' },
    ],
    notes: ['[cut: 3 more commits]'],
  })
  expect(gitLogOf('Log of nothing')).toBeUndefined()
})

test('binary data is previewed in rows of sixteen bytes', () => {
  const bytes = Uint8Array.from({ length: 18 }, (_, index) => index + 0x3c)
  expect(hexRow(bytes, 0)).toEqual({
    offset: '00000000',
    bytes: '3c 3d 3e 3f 40 41 42 43  44 45 46 47 48 49 4a 4b',
    text: '<=>?@ABCDEFGHIJK',
  })
  expect(hexRow(bytes, 1)).toMatchObject({ offset: '00000010', text: 'LM' })
})

test('a previewed text is split into lines at LF and CRLF', () => {
  expect(splitLines('a\r\nb\n\nc\n')).toEqual(['a', 'b', '', 'c'])
  expect(splitLines('')).toEqual([''])
})

test('a search hit is previewed with 40 lines around it, and a part of a text leads to the next part only by a query for lines', () => {
  expect(queryAround({ first: 10, last: 12 })).toBe('lines=1-52')
  expect(parsePreviewPart({ unit: 'lines', first: 1, last: 9, next: 'lines=10-' })?.next).toBe('lines=10-')
  expect(parsePreviewPart({ unit: 'lines', first: 1, last: 9, next: 'as=html' })?.next).toBeUndefined()
  expect(parsePreviewPart('x')).toBeUndefined()
})

describe('the diagram of a database', () => {
  const table = (name: string) => ({ table: name, kind: 'table', columns: 3, primaryKey: ['id'] })
  const link = (from: string, to: string) => ({
    from: { table: from, columns: [`${to}_id`] },
    to: { table: to, columns: ['id'] },
  })
  const names = Array.from({ length: 150 }, (_, index) => `t${index}`)
  const overview = overviewOf({
    tables: [...names, 'alone'].map(table),
    relations: [
      ...names.slice(1).map((name, index) => link(name, `t${Math.floor(index / 3)}`)),
      link('t0', 't5'),
      link('t1', 't1'),
    ],
  })

  test('has every table at a place of its own', () => {
    const { boxes, width, height } = placeTables(overview ?? { schema: undefined, tables: [], links: [] })
    const all = [...boxes.values()]
    expect(all).toHaveLength(151)
    for (const [index, a] of all.entries())
      for (const b of all.slice(index + 1)) {
        const apart = a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y
        expect(apart, `${a.table.name} and ${b.table.name}`).toBe(true)
      }
    expect(all.every(({ x, y }) => x >= 0 && y >= 0 && x < width && y < height)).toBe(true)
  })

  test('links to the pages of its tables', () => {
    expect(tableUri('sqlite://shop/overview', { schema: undefined, name: 'a/b~' }, undefined)).toBe(
      'sqlite://shop/a~2fb~7e/schema',
    )
    expect(tableUri('postgres://h/db/overview', { schema: 'public', name: '注文' }, undefined)).toBe(
      'postgres://h/db/public/%E6%B3%A8%E6%96%87/schema',
    )
    expect(tableUri('postgres://h/db/public/overview', { schema: 'public', name: 'a' }, 'public')).toBe(
      'postgres://h/db/public/a/schema',
    )
    const own = { uri: 'postgres://h/db/public/orders/schema', schema: 'public' }
    expect(siblingTableUri(own, { schema: 'audit', name: 'log' })).toBe('postgres://h/db/audit/log/schema')
    expect(
      siblingTableUri({ uri: 'sqlite://shop/a/schema', schema: undefined }, { schema: undefined, name: 'b' }),
    ).toBe('sqlite://shop/b/schema')
  })
})
