import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import { isResourceError } from '../../src/core/errors.ts'
import { type ChangesState, createPageSubscriptions, type PageChange } from '../../src/explorer/web/mcp/changes.ts'
import { connectToServer } from '../../src/explorer/web/mcp/connect.ts'
import { type Endpoint, messagesOf, request } from '../../src/explorer/web/mcp/request.ts'
import { useHttp } from '../support/http-service.ts'
import { type Live, live, until } from '../support/live.ts'
import { memory } from '../support/memory.ts'

const serveOn = useHttp()

const endpointAt = (url: string, over: Partial<Endpoint> = {}): Endpoint => ({
  url,
  token: () => undefined,
  renew: () => Promise.reject(new Error('nobody gives a token')),
  ...over,
})

async function serveLive(provider: Live) {
  const catalog = createCatalog({ mounts: [{ address: 'mem://m', provider }] })
  return serveOn(catalog)
}

const faults: Server[] = []
afterEach(() => {
  for (const server of faults.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

/** A server that answers as it is told, and says how often it was asked. */
async function answering(
  answer: (request: IncomingMessage, response: ServerResponse, id: unknown, turn: number) => void,
) {
  let turn = 0
  const server = createServer((incoming, response) => {
    let body = ''
    incoming.setEncoding('utf8').on('data', (chunk: string) => {
      body += chunk
    })
    incoming.on('end', () => answer(incoming, response, (JSON.parse(body) as { id: unknown }).id, ++turn))
  })
  faults.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : 0
  return { url: `http://127.0.0.1:${port}/mcp`, asked: () => turn }
}

const json = (response: ServerResponse, status: number, body: unknown, headers = {}) => {
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(typeof body === 'string' ? body : JSON.stringify(body))
}

const kindOf = async (work: Promise<unknown>) => {
  const error: unknown = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  return isResourceError(error) ? error.kind : error
}

describe('the page of the explorer as an MCP client', () => {
  test('lists and reads resources of a hikidashi server, and reports a resource that does not exist', async () => {
    const provider = memory({
      'a.md': { text: 'one' },
      'b/c.bin': { bytes: new Uint8Array([1, 2, 255]) },
      '使い.md': 'ja',
    })
    const service = await serveOn(createCatalog({ mounts: [{ address: 'mem://m', provider }] }))
    const { server, view, tools } = await connectToServer(endpointAt(service.url))
    expect(server.name).toBe('test')
    expect(tools.size).toBe(0)
    expect((await view.mounts()).map(({ uri, mimeType }) => [uri, mimeType])).toEqual([['mem://m', 'inode/directory']])
    expect((await view.list()).items.map(({ name }) => name)).toEqual(['a.md', 'c.bin', '使い.md'])
    expect((await view.directory({ uri: 'mem://m' })).items.map(({ uri }) => uri)).toEqual([
      ...['mem://m/a.md', 'mem://m/b/', 'mem://m/%E4%BD%BF%E3%81%84.md'],
    ])
    expect((await view.read('mem://m/b/c.bin')).contents[0]).toMatchObject({ bytes: new Uint8Array([1, 2, 255]) })
    // Its name goes in a header too, which holds no Japanese.
    expect((await view.read('mem://m/使い.md')).contents[0]).toMatchObject({ text: 'ja' })
    expect(await kindOf(view.read('mem://m/none'))).toBe('not-found')
  })

  test('rejects an aborted request with the reason of the abort', async () => {
    const { url } = await answering(() => {})
    const controller = new AbortController()
    const asked = request(endpointAt(url), 'resources/list', {}, controller.signal)
    const reason = new Error('gone elsewhere')
    controller.abort(reason)
    await expect(asked).rejects.toBe(reason)
  })

  test('repeats a request while the server is busy', async () => {
    const { url, asked } = await answering((_, response, id, turn) => {
      if (turn < 3) return json(response, turn === 1 ? 429 : 503, {}, { 'retry-after': '0' })
      json(response, 200, { jsonrpc: '2.0', id, result: { ok: true } })
    })
    expect(await request(endpointAt(url), 'x', {})).toEqual({ ok: true })
    expect(asked()).toBe(3)
  })

  test('gives up after four requests to a server that is always busy', async () => {
    const { url, asked } = await answering((_, response) =>
      json(response, 429, { error: { code: -32600, message: 'Too many' } }, { 'retry-after': '0' }),
    )
    expect(await kindOf(request(endpointAt(url), 'x', {}))).toBe('unavailable')
    expect(asked()).toBe(4)
  })

  test('asks for a token when the server requires one, and again if that token is refused', async () => {
    const { url } = await answering(({ headers }, response, id) => {
      if (headers.authorization === 'Bearer right')
        return json(response, 200, { jsonrpc: '2.0', id, result: { ok: true } })
      json(
        response,
        401,
        { error: { code: -32600, message: 'Unauthorized' } },
        { 'www-authenticate': 'Bearer realm="x"' },
      )
    })
    let token: string | undefined
    const given = ['wrong', 'right']
    const challenges: string[] = []
    let renewing: Promise<void> | undefined
    const endpoint = endpointAt(url, {
      token: () => token,
      renew: (challenge) => {
        renewing ??= Promise.resolve().then(() => {
          challenges.push(challenge)
          token = given.shift()
          renewing = undefined
        })
        return renewing
      },
    })
    expect(await Promise.all([request(endpoint, 'x', {}), request(endpoint, 'y', {})])).toEqual([
      { ok: true },
      { ok: true },
    ])
    expect(challenges).toEqual(['Bearer', 'Bearer'])
  })

  test.each([
    ['a text that is not JSON', (response: ServerResponse) => json(response, 200, 'hello')],
    ['a JSON array', (response: ServerResponse) => json(response, 200, [])],
    ['neither result nor error', (response: ServerResponse) => json(response, 200, { jsonrpc: '2.0', id: 1 })],
    [
      'a truncated answer',
      (response: ServerResponse) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': 100 })
        response.write('{"jsonrpc"')
        response.destroy()
      },
    ],
    ['an error page of a proxy', (response: ServerResponse) => json(response, 502, '<html>')],
    [
      'an event that is no message',
      (response: ServerResponse) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.end('data: nonsense\n\n')
      },
    ],
    [
      'a stream without an answer',
      (response: ServerResponse) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.end(': still here\n\n')
      },
    ],
  ])('gives the error "unavailable" if it cannot use the answer: %s', async (_, answer) => {
    const { url } = await answering((_, response) => answer(response))
    expect(await kindOf(request(endpointAt(url), 'x', {}))).toBe('unavailable')
  })

  test('joins events that arrive in pieces, even if a character is split', async () => {
    const bytes = new TextEncoder().encode(
      'event: message\r\ndata: {"a":\r\ndata: "引き出し"}\r\n\r\n: hello\n\ndata: {"b":1}\n\n',
    )
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        for (const byte of bytes) controller.enqueue(new Uint8Array([byte]))
        controller.close()
      },
    })
    const messages: unknown[] = []
    for await (const message of messagesOf(body)) messages.push(message)
    expect(messages).toEqual([{ a: '引き出し' }, { b: 1 }])
  })
})

