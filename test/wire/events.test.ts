import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { afterEach, describe, expect, test } from 'vitest'
import { compileAccess } from '../../src/core/access.ts'
import { type Catalog, createCatalog, type Mount } from '../../src/core/catalog.ts'
import { addToken, revokeToken } from '../../src/server/auth/token-file.ts'
import { serveStdio } from '../../src/server/index.ts'
import { withMeta } from '../attack/harness/wire.ts'
import { eventClient, pollUntil, type WireEvent } from '../support/event-client.ts'
import { useHttp } from '../support/http-service.ts'
import { live, until } from '../support/live.ts'
import { memory } from '../support/memory.ts'

const serve = useHttp()
const changed = { name: 'resource.changed' }
const cleanups: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0)) await clean()
})

function catalogOf(mounts: readonly Mount[], options: object = {}): Catalog {
  const catalog = createCatalog({ mounts, ...options })
  cleanups.push(() => catalog.close())
  return catalog
}

/** A server over one changing source, and a client of it. */
async function start(entries: Readonly<Record<string, string>> = { 'a.md': 'a', 'docs/b.md': 'b' }, options = {}) {
  const source = live(entries)
  const catalog = catalogOf([{ address: 'x://m', provider: source }])
  const { url } = await serve({ view: catalog.view, ...options })
  return { source, url, client: eventClient(url) }
}

const urisOf = (events: readonly WireEvent[]) => events.map(({ data }) => data.uri)

