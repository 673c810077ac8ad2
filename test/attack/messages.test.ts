import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { isStdio, type StdioWire, useArena, wireNames } from '../support/attack-arena.ts'
import { headerValue, jsonHeaders, modernHeaders, send, sessionHeaders } from '../support/attack-http.ts'
import { type Answer, initialize, meta, type Params, type Wire, withMeta } from '../support/attack-wire.ts'
import { controlPath } from '../support/attack-world.ts'

const arena = useArena()
const stdioNames = ['stdio 2026-07-28', 'stdio 2025-11-25'] as const
const modernNames = ['stdio 2026-07-28', 'http 2026-07-28'] as const

const control = () => ({ uri: `${arena.world.address}/${controlPath}` })

/** Sends one message as it is, and answers what comes back for it, whatever id that has. */
async function tell(wire: Wire, message: unknown, headers: Record<string, string> = {}): Promise<Answer> {
  const bytes = typeof message === 'string' ? message : JSON.stringify(message)
  if (isStdio(wire)) {
    await wire.pipe.write(`${bytes}\n`)
    const id = (JSON.parse(bytes) as { readonly id?: unknown } | null)?.id
    return typeof id === 'string' || typeof id === 'number' ? wire.pipe.either(id) : wire.pipe.next()
  }
  const base = wire.modern ? modernHeaders('resources/read', control()) : { ...jsonHeaders, ...sessionHeaders(wire) }
  return send(wire.target, arena.world, { headers: { ...base, ...headers }, body: bytes })
}

let next = 0
const idOf = () => `m${next++}`

const requestOf = (wire: Wire, over: Params = {}): Record<string, unknown> => ({
  jsonrpc: '2.0',
  id: idOf(),
  method: 'resources/read',
  params: withMeta(control(), wire.modern),
  ...over,
})

const without = (message: Record<string, unknown>, name: string) => {
  const { [name]: _, ...rest } = message
  return rest
}

