import { request as httpRequest, type IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import { afterEach, describe, expect, test } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import type { ChangeLimits } from '../../src/core/changes.ts'
import { type HttpService, serveHttp } from '../../src/server/http/serve-http.ts'
import { openViewChannel } from '../../src/server/serve.ts'
import { serveStdio } from '../../src/server/stdio/serve-stdio.ts'
import { type Live, live, pause, until } from '../support/live.ts'

interface Message {
  readonly id?: unknown
  readonly method?: string
  readonly params?: Record<string, unknown>
  readonly result?: Record<string, unknown>
  readonly error?: { readonly code: number; readonly data?: Record<string, unknown> }
}

const ending: (() => Promise<unknown>)[] = []
afterEach(async () => {
  await Promise.all(ending.splice(0).map((end) => end()))
})

const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
}
const listen = (id: unknown, notifications: unknown) => ({
  jsonrpc: '2.0',
  id,
  method: 'subscriptions/listen',
  params: { notifications, _meta: meta },
})
const initialize = (version: string) => ({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: version, capabilities: {}, clientInfo: { name: 'c', version: '1' } },
})
const initialized = { jsonrpc: '2.0', method: 'notifications/initialized' }
const subscribe = (id: number, uri: string, method = 'resources/subscribe') => ({
  jsonrpc: '2.0',
  id,
  method,
  params: { uri },
})

function pipe(provider: Live) {
  const input = new PassThrough()
  const output = new PassThrough()
  const messages: Message[] = []
  let rest = ''
  output.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split('\n')
    rest = lines.pop() ?? ''
    messages.push(...lines.map((line) => JSON.parse(line) as Message))
  })
  const catalog = createCatalog({ mounts: [{ address: 'file:///r', provider }] })
  const stop = new AbortController()
  const served = serveStdio({
    ...{ view: (p) => catalog.view(p), name: 't', version: '1', log: () => {}, input, output, grace: 500 },
    signal: stop.signal,
  })
  ending.push(async () => {
    input.end()
    await served
    await catalog.close()
  })
  return {
    messages,
    stop: async () => {
      stop.abort()
      await served
    },
    send: (message: unknown) => void input.write(`${JSON.stringify(message)}\n`),
    answered: (id: unknown) => until(() => messages.some((message) => message.id === id)),
    updates: () =>
      messages.filter(({ method }) => method === 'notifications/resources/updated').map(({ params }) => params),
  }
}

const told = (id: unknown) => ({ 'io.modelcontextprotocol/subscriptionId': id })

