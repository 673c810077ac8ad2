import { createServer, type Server } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { examineServer } from '../../src/client/examine.ts'
import type { Diagnosis } from '../../src/core/kit/diagnosis.ts'
import { fixture } from '../support/mcp-servers.ts'

type Answer = { readonly result: unknown } | { readonly error: { code: number; message: string; data?: unknown } }
type Methods = Readonly<Record<string, (params: Readonly<Record<string, unknown>>) => Answer>>

let server: Server | undefined
afterEach(() => {
  server?.closeAllConnections()
  server?.close()
})

const limits = () => ({
  ...{ timeoutMs: 5000, maxBytes: 1_000_000, memoryBytes: 2 ** 30, stderr: 'log' as const },
  ...{ signal: new AbortController().signal, log: () => {} },
})

/** What is found in a server of 2025-06-18 that answers these methods. */
async function examined(methods: Methods, capabilities: unknown = { resources: {} }): Promise<readonly Diagnosis[]> {
  const all: Methods = {
    initialize: () => ({
      result: { protocolVersion: '2025-06-18', capabilities, serverInfo: { name: 'sloppy', version: '1' } },
    }),
    ...methods,
  }
  server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const { id, method = '', params = {} } = JSON.parse(body || '{}')
    if (id === undefined) {
      response.writeHead(request.method === 'POST' ? 202 : 405).end()
      return
    }
    const unknown = { error: { code: -32_601, message: 'Method not found' } }
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ jsonrpc: '2.0', id, ...(all[method]?.(params) ?? unknown) }))
  })
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const told: Diagnosis[] = []
  await examineServer({ url: `http://127.0.0.1:${port}/mcp` }, limits(), (check, found) =>
    told.push({ check, ...found }),
  )
  return told
}

const resource = { uri: 'x://a', name: 'a' }
const good: Methods = {
  'resources/list': () => ({ result: { resources: [resource] } }),
  'resources/templates/list': () => ({ result: { resourceTemplates: [{ uriTemplate: 'x://{a}', name: 'x' }] } }),
  'resources/read': ({ uri }) =>
    uri === 'x://a'
      ? { result: { contents: [{ uri, text: 'a' }] } }
      : { error: { code: -32_002, message: 'Resource not found', data: { uri } } },
}
const of = (told: readonly Diagnosis[], check: string) => told.find((one) => one.check === check)

describe('the examination of a server', () => {
  test('accepts a server that follows the specification', async () => {
    const told = await examined(good)
    expect(told.map(({ check, status }) => [check, status])).toEqual(
      ['connect', 'capabilities', 'list', 'templates', 'read', 'unknown'].map((check) => [check, 'ok']),
    )
    expect(told[0]?.found).toBe('sloppy 1, which speaks MCP 2025-06-18')
  })

  test('accepts a server that is made with the official SDK', async () => {
    const told: Diagnosis[] = []
    await examineServer(fixture('official'), limits(), (check, found) => told.push({ check, ...found }))
    expect(told.filter(({ status }) => status === 'failed')).toEqual([])
    expect(told.map(({ check }) => check)).toContain('unknown')
  })

  const faults: readonly (readonly [check: string, answers: Methods, status: string, words: string])[] = [
    ['list', { 'resources/list': () => ({ result: { resources: [{ uri: 'x://a' }] } }) }, 'failed', 'resources.0.name'],
    ['list', { 'resources/list': () => ({ result: { resources: [resource, resource] } }) }, 'failed', 'listed twice'],
    [
      'list',
      { 'resources/list': () => ({ result: { resources: [], nextCursor: 'again' } }) },
      'failed',
      'the same cursor twice',
    ],
    ['list', { 'resources/list': () => ({ error: { code: -32_603, message: 'boom' } }) }, 'failed', 'boom'],
    [
      'templates',
      { 'resources/templates/list': () => ({ result: { resourceTemplates: [{ uriTemplate: 'x://{a', name: 'x' }] } }) },
      'failed',
      'x://{a is malformed',
    ],
    [
      'read',
      { 'resources/read': ({ uri }) => ({ result: { contents: [{ uri, blob: '***' }] } }) },
      'failed',
      'contents.0.blob',
    ],
    ['read', { 'resources/read': () => ({ result: { contents: [] } }) }, 'failed', 'no content'],
    ['unknown', { 'resources/read': () => ({ result: { contents: [] } }) }, 'failed', 'returns no content'],
    [
      'unknown',
      { 'resources/read': () => ({ error: { code: -32_602, message: 'no' } }) },
      'warning',
      'does not name it',
    ],
    ['unknown', { 'resources/read': () => ({ error: { code: -32_603, message: 'boom' } }) }, 'failed', 'boom'],
  ]
  test.each(faults.map(([check, methods, status, words]) => [check, status, words, methods] as const))(
    'reports a fault in its check "%s" as "%s", with the words "%s"',
    async (check, status, words, methods) => {
      const told = of(await examined({ ...good, ...methods }), check)
      expect(told).toMatchObject({ status, found: expect.stringContaining(words), fix: expect.any(String) })
    },
  )

  test('accepts a server without templates, and reports a server that declares subscriptions and has none', async () => {
    const { 'resources/templates/list': _, ...rest } = good
    const told = await examined(rest, { resources: { subscribe: true } })
    expect(of(told, 'templates')).toMatchObject({ status: 'ok', found: '0 templates' })
    expect(of(told, 'subscribe')).toMatchObject({ status: 'failed' })
  })

  test('ends if the server has no resources, or cannot be started', async () => {
    expect((await examined({}, { tools: {} })).map(({ check, status }) => [check, status])).toEqual([
      ['connect', 'ok'],
      ['capabilities', 'warning'],
    ])
    const told: Diagnosis[] = []
    await examineServer({ command: 'hikidashi-no-such-program' }, limits(), (check, found) =>
      told.push({ check, ...found }),
    )
    expect(told).toMatchObject([{ check: 'connect', status: 'failed', fix: 'Install it, or give its full path.' }])
  })
})
