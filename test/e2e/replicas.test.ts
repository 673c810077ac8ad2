import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { run } from '../support/cli.ts'
import { authority } from '../support/database-tls.ts'
import { type EraClient, eras } from '../support/era-clients.ts'
import { eventClient, pollUntil, type WireEvent } from '../support/event-client.ts'
import { createFolder } from '../support/folder.ts'
import { writeOwnSource } from '../support/own-source.ts'
import { type Postgres, startPostgres } from '../support/postgres.ts'
import { type ItemsApi, listenTo, type Replica, startItemsApi, startReplica, withClock } from '../support/replicas.ts'
import { requires } from '../support/require.ts'
import { analysisOf } from '../support/results.ts'
import { freePort, hasProxy, type ReverseProxy, startProxyOfReplicas } from '../support/reverse-proxy.ts'

/** Three processes with one configuration and one PostgreSQL server, as docs/operations.md describes them. */

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })
const patience = { timeout: 60_000, interval: 50 }

const folder = createFolder()
const config = join(folder.outside, 'hikidashi.json')
let database: Postgres
let api: ItemsApi
const replicas: Replica[] = []
const clients: EraClient[] = []
let env: Record<string, string>

const [, , , era2025, , era2026] = eras
if (era2025 === undefined || era2026 === undefined) throw new Error('an era is missing')
const item = 'items://api/items/one'
const place = { cwd: folder.outside }
const clockOf = (name: string) => join(folder.outside, `clock-${name}`)

const replicaAt = (at: number): Replica => {
  const replica = replicas[at]
  if (replica === undefined) throw new Error(`there is no replica ${at}`)
  return replica
}

beforeAll(async () => {
  database = await startPostgres()
  api = await startItemsApi()
  api.items.set('one', 'first')
  for (let at = 0; at < 9; at++) folder.write({ [`shared/${at}.md`]: `# ${at}\n` })
  const content = {
    mounts: {
      'docs://shared': { provider: 'files', root: join(folder.root, 'shared') },
      'items://api': {
        ...{ provider: 'api', url: api.url, allowAddresses: ['127.0.0.1'], insecure: true },
        ...{ poll: '1s', routes: [{ template: 'items/{id}', list: { from: 'items', title: '/title' } }] },
      },
      'notes://me': { provider: './notebook.js', file: 'notebook.json', poll: '1s' },
      'wallbounce://project': { provider: 'results' },
    },
    pages: { first: 2, most: 2 },
    replicas: true,
    store: { postgres: { env: 'STORE' } },
    cursorSecret: { env: 'CURSORS' },
    http: { listen: '127.0.0.1:0', allowedHosts: ['localhost'], limits: { newConnections: 0 } },
  }
  writeOwnSource(folder.outside)
  writeFileSync(config, JSON.stringify(content))
  env = { STORE: database.url, CURSORS: 'a secret of these tests, long enough' }
  for (const name of ['a', 'b', 'c'])
    replicas.push(await startReplica(name, config, { ...place, env: { ...env, ...withClock(clockOf(name)) } }))
})
afterAll(async () => {
  await Promise.all(clients.map((client) => client.close().catch(() => {})))
  await Promise.all(replicas.map((replica) => replica.stop()))
  await api?.close()
  await database?.remove()
  folder.remove()
})

const connect = async (era: typeof era2025, url: string): Promise<EraClient> => {
  const { client } = await era.connect({ url })
  clients.push(client)
  return client
}

/** Connects a client that listens, and returns the URIs that it is told. */
const hear = async (era: typeof era2025, url: string, uris: readonly string[]): Promise<string[]> =>
  listenTo(await connect(era, url), era.revision, uris)