describe('subscriptions/listen over stdio', () => {
  test('is acknowledged first, with the accepted filter, and notifies with its own id', async () => {
    const provider = live({ a: '' })
    const client = pipe(provider)
    for (const id of [1, '1', '']) {
      client.send(
        listen(id, {
          resourceSubscriptions: ['file:///r/a', 'file:///no/b'],
          resourcesListChanged: true,
          toolsListChanged: true,
        }),
      )
      await until(() =>
        client.messages.some(({ params }) => JSON.stringify(params?._meta) === JSON.stringify(told(id))),
      )
    }
    expect(client.messages.map(({ method, params }) => [method, params])).toEqual(
      [1, '1', ''].map((id) => [
        'notifications/subscriptions/acknowledged',
        { notifications: { resourcesListChanged: true, resourceSubscriptions: ['file:///r/a'] }, _meta: told(id) },
      ]),
    )
    provider.set('a', { text: 'x' })
    await until(() => client.updates().length === 3)
    expect(client.updates()).toEqual([1, '1', ''].map((id) => ({ uri: 'file:///r/a', _meta: told(id) })))
    provider.set('new', { text: 'x' })
    await until(
      () => client.messages.filter(({ method }) => method === 'notifications/resources/list_changed').length === 3,
    )
  })

  test('sends no notification before its acknowledgement, although changes come all the time', async () => {
    const provider = live({ a: '' })
    const client = pipe(provider)
    const storm = setInterval(() => provider.set('a', { text: 'x' }), 1)
    for (let id = 0; id < 50; id++) client.send(listen(id, { resourceSubscriptions: ['file:///r/a'] }))
    await until(() => new Set(client.updates().map((params) => JSON.stringify(params?._meta))).size === 50)
    clearInterval(storm)
    const seen = new Set<string>()
    for (const { method, params } of client.messages) {
      const id = JSON.stringify(params?._meta)
      if (!seen.has(id)) expect(method).toBe('notifications/subscriptions/acknowledged')
      seen.add(id)
    }
  })

  test('ends without a message when it is cancelled, and with its result when the server stops', async () => {
    const provider = live({ a: '' })
    const client = pipe(provider)
    client.send(listen(1, { resourceSubscriptions: ['file:///r/a'] }))
    client.send(listen(2, { resourceSubscriptions: ['file:///r/a'] }))
    await until(() => client.messages.length === 2)
    client.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } })
    await pause(50)
    provider.set('a', { text: 'x' })
    await until(() => client.updates().length > 0)
    expect(client.updates()).toEqual([{ uri: 'file:///r/a', _meta: told(2) }])
    await client.stop()
    expect(client.messages.slice(-2)).toMatchObject([
      { id: 2, result: { resultType: 'complete', _meta: told(2) } },
      { method: 'notifications/cancelled', params: { requestId: 2 } },
    ])
  })

  test.each([
    [{ resourceSubscriptions: 'x' }],
    [{ resourceSubscriptions: [1] }],
    [{ resourcesListChanged: 1 }],
    [[]],
    [undefined],
  ])('refuses the filter %j', async (filter) => {
    const client = pipe(live({}))
    client.send(listen(1, filter))
    await client.answered(1)
    expect(client.messages).toMatchObject([{ id: 1, error: { code: -32602 } }])
  })

  test('with an empty filter is acknowledged with an empty filter', async () => {
    const client = pipe(live({}))
    client.send(listen(1, {}))
    await until(() => client.messages.length > 0)
    expect(client.messages[0]?.params).toEqual({ notifications: {}, _meta: told(1) })
  })

  test('refuses more than 1,000 URIs, and names the limit', async () => {
    const client = pipe(live({}))
    client.send(listen(1, { resourceSubscriptions: Array.from({ length: 1001 }, (_, i) => `file:///r/${i}`) }))
    await client.answered(1)
    expect(client.messages).toMatchObject([{ error: { code: -32602, data: { reason: 'too-many', limit: 1000 } } }])
  })
})

describe('resources/subscribe', () => {
  test.each(['2024-11-05', '2025-11-25'])(
    'notifies over stdio until resources/unsubscribe, in revision %s',
    async (version) => {
      const provider = live({ a: '', b: '' })
      const client = pipe(provider)
      client.send(initialize(version))
      await client.answered(0)
      expect(client.messages[0]?.result?.capabilities).toMatchObject({
        resources: { subscribe: true, listChanged: true },
      })
      client.send(initialized)
      client.send(subscribe(1, 'file:///r/a'))
      client.send(subscribe(2, 'file:///elsewhere'))
      await client.answered(2)
      await client.answered(1)
      expect(client.messages.find(({ id }) => id === 1)?.result).toEqual({})
      expect(client.messages.find(({ id }) => id === 2)?.error).toMatchObject({
        code: -32002,
        data: { uri: 'file:///elsewhere' },
      })
      provider.set('a', { text: 'x' })
      provider.set('new', { text: 'x' })
      await until(() => client.updates().length > 0)
      expect(client.updates()).toEqual([{ uri: 'file:///r/a' }])
      expect(client.messages.filter(({ method }) => method?.endsWith('list_changed'))).toEqual([
        { jsonrpc: '2.0', method: 'notifications/resources/list_changed' },
      ])
      client.send(subscribe(3, 'file:///r/a', 'resources/unsubscribe'))
      await client.answered(3)
      provider.set('a', { text: 'y' })
      await pause(150)
      expect(client.updates()).toHaveLength(1)
    },
  )

  test('is accepted for an existing resource that never changes, and not for an absent one', async () => {
    const { watch: _, ...still } = live({ b: 'b' })
    const catalog = createCatalog({
      mounts: [
        { address: 'file:///r', provider: live({ a: '' }) },
        { address: 'file:///s', provider: still },
      ],
    })
    const explorerApp = { uri: 'ui://x/page', html: async () => '<!doctype html>' }
    const channel = await openViewChannel(
      {
        ...{ name: 'x', version: '1', view: catalog.view, log: () => {}, explorerApp },
        profileOf: () => ({ tools: true }),
      },
      { id: 'ada', roles: [] },
      'legacy',
      { write: async () => {}, onLost: () => {} },
    )
    await channel.request(initialize('2025-11-25') as never)
    const ask = async (uri: string) => channel.request(subscribe(1, uri) as never)
    expect(await ask('file:///s/b')).toMatchObject({ result: {} })
    expect(await ask('ui://x/page')).toMatchObject({ result: {} })
    for (const uri of ['file:///s/none', 'ui://x/none'])
      expect(await ask(uri)).toMatchObject({ error: { code: -32002 } })
    await channel.close()
    await catalog.close()
  })

  test('is unknown in revision 2026-07-28, and without sources that report changes', async () => {
    const client = pipe(live({}))
    client.send({ ...subscribe(1, 'file:///r/a'), params: { uri: 'file:///r/a', _meta: meta } })
    await client.answered(1)
    expect(client.messages).toMatchObject([{ error: { code: -32601 } }])
    const { watch: _, ...still } = live({})
    const mute = pipe(still as Live)
    mute.send(initialize('2025-11-25'))
    mute.send(subscribe(1, 'file:///r/a'))
    await mute.answered(1)
    expect(mute.messages[0]?.result?.capabilities).toMatchObject({ resources: {} })
    expect(JSON.stringify(mute.messages[0])).not.toContain('subscribe')
    expect(mute.messages[1]).toMatchObject({ error: { code: -32601 } })
  })
})

