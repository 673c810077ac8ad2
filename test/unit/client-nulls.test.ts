import type { IncomingMessage, ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import { connect } from '../../src/client/index.ts'
import { endings } from '../support/endings.ts'
import { failure, fixture, listen } from '../support/mcp-servers.ts'

interface Wire {
  readonly [name: string]: unknown
}

const rule = { protocolVersion: '2025-11-25', serverInfo: { name: 's', version: '1' } }
const capabilities = { resources: {}, tools: {}, prompts: {}, completions: {} }
/** The ways in which a server over HTTP may answer. */
const forms = ['JSON', 'events'] as const

/** A server over HTTP whose answers are whole JSON-RPC messages, as `answer` makes them. */
async function served(form: (typeof forms)[number], answer: (method: string, id: unknown) => unknown) {
  const url = await listen(async (request: IncomingMessage, response: ServerResponse) => {
    if (request.method !== 'POST') return void response.writeHead(405).end()
    const chunks: Uint8Array[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { id, method } = JSON.parse(Buffer.concat(chunks).toString())
    if (id === undefined) return void response.writeHead(202).end()
    const unknown = { jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } }
    const text = JSON.stringify(method === 'server/discover' ? unknown : answer(method, id))
    const isEvents = form === 'events'
    response.writeHead(200, { 'content-type': isEvents ? 'text/event-stream' : 'application/json' })
    response.end(isEvents ? `event: message\ndata: ${text}\n\n` : text)
  })
  return url
}

async function open(url: string) {
  const view = await connect({ url }, { timeoutMs: 5000 })
  endings.push(view.close)
  return view
}

const nulls = { title: null, description: null, mimeType: null, annotations: null, icons: null, _meta: null }
const handshake = {
  ...rule,
  serverInfo: { ...rule.serverInfo, title: null, icons: null, websiteUrl: null },
  capabilities: {
    resources: { subscribe: null, listChanged: null },
    tools: { listChanged: null },
    prompts: {},
    completions: {},
    logging: null,
    experimental: null,
  },
  instructions: null,
  _meta: null,
}
const results: Readonly<Record<string, object>> = {
  initialize: handshake,
  'resources/list': { resources: [{ uri: 'n://a', name: 'a', size: null, ...nulls }], nextCursor: null, _meta: null },
  'resources/templates/list': { resourceTemplates: [{ uriTemplate: 'n://{x}', name: 't', ...nulls }], _meta: null },
  'resources/read': { contents: [{ uri: 'n://a', text: 'x', blob: null, mimeType: null, _meta: null }], _meta: null },
  'prompts/list': { prompts: [{ name: 'p', arguments: null, ...nulls }], nextCursor: null, _meta: null },
  'prompts/get': { description: null, messages: [{ role: 'user', content: { type: 'text', text: 'x', _meta: null } }] },
  'tools/list': { tools: [{ name: 't', inputSchema: { type: 'object' }, outputSchema: null, ...nulls }], _meta: null },
  'tools/call': {
    content: [{ type: 'text', text: 'x', annotations: null, _meta: null }],
    structuredContent: null,
    isError: null,
    _meta: null,
  },
  'completion/complete': { completion: { values: ['x'], total: null, hasMore: null }, _meta: null },
}

describe.each(forms)('null in an answer as %s', (form) => {
  test('counts as absent in every optional member', async () => {
    const url = await served(form, (method, id) => ({ jsonrpc: '2.0', id, result: results[method], error: null }))
    const view = await open(url)
    expect(await view.list()).toMatchObject({ items: [{ uri: 'n://a', name: 'a' }] })
    expect(await view.templates()).toMatchObject({ items: [{ uriTemplate: 'n://{x}' }] })
    expect((await view.read('n://a')).contents).toEqual([{ uri: 'n://a', text: 'x' }])
    expect((await view.prompts?.list())?.items).toEqual([{ name: 'p' }])
    expect(await view.prompts?.get({ name: 'p' })).toEqual({ messages: [{ role: 'user', content: { text: 'x' } }] })
    expect((await view.remoteTools?.list({}))?.items).toEqual([{ name: 't', inputSchema: { type: 'object' } }])
    expect(await view.remoteTools?.call({ name: 't' }, {})).toEqual({ content: [{ text: 'x' }], failed: false })
    const asked = { uriTemplate: 'n://{x}', argument: { name: 'x', value: '' } }
    expect(await view.complete(asked)).toEqual({ values: ['x'] })
  })

  test('counts as an empty list in place of a list', async () => {
    const empty: Readonly<Record<string, object>> = {
      initialize: { ...rule, capabilities },
      'resources/list': { resources: null },
      'resources/templates/list': { resourceTemplates: null },
      'prompts/list': { prompts: null },
      'prompts/get': { messages: null },
      'tools/list': { tools: null },
      'tools/call': { content: null },
      'resources/read': { contents: null },
      'completion/complete': { completion: { values: null } },
    }
    const view = await open(await served(form, (method, id) => ({ jsonrpc: '2.0', id, result: empty[method] })))
    expect((await view.list()).items).toEqual([])
    expect((await view.templates()).items).toEqual([])
    expect((await view.prompts?.list())?.items).toEqual([])
    expect((await view.prompts?.get({ name: 'p' }))?.messages).toEqual([])
    expect((await view.remoteTools?.list({}))?.items).toEqual([])
    expect(await view.remoteTools?.call({ name: 't' }, {})).toEqual({ content: [], failed: false })
    expect((await failure(view.read('n://a'))).kind).toBe('not-found')
    const asked = { uriTemplate: 'n://{x}', argument: { name: 'x', value: '' } }
    expect(await view.complete(asked)).toEqual({ values: [] })
  })

  test('in place of a required value is reported at once with the name of the member, as a wrong type is; a null id is accepted', async () => {
    let message: Wire = {}
    const view = await open(
      await served(form, (method, id) => ({
        jsonrpc: '2.0',
        id,
        ...(method === 'initialize' ? { result: { ...rule, capabilities } } : message),
      })),
    )
    const told: readonly (readonly [message: Wire, member: string])[] = [
      [{ result: null }, 'result is not an object'],
      [{ result: [] }, 'result is not an object'],
      [{ result: 'text' }, 'result is not an object'],
      [{ result: null, error: null }, 'result is not an object'],
      [{}, 'result is not an object'],
      [{ result: { _meta: [], resources: [] } }, 'result._meta is not an object'],
      [{ error: 'text' }, 'error is not an object'],
      [{ error: { code: null, message: 'x' } }, 'error.code is not a whole number'],
      [{ error: { code: 1.5, message: 'x' } }, 'error.code is not a whole number'],
      [{ error: { code: 1, message: null } }, 'error.message is not a string'],
      [{ jsonrpc: '1.0', result: {} }, 'jsonrpc is not "2.0"'],
      [{ result: { resources: 7 } }, 'it has no resources'],
    ]
    for (const [given, member] of told) {
      message = given
      const error = await failure(view.list())
      expect([error.kind, error.message]).toEqual(['internal', expect.stringContaining(member)])
    }
    // An error without data, with a member too many, and without an id is still an error; so is a result.
    for (const id of [null, undefined]) {
      message = { error: { code: -32002, message: 'There is none.', data: null }, result: null, id, extra: 1 }
      expect(await failure(view.read('n://a'))).toMatchObject({ kind: 'not-found', message: 'There is none.' })
      message = { result: { resources: [] }, id, extra: null }
      expect((await view.list()).items).toEqual([])
    }
  })

  test('in the first answer counts as absent if the member is optional, and is reported otherwise', async () => {
    let first: Wire = {}
    const url = await served(form, (_, id) => ({ jsonrpc: '2.0', id, result: { ...rule, ...first } }))
    first = { capabilities: null, instructions: null }
    expect((await (await open(url)).list()).items).toEqual([])
    const told: readonly (readonly [first: Wire, member: string])[] = [
      [{ serverInfo: null, capabilities: {} }, 'result.serverInfo is not an object'],
      [{ serverInfo: { name: 's', version: null }, capabilities: {} }, 'result.serverInfo.version is not a string'],
      [{ protocolVersion: null, capabilities: {} }, 'result.protocolVersion is not a string'],
      [{ capabilities: [] }, 'result.capabilities is not an object'],
      [{ capabilities: {}, instructions: 7 }, 'result.instructions is not a string'],
    ]
    for (const [given, member] of told) {
      first = given
      const error = await failure(connect({ url }, { timeoutMs: 5000 }))
      expect([error.kind, error.message]).toEqual(['unavailable', expect.stringContaining(member)])
    }
  })
})

test('null in the messages of a command counts as absent, and an unreadable message is reported at once', async () => {
  const view = await connect(fixture('nulls'), { timeoutMs: 5000 })
  endings.push(view.close)
  expect((await view.list()).items).toMatchObject([{ uri: 'n://a' }])
  const reports: unknown[] = []
  const called = await view.remoteTools?.call({ name: 't' }, {}, { onProgress: (report) => void reports.push(report) })
  expect(called?.content).toEqual([{ text: 'pinged' }])
  expect(reports).toEqual([{ progress: 1 }])
  expect((await failure(view.read('n://a'))).message).toContain('error.message is not a string')
})
