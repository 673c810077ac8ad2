import { beforeAll, describe, expect, test, vi } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import type { GivenLimits } from '../../src/server/admission/limits.ts'
import type { AuditRecord } from '../../src/server/telemetry/audit.ts'
import { type HostileIssuer, startHostileIssuer } from '../attack/harness/issuer.ts'
import { initialize, legacy } from '../attack/harness/wire.ts'
import { ask, read } from '../support/authorized.ts'
import { createHeld, useHttp } from '../support/http-service.ts'
import { live, until } from '../support/live.ts'

vi.setConfig({ testTimeout: 60_000 })

let issuer: HostileIssuer
beforeAll(async () => {
  issuer = await startHostileIssuer()
  return () => issuer.stop()
})

const serveOn = useHttp()

async function serve(limits: GivenLimits = {}, jwks = issuer.jwks) {
  const records: AuditRecord[] = []
  const { provider, held } = createHeld('held')
  const catalog = createCatalog({
    mounts: [
      { address: 'x://open', provider },
      { address: 'x://closed', provider: live({ a: 'secret' }), scopes: ['closed'] },
    ],
  })
  const service = await serveOn({
    ...{ view: (principal) => catalog.view(principal), scopesOf: catalog.scopesOf, limits },
    auth: { issuers: [{ issuer: issuer.issuer, jwks }] },
    audit: (record) => records.push(record),
  })
  issuer.audience = service.url
  const turnedAway = () =>
    records
      .filter(({ status }) => status !== undefined)
      .map(({ verb, uri, outcome, status, principal, address }) => [
        ...[outcome, status, verb, uri],
        principal?.includes('alice') ? 'alice' : (principal ?? address),
      ])
  return { service, url: service.url, records, turnedAway, held }
}

const alice = () => issuer.mint({ sub: 'alice', scope: '' })
const here = '127.0.0.1'

describe('a refused HTTP request is in the audit log', () => {
  test('with its principal or its address, and never with its token', async () => {
    const { url, records, turnedAway } = await serve()
    const [good, bad] = [await alice(), await issuer.mint({ sub: 'mallory', aud: 'https://other.example.org' })]
    await read(url, undefined, 'x://open/a')
    await read(url, 'two words', 'x://open/a')
    await read(url, bad, 'x://open/a')
    await read(url, good, 'x://closed/a')
    await ask(url, good, 'resources/read', { uri: 'x://open/a' }, { origin: 'https://evil.example.org' })
    expect((await read(url, good, 'x://open/a')).status).toBe(200)
    expect(turnedAway()).toEqual([
      ['no-token', 401, 'refused', undefined, here],
      ['malformed-token', 400, 'refused', undefined, here],
      ['bad-token', 401, 'refused', undefined, here],
      ['scope', 403, 'read', 'x://closed/a', 'alice'],
      ['host', 403, 'refused', undefined, here],
    ])
    for (const token of [good, bad])
      for (const part of token.split('.')) expect(JSON.stringify(records)).not.toContain(part)
  })

  test('if no issuer can verify its token', async () => {
    // Nobody listens there.
    const { url, turnedAway } = await serve({}, 'http://127.0.0.1:1/keys')
    expect((await read(url, await alice(), 'x://open/a')).status).toBe(503)
    expect(turnedAway()).toEqual([['unjudged-token', 503, 'refused', undefined, here]])
  })

  test('if it is too large, or one of too many', async () => {
    const { url, service, turnedAway } = await serve({ body: 2000, path: 100, perPrincipal: { rate: 0.1 } })
    const token = await alice()
    const long = { uri: 'x://open/a', more: 'x'.repeat(3000) }
    expect((await ask(url, token, 'resources/read', long)).status).toBe(413)
    expect((await read(`${url}/${'x'.repeat(200)}`, token, 'x://open/a')).status).toBe(414)
    expect((await read(url, token, 'x://open/a')).status).toBe(429)
    expect(turnedAway()).toEqual([
      ['too-large', 413, 'refused', undefined, 'alice'],
      ['too-large', 414, 'refused', undefined, here],
      ['rate', 429, 'refused', undefined, 'alice'],
    ])
    expect(service.meter.read()).toMatchObject({ refusedBody: 1, refusedUri: 1, refusedRate: 1 })
  })

  test.each(['2026-07-28', legacy])('if its principal has too many requests in flight (%s)', async (version) => {
    const { url, service, turnedAway, held } = await serve({ perPrincipal: { concurrent: 1, waiting: 1 } })
    const token = await alice()
    const readHeld = await readerOf(url, token, version)
    const first = readHeld()
    await until(() => held.length === 1, 30_000)
    const second = readHeld()
    await until(() => service.meter.read().waiting === 1, 30_000)
    expect((await readHeld()).status).toBe(429)
    expect(turnedAway()).toEqual([['share', 429, 'read', 'x://open/held', 'alice']])
    expect(service.meter.read()).toMatchObject({ refusedShare: 1 })
    held.shift()?.()
    expect((await first).status).toBe(200)
    await until(() => held.length === 1, 30_000)
    held.shift()?.()
    expect((await second).status).toBe(200)
  })

  test('if there are too many sessions', async () => {
    const { url, turnedAway } = await serve({ sessions: 1 })
    const token = await alice()
    await readerOf(url, token, legacy)
    expect((await open(url, token)).status).toBe(503)
    expect(turnedAway()).toEqual([['sessions', 503, 'refused', undefined, 'alice']])
  })
})

const post = (url: string, token: string, message: object, headers: Readonly<Record<string, string>> = {}) =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}`, ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', ...message }),
  })

const open = (url: string, token: string) =>
  post(url, token, { id: 0, method: 'initialize', params: initialize(legacy) })

/** Reads what is held, again and again, as a client of a revision. */
async function readerOf(url: string, token: string, version: string): Promise<() => Promise<{ status: number }>> {
  const uri = 'x://open/held'
  if (version !== legacy) return () => read(url, token, uri)
  const headers = { 'mcp-session-id': (await open(url, token)).headers.get('mcp-session-id') ?? '' }
  let id = 1
  return () => post(url, token, { id: id++, method: 'resources/read', params: { uri } }, headers)
}
