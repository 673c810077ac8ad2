import { writeFileSync } from 'node:fs'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { compileAccess } from '../../src/core/access.ts'
import { remote } from '../../src/providers/remote/index.ts'
import { redacted } from '../../src/wrap/redacted.ts'
import { sliced } from '../../src/wrap/sliced.ts'
import { createSpill } from '../../src/wrap/spill.ts'
import { spilled } from '../../src/wrap/spilled.ts'
import { main } from '../support/cli.ts'
import { createFolder } from '../support/folder.ts'
import { fixture } from '../support/mcp-servers.ts'
import { type Relayed, serveRelayed } from '../support/relayed.ts'

// Long results of tools of a server of the official SDK, kept as resources for its official client.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const key = `ghp_${'a1B2c3D4e5'.repeat(4).slice(0, 36)}`
const access = compileAccess([{ allow: ['owner', 'guest'] }, { deny: ['guest'], match: 'notes/secret/**' }])

interface Result {
  readonly content: readonly { readonly type: string; readonly text?: string; readonly uri?: string }[]
  readonly structuredContent?: unknown
}
const textOf = ({ content }: Result) => content[0]?.text ?? ''
const linkIn = ({ content }: Result) =>
  content.find(({ type }) => type === 'resource_link')?.uri ?? expect.fail('no link')
const failureOf = (work: Promise<unknown>) =>
  work.then(
    () => 'no failure',
    (error: { readonly code?: unknown; readonly message?: string }) => `${error.code} ${error.message}`,
  )

