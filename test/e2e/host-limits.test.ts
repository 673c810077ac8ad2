import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { expect, test } from 'vitest'
import { createProfileFinder } from '../../src/config/profiles.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { serveHttp } from '../../src/server/index.ts'
import { memory } from '../support/memory.ts'

test.each(['legacy', 'auto'] as const)(
  'Codex gets the 2,000 most important resources and a note about the rest, other hosts get all (version negotiation: %s)',
  async (mode) => {
    const files = Object.fromEntries(Array.from({ length: 1175 }, (_, i) => [`f${i}`, '']))
    const settings = Object.fromEntries(Array.from({ length: 1270 }, (_, i) => [`s${i}`, '']))
    const catalog = createCatalog({
      mounts: [
        { address: 'config://app', provider: memory(settings), derived: true },
        { address: 'file:///app', provider: memory({ ...files, 'z.md': { text: '', priority: 0.9 } }) },
      ],
    })
    const identity = { name: 'n', version: '0', instructions: 'Read the manual.' }
    const profileOf = createProfileFinder(undefined, catalog)
    const options = { ...identity, view: catalog.view, profileOf, log: () => {}, host: '127.0.0.1', port: 0 }
    const server = await serveHttp(options)
    const see = async (name: string) => {
      const client = new Client({ name, version: '1' }, { capabilities: {}, versionNegotiation: { mode } })
      await client.connect(new StreamableHTTPClientTransport(new URL(server.url)))
      const { resources } = await client.listResources()
      const uri = 'config://app/s1269'
      const { contents } = await client.readResource({ uri })
      const seen = { uris: resources.map((one) => one.uri), instructions: client.getInstructions(), contents }
      await client.close()
      return seen
    }
    const codex = await see('codex-mcp-client')
    expect(codex.uris).toHaveLength(2000)
    expect(codex.uris[0]).toBe('file:///app/z.md')
    expect(codex.uris.filter((uri) => uri.startsWith('file:'))).toHaveLength(1176)
    expect(codex.instructions).toMatch(
      /^Read the manual\.\n\nYour list holds the 2000 most important resources.*search/s,
    )
    expect(codex.contents).toHaveLength(1)
    const other = await see('some-host')
    expect(other.uris).toHaveLength(2446)
    expect(other.instructions).toBe('Read the manual.')
    await server.close()
    await catalog.close()
  },
)