describe('the subscriptions of the explorer page', () => {
  function hearing(url: string, waitsMs = [5]) {
    const states: ChangesState[] = []
    const heard: PageChange[] = []
    const changes = createPageSubscriptions(endpointAt(url), {
      onState: (state) => states.push(state),
      waitsMs,
      joiningMs: 5,
    })
    return { changes, states, heard, tell: (change: PageChange) => heard.push(change) }
  }

  test('share one stream, and each of them hears only what it asked for', async () => {
    const provider = live({ a: '1', b: '1', c: '1' })
    const service = await serveLive(provider)
    const { changes, heard, tell } = hearing(service.url)
    const others: PageChange[] = []
    const one = changes.open(tell)
    const two = changes.open((change) => others.push(change))
    const before = service.meter.read().requests
    expect(await Promise.all([one.add(['mem://m/a', 'mem://m/none']), two.add(['mem://m/b']), two.addList()])).toEqual([
      ...[['mem://m/a', 'mem://m/none'], ['mem://m/b'], true],
    ])
    expect(service.meter.read().requests).toBe(before + 1)
    provider.set('a', { text: '2' })
    await until(() => heard.length > 0)
    provider.set('new', { text: '' })
    await until(() => others.some(({ listed }) => listed))
    expect(heard).toEqual([{ uris: ['mem://m/a'], listed: false }])
    expect(others.every(({ uris }) => uris.length === 0)).toBe(true)
    changes.close()
  })

  test('are not interrupted when more are added', async () => {
    const provider = live({ a: '1', b: '1' })
    const service = await serveLive(provider)
    const { changes, heard, states, tell } = hearing(service.url)
    const one = changes.open(tell)
    await one.add(['mem://m/a'])
    await one.add(['mem://m/b'])
    provider.set('a', { text: '2' })
    provider.set('b', { text: '2' })
    await until(() => heard.length >= 2)
    expect(heard.flatMap(({ uris }) => uris).sort()).toEqual(['mem://m/a', 'mem://m/b'])
    expect(heard.some(({ missed }) => missed)).toBe(false)
    expect(states).toEqual(['opening', 'live'])
    changes.close()
  })

  test('report changes that may have been missed while the page was hidden', async () => {
    const provider = live({ a: '1' })
    const service = await serveLive(provider)
    const { changes, heard, states, tell } = hearing(service.url)
    const one = changes.open(tell)
    await Promise.all([one.add(['mem://m/a']), one.addList()])
    changes.pause()
    provider.set('a', { text: '2' })
    changes.resume()
    await until(() => heard.some(({ missed }) => missed))
    expect(heard.filter(({ missed }) => missed)).toEqual([{ uris: ['mem://m/a'], listed: true, missed: true }])
    // The server passes changes on after 20 ms: a stream that opens within them is told of the change itself, too.
    for (const change of heard.filter(({ missed }) => !missed))
      expect(change).toEqual({ uris: ['mem://m/a'], listed: false })
    expect(states).toEqual(['opening', 'live', 'paused', 'opening', 'live'])
    changes.close()
  })

  test('are made again when the server is back', async () => {
    let turn = 0
    const open: ServerResponse[] = []
    const { url } = await answering((_, response, id) => {
      turn++
      if (turn === 2) return json(response, 500, { error: { code: -32603, message: 'Internal error' } })
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const params = { notifications: { resourceSubscriptions: ['x:y'] } }
      response.write(`data: ${JSON.stringify({ method: 'notifications/subscriptions/acknowledged', params })}\n\n`)
      open.push(response)
      // As a server that ends.
      if (turn === 1) setTimeout(() => response.end(`data: ${JSON.stringify({ id, result: {} })}\n\n`), 20)
    })
    const { changes, heard, states, tell } = hearing(url)
    expect(await changes.open(tell).add(['x:y'])).toEqual(['x:y'])
    await until(() => heard.length > 0)
    expect(heard).toEqual([{ uris: ['x:y'], listed: false, missed: true }])
    expect(states).toEqual(['opening', 'live', 'lost', 'live'])
    expect(turn).toBe(3)
    changes.close()
  })

  test('end when no part of the page needs changes any more', async () => {
    const provider = live({ a: '1' })
    const service = await serveLive(provider)
    const { changes, states, tell } = hearing(service.url)
    const one = changes.open(tell)
    await one.add(['mem://m/a'])
    one.close()
    await until(() => states.at(-1) === 'off')
    changes.close()
  })

  test('to more than 1,000 resources are refused', async () => {
    const { changes, tell } = hearing('http://127.0.0.1:9/mcp')
    const many = Array.from({ length: 1001 }, (_, i) => `x:${i}`)
    expect(await kindOf(changes.open(tell).add(many))).toBe('invalid')
    changes.close()
  })
})
