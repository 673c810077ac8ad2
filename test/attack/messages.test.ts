import { describe, expect } from 'vitest'
import { useArena, wireNames } from './harness/arena.ts'
import { messagesOf } from './harness/messages.ts'
import { type Params, withMeta } from './harness/wire.ts'
import { eachWire } from './harness/wires.ts'

const arena = useArena()
const { control, idOf, requestOf, tell, without } = messagesOf(arena)

describe('hostile messages:', () => {
  eachWire(wireNames)('a message without "jsonrpc": "2.0" is refused over %s (JR07)', async (name) => {
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

  eachWire(wireNames)('an unknown or misspelt method is refused over %s (JR08)', async (name) => {
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

  eachWire(wireNames)(
    'params that are not an object, or whose uri is not a string, are refused over %s (JR09)',
    async (name) => {
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
    },
  )

  eachWire(wireNames)(
    'an id that is neither a string nor an integer is refused, and a valid one is returned unchanged, over %s (JR06)',
    async (name) => {
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
    },
  )

  eachWire(wireNames)('members with names such as __proto__ are ignored or refused over %s (JR03)', async (name) => {
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

  eachWire(wireNames)(
    'a lone surrogate anywhere in a request is repeated in no answer over %s (JR13)',
    async (name) => {
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
        ['skills/get', { uri: bad }],
        ['skills/list', { cursor: bad }],
      ]
      for (const [method, params] of asked) {
        const { raw } = await arena.ask(wire, method, params)
        expect(raw.toString()).not.toMatch(/\\ud800/i)
      }
    },
  )
})

describe('hostile params:', () => {
  eachWire(wireNames)(
    'wrong params of 600,000 characters or 20,000 members get a short error over %s (JR32)',
    async (name) => {
      const wire = arena.wire(name)
      const long = 'y'.repeat(600_000)
      const nested = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`k${i}`, i]))
      const asked: readonly (readonly [string, Params])[] = [
        ['resources/list', { cursor: long }],
        ['resources/list', { cursor: nested }],
        ['resources/templates/list', { cursor: long }],
        ['resources/directory/read', { uri: long }],
        ['skills/get', { uri: long }],
        ['skills/get', { uri: nested }],
        ['skills/list', { cursor: long }],
        ['skills/list', { cursor: nested }],
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
    },
  )
})
