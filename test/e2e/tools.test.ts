import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createProfileFinder } from '../../src/config/profiles.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { files } from '../../src/providers/files/index.ts'
import { type HttpService, serveHttp } from '../../src/server/index.ts'
import { type EraClient, eras, type Place } from '../support/era-clients.ts'
import { createFolder, type Folder } from '../support/folder.ts'
import { someOf } from '../support/volume.ts'

/** The part of an official client that calls tools. */
interface ToolClient extends EraClient {
  listTools(): Promise<{ readonly tools: readonly { readonly name: string; readonly outputSchema?: object }[] }>
  callTool(params: { readonly name: string; readonly arguments: object }): Promise<{
    readonly content: readonly { readonly type: string; readonly text?: string; readonly uri?: string }[]
    readonly structuredContent?: object
    readonly isError?: boolean
  }>
}

const clients = {
  tools: 'off' as const,
  profiles: [{ name: 'era-*', tools: true, list: { match: 'docs/**', most: 2 } }],
}
const text = `# One\n${'A line of text.\n'.repeat(2000)}# Two\n`

let folder: Folder
let service: HttpService
let close: () => Promise<void>
let config: string

beforeAll(async () => {
  folder = createFolder()
  folder.write({ 'docs/a.md': text, 'docs/b.md': 'b\n', 'docs/c.md': 'c\n', 'other.md': 'other\n' })
  config = join(folder.outside, 'hikidashi.json')
  const mounts = { 'file:///held': { provider: 'files', root: folder.root } }
  writeFileSync(config, JSON.stringify({ mounts, clients }))
  const provider = await files({ root: folder.root, log: () => {} })
  const catalog = createCatalog({ mounts: [{ address: 'file:///held', provider }] })
  service = await serveHttp({
    ...{ view: catalog.view, name: 'tools', version: '0', log: () => {}, host: '127.0.0.1', port: 0, sse: true },
    profileOf: createProfileFinder(clients, catalog),
    limits: { drain: 500 },
  })
  close = catalog.close
})

afterAll(async () => {
  await service.close()
  await close()
  folder.remove()
})

const cli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const transports: readonly (readonly [name: string, place: () => Place])[] = [
  [
    'stdio',
    () => ({ command: process.execPath, args: [cli, 'serve', '--config', config, '--stdio', '--log-level', 'error'] }),
  ],
  ['HTTP', () => ({ url: service.url })],
]

describe.each(eras)('the client $name', ({ name, connect, revision }) => {
  // The wire itself is for `clients.test.ts`.
  test.each(someOf(`tools ${name}`, transports))(
    'lists, browses, reads and searches by tools over %s, and gets its own limited list of resources',
    async (transport, place) => {
      const connected = await connect(place())
      const client = connected.client as ToolClient
      try {
        const { tools } = await client.listTools()
        expect(tools.map(({ name }) => name)).toEqual([
          'list_resources',
          'browse_directory',
          'read_resource',
          'search_in_resource',
          'search_resources',
          // The toolkit alone does not have these: the command line puts them together.
          ...(transport === 'stdio' ? ['browse', 'assemble_context', 'what_changed'] : []),
        ])
        expect((await client.listResources()).resources.map(({ uri }) => uri)).toEqual([
          // The toolkit alone has no overview: the command line makes it of the configuration. It is one of the most that are listed.
          ...(transport === 'stdio' ? ['hikidashi://overview'] : []),
          'file:///held/docs/a.md',
          ...(transport === 'stdio' ? [] : ['file:///held/docs/b.md']),
        ])
        const call = (name: string, given: object) => client.callTool({ name, arguments: given })
        expect((await call('list_resources', {})).content[0]?.text).toContain('file:///held/docs/a.md')
        expect((await call('browse_directory', { uri: 'file:///held/docs' })).content[0]?.text).toContain('c.md')
        const read = await call('read_resource', { uri: 'file:///held/docs/a.md', max_tokens: 1000 })
        expect(read.content[0]?.text).toMatch(
          /^# One\n.*Ask for lines=\d+- for what follows.*\[Outline\]\n1: # One\n2002: # Two/s,
        )
        const found = await call('search_resources', { query: 'a.md' })
        expect(found.content[0]?.text).toContain('file:///held/docs/a.md')
        expect(found.content.some(({ type }) => type === 'resource_link')).toBe(revision >= '2025-06-18')
        expect(found.structuredContent === undefined).toBe(revision < '2025-06-18')
        expect(await call('read_resource', { uri: 'file:///held/none' })).toMatchObject({ isError: true })
        expect((await client.readResource({ uri: 'file:///held/other.md' })).contents).toMatchObject([
          { text: 'other\n' },
        ])
      } finally {
        await client.close()
      }
    },
    60_000,
  )
})
