import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { runHere as run } from '../support/cli-here.ts'
import { createFolder } from '../support/folder.ts'
import { fixture } from '../support/mcp-servers.ts'
import { type Postgres, startPostgres } from '../support/postgres.ts'
import { type Replica, startReplica } from '../support/replicas.ts'

/** Long results of tools with two replicas: one keeps them, the other answers with them. */

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

interface Result {
  readonly content: readonly { readonly type: string; readonly text?: string; readonly uri?: string }[]
}

const folder = createFolder()
const config = join(folder.outside, 'hikidashi.json')
const cwd = folder.outside
const given = { owner: '', guest: '' }
const clients: Client[] = []
let database: Postgres
let first: Replica
let second: Replica

beforeAll(async () => {
  database = await startPostgres()
  const target = fixture('abilities', 'sdk124')
  if (!('command' in target)) throw new Error('no command')
  const content = {
    mounts: { 'mcp://there': { provider: 'remote', ...target, tools: true, redact: 'mask' } },
    spill: { tokens: 500, maxResults: 3 },
    replicas: true,
    store: { postgres: { env: 'STORE' } },
    cursorSecret: { env: 'CURSORS' },
    http: { listen: '127.0.0.1:0', auth: { tokens: join(cwd, 'tokens.json') }, limits: { newConnections: 0 } },
  }
  writeFileSync(config, JSON.stringify(content))
  for (const name of ['owner', 'guest'] as const)
    given[name] = (
      await run(['token', 'add', '--name', name, '--tokens', join(cwd, 'tokens.json')], { cwd })
    ).out.trim()
  const env = { STORE: database.url, CURSORS: 'a secret of these tests, long enough' }
  first = await startReplica('a', config, { cwd, env })
  second = await startReplica('b', config, { cwd, env })
})
afterAll(async () => {
  for (const client of clients) await client.close()
  await first?.stop()
  await second?.stop()
  await database?.remove()
  folder.remove()
})

const connect = async ({ url }: Replica, who: keyof typeof given): Promise<Client> => {
  const client = new Client({ name: 'test', version: '0' }, { versionNegotiation: { mode: 'auto' } })
  const requestInit = { headers: { authorization: `Bearer ${given[who]}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }))
  clients.push(client)
  return client
}
const long = async (client: Client, lines = 400) =>
  (await client.callTool({ name: 'long', arguments: { lines, kind: 'markdown' } })) as Result
const linkIn = ({ content }: Result) =>
  content.find(({ type }) => type === 'resource_link')?.uri ?? expect.fail('no link')
const failureOf = (work: Promise<unknown>) =>
  work.then(
    () => 'no failure',
    (error: { readonly code?: unknown; readonly message?: string }) => `${error.code} ${error.message}`,
  )

test('a result that one replica stores is read, listed and searched at the other', async () => {
  const [here, there] = [await connect(first, 'owner'), await connect(second, 'owner')]
  const uri = linkIn(await long(here))
  const read = JSON.stringify(await there.readResource({ uri }))
  expect(read).toContain('straw399')
  expect(read).toContain('[redacted]')
  expect((await there.readResource({ uri: `${uri}?lines=3-4` })).contents).toMatchObject([
    { text: 'Line 0 has straw0. \nLine 1 has straw1. \n' },
  ])
  expect((await there.listResources()).resources.map((one) => one.uri)).toContain(uri)
  expect((await there.listResourceTemplates()).resourceTemplates.map(({ name }) => name)).toContain('search')
  const found = JSON.stringify(await there.readResource({ uri: 'spill://results/search?q=needle' }))
  expect(found).toContain(uri)
})

test('a result of one caller is absent for another caller at each replica', async () => {
  const uri = linkIn(await long(await connect(first, 'owner')))
  const id = uri.split('/')[3] ?? ''
  const missing = (text: string) => text.replaceAll(id, 'A'.repeat(22))
  for (const replica of [first, second]) {
    const guest = await connect(replica, 'guest')
    for (const asked of [uri, `${uri}?lines=1-2`, `spill://results/${id}`, `spill://results/${id}/`]) {
      const told = await failureOf(guest.readResource({ uri: asked }))
      expect(told, asked).not.toBe('no failure')
      expect(missing(told)).toBe(await failureOf(guest.readResource({ uri: missing(asked) })))
    }
    expect(JSON.stringify(await guest.listResources())).not.toContain('spill:')
    expect(JSON.stringify(await guest.listResourceTemplates())).not.toContain('spill://results/search')
    const complete = guest.complete({
      ref: { type: 'ref/resource', uri: 'spill://results/{+path}{?lines,bytes}' },
      argument: { name: 'path', value: id.slice(0, 3) },
    })
    expect(JSON.stringify(await complete.catch(() => ''))).not.toContain(id)
  }
})

test('the limits of results hold over both replicas, and a result survives the replica that made it', async () => {
  const [here, there] = [await connect(first, 'owner'), await connect(second, 'owner')]
  const uris: string[] = []
  for (const client of [here, there, here, there]) uris.push(linkIn(await long(client)))
  const left = await Promise.all(uris.map((uri) => failureOf(here.readResource({ uri }))))
  expect(left.map((told) => told === 'no failure')).toEqual([false, true, true, true])
  await first.stop('SIGKILL')
  expect(await failureOf(there.readResource({ uri: uris[2] ?? '' }))).toBe('no failure')
})

test('without the database, a tool answers with the beginning of a long result; stored results return with the database', async () => {
  const there = await connect(second, 'owner')
  const uri = linkIn(await long(there))
  await database.stop()
  try {
    const answer = await long(there)
    expect(answer.content[0]?.text).toContain('It could not be stored, because the store does not answer')
    expect(answer.content[0]?.text).toContain('Line 0 has straw0.')
    expect(answer.content.some(({ type }) => type === 'resource_link')).toBe(false)
    expect(await failureOf(there.readResource({ uri }))).not.toBe('no failure')
  } finally {
    await database.start()
  }
  await vi.waitFor(async () => expect(await failureOf(there.readResource({ uri }))).toBe('no failure'), {
    timeout: 60_000,
    interval: 50,
  })
})
