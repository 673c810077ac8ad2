import { beforeAll, describe, expect, test } from 'vitest'
import { isObject } from '../../src/core/kit/object.ts'
import { type HttpPipe, httpPipe, type Json, type Pipe, stdioPipe } from '../support/wire-pipes.ts'
import { openSchema, type SchemaRevision, schemaRevisions, type WireSchema } from '../support/wire-schema.ts'
import { createServed, places } from '../support/wire-served.ts'

/** A message that the server sent. */
interface Recorded {
  readonly message: unknown
  /** The method of the request that it answers. */
  readonly method?: string
}

const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/clientInfo': { name: 'recorder', version: '0' },
}

/** Runs a whole session, with every method and every kind of error, and returns all messages of the server. */
async function recordSession(revision: SchemaRevision, transport: 'stdio' | 'HTTP'): Promise<readonly Recorded[]> {
  const served = await createServed()
  const http = transport === 'HTTP' ? await httpPipe(served, revision) : undefined
  const pipe = http ?? stdioPipe(served)
  const recorded: Recorded[] = []
  try {
    const talk = createTalk(pipe, revision, recorded)
    await hold(talk, revision)
    if (http !== undefined) await beRefused(http, revision, recorded)
    // Only stdio has this limit.
    else await talk.ask('resources/read', { uri: `${places.huge}/huge.txt` })
  } finally {
    await pipe.close()
    await served.close()
  }
  return recorded
}

interface Talk {
  /** Sends a request, and returns its result or error. */
  ask(method: string, params?: Json, meta?: Json): Promise<Json>
  /** Sends any text that gets an answer. */
  send(text: string, methods?: ReadonlyMap<unknown, string>): Promise<void>
  /** Sends a message without an answer. */
  tell(method: string, params?: Json): Promise<void>
  /** Sends a request and cancels it. */
  cancel(method: string, params: Json): Promise<void>
  message(method: string, params?: Json, meta?: Json): Json & { readonly id: number }
}

function createTalk(pipe: Pipe, revision: SchemaRevision, recorded: Recorded[]): Talk {
  const modern = revision === '2026-07-28'
  let next = 1
  const record = (messages: readonly unknown[], methods: ReadonlyMap<unknown, string>) => {
    for (const message of messages) {
      const parts: readonly unknown[] = Array.isArray(message) ? [message, ...(message as unknown[])] : [message]
      for (const part of parts) {
        const method = isObject(part) && !('method' in part) ? methods.get(part.id) : undefined
        recorded.push({ message: part, ...(method === undefined ? {} : { method }) })
      }
    }
  }
  const wholeParams = (params: Json | undefined, more: Json | undefined) => {
    const _meta = { ...(modern ? meta : {}), ...more }
    return params === undefined && Object.keys(_meta).length === 0 ? {} : { params: { ...params, _meta } }
  }
  const message: Talk['message'] = (method, params, more) => ({
    jsonrpc: '2.0',
    id: next++,
    method,
    ...wholeParams(params, more),
  })
  return {
    message,
    ask: async (method, params, more) => {
      const request = message(method, params, more)
      const messages = await pipe.send(JSON.stringify(request))
      record(messages, new Map([[request.id, method]]))
      const answer = messages.at(-1) as { id?: unknown; result?: Json; error?: Json }
      if (answer?.id !== request.id) throw new Error(`${method} was answered with ${JSON.stringify(answer)}`)
      return answer.result ?? answer.error ?? {}
    },
    send: async (text, methods = new Map()) => record(await pipe.send(text), methods),
    tell: async (method, params) =>
      record(await pipe.tell(JSON.stringify({ jsonrpc: '2.0', method, ...wholeParams(params, {}) })), new Map()),
    cancel: async (method, params) => {
      const request = message(method, params)
      const cancelling = pipe.tell(JSON.stringify(request), 200)
      const done = { jsonrpc: '2.0', method: 'notifications/cancelled', ...wholeParams({ requestId: request.id }, {}) }
      const cancelled = await pipe.tell(JSON.stringify(done), 300)
      record([...(await cancelling), ...cancelled], new Map([[request.id, method]]))
    },
  }
}