describe('a long result of a tool', () => {
  let relayed: Relayed
  let time = Date.parse('2026-11-23T12:00:00Z')
  beforeAll(async () => {
    const spill = createSpill({
      keepMs: 60_000,
      maxResults: 3,
      maxBytes: 400_000,
      maxTotalBytes: 600_000,
      now: () => time,
    })
    relayed = await serveRelayed((log) => [
      { address: spill.address, provider: sliced(spill.provider) },
      {
        address: 'mcp://there',
        provider: spilled(redacted(remote({ target: fixture('abilities', 'official'), tools: true, log })), {
          spill,
          maxTokens: 500,
        }),
        access,
      },
    ])
  })
  afterEach(() => relayed.closeClients())
  afterAll(() => relayed.close())

  const long = async (client: Client, kind = 'markdown', lines = 400) =>
    (await client.callTool({ name: 'long', arguments: { lines, kind } })) as Result

  test('is answered with its outline, its beginning and a link; a short result is unchanged', async () => {
    const client = await relayed.connect('owner')
    expect(textOf(await long(client, 'markdown', 3))).toMatch(/^## Part 0/)
    const answer = await long(client)
    const text = textOf(answer)
    expect(text).toContain('The result is too long for an answer. It is kept for you until 2026-11-23T12:01:00.000Z.')
    expect(text).toMatch(/Outline:\n1: ## Part 0\n\d+: ## Part 50\n/)
    expect(text).toContain('Line 0 has straw0.')
    expect(text).not.toContain('straw300')
    expect(text.length).toBeLessThan(4000)
    const uri = linkIn(answer)
    expect(uri).toMatch(/^spill:\/\/results\/[\w-]{22}\/long\.md$/)
    const { contents } = await client.readResource({ uri })
    expect(JSON.stringify(contents)).toContain('straw399')
    expect(JSON.stringify(contents)).toContain('[redacted]')
    expect(JSON.stringify(contents)).not.toContain(key)
    const part = await client.readResource({ uri: `${uri}?lines=3-4` })
    expect(part.contents).toMatchObject([{ text: 'Line 0 has straw0. \nLine 1 has straw1. \n' }])
    const { resources } = await client.listResources()
    expect(resources.map((one) => one.uri)).toContain(uri)
  })

  test('can be searched only by the principal that got it', async () => {
    const [owner, guest] = [await relayed.connect('owner'), await relayed.connect('guest')]
    const uri = linkIn(await long(owner))
    const { contents } = await owner.readResource({ uri: 'spill://results/search?q=NEEDLE' })
    const [content] = contents as readonly { readonly text: string }[]
    const { hits } = JSON.parse(content?.text ?? '') as { hits: { uri: string; snippet: { text: string } }[] }
    expect(hits[0]?.snippet.text).toContain('has needle')
    expect(hits.map((hit) => hit.uri.replace(/\?.*/, ''))).toContain(uri)
    const { contents: found } = await owner.readResource({ uri: hits[0]?.uri ?? '' })
    expect(JSON.stringify(found)).toContain('needle')
    expect((await owner.listResourceTemplates()).resourceTemplates.map(({ name }) => name)).toContain('search')
    expect((await guest.listResourceTemplates()).resourceTemplates.map(({ name }) => name)).not.toContain('search')
    expect(await failureOf(guest.readResource({ uri: 'spill://results/search?q=needle' }))).not.toContain('needle')
  })

  test('is absent for all other principals, in every request', async () => {
    const owner = await relayed.connect('owner')
    const uri = linkIn(await long(owner))
    const id = uri.split('/')[3] ?? ''
    for (const who of ['guest', 'stranger']) {
      const other = await relayed.connect(who)
      const missing = (text: string) => text.replace(id, 'A'.repeat(22))
      for (const asked of [
        uri,
        `${uri}?lines=1-2`,
        `spill://results/${id}`,
        `spill://results/${id}/`,
        `${uri}?bytes=0-9`,
      ]) {
        const told = await failureOf(other.readResource({ uri: asked }))
        expect(told, asked).not.toBe('no failure')
        expect(missing(told)).toBe(await failureOf(other.readResource({ uri: missing(asked) })))
      }
      expect(JSON.stringify(await other.listResources())).not.toContain('spill:')
      const complete = other.complete({
        ref: { type: 'ref/resource', uri: 'spill://results/{+path}{?lines,bytes}' },
        argument: { name: 'path', value: id.slice(0, 3) },
      })
      expect(JSON.stringify(await complete.catch(() => ''))).not.toContain(id)
    }
    expect(await failureOf(owner.readResource({ uri }))).toBe('no failure')
  })

  test('hides paths that its caller may not see', async () => {
    const resultOf = async (who: string) => {
      const client = await relayed.connect(who)
      const answer = (await client.callTool({ name: 'mixed' })) as Result
      const links = answer.content.filter(({ type }) => type === 'resource_link')
      const kept = await Promise.all(links.map(({ uri = '' }) => client.readResource({ uri })))
      return { kept: JSON.stringify([answer, kept]), links: links.length }
    }
    const [owner, guest] = [await resultOf('owner'), await resultOf('guest')]
    expect(owner.links).toBe(2)
    expect(owner.kept).toContain('CANARY')
    expect(guest.links).toBe(1)
    expect(guest.kept).toContain('open open')
    expect(guest.kept).not.toMatch(/CANARY|secret|Q0FOQVJZ/)
  })

  test('is absent after its expiry, as if it had never existed', async () => {
    const client = await relayed.connect('owner')
    const uri = linkIn(await long(client))
    time += 59_000
    expect(await failureOf(client.readResource({ uri }))).toBe('no failure')
    time += 2000
    const told = await failureOf(client.readResource({ uri }))
    const id = uri.split('/')[3] ?? ''
    const never = uri.replace(id, 'A'.repeat(22))
    expect(told.replace(id, 'A'.repeat(22))).toBe(await failureOf(client.readResource({ uri: never })))
    expect(JSON.stringify(await client.listResources())).not.toContain('spill:')
  })

  test('keeps structured content in the schema that the tool declares', async () => {
    const client = await relayed.connect('owner')
    await client.listTools()
    // The client of the SDK checks the answer against the output schema.
    const sum = (await client.callTool({ name: 'add', arguments: { a: 1, b: 2 } })) as Result
    expect(sum.structuredContent).toEqual({ sum: 3 })
    const rows = await long(client, 'rows')
    const uri = linkIn(rows)
    expect(rows.structuredContent).toMatchObject({ spilled: { uris: [uri] } })
    expect(rows.content.filter(({ type }) => type === 'resource_link')).toHaveLength(1)
    const { contents } = await client.readResource({ uri })
    const [content] = contents as readonly { readonly text: string; readonly mimeType: string }[]
    expect(content?.mimeType).toBe('application/json')
    const parsed = JSON.parse(content?.text ?? '') as { readonly rows: readonly unknown[] }
    expect(parsed.rows).toHaveLength(400)
    expect(content?.text.split('\n').length).toBeGreaterThan(1000)
  })

  test('takes the space of its own principal and displaces no result of others; one that is too large is not stored', async () => {
    const [owner, guest] = [await relayed.connect('owner'), await relayed.connect('guest')]
    const first = linkIn(await long(guest))
    const uris: string[] = []
    for (let times = 0; times < 6; times++) uris.push(linkIn(await long(owner)))
    const there = await Promise.all(
      uris.map(async (uri) => (await failureOf(owner.readResource({ uri }))) === 'no failure'),
    )
    expect(there).toEqual([false, false, false, true, true, true])
    for (let times = 0; times < 4; times++) await long(owner, 'markdown', 10_000)
    expect(await failureOf(guest.readResource({ uri: first }))).toBe('no failure')
    const huge = await long(owner, 'markdown', 30_000)
    expect(textOf(huge)).toContain('It is also too large to be stored')
    expect(textOf(huge).length).toBeLessThan(4000)
    expect(huge.content.some(({ type }) => type === 'resource_link')).toBe(false)
  })
})

test('a stored long result of a tool is read in parts, searched and packed by the tools of the built command', async () => {
  const folder = createFolder()
  const target = fixture('abilities', 'sdk124')
  if (!('command' in target)) throw new Error('no command')
  const { command, args } = target
  const mounts = { 'mcp://there': { provider: 'remote', command, args, tools: true, redact: 'mask' } }
  const config = folder.at('hikidashi.json')
  writeFileSync(config, JSON.stringify({ mounts, spill: { tokens: 1000, keep: '5m' } }))
  const client = new Client({ name: 'some-host', version: '1' })
  const serve = [main, 'serve', '--config', config, '--stdio', '--log-level', 'error']
  await client.connect(new StdioClientTransport({ command: process.execPath, args: serve }))
  try {
    const names = async () => (await client.listTools()).tools.map(({ name }) => name)
    // A list lacks the tools of a server that has not answered yet.
    await expect
      .poll(names)
      .toEqual(expect.arrayContaining(['add', 'there_read_resource', 'read_resource', 'assemble_context']))
    const call = async (name: string, given: Record<string, unknown>) =>
      (await client.callTool({ name, arguments: given })) as Result
    const answer = await call('long', { lines: 2000, kind: 'markdown' })
    const uri = linkIn(answer)
    expect(textOf(await call('read_resource', { uri, lines: '3-3' }))).toContain('Line 0 has straw0.')
    const found = await call('search_resources', { query: 'needle' })
    expect(textOf(found)).toContain(uri)
    const packed = JSON.stringify(await call('assemble_context', { query: 'needle', mounts: ['spill://results'] }))
    expect(packed).toContain('needle')
    const whole = JSON.stringify([
      await call('long', { lines: 10, kind: 'markdown' }),
      await client.readResource({ uri }),
    ])
    expect(whole).toContain('[redacted]')
    expect(whole).not.toContain(key)
  } finally {
    await client.close()
    folder.remove()
  }
})
