import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ReadableStream } from 'node:stream/web'
import { describe, expect, onTestFinished, test } from 'vitest'
import { readEvents } from '../../src/client/http.ts'
import { createUriCounts } from '../../src/client/listeners.ts'
import { pause, until } from '../support/live.ts'
import {
  aged,
  behind,
  hear,
  type LiveServer,
  liveServers,
  open,
  serveOfficialLive,
  serveOldLive,
  serveOurs,
} from '../support/live-servers.ts'
import { failure, listen, scripted } from '../support/mcp-servers.ts'

const program = new URL('../fixtures/mcp/live.mjs', import.meta.url).pathname

describe('a subscription of the client', () => {
  test.each([
    ['hikidashi over HTTP', liveServers['of hikidashi, over HTTP']],
    ['hikidashi with sessions', liveServers['of hikidashi, with sessions']],
    ['SDK 1.24', liveServers['of the SDK 1.24, with sessions']],
  ])('has only the URIs that the server acknowledges (%s)', async (_, serve) => {
    const server = (await serve?.()) as LiveServer
    const { subscription } = hear(await open(server.target))
    expect(await subscription.add([server.none])).toEqual([])
    expect(await subscription.add([server.none, server.uri])).toEqual([server.uri])
    expect(await subscription.add([server.uri, server.none])).toEqual([server.uri])
    expect(subscription.uris).toEqual([server.uri])
  })

  test('is not offered if the server declares no subscriptions', async () => {
    const view = await open({ url: await listen(scripted(() => ({ resources: [] }))) })
    expect(view.live).toBeUndefined()
    expect(view.subscribe).toBeUndefined()
  })

  test('stays empty, and sends no request, if a server of an older revision opens no stream for notifications', async () => {
    const asked: string[] = []
    const inner = scripted((method) => ({ nth: asked.push(method) }), {
      resources: { subscribe: true, listChanged: true },
    })
    const view = await open({ url: await listen(inner) })
    const { subscription } = hear(view)
    expect(await subscription.add(['x:a'])).toEqual([])
    expect(await subscription.addList()).toBe(false)
    expect(asked).toEqual([])
  })

  test.each(['on the newest revision', 'with sessions'])(
    'to more URIs than the server allows is refused, and earlier subscriptions continue (%s)',
    async (kind) => {
      const ours = await serveOurs('mcp', 50)
      const server = kind === 'with sessions' ? await aged(ours) : ours
      const { subscription, uris } = hear(await open(server.target))
      await subscription.add([server.uri])
      const many = Array.from({ length: 50 }, (_, i) => `x://r/many/${i}`)
      expect(await failure(subscription.add(many))).toMatchObject({
        kind: 'invalid',
        detail: { reason: 'too-many', limit: 50 },
      })
      expect(subscription.uris).toEqual([server.uri])
      await server.touch(server.uri)
      await until(() => uris().length > 0)
      expect(uris()).toEqual([server.uri])
      expect(await subscription.add(many.slice(0, 49))).toHaveLength(49)
      await server.touch(many[7] ?? '')
      await until(() => uris().includes(many[7] ?? ''))
    },
  )

  test('to more than 10,000 URIs is refused by the client itself', async () => {
    const server = await serveOfficialLive()
    const { subscription } = hear(await open(server.target))
    const many = Array.from({ length: 10_001 }, (_, i) => `x:${i}`)
    expect(await failure(subscription.add(many))).toMatchObject({ detail: { limit: 10_000 } })
    expect(subscription.uris).toEqual([])
  })
})

describe('a stream of changes', () => {
  const counted = async () => {
    let streams = 0
    let opened = 0
    const server = await behind(await serveOurs('mcp'), (request, response) => {
      if (request.headers['mcp-method'] !== 'subscriptions/listen') return
      opened++
      streams++
      response.on('close', () => streams--)
    })
    return { server, streams: () => streams, opened: () => opened }
  }

  test('is shared by 200 subscriptions that are added at once', async () => {
    const { server, streams, opened } = await counted()
    const { subscription } = hear(await open(server.target))
    const more = Array.from({ length: 200 }, (_, i) => `x://r/${i}`)
    expect((await Promise.all(more.map((uri) => subscription.add([uri])))).flat()).toEqual(more)
    expect(opened()).toBeLessThan(4)
    await until(() => streams() === 1)
  })

  test('is replaced when few of its subscriptions are left, and closed when none is left', async () => {
    const { server, streams, opened } = await counted()
    const { subscription, uris } = hear(await open(server.target))
    const more = Array.from({ length: 100 }, (_, i) => `x://r/${i}`)
    await subscription.add(more)
    for (const uri of more.slice(60)) subscription.remove(uri)
    await pause(100)
    expect(opened()).toBe(1)
    for (const uri of more.slice(1, 60)) subscription.remove(uri)
    await until(() => opened() > 1 && streams() === 1)
    await server.touch('x://r/50')
    await server.touch('x://r/0')
    await until(() => uris().length > 0)
    expect(uris()).toEqual(['x://r/0'])
    subscription.close()
    await until(() => streams() === 0)
  })
})