describe('the Events extension', () => {
  test('is declared to clients of 2026-07-28, and lists the type resource.changed', async () => {
    const { client } = await start()
    const { result: discovered } = await client.ask('server/discover')
    expect(discovered?.capabilities).toMatchObject({ extensions: { 'io.modelcontextprotocol/events': {} } })
    expect(discovered?.capabilities).not.toHaveProperty('events')
    const { result } = await client.ask('events/list')
    expect([result?.events].flat()[0]).toMatchObject({
      name: 'resource.changed',
      description: expect.any(String),
      delivery: ['poll', 'push'],
      inputSchema: { type: 'object', properties: { uri: { type: 'string' }, glob: { type: 'string' } } },
      payloadSchema: { type: 'object', required: ['uri', 'listed'] },
    })
  })

  test('is absent, with its methods, from a server whose sources report no changes', async () => {
    const catalog = catalogOf([{ address: 'x://m', provider: memory({ a: 'a' }) }])
    const client = eventClient((await serve({ view: catalog.view })).url)
    const { result } = await client.ask('server/discover')
    expect(JSON.stringify(result)).not.toContain('io.modelcontextprotocol/events')
    for (const method of ['events/list', 'events/poll', 'events/subscribe', 'events/unsubscribe', 'events/stream'])
      expect((await client.ask(method, changed)).error?.code, method).toBe(-32601)
  })

  test('is absent from revision 2025-11-25', async () => {
    const { url } = await start()
    const post = async (method: string, params: object, session?: string) =>
      fetch(url, {
        method: 'POST',
        headers: {
          Accept: 'application/json, text/event-stream',
          'Content-Type': 'application/json',
          ...(session === undefined ? {} : { 'Mcp-Session-Id': session }),
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      })
    const clientInfo = { name: 't', version: '1' }
    const begun = await post('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo })
    expect(await begun.text()).not.toContain('io.modelcontextprotocol/events')
    const session = begun.headers.get('mcp-session-id') ?? ''
    for (const method of ['events/list', 'events/poll', 'events/stream', 'events/subscribe', 'events/unsubscribe'])
      expect(await (await post(method, changed, session)).text(), method).toContain('-32601')
  })

  test('of the earlier draft ("sketch") has its own declaration and error codes', async () => {
    const { client } = await start({ a: '' }, { events: { dialect: 'sketch' } })
    const { result } = await client.ask('server/discover')
    expect(result?.capabilities).toMatchObject({ events: {}, extensions: { 'io.modelcontextprotocol/events': {} } })
    expect((await client.ask('events/poll', { name: 'none' })).error).toEqual({
      code: -32011,
      message: 'NotFound',
      data: { kind: 'event' },
    })
  })
})

describe('events/poll', () => {
  test('without a cursor begins now, and then returns each change with a new cursor', async () => {
    const { source, client } = await start()
    source.set('a.md', { text: 'before' })
    const first = await client.poll({ ...changed, cursor: null, maxAgeMs: 300_000, maxEvents: 50 })
    expect(first).toMatchObject({ events: [], cursor: expect.any(String), truncated: false, hasMore: false })
    expect(first.nextPollMs).toBeGreaterThan(0)
    source.set('a.md', { text: 'after' })
    source.set('docs/new.md', { text: 'new' })
    const { events, cursor } = await pollUntil(client, changed, first.cursor, ({ length }) => length > 1)
    expect(events).toEqual(
      ['x://m/a.md', 'x://m/docs/new.md'].map((uri) => ({
        eventId: expect.any(String),
        name: 'resource.changed',
        timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
        data: { uri, listed: uri.endsWith('new.md') },
      })),
    )
    expect((await client.poll({ ...changed, cursor })).events).toEqual([])
    const again = await client.poll({ ...changed, cursor: first.cursor })
    expect(again.events).toEqual(events)
  })

  test('gives a different cursor of the same length at each poll, even if nothing has happened', async () => {
    const { client } = await start()
    const [one, two] = [await client.poll(changed), await client.poll(changed)]
    expect(one.cursor).not.toBe(two.cursor)
    expect(one.cursor.length).toBe(two.cursor.length)
  })

  test('returns at most as many events as asked for, and says that there are more', async () => {
    const { source, client } = await start({})
    const { cursor } = await client.poll(changed)
    for (let i = 0; i < 5; i++) source.set(`f${i}`, { text: '' })
    await pollUntil(client, changed, cursor, ({ length }) => length === 5)
    const seen: unknown[] = []
    let at = cursor
    for (const more of [true, true, false]) {
      const page = await client.poll({ ...changed, cursor: at, maxEvents: 2 })
      expect(page.hasMore).toBe(more)
      seen.push(...urisOf(page.events))
      at = page.cursor
    }
    expect(seen).toEqual(Array.from({ length: 5 }, (_, i) => `x://m/f${i}`))
  })

  test('returns only the events at or below a given URI, or that match a given glob', async () => {
    const { source, client } = await start()
    const { cursor } = await client.poll(changed)
    for (const path of ['a.md', 'docs/b.md', 'docs/c.txt', 'docsx/d.md']) source.set(path, { text: 'new' })
    await pollUntil(client, changed, cursor, ({ length }) => length === 4)
    const seen = async (given: object) =>
      urisOf((await client.poll({ ...changed, arguments: given, cursor })).events).map((uri) => String(uri).slice(6))
    expect(await seen({ uri: 'x://m/docs' })).toEqual(['docs/b.md', 'docs/c.txt'])
    expect(await seen({ uri: 'X://M/docs/' })).toEqual(['docs/b.md', 'docs/c.txt'])
    expect(await seen({ uri: 'x://m/a.md' })).toEqual(['a.md'])
    expect(await seen({ uri: 'x://m', glob: '**/*.md' })).toEqual(['a.md', 'docs/b.md', 'docsx/d.md'])
    expect(await seen({ uri: 'x://other' })).toEqual([])
  })

  test('reports a changed directory to callers that asked for an entry in it', async () => {
    const { source, client } = await start()
    const { cursor } = await client.poll(changed)
    source.tell({ path: 'docs/', listed: true })
    const given = { ...changed, arguments: { uri: 'x://m/docs/b.md' } }
    const { events } = await pollUntil(client, given, cursor, ({ length }) => length > 0)
    expect(urisOf(events)).toEqual(['x://m/docs/'])
  })

  test('reports a gap when anything may have changed, when the log began anew, and for an unknown cursor', async () => {
    const { source, client } = await start()
    const { cursor } = await client.poll(changed)
    source.tell({})
    const { truncated, cursor: after } = await (async () => {
      for (;;) {
        const polled = await client.poll({ ...changed, cursor })
        if (polled.truncated) return polled
      }
    })()
    expect(truncated).toBe(true)
    expect((await client.poll({ ...changed, cursor: after })).truncated).toBe(false)
    const restarted = await start()
    for (const strange of [cursor, 'x', '', randomUUID()]) {
      const polled = await restarted.client.poll({ ...changed, cursor: strange })
      expect(polled, strange).toMatchObject({ events: [], truncated: true })
      expect((await restarted.client.poll({ ...changed, cursor: polled.cursor })).truncated).toBe(false)
    }
  })

  test('reports a gap for an earlier cursor after a restart with the same secret', async () => {
    const secret = Buffer.alloc(32, 7)
    const source = live({ a: '' })
    const polled = await Promise.all(
      [1, 2].map(async () => {
        const catalog = catalogOf([{ address: 'x://m', provider: source }], { secret })
        const client = eventClient((await serve({ view: catalog.view })).url)
        return { client, first: await client.poll(changed) }
      }),
    )
    const [one, two] = polled
    const other = await two?.client.poll({ ...changed, cursor: one?.first.cursor })
    expect(other).toMatchObject({ events: [], truncated: true })
  })

  test('leaves out events older than maxAgeMs, and reports a gap', async () => {
    const { source, client } = await start()
    const { cursor } = await client.poll(changed)
    source.set('a.md', { text: 'x' })
    const { events } = await pollUntil(client, changed, cursor, ({ length }) => length > 0)
    await until(() => Date.now() > Date.parse(events[0]?.timestamp ?? '') + 5)
    expect(await client.poll({ ...changed, cursor, maxAgeMs: 1 })).toMatchObject({ events: [], truncated: true })
    expect(await client.poll({ ...changed, cursor, maxAgeMs: 600_000 })).toMatchObject({ events, truncated: false })
  })

  test('reports a gap once a source is watched that could not be watched at first', async () => {
    const source = live({ a: '' })
    let fails = true
    source.arming = async () => {
      if (fails) throw new Error('down')
    }
    const client = eventClient((await serve({ view: catalogOf([{ address: 'x://m', provider: source }]).view })).url)
    const { cursor } = await client.poll(changed)
    fails = false
    await until(() => source.watching > 0)
    for (let polled = await client.poll({ ...changed, cursor }); !polled.truncated; )
      polled = await client.poll({ ...changed, cursor })
  })

  test.each([
    ['a request without a name', {}, -32602],
    ['an unknown type', { name: 'email.received' }, -32023],
    ['arguments that are no object', { ...changed, arguments: [] }, -32602],
    ['an argument of another type', { ...changed, arguments: { uri: 1 } }, -32602],
    ['an unknown argument', { ...changed, arguments: { from: 'x' } }, -32602],
    ['a malformed URI', { ...changed, arguments: { uri: 'no uri' } }, -32602],
    ['a malformed glob', { ...changed, arguments: { glob: '[' } }, -32602],
    ['a cursor that is no string', { ...changed, cursor: 1 }, -32602],
    ['a negative age', { ...changed, maxAgeMs: -1 }, -32602],
  ])('refuses %s, for which events/stream opens no stream either', async (_, params, code) => {
    const { client } = await start()
    expect((await client.ask('events/poll', params)).error?.code).toBe(code)
    const { heard, isStream } = await client.stream(params)
    expect(isStream).toBe(false)
    expect(heard[0]?.error?.code).toBe(code)
  })

  test('refuses a number of events that is not positive', async () => {
    const { client } = await start()
    expect((await client.ask('events/poll', { ...changed, maxEvents: 0 })).error?.code).toBe(-32602)
  })
})

/** Two callers with tokens: one may see all, the other only `open`. */
async function startGuarded() {
  const folder = await mkdtemp(join(tmpdir(), 'hikidashi-events-'))
  cleanups.push(() => rm(folder, { recursive: true, force: true }))
  const tokens = join(folder, 'tokens.json')
  const [reader, guest] = [
    await addToken(tokens, { name: 'reader', roles: ['reader'] }),
    await addToken(tokens, { name: 'guest', roles: [] }),
  ]
  const source = live({ 'open/a': '', 'shut/a': '' })
  const hidden = live({ a: '' })
  const access = compileAccess([{ allow: ['reader'] }, { allow: ['*'], match: ['open/**'] }])
  const catalog = catalogOf([
    { address: 'x://m', provider: source, access },
    { address: 'x://hidden', provider: hidden, access: compileAccess([{ allow: ['reader'] }]) },
  ])
  const { url } = await serve({ view: catalog.view, auth: { issuers: [], tokens } })
  return {
    source,
    hidden,
    tokens,
    guestToken: guest.stored.id,
    reader: eventClient(url, reader.token),
    guest: eventClient(url, guest.token),
  }
}

describe('access to events', () => {
  test('is checked at each delivery: denied looks like absent', async () => {
    const { source, hidden, reader, guest } = await startGuarded()
    const { cursor } = await guest.poll(changed)
    const all = await reader.poll(changed)
    source.set('shut/a', { text: 'x' })
    hidden.set('a', { text: 'x' })
    hidden.tell({})
    source.tell({ path: 'open/b', listed: true, aliases: ['shut/b'] })
    source.set('open/a', { text: 'x' })
    await pollUntil(reader, changed, all.cursor, ({ length }) => length === 3)
    const seen = await guest.poll({ ...changed, cursor })
    expect(urisOf(seen.events)).toEqual(['x://m/open/a'])
    expect(seen).toMatchObject({ truncated: false, hasMore: false })
    for (const uri of ['x://hidden', 'x://hidden/a', 'x://m/shut/a', 'x://none', 'x://m/none'])
      expect((await guest.poll({ ...changed, arguments: { uri }, cursor })).events, uri).toEqual([])
  })

  test('gives only a gap for the cursor of another caller', async () => {
    const { reader, guest } = await startGuarded()
    const { cursor } = await reader.poll(changed)
    expect(await guest.poll({ ...changed, cursor })).toMatchObject({ events: [], truncated: true })
  })

  test('ends with the token: its stream ends with a reason, and no poll is answered', async () => {
    const { source, guest, tokens, guestToken } = await startGuarded()
    const stream = await guest.stream(changed)
    await until(() => stream.of('active').length > 0)
    await revokeToken(tokens, guestToken)
    await stream.ended
    expect(stream.of('terminated')).toMatchObject([{ error: { code: -32024, message: 'Forbidden' } }])
    expect(stream.heard.at(-1)).toMatchObject({ id: stream.id, result: {} })
    source.set('open/a', { text: 'x' })
    await expect(guest.poll(changed)).rejects.toThrow()
  })
})

describe('events/stream', () => {
  test('confirms the subscription, and sends each matching event with its position', async () => {
    const { source, client } = await start()
    const stream = await client.stream({ ...changed, cursor: null, arguments: { glob: '**/*.md' } })
    await until(() => stream.of('active').length > 0)
    source.set('a.txt', { text: 'x' })
    source.set('a.md', { text: 'x' })
    await until(() => stream.of('event').length > 0)
    expect(stream.heard).toEqual([
      {
        jsonrpc: '2.0',
        method: 'notifications/events/active',
        params: {
          cursor: expect.any(String),
          truncated: false,
          _meta: { 'io.modelcontextprotocol/subscriptionId': stream.id },
        },
      },
      {
        jsonrpc: '2.0',
        method: 'notifications/events/event',
        params: {
          eventId: expect.any(String),
          name: 'resource.changed',
          timestamp: expect.any(String),
          data: { uri: 'x://m/a.md', listed: false },
          cursor: expect.any(String),
          _meta: { 'io.modelcontextprotocol/subscriptionId': stream.id },
        },
      },
    ])
    stream.close()
    await stream.ended
  })

  test('without events sends heartbeats with the position, and no comments of the transport', async () => {
    const { client } = await start()
    const stream = await client.stream(changed)
    await until(() => stream.of('heartbeat').length > 1, 45_000)
    for (const { cursor } of stream.of('heartbeat')) expect(cursor).toEqual(expect.any(String))
    expect(stream.heard.filter(({ method }) => method === 'comment')).toEqual([])
    stream.close()
  }, 60_000)

  test('resumes after the position of an event, also in a poll, with the same ids', async () => {
    const { source, client } = await start({})
    const stream = await client.stream(changed)
    await until(() => stream.of('active').length > 0)
    for (const path of ['one', 'two', 'three']) source.set(path, { text: '' })
    await until(() => stream.of('event').length === 3)
    const [one, two, three] = stream.of('event')
    stream.close()
    const resumed = await client.stream({ ...changed, cursor: one?.cursor ?? '' })
    await until(() => resumed.of('event').length === 2)
    const ids = [two?.eventId, three?.eventId]
    expect(resumed.of('event').map(({ eventId }) => eventId)).toEqual(ids)
    const polled = await client.poll({ ...changed, cursor: one?.cursor ?? '' })
    expect(polled.events.map(({ eventId }) => eventId)).toEqual(ids)
    resumed.close()
  })

  test('reports a gap within the stream', async () => {
    const { source, client } = await start()
    const stream = await client.stream(changed)
    await until(() => stream.of('active').length > 0)
    source.tell({})
    await until(() => stream.of('active').length > 1)
    expect(stream.of('active').map(({ truncated }) => truncated)).toEqual([false, true])
    stream.close()
  })

  test('reports a gap at once for an unknown position', async () => {
    const { client } = await start()
    const stream = await client.stream({ ...changed, cursor: 'x' })
    await until(() => stream.of('active').length > 0)
    expect(stream.of('active')).toMatchObject([{ truncated: true, cursor: expect.any(String) }])
    stream.close()
  })

  test('refuses more streams than the limit, with the error of the Events extension', async () => {
    const catalog = catalogOf([{ address: 'x://m', provider: live({ a: '' }) }], { changes: { subscriptions: 2 } })
    const client = eventClient((await serve({ view: catalog.view })).url)
    const streams = [await client.stream(changed), await client.stream(changed)]
    await until(() => streams.every((stream) => stream.of('active').length > 0))
    const third = await client.stream(changed)
    expect(third.heard[0]?.error).toMatchObject({
      code: -32025,
      message: 'ResourceExhausted',
      data: { limit: 'subscriptions', max: 2 },
    })
    for (const stream of streams) stream.close()
    await Promise.all(streams.map(({ ended }) => ended))
    const room = async () => (await client.stream(changed)).isStream
    for (let found = await room(); !found; ) found = await room()
  })

  test('delivers events over stdio, until a cancellation ends the stream', async () => {
    const source = live({ a: '' })
    const catalog = catalogOf([{ address: 'x://m', provider: source }])
    const [input, output] = [new PassThrough(), new PassThrough()]
    let text = ''
    output.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
    })
    const options = { name: 't', version: '1', log: () => {}, view: catalog.view, grace: 100 }
    const ended = serveStdio({ ...options, input, output })
    const say = (message: object) => input.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
    say({ id: 's', method: 'events/stream', params: withMeta(changed, true) })
    await until(() => text.includes('notifications/events/active'))
    source.set('a', { text: 'x' })
    await until(() => text.includes('notifications/events/event'))
    say({ method: 'notifications/cancelled', params: withMeta({ requestId: 's' }, true) })
    say({ id: 'p', method: 'events/poll', params: withMeta(changed, true) })
    await until(() => text.includes('"id":"p"'))
    const before = text
    source.set('a', { text: 'y' })
    say({ id: 'l', method: 'events/list', params: withMeta({}, true) })
    await until(() => text.includes('"id":"l"'))
    expect(text.slice(before.length)).not.toContain('notifications/events/event')
    input.end()
    await ended
  })
})

