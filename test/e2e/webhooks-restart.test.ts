import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { addToken, revokeToken } from '../../src/server/auth/token-file.ts'
import { run, start as startCommand } from '../support/cli.ts'
import { eventClient, pollUntil } from '../support/event-client.ts'
import { isSigned, startEndpoint } from '../support/event-endpoint.ts'
import { until } from '../support/live.ts'
import { secretOf } from '../support/webhook-service.ts'

const cleanups: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** A configuration with webhooks over one folder, and a command that serves it, which can be killed and started again. */
async function begin(more: Readonly<Record<string, object>> = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'hikidashi-again-'))
  cleanups.push(() => rm(folder, { recursive: true, force: true }))
  const [home, notes, state] = ['home', 'home/notes', 'state'].map((name) => join(folder, name))
  if (home === undefined || notes === undefined || state === undefined) throw new Error('there is no folder')
  await mkdir(notes, { recursive: true })
  await writeFile(join(notes, 'a.md'), 'a')
  const tokens = join(home, 'tokens.json')
  const { token, stored } = await addToken(tokens, { roles: [] })
  const listen = `127.0.0.1:${await freePort()}`
  const config = {
    mounts: { 'file:///notes': { provider: 'files', root: 'notes' }, ...more },
    events: { webhooks: { allowAddresses: ['127.0.0.0/8', '::1'] } },
    http: { listen, auth: { tokens: 'tokens.json' } },
  }
  await writeFile(join(home, 'hikidashi.json'), JSON.stringify(config))
  const endpoint = await startEndpoint()
  cleanups.push(endpoint.close)
  const env = {
    XDG_STATE_HOME: state,
    NODE_EXTRA_CA_CERTS: join(import.meta.dirname, '../fixtures/tls/ca.pem'),
  }
  const url = `http://${listen}/mcp`
  const client = eventClient(url, token)
  /** Starts the server, and waits until it answers a client. */
  const serve = async (asking = client) => {
    const running = startCommand(['serve', '--config', join(home, 'hikidashi.json')], { cwd: home, env })
    cleanups.push(() => running.child.kill('SIGKILL'))
    await expect
      .poll(
        () =>
          asking.ask('events/list').then(
            ({ result }) => result !== undefined,
            () => false,
          ),
        { timeout: 30_000 },
      )
      .toBe(true)
    return running
  }
  const secret = secretOf()
  const asked = {
    name: 'resource.changed',
    arguments: { uri: 'file:///notes' },
    delivery: { mode: 'webhook', url: `${endpoint.url}/private-path`, secret },
  }
  return { url, home, env, notes, state, tokens, tokenId: stored.id, endpoint, client, serve, secret, asked }
}

/** Returns the files below a folder. */
async function filesIn(folder: string): Promise<readonly string[]> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true })
  return found.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name))
}

test('an event cursor continues after a restart, with the changes meanwhile', async () => {
  // A search needs a store.
  const { notes, client, serve } = await begin({ 'search://all': { provider: 'search', over: '*' } })
  const changes = { name: 'resource.changed', arguments: { uri: 'file:///notes' } }
  const first = await serve()
  const { cursor } = await client.poll(changes)
  await writeFile(join(notes, 'a.md'), 'before')
  const { cursor: after } = await pollUntil(client, changes, cursor, ({ length }) => length > 0)
  first.child.kill('SIGTERM')
  await first.ended
  await writeFile(join(notes, 'meanwhile.md'), 'm')
  await serve()
  const { events, truncated } = await client.poll({ ...changes, cursor: after })
  expect(truncated).toBe(false)
  expect(events.map(({ data }) => data)).toContainEqual({ uri: 'file:///notes/meanwhile.md', listed: true })
}, 120_000)