describe('the standing stream of a session', () => {
  test('is opened with the first subscription, and closed with the last', async () => {
    const server = await serveOldLive('sdk124', 'streamable')
    let streams = 0
    const { target } = await aged(server, (request, response) => {
      if (request.method !== 'GET') return
      streams++
      response.on('close', () => streams--)
    })
    const view = await open(target)
    await view.list()
    expect(streams).toBe(0)
    const [one, two] = [hear(view), hear(view)]
    await Promise.all([one.subscription.add([server.uri]), two.subscription.addList()])
    expect(streams).toBe(1)
    one.subscription.close()
    await pause(100)
    expect(streams).toBe(1)
    two.subscription.close()
    await until(() => streams === 0)
    const three = hear(view)
    await three.subscription.add([server.uri])
    expect(streams).toBe(1)
    await view.close()
    await until(() => streams === 0)
  })

  test('is opened again in the same session after it was cut off', async () => {
    const server = await serveOldLive('sdk124', 'streamable')
    const gets: { destroy(): void }[] = []
    const begun: unknown[] = []
    const { target } = await aged(server, (request, response) => {
      if (request.method === 'GET') gets.push(response)
      if (request.headers['mcp-session-id'] === undefined) begun.push(request.method)
    })
    const { subscription, uris } = hear(await open(target))
    await subscription.add([server.uri])
    const sessions = begun.length
    gets[0]?.destroy()
    await until(() => uris().length > 0)
    expect(gets).toHaveLength(2)
    expect(begun).toHaveLength(sessions)
  })
})

describe('a connection of the client ends', () => {
  test('when the client closes it, and later changes are not reported', async () => {
    const server = await serveOurs('mcp')
    const view = await open(server.target)
    const { subscription, changes } = hear(view)
    await subscription.add([server.uri])
    await view.close()
    expect((await view.over).message).toBe('The connection was closed.')
    await server.touch(server.uri)
    await pause(150)
    expect(changes).toEqual([])
    expect(await subscription.add([server.other])).toEqual([])
  })

  test('when the command of its server exits while no subscription is open', async () => {
    const view = await open({ command: process.execPath, args: [program, 'official'] })
    await view.read('die:').catch(() => {})
    expect((await view.over).message).toBe('The connection has ended.')
  })

  test('when the command of its server exits 5 times in a row', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'hikidashi-live-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const flag = join(folder, 'once')
    const script = `import { existsSync, writeFileSync } from 'node:fs'
      if (existsSync(process.argv[3])) process.exit(1)
      writeFileSync(process.argv[3], '')
      process.argv[1] = ${JSON.stringify(program)}
      await import(process.argv[1])`
    const view = await open({
      command: process.execPath,
      args: ['--input-type=module', '-e', script, '', 'official', flag],
    })
    const { subscription } = hear(view)
    await subscription.add(['x:a'])
    await view.read('die:').catch(() => {})
    expect(await failure(subscription.add(['x:b']))).toMatchObject({ kind: 'unavailable' })
    expect((await view.over).message).toContain('5 times in a row')
    expect((await failure(view.list())).kind).toBe('unavailable')
  })

  test('when its server returns and refuses the client with HTTP 401', async () => {
    const server = await serveOurs('mcp')
    let isRefusing = false
    const { target } = await aged(server, (_, response) => {
      if (isRefusing) response.writeHead(401).end()
    })
    const view = await open(target)
    const { subscription } = hear(view)
    await subscription.add([server.uri])
    isRefusing = true
    await server.stop()
    expect((await view.over).message).toContain('HTTP 401')
    expect((await failure(subscription.add([server.other]))).message).toContain('HTTP 401')
  })
})

test('a change of a resource is reported for its URI and directory, in any spelling, until each of their subscriptions has ended', () => {
  const names = createUriCounts()
  const all = ['file:///docs/', 'file:///docs/a%20b', 'FILE:///docs/a b', 'memo://', 'note:x', 'file:///docs/a b/c']
  for (const uri of all) names.add(uri)
  const of = (uri: string) => [...names.of(uri)]
  expect(of('file:///docs/a b')).toEqual(['file:///docs/a%20b', 'FILE:///docs/a b', 'file:///docs/'])
  expect(of('file:///docs/new/x')).toEqual(['file:///docs/'])
  expect(of('file:///docs')).toEqual(['file:///docs/'])
  expect(of('file:///docsx')).toEqual([])
  expect(of('memo://today')).toEqual(['memo://'])
  expect(of('note:x')).toEqual(['note:x'])
  expect(of('note:xy')).toEqual([])
  names.add('note:x')
  names.remove('note:x')
  expect(of('note:x')).toEqual(['note:x'])
  names.remove('note:x')
  expect(of('note:x')).toEqual([])
  expect(names.size).toBe(5)
})

test.each([
  ['one piece', (text: string) => [text]],
  ['single bytes', (text: string) => [...text]],
])(
  'events of a stream are parsed with every kind of line end, also if it is cut off later (received in %s)',
  async (_, cut) => {
    const seen: string[] = []
    const text = ': hello\n\ndata: 1\n\nevent: x\r\ndata:2\r\ndata: \u2028\r\n\r\nid: 3\r\rdata: 4\r\r: \ndata: lost'
    const pieces = cut(text).values()
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        const { value, done } = pieces.next()
        if (done) controller.error(new Error('cut off'))
        else controller.enqueue(Buffer.from(value))
      },
    })
    await readEvents(body, (data) => seen.push(data))
    expect(seen).toEqual(['1', '2\n\u2028', '4'])
  },
)
