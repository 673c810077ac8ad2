import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { volumeOf } from '../support/volume.ts'
import { isStdio, type StdioWire, useArena, wireNames } from './harness/arena.ts'
import { headerValue, jsonHeaders, send } from './harness/http.ts'
import { messagesOf } from './harness/messages.ts'
import { initialize, type Params, withMeta } from './harness/wire.ts'
import { eachWire } from './harness/wires.ts'

const arena = useArena()
const modernNames = ['stdio 2026-07-28', 'http 2026-07-28'] as const
const { control, idOf, requestOf, tell } = messagesOf(arena)

describe('_meta of a request:', () => {
  const version = 'io.modelcontextprotocol/protocolVersion'
  const capabilities = 'io.modelcontextprotocol/clientCapabilities'
  const info = 'io.modelcontextprotocol/clientInfo'

  eachWire(modernNames)('a _meta that is malformed or has wrong values is refused over %s (JR22)', async (name) => {
    const wire = arena.wire(name)
    const own = withMeta({}, true)._meta as Params
    const cases: readonly (readonly [unknown, number])[] = [
      [[], -32602],
      ['x', -32602],
      // Null is absent. Over a pipe, a request without _meta is one of an earlier revision.
      ...(wire.transport === 'http' ? ([[null, -32602]] as const) : []),
      [1, -32602],
      [{ ...own, [version]: {} }, -32602],
      [{ ...own, [version]: null }, -32602],
      [{ ...own, [version]: 20260728 }, -32602],
      [{ ...own, [version]: ['2026-07-28'] }, -32602],
      [{ ...own, [version]: '2027-01-01' }, -32022],
      [{ ...own, [version]: '2025-11-25' }, -32022],
      [{ ...own, [version]: '' }, -32022],
      [{ ...own, [version]: '2026-07-28 ' }, -32022],
      [{ ...own, [version]: 'x'.repeat(500_000) }, -32022],
      [{ ...own, [version]: '__proto__' }, -32022],
      [{ [version]: own[version] }, -32602],
      [{ ...own, [capabilities]: [] }, -32602],
      [{ ...own, [capabilities]: null }, -32602],
      [{ ...own, [capabilities]: 'all' }, -32602],
      [{ ...own, [info]: 'x' }, -32602],
      [{ ...own, [info]: { name: 1, version: 1 } }, -32602],
    ]
    for (const [meta, code] of cases) {
      const { message, raw, status } = await tell(wire, requestOf(wire, { params: { ...control(), _meta: meta } }))
      const shown = `${JSON.stringify(meta).slice(0, 200)} ${raw.subarray(0, 300)}`
      // Over HTTP the header disagrees too, and either may be said.
      expect([code, ...(wire.transport === 'http' && code === -32022 ? [-32020] : [])], shown).toContain(
        message?.error?.code,
      )
      if (wire.transport === 'http') expect(status, shown).toBe(400)
      expect(raw.length).toBeLessThan(1024)
      if (message?.error?.code === -32022) expect(message.error.data?.supported).toContain('2026-07-28')
    }
  })

  test('a request with the header of revision 2026-07-28 and without its _meta is refused (JR22)', async () => {
    const wire = arena.wire('http 2026-07-28')
    for (const params of [control(), { ...control(), _meta: {} }]) {
      const { message, status } = await tell(wire, requestOf(wire, { params }))
      expect(message?.error?.code).toBe(-32602)
      expect(status).toBe(400)
    }
  })

  eachWire(wireNames)('unknown keys of any size are ignored, and not logged, over %s (JR22, JR23)', async (name) => {
    const wire = arena.wire(name)
    const odd: Params = {
      traceparent: '00-zz-\r\n-01',
      tracestate: '\u001b[31m',
      baggage: 'baggage-'.repeat(60_000),
      'io.modelcontextprotocol/unknown': { deep: [1, { x: null }] },
      'io.modelcontextprotocol/subscriptionId': 'x',
      'modelcontextprotocol.io/x': 1,
      'mcp.dev/x': 1,
      '': '',
      'a b': 1,
    }
    const { message } = await arena.ask(wire, 'resources/read', { ...control(), _meta: odd })
    expect(message?.result).toBeDefined()
    await sleep(50)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: it steers terminals.
    expect(wire.target.errors()).not.toMatch(/baggage-|00-zz|\u001b/)
  })

  eachWire(wireNames)('a progress token of any type or size gets a short answer over %s (JR24)', async (name) => {
    const wire = arena.wire(name)
    const tokens = [
      0,
      -1,
      1.5,
      1e308,
      '',
      'x',
      'x'.repeat(500_000),
      {},
      [],
      null,
      true,
      ['x'],
      { x: 'y'.repeat(100_000) },
    ]
    for (const progressToken of tokens) {
      const { message, raw } = await arena.ask(wire, 'resources/read', { ...control(), _meta: { progressToken } })
      expect(raw.length).toBeLessThan(3000)
      if (message?.error !== undefined) expect(message.error.code).toBe(-32602)
    }
    // The same token for many requests at once.
    const all = await Promise.all(
      Array.from({ length: 50 }, () =>
        arena.ask(wire, 'resources/read', { ...control(), _meta: { progressToken: 1 } }),
      ),
    )
    for (const { message } of all) expect(message?.result).toBeDefined()
  })

  test('progress is reported for a short token and not for one of 100,000 characters, increases, and ends when the request is cancelled (JR24)', async () => {
    const wire = arena.wire('stdio 2026-07-28') as StdioWire
    for (const [id, progressToken] of [
      ['long', 'x'.repeat(100_000)],
      ['short', 'token'],
    ] as const) {
      await wire.pipe.write(
        `${JSON.stringify({ jsonrpc: '2.0', id, method: 'resources/read', params: withMeta({ uri: 'slow://source/hang', _meta: { progressToken } }, true) })}\n`,
      )
    }
    const seen: number[] = []
    while (seen.length < 3) {
      const { message, raw } = await wire.pipe.next()
      expect(message?.method).toBe('notifications/progress')
      expect(raw.length).toBeLessThan(512)
      const { params } = message as { readonly params?: { readonly progress: number; readonly progressToken: unknown } }
      expect(params?.progressToken).toBe('token')
      seen.push(params?.progress ?? 0)
    }
    expect(seen).toEqual([...seen].sort((a, b) => a - b))
    expect(new Set(seen).size).toBe(seen.length)
    for (const id of ['long', 'short']) await wire.notify('notifications/cancelled', { requestId: id })
    // What is answered behind it is answered when it has been heard.
    await arena.ask(wire, 'resources/read', control())
    const lines = wire.pipe.lines()
    await sleep(1500)
    expect(wire.pipe.lines()).toBe(lines)
  })

  eachWire(modernNames)('a client with 60,000 capabilities is answered over %s (JR26)', async (name) => {
    const wire = arena.wire(name)
    const extensions = Object.fromEntries(Array.from({ length: 60_000 }, (_, i) => [`e${i}`, {}]))
    for (let i = 0; i < 5; i++) {
      const { message } = await arena.ask(wire, 'resources/read', {
        ...control(),
        _meta: { [capabilities]: { extensions, experimental: {} } },
      })
      expect(message?.error?.code ?? 0, 'a result, or a refusal').toSatisfy(
        (code: number) => code === 0 || code === -32602,
      )
    }
  })

  test.each(['stdio 2025-11-25', 'http 2025-11-25'] as const)(
    'an initialize with 60,000 experimental capabilities is answered over %s (JR26)',
    async (name) => {
      const wire = arena.wire(name)
      const extensions = Object.fromEntries(Array.from({ length: 60_000 }, (_, i) => [`e${i}`, {}]))
      const message = {
        jsonrpc: '2.0',
        id: idOf(),
        method: 'initialize',
        params: { ...initialize(), capabilities: { experimental: extensions } },
      }
      if (isStdio(wire)) await tell(wire, message)
      else {
        const { headers = [] } = await send(wire.target, arena.world, {
          headers: jsonHeaders,
          body: JSON.stringify(message),
        })
        const id = headers.find(([header]) => header === 'mcp-session-id')?.[1] ?? ''
        expect(id).toMatch(/^[\x21-\x7e]+$/)
        await send(wire.target, arena.world, { method: 'DELETE', headers: { 'mcp-session-id': id } })
      }
    },
  )

  test('a session keeps less than a megabyte of the capabilities and names that its client sends (JR26)', async () => {
    const junk = Object.fromEntries(Array.from({ length: 60_000 }, (_, i) => [`e${i}`, {}]))
    // What is in use once everything is put away that can be, in MiB.
    const inUse = async () => {
      const { message } = await arena.read(arena.wire('http 2026-07-28'), 'count://calls/kept')
      const [content] = (message?.result?.contents ?? []) as readonly { readonly text: string }[]
      return Number(content?.text)
    }
    const before = await inUse()
    const post = (id: string | undefined, method: string, params: Params) =>
      send(arena.http, arena.world, {
        headers: { ...jsonHeaders, ...(id === undefined ? {} : { 'mcp-session-id': id }) },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      })
    const sessions: string[] = []
    // So many that they would show.
    for (let i = 0; i < volumeOf(30, 8); i++) {
      const { headers = [] } = await post(undefined, 'initialize', {
        ...initialize(),
        capabilities: { experimental: junk },
        clientInfo: { name: 'x'.repeat(100_000), version: '1' },
      })
      const id = headers.find(([header]) => header === 'mcp-session-id')?.[1] ?? ''
      await post(id, 'resources/list', { junk, cursor: 'x' })
      sessions.push(id)
    }
    // What is kept of one would be more than a megabyte.
    expect((await inUse()) - before).toBeLessThan(sessions.length)
    for (const id of sessions)
      await send(arena.http, arena.world, { method: 'DELETE', headers: { 'mcp-session-id': id } })
  })

  eachWire(modernNames)(
    'a client gets no log messages at any level, and logging/setLevel is an unknown method, over %s (JR27)',
    async (name) => {
      const wire = arena.wire(name)
      for (const level of ['debug', 'bogus', 'emergency ', 'DEBUG', '', 5, null, {}, ['debug'], '__proto__']) {
        const { message, raw } = await arena.ask(wire, 'resources/read', {
          uri: `${arena.world.address}/.env`,
          _meta: { 'io.modelcontextprotocol/logLevel': level },
        })
        expect(message?.error?.code, raw.toString()).toBe(-32602)
      }
      if (isStdio(wire)) await expect(wire.pipe.next(300)).rejects.toThrow('no answer')
      for (const level of ['debug', 'bogus']) {
        const { message } = await tell(
          wire,
          requestOf(wire, { method: 'logging/setLevel', params: withMeta({ level }, true) }),
          { 'mcp-method': headerValue('logging/setLevel') },
        )
        expect(message?.error?.code).toBe(-32601)
      }
    },
  )

  test('an invalid initialize is refused, and one for 2026-07-28 or an unknown revision is offered 2025-11-25 (JR22)', async () => {
    const wire = arena.wire('stdio 2025-11-25')
    for (const params of [
      {},
      { ...initialize(), protocolVersion: 1 },
      { ...initialize(), capabilities: [] },
      { ...initialize(), clientInfo: 'x' },
      { ...initialize(), clientInfo: { name: 'x' } },
    ])
      expect((await tell(wire, requestOf(wire, { method: 'initialize', params }))).message?.error?.code).toBe(-32602)
    for (const protocolVersion of ['2026-07-28', '1999-01-01', '', 'x'.repeat(500_000), '__proto__']) {
      const { message, raw } = await tell(
        wire,
        requestOf(wire, { method: 'initialize', params: { ...initialize(), protocolVersion } }),
      )
      expect(message?.result?.protocolVersion, raw.subarray(0, 300).toString()).toBe('2025-11-25')
      expect(raw.length).toBeLessThan(2048)
    }
  })
})
