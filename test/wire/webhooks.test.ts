import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import type { Delivery } from '../../src/core/shared.ts'
import { addToken, revokeToken } from '../../src/server/auth/token-file.ts'
import type { AuditRecord } from '../../src/server/telemetry/audit.ts'
import { createWebhooks, type WebhookOptions } from '../../src/server/webhooks/index.ts'
import { eventClient } from '../support/event-client.ts'
import { type Behave, endpointCa, isSigned, startEndpoint } from '../support/event-endpoint.ts'
import { useHttp } from '../support/http-service.ts'
import { live, until } from '../support/live.ts'

const serve = useHttp()
const cleanups: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0)) await clean()
})

const secretOf = (bytes = 32) => `whsec_${randomBytes(bytes).toString('base64')}`
const local = ['127.0.0.0/8', '::1']

interface Setting extends Partial<WebhookOptions> {
  readonly behave?: Behave
}

/** A server with webhooks over one changing source, two callers, and an endpoint. */
async function start({ behave, ...options }: Setting = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'hikidashi-webhooks-'))
  const tokens = join(folder, 'tokens.json')
  const [one, two] = [await addToken(tokens, { roles: [] }), await addToken(tokens, { roles: [] })]
  const source = live({ a: '', b: '' })
  const catalog = createCatalog({ mounts: [{ address: 'x://m', provider: source }] })
  const endpoint = await startEndpoint(behave)
  const deliveries: Delivery[] = []
  const said: unknown[] = []
  const audited: AuditRecord[] = []
  const log = (...words: readonly unknown[]) => void said.push(words)
  const audit = (record: AuditRecord) => void audited.push(record)
  const webhooks = createWebhooks({
    ...{ allowAddresses: local, ca: endpointCa, retriesMs: [1, 1, 1], log, audit },
    onDelivery: (delivery) => deliveries.push(delivery),
    ...options,
  })
  const { dialect = 'sep' } = options
  const { url } = await serve({
    ...{ view: catalog.view, auth: { issuers: [], tokens }, log, audit },
    events: { dialect, webhooks },
  })
  cleanups.push(
    webhooks.close,
    endpoint.close,
    () => catalog.close(),
    () => rm(folder, { recursive: true, force: true }),
  )
  const client = eventClient(url, one.token)
  const secret = secretOf()
  const paramsOf = (more: object = {}) => ({
    name: 'resource.changed',
    arguments: { uri: 'x://m' },
    delivery: { mode: 'webhook', url: endpoint.url, secret },
    cursor: null,
    ...more,
  })
  return {
    ...{ source, endpoint, client, secret, deliveries, said, audited, paramsOf, tokens, webhooks },
    tokenId: one.stored.id,
    other: eventClient(url, two.token),
    subscribe: async (more: object = {}) => (await client.ask('events/subscribe', paramsOf(more))).result ?? {},
  }
}

