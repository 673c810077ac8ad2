import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { memory } from '../../examples/memory-provider.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { ResourceError } from '../../src/core/errors.ts'
import type { Principal } from '../../src/core/provider.ts'
import type { ToolApp } from '../../src/core/tool.ts'
import { builtApp, createExplorerApp } from '../../src/explorer/app.ts'
import { openViewChannel, type ServeOptions } from '../../src/server/serve.ts'
import type { AuditRecord } from '../../src/server/telemetry/audit.ts'
import { meta } from '../attack/harness/wire.ts'

const uri = 'ui://hikidashi/explorer'
const page: ToolApp = { uri, html: async () => '<!doctype html><title>Explorer</title>' }
const access = (_: Principal, path: string) => !path.startsWith('secret/')
const catalog = createCatalog({
  mounts: [
    {
      address: 'docs://held',
      provider: memory({ 'README.md': '# Read me\n', 'a/one.md': 'One.\n', 'secret/plan.md': 'The plan.\n' }),
      access,
    },
    { address: 'notes://held', provider: memory({ 'todo.md': 'Water.\n' }) },
  ],
})
const reader: Principal = { id: 'reader', roles: [] }

interface Answer {
  readonly content: readonly { readonly text: string }[]
  readonly structuredContent?: { readonly entries: readonly { readonly uri: string }[]; readonly more: boolean }
  readonly isError?: boolean
}

async function opened(options: Partial<ServeOptions> = {}) {
  const served = {
    ...{ name: 'held', version: '1', log: () => {}, view: catalog.view, explorerApp: page },
    profileOf: () => ({ tools: true }),
    ...options,
  }
  const channel = await openViewChannel(served, reader, 'modern')
  const ask = async (method: string, params: Record<string, unknown> = {}) => {
    const request = { jsonrpc: '2.0' as const, id: 1, method, params: { ...params, _meta: meta } }
    const answer = await channel.request(request, {})
    if (answer === undefined) throw new Error('no answer')
    return answer
  }
  return {
    ask,
    result: async (method: string, params: Record<string, unknown> = {}) => {
      const answer = await ask(method, params)
      if ('error' in answer) throw new Error(answer.error.message)
      return answer.result
    },
    browse: async (args: Record<string, unknown> = {}): Promise<Answer> => {
      const answer = await ask('tools/call', { name: 'browse', arguments: args })
      if ('error' in answer) throw new Error(answer.error.message)
      return answer.result as unknown as Answer
    },
  }
}

describe('the tool browse', () => {
  test('is listed, and is the only tool that names a page', async () => {
    const { result } = await opened()
    const { tools } = (await result('tools/list')) as { tools: { name: string; _meta?: unknown }[] }
    expect(tools.find(({ name }) => name === 'browse')?._meta).toEqual({ ui: { resourceUri: uri } })
    expect(tools.filter(({ _meta }) => _meta !== undefined).map(({ name }) => name)).toEqual(['browse'])
  })

  test('answers with the mounts and their entries as text, for a host without MCP Apps', async () => {
    const { browse } = await opened()
    const { content, structuredContent } = await browse()
    expect(content[0]?.text.split('\n')).toEqual([
      '- docs://held  held  (directory)',
      '  - docs://held/README.md  README.md  (10 bytes)',
      '  - docs://held/a/  a  (directory)',
      '- notes://held  held  (directory)',
      '  - notes://held/todo.md  todo.md  (7 bytes)',
    ])
    expect(structuredContent?.entries.map((entry) => entry.uri)).toEqual(['docs://held', 'notes://held'])
    const below = await browse({ uri: 'docs://held/a/' })
    expect(below.content[0]?.text).toMatch(/^- docs:\/\/held\/a\/one\.md /)
    const one = await browse({ uri: 'docs://held/a/one.md' })
    expect(one.structuredContent?.entries.map((entry) => entry.uri)).toEqual(['docs://held/a/one.md'])
  })

  test('answers for a denied URI as for an absent URI', async () => {
    const { browse } = await opened()
    const at = async (path: string) =>
      JSON.stringify(await browse({ uri: `docs://held/${path}` })).replaceAll(path, '…')
    expect(await at('secret/')).toBe(await at('absent/'))
    expect(await at('secret/plan.md')).toBe(await at('secret/none.md'))
    expect((await browse({ uri: 'docs://held/secret/plan.md' })).isError).toBe(true)
    expect(JSON.stringify(await browse())).not.toContain('secret')
  })

  test('answers an unknown argument with an error that lists the known arguments', async () => {
    const { browse } = await opened()
    const { content, isError } = await browse({ path: 'x' })
    expect(isError).toBe(true)
    expect(content[0]?.text).toContain('The arguments are: uri')
  })
})

