import { execFile } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { badgeLine, badges } from '../scripts/badges.ts'
import { sources } from '../src/providers/index.ts'
import { riddleIn } from './support/words.ts'

const run = promisify(execFile)
const tsx = new URL('../node_modules/tsx/dist/loader.mjs', import.meta.url).href
const root = join(import.meta.dirname, '..')
const folder = mkdtempSync(join(tmpdir(), 'hikidashi-docs-'))

beforeAll(() => {
  // What stands in the documentation imports the package by its name, as a reader would.
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(root, join(folder, 'node_modules/hikidashi'))
})
afterAll(() => rmSync(folder, { recursive: true }))

const pages = [
  ...readdirSync(root).filter((name) => name.endsWith('.md')),
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
]
const textOf = (page: string) => readFileSync(join(root, page), 'utf8')

describe('the lists of sources in the documentation', () => {
  const names = Object.keys(sources)
  const wordsIn = (page: string, line: RegExp) =>
    [...(line.exec(textOf(page))?.[1] ?? '').matchAll(/[\w-]+/g)]
      .map(([word]) => word)
      .filter((word) => names.includes(word))

  test('name exactly the sources that are polled (docs/operations.md)', () => {
    const polled = Object.values(sources).filter(({ changes }) => changes === 'polled')
    expect(wordsIn('docs/operations.md', /sources that are polled \(([^)]*)\)/).sort()).toEqual(
      polled.map(({ name }) => name).sort(),
    )
  })

  test('name exactly the sources that accept the keys of the section "Documents" (docs/configuration.md)', async () => {
    const schemas = await Promise.all(
      Object.values(sources).map(async ({ name, schema }) => ({ name, ...(await schema()).source })),
    )
    const withDocuments = schemas.filter(({ shape }) => 'frontMatter' in shape)
    expect(wordsIn('docs/configuration.md', /## Documents\n\nMounts of (.*) have these keys/).sort()).toEqual(
      withDocuments.map(({ name }) => name).sort(),
    )
  })
})

describe('the reasons of errors', () => {
  const code = textOf('src/core/errors.ts')
  const union = /export type ErrorReason =\n((?: {2}\| '[\w-]+'\n)+)/.exec(code)?.[1] ?? ''
  const reasons = [...union.matchAll(/'([\w-]+)'/g)].map(([, word]) => word ?? '')

  test('are at most 25', () => {
    expect(reasons.length).toBeGreaterThan(10)
    expect(reasons.length).toBeLessThanOrEqual(25)
  })

  test('are each explained in src/core/errors.ts and in docs/protocol.md', () => {
    const listed = [...code.matchAll(/^ \* - `([\w-]+)`: [^\n]+/gm)].map(([, word]) => word)
    expect(listed.slice(-reasons.length)).toEqual(reasons)
    const section = /### The reasons\n([\s\S]*?)\n## /.exec(textOf('docs/protocol.md'))?.[1] ?? ''
    const rows = [...section.matchAll(/^\| `([\w-]+)` \| ([^|]+) \| ([^|]+) \|$/gm)]
    expect(rows.map(([, word]) => word)).toEqual(reasons)
  })
})