describe('among the other types of events,', () => {
  test('search.matched reports a changed text that has every word of the query, in any form', async () => {
    const { source, client } = await start()
    const asked = { name: 'search.matched', arguments: { query: 'sealed cursors' } }
    const { cursor } = await client.poll(asked)
    source.set('a.md', { text: 'A cursor is open.' })
    source.set('docs/b.md', { text: 'Each cursor is sealed.' })
    source.set('docs/c.md', undefined)
    source.set('last.md', { text: 'The sealed cursor.' })
    const { events, truncated } = await pollUntil(client, asked, cursor, ({ length }) => length > 1)
    expect(events.map(({ name, data }) => [name, data.uri, data.listed])).toEqual([
      ['search.matched', 'x://m/docs/b.md', false],
      ['search.matched', 'x://m/last.md', true],
    ])
    expect(truncated).toBe(false)
    expect((await client.ask('events/poll', { name: 'search.matched' })).error?.code).toBe(-32602)
    const empty = { name: 'search.matched', arguments: { query: ' ' } }
    expect((await client.ask('events/poll', empty)).error?.code).toBe(-32602)
  })

  test('search.matched reports a gap for a change in a whole directory, whose texts are unknown', async () => {
    const { source, client } = await start()
    const asked = { name: 'search.matched', arguments: { query: 'sealed' } }
    const { cursor } = await client.poll(asked)
    source.tell({ path: 'docs/', listed: true })
    source.set('a.md', { text: 'It is sealed.' })
    const { events, truncated } = await pollUntil(client, asked, cursor, ({ length }) => length > 0)
    expect([urisOf(events), truncated]).toEqual([['x://m/a.md'], true])
  })

  test('result.stored reports a result that is stored, and neither removals nor changes of other mounts', async () => {
    const results = live({ old: 'r' })
    const files = live({ a: 'a' })
    const put = async () => ({ id: 'new', status: 'created' as const, created: '2026-01-01T00:00:00Z' })
    const catalog = catalogOf([
      { address: 'x://results', provider: { ...results, put } },
      { address: 'x://files', provider: files },
    ])
    const client = eventClient((await serve({ view: catalog.view })).url)
    const asked = { name: 'result.stored', arguments: {} }
    const { cursor } = await client.poll(asked)
    files.set('b', { text: 'b' })
    results.set('old', undefined)
    results.set('new', { text: 'r' })
    const { events } = await pollUntil(client, asked, cursor, ({ length }) => length > 0)
    expect(events.map(({ name, data }) => [name, data])).toEqual([['result.stored', { uri: 'x://results/new' }]])
  })
})
