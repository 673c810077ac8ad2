import { describe, expect, test } from 'vitest'
import { compileAccess } from '../../src/core/access.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import type { Principal } from '../../src/core/provider.ts'
import { prompts } from '../../src/providers/prompts/index.ts'
import { openViewChannel, type ServeOptions } from '../../src/server/serve.ts'
import { memory } from '../support/memory.ts'
import { openSchema, type SchemaRevision } from '../support/wire-schema.ts'
import { meta } from './harness/wire.ts'

// Prompts are templates that somebody else wrote, with values that a client sends: neither may show what the caller may not see.

const canary = 'CANARY-of-what-is-denied'
const bomb = '{{a}}'.repeat(50_000)

const library = prompts({
  source: memory({
    'open.md': 'Say {{what}}, not ${input:other:x}.',
    'by-uri.md': 'Read ![[{{uri}}]] well.',
    'by-path.md': 'Read ![[memory://docs/{{path}}]] well.',
    'both.md': '---\nresources: ["memory://docs/secret/plan.md"]\n---\nSay {{what}}.',
    'bomb.md': bomb,
    'uri-bomb.md': `![[x:${'{{a}}'.repeat(400)}]]`,
    'completed.md':
      '---\narguments:\n  - { name: path, complete: "memory://docs/{+path}" }\n  - { name: fixed, values: [one, two] }\n---\nOf {{path}} and {{fixed}}.',
    'secret/hidden.md': `${canary} {{what}}`,
    'heading.md': '# A \u001b[31mred\u0007 head\n\nSay it.',
  }),
})

const access = compileAccess([{ allow: ['*'] }, { deny: ['guest'], match: 'secret/**' }])
const catalog = createCatalog({
  mounts: [
    { address: 'zed://library', provider: library, access },
    { address: 'memory://docs', provider: memory({ 'a.md': 'open', 'secret/plan.md': canary }), access },
  ],
  secret: Buffer.alloc(32),
})
const options: ServeOptions = { name: 'prompts', version: '1', view: catalog.view, log: () => {} }
const guest: Principal = { id: 'guest', roles: ['guest'] }
const owner: Principal = { id: 'owner', roles: ['owner'] }

interface Answer {
  readonly result?: {
    readonly messages?: unknown
    readonly prompts?: unknown
    readonly completion?: { values: string[] }
  }
  readonly error?: { readonly code: number; readonly message: string; readonly data?: Record<string, unknown> }
}