async function hold(talk: Talk, revision: SchemaRevision): Promise<void> {
  const { ask } = talk
  if (revision === '2026-07-28') await ask('server/discover')
  else {
    const clientInfo = { name: 'recorder', version: '0' }
    await ask('initialize', { protocolVersion: revision, capabilities: {}, clientInfo })
    await talk.tell('notifications/initialized')
  }
  await ask('ping')
  await ask('tools/list', {})
  await ask('nothing/here', {})
  await listAll(talk)
  await readAll(talk)
  await completeAll(talk, revision)
  await promptAll(talk, revision)
  await ask('resources/read', { uri: `${places.slow}/late.txt` }, { progressToken: 'patience' })
  await talk.cancel('resources/read', { uri: `${places.slow}/late.txt` })
  await sendBatch(talk)
  for (const text of ['{"jsonrpc":"2.0",', '{"jsonrpc":"2.0","jsonrpc":"2.0"}', '7', '{}', '{"jsonrpc":"1.0","id":5}'])
    await talk.send(text)
}

async function listAll({ ask }: Talk): Promise<void> {
  const lists: readonly (readonly [method: string, params: Json])[] = [
    ['resources/list', {}],
    ['resources/templates/list', {}],
    ['prompts/list', {}],
    ['resources/directory/read', { uri: `${places.rich}/directory/` }],
    ['resources/directory/read', { uri: places.folder }],
  ]
  for (const [method, params] of lists) {
    let page = await ask(method, params)
    while (page.nextCursor !== undefined) page = await ask(method, { ...params, cursor: page.nextCursor })
    await ask(method, { ...params, cursor: 'forged' })
    await ask(method, { ...params, cursor: 7 })
  }
  for (const uri of [`${places.rich}/all.txt`, `${places.rich}/absent/`, `${places.down}/`, 'nonsense'])
    await ask('resources/directory/read', { uri })
}

async function readAll({ ask }: Talk): Promise<void> {
  const paths = [
    ...['all.txt', 'bytes.bin', 'directory', 'directory/', 'absent', 'wrong-too.txt', 'wrong%E2%80%AE%E2%80%A8.txt'],
    ...['all.txt?unknown=1', '%E6%97%A5%E6%9C%AC%E8%AA%9E/%E5%BC%95%E3%81%8D%E5%87%BA%E3%81%97.md', '../escape'],
  ]
  for (const path of paths) await ask('resources/read', { uri: `${places.rich}/${path}` })
  for (const path of ['', 'lines.txt', 'lines.txt?lines=10-40', 'lines.txt?bytes=0-99', 'lines.txt?lines=x', 'raw.bin'])
    await ask('resources/read', { uri: `${places.folder}/${path}` })
  for (const uri of [places.folder, `${places.folder}/empty`, `${places.down}/a`, `${places.broken}/a`])
    await ask('resources/read', { uri })
  for (const uri of ['nonsense', 'http://elsewhere/', 'file:///rich/%00', 7]) await ask('resources/read', { uri })
  await ask('resources/read', {})
}

async function completeAll({ ask }: Talk, revision: SchemaRevision): Promise<void> {
  const complete = (uri: string, name: string, value: unknown, more: Json = {}) =>
    ask('completion/complete', { ref: { type: 'ref/resource', uri }, argument: { name, value }, ...more })
  await complete(`${places.rich}/{+path}`, 'path', 'dir')
  await complete(`${places.rich}/directory/{name}`, 'name', '')
  await complete(`${places.rich}/{+path}`, 'other', '')
  await complete(`${places.rich}/{unknown}`, 'unknown', '')
  await complete(`${places.rich}/{+path}`, 'path', 7)
  if (revision >= '2025-06-18')
    await complete(`${places.rich}/{+path}`, 'path', 'a', { context: { arguments: { lines: '1-2' } } })
}