describe('events/subscribe', () => {
  test('verifies the endpoint, answers with the grant, and delivers signed events', async () => {
    const { source, endpoint, client, secret, subscribe, deliveries } = await start()
    const before = Date.now()
    const answer = await subscribe({ ttlMs: 600_000, maxAgeMs: 300_000 })
    expect(answer).toMatchObject({
      id: expect.stringMatching(/^sub_[0-9a-f]{32}$/),
      refreshBefore: expect.any(String),
      cursor: expect.any(String),
      truncated: false,
    })
    const granted = Date.parse(String(answer.refreshBefore))
    expect(granted).toBeGreaterThanOrEqual(before + 599_000)
    expect(granted).toBeLessThanOrEqual(Date.now() + 600_000)
    expect(endpoint.received.map(({ body }) => body.type)).toEqual(['verification'])
    source.set('a', { text: 'x' })
    await until(() => endpoint.events().length > 0)
    const [event] = endpoint.events()
    expect(event?.body).toEqual({
      eventId: expect.any(String),
      name: 'resource.changed',
      timestamp: expect.any(String),
      data: { uri: 'x://m/a', listed: false },
      cursor: expect.any(String),
    })
    expect(event?.headers).toMatchObject({
      'content-type': 'application/json',
      'webhook-id': expect.stringMatching(/^msg_event_/),
      'webhook-timestamp': expect.stringMatching(/^\d{10}$/),
      'x-mcp-subscription-id': answer.id,
    })
    expect(endpoint.controls('verification')[0]?.headers['webhook-id']).toMatch(/^msg_verification_/)
    for (const one of endpoint.received) expect(isSigned(one, secret)).toBe(true)
    const polled = await client.poll({ name: 'resource.changed', cursor: String(answer.cursor) })
    expect(polled.events[0]?.eventId).toBe(event?.body.eventId)
    expect(deliveries.map(({ kind, outcome }) => `${kind} ${outcome}`)).toEqual(['verification ok', 'event ok'])
  })

  test('the sketch has the id of the event as the id of the message, and its own codes', async () => {
    const { source, endpoint, client, paramsOf, subscribe } = await start({ dialect: 'sketch' })
    await subscribe()
    source.set('a', { text: 'x' })
    await until(() => endpoint.events().length > 0)
    const [event] = endpoint.events()
    expect(event?.headers['webhook-id']).toBe(event?.body.eventId)
    const { error } = await client.ask('events/unsubscribe', paramsOf({ arguments: { uri: 'x://none' } }))
    expect(error).toMatchObject({ code: -32011, data: { kind: 'subscription' } })
  })

  test('again refreshes the same subscription, and signs with both secrets for a while', async () => {
    const { source, endpoint, secret, subscribe, paramsOf } = await start()
    const first = await subscribe()
    const next = secretOf(64)
    const { delivery } = paramsOf()
    const second = await subscribe({ arguments: { uri: 'x://m' }, delivery: { ...delivery, secret: next } })
    expect(second).toMatchObject({ id: first.id, deliveryStatus: { active: true, lastError: null } })
    expect(endpoint.controls('verification')).toHaveLength(1)
    source.set('a', { text: 'x' })
    await until(() => endpoint.events().length > 0)
    expect(endpoint.events()).toHaveLength(1)
    for (const one of endpoint.events()) {
      expect(isSigned(one, secret)).toBe(true)
      expect(isSigned(one, next)).toBe(true)
    }
  })

  test('is another subscription for other arguments, and for another caller, who verifies anew', async () => {
    const { endpoint, other, subscribe, paramsOf } = await start()
    const ids = [await subscribe(), await subscribe({ arguments: {} })].map(({ id }) => id)
    ids.push((await other.ask('events/subscribe', paramsOf())).result?.id)
    expect(new Set(ids).size).toBe(3)
    expect(endpoint.controls('verification')).toHaveLength(2)
  })

  test('grants at most the limit, and never no end', async () => {
    const { subscribe } = await start({ maxLifetimeMs: 120_000 })
    for (const ttlMs of [undefined, null, 10 ** 12, 1]) {
      const granted = Date.parse(String((await subscribe({ ttlMs })).refreshBefore)) - Date.now()
      expect(granted, String(ttlMs)).toBeLessThanOrEqual(120_000)
      expect(granted, String(ttlMs)).toBeGreaterThan(50_000)
    }
  })

  test.each([
    ['no secret', { secret: undefined }, -32602],
    ['a secret without its prefix', { secret: randomBytes(32).toString('base64') }, -32602],
    ['a secret of 23 bytes', { secret: secretOf(23) }, -32602],
    ['a secret of 65 bytes', { secret: secretOf(65) }, -32602],
    ['a URL that is not https', { url: 'http://localhost/hook' }, -32602],
    ['a URL that is none', { url: 'hook' }, -32602],
    ['a URL with a password', { url: 'https://u:p@localhost/hook' }, -32602],
    ['another way of delivery', { mode: 'push' }, -32026],
  ])('refuses %s, and repeats no secret', async (_, more, code) => {
    const { client, secret, endpoint, paramsOf } = await start()
    const { delivery } = paramsOf()
    const { error } = await client.ask('events/subscribe', paramsOf({ delivery: { ...delivery, ...more } }))
    expect(error?.code).toBe(code)
    const given = { secret, ...more }.secret
    expect(JSON.stringify(error)).not.toContain(String(given).slice(6, 30))
    expect(endpoint.received).toEqual([])
  })

  test('refuses callers without authentication, and servers without webhooks', async () => {
    const { paramsOf, webhooks } = await start()
    const catalog = createCatalog({ mounts: [{ address: 'x://m', provider: live({ a: '' }) }] })
    cleanups.push(() => catalog.close())
    const open = eventClient((await serve({ view: catalog.view, events: { webhooks } })).url)
    for (const method of ['events/subscribe', 'events/unsubscribe'])
      expect((await open.ask(method, paramsOf())).error).toMatchObject({ code: -32024, message: 'Forbidden' })
    const without = eventClient((await serve({ view: catalog.view })).url)
    expect((await without.ask('events/subscribe', paramsOf())).error).toMatchObject({
      code: -32026,
      data: { feature: 'deliveryMode', value: 'webhook' },
    })
  })

  test('a limit of subscriptions is an error of the extension', async () => {
    const { client, subscribe, paramsOf } = await start({ maxPerPrincipal: 1 })
    await subscribe()
    expect((await client.ask('events/subscribe', paramsOf({ arguments: {} }))).error).toMatchObject({
      code: -32025,
      data: { limit: 'subscriptions', max: 1 },
    })
    expect(await subscribe()).toMatchObject({ id: expect.any(String) })
  })

  test.each([
    ['does not repeat the challenge', () => ({ status: 200 }), 'challenge_failed'],
    ['repeats another one', () => ({ status: 200, body: '{"challenge":"other"}' }), 'challenge_failed'],
    ['refuses it', () => ({ status: 403 }), 'http_4xx'],
    ['fails', () => ({ status: 500 }), 'http_5xx'],
  ] as const)('an endpoint that %s gets no events', async (_, behave, reason) => {
    const { source, client, endpoint, paramsOf } = await start({ behave })
    const { error } = await client.ask('events/subscribe', paramsOf())
    expect(error).toEqual({ code: -32027, message: 'CallbackEndpointError', data: { reason } })
    const { cursor } = await client.poll({ name: 'resource.changed' })
    source.set('a', { text: 'x' })
    for (;;) if ((await client.poll({ name: 'resource.changed', cursor })).events.length > 0) break
    expect(endpoint.received).toHaveLength(1)
  })
})

