import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { createMcpHandler, McpServer, Server } from '@modelcontextprotocol/server'
import { Client as ClientV1 } from 'sdk124/client/index.js'
import { InMemoryTransport } from 'sdk124/inMemory.js'
import { Server as ServerV1 } from 'sdk124/server/index.js'
import { McpServer as McpServerV1, ResourceTemplate as ResourceTemplateV1 } from 'sdk124/server/mcp.js'
import { ListResourcesRequestSchema } from 'sdk124/types.js'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createCatalog } from '../../src/core/catalog.ts'
import { createScrubber } from '../../src/core/scrub.ts'
import { type Attached, attach } from '../../src/sdk/index.ts'
import { live } from '../support/live.ts'
import { memory } from '../support/memory.ts'

const attached: Attached[] = []
const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of [...open.splice(0), ...attached.splice(0)]) await one.close()
})
const keep = (one: Attached) => void attached.push(one)

const entries = { 'a.md': 'the text', 'dir/b.md': 'more', secret: 'hidden' }
const viewFor = (roles: readonly string[] = [], provider = memory(entries)) =>
  createCatalog({
    mounts: [
      {
        address: 'docs://manual',
        provider,
        access: (principal, path) => path !== 'secret' || principal.roles.includes('all'),
      },
    ],
  }).view({ id: 'ada', roles })

async function connectV1(server: { connect(transport: InMemoryTransport): Promise<void> }): Promise<ClientV1> {
  const [near, far] = InMemoryTransport.createLinkedPair()
  const client = new ClientV1({ name: 'c', version: '1' })
  await Promise.all([server.connect(far), client.connect(near)])
  open.push(client)
  return client
}

