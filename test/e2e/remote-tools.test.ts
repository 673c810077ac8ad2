import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { compileAccess } from '../../src/core/access.ts'
import { remote } from '../../src/providers/remote/index.ts'
import type { AuditRecord } from '../../src/server/index.ts'
import { redacted } from '../../src/wrap/redacted.ts'
import { fixture } from '../support/mcp-servers.ts'
import { allAnswer, type Relayed, serveRelayed } from '../support/relayed.ts'

// Servers of the official SDK behind this one, and its official client before it. Each server is a process.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })
const patience = { timeout: 30_000 }

const key = `ghp_${'a1B2c3D4e5'.repeat(4).slice(0, 36)}`
const png = 'iVBORw0KGgo='
const address = 'mcp://there'

const access = compileAccess([
  { allow: ['owner', 'guest'] },
  { deny: ['guest'], match: 'notes/secret/**' },
  { deny: ['guest'], match: '=tools/wipe' },
  { deny: ['guest'], match: '=tools/grow' },
])

const textOf = (result: unknown) => {
  const { content } = result as { readonly content: readonly { readonly text?: string }[] }
  return content.map(({ text = '' }) => text).join('\n')
}
const failureOf = (work: Promise<unknown>) =>
  work.then(
    () => 'no failure',
    (error: Error) => error.message,
  )

