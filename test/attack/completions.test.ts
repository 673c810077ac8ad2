import { describe, expect, test } from 'vitest'
import { env } from '../../src/providers/env/index.ts'
import { volumeOf } from '../support/volume.ts'
import { useArena, wireNames } from './harness/arena.ts'
import { expectOutcome } from './harness/oracles.ts'
import { type Params, patience, type Wire } from './harness/wire.ts'
import { eachWire } from './harness/wires.ts'
import { manyFiles } from './harness/world.ts'

const arena = useArena({}, undefined, { filesInMany: manyFiles })

const complete = (wire: Wire, uri: string, value: string, name = 'path', more: Params = {}) =>
  arena.ask(wire, 'completion/complete', { ref: { type: 'ref/resource', uri }, argument: { name, value }, ...more })

describe('values of URI templates', () => {
  eachWire(wireNames)('are decoded once, and checked like every path, over %s (TM03)', async (name) => {
    const wire = arena.wire(name)
    // What a client makes of `{+path}`, and of `{path}`, where the value is what is here.
    const values: readonly (readonly [string, 'NF' | 'BAD', 'NF' | 'BAD'])[] = [
      ['../secret', 'BAD', 'BAD'],
      ['dir/../../secret', 'BAD', 'BAD'],
      ['a\0.txt', 'BAD', 'BAD'],
      ['a\n.txt', 'BAD', 'BAD'],
      ['dir//f', 'BAD', 'BAD'],
      ['a.txt#f', 'BAD', 'NF'],
      ['a.txt?x=1', 'BAD', 'NF'],
      ['%2e%2e/secret', 'BAD', 'BAD'],
      ['%252e%252e', 'NF', 'NF'],
      ['.env', 'NF', 'NF'],
      ['\\secret', 'BAD', 'NF'],
      ['none', 'NF', 'NF'],
    ]
    for (const [value, reserved, plain] of values) {
      for (const [expanded, expected] of [
        [value, reserved],
        [encodeURIComponent(value), plain],
      ] as const) {
        const uri = `${arena.world.address}/${expanded}`
        expectOutcome(wire, await arena.read(wire, uri), expected, uri)
      }
    }
  })

  eachWire(wireNames)('do not bypass an access rule, with or without a query, over %s (TM06)', async (name) => {
    const wire = arena.wire(name)
    for (const path of ['denied.txt', 'denied/in.txt', 'server.key']) {
      const uri = `rule://guarded/${path}`
      expectOutcome(wire, await arena.read(wire, uri), 'NF', uri)
      for (const query of ['?lines=1-1', '?bytes=0-1', '?path=open.txt', '?x'])
        expect((await arena.read(wire, `${uri}${query}`)).message?.result).toBeUndefined()
    }
  })
})

describe('completions', () => {
  eachWire(wireNames)(
    'offer no value for a text that looks like a pattern, or refuse the text, over %s (TM12)',
    async (name) => {
      const wire = arena.wire(name)
      const bombs = [
        '(a+)+$',
        '(.*)*x',
        '[a-z]',
        '*'.repeat(5000),
        '(x|x)*'.repeat(1000),
        '%_'.repeat(3000),
        'a'.repeat(8000),
      ]
      for (const value of bombs) {
        const { message } = await complete(wire, `${arena.world.address}/{+path}`, value)
        expect(message?.result?.completion ?? message?.error?.code, value.slice(0, 20)).toSatisfy(
          (seen) => seen === -32602 || (seen as { values: readonly string[] }).values.length === 0,
        )
      }
    },
  )

  test('of an env mount offer only names of environment variables, and never their values (TM13)', async () => {
    const planted = arena.world.environment.API_TOKEN ?? ''
    const provider = env({ environment: { ...arena.world.environment }, allow: ['LANG'] })
    const context = { principal: { id: 'a', roles: [] }, signal: new AbortController().signal }
    for (let length = 0; length <= planted.length; length++)
      for (const value of [planted.slice(0, length), `API_TOKEN=${planted.slice(0, length)}`]) {
        const found = await provider.complete?.(
          { template: '{name}', argument: { name: 'name', value }, arguments: new Map() },
          context,
        )
        for (const completed of found?.values ?? []) expect(Object.keys(arena.world.environment)).toContain(completed)
        expect(JSON.stringify(found ?? {})).not.toContain(planted)
      }
    const names: string[] = []
    for await (const { path } of provider.list({}, context)) names.push(path)
    expect(names).toContain('API_TOKEN')
  })

  eachWire(wireNames)('are answered or refused when hundreds are requested at once over %s (TM14)', async (name) => {
    const wire = arena.wire(name)
    const values = Array.from({ length: volumeOf(1000, 200) }, (_, i) => `many/f${String(i).padStart(4, '0')}`)
    const answers = await Promise.all(
      values.map((value) =>
        wire.call(
          'completion/complete',
          {
            ref: { type: 'ref/resource', uri: `${arena.world.address}/{+path}` },
            argument: { name: 'path', value },
          },
          { within: 3 * patience },
        ),
      ),
    )
    for (const [i, { message }] of answers.entries()) {
      if (message?.error !== undefined) expect([-32600, -32603]).toContain(message.error.code)
      else expect(message?.result?.completion).toMatchObject({ values: [values[i]] })
    }
  })
})