describe('three replicas', () => {
  test('accept the cursors of each other, and their pages together are the whole list', async () => {
    const sessions = await Promise.all(replicas.map(({ url }) => connect(era2025, url)))
    const uris: string[] = []
    let cursor: string | undefined
    for (let at = 0; at === 0 || cursor !== undefined; at++) {
      const page = await sessions[at % 3]?.listResources(...(cursor === undefined ? [] : [{ cursor }]))
      uris.push(...(page?.resources.map(({ uri }) => uri) ?? []))
      cursor = page?.nextCursor
    }
    const docs = Array.from({ length: 9 }, (_, at) => `docs://shared/${at}.md`)
    expect(uris.filter((uri) => uri.startsWith('docs:'))).toEqual(docs)
    expect(uris).toContain(item)
    expect(new Set(uris).size).toBe(uris.length)
  })

  test('each know only their own sessions, whose ids begin with the name of the replica', async () => {
    const initialize = {
      ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'a', version: '1' } },
    }
    const post = (at: number, body: object, headers: Record<string, string> = {}) =>
      fetch(replicaAt(at).url, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers },
        body: JSON.stringify(body),
      })
    const begun = await post(1, initialize)
    const id = begun.headers.get('mcp-session-id') ?? ''
    await begun.text()
    expect(id).toMatch(/^b\.[0-9a-f-]{36}$/)
    const headers = { 'Mcp-Session-Id': id, 'Mcp-Protocol-Version': '2025-11-25' }
    const answers = [0, 1, 2].map((at) => post(at, { jsonrpc: '2.0', id: 2, method: 'ping' }, headers))
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([404, 200, 404])
  })

  test('all report a change of a polled source, while only one of them polls', async () => {
    const heard = await Promise.all(
      replicas.map(async ({ url }, at) => hear(at === 1 ? era2025 : era2026, url, [item])),
    )
    api.items.set('one', 'second')
    for (const uris of heard) await vi.waitFor(() => expect(uris).toContain(item), patience)
    // Polls of one replica are at least 0.8 s apart, so two polls within less show that there are two.
    const asked = api.lists
    const since = performance.now()
    await vi.waitFor(() => expect(api.lists - asked).toBeGreaterThanOrEqual(4), patience)
    expect(performance.now() - since).toBeGreaterThan(3 * 800)
  })

  test('all report a change of an external source, and all read it', async () => {
    const note = 'notes://me/Shopping-list.md'
    const clients = await Promise.all(replicas.map(({ url }) => connect(era2026, url)))
    const heard = await Promise.all(clients.map((client) => listenTo(client, era2026.revision, [note])))
    writeFileSync(
      join(folder.outside, 'notebook.json'),
      JSON.stringify({ 'Shopping list': { text: 'Quinces, and nothing else' } }),
    )
    for (const uris of heard) await vi.waitFor(() => expect(uris).toContain(note), patience)
    for (const client of clients)
      expect(JSON.stringify((await client.readResource({ uri: note })).contents)).toContain('Quinces')
  })

  test('give no older content than a notification announced, at any replica', async () => {
    const [first, ...others] = await Promise.all(replicas.map(({ url }) => connect(era2026, url)))
    if (first === undefined) throw new Error('there is a first')
    const told = await listenTo(first, era2026.revision, [item])
    const textAt = async (client: EraClient) => JSON.stringify((await client.readResource({ uri: item })).contents)
    let handled = 0
    for (const version of ['v1', 'v2', 'v3']) {
      api.items.set('one', version)
      for (let here = ''; !here.includes(version); ) {
        // Their copies are as old as can be: they were made just before the news.
        for (const other of others) await textAt(other)
        await vi.waitFor(() => expect(told.length).toBeGreaterThan(handled), patience)
        handled = told.length
        here = await textAt(first)
        if (here.includes(version)) for (const other of others) expect(await textAt(other)).toContain(version)
      }
    }
  })

  test('all report a new analysis that hikidashi results put has stored', async () => {
    const uri = 'wallbounce://project/analyses'
    const heard = await Promise.all(
      replicas.map(async ({ url }) => {
        const client = await connect(era2026, url)
        const told: string[] = []
        client.fallbackNotificationHandler = async ({ method }) => void told.push(method)
        await client.listen?.({ resourcesListChanged: true })
        return told
      }),
    )
    const put = await run(['results', 'put', '-', '--config', config], {
      ...place,
      env,
      input: JSON.stringify(analysisOf('Is it told?')),
    })
    expect(put).toMatchObject({ code: 0 })
    for (const told of heard)
      await vi.waitFor(() => expect(told, uri).toContain('notifications/resources/list_changed'), patience)
  })

  test.each([86_400_000, -86_400_000])(
    'report changes and accept cursors also after the clock of one jumps by %i ms',
    async (jump) => {
      const sessions = await Promise.all(replicas.map(({ url }) => connect(era2025, url)))
      const heard = await Promise.all(sessions.map((client) => listenTo(client, era2025.revision, [item])))
      for (const client of sessions) await client.readResource({ uri: item })
      writeFileSync(clockOf('a'), String(jump))
      const told = execFileSync(process.execPath, ['-p', 'Date.now() + new Date().getTime()'], {
        env: { ...process.env, ...withClock(clockOf('a')) },
        encoding: 'utf8',
      })
      expect(Math.abs(Number(told) / 2 - Date.now() - jump)).toBeLessThan(3600_000)
      try {
        for (const text of ['after the jump', 'and again']) {
          for (const uris of heard) uris.length = 0
          api.items.set('one', text)
          for (const uris of heard) await vi.waitFor(() => expect(uris).toContain(item), patience)
          for (const client of sessions)
            await vi.waitFor(
              async () => expect(JSON.stringify(await client.readResource({ uri: item }))).toContain(text),
              patience,
            )
        }
        const [first] = await Promise.all(sessions.map((client) => client.listResources()))
        const next = await sessions[1]?.listResources({ cursor: first?.nextCursor ?? '' })
        expect(next?.resources.length).toBeGreaterThan(0)
      } finally {
        writeFileSync(clockOf('a'), '0')
      }
    },
  )

  requires(
    'nginx',
    hasProxy('nginx'),
    'nginx is not installed',
  )('behind nginx', () => {
    let proxy: ReverseProxy
    beforeAll(async () => {
      vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
      const ports = replicas.map(({ port }) => port)
      proxy = await startProxyOfReplicas(await freePort(), ports)
    })
    afterAll(async () => {
      await proxy.close()
      vi.unstubAllEnvs()
    })

    test('pass the checks of hikidashi doctor --url', async () => {
      const file = join(folder.outside, 'ca.pem')
      writeFileSync(file, authority)
      const trusting = { ...env, NODE_EXTRA_CA_CERTS: file, NODE_TLS_REJECT_UNAUTHORIZED: '1' }
      const report = await run(['doctor', '--url', `${proxy.url}/mcp`, '--json'], { ...place, env: trusting })
      const { ok, checks } = JSON.parse(report.out) as { ok: boolean; checks: { check: string; status: string }[] }
      expect(checks.filter(({ status }) => status === 'failed')).toEqual([])
      expect({ ok, code: report.code }).toEqual({ ok: true, code: 0 })
      const looked = checks.map(({ check }) => check)
      expect(looked).toEqual(expect.arrayContaining(['connect', 'list', 'read', 'subscribe', 'unknown', 'clock']))
    })

    test.each(eras.slice(1))(
      'let twelve clients of $name read a resource, and notify them of its change',
      async (era) => {
        const some = await Promise.all(Array.from({ length: 12 }, () => connect(era, `${proxy.url}/mcp`)))
        const uri = 'docs://shared/1.md'
        const heard = await Promise.all(some.map((client) => listenTo(client, era.revision, [uri])))
        for (const client of some) expect((await client.readResource({ uri })).contents).toHaveLength(1)
        folder.write({ 'shared/1.md': `# for ${era.name}\n` })
        for (const uris of heard) await vi.waitFor(() => expect(uris).toContain(uri), patience)
      },
    )

    test('let a client that polls events continue at its replica, and no change is lost', async () => {
      const pollers = Array.from({ length: 4 }, (_, at) => eventClient(`${proxy.url}/mcp`, `a caller ${at}`))
      const params = { name: 'resource.changed', arguments: { uri: 'docs://shared' } }
      for (const client of pollers) {
        let { cursor } = await client.poll({ ...params, cursor: null })
        for (const name of ['2.md', '3.md', '4.md']) {
          folder.write({ [`shared/${name}`]: `# ${randomUUID()}\n` })
          // Several replicas see a change, so it may be told more than once.
          const hasTold = (events: readonly WireEvent[]) =>
            events.some(({ data }) => data.uri === `docs://shared/${name}`)
          const { truncated, cursor: next } = await pollUntil(client, params, cursor, hasTold)
          expect(truncated).toBe(false)
          cursor = next
        }
      }
    })
  })

  test('report a gap for an event cursor of another replica', async () => {
    const [one, other] = [replicaAt(0), replicaAt(1)].map(({ url }) => eventClient(url))
    const params = { name: 'resource.changed', arguments: { uri: 'docs://shared' } }
    const position = await one?.poll({ ...params, cursor: null })
    await other?.poll({ ...params, cursor: null })
    expect(await other?.poll({ ...params, cursor: position?.cursor })).toMatchObject({ events: [], truncated: true })
    // Replicas keep no log, which each would overwrite.
    const kept = await database.run(`select key from hikidashi.rows where key like '%/changes'`)
    expect(kept).toEqual([])
  })

  // These end replicas, so they are the last.
  test('lose no change when the database stands still and returns', async () => {
    const heard = await Promise.all(replicas.map(async ({ url }) => hear(era2026, url, [item, 'docs://shared/2.md'])))
    database.freeze()
    try {
      folder.write({ 'shared/2.md': '# while it stands still\n' })
      for (const uris of heard) await vi.waitFor(() => expect(uris).toContain('docs://shared/2.md'), patience)
    } finally {
      database.thaw()
    }
    api.items.set('one', 'after the freeze')
    for (const uris of heard) await vi.waitFor(() => expect(uris).toContain(item), patience)
  })

  test('lose no change when the database is killed and returns', async () => {
    const heard = await Promise.all(replicas.map(async ({ url }) => hear(era2026, url, [item])))
    await database.kill()
    api.items.set('one', 'while it is gone')
    await database.start()
    for (const uris of heard) await vi.waitFor(() => expect(uris).toContain(item), patience)
    const client = await connect(era2026, replicaAt(2).url)
    expect(JSON.stringify(await client.readResource({ uri: item }))).toContain('while it is gone')
  })

  test('report each change while they are killed one after the other', async () => {
    const heard = await Promise.all(replicas.map(async ({ url }) => hear(era2026, url, [item])))
    for (const at of [0, 1]) {
      await replicaAt(at).stop('SIGKILL')
      const left = heard.slice(at + 1)
      for (const uris of left) uris.length = 0
      api.items.set('one', `without ${at}`)
      for (const uris of left) await vi.waitFor(() => expect(uris).toContain(item), patience)
    }
    expect((await fetch(new URL('/readyz', replicaAt(2).url))).status).toBe(200)
  })
})
