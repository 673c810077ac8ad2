import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { expect, test } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import type { Entry, Provider } from '../../src/core/provider.ts'
import { serveHttp } from '../../src/server/index.ts'
import { volumeOf } from '../support/volume.ts'

/** A million in full volume. */
const total = volumeOf(1_000_000)
const nameOf = (index: number) => `f${String(index).padStart(6, '0')}`

/** A source of so many entries, none of which is kept. */
const numbered: Provider = {
  async *list({ after }): AsyncGenerator<Entry> {
    for (let index = after === undefined ? 0 : Number(after.slice(1)) + 1; index < total; index++)
      yield { path: nameOf(index), mimeType: 'text/plain' }
  },
  read: async ({ path }) => [{ text: path }],
}

test('the official client gets every entry of a long list (a million in full volume) in at most the 64 pages that its listResources() follows', async () => {
  const catalog = createCatalog({ mounts: [{ address: 'numbers://all', provider: numbered }] })
  const server = await serveHttp({
    name: 'n',
    version: '0',
    view: catalog.view,
    log: () => {},
    host: '127.0.0.1',
    port: 0,
  })
  const client = new Client(
    { name: 'counts', version: '0' },
    { capabilities: {}, versionNegotiation: { mode: 'auto' } },
  )
  await client.connect(new StreamableHTTPClientTransport(new URL(server.url)))
  const { resources, nextCursor } = await client.listResources(undefined, { timeout: 120_000 })
  expect(nextCursor).toBeUndefined()
  expect(resources).toHaveLength(total)
  // Each of them once, and in order.
  expect(resources.findIndex(({ name }, index) => name !== nameOf(index))).toBe(-1)
  await client.close()
  await server.close()
  await catalog.close()
}, 300_000)