describe('delivery', () => {
  test('tries again with the same id, and stops after its attempts until it is refreshed', async () => {
    let fails = true
    const behave: Behave = ({ body }) => (body.type === undefined && fails ? { status: 503 } : undefined)
    const { source, endpoint, subscribe } = await start({ behave })
    await subscribe()
    source.set('a', { text: 'x' })
    await until(() => endpoint.events().length === 4)
    expect(new Set(endpoint.events().map(({ headers }) => headers['webhook-id'])).size).toBe(1)
    source.set('b', { text: 'x' })
    fails = false
    const isSuspended = async () => {
      const { deliveryStatus } = await subscribe()
      return (deliveryStatus as { active: boolean }).active === false ? deliveryStatus : undefined
    }
    let status = await isSuspended()
    while (status === undefined) status = await isSuspended()
    expect(status).toMatchObject({ active: false, lastError: 'http_5xx', failedSince: expect.any(String) })
    await until(() => endpoint.events().some(({ body }) => JSON.stringify(body).includes('x://m/b')))
    const uris = endpoint.events().map(({ body }) => (body.data as { uri: string }).uri)
    expect(uris.slice(-2)).toEqual(['x://m/a', 'x://m/b'])
  })

  test('410 ends a subscription', async () => {
    const behave: Behave = ({ body }) => (body.type === undefined ? { status: 410 } : undefined)
    const { source, client, endpoint, subscribe, paramsOf } = await start({ behave })
    await subscribe()
    source.set('a', { text: 'x' })
    await until(() => endpoint.events().length > 0)
    const ended = async () => (await client.ask('events/unsubscribe', paramsOf())).error?.code === -32023
    while (!(await ended())) expect(endpoint.events()).toHaveLength(1)
  })

  test('413 leaves out the event, and goes on', async () => {
    const behave: Behave = ({ raw }) => (raw.includes('x://m/a') ? { status: 413 } : undefined)
    const { source, endpoint, subscribe } = await start({ behave })
    await subscribe()
    source.set('a', { text: 'x' })
    source.set('b', { text: 'x' })
    await until(() => endpoint.events().some(({ raw }) => raw.includes('x://m/b')))
    expect(endpoint.events()).toHaveLength(2)
  })

  test('tells a gap', async () => {
    const { source, endpoint, secret, subscribe } = await start()
    await subscribe()
    source.tell({})
    await until(() => endpoint.controls('gap').length > 0)
    const [gap] = endpoint.controls('gap')
    expect(gap?.body).toEqual({ type: 'gap', cursor: expect.any(String) })
    expect(gap?.headers['webhook-id']).toMatch(/^msg_gap_/)
    expect(gap !== undefined && isSigned(gap, secret)).toBe(true)
  })

  test('an unknown position is told in the answer', async () => {
    const { subscribe } = await start()
    expect(await subscribe({ cursor: 'of another run' })).toMatchObject({ truncated: true, cursor: expect.any(String) })
  })

  test('a revoked token ends a subscription, and tells the endpoint', async () => {
    const { source, endpoint, subscribe, tokens, tokenId } = await start()
    await subscribe()
    await revokeToken(tokens, tokenId)
    await until(() => endpoint.controls('terminated').length > 0)
    expect(endpoint.controls('terminated')[0]?.body).toMatchObject({
      type: 'terminated',
      error: { code: -32024, message: 'Forbidden' },
    })
    source.set('a', { text: 'x' })
    expect(endpoint.events()).toEqual([])
  })

  test('after an unsubscription there are no more events', async () => {
    const { source, client, endpoint, subscribe, paramsOf } = await start()
    await subscribe()
    const { url } = paramsOf().delivery
    const params = { name: 'resource.changed', arguments: { uri: 'x://m' }, delivery: { url } }
    expect(await client.ask('events/unsubscribe', params)).toMatchObject({ result: {} })
    const { cursor } = await client.poll({ name: 'resource.changed' })
    source.set('a', { text: 'x' })
    for (;;) if ((await client.poll({ name: 'resource.changed', cursor })).events.length > 0) break
    expect(endpoint.events()).toEqual([])
  })

  test('the secret and the path of the endpoint are in no log, no record and no answer', async () => {
    const { source, endpoint, secret, subscribe, said, audited, deliveries } = await start()
    const answers = [await subscribe(), await subscribe()]
    source.set('a', { text: 'x' })
    await until(() => deliveries.some(({ kind }) => kind === 'event'))
    expect(audited).toContainEqual(
      expect.objectContaining({ verb: 'webhook', outcome: 'ok', uri: new URL(endpoint.url).origin }),
    )
    const all = JSON.stringify([answers, said, audited, deliveries, endpoint.received])
    expect(all).not.toContain(secret.slice(6))
    expect(JSON.stringify([answers, said, audited, deliveries])).not.toContain('/hook')
  })
})

