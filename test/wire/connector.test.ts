import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createProfileFinder } from '../../src/config/profiles.ts'
import { compileAccess } from '../../src/core/access.ts'
import { type Catalog, createCatalog } from '../../src/core/catalog.ts'
import type { MountReader } from '../../src/core/mount-reader.ts'
import type { Principal } from '../../src/core/provider.ts'
import { search } from '../../src/providers/search/index.ts'
import { readDocument } from '../../src/search/feed-documents.ts'
import { openSearchIndex, type SearchIndex } from '../../src/search/index.ts'
import { openViewChannel } from '../../src/server/serve.ts'
import { openStore, type Store } from '../../src/store/index.ts'
import { linked } from '../../src/wrap/linked.ts'
import { sliced } from '../../src/wrap/sliced.ts'
import { meta } from '../attack/harness/wire.ts'
import { createFolder, type Folder } from '../support/folder.ts'
import { memory } from '../support/memory.ts'
import { openSchema, type SchemaRevision, schemaRevisions } from '../support/wire-schema.ts'

const long = Array.from({ length: 20_000 }, (_, index) => `anchor line ${index}\n`).join('')

const link = 'https://forge.example/app/blob/main/{+path}'
const reader: Principal = { id: 'reader', roles: ['reader'] }
const guest: Principal = { id: 'guest', roles: [] }

let folder: Folder
let store: Store
let index: SearchIndex
let catalog: Catalog

beforeAll(async () => {
  folder = createFolder()
  store = await openStore({ sqlite: { file: `${folder.outside}/store.sqlite` } })
  index = await openSearchIndex({ store, name: 'connector' })
  const made: Catalog = createCatalog({
    mounts: [
      {
        address: 'file:///app',
        access: compileAccess([{ allow: ['*'] }, { deny: ['*'], match: 'secret/**' }, { allow: ['reader'] }]),
        provider: sliced(
          linked(
            memory({
              'docs/a b.md': { text: '# Anchors\n\nDrop the anchor.\n', title: 'Anchors', mimeType: 'text/markdown' },
              'docs/long.txt': { text: long, mimeType: 'text/plain' },
              'secret/plan.md': { text: 'anchor of the plan' },
              'logo.bin': { bytes: Buffer.from([0, 1, 2]), mimeType: 'application/octet-stream' },
            }),
            { link },
          ),
        ),
      },
      { address: 'notes://own', provider: sliced(memory({ 'n.txt': { text: 'anchor note' } })) },
      {
        address: 'search://all',
        provider: search({
          index,
          store,
          name: 'connector',
          mounts: () => readersOf(made).map((mount) => ({ mount, way: '' })),
        }),
      },
    ],
    secret: Buffer.alloc(32),
  })
  catalog = made
  const { signal } = new AbortController()
  for (const mount of readersOf(catalog))
    for await (const entry of mount.list({}, signal)) {
      const document = await readDocument(entry, { mount, way: '', maxBytes: 2 ** 20, signal })
      if (document !== undefined) await index.put([document])
    }
})

afterAll(async () => {
  await catalog.close()
  await index.close()
  await store.close()
  folder.remove()
})

function readersOf(held: Catalog): readonly MountReader[] {
  return ['file:///app', 'notes://own'].flatMap((address) => held.reader(address) ?? [])
}

interface Answer {
  readonly content: readonly { readonly type: string; readonly text: string }[]
  readonly structuredContent?: unknown
  readonly isError?: boolean
}

async function open(
  revision: SchemaRevision,
  client = 'openai-mcp',
  clients: Parameters<typeof createProfileFinder>[0] = { tools: 'chatgpt' },
  principal = guest,
) {
  const era = revision === '2026-07-28' ? 'modern' : 'legacy'
  const options = {
    name: 'n',
    version: '1',
    view: catalog.view,
    log: () => {},
    profileOf: createProfileFinder(clients, catalog),
  }
  const channel = await openViewChannel(options, principal, era)
  const clientInfo = { name: client, version: '1' }
  const ask = async (method: string, params: object = {}) => {
    const own =
      era === 'modern' ? { ...params, _meta: { ...meta, 'io.modelcontextprotocol/clientInfo': clientInfo } } : params
    return channel.request({ jsonrpc: '2.0', id: 1, method, params: own as Record<string, unknown> })
  }
  if (era === 'legacy') {
    await ask('initialize', { protocolVersion: revision, capabilities: {}, clientInfo })
    channel.notify({ jsonrpc: '2.0', method: 'notifications/initialized' })
  }
  const call = async (name: string, given: object) =>
    ((await ask('tools/call', { name, arguments: given })) as unknown as { readonly result: Answer }).result
  const names = async () => {
    const { result } = (await ask('tools/list')) as unknown as { result: { tools: readonly { name: string }[] } }
    return result.tools.map(({ name }) => name)
  }
  return { ask, call, names }
}

const hasStructured = (revision: SchemaRevision) => revision >= '2025-06-18'
const reading = ['list_resources', 'browse_directory', 'read_resource', 'search_in_resource', 'search_resources']

