import { describe, expect } from 'vitest'
import { useArena, wireNames } from '../support/attack-arena.ts'
import type { Params } from '../support/attack-wire.ts'
import { eachWire } from '../support/wires.ts'

const arena = useArena()
const _modernNames = ['stdio 2026-07-28', 'http 2026-07-28'] as const

describe('params', () => {
  eachWire(wireNames)('JR32: a megabyte of wrong params is answered with a short error over %s', async (name) => {
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
  })
})
