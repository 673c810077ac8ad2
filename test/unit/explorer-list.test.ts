import { describe, expect, test } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import { ResourceError } from '../../src/core/errors.ts'
import { splitFilterWords } from '../../src/core/kit/matching.ts'
import { splitAtMarks } from '../../src/core/search-answer.ts'
import type { Resource, View } from '../../src/core/view.ts'
import {
  createColumns,
  createResourceList,
  readableUri,
  sortedIndexes,
} from '../../src/explorer/web/listing/columns.ts'
import { parseTimeOrAge, type RowFilters, select, treeOfMatches } from '../../src/explorer/web/listing/select.ts'
import { findWordRanges } from '../../src/explorer/web/tree/tree-row.tsx'
import { escapeInvisible, truncateStart } from '../../src/explorer/web/words/texts.ts'
import { memory } from '../support/memory.ts'

const mounts: readonly Resource[] = [
  { uri: 'file:///a', name: 'a' },
  { uri: 'mem://b', name: 'b', title: 'B' },
]
const now = Date.parse('2026-06-01T00:00:00Z')
const day = 86_400_000

function columnsOf(resources: readonly Resource[]) {
  const columns = createColumns(mounts)
  columns.add(resources)
  return columns
}

const columns = columnsOf([
  { uri: 'file:///a/readme.md', name: 'readme.md', mimeType: 'text/markdown', priority: 1, modified: now - day / 2 },
  { uri: 'file:///a/src/main.ts', name: 'main.ts', mimeType: 'text/typescript', size: 10, modified: now - 3 * day },
  { uri: 'file:///a/src/part%2010.md', name: 'part 10.md', mimeType: 'text/markdown', size: 30 },
  { uri: 'file:///a/src/part%209.md', name: 'part 9.md', mimeType: 'text/markdown', size: 20, audience: ['user'] },
  { uri: 'mem://b/%E8%A3%BD%E5%93%81/カタログ', name: 'カタログ', audience: ['assistant'], priority: 0.5 },
])
const natural = sortedIndexes(columns, undefined)
const fitting = (selection: RowFilters) =>
  [...select(columns, natural, selection, now).rows].map((row) => columns.resources[row]?.name)

describe('the filter of the list in the explorer', () => {
  test('matches parts of the name and of the path, in any width and letter case', () => {
    expect(fitting({ filter: 'MAIN' })).toEqual(['main.ts'])
    expect(fitting({ filter: 'ｍａｉｎ' })).toEqual(['main.ts'])
    expect(fitting({ filter: 'ｶﾀﾛｸﾞ' })).toEqual(['カタログ'])
    expect(fitting({ filter: '製品' })).toEqual(['カタログ'])
    expect(fitting({ filter: 'part 10' })).toEqual(['part 10.md'])
    expect(fitting({ filter: '  src   md ' })).toEqual(['part 10.md', 'part 9.md'])
    expect(fitting({ filter: 'none' })).toEqual([])
  })

  test('marks its matches in the original text, although it ignores case, width and composition', () => {
    const marked = (text: string, filter: string) =>
      splitAtMarks({ text, marks: findWordRanges(text, splitFilterWords(filter)) })
        .map(({ text, marked }) => (marked ? `[${text}]` : text))
        .join('')
    expect(marked('README.md', 'read md')).toBe('[READ]ME.[md]')
    expect(marked('ﾊﾝｶｸｶﾞｲﾄﾞ', 'ガイド')).toBe('ﾊﾝｶｸ[ｶﾞｲﾄﾞ]')
    expect(marked('か\u3099いど', 'が')).toBe('[か\u3099]いど')
    expect(marked('ﬁle', 'file')).toBe('[ﬁle]')
    expect(marked('a😀b', 'b')).toBe('a😀[b]')
    expect(findWordRanges('aaa', ['aa', 'a'])).toEqual([[0, 3]])
    expect(findWordRanges('', ['a'])).toEqual([])
  })
})

test('a URI is shown decoded, except for escapes of slashes and of invalid UTF-8', () => {
  expect(readableUri('mem://b/%E8%A3%BD%E5%93%81/a%20b%2Fc%FF')).toBe('mem://b/製品/a b%2Fc%FF')
})

