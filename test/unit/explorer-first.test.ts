import { describe, expect, test } from 'vitest'
import type { FoundHit } from '../../src/core/search-answer.ts'
import { groupHits, nameHits } from '../../src/explorer/web/find/hit.tsx'
import { hostInstructions, serverNameForHosts } from '../../src/explorer/web/home/hosts.ts'
import { readmeIn, summarizeFolder } from '../../src/explorer/web/listing/survey.ts'
import { createWords } from '../../src/explorer/web/words/texts.ts'

const resource = (uri: string) => ({ uri, name: decodeURIComponent(uri.split('/').at(-1) ?? '') })

describe('the search for names in the explorer', () => {
  const all = [
    'file:///a/src/access.ts',
    'file:///a/docs/accessibility.md',
    'file:///a/src/core/no-access.ts',
    'file:///a/src/success.ts',
    'file:///a/%E8%A8%AD%E8%A8%88/%E6%A4%9C%E7%B4%A2.md',
  ].map(resource)
  const found = (query: string) => nameHits(all, query).map(({ name }) => name)

  test('ranks the beginning of a name before the beginning of a word in it, and short names before long ones', () => {
    expect(found('access')).toEqual(['access.ts', 'accessibility.md', 'no-access.ts'])
  })
  test('matches in full and half width, and matches several words in the path', () => {
    expect(found('ＡＣＣＥＳＳ.ts')).toEqual(['access.ts', 'no-access.ts'])
    expect(found('設計 検索')).toEqual(['検索.md'])
    expect(found('src/core')).toEqual(['no-access.ts'])
  })
  test('ranks a file before its copies in settings, in a history and in a package', () => {
    const copies = [
      'git://a/main/access.yaml',
      'config://a/access.yaml',
      'pkg://npm/x@1/access.yaml',
      'file:///z/access.yaml',
    ]
    expect(nameHits(copies.map(resource), 'access')[0]?.uri).toBe('file:///z/access.yaml')
  })
  test('finds nothing for a blank query, and nothing for a word that no name has', () => {
    expect(found('  ')).toEqual([])
    expect(found('absent')).toEqual([])
  })
})

test('the hits of one file are grouped at the place of its best hit', () => {
  const hit = (document: string, start: number): FoundHit => ({
    ...{ uri: `${document}?lines=${start}-${start}`, document, mount: 'file:///a', score: 1 },
    ...{ lines: { start, end: start }, snippet: { text: '', marks: [] } },
  })
  const groups = groupHits([hit('b', 1), hit('a', 2), hit('b', 3)])
  expect(groups.map(({ document, hits }) => [document, hits.map(({ lines }) => lines.start)])).toEqual([
    ['b', [1, 3]],
    ['a', [2]],
  ])
})

describe('the overview of a mount in the explorer', () => {
  test('counts folders and files, and shows the README, preferably in Markdown', () => {
    const items = [
      { uri: 'file:///a/src/', name: 'src', mimeType: 'inode/directory' },
      ...['README', 'readme.md', 'reader.md'].map((name) => ({ uri: `file:///a/${name}`, name })),
    ]
    expect(summarizeFolder(items, false)).toMatchObject({
      folders: 1,
      files: 3,
      isPart: false,
      readme: { name: 'readme.md' },
    })
    expect(readmeIn(items.slice(0, 2))?.name).toBe('README')
    expect(readmeIn(items.slice(3))).toBeUndefined()
  })
})

describe('the ways to add the server to a host', () => {
  const textOf = (host: string, asks: boolean) =>
    hostInstructions('My Shop!', 'http://127.0.0.1:8787/mcp', asks).find((way) => way.host === host)?.text ?? ''

  test('have the form that Claude Code, VS Code and Gemini CLI read, and an ASCII name of the server', () => {
    expect(serverNameForHosts('引き出し')).toBe('hikidashi')
    expect(serverNameForHosts(`--${'a'.repeat(59)} notes`)).toBe('a'.repeat(59))
    expect(textOf('Claude Code', false)).toBe('claude mcp add --transport http my-shop http://127.0.0.1:8787/mcp')
    expect(JSON.parse(textOf('VS Code', false))).toEqual({
      servers: { 'my-shop': { type: 'http', url: 'http://127.0.0.1:8787/mcp' } },
    })
    expect(JSON.parse(textOf('Gemini CLI', false)).mcpServers['my-shop'].httpUrl).toBe('http://127.0.0.1:8787/mcp')
  })
  test('have a place for the token if the server requires one', () => {
    for (const host of ['Claude Code', 'VS Code', 'Cursor', 'Gemini CLI'])
      expect(textOf(host, true)).toContain('Bearer YOUR_TOKEN')
    expect(textOf('Codex', true)).toContain('bearer_token_env_var')
  })
})

test('a noun in a text of the explorer has the plural that its number requires', () => {
  const t = createWords({ files: ['{n} {n:file|files}', '{n} ファイル'] })
  expect([0, 1, 2].map((n) => t('files', { n }))).toEqual(['0 files', '1 file', '2 files'])
})