describe('attached to an McpServer of version 1, a view', () => {
  const info = { name: 'shop', version: '1' }

  function shop(): McpServerV1 {
    const server = new McpServerV1(info)
    server.registerResource('own', 'shop://own', { title: 'Own' }, async (uri) => ({
      contents: [{ uri: uri.href, text: 'own text' }],
    }))
    server.registerTool('sell', { description: 'Sells.', inputSchema: { what: z.string() } }, async ({ what }) => ({
      content: [{ type: 'text', text: `sold ${what}` }],
    }))
    return server
  }

  test('is listed, read and completed beside the resources of the server', async () => {
    const server = shop()
    keep(attach(server, viewFor()))
    // What comes after it is served as well.
    server.registerResource('late', 'shop://late', {}, async (uri) => ({ contents: [{ uri: uri.href, text: 'late' }] }))
    const template = new ResourceTemplateV1('shop://items/{id}', {
      list: undefined,
      complete: { id: () => ['tea', 'tin'] },
    })
    server.registerResource('items', template, {}, async (uri) => ({ contents: [{ uri: uri.href, text: 'an item' }] }))
    const client = await connectV1(server)
    const { resources } = await client.listResources()
    expect(resources.map(({ uri }) => uri)).toEqual([
      ...['shop://own', 'shop://late'],
      ...['docs://manual/a.md', 'docs://manual/dir/b.md'],
    ])
    const read = async (uri: string) => (await client.readResource({ uri })).contents
    expect(await read('docs://manual/a.md')).toMatchObject([{ uri: 'docs://manual/a.md', text: 'the text' }])
    expect(await read('shop://late')).toMatchObject([{ text: 'late' }])
    expect(await read('shop://items/tea')).toMatchObject([{ text: 'an item' }])
    const { resourceTemplates } = await client.listResourceTemplates()
    const templates = resourceTemplates.map(({ uriTemplate }) => uriTemplate)
    expect(templates).toContain('shop://items/{id}')
    const ours = templates.find((one) => one.startsWith('docs://')) ?? expect.fail('no template')
    const complete = async (uri: string, name: string, value: string) =>
      (await client.complete({ ref: { type: 'ref/resource', uri }, argument: { name, value } })).completion.values
    expect(await complete(ours, 'path', 'd')).toContain('dir/')
    expect(await complete('shop://items/{id}', 'id', '')).toEqual(['tea', 'tin'])
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['sell'])
  })

  test('answers for a hidden resource as for an absent one', async () => {
    const server = shop()
    keep(attach(server, viewFor()))
    const client = await connectV1(server)
    const failure = (uri: string) =>
      client.readResource({ uri }).then(
        () => 'read',
        ({ code, message }) => `${code} ${message.replaceAll(uri, 'URI')}`,
      )
    expect(await failure('docs://manual/secret')).toBe(await failure('docs://manual/absent'))
    expect(await failure('docs://manual/secret')).not.toBe('read')
    expect(await failure('docs://manual/%2e%2e/secret')).not.toBe('read')
  })

  test('has its pages after those of the server, and the cursors are not confused', async () => {
    const server = new ServerV1(info, { capabilities: { resources: {} } })
    server.setRequestHandler(ListResourcesRequestSchema, ({ params }) =>
      params?.cursor === undefined
        ? { resources: [{ uri: 'shop://1', name: '1' }], nextCursor: 'two' }
        : { resources: [{ uri: `shop://${params.cursor}`, name: '2' }] },
    )
    const many = Object.fromEntries(Array.from({ length: 1500 }, (_, i) => [`n${String(i).padStart(4, '0')}`, 'x']))
    keep(attach(server, viewFor([], memory(many))))
    const client = await connectV1(server)
    const uris: string[] = []
    let cursor: string | undefined
    do {
      const page = await client.listResources(cursor === undefined ? {} : { cursor })
      uris.push(...page.resources.map(({ uri }) => uri))
      cursor = page.nextCursor
    } while (cursor !== undefined)
    expect(uris.slice(0, 3)).toEqual(['shop://1', 'shop://two', 'docs://manual/n0000'])
    expect(uris).toHaveLength(1502)
    await expect(client.listResources({ cursor: 'two' })).rejects.toMatchObject({ code: -32602 })
    await expect(client.listResources({ cursor: 'view:two' })).rejects.toMatchObject({ code: -32602 })
  })

  test('notifies subscribers of a changed resource and of a changed list', async () => {
    const source = live({ a: '1' })
    const server = shop()
    keep(attach(server, viewFor([], source)))
    const client = await connectV1(server)
    expect(client.getServerCapabilities()?.resources).toMatchObject({ subscribe: true, listChanged: true })
    const heard: string[] = []
    client.fallbackNotificationHandler = async ({ method, params }) => {
      heard.push(`${method} ${params?.uri ?? ''}`.trim())
    }
    await client.subscribeResource({ uri: 'docs://manual/a' })
    await expect(client.subscribeResource({ uri: 'docs://manual/secret' })).rejects.toThrow()
    source.set('a', { text: '2' })
    await expect.poll(() => heard).toContain('notifications/resources/updated docs://manual/a')
    source.set('b', { text: '2' })
    await expect.poll(() => heard).toContain('notifications/resources/list_changed')
    await client.unsubscribeResource({ uri: 'docs://manual/a' })
    await client.close()
    await expect.poll(() => source.watching).toBe(0)
  })

  test('has the reading tools if configured, and hides no tool of the server', async () => {
    const server = shop()
    keep(attach(server, viewFor(), { tools: true }))
    server.registerTool('read_resource', { description: 'Of the shop.' }, async () => ({
      content: [{ type: 'text', text: 'the own one' }],
    }))
    const client = await connectV1(server)
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toContain('list_resources')
    expect(tools.filter(({ name }) => name === 'read_resource')).toMatchObject([{ description: 'Of the shop.' }])
    const call = async (name: string, args: Record<string, unknown>) =>
      JSON.stringify((await client.callTool({ name, arguments: args })).content)
    expect(await call('list_resources', {})).toContain('docs://manual/a.md')
    expect(await call('sell', { what: 'tea' })).toContain('sold tea')
    expect(await call('read_resource', {})).toContain('the own one')
    expect(await call('nothing', {})).toContain('not found')
  })

  test('has the tools of the mounts too, if configured, for callers who may see them', async () => {
    const tool = (name: string) => ({
      path: `=tools/${name}`,
      name,
      longName: `far_${name}`,
      inputSchema: { type: 'object' },
    })
    const provider = {
      ...memory(entries),
      tools: {
        list: async () => [tool('brew'), tool('sell'), tool('hidden')],
        call: async ({ path }: { readonly path: string }) => ({ parts: [{ text: `called ${path}` }] }),
      },
    }
    const access = (_: unknown, path: string) => path !== '=tools/hidden'
    const view = createCatalog({ mounts: [{ address: 'docs://manual', provider, access }] }).view({
      id: 'ada',
      roles: [],
    })
    const server = shop()
    keep(attach(server, view, { tools: true }))
    const client = await connectV1(server)
    const names = (await client.listTools()).tools.map(({ name }) => name)
    expect(names).toContain('brew')
    expect(names).not.toContain('hidden')
    expect(names.filter((name) => name === 'sell')).toHaveLength(1)
    const call = async (name: string) =>
      JSON.stringify((await client.callTool({ name, arguments: { what: 'tea' } })).content)
    expect(await call('brew')).toContain('called =tools/brew')
    expect(await call('sell')).toContain('sold tea')
    expect(await call('hidden')).toContain('not found')
  })

  test('removes known secrets from its answers, and not from those of the server', async () => {
    const server = shop()
    const scrubber = createScrubber(['the text', 'own text'])
    keep(attach(server, viewFor(), { scrubber }))
    const client = await connectV1(server)
    const read = async (uri: string) => JSON.stringify((await client.readResource({ uri })).contents)
    expect(await read('docs://manual/a.md')).not.toContain('the text')
    expect(await read('shop://own')).toContain('own text')
  })
})