test('hikidashi events shows the deliveries of a subscription, without paths and secrets', async () => {
  const { home, env, notes, endpoint, client, serve, secret, asked } = await begin()
  const running = await serve()
  const { result } = await client.ask('events/subscribe', asked)
  await writeFile(join(notes, 'a.md'), 'b')
  await until(() => endpoint.events().length > 0, 30_000)
  const show = (...args: readonly string[]) => run(['events', ...args], { cwd: home, env })
  const id = String(result?.id)
  const columns = (text: string) =>
    text
      .trim()
      .split('\n')
      .map((line) => line.split(/ {2,}/).slice(1))
  const origin = new URL(endpoint.url).origin
  const delivered = [id, 'ok', 'event 1', 'resource.changed', origin]
  await expect.poll(async () => columns((await show(id)).out), { timeout: 30_000 }).toContainEqual(delivered)
  running.child.kill('SIGTERM')
  await running.ended
  const all = await show('--json')
  expect(JSON.parse(all.out)).toContainEqual(
    expect.objectContaining({ subscription: id, kind: 'event', outcome: 'ok' }),
  )
  for (const one of [secret, 'private-path', 'a.md']) expect(all.out).not.toContain(one)
  expect((await show('sub_other')).err).toContain('No delivery to sub_other is recorded.')
}, 120_000)

describe('subscriptions of webhooks after a restart', () => {
  test('get the changes or a gap, signed, after the server was killed; their secret and the path of their endpoint are not stored in plain text', async () => {
    const { notes, state, endpoint, client, serve, secret, asked } = await begin()
    const first = await serve()
    const { result } = await client.ask('events/subscribe', asked)
    expect(result?.id).toMatch(/^sub_/)
    await writeFile(join(notes, 'a.md'), 'b')
    await until(() => endpoint.events().length > 0, 30_000)
    first.child.kill('SIGKILL')
    await first.ended
    const files = await filesIn(state)
    const key = files.find((one) => one.endsWith('webhooks.key')) ?? ''
    expect((await stat(key)).mode & 0o777).toBe(0o600)
    for (const file of files) {
      expect((await stat(file)).mode & 0o077, file).toBe(0)
      const text = await readFile(file, 'latin1')
      for (const one of [secret, secret.slice('whsec_'.length), 'private-path']) expect(text, file).not.toContain(one)
    }
    await writeFile(join(notes, 'meanwhile.md'), 'm')
    await serve()
    // It is a gap if the log was not kept yet when the server was killed.
    const isTold = () => JSON.stringify(endpoint.events()).includes('file:///notes/meanwhile.md')
    await until(() => isTold() || endpoint.controls('gap').length > 0, 60_000)
    const before = endpoint.events().length
    await writeFile(join(notes, 'a.md'), 'c')
    await until(() => endpoint.events().length > before, 30_000)
    const last = endpoint.events().at(-1)
    expect(last?.body.data).toEqual({ uri: 'file:///notes/a.md', listed: false })
    expect(last?.headers['x-mcp-subscription-id']).toBe(result?.id)
    for (const one of endpoint.received) expect(isSigned(one, secret)).toBe(true)
    expect(endpoint.controls('verification')).toHaveLength(1)
    expect((await client.ask('events/unsubscribe', asked)).error).toBeUndefined()
  }, 120_000)

  test('end if their token was revoked meanwhile, and the endpoint is told so', async () => {
    const { url, notes, endpoint, client, serve, tokens, tokenId, asked } = await begin()
    const first = await serve()
    await client.ask('events/subscribe', asked)
    await writeFile(join(notes, 'a.md'), 'b')
    await until(() => endpoint.events().length > 0, 30_000)
    first.child.kill('SIGTERM')
    await first.ended
    await revokeToken(tokens, tokenId)
    const other = await addToken(tokens, { roles: [] })
    await serve(eventClient(url, other.token))
    await until(() => endpoint.controls('terminated').length > 0, 60_000)
    const observer = eventClient(url, other.token)
    const changes = { name: 'resource.changed' }
    const { cursor } = await observer.poll(changes)
    await writeFile(join(notes, 'a.md'), 'c')
    await pollUntil(observer, changes, cursor, ({ length }) => length > 0)
    expect([endpoint.controls('gap').length, endpoint.events().length]).toEqual([0, 1])
  }, 120_000)
})