async function promptAll({ ask }: Talk, revision: SchemaRevision): Promise<void> {
  const get = (name: unknown, given: unknown = {}) => ask('prompts/get', { name, arguments: given })
  await get('a')
  await get('ask', { part: 'head', path: 'all.txt' })
  await get('ask', { part: 'head', path: '../absent' })
  await get('ask')
  await get('ask', { part: 7 })
  await get('ask', { part: '', path: '', other: '' })
  for (const name of ['c', 'd', 'none', 7]) await get(name)
  await get('a', [])
  await ask('prompts/get', {})
  const complete = (name: unknown, argument: string, value: string, more: Json = {}) =>
    ask('completion/complete', { ref: { type: 'ref/prompt', name }, argument: { name: argument, value }, ...more })
  await complete('ask', 'part', 'h')
  await complete('ask', 'path', 'dir')
  await complete('ask', 'other', '')
  for (const name of ['none', 7]) await complete(name, 'a', '')
  if (revision >= '2025-06-18') await complete('ask', 'path', 'a', { context: { arguments: { part: 'head' } } })
}

async function sendBatch(talk: Talk): Promise<void> {
  const requests = [
    talk.message('resources/list', {}),
    talk.message('resources/read', { uri: `${places.rich}/absent` }),
    talk.message('resources/templates/list', {}),
  ]
  const notification = { jsonrpc: '2.0', method: 'notifications/initialized' }
  await talk.send(
    JSON.stringify([...requests, notification]),
    new Map(requests.map(({ id, method }) => [id, String(method)])),
  )
}

/** Sends requests that HTTP refuses, whose answers are messages too. */
async function beRefused(pipe: HttpPipe, revision: SchemaRevision, recorded: Recorded[]): Promise<void> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', params: { _meta: meta } })
  const older = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
  const unknown = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'ping',
    params: { _meta: { ...meta, 'io.modelcontextprotocol/protocolVersion': '2030-01-01' } },
  })
  const version = { 'MCP-Protocol-Version': '2026-07-28' }
  const session = { 'Mcp-Session-Id': 'guess' }
  const refused: readonly (readonly [method: string, path: string, body: string | undefined, headers: Json])[] = [
    ['POST', '/mcp', older, { Host: 'evil.example' }],
    ['POST', '/mcp', older, { Origin: 'http://evil.example' }],
    ['POST', '/mcp', older, { 'Content-Type': 'text/plain' }],
    ['POST', '/mcp', older, { Accept: 'text/html' }],
    ['POST', '/mcp', `"${'x'.repeat(200_000)}"`, {}],
    ['POST', '/nowhere', older, {}],
    ['PUT', '/mcp', older, {}],
    ...(revision === '2026-07-28'
      ? ([
          ['GET', '/mcp', undefined, version],
          ['POST', '/mcp', body, { ...version, 'Mcp-Method': 'resources/list' }],
          ['POST', '/mcp', unknown, { ...version, 'Mcp-Method': 'ping' }],
          ['POST', '/mcp', unknown, { 'MCP-Protocol-Version': '2030-01-01', 'Mcp-Method': 'ping' }],
          ['POST', '/mcp', body, version],
        ] as const)
      : ([
          ['POST', '/mcp', older, {}],
          ['POST', '/mcp', older, session],
          ['GET', '/mcp', undefined, session],
          ['DELETE', '/mcp', undefined, session],
          ['POST', '/messages?sessionId=guess', older, {}],
        ] as const)),
  ]
  for (const [method, path, text, headers] of refused) {
    const messages = await pipe.fetch(method, path, text, headers)
    if (messages.length !== 1) throw new Error(`${method} ${path} was answered with ${messages.length} messages`)
    for (const message of messages) recorded.push({ message, method: 'ping' })
  }
}

const sessions = schemaRevisions.flatMap((revision) =>
  (['stdio', 'HTTP'] as const).map((transport) => ({ revision, transport })),
)

/** What is wrong with a session: each fault with the message that has it. */
function faultsIn(recorded: readonly Recorded[], judge: WireSchema): readonly string[] {
  return recorded.flatMap(({ message, method }) =>
    judge.faults(message, method).map((fault) => `${fault} in ${JSON.stringify(message).slice(0, 400)} (${method})`),
  )
}