describe('the page of the tool browse', () => {
  test('is readable by clients with the tool, and declares that it connects to no origin', async () => {
    const { result } = await opened()
    const { contents } = (await result('resources/read', { uri })) as { contents: Record<string, unknown>[] }
    expect(contents).toEqual([
      {
        uri,
        mimeType: 'text/html;profile=mcp-app',
        text: '<!doctype html><title>Explorer</title>',
        _meta: {
          ui: {
            csp: { connectDomains: [], resourceDomains: [], frameDomains: [], baseUriDomains: [] },
            prefersBorder: true,
          },
        },
      },
    ])
  })

  test('is absent for clients without the tool', async () => {
    const { ask } = await opened({ profileOf: () => ({ tools: false }) })
    const denied = JSON.stringify(await ask('resources/read', { uri }))
    const absent = JSON.stringify(await ask('resources/read', { uri: 'ui://hikidashi/another' }))
    expect(denied.replaceAll('explorer', 'another')).toBe(absent)
    expect(denied).toContain('error')
    const { ask: asked } = await opened()
    expect(JSON.stringify(await asked('resources/read', { uri: 'ui://hikidashi/another' }))).toBe(absent)
  })

  test('is in the audit log when it is read', async () => {
    const records: AuditRecord[] = []
    const { result, browse } = await opened({ audit: (record) => records.push(record) })
    await result('resources/read', { uri })
    await browse()
    const [read] = records.filter(({ verb }) => verb === 'read')
    expect(read).toMatchObject({ uri, outcome: 'ok', principal: 'reader', bytes: 38 })
    expect(records.filter(({ verb }) => verb === 'call')).toMatchObject([{ uri: 'browse', outcome: 'ok' }])
  })

  test('gives an error that names "npm run build" if it was not built', async () => {
    const app = createExplorerApp(`${builtApp()}.absent`)
    await expect(app.html()).rejects.toBeInstanceOf(ResourceError)
    await expect(app.html()).rejects.toThrow('npm run build')
  })
})

describe('the built page of the tool browse', () => {
  const html = readFileSync(builtApp(), 'utf8')

  test('is one file of at most 150 kB compressed', () => {
    const { length } = gzipSync(html, { level: 9 })
    expect(length).toBeLessThanOrEqual(150_000)
    expect(length).toBeGreaterThan(50_000)
    expect(html.match(/<script\b[^>]*>/g)?.[0]).toBe('<script>')
    expect(html).not.toMatch(/<link\b[^>]+href=|sourceMappingURL/)
  })

  test('contains no call that sends a request or stores data', () => {
    const forbidden = [
      ...['localStorage', 'sessionStorage', 'indexedDB', 'XMLHttpRequest', 'WebSocket', 'EventSource', 'sendBeacon'],
      ...['new Worker', 'importScripts', 'createObjectURL', 'serviceWorker', 'document.cookie'],
    ]
    expect(forbidden.filter((name) => html.includes(name))).toEqual([])
    expect(html).not.toMatch(/[^\w.$]fetch\(|[^\w.$]import\(/)
  })
})