describe.each(schemaRevisions)('the tools search and fetch on %s', (revision) => {
  test('have the form that connectors expect, as one JSON text, and from 2025-06-18 on as structured content too', async () => {
    const { ask, call } = await open(revision)
    const schema = openSchema(revision, { closed: true })
    expect(schema.faults(await ask('tools/list'), 'tools/list')).toEqual([])
    const found = await call('search', { query: 'drop anchor' })
    expect(found.content).toHaveLength(1)
    const { results } = JSON.parse(found.content[0]?.text ?? '') as { results: readonly Record<string, string>[] }
    if (hasStructured(revision)) expect(found.structuredContent).toEqual({ results })
    expect(results[0]).toEqual({
      id: 'file:///app/docs/a%20b.md',
      title: 'Anchors',
      url: 'https://forge.example/app/blob/main/docs/a%20b.md',
    })
    // Each document is there once, whatever it has of hits; and nowhere to open it is an empty url.
    expect(new Set(results.map(({ id }) => id)).size).toBe(results.length)
    expect(results.find(({ id }) => id === 'notes://own/n.txt')).toEqual({
      id: 'notes://own/n.txt',
      title: 'n.txt',
      url: '',
    })
    for (const result of results) expect(Object.keys(result)).toEqual(['id', 'title', 'url'])

    const fetched = await call('fetch', { id: results[0]?.id })
    expect(fetched.content).toHaveLength(1)
    const document = JSON.parse(fetched.content[0]?.text ?? '') as Record<string, unknown>
    if (hasStructured(revision)) expect(fetched.structuredContent).toEqual(document)
    expect(document).toMatchObject({
      id: 'file:///app/docs/a%20b.md',
      text: '# Anchors\n\nDrop the anchor.\n',
      url: 'https://forge.example/app/blob/main/docs/a%20b.md',
      metadata: { mimeType: 'text/markdown' },
    })
    expect(typeof document.title).toBe('string')
    expect(Object.values(document.metadata as object).every((value) => typeof value === 'string')).toBe(true)
  })

  test('continue a long document by the id of the next part, and give a note in place of binary data', async () => {
    const { call } = await open(revision)
    const fetch = async (id: string) =>
      JSON.parse((await call('fetch', { id })).content[0]?.text ?? '') as {
        readonly text: string
        readonly metadata: Readonly<Record<string, string>>
      }
    const parts: string[] = []
    for (let id: string | undefined = 'file:///app/docs/long.txt'; id !== undefined; ) {
      const { text, metadata } = await fetch(id)
      parts.push(text)
      expect(metadata.truncated).toBe(metadata.next === undefined ? undefined : 'true')
      id = metadata.next
    }
    expect(parts.length).toBeGreaterThan(2)
    expect(parts.join('')).toBe(long)
    const bytes = await fetch('file:///app/logo.bin')
    expect([bytes.text, bytes.metadata.note]).toEqual(['', 'This is not text.'])
  })

  test('answer for a denied document as for an absent one', async () => {
    const { call } = await open(revision)
    const told = async (id: string) => JSON.stringify(await call('fetch', { id })).replaceAll(id, 'ID')
    expect(await told('file:///app/secret/plan.md')).toBe(await told('file:///app/secret/none.md'))
    const { content } = await call('search', { query: 'plan' })
    expect(content[0]?.text).not.toContain('secret')
    expect((await call('fetch', {})).isError).toBe(true)
    expect((await call('search', { query: '' })).isError).toBe(true)
  })
})

test('the tools of a caller depend on the host, its profile and clients.tools', async () => {
  const names = async (client: string, clients?: Parameters<typeof createProfileFinder>[0]) =>
    (await open('2025-11-25', client, clients)).names()
  // Only a host that is known to list, read and search by itself gets none.
  expect(await names('codex-mcp-client', {})).toEqual([])
  for (const client of ['claude-code', 'Visual Studio Code', 'a-host-of-tomorrow', 'Zed', 'gemini-cli-mcp-client'])
    expect(await names(client, {}), client).toEqual(reading)
  expect(await names('ChatGPT', {})).toEqual(['search', 'fetch', ...reading])
  expect(await names('openai-mcp (ChatGPT)', {})).toEqual(['search', 'fetch', ...reading])
  expect(await names('anybody', { tools: 'chatgpt' })).toEqual(['search', 'fetch'])
  expect(await names('codex-mcp-client', { tools: 'chatgpt' })).toEqual(['search', 'fetch'])
  expect(await names('anybody', { tools: 'off' })).toEqual([])
  expect(await names('anybody', { profiles: [{ name: 'any*', tools: 'chatgpt' }] })).toEqual(['search', 'fetch'])
  expect(await names('anybody', { profiles: [{ name: 'any*', tools: false }] })).toEqual([])
  expect(await names('codex-mcp-client', { profiles: [{ name: 'codex*', tools: true }] })).toEqual(reading)
  expect(await names('hikidashi-explorer', { tools: 'chatgpt' })).toEqual(reading)
})

test('a listed resource has the link of its mount in its metadata', async () => {
  const { items } = await catalog.view(reader).list()
  const links = new Map(items.map(({ uri, meta: told }) => [uri, told?.['dev.hikidashi/source']]))
  expect(links.get('file:///app/docs/a%20b.md')).toEqual({
    link: 'https://forge.example/app/blob/main/docs/a%20b.md',
  })
  expect(links.get('notes://own/n.txt')).toBeUndefined()
})
