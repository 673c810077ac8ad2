import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createMcpHandler } from '@modelcontextprotocol/server'
import { afterEach, describe, expect, test } from 'vitest'
import type { ConnectOptions, Target } from '../../src/client/index.ts'
import { connect } from '../../src/client/index.ts'
import { isResourceError, ResourceError } from '../../src/core/errors.ts'
import type { Log } from '../../src/core/log.ts'
import type { Resource, View } from '../../src/core/view.ts'
// @ts-expect-error: the fixtures are JavaScript, since they run as programs of their own.
import { resources as held } from '../fixtures/mcp/data.mjs'
// @ts-expect-error: as above.
import { createServer as createOfficialServer } from '../fixtures/mcp/official.mjs'
// @ts-expect-error: as above.
import { createOldServer } from '../fixtures/mcp/old.mjs'

const fixture = (name: string, ...args: readonly string[]): Target => ({
  command: process.execPath,
  args: [new URL(`../fixtures/mcp/${name}.mjs`, import.meta.url).pathname, ...args],
})

const endings: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end()
})

async function open(target: Target, options?: ConnectOptions): Promise<View> {
  const view = await connect(target, { timeoutMs: 5000, ...options })
  endings.push(async () => view.close?.())
  return view
}

/** Serves HTTP on a free port of this machine until the test ends. */
async function listen(listener: RequestListener): Promise<string> {
  const server: Server = createServer(listener).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  endings.push(async () => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

const serveOfficial = () => {
  const handler = createMcpHandler(() => createOfficialServer())
  return async (request: IncomingMessage, response: ServerResponse) => {
    const body = request.method === 'POST' ? { body: await bodyOf(request) } : {}
    const answer = await handler.fetch(
      new Request(`http://127.0.0.1${request.url}`, {
        method: request.method ?? 'GET',
        headers: request.headers as Record<string, string>,
        ...body,
      }),
    )
    response.writeHead(answer.status, Object.fromEntries(answer.headers))
    response.end(Buffer.from(await answer.arrayBuffer()))
  }
}

/** A server of revision 2024-11-05: a stream, and a second URL to post to. */
async function serveSse(): Promise<RequestListener> {
  const { SSEServerTransport } = await import('sdk112/server/sse.js' as string)
  const sessions = new Map<
    string,
    { handlePostMessage(request: IncomingMessage, response: ServerResponse): Promise<void> }
  >()
  return async (request, response) => {
    const url = new URL(request.url ?? '/', 'http://127.0.0.1')
    if (request.method === 'GET') {
      const transport = new SSEServerTransport('/messages', response)
      sessions.set(transport.sessionId, transport)
      await (await createOldServer('sdk112')).connect(transport)
      return
    }
    const session = sessions.get(url.searchParams.get('sessionId') ?? '')
    if (session === undefined) response.writeHead(url.pathname === '/mcp' ? 405 : 404).end()
    else await session.handlePostMessage(request, response)
  }
}

/** A server of revisions 2025-03-26 to 2025-11-25, with sessions. */
async function serveSessions(ended: string[]): Promise<RequestListener> {
  const { StreamableHTTPServerTransport } = await import('sdk124/server/streamableHttp.js' as string)
  const sessions = new Map<
    string,
    { handleRequest(request: IncomingMessage, response: ServerResponse): Promise<void> }
  >()
  return async (request, response) => {
    const id = String(request.headers['mcp-session-id'] ?? '')
    if (request.method === 'DELETE') ended.push(id)
    const known = sessions.get(id)
    if (known !== undefined) return known.handleRequest(request, response)
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => 'session-1',
      onsessioninitialized: (session: string) => void sessions.set(session, transport),
    })
    await (await createOldServer('sdk124')).connect(transport)
    await transport.handleRequest(request, response)
  }
}

async function everything(view: View): Promise<readonly Resource[]> {
  const items: Resource[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await view.list(cursor === undefined ? {} : { cursor })
    items.push(...page.items)
    cursor = page.nextCursor
    if (cursor === undefined) return items
  }
}

const failure = async (work: Promise<unknown>): Promise<ResourceError> => {
  const error = await work.then(() => undefined).catch((caught: unknown) => caught)
  if (isResourceError(error)) return error
  throw new Error(`expected a ResourceError, got ${String(error)}`)
}