describe('attacks', () => {
  test.each([
    ['an address of this machine', 'https://127.0.0.1/hook'],
    ['an address of a private network', 'https://10.0.0.1/hook'],
    ['an address of a metadata service', 'https://169.254.169.254/latest'],
    ['an IPv6 address that embeds one', 'https://[::ffff:127.0.0.1]/hook'],
    ['a name that resolves to this machine', 'https://localhost/hook'],
    ['the name of a metadata service', 'https://metadata.google.internal/'],
    ['the port of a database', 'https://example.org:5432/'],
  ])('nothing is sent to %s', async (_, url) => {
    const { client, endpoint, paramsOf } = await start({ allowAddresses: [] })
    const { port } = endpoint
    const target = /:\d+\//.test(url) || url.includes('metadata') ? url : url.replace('/hook', `:${port}/hook`)
    const params = paramsOf({ delivery: { ...paramsOf().delivery, url: target } })
    const { error } = await client.ask('events/subscribe', params)
    expect(error).toMatchObject({ code: -32027, data: { reason: 'connection_refused' } })
    expect(endpoint.received).toEqual([])
  })

  test('a name that changes after the verification is checked at each delivery', async () => {
    let address = '127.0.0.1'
    const { source, endpoint, deliveries, subscribe } = await start({
      allowAddresses: ['127.0.0.1'],
      resolve: (_, done) => done(null, [{ address, family: 4 }]),
    })
    await subscribe()
    address = '127.0.0.2'
    source.set('a', { text: 'x' })
    await until(() => deliveries.some(({ kind }) => kind === 'event'))
    expect(deliveries.find(({ kind }) => kind === 'event')).toMatchObject({ outcome: 'connection_refused' })
    expect(endpoint.events()).toEqual([])
  })

  test('a redirect is not followed', async () => {
    const target = await startEndpoint()
    cleanups.push(target.close)
    const { source, endpoint, subscribe } = await start({
      behave: ({ body }) => (body.type === undefined ? { status: 307, location: target.url } : undefined),
    })
    await subscribe()
    source.set('a', { text: 'x' })
    await until(() => endpoint.events().length > 1)
    expect(target.received).toEqual([])
  })

  test('a victim cannot be flooded with verifications', async () => {
    const { client, endpoint, paramsOf } = await start({ behave: () => ({ status: 200 }) })
    const codes: (number | undefined)[] = []
    for (let i = 0; i < 15; i++) {
      const delivery = { ...paramsOf().delivery, url: `${endpoint.url}?${i}` }
      codes.push((await client.ask('events/subscribe', paramsOf({ delivery }))).error?.code)
    }
    expect(endpoint.received).toHaveLength(10)
    expect(codes.slice(10)).toEqual(Array.from({ length: 5 }, () => -32025))
  })

  test('a challenge is good for one verification', async () => {
    let first: unknown
    const behave: Behave = ({ body }) => {
      first ??= body.challenge
      return { status: 200, body: JSON.stringify({ challenge: first }) }
    }
    const { client, endpoint, other, paramsOf, subscribe } = await start({ behave })
    expect(await subscribe()).toMatchObject({ id: expect.any(String) })
    expect((await other.ask('events/subscribe', paramsOf())).error?.data).toEqual({ reason: 'challenge_failed' })
    expect(endpoint.received).toHaveLength(2)
    expect((await client.ask('events/unsubscribe', paramsOf())).error).toBeUndefined()
  })

  test('an endless answer of an endpoint is not read to its end', async () => {
    const { subscribe, deliveries, source } = await start({
      behave: ({ body }) => (body.type === undefined ? { status: 200, body: 'x'.repeat(5_000_000) } : undefined),
    })
    await subscribe()
    source.set('a', { text: 'x' })
    await until(() => deliveries.some(({ kind, outcome }) => kind === 'event' && outcome === 'ok'))
  })
})
