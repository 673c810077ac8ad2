import { describe, expect, test } from 'vitest'
import { formatAge } from '../../src/cli/commands/facts.ts'
import { statUri } from '../../src/cli/operations/stat-find.ts'
import { createTreeJson, createTreePrinter, type TreePrintOptions } from '../../src/cli/operations/tree-print.ts'
import { createTokenCounter, estimateTokens } from '../../src/cli/operations/tree-tokens.ts'
import { type TreeWalkOptions, walkTree } from '../../src/cli/operations/tree-walk.ts'
import type { Output } from '../../src/cli/terminal/io.ts'
import { openCounter } from '../../src/context/index.ts'
import { compileAccess } from '../../src/core/access.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { ResourceError } from '../../src/core/errors.ts'
import type { Resource, View } from '../../src/core/view.ts'
import { memory } from '../support/memory.ts'

const entries = {
  'README.md': { text: '# Notes\n', size: 8, mimeType: 'text/markdown', title: 'The notes' },
  'docs/a.md': { text: 'one two three', size: 13, mimeType: 'text/markdown' },
  'docs/深い フォルダ/日本.txt': { text: 'こんにちは', size: 15, mimeType: 'text/plain' },
  'docs/z.png': { bytes: Uint8Array.of(137, 80, 78, 71, 0), size: 5, mimeType: 'image/png' },
  'many/1.txt': { text: '1', size: 1, mimeType: 'text/plain' },
  'many/2.txt': { text: '2', size: 1, mimeType: 'text/plain' },
  'many/3.txt': { text: '3', size: 1, mimeType: 'text/plain' },
  'many/4/5.txt': { text: '5', size: 1, mimeType: 'text/plain' },
}
const catalog = createCatalog({ mounts: [{ address: 'x://notes', provider: memory(entries), title: 'Notes' }] })
const view = catalog.view({ id: 'me', roles: [] })
const root: Resource = { uri: 'x://notes', name: 'notes', mimeType: 'inode/directory' }

function collect(isTerminal = false): Output & { text(): string } {
  let text = ''
  return {
    isTerminal,
    write: async (data) => {
      text += data
    },
    text: () => text,
  }
}

const plain: TreePrintOptions = { tokens: false, size: false, long: false, full: false, ascii: false, isWhole: false }
const all: TreeWalkOptions = {
  depth: Number.POSITIVE_INFINITY,
  most: Number.POSITIVE_INFINITY,
  isWhole: false,
  isNamed: true,
}

async function tree(
  print: Partial<TreePrintOptions>,
  options: Partial<TreeWalkOptions> = {},
  of: View = view,
): Promise<string> {
  const out = collect()
  const printer = createTreePrinter(out, { ...plain, ...print })
  await walkTree(of, root, printer, { ...all, ...options })
  await printer.end()
  return out.text()
}

