import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { compileAccess } from '../../src/core/access.ts'
import { type Catalog, createCatalog } from '../../src/core/catalog.ts'
import type { Principal } from '../../src/core/provider.ts'
import { prompts } from '../../src/providers/prompts/index.ts'
import { remote } from '../../src/providers/remote/index.ts'
import { type HttpService, serveHttp } from '../../src/server/index.ts'
import { redacted } from '../../src/wrap/redacted.ts'
import { fixture } from '../support/mcp-servers.ts'
import { memory } from '../support/memory.ts'
import { allAnswer } from '../support/relayed.ts'

// Servers of the official SDK behind this one, and its official client before it. Each server is a process.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })
const patience = { timeout: 30_000 }

const key = `ghp_${'a1B2c3D4e5'.repeat(4).slice(0, 36)}`
const png = 'iVBORw0KGgo='
const address = 'mcp://there'

const clients: Client[] = []
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close()
})

async function connectTo(url: string | undefined, mode: 'auto' | 'legacy' = 'auto'): Promise<Client> {
  const client = new Client({ name: 'test', version: '0' }, mode === 'auto' ? { versionNegotiation: { mode } } : {})
  clients.push(client)
  await client.connect(new StreamableHTTPClientTransport(new URL(url ?? expect.fail('no service'))))
  return client
}

const people: Readonly<Record<string, Principal>> = {
  owner: { id: 'owner', roles: ['owner'] },
  guest: { id: 'guest', roles: ['guest'] },
  stranger: { id: 'stranger', roles: [] },
}

const access = compileAccess([
  { allow: ['owner', 'guest'] },
  { deny: ['guest'], match: 'notes/secret/**' },
  { deny: ['guest'], match: '=prompts/grow' },
])