interface Said {
  readonly id?: unknown
  readonly method?: string
  readonly result?: Json
  readonly error?: { readonly code: number; readonly data?: unknown }
}

describe.each(sessions)('a session on $revision over $transport', ({ revision, transport }) => {
  const modern = revision === '2026-07-28'
  let recorded: readonly Recorded[] = []
  let said: readonly Said[] = []
  const resultsOf = (asked: string): readonly Json[] =>
    recorded.flatMap(({ method, message }) => {
      const { result } = message as Said
      return method === asked && result !== undefined ? [result] : []
    })

  beforeAll(async () => {
    recorded = await recordSession(revision, transport)
    said = recorded.map(({ message }) => message).filter((message) => isObject(message))
  })

  test('has messages that match the schema of the revision', () => {
    expect(faultsIn(recorded, openSchema(revision))).toEqual([])
  })

  test('has no message with a field that the revision does not know', () => {
    expect(faultsIn(recorded, openSchema(revision, { closed: true }))).toEqual([])
  })

  test('has results of initialize or server/discover, and of lists, reads, prompts and completions', () => {
    const methods = recorded.flatMap(({ method, message }) => ((message as Said).result ? [method] : []))
    expect([...new Set(methods)].sort()).toEqual(
      [
        ...(modern ? ['server/discover'] : ['initialize', 'ping']),
        'completion/complete',
        'prompts/get',
        'prompts/list',
        'resources/directory/read',
        'resources/list',
        'resources/read',
        'resources/templates/list',
        'tools/list',
      ].sort(),
    )
    expect(resultsOf('resources/list').length).toBeGreaterThan(3)
    expect(resultsOf('resources/templates/list').length).toBeGreaterThan(1)
  })

  test('has every error code of the revision over the transport, and no secret of a provider', () => {
    const codes = new Set(said.flatMap(({ error }) => error?.code ?? []))
    const expected = [-32700, -32600, -32601, -32602, -32603]
    const ofHttp = modern && transport === 'HTTP' ? [-32020, -32022] : []
    expect([...codes].sort()).toEqual([...expected, ...ofHttp, ...(modern ? [] : [-32002])].sort())
    expect(JSON.stringify(said)).not.toContain('a secret of the driver')
  })

  test('sends progress for a long request, and nothing for a cancelled one', () => {
    expect(said.filter(({ method }) => method === 'notifications/progress').length).toBeGreaterThan(0)
    const late = resultsOf('resources/read').filter((result) => JSON.stringify(result).includes('late'))
    expect(late).toHaveLength(1)
  })

  test('answers a batch if the revision has batches', () => {
    const batches = recorded.map(({ message }) => message).filter((message) => Array.isArray(message))
    expect(batches.map((batch) => batch.length)).toEqual(revision <= '2025-03-26' ? [3] : [])
  })

  test('lists a resource with all the fields that the revision has, and says on 2026-07-28 how long a content may be cached', () => {
    const listed = resultsOf('resources/list').flatMap(({ resources }) => resources as readonly unknown[])
    const all = {
      uri: 'file:///rich/all.txt',
      name: 'all.txt',
      description: 'Everything that can be said of a resource',
      mimeType: 'text/plain; charset=utf-8',
      annotations: { audience: ['user', 'assistant'], priority: 0.5 },
      size: 3,
    }
    const titled = {
      title: 'All of it',
      annotations: { ...all.annotations, lastModified: '2026-07-28T00:00:00.000Z' },
      _meta: { 'dev.hikidashi/version': 'v1', 'dev.hikidashi/untrusted': ['title', 'description'] },
    }
    const pictured = { icons: [expect.objectContaining({ src: 'https://example.org/icon.png' }), expect.anything()] }
    expect(listed).toContainEqual(
      expect.objectContaining({
        ...all,
        ...(revision >= '2025-06-18' ? titled : {}),
        ...(revision >= '2025-11-25' ? pictured : {}),
      }),
    )
    const read = resultsOf('resources/read').find((result) => JSON.stringify(result).includes('"all"'))
    expect(read).toMatchObject(modern ? { resultType: 'complete', ttlMs: 1500, cacheScope: 'public' } : {})
  })
})