async function service(provider: Live, changes: Partial<ChangeLimits> = {}) {
  const catalog = createCatalog({ mounts: [{ address: 'file:///r', provider }], changes })
  const http: HttpService = await serveHttp({
    ...{ view: (p) => catalog.view(p), name: 't', version: '1', log: () => {}, host: '127.0.0.1', port: 0 },
    limits: { drain: 500 },
  })
  let closed = false
  const close = async () => {
    if (closed) return
    closed = true
    await http.close()
    await catalog.close()
  }
  ending.push(close)
  return { url: http.url, close }
}

/** Opens an event stream and gathers what comes on it. */
function openStream(url: string, method: string, headers: Record<string, string>, body?: unknown) {
  const events: { readonly id: string | undefined; readonly message: Message }[] = []
  let ended = false
  let headersOf: IncomingMessage['headers'] = {}
  const sent = httpRequest(
    url,
    { method, agent: false, headers: { Accept: 'text/event-stream, application/json', ...headers } },
    (response) => {
      headersOf = response.headers
      let rest = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        const parts = (rest + chunk).split('\n\n')
        rest = parts.pop() ?? ''
        for (const part of parts) {
          const data = /^data: (.*)$/m.exec(part)?.[1]
          if (data !== undefined)
            events.push({ id: /^id: (.*)$/m.exec(part)?.[1], message: JSON.parse(data) as Message })
        }
      })
      response.on('end', () => {
        ended = true
      })
      response.on('error', () => {})
    },
  )
  sent.on('error', () => {})
  sent.end(body === undefined ? undefined : JSON.stringify(body))
  const closeStream = async () => void sent.destroy()
  ending.push(closeStream)
  return { events, close: closeStream, ended: () => ended, headers: () => headersOf }
}

const modernHeaders = {
  'Content-Type': 'application/json',
  'MCP-Protocol-Version': '2026-07-28',
  'Mcp-Method': 'subscriptions/listen',
}

describe('subscriptions/listen over HTTP', () => {
  test('streams to each client, goes on when another client disconnects, and ends with its result when the server stops', async () => {
    const provider = live({ a: '' })
    const { url, close } = await service(provider)
    const filter = { resourceSubscriptions: ['file:///r/a'] }
    const one = openStream(url, 'POST', modernHeaders, listen('one', filter))
    const two = openStream(url, 'POST', modernHeaders, listen(2, filter))
    await until(() => one.events.length > 0 && two.events.length > 0)
    expect(one.events[0]?.message).toMatchObject({
      method: 'notifications/subscriptions/acknowledged',
      params: { notifications: filter },
    })
    expect(one.headers()['x-accel-buffering']).toBe('no')
    provider.set('a', { text: 'x' })
    await until(() => one.events.length > 1 && two.events.length > 1)
    expect(one.events[1]?.message).toMatchObject({ params: { uri: 'file:///r/a', _meta: told('one') } })
    await one.close()
    await pause(100)
    provider.set('a', { text: 'y' })
    await until(() => two.events.length > 2)
    await close()
    await until(() => two.ended())
    expect(two.events.at(-1)?.message).toMatchObject({ id: 2, result: { resultType: 'complete', _meta: told(2) } })
    expect(provider.watching).toBe(0)
  })

  test('refuses a wrong filter like any other request', async () => {
    const { url } = await service(live({}))
    const stream = await fetch(url, {
      method: 'POST',
      headers: modernHeaders,
      body: JSON.stringify(listen(1, { resourceSubscriptions: 1 })),
    })
    expect(stream.headers.get('content-type')).toBe('application/json')
    expect(await stream.json()).toMatchObject({ id: 1, error: { code: -32602 } })
  })
})