describe('messages', () => {
  test.each(wireNames)('JR07: another version of JSON-RPC, or none, is refused over %s', async (name) => {
    const wire = arena.wire(name)
    for (const jsonrpc of ['1.0', 2, 2.0, '2', '2.0 ', '', null, ['2.0'], { version: '2.0' }, true]) {
      const { message, raw } = await tell(wire, requestOf(wire, { jsonrpc }))
      expect(message?.error?.code, raw.toString()).toBe(-32600)
    }
    const request = requestOf(wire)
    expect((await tell(wire, without(request, 'jsonrpc'))).message).toMatchObject({
      id: request.id,
      error: { code: -32600 },
    })
  })

  test.each(wireNames)('JR08: no method of another name is found over %s', async (name) => {
    const wire = arena.wire(name)
    const methods = [
      '',
      ' ',
      'x'.repeat(2000),
      'x'.repeat(900_000),
      '__proto__',
      'constructor',
      'toString',
      'hasOwnProperty',
      'rpc.discover',
      'rpc.x',
      'resources/ｒead',
      'Resources/Read',
      'resources/read ',
      ' resources/read',
      'resources//read',
      'resources/read/',
      'resources\\read',
      'resources/read\u0000',
      'resources/rea\u0064x',
      'notifications/cancelled',
      'notifications/initialized',
      'sampling/createMessage',
      'roots/list',
      'elicitation/create',
      'tools/call',
      'resources/subscribe',
      'logging/setLevel',
      'tasks/get',
      'tasks/list',
      'tasks/cancel',
      'ｐing',
      '\ud800',
      'é'.repeat(20),
    ]
    for (const method of methods) {
      const params = withMeta({ ...control(), name: 'x', taskId: 'x', level: 'debug' }, wire.modern)
      const short = method.length > 1000 || !/^[\x21-\x7e]+$/.test(method) ? {} : { 'mcp-method': method }
      const named = ['tools/call'].includes(method) ? { 'mcp-name': 'x' } : {}
      const answer = await tell(wire, requestOf(wire, { method, params }), { ...short, ...named })
      const { message, raw, status } = answer
      expect(message?.result, `${method.slice(0, 50)}: ${raw.subarray(0, 200)}`).toBeUndefined()
      const headed = wire.transport === 'http' && wire.modern && !('mcp-method' in short) && method.length <= 1024
      expect(message?.error?.code, `${method.slice(0, 50)}: ${raw.subarray(0, 200)}`).toBe(headed ? -32020 : -32601)
      if (wire.transport === 'http' && wire.modern && !headed) expect([404, 400]).toContain(status)
      expect(raw.length).toBeLessThan(2048)
    }
    for (const method of [1, null, true, [], {}, ['resources/read']])
      expect((await tell(wire, requestOf(wire, { method }))).message?.error?.code).toBe(-32600)
  })

  test.each(wireNames)('JR09: params that are no object are refused over %s', async (name) => {
    const wire = arena.wire(name)
    for (const params of [[], [control().uri], 'x', '', null, 0, 1, true, false]) {
      const { message, raw } = await tell(wire, requestOf(wire, { params }))
      expect(message?.error?.code, raw.toString()).toBe(-32602)
    }
    expect((await tell(wire, without(requestOf(wire), 'params'))).message?.error?.code).toBe(-32602)
    for (const uri of [null, 0, true, [], {}, [control().uri], { toString: control().uri }, undefined]) {
      const { message, raw } = await tell(wire, requestOf(wire, { params: withMeta({ uri }, wire.modern) }))
      expect(message?.error?.code, raw.toString()).toBe(-32602)
    }
  })

  test.each(wireNames)('JR06: an id that is none is refused, any other comes back as it is, over %s', async (name) => {
    const wire = arena.wire(name)
    for (const id of [null, 1.5, {}, [], [1], true, false, 2 ** 53, -(2 ** 53), 'x'.repeat(1025)])
      expect((await tell(wire, requestOf(wire, { id }))).message).toMatchObject({ id: null, error: { code: -32600 } })
    expect(
      (await tell(wire, JSON.stringify(requestOf(wire, { id: 0 })).replace('"id":0', '"id":1e400'))).message,
    ).toMatchObject({ id: null })
    for (const id of [
      '',
      '0',
      0,
      -1,
      1,
      '1',
      2 ** 53 - 1,
      '__proto__',
      'toString',
      'x'.repeat(1024),
      '\ud800',
      'é\u2028',
      'null',
    ]) {
      const { message } = await tell(wire, requestOf(wire, { id }))
      expect(message?.id).toBe(id)
      expect(message?.result).toBeDefined()
    }
    // -0 is an integer, and has no spelling of its own in JSON.
    expect(
      (await tell(wire, JSON.stringify(requestOf(wire, { id: 0 })).replace('"id":0', '"id":-0'))).message?.id,
    ).toEqual(0)
  })

  test.each(wireNames)('JR03: members called like those of every object change nothing over %s', async (name) => {
    const wire = arena.wire(name)
    const evil = '{"polluted":"yes","toString":1,"uri":"file:///etc/passwd"}'
    const inject = (json: string, where: string) =>
      json.replace(where, `${where}"__proto__":${evil},"constructor":{"prototype":${evil}},`)
    const plain = JSON.stringify(requestOf(wire))
    for (const json of [
      inject(plain, '{'),
      inject(plain, '"params":{'),
      ...(wire.modern ? [inject(plain, '"_meta":{')] : []),
    ]) {
      const { message, raw } = await tell(wire, json.replace(/"id":"[^"]*"/, `"id":"${idOf()}"`))
      if (message?.error === undefined) expect(message?.result?.contents).toMatchObject([{ uri: control().uri }])
      else expect(message.error.code, raw.toString()).toBe(-32602)
    }
    // As the only member it is still no URI.
    const onlyProto = JSON.stringify(requestOf(wire, { params: withMeta({ x: 1 }, wire.modern) })).replace(
      '"params":{',
      `"params":{"__proto__":{"uri":"${control().uri}"},`,
    )
    expect((await tell(wire, onlyProto)).message?.error?.code).toBeLessThan(0)
    const args = JSON.parse('{"__proto__":"x","constructor":"y","path":"z"}') as Params
    const ref = { type: 'ref/resource', uri: `${arena.world.address}/{+path}` }
    for (const argument of ['__proto__', 'constructor', 'toString', 'path']) {
      const { message } = await arena.ask(wire, 'completion/complete', {
        ref,
        argument: { name: argument, value: 'a' },
        context: { arguments: args },
      })
      expect(message?.error ?? message?.result?.completion).toBeDefined()
    }
    const state = await arena.read(wire, 'count://calls/made')
    expect(state.raw.toString()).not.toContain('polluted\\":[\\"')
  })

  test.each(wireNames)('JR13: a lone surrogate anywhere harms nothing over %s', async (name) => {
    const wire = arena.wire(name)
    const bad = '\ud800'
    const asked: readonly (readonly [string, Params])[] = [
      ['resources/list', { cursor: bad }],
      ['resources/list', { [bad]: bad }],
      ['resources/list', { _meta: { [bad]: bad, progressToken: bad } }],
      ['completion/complete', { ref: { type: 'ref/resource', uri: bad }, argument: { name: bad, value: bad } }],
      [
        'completion/complete',
        {
          ref: { type: 'ref/resource', uri: `${arena.world.address}/{+path}` },
          argument: { name: 'path', value: bad },
        },
      ],
      [
        'completion/complete',
        {
          ref: { type: 'ref/resource', uri: `${arena.world.address}/{+path}` },
          argument: { name: 'path', value: 'a' },
          context: { arguments: { path: bad, [bad]: bad } },
        },
      ],
      ['resources/directory/read', { uri: bad }],
    ]
    for (const [method, params] of asked) {
      const { raw } = await arena.ask(wire, method, params)
      expect(raw.toString()).not.toMatch(/\\ud800/i)
    }
  })

  test.each(wireNames)('JR32: a megabyte of wrong params is answered with a short error over %s', async (name) => {
    const wire = arena.wire(name)
    const long = 'y'.repeat(600_000)
    const nested = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`k${i}`, i]))
    const asked: readonly (readonly [string, Params])[] = [
      ['resources/list', { cursor: long }],
      ['resources/list', { cursor: nested }],
      ['resources/templates/list', { cursor: long }],
      ['resources/directory/read', { uri: long }],
      ['resources/directory/read', { uri: nested }],
      ['resources/directory/read', { uri: arena.world.address, cursor: long }],
      ['completion/complete', { ref: long, argument: long }],
      ['completion/complete', { ref: { type: long, uri: long }, argument: { name: 'path', value: '' } }],
      ['completion/complete', { ref: { type: 'ref/resource', uri: long }, argument: { name: long, value: long } }],
      [
        'completion/complete',
        { ref: { type: 'ref/resource', uri: `${arena.world.address}/{+path}` }, argument: nested },
      ],
      [
        'completion/complete',
        {
          ref: { type: 'ref/resource', uri: `${arena.world.address}/{+path}` },
          argument: { name: 'path', value: '' },
          context: long,
        },
      ],
      [
        'completion/complete',
        {
          ref: { type: 'ref/resource', uri: `${arena.world.address}/{+path}` },
          argument: { name: 'path', value: '' },
          context: { arguments: nested },
        },
      ],
      [
        'completion/complete',
        {
          ref: { type: 'ref/resource', uri: `${arena.world.address}/{+path}` },
          argument: { name: 'path', value: '' },
          context: { arguments: { a: long } },
        },
      ],
      ['completion/complete', { ref: { type: 'ref/prompt', name: long }, argument: { name: long, value: long } }],
      ['tools/list', { cursor: nested }],
      ['resources/read', { uri: nested }],
      ...(wire.transport === 'http' && wire.modern
        ? []
        : ([
            ['resources/read', { uri: long }],
            ['prompts/get', { name: long }],
            ['tools/call', { name: long, arguments: nested }],
          ] as const)),
    ]
    for (const [method, params] of asked) {
      const { message, raw } = await arena.ask(wire, method, params)
      if (method === 'tools/list') continue
      expect(message?.error, `${method} ${raw.subarray(0, 200)}`).toBeDefined()
      expect(raw.length, method).toBeLessThan(1024)
    }
    const valueOfMegabytes = {
      ref: { type: 'ref/resource', uri: `${arena.world.address}/{+path}` },
      argument: { name: 'path', value: 'a/'.repeat(400_000) },
    }
    expect((await arena.ask(wire, 'completion/complete', valueOfMegabytes)).raw.length).toBeLessThan(1024)
  })
})

