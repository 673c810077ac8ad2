import { afterEach, describe, expect, test } from 'vitest'
import { columnsOf } from '../../src/cli/tui/cells.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { foundMimeType, type SearchAnswer } from '../../src/core/search-answer.ts'
import type { View } from '../../src/core/view.ts'
import { sliced } from '../../src/wrap/sliced.ts'
import { type MemoryEntry, memory } from '../support/memory.ts'
import { openScreen, type ShownScreen, textOf } from '../support/tui-screen.ts'

const me = { id: 'me', roles: [] }
const open: ShownScreen[] = []
afterEach(() => {
  for (const screen of open.splice(0)) screen.close()
})

function viewOf(entries: Readonly<Record<string, MemoryEntry | string>>, paging = {}): View {
  return createCatalog({
    mounts: [{ address: 'memory://docs', provider: sliced(memory(entries)) }],
    pages: paging,
  }).view(me)
}

function show(view: View, beginning: Parameters<typeof openScreen>[1] = {}): ShownScreen {
  const screen = openScreen(view, beginning)
  open.push(screen)
  return screen
}

const notes = {
  'README.md': { text: '# 引き出し\n\nSome **text**.\n', mimeType: 'text/markdown', size: 30, priority: 0.5 },
  'docs/ガイド.md': { text: '日本語の長い行です。'.repeat(8), mimeType: 'text/markdown' },
  'docs/deep/data.json': '{"a": [1, "b"]}',
  'docs/deep/logo.png': { bytes: Buffer.from('89504e470d0a1a0a00', 'hex'), mimeType: 'image/png', size: 9 },
}