describe('a session over HTTP', () => {
  const open = async (url: string) => {
    const post = async (body: unknown, headers: Record<string, string> = {}) =>
      fetch(url, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', ...headers },
        body: JSON.stringify(body),
      })
    const first = await post(initialize('2025-11-25'))
    const headers = { 'Mcp-Session-Id': first.headers.get('mcp-session-id') ?? '' }
    const answer = (await first.json()) as Message
    await post(initialized, headers)
    return { headers, answer, post: async (body: unknown) => (await post(body, headers)).json() as Promise<Message> }
  }

  test('sends notifications on its stream, keeps earlier ones, and resumes after the last received one', async () => {
    const provider = live({ a: '', b: '' })
    const { url } = await service(provider)
    const session = await open(url)
    expect((await session.post(subscribe(1, 'file:///r/a'))).result).toEqual({})
    provider.set('a', { text: 'before the stream' })
    await pause(150)
    const first = openStream(url, 'GET', session.headers)
    await until(() => first.events.length > 0)
    expect(first.events[0]?.message).toMatchObject({
      method: 'notifications/resources/updated',
      params: { uri: 'file:///r/a' },
    })
    await first.close()
    await pause(50)
    provider.set('a', { text: 'while away' })
    await pause(150)
    const second = openStream(url, 'GET', { ...session.headers, 'Last-Event-ID': first.events[0]?.id ?? '' })
    await until(() => second.events.length > 0)
    await pause(100)
    expect(second.events.map(({ message }) => message.params)).toEqual([{ uri: 'file:///r/a' }])
    await second.close()
    await pause(50)
    const third = openStream(url, 'GET', { ...session.headers, 'Last-Event-ID': first.events[0]?.id ?? '' })
    await until(() => third.events.length > 0)
    expect(third.events[0]).toEqual(second.events[0])
  })

  test('reports everything as changed if missed notifications are unknown', async () => {
    const provider = live({ a: '' })
    const { url } = await service(provider)
    const [session, other] = [await open(url), await open(url)]
    await session.post(subscribe(1, 'file:///r/a'))
    await other.post(subscribe(1, 'file:///r/a'))
    provider.set('a', { text: 'x' })
    await pause(150)
    const mine = openStream(url, 'GET', session.headers)
    const theirs = openStream(url, 'GET', other.headers)
    await until(() => mine.events.length > 0 && theirs.events.length > 0)
    await Promise.all([mine.close(), theirs.close()])
    await pause(50)
    // The id of another session, none at all, and one of nobody's.
    for (const lastId of [theirs.events[0]?.id ?? '', undefined, 'junk-1']) {
      const again = openStream(url, 'GET', {
        ...session.headers,
        ...(lastId === undefined ? {} : { 'Last-Event-ID': lastId }),
      })
      await until(() => again.events.length >= 2)
      expect(again.events.map(({ message }) => message.method).sort()).toEqual([
        'notifications/resources/list_changed',
        'notifications/resources/updated',
      ])
      await again.close()
      await pause(50)
    }
  })

  test('starts without subscriptions, and offers none, if there are too many already', async () => {
    const { url } = await service(live({ a: 'x' }), { subscriptions: 1 })
    const told = { subscribe: true, listChanged: true }
    const [first, second] = [await open(url), await open(url)]
    expect(first.answer.result?.capabilities).toMatchObject({ resources: told })
    expect(second.answer.result?.capabilities).toEqual({ ...(first.answer.result?.capabilities ?? {}), resources: {} })
    expect((await second.post(subscribe(1, 'file:///r/a', 'resources/read'))).result).toBeDefined()
    expect((await second.post(subscribe(2, 'file:///r/a'))).error?.code).toBe(-32601)
    // Whoever leaves makes room.
    await fetch(url, { method: 'DELETE', headers: first.headers })
    expect((await open(url)).answer.result?.capabilities).toMatchObject({ resources: told })
  })

  test('stops its subscriptions when it ends', async () => {
    const provider = live({ a: '' })
    const { url } = await service(provider)
    const session = await open(url)
    await session.post(subscribe(1, 'file:///r/a'))
    expect(provider.watching).toBe(1)
    await fetch(url, { method: 'DELETE', headers: session.headers })
    await until(() => provider.watching === 0)
  })
})