const uris = (items: readonly Resource[]) => items.map((item) => item.uri)

interface Kind {
  readonly target: () => Promise<Target>
  /** The revision that is agreed on. */
  readonly revision: string
}

const kinds: Readonly<Record<string, Kind>> = {
  'a command, SDK 2': { target: async () => fixture('official'), revision: '2026-07-28' },
  'a command, SDK 1.24': { target: async () => fixture('old', 'sdk124'), revision: '2025-11-25' },
  'a command, SDK 1.13': { target: async () => fixture('old', 'sdk113'), revision: '2025-06-18' },
  'a command, SDK 1.12': { target: async () => fixture('old', 'sdk112'), revision: '2025-03-26' },
  'a command, SDK 1.0': { target: async () => fixture('old', 'sdk100'), revision: '2024-11-05' },
  'Streamable HTTP, SDK 2': { target: async () => ({ url: await listen(serveOfficial()) }), revision: '2026-07-28' },
  'Streamable HTTP, SDK 1.24': {
    target: async () => ({ url: await listen(await serveSessions([])) }),
    revision: '2025-11-25',
  },
  'HTTP with SSE, SDK 1.12': { target: async () => ({ url: await listen(await serveSse()) }), revision: '2025-03-26' },
}

for (const [name, { target, revision }] of Object.entries(kinds))
  describe(`a server over ${name}`, () => {
    const knowsTitles = revision >= '2025-06-18'

    test('lists page by page, to the end', async () => {
      const view = await open(await target())
      expect(uris((await view.list()).items)).toHaveLength(2)
      const all = await everything(view)
      expect(uris(all)).toEqual(held.map(({ uri }: Resource) => uri))
      expect(all[0]).toMatchObject({
        name: 'a.md',
        description: 'A page',
        mimeType: 'text/markdown',
        size: 5,
        priority: 0.8,
        audience: ['user'],
      })
      if (knowsTitles)
        expect(all[0]).toMatchObject({ title: 'The first', modified: Date.UTC(2026, 0, 2, 3, 4, 5), version: 'v1' })
      if (revision >= '2025-11-25')
        expect(all[0]?.icons).toEqual([{ src: 'https://example.com/a.png', mimeType: 'image/png', sizes: ['48x48'] }])
    })

    test('reads text and bytes', async () => {
      const view = await open(await target())
      const text = await view.read('file:///docs/a.md')
      expect(text.contents[0]).toMatchObject({ uri: 'file:///docs/a.md', mimeType: 'text/markdown', text: '# one' })
      if (knowsTitles) expect(text.contents[0]).toMatchObject({ version: 'v1', meta: { more: 1 } })
      const bytes = await view.read('file:///docs/sub/c.png')
      expect(bytes.contents).toEqual([
        { uri: 'file:///docs/sub/c.png', mimeType: 'image/png', bytes: Buffer.from([0x89, 0x50, 0x4e, 0x47]) },
      ])
      expect((await view.read('file:///docs/sub/b.md')).contents).toEqual([{ uri: 'file:///docs/sub/b.md', text: '' }])
    })

    test('says how long an answer may be kept', async () => {
      const view = await open(await target())
      const cache = revision === '2026-07-28' ? { ttlMs: 5000, scope: 'public' } : { ttlMs: 0, scope: 'private' }
      expect((await view.list()).cache).toEqual(cache)
      expect((await view.read('memo://today')).cache).toEqual(cache)
    })

    test('does not find what is not there', async () => {
      const view = await open(await target())
      expect((await failure(view.read('file:///docs/none'))).kind).toBe('not-found')
      expect((await failure(view.directory({ uri: 'file:///none/' }))).kind).toBe('not-found')
    })

    test('lists and completes templates', async () => {
      const view = await open(await target())
      expect((await view.templates()).items[0]).toMatchObject({ uriTemplate: 'file:///docs/{+path}', name: 'page' })
      const request = {
        uriTemplate: 'file:///docs/{+path}',
        argument: { name: 'path', value: 'a' },
        arguments: new Map([['other', 'x']]),
      }
      const values = knowsTitles ? ['a1', 'other=x'] : ['a1']
      expect(await view.complete(request)).toEqual({ values, total: values.length, hasMore: false })
    })

    test('shows a tree made of its listing', async () => {
      const view = await open(await target())
      const mounts = await view.mounts()
      expect(mounts.map(({ uri, mimeType }) => [uri, mimeType])).toEqual([
        ['file:///docs/', 'inode/directory'],
        ['memo://', 'inode/directory'],
      ])
      const top = (await view.directory({ uri: 'file:///docs/' })).items
      expect(uris(top)).toEqual(['file:///docs/%E6%97%A5.txt', 'file:///docs/a.md', 'file:///docs/sub/'])
      expect(top[2]).toEqual({ uri: 'file:///docs/sub/', name: 'sub', mimeType: 'inode/directory' })
      expect(uris((await view.directory({ uri: 'file:///docs/sub' })).items)).toEqual([
        'file:///docs/sub/b.md',
        'file:///docs/sub/c.png',
      ])
      expect(uris((await view.directory({ uri: 'memo://' })).items)).toEqual(['memo://today'])
      expect(await failure(view.directory({ uri: 'file:///docs/a.md' }))).toMatchObject({
        kind: 'invalid',
        detail: { reason: 'not-a-directory' },
      })
    })

    test('stops waiting when the caller does', async () => {
      const view = await open(await target())
      await expect(view.list({}, { signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow('enough')
      const abort = new AbortController()
      const reading = view.read('memo://today', { signal: abort.signal })
      abort.abort(new Error('enough'))
      await expect(reading).rejects.toThrow('enough')
      expect((await view.read('memo://today')).contents).toHaveLength(1)
    })
  })

describe('errors of a server', () => {
  test('that are about the request keep their words and facts', async () => {
    const view = await open(fixture('official'))
    expect(await failure(view.read('invalid:'))).toMatchObject({
      kind: 'invalid',
      message: 'Bad URI',
      detail: { reason: 'syntax', limit: 3 },
    })
  })

  test('that are its own are internal, on one line', async () => {
    const view = await open(fixture('official'))
    expect(await failure(view.read('broken:'))).toMatchObject({
      kind: 'internal',
      message: 'resources/read failed: Something broke',
    })
  })

  test('that are cursors of nobody are invalid', async () => {
    const view = await open(fixture('official'))
    expect(await failure(view.list({ cursor: 'made up' }))).toMatchObject({
      kind: 'invalid',
      detail: { reason: 'cursor' },
    })
  })
})

describe('a command', () => {
  test('that does not exist is unavailable', async () => {
    expect(await failure(connect({ command: '/no/such/program' }))).toMatchObject({
      kind: 'unavailable',
      message: 'The command /no/such/program cannot be started (ENOENT).',
    })
  })

  test('that fails to start is unavailable, with its last words', async () => {
    const error = await failure(connect(fixture('hostile', 'fails')))
    expect(error.kind).toBe('unavailable')
    expect(error.message).toContain('It said: the license has expired')
  })

  test('that exits at what a new client asks first is started again, and spoken to in the old way', async () => {
    const view = await open(fixture('hostile', 'exits'))
    expect(await everything(view)).toHaveLength(held.length)
  })

  test('that never answers is unavailable, in time', async () => {
    const started = Date.now()
    expect(await failure(connect(fixture('hostile', 'silent'), { timeoutMs: 200 }))).toMatchObject({
      kind: 'unavailable',
    })
    expect(Date.now() - started).toBeLessThan(6000)
  })

  test('can be given up while it is being started', async () => {
    const signal = AbortSignal.timeout(300)
    const started = Date.now()
    await expect(connect(fixture('hostile', 'silent'), { signal })).rejects.toThrow(/timeout|aborted/)
    expect(Date.now() - started).toBeLessThan(5000)
  })

  test('that writes garbage beside its answers is understood', async () => {
    const view = await open(fixture('hostile', 'garbage'))
    expect(await everything(view)).toHaveLength(held.length)
  })

  test('that dies in the middle of a request is unavailable, at once and from then on', async () => {
    const view = await open(fixture('hostile', 'dies'))
    const started = Date.now()
    expect(await failure(view.read('memo://today'))).toMatchObject({ kind: 'unavailable' })
    expect(Date.now() - started).toBeLessThan(2000)
    expect(await failure(view.list())).toMatchObject({ message: 'The connection has ended. Connect again.' })
  })

  test('that is slow is unavailable for that request only', async () => {
    const view = await open(fixture('hostile', 'slow'), { timeoutMs: 1000 })
    expect(await failure(view.read('memo://today'))).toMatchObject({
      kind: 'unavailable',
      message: 'The server did not answer resources/read in time.',
    })
    expect((await view.list()).items).toHaveLength(2)
  })

  test('that answers with more than the limit is too large', async () => {
    const view = await open(fixture('hostile', 'huge'), { maxBytes: 100_000 })
    expect(await failure(view.read('memo://today'))).toMatchObject({ kind: 'too-large', detail: { limit: 100_000 } })
  })

  test('without resources has an empty listing', async () => {
    const view = await open(fixture('hostile', 'without'))
    expect(await view.list()).toEqual({ items: [], cache: { ttlMs: 0, scope: 'private' } })
    expect((await view.templates()).items).toEqual([])
    expect(await view.mounts()).toEqual([])
    expect((await failure(view.read('memo://today'))).kind).toBe('not-found')
    expect((await failure(view.directory({ uri: 'memo://' }))).kind).toBe('not-found')
  })

  test('without templates or completions has none', async () => {
    const view = await open(fixture('hostile', 'garbage'))
    expect((await view.templates()).items).toEqual([])
    const request = { uriTemplate: 'x:{a}', argument: { name: 'a', value: '' } }
    expect(await view.complete(request)).toEqual({ values: [] })
  })

  test('may say null where there is no next page', async () => {
    const view = await open(fixture('hostile', 'null'))
    expect(await view.list()).toMatchObject({ items: [{ uri: 'memo://today' }] })
    expect(await view.list()).not.toHaveProperty('nextCursor')
  })

  test('has what it says on its standard error logged, one line at a time', async () => {
    const said: unknown[] = []
    const log: Log = (level, _, fields) => said.push([level, fields?.stderr])
    await open(fixture('hostile', 'loud'), { log })
    await expect
      .poll(() => said)
      .toEqual([
        ['debug', 'first line'],
        ['debug', 'second line'],
      ])
  })

  test('gets its own environment, and not that of this process', async () => {
    process.env.HIKIDASHI_SECRET = 'secret'
    const said: unknown[] = []
    const script = `process.stderr.write(JSON.stringify([process.env.HIKIDASHI_SECRET, process.env.GIVEN, process.cwd()]) + '\\n')`
    const target = { command: process.execPath, args: ['-e', script], env: { GIVEN: 'yes' }, cwd: '/' }
    await failure(connect(target, { log: (_, __, fields) => said.push(fields?.stderr) }))
    expect(said).toContain('[null,"yes","/"]')
    delete process.env.HIKIDASHI_SECRET
  })

  test.each([
    ['that ends with its input ends at once', 'slow', 1500],
    ['that ignores its end is killed', 'stubborn', 6000],
  ])('%s', async (_, mode, within) => {
    const pids: number[] = []
    const script = `process.stderr.write(process.pid + '\\n'); process.argv.splice(1, 0, ''); await import(process.argv[3])`
    const { args = [] } = fixture('hostile', mode) as { args?: string[] }
    const target = {
      command: process.execPath,
      args: ['--input-type=module', '-e', script.replace('process.argv[3]', JSON.stringify(args[0])), mode],
    }
    const view = await connect(target, { log: (_level, __, fields) => pids.push(Number(fields?.stderr)) })
    await expect.poll(() => pids.length).toBeGreaterThan(0)
    const pid = pids[0] ?? 0
    const started = Date.now()
    await Promise.all([view.close?.(), view.close?.()])
    await expect.poll(() => isRunning(pid)).toBe(false)
    expect(Date.now() - started).toBeLessThan(within)
    expect((await failure(view.list())).kind).toBe('unavailable')
  })
})

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** A server of the old handshake over HTTP that answers `resources/…` as it is told. */
const scripted =
  (answer: (method: string, params: Record<string, unknown>, response: ServerResponse) => unknown): RequestListener =>
  async (request, response) => {
    if (request.method !== 'POST') return void response.writeHead(405).end()
    const { id, method, params } = JSON.parse(await bodyOf(request))
    if (id === undefined) return void response.writeHead(202).end()
    const reply = (message: object) =>
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, ...message }))
    if (method === 'server/discover') return void reply({ error: { code: -32601, message: 'Method not found' } })
    if (method === 'initialize') {
      const serverInfo = { name: 'scripted', version: '1' }
      return void reply({ result: { protocolVersion: '2025-11-25', serverInfo, capabilities: { resources: {} } } })
    }
    const result = await answer(method, params ?? {}, response)
    if (result instanceof ResourceError) reply({ error: { code: result.detail.code, message: result.message } })
    else if (result !== undefined) reply({ result })
  }

