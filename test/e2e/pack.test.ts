import { readFileSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openCounter } from '../../src/context/index.ts'
import { parseManifest } from '../../src/context/manifest.ts'
import { type Result, type Running, start } from '../support/cli.ts'
import { runHere } from '../support/cli-here.ts'
import { type EraClient, eras } from '../support/era-clients.ts'
import { createFolder, type Folder } from '../support/folder.ts'

// Each command is a process: slow where the machine is busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

interface ToolClient extends EraClient {
  callTool(params: { readonly name: string; readonly arguments: object }): Promise<{
    readonly content: readonly { readonly type: string; readonly text?: string }[]
    readonly structuredContent?: { readonly tokens: number; readonly items: readonly { readonly uri: string }[] }
    readonly isError?: boolean
  }>
}

const now = '2026-01-31T00:00:00Z'
const at = 'docs://held'
const long = Array.from({ length: 200 }, (_, n) => `Line ${n} about anchors and boats.`).join('\n')

let folder: Folder
let server: Running
let url: string

/** Runs `pack`. On a slow machine it says how far it is, a line ending in `…` each time: that is left out of `err`. */
const pack = async (...args: readonly string[]): Promise<Result> => {
  const result = await runHere(['pack', ...args, '--now', now], { cwd: folder.root })
  return { ...result, err: result.err.replaceAll(/^.* …\n/gm, '') }
}
const count = async (text: string) => (await openCounter('o200k_base')).count(text)

beforeAll(async () => {
  folder = createFolder()
  const mounts = {
    [at]: {
      provider: 'files',
      root: 'held',
      access: [{ allow: ['*'] }, { deny: ['*'], match: 'hidden/**' }],
      rules: [{ match: 'rules.md', priority: 1 }],
    },
  }
  const clients = { profiles: [{ name: 'era-*', tools: true }] }
  folder.write({
    'hikidashi.json': JSON.stringify({ mounts, clients }),
    'held/harbour.md': `# Harbour\n\nAll about anchors. See [boats](boats.md).\n`,
    'held/boats.md': `# Boats\n\n${long}\n`,
    'held/rules.md': 'The rules of the harbour.\n',
    'held/設計.md': '# 設計\n\n錨 anchors\n',
    'held/hidden/plan.md': 'CANARY anchors anchors anchors\n',
  })
  server = start(['serve', '--config', 'hikidashi.json', '--http', '0'], { cwd: folder.root })
  url = (await server.says(/at (http:\/\/127\.0\.0\.1:\d+\/mcp)\n/))[1] ?? ''
})

afterAll(async () => {
  server.child.kill('SIGTERM')
  await server.ended
  folder.remove()
})