describe('a displayed name from a server', () => {
  test('shows invisible characters and signs of direction as their codes, but keeps a single variation selector', () => {
    expect(escapeInvisible('txt.\u202egpj')).toBe('txt.‹U+202E›gpj')
    expect(escapeInvisible('a\u200bb\u2066c\u{e0041}\u0007\u3164\ud800')).toBe(
      'a‹U+200B›b‹U+2066›c‹U+E0041›‹U+0007›‹U+3164›‹U+D800›',
    )
    // One variation selector chooses a form of an emoji or a kanji; several hide a text.
    expect(escapeInvisible('❤\ufe0f 葛\u{e0100} क्\u200dष')).toBe('❤\ufe0f 葛\u{e0100} क्\u200dष')
    expect(escapeInvisible('a\u{e0110}\u{e0111}')).toBe('a\u{e0110}‹U+E0111›')
  })

  test('is truncated at its start if it is too long', () => {
    expect(truncateStart('src/very/long/name.ts', 8)).toBe('…name.ts')
  })
})

describe('the facets of the list in the explorer', () => {
  test('filter by mount, type, audience, priority, time and directory', () => {
    expect(fitting({ mount: 'mem://b' })).toEqual(['カタログ'])
    expect(fitting({ mime: 'text/markdown' })).toEqual(['readme.md', 'part 10.md', 'part 9.md'])
    expect(fitting({ mime: 'text/typescript none' })).toEqual(['main.ts', 'カタログ'])
    expect(fitting({ mime: 'text/*' })).toHaveLength(4)
    // Who says nothing is for both.
    expect(fitting({ audience: 'assistant' })).toEqual(['readme.md', 'main.ts', 'part 10.md', 'カタログ'])
    expect(fitting({ minPriority: '0.5' })).toEqual(['readme.md', 'カタログ'])
    expect(fitting({ since: '1d' })).toEqual(['readme.md'])
    expect(fitting({ since: '2026-05-01' })).toEqual(['readme.md', 'main.ts'])
    expect(fitting({ in: 'file:///a/src/' })).toHaveLength(3)
    expect(parseTimeOrAge('soon', now)).toBeUndefined()
  })

  test('count what each value would show, with all other facets unchanged', () => {
    const { counts } = select(columns, natural, { mime: 'text/markdown', filter: 'src' }, now)
    expect(Object.fromEntries(counts.mime)).toEqual({ 'text/markdown': 2, 'text/typescript': 1, none: 0 })
    expect(Object.fromEntries(counts.mount)).toEqual({ 'file:///a': 2, 'mem://b': 0 })
    expect(Object.fromEntries(counts.audience)).toEqual({ user: 2, assistant: 1 })
    for (const [mime, count] of counts.mime) expect(fitting({ mime, filter: 'src' })).toHaveLength(count)
  })
})

describe('the order of the list in the explorer', () => {
  const sorted = (sort: string) => [...sortedIndexes(columns, sort)].map((row) => columns.resources[row]?.name)

  test('is by a column, ascending or descending, with empty values last; an unknown column leaves it unchanged', () => {
    expect(sorted('-size')).toEqual(['part 10.md', 'part 9.md', 'main.ts', 'readme.md', 'カタログ'])
    expect(sorted('size')).toEqual(['main.ts', 'part 9.md', 'part 10.md', 'readme.md', 'カタログ'])
    expect(sorted('-modified').slice(0, 2)).toEqual(['readme.md', 'main.ts'])
    expect(sorted('-priority').slice(0, 2)).toEqual(['readme.md', 'カタログ'])
    expect(sorted('type').at(-1)).toBe('カタログ')
    expect(sorted('nonsense')).toEqual(columns.resources.map(({ name }) => name))
  })

  test('compares numbers in names as numbers', () => {
    expect(sorted('name')).toEqual(['main.ts', 'part 9.md', 'part 10.md', 'readme.md', 'カタログ'])
  })
})