describe('_meta', () => {
  const version = 'io.modelcontextprotocol/protocolVersion'
  const capabilities = 'io.modelcontextprotocol/clientCapabilities'
  const info = 'io.modelcontextprotocol/clientInfo'

  test.each(modernNames)('JR22: a _meta that is none, or claims what is not, is refused over %s', async (name) => {
    const wire = arena.wire(name)
    const own = withMeta({}, true)._meta as Params
    const cases: readonly (readonly [unknown, number])[] = [
      [[], -32602],
      ['x', -32602],
      [null, -32602],
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

  test('JR22: the header alone does not make a request modern', async () => {
    const wire = arena.wire('http 2026-07-28')
    for (const params of [control(), { ...control(), _meta: {} }]) {
      const { message, status } = await tell(wire, requestOf(wire, { params }))
      expect(message?.error?.code).toBe(-32602)
      expect(status).toBe(400)
    }
  })

  test.each(wireNames)(
    'JR22 JR23: keys that mean nothing here, however large, are passed over and not logged over %s',
    async (name) => {
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
      expect(wire.target.errors()).not.toMatch(/baggage-|00-zz|\u001b/)
    },
  )

  test.each(wireNames)('JR24: a progress token of any type or size does no harm over %s', async (name) => {
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

  test('JR24: progress grows, is bounded in size, and ends with the request', async () => {
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
    await sleep(100)
    const lines = wire.pipe.lines()
    await sleep(1500)
    expect(wire.pipe.lines()).toBe(lines)
  })

  test.each(modernNames)('JR26: a hundred thousand capabilities of a client cost little over %s', async (name) => {
    const wire = arena.wire(name)
    const extensions = Object.fromEntries(Array.from({ length: 60_000 }, (_, i) => [`e${i}`, {}]))
    const start = performance.now()
    for (let i = 0; i < 5; i++) {
      const { message } = await arena.ask(wire, 'resources/read', {
        ...control(),
        _meta: { [capabilities]: { extensions, experimental: {} } },
      })
      expect(message?.error?.code ?? 0, 'a result, or a refusal').toSatisfy(
        (code: number) => code === 0 || code === -32602,
      )
    }
    expect(performance.now() - start).toBeLessThan(10_000)
  })

  test.each(['stdio 2025-11-25', 'http 2025-11-25'] as const)(
    'JR26: nor do they in initialize over %s',
    async (name) => {
      const wire = arena.wire(name)
      const extensions = Object.fromEntries(Array.from({ length: 60_000 }, (_, i) => [`e${i}`, {}]))
      const message = {
        jsonrpc: '2.0',
        id: idOf(),
        method: 'initialize',
        params: { ...initialize(), capabilities: { experimental: extensions } },
      }
      const start = performance.now()
      if (isStdio(wire)) await tell(wire, message)
      else {
        const { headers = [] } = await send(wire.target, arena.world, {
          headers: jsonHeaders,
          body: JSON.stringify(message),
        })
        const id = headers.find(([header]) => header === 'mcp-session-id')?.[1] ?? ''
        await send(wire.target, arena.world, { method: 'DELETE', headers: { 'mcp-session-id': id } })
      }
      expect(performance.now() - start).toBeLessThan(3000)
    },
  )

  test.each(modernNames)('JR27: no level of logging brings a log to the client over %s', async (name) => {
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
  })

  test('JR22: initialize that is wrong is refused, and the old revisions are not lied to about the new one', async () => {
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
    expect(meta).toBeDefined()
  })
})