describe.each(['sdk124', 'official'])('prompts of a mounted server (%s)', (sdk) => {
  let catalog: Catalog
  const services = new Map<string, HttpService>()
  const logged: string[] = []
  const log = (_: string, message: string) => void logged.push(message)

  beforeAll(async () => {
    const target = fixture('abilities', sdk)
    const own = prompts({ source: memory({ 'weather.md': 'Ours.' }) })
    catalog = createCatalog({
      mounts: [
        { address: 'zzz://own', provider: own },
        { address, provider: remote({ target, address, log, refreshMs: 60_000 }), access },
        { address: 'mcp://veiled', provider: redacted(remote({ target, address: 'mcp://veiled', log })), access },
      ],
      changes: { listIntervalMs: 20 },
      log,
    })
    for (const [who, principal] of Object.entries(people)) {
      const options = { name: 'test', version: '0', log, host: '127.0.0.1', port: 0 }
      services.set(who, await serveHttp({ ...options, view: () => catalog.view(principal) }))
    }
    await allAnswer(catalog)
  })
  afterAll(async () => {
    for (const service of services.values()) await service.close()
    await catalog.close()
  })
  const open = (who: string, mode: 'auto' | 'legacy' = 'auto') => connectTo(services.get(who)?.url, mode)

  test('are listed with title, description and arguments, and with the name of the mount as a prefix where a name is taken', async () => {
    const { prompts: listed } = await (await open('owner')).listPrompts()
    const names = listed.map(({ name }) => name)
    expect(names).toEqual(
      expect.arrayContaining(['weather', 'there_weather', 'veiled_weather', 'media', 'veiled_media']),
    )
    expect(new Set(names).size).toBe(names.length)
    expect(listed.find(({ name }) => name === 'there_weather')).toMatchObject({
      title: 'The weather',
      description: 'Asks for the weather.',
      arguments: expect.arrayContaining([
        expect.objectContaining({
          ...{ name: 'city', required: true },
          // This version of the SDK does not find the description in a newer zod.
          ...(sdk === 'sdk124' ? {} : { description: 'Which city' }),
        }),
      ]),
    })
    expect(listed.find(({ name }) => name === 'media')?.description).toContain(key)
    expect(listed.find(({ name }) => name === 'veiled_media')?.description).toBe('The key is [redacted].')
  })

  test.each(['auto', 'legacy'] as const)(
    'are filled in, with arguments checked and completed (client mode: %s)',
    async (mode) => {
      const client = await open('owner', mode)
      expect(await client.getPrompt({ name: 'there_weather', arguments: { city: 'Oslo' } })).toMatchObject({
        description: 'The weather in Oslo',
        messages: [
          { role: 'user', content: { type: 'text', text: 'How is the weather in Oslo?' } },
          { role: 'assistant', content: { type: 'text', text: 'I will look.' } },
        ],
      })
      const ours = await client.getPrompt({ name: 'weather' })
      expect(ours.messages).toMatchObject([{ content: { type: 'text', text: 'Ours.' } }])
      await expect(client.getPrompt({ name: 'there_weather' })).rejects.toThrow('The argument "city" is missing.')
      await expect(client.getPrompt({ name: 'there_weather', arguments: { city: 'x', no: '' } })).rejects.toThrow(
        /does not have/,
      )
      const ref = { type: 'ref/prompt', name: 'there_weather' } as const
      const context = { arguments: { country: 'no' } }
      const { completion } = await client.complete({ ref, argument: { name: 'city', value: 'Os' }, context })
      expect(completion.values).toEqual(['Osaka', 'Oslo', 'country=no'])
    },
  )

  test('keep images, sounds, resources and links, at addresses that the client can read', async () => {
    const client = await open('owner')
    const { messages } = await client.getPrompt({ name: 'media' })
    expect(messages.map(({ content }) => content)).toMatchObject([
      { type: 'image', data: png, mimeType: 'image/png' },
      { type: 'audio', data: png, mimeType: 'audio/wav' },
      { type: 'resource', resource: { uri: `${address}/notes/open/a.md`, text: `# A ${key}\n` } },
      { type: 'resource', resource: { uri: `${address}/notes/open/a.bin`, blob: png } },
      { type: 'resource_link', uri: `${address}/notes/open/b.md`, name: 'The link' },
    ])
    const { contents } = await client.readResource({ uri: `${address}/notes/open/a.md` })
    expect(contents).toMatchObject([{ text: 'A' }])
    const masked = JSON.stringify(await client.getPrompt({ name: 'veiled_media' }))
    expect(masked).toContain('# A [redacted]')
    expect(masked).not.toContain(key)
  })

  test('follow the access rules of the mount: a denied prompt is absent, and a prompt that includes a denied resource is refused', async () => {
    const [owner, guest] = [await open('owner'), await open('guest')]
    const stranger = await open('stranger')
    expect((await stranger.listPrompts()).prompts.map(({ name }) => name)).toEqual(['weather'])
    const names = (await guest.listPrompts()).prompts.map(({ name }) => name)
    expect(names).toContain('media')
    expect(names).not.toContain('grow')
    const failureOf = (work: Promise<unknown>) =>
      work.then(
        () => 'no failure',
        (error: Error) => error.message,
      )
    const absent = await failureOf(guest.getPrompt({ name: 'no-such-prompt' }))
    expect(await failureOf(guest.getPrompt({ name: 'grow' }))).toBe(absent)
    expect(await failureOf(stranger.getPrompt({ name: 'media' }))).toBe(absent)
    expect(await failureOf(guest.getPrompt({ name: `${address}/%3Dprompts/grow` }))).toBe(absent)
    const ref = { type: 'ref/prompt', name: 'there_weather' } as const
    expect(await failureOf(stranger.complete({ ref, argument: { name: 'city', value: '' } }))).toBe(absent)
    for (const name of ['secret-note', 'secret-link']) {
      expect(JSON.stringify(await owner.getPrompt({ name }))).toContain('CANARY')
      const said = await failureOf(guest.getPrompt({ name }))
      expect(said).toContain('A resource that this prompt includes does not exist.')
      expect(said).not.toContain('CANARY')
    }
  })

  test('do not pass on the error text of the server, and are available again after the server has died', async () => {
    const client = await open('owner')
    const said = await client.getPrompt({ name: 'broken' }).then(
      () => 'no failure',
      (error: unknown) => JSON.stringify(error),
    )
    expect(said).not.toContain('CANARY')
    await expect(client.getPrompt({ name: 'die' })).rejects.toThrow()
    await expect
      .poll(
        () => client.getPrompt({ name: 'there_weather', arguments: { city: 'Oslo' } }).catch(() => 'not yet'),
        patience,
      )
      .toMatchObject({ description: 'The weather in Oslo' })
  })

  test('send a notification when they change, to callers that may see them only', async () => {
    const heard = new Map<string, string[]>()
    for (const who of ['owner', 'stranger']) {
      const client = await open(who)
      const own: string[] = []
      heard.set(who, own)
      client.fallbackNotificationHandler = async ({ method }) => void own.push(method)
      await client.listen({ promptsListChanged: true, resourcesListChanged: true })
    }
    const owner = await open('owner')
    await owner.getPrompt({ name: 'grow' })
    await expect
      .poll(async () => (await owner.listPrompts()).prompts.map(({ name }) => name), patience)
      .toContain('grown')
    await expect.poll(() => heard.get('owner'), patience).toContain('notifications/prompts/list_changed')
    expect(heard.get('stranger')).toEqual([])
    expect(await owner.getPrompt({ name: 'grown' })).toMatchObject({ messages: [{ content: { text: 'grown' } }] })
  })
})

test('prompts of a mounted server are absent if the mount leaves them out, or the server has none', async () => {
  const off = remote({ target: fixture('abilities', 'sdk124'), prompts: false })
  expect(off.prompts).toBeUndefined()
  const bare = remote({ target: fixture('varied', 'sdk112') })
  const context = { principal: { id: 'ada', roles: [] }, signal: new AbortController().signal }
  expect(await bare.prompts?.list(context)).toEqual([])
  await Promise.all([off.close?.(), bare.close?.()])
})