describe('the tree of search hits in the explorer', () => {
  const drawn = (closed: readonly string[] = []) =>
    treeOfMatches(columns, natural, new Set(closed)).map(
      ({ level, resource, position, siblings }) =>
        `${'  '.repeat(level - 1)}${resource.name} ${position}/${siblings.count}`,
    )

  test('has the directories of the URIs of the hits, and each entry has its position among its siblings', () => {
    expect(drawn()).toEqual([
      'a 1/2',
      '  readme.md 1/2',
      '  src 2/2',
      '    main.ts 1/3',
      '    part 10.md 2/3',
      '    part 9.md 3/3',
      'b 2/2',
      '  製品 1/1',
      '    カタログ 1/1',
    ])
  })

  test('hides the contents of directories that the user has closed', () => {
    expect(drawn(['file:///a/src/', 'mem://b'])).toEqual(['a 1/2', '  readme.md 1/2', '  src 2/2', 'b 2/2'])
  })

  test('shows a hit outside of all mounts by its URI, at the top level', () => {
    const strange = columnsOf([{ uri: 'note:today', name: 'today' }])
    expect(treeOfMatches(strange, sortedIndexes(strange, undefined), new Set())).toMatchObject([
      { key: 'note:today', level: 1 },
    ])
  })
})

describe('the complete list in the explorer', () => {
  const files = memory(
    Object.fromEntries(Array.from({ length: 30_000 }, (_, i) => [`f${String(i).padStart(5, '0')}`, ''])),
  )
  const view = createCatalog({ mounts: [{ address: 'mem://m', provider: files }] }).view({ id: 'reader', roles: [] })
  const start = (over: View = view) => {
    let done = () => {}
    const whole = new Promise<void>((resolve) => {
      done = resolve
    })
    const seen: number[] = []
    const listed = createResourceList(over, {
      onChange: () => {
        seen.push(listed.columns.resources.length)
        if (listed.state !== 'loading') done()
      },
    })
    return { listed, whole, seen }
  }

  test('grows page by page until it is complete', async () => {
    const { listed, whole, seen } = start()
    listed.load()
    await whole
    expect(seen).toEqual([0, 1024, 17_024, 30_000, 30_000])
    expect(new Set(listed.columns.resources.map(({ uri }) => uri)).size).toBe(30_000)
    expect(listed.state).toBe('loaded')
  })

  test('continues at its place after the server was away, without duplicates', async () => {
    let isDown = false
    const { listed, whole } = start({
      ...view,
      list: async (query) => {
        if (isDown) throw new ResourceError('unavailable', 'away')
        const page = await view.list(query)
        isDown = query?.cursor !== undefined
        return page
      },
    })
    listed.load()
    await whole
    expect([listed.state, listed.columns.resources.length]).toEqual(['failed', 17_024])
    isDown = false
    const { listed: again, whole: wholeAgain } = { listed, whole: settled() }
    again.load()
    await wholeAgain
    expect(listed.columns.resources.length).toBe(new Set(listed.columns.resources.map(({ uri }) => uri)).size)
    expect(listed.columns.resources.length).toBeGreaterThan(17_024)
  })

  test('begins again if its cursor is no longer accepted', async () => {
    let fault: ResourceError | undefined
    const { listed, whole } = start({
      ...view,
      list: async (query) => {
        if (query?.cursor !== undefined && fault !== undefined) throw fault
        return view.list(query)
      },
    })
    fault = new ResourceError('invalid', 'no such cursor')
    listed.load()
    await whole
    expect([listed.state, listed.columns.resources.length]).toEqual(['failed', 0])
    fault = undefined
    listed.load()
    await settled()
    expect([listed.state, listed.columns.resources.length]).toEqual(['loaded', 30_000])
  })

  test('shows the old entries until the new list is complete', async () => {
    const { listed, whole, seen } = start()
    listed.load()
    await whole
    const before = listed.columns
    files.entries.set('g', { text: '' })
    listed.reload()
    expect(listed.columns).toBe(before)
    await settled()
    expect(listed.columns.resources).toHaveLength(30_001)
    expect(Math.min(...seen.slice(-2))).toBeGreaterThanOrEqual(30_000)
  })
})

/** Lets whatever is under way come to its end: all of it waits for promises alone. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve))