describe('the output of tree', () => {
  test('connects the entries with lines, and the last entry of each directory with a corner', async () => {
    expect(await tree({})).toBe(`x://notes
├── README.md
├── docs/
│   ├── a.md
│   ├── z.png
│   └── 深い フォルダ/
│       └── 日本.txt
└── many/
    ├── 1.txt
    ├── 2.txt
    ├── 3.txt
    └── 4/
        └── 5.txt
`)
  })

  test('has at most the requested levels, and lines in ASCII if requested', async () => {
    expect(await tree({ ascii: true }, { depth: 1 })).toBe('x://notes\n|-- README.md\n|-- docs/\n`-- many/\n')
  })

  test('counts the nodes that are not shown', async () => {
    const out = collect()
    const printer = createTreePrinter(out, plain)
    const many = { ...root, uri: 'x://notes/many/' }
    const totals = await walkTree(view, many, printer, { ...all, most: 1 })
    await printer.end()
    expect(out.text()).toBe('x://notes/many/\n├── 1.txt\n└── … 3 more\n')
    expect(totals).toMatchObject({ directories: 1, resources: 3 })
  })

  test('has exact token counts, and totals of directories that include entries that are not shown', async () => {
    const counter = await openCounter('o200k_base')
    const words = await counter.count('one two three')
    const measure = await createTokenCounter(view, 'o200k_base')
    const text = await tree({ tokens: true, isWhole: true }, { isWhole: true, depth: 1, measure })
    const japanese = await counter.count('こんにちは')
    const docs = words + japanese
    const total = docs + (await counter.count('# Notes\n')) + 4
    expect(text.split('\n').map((line) => line.trimEnd())).toEqual([
      'TOKENS',
      `${String(total).padStart(6)}  x://notes`,
      `${String(await counter.count('# Notes\n')).padStart(6)}  ├── README.md`,
      `${String(docs).padStart(6)}  ├── docs/`,
      '     4  └── many/',
      '',
    ])
  })

  test('shows binary files without token counts, and too large texts with an estimate', async () => {
    const measure = await createTokenCounter(view, 'o200k_base')
    const text = await tree({ tokens: true, isWhole: true }, { isWhole: true, measure })
    expect(text).toMatch(/^ +- {2}│ {3}├── z\.png$/m)
    expect(await measure({ uri: 'x://notes/docs/a.md', name: 'a', size: 8_000_000, mimeType: 'text/plain' })).toEqual({
      tokens: 2_000_000,
      isEstimate: true,
    })
    expect(estimateTokens({ uri: 'x://a', name: 'a', size: 10, mimeType: 'application/ld+json' }).tokens).toBe(3)
    expect(estimateTokens({ uri: 'x://a', name: 'a', size: 10, mimeType: 'image/png' })).toEqual({ isEstimate: false })
    expect(estimateTokens({ uri: 'x://a', name: 'a', mimeType: 'text/plain' })).toEqual({ isEstimate: false })
  })

  test('has its columns on the left, so that names of any width keep the lines straight', async () => {
    const lines = (await tree({ long: true })).split('\n').slice(0, -1)
    expect(lines[0]).toBe('    SIZE  MODIFIED              TYPE')
    for (const line of lines.slice(1)) expect(line.slice(48)).toMatch(/^ {2}(?:x:|(?: {4})*[├│└])/)
    expect(lines[2]).toMatch(/^ {5}8 B {2}-.*text\/markdown +├── README\.md {2}The notes$/)
  })

  test('escapes control characters in names, and has whole URIs if they are requested', async () => {
    const rude: View = {
      ...view,
      directory: async () => ({
        items: [{ uri: 'x://notes/a%1B[31mb', name: 'a' }],
        cache: { ttlMs: 0, scope: 'private' },
      }),
    }
    expect(await tree({}, {}, rude)).toBe('x://notes\n└── a\\u001b[31mb\n')
    expect(await tree({ full: true }, { depth: 1 })).toContain('├── x://notes/README.md\n')
  })

  test('continues if a directory does not answer, and shows the error in its place', async () => {
    const broken: View = {
      ...view,
      directory: async (query, options) => {
        if (query.uri.includes('docs')) throw new ResourceError('unavailable', 'The source is away.')
        return view.directory(query, options)
      },
    }
    expect(await tree({}, { depth: 2 }, broken)).toContain('├── docs/\n│   └── [The source is away.]\n└── many/')
  })

  test('as JSON is one array of nested nodes, with the number of omitted nodes', async () => {
    const out = collect()
    const json = createTreeJson(out, { isWhole: true, tokens: false })
    await walkTree(view, root, json, { ...all, isWhole: true, depth: 2, most: 2 })
    await json.end()
    const [top] = JSON.parse(out.text())
    expect(top).toMatchObject({ uri: 'x://notes', more: 1, total: { directories: 4, resources: 8, bytes: 45 } })
    expect(top.children.map(({ name }: Resource) => name)).toEqual(['README.md', 'docs'])
    expect(top.children[1]).toMatchObject({ more: 1, total: { resources: 3 } })
    const empty = collect()
    await createTreeJson(empty, { isWhole: false, tokens: false }).end()
    expect(JSON.parse(empty.text())).toEqual([])
  })
})

describe('the output of stat', () => {
  test('comes from the listing of the directory, without a read', async () => {
    const provider = memory(entries)
    const one = createCatalog({ mounts: [{ address: 'x://notes', provider }] }).view({ id: 'me', roles: [] })
    const facts = await statUri(
      one,
      'x://notes/docs/%E6%B7%B1%E3%81%84%20%E3%83%95%E3%82%A9%E3%83%AB%E3%83%80/日本.txt',
    )
    expect(facts).toMatchObject({
      resource: { name: '日本.txt', size: 15, mimeType: 'text/plain' },
      mount: { uri: 'x://notes' },
      listed: true,
      watchable: false,
      templates: [{ uriTemplate: 'x://notes/{+path}', name: 'All', values: { path: 'docs/深い フォルダ/日本.txt' } }],
    })
    expect(facts?.children).toBeUndefined()
    expect(provider.calls.read).toBe(0)
  })

  test.each(['x://notes/docs', 'x://notes/docs/'])(
    'for the directory %s has the numbers of its children',
    async (uri) => {
      expect(await statUri(view, uri)).toMatchObject({
        resource: { uri: 'x://notes/docs/', mimeType: 'inode/directory' },
        children: { directories: 1, resources: 2, complete: true },
      })
    },
  )

  test('for a mount has the title from its configuration', async () => {
    expect(await statUri(view, 'x://notes')).toMatchObject({ resource: { title: 'Notes' }, listed: true })
  })

  test('is empty for an absent and for a hidden resource', async () => {
    const access = compileAccess([{ allow: ['*'], match: 'README.md' }])
    const denying = createCatalog({ mounts: [{ address: 'x://notes', provider: memory(entries), access }] })
    const denied = denying.view({ id: 'me', roles: [] })
    expect(await statUri(denied, 'x://notes/README.md')).toBeDefined()
    expect(await statUri(denied, 'x://notes/docs/a.md')).toBeUndefined()
    expect(await statUri(denied, 'x://notes/docs/')).toBeUndefined()
    expect(await statUri(view, 'x://notes/nope.md')).toBeUndefined()
    expect(await statUri(view, 'y://elsewhere')).toBeUndefined()
    await denying.close()
  })

  test.each([
    [5000, 'just now'],
    [61_000, '1 minute ago'],
    [7_200_000, '2 hours ago'],
    [86_400_000 * 400, '1 year ago'],
    [-3_600_000, 'in the future, by the clock here'],
  ])('shows an age of %i milliseconds as %s', (span, text) => expect(formatAge(span)).toBe(text))
})