describe('the documentation', () => {
  test('has no sentence that begins with "what", "whoever" or "where" and is no question', () => {
    // Without headings, tables and code.
    const prose = pages.flatMap((page) =>
      textOf(page)
        .replace(/^\s*(```|~~~)[\s\S]*?^\s*\1/gm, '\n')
        .split(/\n\s*\n/)
        .map((paragraph) => paragraph.split('\n').filter((line) => !/^\s*(?:#|\||<|!\[)/.test(line)))
        .map((lines) => ({ page, text: lines.map((line) => line.trim()).join(' ') })),
    )
    expect(prose.length).toBeGreaterThan(500)
    const riddles = prose.filter(({ text }) => riddleIn(text) !== undefined)
    expect(riddles.map(({ page, text }) => `${page}: ${riddleIn(text)}`)).toEqual([])
  })

  test('has a glossary of at most 60 terms, each once', () => {
    const rows = [...textOf('docs/glossary.md').matchAll(/^\| (?!term |---)([^|]+) \|/gm)].map((match) => match[1])
    expect(rows.length).toBeGreaterThan(40)
    expect(rows.length).toBeLessThanOrEqual(60)
    expect(new Set(rows).size).toBe(rows.length)
  })

  test('links only to pages and headings that exist', () => {
    const anchors = (page: string) =>
      [...textOf(page).matchAll(/^#+ (.*)$/gm)].map((match) =>
        (match[1] ?? '')
          .toLowerCase()
          .replace(/[`*]/g, '')
          .replace(/[^\p{L}\p{N} _-]/gu, '')
          .replaceAll(' ', '-'),
      )
    const broken = pages.flatMap((page) => {
      const text = textOf(page).replace(/```[\s\S]*?```/g, '')
      return [...text.matchAll(/\]\(([^)\s]+)\)/g)].flatMap((match) => {
        const [target = '', anchor] = (match[1] ?? '').split('#')
        if (/^[a-z]+:/.test(target)) return []
        const path = target === '' ? page : join(dirname(page), target)
        if (!existsSync(join(root, path))) return [`${page}: ${target}`]
        return anchor === undefined || anchors(path).includes(anchor) ? [] : [`${page}: ${target}#${anchor}`]
      })
    })
    expect(broken).toEqual([])
    expect(pages.length).toBeGreaterThan(8)
  })

  test('has a README of less than 120 lines with badges that add the server of npm start to VS Code and Cursor', () => {
    const readme = textOf('README.md')
    expect(readme.split('\n').length).toBeLessThan(120)
    // Run "npx tsx scripts/badges.ts" to write them.
    expect(readme).toContain(`\n${badgeLine()}\n`)
    for (const [file, text] of Object.entries(badges)) expect(textOf(`docs/images/${file}`)).toBe(text)

    const links = [...badgeLine().matchAll(/\]\((https:[^)]+)\)/g)].map((match) => new URL(match[1] ?? ''))
    const [vscode, cursor] = links
    expect(vscode?.searchParams.get('name')).toBe('hikidashi')
    const server = JSON.parse(vscode?.searchParams.get('config') ?? '')
    expect(JSON.parse(Buffer.from(cursor?.searchParams.get('config') ?? '', 'base64').toString())).toEqual({
      url: server.url,
    })
    const { start } = JSON.parse(textOf('package.json')).scripts
    expect(`${start} `).toContain(`--http ${new URL(server.url).port} `)
  })

  test('has a runnable example of the toolkit in the README, which serves the resources that it declares', async () => {
    const code = /```ts\n([\s\S]*?)```/.exec(textOf('README.md'))?.[1] ?? ''
    expect(code).toContain('serveStdio')
    writeFileSync(join(folder, 'server.mts'), code)
    const read = { jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri: 'greeting://hello/ja' } }
    const list = { jsonrpc: '2.0', id: 2, method: 'resources/list' }
    const child = run(process.execPath, ['--import', tsx, join(folder, 'server.mts')])
    child.child.stdin?.end(`${JSON.stringify(read)}\n${JSON.stringify(list)}\n`)
    const answers = (await child).stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { id: number; result: Record<string, unknown> })
    expect(answers.find(({ id }) => id === 1)?.result).toMatchObject({
      contents: [{ uri: 'greeting://hello/ja', text: 'こんにちは', mimeType: 'text/plain' }],
    })
    expect(answers.find(({ id }) => id === 2)?.result.resources).toHaveLength(2)
  })

  test('names only npm scripts that package.json has', () => {
    const { scripts } = JSON.parse(textOf('package.json')) as { scripts: Record<string, string> }
    const named = pages.flatMap((page) =>
      [...textOf(page).matchAll(/npm run ([\w:-]+)/g)].map((match) => match[1] ?? ''),
    )
    expect(named.filter((name) => !(name in scripts))).toEqual([])
    expect(named.length).toBeGreaterThan(3)
  })
})
