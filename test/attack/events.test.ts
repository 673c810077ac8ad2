import { describe, expect, test } from 'vitest'
import { pollUntil } from '../support/event-client.ts'
import { type Behave, isSigned, startEndpoint } from '../support/event-endpoint.ts'
import { until } from '../support/live.ts'
import { secretOf, useWebhooks } from '../support/webhook-service.ts'

const { start, cleanups } = useWebhooks()

describe('webhooks of events:', () => {
  test.each([
    ['an address of this machine', 'https://127.0.0.1/hook'],
    ['an address of a private network', 'https://10.0.0.1/hook'],
    ['an address of a metadata service', 'https://169.254.169.254/latest'],
    ['an IPv6 address that embeds the address of this machine', 'https://[::ffff:127.0.0.1]/hook'],
    ['a name that resolves to this machine', 'https://localhost/hook'],
    ['the name of a metadata service', 'https://metadata.google.internal/'],
    ['the port of a database', 'https://example.org:5432/'],
  ])('a subscription for %s is refused, and nothing is sent there (EV01)', async (_, url) => {
    const { client, endpoint, paramsOf } = await start({ allowAddresses: [] })
    const { port } = endpoint
    const target = /:\d+\//.test(url) || url.includes('metadata') ? url : url.replace('/hook', `:${port}/hook`)
    const params = paramsOf({ delivery: { ...paramsOf().delivery, url: target } })
    const { error } = await client.ask('events/subscribe', params)
    expect(error).toMatchObject({ code: -32027, data: { reason: 'connection_refused' } })
    expect(endpoint.received).toEqual([])
  })

  test('a host name that resolves to a forbidden address after the verification gets no event (EV02)', async () => {
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

  test('a redirect by an endpoint is not followed (EV03)', async () => {
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

  test('an endpoint gets at most ten verifications, and further subscriptions are refused (EV04)', async () => {
    const { client, endpoint, paramsOf } = await start({ behave: () => ({ status: 200 }) })
    const codes: (number | undefined)[] = []
    for (let i = 0; i < 15; i++) {
      const delivery = { ...paramsOf().delivery, url: `${endpoint.url}?${i}` }
      codes.push((await client.ask('events/subscribe', paramsOf({ delivery }))).error?.code)
    }
    expect(endpoint.received).toHaveLength(10)
    expect(codes.slice(10)).toEqual(Array.from({ length: 5 }, () => -32025))
  })

  test('a challenge is accepted for one verification only (EV05)', async () => {
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

  test('a delivery succeeds even if the endpoint answers with 5 MB (EV06)', async () => {
    const { subscribe, deliveries, source } = await start({
      behave: ({ body }) => (body.type === undefined ? { status: 200, body: 'x'.repeat(5_000_000) } : undefined),
    })
    await subscribe()
    source.set('a', { text: 'x' })
    await until(() => deliveries.some(({ kind, outcome }) => kind === 'event' && outcome === 'ok'))
  })

  test('a caller can neither use nor end the subscription of another (EV07)', async () => {
    const { source, endpoint, other, secret, subscribe, paramsOf } = await start()
    const { id } = await subscribe()
    for (const params of [paramsOf(), { ...paramsOf(), id }])
      expect((await other.ask('events/unsubscribe', params)).error).toMatchObject({
        code: -32023,
        data: { kind: 'subscription' },
      })
    const delivery = { ...paramsOf().delivery, secret: secretOf() }
    expect((await other.ask('events/subscribe', paramsOf({ delivery }))).result?.id).not.toBe(id)
    source.set('a', { text: 'x' })
    await until(() => endpoint.events().length === 2)
    const own = endpoint.events().find(({ headers }) => headers['x-mcp-subscription-id'] === id)
    expect(own !== undefined && isSigned(own, secret)).toBe(true)
  })

  test('a message that is sent again has a new time and a new signature, so that the endpoint can refuse an old one (EV08)', async () => {
    const { source, endpoint, secret, subscribe } = await start({
      behave: ({ body }) => (body.type === undefined ? { status: 503 } : undefined),
      retriesMs: [1100],
    })
    await subscribe()
    source.set('a', { text: 'x' })
    await until(() => endpoint.events().length === 2)
    const [first, second] = endpoint.events()
    expect(first?.headers['webhook-id']).toBe(second?.headers['webhook-id'])
    expect(first?.headers['webhook-timestamp']).not.toBe(second?.headers['webhook-timestamp'])
    expect(second !== undefined && isSigned(second, secret)).toBe(true)
  })

  test('one caller cannot use up the limit that all callers share (EV09)', async () => {
    const { client, other, paramsOf } = await start({ maxPerPrincipal: 3, maxTotal: 5 })
    const ask = (who: typeof client, i: number) =>
      who.ask('events/subscribe', paramsOf({ arguments: { glob: `${i}` } }))
    const codes: (number | undefined)[] = []
    for (let i = 0; i < 5; i++) codes.push((await ask(client, i)).error?.code)
    expect(codes).toEqual([undefined, undefined, undefined, -32025, -32025])
    expect((await ask(other, 9)).error).toBeUndefined()
  })
})

describe('polls of events:', () => {
  test('a cursor that was changed, and one of another caller, give no events, and are reported as truncated (EV10)', async () => {
    const { source, client, other } = await start()
    const polled = { name: 'resource.changed' }
    const { cursor } = await client.poll(polled)
    source.set('a', { text: 'x' })
    const { events } = await pollUntil(client, polled, cursor, ({ length }) => length > 0)
    expect(events).toHaveLength(1)
    const changed = `${cursor.slice(0, -2)}${cursor.endsWith('AA') ? 'BB' : 'AA'}`
    expect(await client.poll({ ...polled, cursor: changed })).toMatchObject({ events: [], truncated: true })
    expect(await other.poll({ ...polled, cursor })).toMatchObject({ events: [], truncated: true })
  })
})
