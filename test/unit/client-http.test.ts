import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import type { ConnectOptions } from '../../src/client/index.ts'
import { connect } from '../../src/client/index.ts'
import { endAll } from '../support/endings.ts'
import {
  everything,
  failure,
  fault,
  listen,
  open,
  scripted,
  scriptedModern,
  serveOfficial,
  serveSessions,
  uris,
} from '../support/mcp-servers.ts'

describe('a server over HTTP', () => {
  const serve = async (answer: Parameters<typeof scripted>[0], options?: ConnectOptions) =>
    open({ url: await listen(scripted(answer)) }, options)

  test('gets the configured headers with every request', async () => {
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

  test('gets a DELETE at the end of its session', async () => {
    const ended: string[] = []
    const view = await open({ url: await listen(await serveSessions(ended)) })
    await view.list()
    await view.close?.()
    expect(ended).toEqual(['session-1'])
  })

  test.each([
    [401, 'Cannot connect to URL: it requires authentication (HTTP 401). Send a token in the headers.'],
    [403, 'Cannot connect to URL: it refuses this client (HTTP 403). Send a token in the headers, or another token.'],
    [404, 'There is no MCP server at URL: it answered with HTTP 404. Check the path, which is often /mcp.'],
    [405, 'There is no MCP server at URL: it answered with HTTP 405. Check the path, which is often /mcp.'],
    [418, 'Cannot connect to URL: it answered with HTTP 418. Check that it is an MCP server.'],
    [503, 'Cannot connect to URL: it answered with HTTP 503. Try again later, or look at its log.'],
  ])('that answers %i is unavailable, and the error says why', async (status, message) => {
    const url = await listen((_, response) => void response.writeHead(status).end('secret text'))
    const error = await failure(connect({ url: `${url}?token=secret` }))
    expect(error).toMatchObject({ kind: 'unavailable', message: message.replace('URL', url) })
  })

  test.each([
    [400, 'Cannot connect to URL: it refused the first request. It said: No such host'],
    [
      403,
      'Cannot connect to URL: it refuses this client (HTTP 403). Send a token in the headers, or another token. It said: No such host',
    ],
    [404, 'There is no MCP server at URL: it answered with HTTP 404. Check the path, which is often /mcp.'],
  ])(
    'that refuses the first request with %i gives an error, which quotes its reason unless the status is 404',
    async (status, message) => {
      const body = { jsonrpc: '2.0', id: null, error: { code: -32600, message: 'No such\nhost' } }
      const url = await listen((_, response) => void response.writeHead(status).end(JSON.stringify(body)))
      expect((await failure(connect({ url }))).message).toBe(message.replace('URL', url))
    },
  )

  test.each([
    ['a web page', 'text/html', '<p>'],
    ['JSON of another kind', 'application/json', '{"hello":1}'],
    ['broken JSON', 'application/json', '{'],
  ])('that answers with %s is not an MCP server', async (_, type, body) => {
    const url = await listen((__, response) => void response.writeHead(200, { 'content-type': type }).end(body))
    const error = await failure(connect({ url }))
    expect(error.kind).toBe('unavailable')
    expect(error.message).toMatch(
      /^There is no MCP server at http:[^ ]+\/mcp: (?:it answered with|its answer is not) .*\. Check the path, which is often \/mcp\.$/,
    )
  })

  test('that does not exist is unavailable', async () => {
    const url = await listen(() => {})
    await endAll()
    expect(await failure(connect({ url }))).toMatchObject({
      kind: 'unavailable',
      message: `Cannot connect to ${url}: nothing listens there (ECONNREFUSED). Start the server, or correct the host and port.`,
    })
  })

  test.each([
    ['http://127.0.0.1:6000/mcp', 'port 6000 is reserved for another protocol'],
    ['http://no.such.host.invalid/mcp', 'the name no.such.host.invalid cannot be resolved'],
  ])('cannot be reached at %s, and the error says why', async (url, what) => {
    expect((await failure(connect({ url }))).message).toContain(`Cannot connect to ${url}: ${what}`)
  })

  test('that speaks HTTP instead of HTTPS, or disconnects, is reported', async () => {
    const url = await listen((_, response) => void response.destroy())
    expect((await failure(connect({ url }))).message).toMatch(/the connection was cut off \(.*\)\. Check that it is/)
    expect((await failure(connect({ url: url.replace('http', 'https') }))).message).toMatch(
      /it does not speak https \(.*\)\. Try http\.$/,
    )
  })

  test('that does not answer is unavailable after the time-out', async () => {
    const url = await listen(() => {})
    expect((await failure(connect({ url }, { timeoutMs: 200 }))).message).toBe(
      `Cannot connect to ${url}: it did not answer in time. Check that it is an MCP server, and try again.`,
    )
  })

  test('that fails at the first request of a new client is asked with an older revision', async () => {
    const inner = scripted(() => ({ resources: [] }))
    const url = await listen(async (request, response) => {
      if (request.headers['mcp-method'] === 'server/discover') return void response.writeHead(500).end()
      return inner(request, response)
    })
    expect((await (await open({ url })).list()).items).toEqual([])
  })

  test('cannot have a URL that is not http or https', async () => {
    for (const url of ['file:///etc/passwd', 'ftp://host/', 'nonsense', ''])
      expect(await failure(connect({ url }))).toMatchObject({ kind: 'invalid', detail: { reason: 'uri' } })
  })

  test('that redirects to another server is unavailable, and the other server gets no request', async () => {
    const seen: unknown[] = []
    const elsewhere = await listen((request, response) => {
      seen.push(request.headers.authorization)
      response.writeHead(404).end()
    })
    const url = await listen((_, response) => void response.writeHead(307, { location: elsewhere }).end())
    const error = await failure(connect({ url, headers: { authorization: 'Bearer t' } }))
    expect(error).toMatchObject({ kind: 'unavailable' })
    expect(error.message).toContain(`it redirects to ${elsewhere}, on another server`)
    expect(seen).toEqual([])
  })

  test.each([
    ['the cursor that it was asked with', () => 'a'],
    ['two cursors in turn', (cursor: unknown) => (cursor === 'a' ? 'b' : 'a')],
    ['five cursors in turn', (cursor: unknown) => String((Number(cursor ?? 0) + 1) % 5)],
  ])('whose cursors form a cycle, with %s, is listed only until the cycle is noticed', async (_, next) => {
    let pages = 0
    const view = await serve((__, { cursor }) => {
      pages++
      return { resources: [{ uri: `x:${pages}`, name: 'x' }], nextCursor: next(cursor) }
    })
    const listed = await everything(view)
    expect(listed.map(({ uri }) => uri)).toEqual(Array.from({ length: pages }, (__, at) => `x:${at + 1}`))
    expect(pages).toBeLessThan(20)
    expect(await view.mounts()).toMatchObject([{ uri: 'x:' }])
    expect((await view.directory({ uri: 'x:' })).items.length).toBeGreaterThan(0)
  })

  test('ends a list with an empty cursor before revision 2026-07-28, and continues the list with an empty cursor since then', async () => {
    const old = await serve((_, { cursor }) => ({ resources: [{ uri: `x:${cursor}`, name: 'x' }], nextCursor: '' }))
    expect(uris(await everything(old))).toEqual(['x:undefined'])
    const answer = (_: string, { cursor }: Record<string, unknown>) => ({
      resources: [{ uri: `x:${cursor}`, name: 'x' }],
      ...(cursor === undefined ? { nextCursor: '' } : {}),
    })
    const modern = await open({ url: await listen(scriptedModern(answer)) })
    expect(uris(await everything(modern))).toEqual(['x:undefined', 'x:'])
  })

  test.each(['not base64!', 'AAA', 'AA=A', 'AA\nA', '-_-_'])(
    'that sends the invalid base64 %j as a blob gives an error',
    async (blob) => {
      const view = await serve(() => ({ contents: [{ uri: 'x:1', blob }] }))
      expect(await failure(view.read('x:1'))).toMatchObject({
        kind: 'internal',
        message: 'The answer of the server is malformed: a blob is not base64.',
      })
    },
  )

  test('may answer an empty blob, and contents without a URI', async () => {
    const view = await serve(() => ({ contents: [{ blob: '' }] }))
    expect((await view.read('x:1')).contents).toEqual([{ uri: 'x:1', bytes: Buffer.alloc(0) }])
  })

  test('that answers a read without contents gives not-found', async () => {
    const view = await serve(() => ({ contents: [] }))
    expect((await failure(view.read('x:1'))).kind).toBe('not-found')
  })

  test('that answers a content without text and blob, or no list, gives an error', async () => {
    const view = await serve((method) =>
      method === 'resources/read' ? { contents: [{ uri: 'x:1' }] } : { resources: {} },
    )
    expect((await failure(view.read('x:1'))).message).toContain('neither text nor blob')
    expect((await failure(view.list())).message).toContain('it has no resources')
  })

  test('with a malformed field in metadata loses that field, and not the page', async () => {
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

  test('may omit the zone of a time, which means UTC', async () => {
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

  test('that answers more than the limit gives too-large, as JSON and as a stream', async () => {
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

  test('may send many small events before its answer', async () => {
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

  test.each(['JSON', 'a stream', 'a stream that can be resumed'])(
    'that sends a long page as %s has it parsed in parts',
    async (form) => {
      const resources = Array.from({ length: 20_000 }, (_, i) => ({ uri: `x:${i}`, name: 'n'.repeat(40) }))
      const methods: (string | undefined)[] = []
      const inner = scripted((method, _, response) => {
        if (method !== 'resources/list' || form === 'JSON') return { resources }
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        if (form !== 'a stream') response.write('id: 1\ndata: \n\n')
        // The SDK numbers its requests: initialize, and then this one.
        response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id: 1, result: { resources } })}\n\n`)
        return undefined
      })
      const url = await listen((request, response) => {
        methods.push(request.method)
        inner(request, response)
      })
      const view = await open({ url })
      const parse = vi.spyOn(JSON, 'parse')
      const page = await view.list()
      const longest = Math.max(...parse.mock.calls.map(([text]) => text.length))
      parse.mockRestore()
      expect(page.items).toHaveLength(resources.length)
      expect(page.items[19_999]).toMatchObject(resources[19_999] as object)
      expect(longest).toBeLessThan(400_000)
      expect(methods).not.toContain('GET')
    },
  )

  test('that ends its stream or connection without an answer is unavailable at once', async () => {
    const view = await serve((method, params, response) => {
      if (method === 'resources/list') return { resources: [] }
      if (params.uri === 'x:reset') response.destroy()
      else response.writeHead(200, { 'content-type': 'text/event-stream' }).end(': nothing\n\n')
      return undefined
    })
    expect((await failure(view.read('x:stream'))).kind).toBe('unavailable')
    expect((await failure(view.read('x:reset'))).kind).toBe('unavailable')
    expect((await view.list()).items).toEqual([])
  })

  test('that is slow is unavailable for the slow request only', async () => {
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

  test('lists its own directories page by page, if it supports that', async () => {
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
    'that answers a request for a directory with %i gets a tree that is built from its listing',
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