const fault = (code: number, message: string) => new ResourceError('internal', message, { code })

describe('a server over HTTP', () => {
  const serve = async (answer: Parameters<typeof scripted>[0], options?: ConnectOptions) =>
    open({ url: await listen(scripted(answer)) }, options)

  test('gets the headers with every request', async () => {
    const seen = new Set<unknown>()
    const inner = serveOfficial()
    const url = await listen((request, response) => {
      seen.add(request.headers.authorization)
      void inner(request, response)
    })
    const view = await open({ url, headers: { authorization: 'Bearer t' } })
    await view.list()
    expect([...seen]).toEqual(['Bearer t'])
  })

  test('is told that its session is over', async () => {
    const ended: string[] = []
    const view = await open({ url: await listen(await serveSessions(ended)) })
    await view.list()
    await view.close?.()
    expect(ended).toEqual(['session-1'])
  })

  test.each([
    [401, 'The server asks who you are (HTTP 401). Give it a token in the headers.'],
    [403, 'The server refuses this connection (HTTP 403). The token in the headers may not be enough.'],
    [404, 'There is no MCP server at this URL, or the session has ended (HTTP 404).'],
    [500, 'The server answered with HTTP 500.'],
  ])('that answers %i is unavailable, in words', async (status, message) => {
    const url = await listen((_, response) => void response.writeHead(status).end('secret text'))
    expect(await failure(connect({ url }))).toMatchObject({ kind: 'unavailable', message })
  })

  test('that is a web page is unavailable', async () => {
    const url = await listen((_, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<p>'))
    expect((await failure(connect({ url }))).kind).toBe('unavailable')
  })

  test('that is not there is unavailable', async () => {
    const url = await listen(() => {})
    for (const end of endings.splice(0)) await end()
    const error = await failure(connect({ url }))
    expect(error).toMatchObject({ kind: 'unavailable', message: 'The server cannot be reached (ECONNREFUSED).' })
  })

  test('that falls over the first question of a new client is asked in the old way', async () => {
    const inner = scripted(() => ({ resources: [] }))
    const url = await listen(async (request, response) => {
      if (request.headers['mcp-method'] === 'server/discover') return void response.writeHead(500).end()
      return inner(request, response)
    })
    expect((await (await open({ url })).list()).items).toEqual([])
  })

  test('is not at a URL that is not http', async () => {
    for (const url of ['file:///etc/passwd', 'ftp://host/', 'nonsense', ''])
      expect(await failure(connect({ url }))).toMatchObject({ kind: 'invalid', detail: { reason: 'url' } })
  })

  test('does not get the headers when it sends the client elsewhere', async () => {
    const seen: unknown[] = []
    const elsewhere = await listen((request, response) => {
      seen.push(request.headers.authorization)
      response.writeHead(404).end()
    })
    const url = await listen((_, response) => void response.writeHead(307, { location: elsewhere }).end())
    expect((await failure(connect({ url, headers: { authorization: 'Bearer t' } }))).kind).toBe('unavailable')
    expect(seen).toEqual([])
  })

  test.each([
    ['the cursor that it was asked with', () => 'a'],
    ['two cursors in turn', (cursor: unknown) => (cursor === 'a' ? 'b' : 'a')],
    ['five cursors in turn', (cursor: unknown) => String((Number(cursor ?? 0) + 1) % 5)],
  ])('that leads in a circle, with %s, is found out', async (_, next) => {
    let pages = 0
    const view = await serve((__, { cursor }) => {
      pages++
      return { resources: [{ uri: `x:${pages}`, name: 'x' }], nextCursor: next(cursor) }
    })
    const error = await failure(everything(view))
    expect(error.kind).toBe('internal')
    expect(error.message).toContain('in a circle')
    expect(pages).toBeLessThan(20)
    expect((await failure(view.mounts())).message).toContain('in a circle')
    expect((await failure(view.directory({ uri: 'x:' }))).message).toContain('in a circle')
  })

  test.each(['not base64!', 'AAA', 'AA=A', 'AA\nA', '-_-_'])('that sends %j for bytes is refused', async (blob) => {
    const view = await serve(() => ({ contents: [{ uri: 'x:1', blob }] }))
    expect(await failure(view.read('x:1'))).toMatchObject({
      kind: 'internal',
      message: "The server's answer is malformed: a blob is not base64.",
    })
  })

  test('may answer an empty blob, and contents without a URI', async () => {
    const view = await serve(() => ({ contents: [{ blob: '' }] }))
    expect((await view.read('x:1')).contents).toEqual([{ uri: 'x:1', bytes: Buffer.alloc(0) }])
  })

  test('that answers no contents has nothing there', async () => {
    const view = await serve(() => ({ contents: [] }))
    expect((await failure(view.read('x:1'))).kind).toBe('not-found')
  })

  test('that answers a content of neither kind, or no list, is malformed', async () => {
    const view = await serve((method) =>
      method === 'resources/read' ? { contents: [{ uri: 'x:1' }] } : { resources: {} },
    )
    expect((await failure(view.read('x:1'))).message).toContain('neither text nor blob')
    expect((await failure(view.list())).message).toContain('it has no resources')
  })

  test('with bad metadata costs the bad field, and not the page', async () => {
    const bad = {
      uri: 'x:1',
      title: 7,
      size: -1,
      annotations: { priority: 3, audience: ['robot', 'user', 'user'], lastModified: 'yesterday' },
      icons: [{ src: 'javascript:alert(1)' }, 'icon', { src: 'data:image/png;base64,AA==' }],
      _meta: [],
    }
    const view = await serve(() => ({ resources: [bad, { name: 'without a URI' }, null, 'text'] }))
    expect((await view.list()).items).toEqual([
      { uri: 'x:1', name: '1', audience: ['user'], icons: [{ src: 'data:image/png;base64,AA==' }] },
    ])
  })

  test('may leave the zone out of a time, and means UTC', async () => {
    const dates = ['2026-01-02T03:04:05', '2026-01-02', '2026-01-02T03:04:05+09:00']
    const view = await serve(() => ({
      resources: dates.map((lastModified, i) => ({ uri: `x:${i}`, name: 'x', annotations: { lastModified } })),
    }))
    expect((await view.list()).items.map(({ modified }) => modified)).toEqual([
      Date.UTC(2026, 0, 2, 3, 4, 5),
      Date.UTC(2026, 0, 2),
      Date.UTC(2026, 0, 1, 18, 4, 5),
    ])
  })

  test('that answers more than the limit is too large, as JSON and as a stream', async () => {
    const text = 'x'.repeat(200_000)
    const view = await serve(
      (method, params, response) => {
        if (method === 'resources/list') return { resources: [] }
        if (params.uri === 'x:json') return { contents: [{ uri: 'x:json', text }] }
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        for (let i = 0; i < 20; i++) response.write(`data: ${text.slice(0, 20_000)}\n`)
        return undefined
      },
      { maxBytes: 100_000 },
    )
    expect(await failure(view.read('x:json'))).toMatchObject({ kind: 'too-large', detail: { limit: 100_000 } })
    expect(await failure(view.read('x:stream'))).toMatchObject({ kind: 'too-large', detail: { limit: 100_000 } })
    expect((await view.list()).items).toEqual([])
  })

  test('may send many small events on the way to its answer', async () => {
    let id = 0
    const view = await serve(
      async (method, _, response) => {
        if (method !== 'resources/read') return { resources: [] }
        const progress = {
          jsonrpc: '2.0',
          method: 'notifications/message',
          params: { data: 'x'.repeat(1000), level: 'info' },
        }
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        for (let i = 0; i < 200; i++) response.write(`data: ${JSON.stringify(progress)}\n\n`)
        response.end(
          `data: ${JSON.stringify({ jsonrpc: '2.0', id, result: { contents: [{ uri: 'x:1', text: 'at last' }] } })}\n\n`,
        )
        return undefined
      },
      { maxBytes: 20_000 },
    )
    // The SDK numbers its requests: initialize, and then these.
    id = 1
    expect((await view.read('x:1')).contents).toEqual([{ uri: 'x:1', text: 'at last' }])
  })

  test('that ends its stream without an answer, or its connection, is unavailable at once', async () => {
    const view = await serve((method, params, response) => {
      if (method === 'resources/list') return { resources: [] }
      if (params.uri === 'x:reset') response.destroy()
      else response.writeHead(200, { 'content-type': 'text/event-stream' }).end(': nothing\n\n')
      return undefined
    })
    const started = Date.now()
    expect((await failure(view.read('x:stream'))).kind).toBe('unavailable')
    expect((await failure(view.read('x:reset'))).kind).toBe('unavailable')
    expect(Date.now() - started).toBeLessThan(2000)
    expect((await view.list()).items).toEqual([])
  })

  test('that is slow is unavailable for that request only', async () => {
    const view = await serve(async (method) => (method === 'resources/read' ? sleep(2000) : { resources: [] }), {
      timeoutMs: 300,
    })
    expect((await failure(view.read('x:1'))).message).toBe('The server did not answer resources/read in time.')
    expect((await view.list()).items).toEqual([])
  })

  test('names its mounts, and those that are missing from a page', async () => {
    const view = await serve(() => ({
      resources: [],
      _meta: {
        'dev.hikidashi/mounts': [{ uri: 'git://app', name: 'app', title: 'The application' }, 7],
        'dev.hikidashi/unavailable': ['s3://bucket'],
      },
    }))
    expect(await view.mounts()).toEqual([
      { uri: 'git://app', name: 'app', title: 'The application', mimeType: 'inode/directory' },
    ])
    expect((await view.list()).unavailable).toEqual(['s3://bucket'])
  })

  test('reads its own directories, where it can, page by page', async () => {
    const asked: (readonly [string, unknown])[] = []
    const view = await serve((method, params) => {
      asked.push([method, params])
      if (params.uri === 'x://none/') return fault(-32002, 'not found')
      const child = { uri: `x://a/${String(params.cursor ?? 'first')}`, name: 'child' }
      return { resources: [child], ...(params.cursor === undefined ? { nextCursor: 'second' } : {}) }
    })
    const first = await view.directory({ uri: 'x://a/' })
    const second = await view.directory({ uri: 'x://a/', ...(first.nextCursor ? { cursor: first.nextCursor } : {}) })
    expect([...uris(first.items), ...uris(second.items)]).toEqual(['x://a/first', 'x://a/second'])
    expect(second.nextCursor).toBeUndefined()
    // Once it has read one, what it says of others is the last word.
    expect((await failure(view.directory({ uri: 'x://none/' }))).kind).toBe('not-found')
    expect(asked.filter(([method]) => method === 'resources/list')).toEqual([])
  })

  test.each([-32601, -32602, -32600, -32603])(
    'that answers a question for a directory with %i has a tree made of its listing',
    async (code) => {
      const methods: string[] = []
      const view = await serve((method) => {
        methods.push(method)
        if (method !== 'resources/list') return fault(code, 'Invalid request parameters')
        return { resources: [{ uri: 'x://a/b/c', name: 'c' }] }
      })
      expect(uris((await view.directory({ uri: 'x://a/' })).items)).toEqual(['x://a/b/'])
      expect(uris((await view.directory({ uri: 'x://a/b/' })).items)).toEqual(['x://a/b/c'])
      // A walk lists once, and a server that said plainly that it cannot is asked once.
      expect(methods.filter((method) => method === 'resources/list')).toHaveLength(1)
      expect(methods.filter((method) => method !== 'resources/list')).toHaveLength(code === -32601 ? 1 : 2)
    },
  )
})