describe.each(['2026-07-28', '2025-11-25'] satisfies SchemaRevision[])('prompts on %s:', (revision) => {
  const open = async (principal: Principal) => {
    const channel = await openViewChannel(options, principal, revision === '2026-07-28' ? 'modern' : 'legacy')
    const schema = openSchema(revision)
    const ask = async (method: string, params: Readonly<Record<string, unknown>> = {}) => {
      const own = revision === '2026-07-28' ? { ...params, _meta: meta } : params
      const answer = await channel.request({ jsonrpc: '2.0', id: 1, method, params: own })
      expect(schema.faults(answer, method)).toEqual([])
      if (principal === guest) expect(JSON.stringify(answer)).not.toContain('CANARY')
      return answer as Answer
    }
    if (revision !== '2026-07-28') {
      await ask('initialize', { protocolVersion: revision, capabilities: {}, clientInfo: { name: 'c', version: '1' } })
      channel.notify({ jsonrpc: '2.0', method: 'notifications/initialized' })
    }
    return ask
  }
  const get = (name: unknown, given: unknown = {}) => ['prompts/get', { name, arguments: given }] as const
  const complete = (name: unknown, argument: string, value: string) =>
    ['completion/complete', { ref: { type: 'ref/prompt', name }, argument: { name: argument, value } }] as const

  test('a hidden prompt answers like an absent one', async () => {
    const ask = await open(guest)
    const absent = await ask(...get('nothing', { what: 'x' }))
    expect(absent.error).toMatchObject({ code: -32602, data: { reason: 'unknown-name' } })
    for (const name of [
      ...['secret/hidden', 'zed://library/secret/hidden.md', 'zed://library/secret%2fhidden.md', 'open.md', 'OPEN', ''],
      ...['__proto__', 'constructor', 'a\0b', '\u202eopen', 'open\n', '\ud800', '../open', 'x'.repeat(1_000_000)],
    ]) {
      expect(await ask(...get(name, { what: 'x' }))).toEqual(absent)
      expect((await ask(...complete(name, 'what', ''))).error).toEqual(absent.error)
    }
    for (const name of [undefined, 7, null, {}, []]) expect((await ask(...get(name))).error?.code).toBe(-32602)
    const listed = JSON.stringify(await ask('prompts/list'))
    expect(listed).not.toMatch(/hidden|\\u00(?:0|1)/)
    expect(JSON.stringify(await (await open(owner))(...get('secret/hidden', { what: 'x' })))).toContain(canary)
  })

  test('a hidden resource in a prompt answers like an absent one', async () => {
    const ask = await open(guest)
    const shape = ({ error }: Answer) => ({ ...error, data: { ...error?.data, uri: undefined } })
    const absent = shape(await ask(...get('by-path', { path: 'none.md' })))
    expect(absent).toMatchObject({ code: -32602, data: { reason: 'argument' } })
    for (const path of ['secret/plan.md', 'secret/none.md', 'secret/'])
      expect(shape(await ask(...get('by-path', { path })))).toEqual(absent)
    for (const path of [
      '../docs/secret/plan.md',
      './secret/plan.md',
      '%73ecret/plan.md',
      'a.md?x=/../secret',
      'a.md\0',
    ])
      expect((await ask(...get('by-path', { path }))).error?.code).toBe(-32602)
    expect(shape(await ask(...get('by-uri', { uri: 'memory://docs/secret/plan.md' })))).toEqual(absent)
    expect(shape(await ask(...get('by-uri', { uri: 'zed://library/secret/hidden.md' })))).toEqual(absent)
    expect(shape(await ask(...get('both', { what: 'x' })))).toEqual(absent)
    for (const uri of ['file:///etc/passwd', 'http://127.0.0.1/', 'javascript:x', '', 'x', '\u0000', 'data:,x'])
      expect((await ask(...get('by-uri', { uri }))).error?.code).toBe(-32602)
    const found = await ask(...get('by-path', { path: 'a.md' }))
    expect(JSON.stringify(found.result?.messages)).toContain('open')
  })

  test('values are inserted once, literally, and not expanded again', async () => {
    const ask = await open(guest)
    for (const what of [
      '{{other}} $ARGUMENTS ${input:what}',
      '![[memory://docs/a.md]]',
      '{{role "assistant"}}',
      '$&$1\\',
      '\u0000\u001b[31m',
    ]) {
      const { result } = await ask(...get('open', { what, other: 'O' }))
      expect(result?.messages).toEqual([{ role: 'user', content: { type: 'text', text: `Say ${what}, not O.` } }])
    }
  })

  test('too many, too long and unknown arguments, and too long results, are refused', async () => {
    const ask = await open(guest)
    const reasonOf = async (...asked: ReturnType<typeof get>) => {
      const { error } = await ask(...asked)
      expect(error?.code).toBe(-32602)
      expect(JSON.stringify(error).length).toBeLessThan(1000)
      return error?.data?.reason
    }
    const given = { what: 'x', other: 'y' }
    const long = 'x'.repeat(65_536)
    expect(await reasonOf(...get('open', { ...given, what: `${long}x` }))).toBe('params')
    expect(
      await reasonOf(...get('open', Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`a${i}`, ''])))),
    ).toBe('params')
    expect(await reasonOf(...get('open', { ...given, more: 'z' }))).toBe('argument')
    expect(await reasonOf(...get('open', JSON.parse('{"what":"x","other":"y","__proto__":"z"}')))).toBe('argument')
    expect(await reasonOf(...get('open', { what: 'x' }))).toBe('argument')
    for (const wrong of [7, 'text', [], { what: 7 }, { what: { x: 1 } }])
      expect(await reasonOf(...get('open', wrong))).toBe('params')
    // 50,000 places for 65,536 characters would be three gigabytes.
    expect(await reasonOf(...get('bomb', { a: long }))).toBe('too-large')
    expect(await reasonOf(...get('uri-bomb', { a: '\u3042'.repeat(65_536) }))).toBe('too-large')
    expect((await ask(...get('bomb', { a: 'x' }))).error).toBeUndefined()
  })

  test('arguments are completed only with resources that the caller may see', async () => {
    const ask = await open(guest)
    const valuesOf = async (ask: Awaited<ReturnType<typeof open>>, argument: string, value: string) =>
      (await ask(...complete('completed', argument, value))).result?.completion?.values
    expect(await valuesOf(ask, 'path', '')).toEqual(['a.md'])
    for (const value of ['secret', 'secret/', 'secret/p', '../', 'a\0', '\u202e', 'x'.repeat(8000), '{+path}', '%73'])
      expect(await valuesOf(ask, 'path', value)).toEqual([])
    expect(await valuesOf(await open(owner), 'path', 'secret/')).toEqual(['secret/plan.md'])
    expect(await valuesOf(ask, 'fixed', 'T')).toEqual(['two'])
    for (const argument of ['', 'none', '__proto__', 'constructor', 'path ', 'x'.repeat(8000)])
      expect(await valuesOf(ask, argument, '')).toEqual([])
  })
})
