import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import { revokeToken } from '../../src/server/auth/token-file.ts'
import { eventClient } from '../support/event-client.ts'
import { type Behave, isSigned } from '../support/event-endpoint.ts'
import { live, until } from '../support/live.ts'
import { secretOf, useWebhooks } from '../support/webhook-service.ts'

const { start, serve, cleanups } = useWebhooks()

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

  test('sends no known secret in a path to the endpoint', async () => {
    const clean = (text: string) => text.replaceAll('hunter2hunter2', '[redacted]')
    const { source, endpoint, subscribe } = await start({ clean })
    await subscribe()
    source.set('hunter2hunter2', { text: 'x' })
    await until(() => endpoint.events().length > 0)
    expect(endpoint.events()[0]?.body.data).toEqual({ uri: 'x://m/[redacted]', listed: true })
  })

  test('in the earlier draft ("sketch") has the id of the event as the id of the message, and its own error codes', async () => {
    const { source, endpoint, client, paramsOf, subscribe } = await start({ dialect: 'sketch' })
    await subscribe()
    source.set('a', { text: 'x' })
    await until(() => endpoint.events().length > 0)
    const [event] = endpoint.events()
    expect(event?.headers['webhook-id']).toBe(event?.body.eventId)
    const { error } = await client.ask('events/unsubscribe', paramsOf({ arguments: { uri: 'x://none' } }))
    expect(error).toMatchObject({ code: -32011, data: { kind: 'subscription' } })
  })

  test('refreshes the subscription if it is called again with another secret, and then signs with both secrets', async () => {
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

  test('creates another subscription for other arguments or another caller, and verifies the endpoint once for each caller', async () => {
    const { endpoint, other, subscribe, paramsOf } = await start()
    const ids = [await subscribe(), await subscribe({ arguments: {} })].map(({ id }) => id)
    ids.push((await other.ask('events/subscribe', paramsOf())).result?.id)
    expect(new Set(ids).size).toBe(3)
    expect(endpoint.controls('verification')).toHaveLength(2)
  })

  test('grants a lifetime within the limit, and never an endless one', async () => {
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
    ['an invalid URL', { url: 'hook' }, -32602],
    ['a URL with a password', { url: 'https://u:p@localhost/hook' }, -32602],
    ['an unknown delivery mode', { mode: 'push' }, -32026],
  ])('refuses %s, and repeats no secret', async (_, more, code) => {
    const { client, secret, endpoint, paramsOf } = await start()
    const { delivery } = paramsOf()
    const { error } = await client.ask('events/subscribe', paramsOf({ delivery: { ...delivery, ...more } }))
    expect(error?.code).toBe(code)
    const given = { secret, ...more }.secret
    expect(JSON.stringify(error)).not.toContain(String(given).slice(6, 30))
    expect(endpoint.received).toEqual([])
  })

  test('is refused for callers without authentication, and by servers without webhooks', async () => {
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

  test('refuses more subscriptions than the limit, with the error of the Events extension', async () => {
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
    ['repeats another challenge', () => ({ status: 200, body: '{"challenge":"other"}' }), 'challenge_failed'],
    ['refuses the challenge', () => ({ status: 403 }), 'http_4xx'],
    ['fails', () => ({ status: 500 }), 'http_5xx'],
  ] as const)('sends no events to an endpoint that %s', async (_, behave, reason) => {
    const { source, client, endpoint, paramsOf } = await start({ behave })
    const { error } = await client.ask('events/subscribe', paramsOf())
    expect(error).toEqual({ code: -32027, message: 'CallbackEndpointError', data: { reason } })
    const { cursor } = await client.poll({ name: 'resource.changed' })
    source.set('a', { text: 'x' })
    for (;;) if ((await client.poll({ name: 'resource.changed', cursor })).events.length > 0) break
    expect(endpoint.received).toHaveLength(1)
  })
})

describe('the delivery of events', () => {
  test('tries again with the same id, and stops after several failed attempts until the subscription is refreshed', async () => {
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

  test('ends the subscription after the status 410', async () => {
    const behave: Behave = ({ body }) => (body.type === undefined ? { status: 410 } : undefined)
    const { source, client, endpoint, subscribe, paramsOf } = await start({ behave })
    await subscribe()
    source.set('a', { text: 'x' })
    await until(() => endpoint.events().length > 0)
    const ended = async () => (await client.ask('events/unsubscribe', paramsOf())).error?.code === -32023
    while (!(await ended())) expect(endpoint.events()).toHaveLength(1)
  })

  test('leaves out the event after the status 413, and goes on', async () => {
    const behave: Behave = ({ raw }) => (raw.includes('x://m/a') ? { status: 413 } : undefined)
    const { source, endpoint, subscribe } = await start({ behave })
    await subscribe()
    source.set('a', { text: 'x' })
    source.set('b', { text: 'x' })
    await until(() => endpoint.events().some(({ raw }) => raw.includes('x://m/b')))
    expect(endpoint.events()).toHaveLength(2)
  })

  test('reports a gap in a message of its own', async () => {
    const { source, endpoint, secret, subscribe } = await start()
    await subscribe()
    source.tell({})
    await until(() => endpoint.controls('gap').length > 0)
    const [gap] = endpoint.controls('gap')
    expect(gap?.body).toEqual({ type: 'gap', cursor: expect.any(String) })
    expect(gap?.headers['webhook-id']).toMatch(/^msg_gap_/)
    expect(gap !== undefined && isSigned(gap, secret)).toBe(true)
  })

  test('reports a gap in the answer to a subscription from an unknown position', async () => {
    const { subscribe } = await start()
    expect(await subscribe({ cursor: 'of another run' })).toMatchObject({ truncated: true, cursor: expect.any(String) })
  })

  test('ends with a revoked token, and the endpoint is told', async () => {
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

  test('ends with an unsubscription', async () => {
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

  test('puts the secret and the path of the endpoint into no log, record or answer', async () => {
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