describe('a context', () => {
  test('is the same from a local configuration, from a server, and by the tool', async () => {
    const asked = ['anchors', '--budget', '1k', '--format', 'xml']
    const here = await pack(...asked)
    expect(here).toMatchObject({
      code: 0,
      out: expect.stringContaining('<document index="1" source="docs://held/rules.md"'),
    })
    expect(here.out).not.toContain('CANARY')
    expect(await count(here.out)).toBeLessThanOrEqual(970)
    expect((await pack(...asked, '--url', url)).out).toBe(here.out)
    for (const era of eras.filter(({ revision }) => revision >= '2025-11-25').slice(1)) {
      const client = (await era.connect({ url })).client as ToolClient
      const call = (given: object) => client.callTool({ name: 'assemble_context', arguments: given })
      const answer = await call({ query: 'anchors', budget: '1k', format: 'xml', now })
      expect(answer.content).toEqual([{ type: 'text', text: here.out }])
      expect(answer.structuredContent?.tokens).toBe(await count(here.out))
      const hidden = await call({ pins: [`${at}/hidden/plan.md`], measure: true })
      const absent = await call({ pins: [`${at}/absent/plan.md`], measure: true })
      expect(JSON.stringify(hidden).replaceAll('/hidden/', '/absent/')).toBe(JSON.stringify(absent))
      expect(await call({ pins: [`${at}/hidden/plan.md`] })).toMatchObject({
        isError: true,
        content: [{ text: `Required resources do not exist, or may not be seen: ${at}/hidden/plan.md` }],
      })
      const { messages } = await client.getPrompt({ name: 'assemble_context', arguments: { query: 'anchors' } })
      expect(messages.at(-1)).toEqual({ role: 'user', content: { type: 'text', text: 'anchors' } })
      expect(JSON.stringify(messages)).toContain(`${at}/harbour.md`)
      await client.close()
    }
  })

  test('is written to a file, explained, and assembled again by its manifest', async () => {
    const [text, manifest] = [folder.at('context.md'), folder.at('context.json')]
    const first = await pack('anchors', '-b', '500', '-o', text, '--manifest', manifest, '--explain')
    expect(first).toMatchObject({ code: 0, out: '' })
    expect(first.err).toMatch(
      /^\d+ resources, \d+ of 500 tokens \(o200k_base\)\n\ntokens +level +score +resource +why\n/,
    )
    expect(first.err).toMatch(/full +\S+ +docs:\/\/held\/rules\.md +required/)
    expect(first.err).toContain(`${at}/設計.md`)
    const { tokens, manifest: entries, query } = parseManifest(readFileSync(manifest, 'utf8'))
    expect([query, tokens]).toEqual(['anchors', await count(readFileSync(text, 'utf8'))])
    expect(entries.length).toBeGreaterThan(2)

    const again = await runHere(['pack', '--against', manifest], { cwd: folder.root })
    expect(again).toMatchObject({ code: 0, out: readFileSync(text, 'utf8') })
    expect(again.err).toBe('Nothing has changed: the text of the context is the same.\n')
    writeFileSync(folder.at('held/harbour.md'), '# Harbour\n\nAll about anchors, and more.\n')
    const later = await runHere(['pack', '--against', manifest, '--url', url], { cwd: folder.root })
    expect(later.err).toMatch(/^Changed since the manifest: \d+\n(?: .*\n)* {2}changed {2}docs:\/\/held\/harbour\.md\n/)

    const basket = await pack('--basket', manifest, '--budget', '2k', '--explain')
    expect(basket.err.match(/required; pinned/g)).toHaveLength(entries.length)
  })

  test('keeps the beginning of an earlier context, and states how many tokens are reused', async () => {
    const manifest = folder.at('earlier.json')
    const first = await pack('anchors', '-b', '500', '--manifest', manifest)
    const again = await pack('anchors', '-b', '500', '--reuse', manifest, '--manifest', manifest)
    expect(again.out).toBe(first.out)
    const { tokens, reusedPrefixTokens } = parseManifest(readFileSync(manifest, 'utf8'))
    expect(reusedPrefixTokens).toBe(tokens)
    expect(again.err).toBe(`${tokens} tokens at the front are unchanged.\n`)
    const against = await runHere(['pack', '--against', manifest], { cwd: folder.root })
    expect(against).toMatchObject({
      code: 0,
      out: first.out,
      err: 'Nothing has changed: the text of the context is the same.\n',
    })
    expect((await pack('anchors', '--reuse', 'none.json')).err).toMatch(/none\.json cannot be read/)
  })

  test('contains the resources that are pinned by URI or path, at the requested level of detail', async () => {
    const pinned = await pack('--pin', 'held/boats.md:outline', '--pin', `${at}/harbour.md`, '--format', 'json')
    expect(JSON.parse(pinned.out)).toMatchObject([
      { type: 'note' },
      { source: `${at}/boats.md`, level: 'outline' },
      { source: `${at}/harbour.md`, level: 'full' },
    ])
  })

  test('that cannot be assembled gives an exit code and a message for the problem', async () => {
    writeFileSync(folder.at('wrong.json'), '{"manifest":7}')
    const cases: readonly (readonly [readonly string[], number, RegExp])[] = [
      [
        ['--pin', 'held/boats.md', '--budget', '100'],
        3,
        /The required resources take \d+ tokens, and the budget has room for 97: docs:.*Raise the budget/,
      ],
      [
        ['--pin', `${at}/hidden/plan.md`],
        4,
        /Required resources do not exist, or may not be seen: docs:\/\/held\/hidden\/plan\.md/,
      ],
      [['--pin', 'held'], 2, /held is a directory, which cannot be pinned/],
      [['x', '--budget', 'lots'], 2, /Give a number of tokens, at least 1, such as 8000 or 32k/],
      [['x', '--against', 'wrong.json'], 1, /wrong\.json: This is not a manifest/],
      [['x', '--basket', 'none.json'], 1, /The file none\.json cannot be read/],
    ]
    for (const [args, code, told] of cases) {
      const result = await pack(...args)
      expect([args, result.code]).toEqual([args, code])
      expect(result).toMatchObject({ out: '', err: expect.stringMatching(told) })
    }
  })
})

describe('a context of a folder', () => {
  test('leaves out the files of tests with --no-tests, and with -x the files that match a glob', async () => {
    // The folder itself is called like one of tests.
    const project = createFolder()
    const texts = ['src/anchor.ts', 'src/anchor.gen.ts', 'src/anchor.test.ts', 'test/anchor.ts', 'pkg/test_anchor.py']
    project.write(Object.fromEntries(texts.map((path) => [`tests/${path}`, `// Anchors and boats in ${path}\n`])))
    const packed = async (...args: readonly string[]) => {
      const { out, code } = await runHere(['pack', 'anchors', '-b', '4k', ...args], { cwd: project.at('tests') })
      expect(code).toBe(0)
      return texts.filter((path) => out.includes(`/${path}\``))
    }
    expect(await packed()).toEqual(texts)
    expect(await packed('--no-tests')).toEqual(['src/anchor.ts', 'src/anchor.gen.ts'])
    expect(await packed('-x', 'src/*.gen.ts', '-x', '*.py')).toEqual([
      'src/anchor.ts',
      'src/anchor.test.ts',
      'test/anchor.ts',
    ])
    project.remove()
  })
})
