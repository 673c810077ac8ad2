import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { run } from '../support/cli.ts'
import { type DatabaseProxy, startDatabaseProxy } from '../support/database-proxy.ts'
import { type EraClient, eras } from '../support/era-clients.ts'
import { createFolder } from '../support/folder.ts'
import { type Postgres, startPostgres, startStandby } from '../support/postgres.ts'
import { type ItemsApi, listenTo, type Replica, startItemsApi, startReplica } from '../support/replicas.ts'
import { analysisOf } from '../support/results.ts'

/** Two replicas whose database is killed, and replaced by its synchronous standby behind the same address. */

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })
const patience = { timeout: 120_000, interval: 50 }

const folder = createFolder()
const config = join(folder.outside, 'hikidashi.json')
const place = { cwd: folder.outside }
const names = Array.from({ length: 20 }, (_, at) => `i${at}`)
const uriOf = (name: string) => `items://api/items/${name}`
const clients: EraClient[] = []
const replicas: Replica[] = []
let primary: Postgres
let standby: Postgres
let address: DatabaseProxy
let api: ItemsApi
let env: Record<string, string>

beforeAll(async () => {
  primary = await startPostgres()
  standby = await startStandby(primary)
  address = await startDatabaseProxy(primary.port)
  api = await startItemsApi()
  for (const name of names) api.items.set(name, 'first')
  const content = {
    mounts: {
      'items://api': {
        ...{ provider: 'api', url: api.url, allowAddresses: ['127.0.0.1'], insecure: true },
        ...{ poll: '1s', routes: [{ template: 'items/{id}', list: { from: 'items', title: '/title' } }] },
      },
      'wallbounce://project': { provider: 'results' },
    },
    replicas: true,
    store: { postgres: { env: 'STORE' } },
    cursorSecret: { env: 'CURSORS' },
    http: { listen: '127.0.0.1:0', limits: { newConnections: 0 } },
  }
  writeFileSync(config, JSON.stringify(content))
  env = { STORE: address.through(primary.url), CURSORS: 'a secret of these tests, long enough' }
  for (const name of ['a', 'b']) replicas.push(await startReplica(name, config, { ...place, env }))
})
afterAll(async () => {
  await Promise.all(clients.map((client) => client.close().catch(() => {})))
  await Promise.all(replicas.map((replica) => replica.stop()))
  await api?.close()
  await address?.close()
  await primary?.remove()
  await standby?.remove()
  folder.remove()
})

const connect = async (revision: string, url: string): Promise<EraClient> => {
  const era = eras.find((one) => one.revision === revision)
  const { client } = (await era?.connect({ url })) ?? expect.fail('the era is missing')
  clients.push(client)
  return client
}

test('a failover to a synchronous standby loses no change and no acknowledged result', async () => {
  const uris = names.map(uriOf)
  const listening = await Promise.all(
    replicas.flatMap(({ url }) =>
      ['2025-11-25', '2026-07-28'].map(async (revision) => {
        const client = await connect(revision, url)
        return { client, told: await listenTo(client, revision, uris) }
      }),
    ),
  )
  const isTold = async (some: readonly string[]) => {
    for (const { told } of listening)
      await vi.waitFor(() => expect(told).toEqual(expect.arrayContaining([...some])), patience)
  }
  const readsNewest = async () => {
    for (const { client } of listening)
      for (const name of names) {
        const text = JSON.stringify(await client.readResource({ uri: uriOf(name) }))
        expect(text).toContain(api.items.get(name))
      }
  }
  const put = (question: string) =>
    run(['results', 'put', '-', '--config', config], { ...place, env, input: JSON.stringify(analysisOf(question)) })

  for (const name of names.slice(0, 5)) api.items.set(name, 'before')
  await isTold(uris.slice(0, 5))
  expect(await put('Is it kept by both?')).toMatchObject({ code: 0 })

  // The primary dies while changes go on, and the standby is promoted behind the same address.
  await primary.kill()
  for (const name of names.slice(5, 10)) api.items.set(name, 'meanwhile')
  await standby.run('select pg_promote(true)')
  for (const name of names.slice(10, 15)) api.items.set(name, 'promoted')
  address.switchTo(standby.port)
  for (const name of names.slice(15)) api.items.set(name, 'after')

  await isTold(uris)
  await readsNewest()
  expect(await put('Is it written to the new one?')).toMatchObject({ code: 0 })
  const kept = async (client: EraClient) =>
    JSON.stringify(await client.readResource({ uri: 'wallbounce://project/recent' }))
  for (const { client } of listening) {
    await vi.waitFor(async () => expect(await kept(client)).toContain('Is it written to the new one?'), patience)
    expect(await kept(client)).toContain('Is it kept by both?')
  }

  // The log of the new primary carries what comes next.
  for (const { told } of listening) told.length = 0
  for (const name of names) api.items.set(name, 'on the new one')
  await isTold(uris)
  await readsNewest()
  const [found] = await standby.run(
    `select (select count(*)::int from hikidashi.rows r join hikidashi.collections c on c.id = r.collection
       where c.name = 'changes') as told, pg_is_in_recovery() as standby`,
  )
  expect(found).toMatchObject({ standby: false })
  expect(Number(found?.told)).toBeGreaterThan(0)
})