describe('the tree', () => {
  test('shows what is chosen beside it', async () => {
    const screen = show(viewOf(notes))
    await screen.until(/docs\//)
    screen.press('j')
    expect(await screen.until(/Some/)).toBe(
      ` hikidashi  test
  ▾ memory://docs               │ README.md
      README.md            30 B │ text/markdown · 30 B
    ▸ docs/                     │ priority 0.5
                                │ memory://docs/README.md
                                │
                                │   1 # 引き出し
                                │   2
                                │   3 Some **text**.
                                │
                                │
                                │
                                │
                                │
                                │
 ↑↓ → ← open   / filter   s search   Space pick   b basket   g go to   ? h… 2/3`,
    )
  })

  test('opens and closes, wraps wide characters whole, and says what is no text', async () => {
    const screen = show(viewOf(notes))
    await screen.until(/docs\//)
    screen.press('jjl')
    await screen.until(/ガイド/)
    screen.press('jj')
    expect(await screen.until(/日本語の長い/)).toMatch(
      /1 日本語の長い行です。日本語の長い行です。日\n.*│ {5}本語の長い/,
    )
    screen.press('kl')
    await screen.until(/logo\.png/)
    screen.press('jj')
    expect(await screen.until(/no text/)).toMatch(/image\/png, 9 B: no text.*89 50 4e 47 0d 0a 1a 0a {2}\.PNG/s)
    screen.press('h')
    expect(screen.state.at.uri).toBe('memory://docs/docs/deep/')
    screen.press('h')
    expect(screen.text()).not.toContain('logo.png')
  })

  test('every row of every screen is as wide as the terminal, whatever its size', async () => {
    const screen = show(viewOf({ ...notes, '👨‍👩‍👧‍👦\u202eé.txt': 'a\u001b[6n\u200b'.repeat(40) }))
    await screen.until(/docs\//)
    screen.press('jjj')
    await screen.until(/6n/)
    for (let columns = 1; columns < 130; columns += 8)
      for (const rows of [1, 5, 24]) {
        screen.resize(columns, rows)
        for (const keys of ['', '?', '?']) {
          screen.press(keys)
          const { rows: drawn } = screen.screen()
          expect(drawn).toHaveLength(rows)
          expect(new Set(drawn.map(columnsOf))).toEqual(new Set([columns]))
          expect(drawn.map(textOf).join('')).not.toMatch(/[\p{Cc}\u202e\u200b]/u)
        }
      }
    expect(screen.text()).toMatch(/\\u202e/)
  })

  test('filters as it is typed, whatever the width and case of letters, and goes back', async () => {
    const screen = show(viewOf(notes))
    await screen.until(/docs\//)
    screen.press('jjl')
    await screen.until(/ガイド/)
    screen.press('/ｶﾞｲ')
    expect(screen.text()).toMatch(/docs\/.*ガイド\.md/s)
    expect(screen.text()).not.toContain('README')
    expect(screen.state.at.uri).toMatch(/%E3%82%AC/)
    const marked = screen
      .screen()
      .rows.flat()
      .filter(({ style }) => style === 'mark')
    expect(marked.map(({ text }) => text).join('')).toContain('ガイ')
    expect(screen.screen().cursor).toEqual({ row: 15, column: 9 + 3 })
    screen.press('\u007f\u007f\u007freadme')
    expect(screen.text()).toMatch(/README\.md.*Filter: readme/s)
    screen.press('\u001b')
    expect(screen.text()).toMatch(/README.*ガイド/s)
    screen.press('/nothing-like-it\r')
    expect(screen.text()).toContain('Nothing open has that name.')
  })

  test('a paste goes into the line that is written, and is no command', async () => {
    const screen = show(viewOf(notes))
    await screen.until(/docs\//)
    screen.press('\u001b[200~q\u001b[201~')
    expect(screen.effects).toEqual([])
    screen.press('/\u001b[200~READ\nME\u0007\u001b[201~')
    expect(screen.state.filter).toBe('READ ME')
  })

  test('lists large directories by pages, as far as they are looked at', async () => {
    const many = Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`f${String(i).padStart(4, '0')}`, 'x']))
    const screen = show(viewOf(many, { first: 100, most: 200 }))
    await screen.until(/f0000/)
    expect(screen.state.tree.folders.get('memory://docs')?.items.length).toBeLessThan(400)
    screen.press('G')
    expect(await screen.until(/f2999/)).toContain('3,001/3,001')
    screen.press('\u001b[H/299 9')
    expect(screen.text()).toMatch(/f2999/)
  })

  test('goes to a URI, through directories that are not listed yet', async () => {
    const screen = show(viewOf(notes), { goal: 'memory://docs/docs/deep/data.json' })
    await screen.until(/"a": \[1/)
    expect(screen.state.at.uri).toBe('memory://docs/docs/deep/data.json')
    screen.press('gmemory://docs/docs/ガイド.md?lines=1\r')
    await screen.until(/日本語の長い/)
    expect(screen.state.at.uri).toMatch(/%E3%82%AC/)
    expect(screen.state.preview?.uri).toBe('memory://docs/docs/ガイド.md?lines=1')
    screen.press('gmemory://docs/none.txt\r')
    expect(await screen.until(/not listed/)).toBeTruthy()
    await screen.until(({ preview }) => preview?.state === 'failed')
  })
})

describe('the preview', () => {
  test('reads a large text by parts, up to its end', async () => {
    const text = Array.from({ length: 20_000 }, (_, i) => `line ${i + 1} of a text that is long enough\n`).join('')
    const asked: string[] = []
    const view = viewOf({ 'large.txt': { text, size: text.length, mimeType: 'text/plain' } })
    const spy: View = {
      ...view,
      read: (uri, options) => {
        asked.push(uri)
        return view.read(uri, options)
      },
    }
    const screen = show(spy)
    await screen.until(/large/)
    screen.press('j\t')
    await screen.until(/line 5 of/)
    expect(asked).toEqual(['memory://docs/large.txt?lines=1-1000'])
    screen.press('\u001b[F')
    await screen.until(/20000 line 20000 of/)
    expect(asked.every((uri) => uri.includes('?lines='))).toBe(true)
  })

  test('gives up a read when the choice moves on', async () => {
    const view = viewOf({ a: 'first', b: 'second' })
    const aborted: string[] = []
    let begun = (): void => {}
    const reading = new Promise<void>((resolve) => {
      begun = resolve
    })
    const slow: View = {
      ...view,
      read: (uri, options) =>
        uri.endsWith('/a')
          ? new Promise((_, reject) => {
              begun()
              options?.signal?.addEventListener('abort', () => {
                aborted.push(uri)
                reject(new Error('aborted'))
              })
            })
          : view.read(uri, options),
    }
    const screen = show(slow)
    await screen.until(/ {4}b/)
    screen.press('j')
    await screen.until(/reading/)
    await reading
    screen.press('j')
    await screen.until(/1 second/)
    expect(aborted).toEqual(['memory://docs/a'])
  })

  test('marks what changes, and reads it again where it was', async () => {
    const listeners: ((uris: readonly string[]) => void)[] = []
    const entries: Record<string, MemoryEntry> = { a: { text: 'one\n', version: '1' }, b: { text: 'b' } }
    const provider = memory(entries)
    const view = createCatalog({ mounts: [{ address: 'memory://docs', provider }] }).view(me)
    const live: View = {
      ...view,
      subscribe: (listener) => {
        listeners.push((uris) => listener({ uris, listed: true }))
        return { uris: [], add: async (uris) => uris, addList: async () => true, remove: () => {}, close: () => {} }
      },
    }
    const screen = show(live)
    await screen.until(/ {4}b/)
    screen.press('j')
    await screen.until(/1 one/)
    provider.entries.set('a', { text: 'two\n', version: '2' })
    provider.entries.set('c', { text: 'new' })
    for (const tell of listeners) tell(['memory://docs', 'memory://docs/a'])
    expect(await screen.until((state) => state.preview?.shown.lines[0]?.text === 'two')).toMatch(/●.*a/)
    expect(await screen.until(/ {4}c/)).toMatch(/●.*c/)
    expect(screen.state.at.uri).toBe('memory://docs/a')
  })
})

describe('the search', () => {
  const found: SearchAnswer = {
    query: '設計',
    hits: [
      {
        uri: 'memory://docs/docs/ガイド.md?lines=1',
        document: 'memory://docs/docs/ガイド.md',
        mount: 'memory://docs',
        lines: { start: 1, end: 1 },
        score: 1,
        title: 'Guide',
        snippet: { text: `${'before '.repeat(12)}日本語 after`, marks: [[84, 87]] },
      },
    ],
    notes: ['The index is being made.'],
  }
  const view = viewOf(notes)
  const searching: View = {
    ...view,
    templates: async () => ({
      items: [{ uriTemplate: 'search://all{?q,after}', name: 'Search', mimeType: foundMimeType }],
      cache: { ttlMs: 0, scope: 'private' },
    }),
    read: async (uri, options) =>
      uri.startsWith('search:')
        ? {
            contents: [{ uri, text: JSON.stringify(uri.includes('%E8%A8%AD') ? found : { ...found, hits: [] }) }],
            cache: { ttlMs: 0, scope: 'private' },
          }
        : view.read(uri, options),
  }

  test('shows what was found with its marks, its preview, and its place in the tree', async () => {
    const screen = show(searching)
    await screen.until(/docs\//)
    screen.press('s設計\r')
    const text = await screen.until(/1 日本語/)
    expect(text).toMatch(/1 found: 設計.*ガイド\.md:1 {2}Guide.*before 日本語 after.*The index is being made\./s)
    expect(
      screen
        .screen()
        .rows.flat()
        .filter(({ style }) => style === 'mark')
        .map((cell) => cell.text)
        .join(''),
    ).toMatch(/^日本語(?:日本語)+$/)
    screen.press('t')
    await screen.until(({ list, at }) => list === 'tree' && at.uri.includes('%E3%82%AC'))
    screen.press('sxyz\r')
    await screen.until(/Nothing was found/)
  })

  test('where there is none, says so and filters the names', async () => {
    const screen = show(view)
    await screen.until(/docs\//)
    screen.press('sreadme\r')
    await screen.until(/No search is mounted here/)
    expect(screen.text()).toContain('README.md')
    expect(screen.text()).not.toContain('▸ docs/')
  })
})

describe('the basket', () => {
  test('counts what is in it, at each level, against a budget', async () => {
    const screen = show(viewOf(notes), { budget: 20_000 })
    await screen.until(/docs\//)
    screen.press('j ')
    expect(await screen.until(/1 in the basket, \d+ of 20,000/)).toMatch(/✓ README/)
    // Space goes on to the next line: a directory, and what is below it.
    screen.press(' ')
    await screen.until(/4 in the basket, \d+ of/)
    screen.press('b')
    const full = await screen.until(/README\.md +full +\d+/)
    expect(full).toMatch(/logo\.png +link/)
    const tokens = (text: string) => Number(/basket, ([\d,]+) of/.exec(text)?.[1]?.replace(',', ''))
    screen.press('hh')
    const less = await screen.until(/README\.md +link +\d+/)
    expect(tokens(less)).toBeLessThan(tokens(full))
    screen.press('-----')
    expect(screen.text()).toMatch(/of 1,000 tokens/)
    screen.press('f')
    await screen.until(/4 in the basket, \d.* xml /s)
    screen.press('q')
    expect(screen.text()).toMatch(/4 in the basket\. e: write to a file/)
    screen.press('e')
    expect(screen.text()).toContain('Write to file: context.xml')
    screen.press('\r')
    expect(screen.effects.at(-1)).toEqual({ kind: 'export', file: 'context.xml' })
    screen.press('qp')
    expect(screen.effects.at(-1)).toEqual({ kind: 'quit', print: true })
  })

  test('ends without a question where it is empty, or goes into a pipe', async () => {
    const empty = show(viewOf(notes))
    await empty.until(/docs\//)
    empty.press('q')
    expect(empty.effects).toEqual([{ kind: 'quit' }])
    const piped = show(viewOf(notes), { isPiped: true })
    await piped.until(/docs\//)
    piped.press('j q')
    expect(piped.effects).toEqual([{ kind: 'quit', print: true }])
  })
})