describe.each(['sdk124', 'official'])('tools of a mounted server (%s)', (sdk) => {
  let relayed: Relayed
  const records: AuditRecord[] = []
  beforeAll(async () => {
    const target = fixture('abilities', sdk)
    const options = { target, refreshMs: 60_000, tools: true }
    relayed = await serveRelayed(
      (log) => [
        { address, provider: remote({ ...options, address, log }), access },
        {
          address: 'mcp://veiled',
          provider: redacted(remote({ ...options, address: 'mcp://veiled', log })),
          access,
        },
      ],
      { audit: (record) => void records.push(record) },
    )
    await allAnswer(relayed.catalog)
  })
  afterEach(() => relayed.closeClients())
  afterAll(() => relayed.close())

  test('are listed with schema and annotations, under names that differ from each other and from the tools of hikidashi', async () => {
    const { tools } = await (await relayed.connect('owner')).listTools()
    const names = tools.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
    expect(names).toEqual(
      expect.arrayContaining(['add', 'veiled_add', 'there_read_resource', 'veiled_search_resources', 'odd_name__']),
    )
    for (const own of ['read_resource', 'search_resources', 'list_resources']) expect(names).not.toContain(own)
    const add = tools.find(({ name }) => name === 'add')
    expect(add).toMatchObject({
      title: 'Add',
      inputSchema: { type: 'object', required: ['a', 'b'], properties: { a: { type: 'number' } } },
      outputSchema: { type: 'object', properties: { sum: { type: 'number' } } },
      annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
    })
    expect(add?.description).toContain(key)
    expect(tools.find(({ name }) => name === 'veiled_add')?.description).toBe(
      'Adds two numbers. The key is [redacted].',
    )
  })

  test.each(['auto', 'legacy'] as const)(
    'are called, and their answers are passed on (client mode: %s)',
    async (mode) => {
      const client = await relayed.connect('owner', mode)
      await client.listTools()
      expect(await client.callTool({ name: 'add', arguments: { a: 1, b: 2 } })).toMatchObject({
        content: [{ type: 'text', text: '{"sum":3}' }],
        structuredContent: { sum: 3 },
      })
      expect(textOf(await client.callTool({ name: 'there_read_resource' }))).toBe('theirs: read_resource')
      expect(textOf(await client.callTool({ name: 'odd_name__' }))).toBe('theirs: odd/name é')
      const failed = await client.callTool({ name: 'fail' })
      expect(failed).toMatchObject({ isError: true, content: [{ text: `It failed with ${key}` }] })
      expect(textOf(await client.callTool({ name: 'veiled_fail' }))).toBe('It failed with [redacted]')
      const refused = await client.callTool({ name: 'add', arguments: { a: 'one' } })
      expect(refused.isError).toBe(true)
      expect(textOf(refused)).toMatch(/\bb\b/)
      expect(records).toEqual(
        expect.arrayContaining([
          expect.objectContaining({ verb: 'call', uri: 'add', outcome: 'ok' }),
          expect.objectContaining({ verb: 'call', uri: 'fail', outcome: 'failed' }),
        ]),
      )
    },
  )

  test('follow the access rules of the mount: a denied tool is absent, and denied parts of a result are too', async () => {
    const [owner, guest] = [await relayed.connect('owner'), await relayed.connect('guest')]
    const stranger = await relayed.connect('stranger')
    expect((await stranger.listTools()).tools).toEqual([])
    const names = (await guest.listTools()).tools.map(({ name }) => name)
    expect(names).toContain('add')
    expect(names).not.toContain('wipe')
    const absent = await failureOf(guest.callTool({ name: 'no-such-tool' }))
    expect(await failureOf(guest.callTool({ name: 'wipe' }))).toBe(absent)
    expect(textOf(await owner.callTool({ name: 'wipe' }))).toBe('wiped')
    const whole = await owner.callTool({ name: 'media' })
    expect(whole.content).toMatchObject([
      { type: 'image', data: png, mimeType: 'image/png' },
      { type: 'audio', data: png, mimeType: 'audio/wav' },
      { type: 'resource', resource: { uri: `${address}/notes/open/a.md`, text: '# A\n' } },
      { type: 'resource', resource: { uri: `${address}/notes/secret/plan.md`, text: 'CANARY' } },
      { type: 'resource_link', uri: `${address}/notes/secret/plan.md` },
      { type: 'resource_link', uri: `${address}/notes/open/b.md`, name: 'The link' },
    ])
    const part = await guest.callTool({ name: 'media' })
    expect(part.content).toHaveLength(4)
    expect(JSON.stringify(part)).not.toMatch(/CANARY|secret/)
  })

  test('report progress to the client, and are cancelled at the server when the client cancels the call', async () => {
    const client = await relayed.connect('owner')
    const heard: unknown[] = []
    const options = { onprogress: (progress: unknown) => void heard.push(progress) }
    await client.callTool({ name: 'veiled_wait', arguments: { steps: 3 } }, options)
    expect(heard.slice(0, 1)).toMatchObject([{ progress: expect.any(Number), message: 'step 1 with [redacted]' }])
    const numbers = heard.map((one) => (one as { readonly progress: number }).progress)
    expect(numbers).toEqual([...numbers].sort((a, b) => a - b))
    const before = Number(textOf(await client.callTool({ name: 'cancelled' })))
    const controller = new AbortController()
    const waiting = client.callTool({ name: 'wait', arguments: { steps: 0 } }, { signal: controller.signal })
    const ended = failureOf(waiting)
    await client.callTool({ name: 'add', arguments: { a: 1, b: 1 } })
    controller.abort('enough')
    expect(await ended).toContain('enough')
    const count = async () => Number(textOf(await client.callTool({ name: 'cancelled' })))
    await expect.poll(count, patience).toBeGreaterThan(before)
  })

  test('give an error that they may or may not have run if the server dies during a call, and can be called again after its restart', async () => {
    const client = await relayed.connect('owner')
    const died = await client.callTool({ name: 'die' })
    expect(died.isError).toBe(true)
    expect(textOf(died)).toContain('The tool may or may not have run')
    const add = async () => textOf(await client.callTool({ name: 'add', arguments: { a: 2, b: 2 } }))
    await expect.poll(add, patience).toBe('{"sum":4}')
  })

  test('send a notification when they change, to callers that may see them only', async () => {
    const heard = new Map<string, string[]>()
    for (const who of ['owner', 'guest', 'stranger']) {
      const client = await relayed.connect(who)
      const own: string[] = []
      heard.set(who, own)
      client.fallbackNotificationHandler = async ({ method }) => void own.push(method)
      await client.listen({ toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true })
    }
    const owner = await relayed.connect('owner')
    await owner.callTool({ name: 'grow' })
    const names = async () => (await owner.listTools()).tools.map(({ name }) => name)
    await expect.poll(names, patience).toContain('grown')
    await expect.poll(() => heard.get('owner'), patience).toContain('notifications/tools/list_changed')
    await expect.poll(() => heard.get('guest'), patience).toContain('notifications/tools/list_changed')
    expect(heard.get('stranger')).toEqual([])
    expect(textOf(await owner.callTool({ name: 'grown' }))).toBe('grown')
  })
})

test('tools of a mounted server are absent unless the mount configures them', () => {
  expect(remote({ target: fixture('abilities', 'sdk124') }).tools).toBeUndefined()
})