describe('attached to a server of version 2, a view', () => {
  const info = { name: 'shop', version: '1' }

  test('serves each caller its own resources, on old and new revisions, behind createMcpHandler', async () => {
    const handler = createMcpHandler(() => {
      const server = new McpServer(info)
      server.registerResource('own', 'shop://own', {}, async (uri) => ({ contents: [{ uri: uri.href, text: 'own' }] }))
      const all = viewFor(['all'])
      const some = viewFor()
      keep(attach(server, (auth) => ((auth as { clientId?: string } | undefined)?.clientId === 'all' ? all : some)))
      return server
    })
    for (const mode of ['auto', 'legacy'] as const)
      for (const clientId of ['all', 'some']) {
        const client = new Client({ name: 'c', version: '1' }, { versionNegotiation: { mode } })
        const fetch = (input: string | URL | Request, init?: RequestInit) =>
          handler.fetch(new Request(input, init), { authInfo: { token: 't', clientId, scopes: [] } })
        await client.connect(new StreamableHTTPClientTransport(new URL('http://localhost/mcp'), { fetch }))
        const { resources } = await client.listResources()
        const uris = ['shop://own', 'docs://manual/a.md', 'docs://manual/dir/b.md']
        expect(resources.map(({ uri }) => uri)).toEqual(clientId === 'all' ? [...uris, 'docs://manual/secret'] : uris)
        const secret = client.readResource({ uri: 'docs://manual/secret' })
        if (clientId === 'all') expect((await secret).contents).toMatchObject([{ text: 'hidden' }])
        else await expect(secret).rejects.toMatchObject({ code: -32602 })
        expect((await client.readResource({ uri: 'shop://own' })).contents).toMatchObject([{ text: 'own' }])
        // Nobody is promised what nobody is told of.
        expect(client.getServerCapabilities()?.resources?.subscribe).toBeUndefined()
        await client.close()
      }
  })

  test('lists the entries of a directory', async () => {
    const handler = createMcpHandler(() => {
      const server = new Server(info, { capabilities: {} })
      keep(attach(server, viewFor()))
      return server
    })
    const client = new Client(info, { versionNegotiation: { mode: 'auto' } })
    const fetch = (input: string | URL | Request, init?: RequestInit) => handler.fetch(new Request(input, init))
    await client.connect(new StreamableHTTPClientTransport(new URL('http://localhost/mcp'), { fetch }))
    const any = z.looseObject({ resources: z.array(z.looseObject({ uri: z.string() })) })
    const params = { uri: 'docs://manual/dir' }
    const { resources } = await client.request({ method: 'resources/directory/read', params }, any)
    expect(resources.map(({ uri }) => uri)).toEqual(['docs://manual/dir/b.md'])
    await client.close()
  })
})

test('attach refuses an object that is no server, a missing view, and a server that is connected', async () => {
  expect(() => attach({} as never, viewFor())).toThrow(/attach needs a Server/)
  const server = new McpServerV1({ name: 's', version: '1' })
  expect(() => attach(server, undefined as never)).toThrow(/needs a view/)
  await connectV1(server)
  expect(() => attach(server, viewFor())).toThrow(/before connect/)
})
