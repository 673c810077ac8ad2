import * as fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { isResourceError } from '../../src/core/errors.ts'
import { compileTemplate } from '../../src/core/template.ts'
import { announceSeed, hold, json, placed, tail, uri } from './harness/arbitraries.ts'
import { isStdio, type StdioWire, useArena, wireNames } from './harness/arena.ts'
import { jsonHeaders, modernHeaders, send, sessionHeaders } from './harness/http.ts'
import { type Message, type Params, type Wire, withMeta } from './harness/wire.ts'
import { eachWire } from './harness/wires.ts'

const arena = useArena({ many: 1000, pages: { first: 50 } })
afterAll(announceSeed)

/** That a URI names the same thing as another: both are read, or neither is, with the same text. */
async function textOf(wire: Wire, at: string): Promise<unknown> {
  const { message } = await arena.read(wire, at)
  return message?.result?.contents ?? message?.error?.code
}

describe('the answer is valid JSON-RPC without secrets for', () => {
  eachWire(wireNames)('random URIs, over %s', async (name) => {
    const wire = arena.wire(name)
    await hold(
      'uris',
      fc.asyncProperty(uri, fc.constantFrom('resources/read', 'resources/directory/read'), async (made, method) => {
        const at = placed(made, arena.world.address)
        // A source that hangs is not what is looked for here.
        fc.pre(!at.includes('slow://'))
        const { message, raw } = await arena.ask(wire, method, { uri: at })
        if (message?.error !== undefined) expect([-32602, -32002, -32020], raw.toString()).toContain(message.error.code)
        expect(arena.world.canaries.leaks).toEqual([])
      }),
      400,
    )
  })

  test('paths with random percent-encoding, and is the same as for their usual spelling', async () => {
    const wire = arena.wire('stdio 2026-07-28')
    const encodeSome = (text: string, mask: readonly boolean[]) =>
      [...text]
        .map((c, i) =>
          mask[i % mask.length] && !'/?'.includes(c)
            ? [...Buffer.from(c)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')
            : c,
        )
        .join('')
    const paths = [
      ...arena.world.files.keys(),
      '.env',
      'id_rsa',
      'dir/.env',
      'none',
      'link-absolute',
      'dir',
      '.git/config',
      'server.key',
    ]
    const own = (path: string) => path.split('/').map(encodeURIComponent).join('/')
    await hold(
      'spellings',
      fc.asyncProperty(
        fc.constantFrom(...paths),
        fc.array(fc.boolean(), { minLength: 1, maxLength: 12 }),
        async (path, mask) => {
          const spelled = `${arena.world.address}/${encodeSome(
            path,
            [...mask, true].map((on, i) => on || /[\\%#?]/.test([...path][i] ?? '')),
          )}`
          fc.pre(!/[\\#?]|%(?![0-9a-f]{2})/i.test(spelled.slice(arena.world.address.length)))
          const canonical = await textOf(wire, `${arena.world.address}/${own(path)}`)
          // A percent sign that was left as it is makes another name.
          fc.pre(!path.includes('%'))
          const seen = await textOf(wire, spelled)
          const strip = (value: unknown) =>
            JSON.stringify(value, (key, member: unknown) => (key === 'uri' ? undefined : member))
          expect(strip(seen), spelled).toBe(strip(canonical))
        },
      ),
      400,
    )
  })

  eachWire(wireNames)('random cursors, which are refused, over %s', async (name) => {
    const wire = arena.wire(name)
    const { message } = await arena.ask(wire, 'resources/list')
    const honest = message?.result?.nextCursor as string
    const mutated = fc
      .tuple(
        fc.nat(honest.length - 1),
        fc.constantFrom(...'ABCxyz019-_+/= %'),
        fc.constantFrom('replace', 'insert', 'delete', 'swap'),
      )
      .map(([at, letter, how]) => {
        if (how === 'delete') return honest.slice(0, at) + honest.slice(at + 1)
        if (how === 'insert') return honest.slice(0, at) + letter + honest.slice(at)
        if (how === 'swap') return honest.slice(at) + honest.slice(0, at)
        return honest.slice(0, at) + letter + honest.slice(at + 1)
      })
    const cursor = fc.oneof(
      mutated,
      mutated,
      fc.string({ unit: 'binary', maxLength: 100 }),
      fc.base64String({ maxLength: 200 }),
      json,
    )
    await hold(
      'cursors',
      fc.asyncProperty(
        cursor,
        fc.constantFrom('resources/list', 'resources/templates/list', 'resources/directory/read'),
        async (value, method) => {
          // null is absent.
          fc.pre(value !== honest && value !== null)
          const params =
            method === 'resources/directory/read' ? { uri: 'mem://many', cursor: value } : { cursor: value }
          const answer = await arena.ask(wire, method, params)
          expect(answer.message?.error?.code, JSON.stringify(value)).toBe(-32602)
        },
      ),
      300,
    )
  })

  eachWire(wireNames)('random completions, over %s', async (name) => {
    const wire = arena.wire(name)
    const ref = fc.oneof(
      {
        weight: 3,
        arbitrary: fc
          .constantFrom('{root}/{+path}', 'rule://guarded/{+path}')
          .map((template) => ({ type: 'ref/resource', uri: template })),
      },
      { weight: 1, arbitrary: tail.map((text) => ({ type: 'ref/resource', uri: text })) },
      { weight: 1, arbitrary: json },
    )
    const argument = fc.oneof(
      { weight: 3, arbitrary: tail.map((value) => ({ name: 'path', value })) },
      {
        weight: 1,
        arbitrary: fc.tuple(fc.string(), tail).map(([argumentName, value]) => ({ name: argumentName, value })),
      },
      { weight: 1, arbitrary: json },
    )
    const context = fc.option(
      fc.oneof(fc.record({ arguments: fc.dictionary(fc.string(), tail) }), fc.record({ arguments: json }), json),
      { nil: undefined },
    )
    await hold(
      'completions',
      fc.asyncProperty(ref, argument, context, async (made, given, more) => {
        const params: Params = {
          ref: JSON.parse(placed(JSON.stringify(made), arena.world.address)),
          argument: given,
          ...(more === undefined ? {} : { context: more }),
        }
        const { message, raw } = await arena.ask(wire, 'completion/complete', params)
        if (message?.error !== undefined) expect(message.error.code, raw.toString()).toBe(-32602)
        else {
          const { values = [] } = (message?.result?.completion ?? {}) as { readonly values?: readonly string[] }
          expect(values.length).toBeLessThanOrEqual(100)
          for (const value of values) expect(value).not.toMatch(/(?:^|\/)(?:\.env|id_rsa|\.git|denied)/)
        }
        expect(arena.world.canaries.leaks).toEqual([])
      }),
      300,
    )
  })

  eachWire(wireNames)('random messages, over %s', async (name) => {
    const wire = arena.wire(name)
    const method = fc.oneof(
      fc.constantFrom(
        'resources/read',
        'resources/list',
        'resources/templates/list',
        'completion/complete',
        'ping',
        'server/discover',
        'tools/list',
        'prompts/list',
        'prompts/get',
        'tools/call',
        'logging/setLevel',
        'resources/subscribe',
        'resources/unsubscribe',
        'resources/directory/read',
      ),
      fc.string(),
    )
    const params = fc.oneof(
      json,
      fc.record(
        { uri: fc.oneof(tail, json), cursor: json, _meta: json, name: json, inputResponses: json, requestState: json },
        { requiredKeys: [] },
      ),
      fc.record({
        _meta: fc.dictionary(
          fc.constantFrom(
            'progressToken',
            'io.modelcontextprotocol/related-task',
            'io.modelcontextprotocol/logLevel',
            'io.modelcontextprotocol/subscriptionId',
            'traceparent',
            'io.modelcontextprotocol/clientInfo',
          ),
          json,
        ),
      }),
    )
    let next = 0
    await hold(
      'messages',
      fc.asyncProperty(method, params, async (called, given) => {
        const id = `any-${next++}`
        const own = typeof given === 'object' && given !== null && !Array.isArray(given) ? (given as Params) : undefined
        const full = own === undefined || !wire.modern ? given : withMeta(own, true)
        const body = JSON.stringify({ jsonrpc: '2.0', id, method: called, params: full })
        if (isStdio(wire)) {
          await wire.pipe.write(`${body}\n`)
          const { message } = await wire.pipe.answerTo(id)
          expect('result' in (message ?? {}) !== 'error' in (message ?? {})).toBe(true)
        } else {
          const named = typeof own?.uri === 'string' ? own : {}
          const base = wire.modern ? modernHeaders(called, named) : { ...jsonHeaders, ...sessionHeaders(wire) }
          const { message, status } = await send(wire.target, arena.world, { headers: base, body })
          expect(message?.id === id || message?.id === null).toBe(true)
          expect([200, 400, 404]).toContain(status)
        }
      }),
      400,
    )
  })

  test('random subscriptions over stdio 2026-07-28', async () => {
    const wire = arena.wire('stdio 2026-07-28') as StdioWire
    const filter = fc.record(
      {
        resourceSubscriptions: fc.oneof(fc.array(uri, { maxLength: 5 }), fc.array(json, { maxLength: 3 }), json),
        resourcesListChanged: fc.oneof(fc.boolean(), json),
        toolsListChanged: json,
      },
      { requiredKeys: [] },
    )
    let next = 0
    await hold(
      'filters',
      fc.asyncProperty(fc.oneof({ weight: 4, arbitrary: filter }, { weight: 1, arbitrary: json }), async (made) => {
        const id = `listen-${next++}`
        const notifications = JSON.parse(placed(JSON.stringify(made), arena.world.address)) as unknown
        const acknowledged = new Promise<Message>((resolve) => {
          const untap = wire.pipe.tap((message) => {
            const { 'io.modelcontextprotocol/subscriptionId': of } = (message.params?._meta ?? {}) as Params
            if (of === id) {
              untap()
              resolve(message)
            }
          })
        })
        const answered = wire.pipe.answerTo(id).then(({ message }) => message)
        answered.catch(() => {})
        const params = withMeta({ notifications }, true)
        await wire.pipe.write(`${JSON.stringify({ jsonrpc: '2.0', id, method: 'subscriptions/listen', params })}\n`)
        const first = await Promise.race([acknowledged, answered])
        if (first?.method === undefined) expect(first?.error?.code).toBe(-32602)
        else {
          expect(first.method).toBe('notifications/subscriptions/acknowledged')
          expect(JSON.stringify(first.params)).not.toMatch(/denied|\.env|id_rsa/)
        }
        await wire.notify('notifications/cancelled', { requestId: id })
      }),
      200,
    )
  })
})

describe('random templates', () => {
  const expression = fc
    .tuple(
      fc.constantFrom('', '+', '#', '.', '/', ';', '?', '&', '=', '!'),
      fc.array(
        fc.tuple(fc.constantFrom('a', 'b', 'c', 'a.b', '', '%61', 'é'), fc.constantFrom('', '*', ':3', ':0', '**')),
      ),
    )
    .map(([operator, names]) => `{${operator}${names.map((name) => name.join('')).join(',')}}`)
  const template = fc.array(fc.oneof(expression, expression, tail), { maxLength: 6 }).map((parts) => parts.join(''))

  test('are refused as malformed, or matched and expanded without an internal error', async () => {
    await hold(
      'templates',
      fc.asyncProperty(
        template,
        tail,
        fc.dictionary(fc.constantFrom('a', 'b', 'c', 'a.b'), tail),
        async (text, at, values) => {
          const compiled = attempt(() => compileTemplate(text))
          if (compiled === undefined) return
          const matched = compiled.match(at)
          for (const value of [...(matched?.values() ?? [])].flat()) expect(String(value).isWellFormed()).toBe(true)
          const expanded = attempt(() => compiled.expand(values))
          // What it makes of values it can read again, if not as the same values.
          if (expanded !== undefined) compiled.match(expanded)
        },
      ),
      2000,
    )
  })

  /** `undefined` where it is refused in the words for that. */
  function attempt<T>(act: () => T): T | undefined {
    try {
      return act()
    } catch (error) {
      expect(isResourceError(error, 'invalid'), String(error)).toBe(true)
      return undefined
    }
  }
})
