import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import type { Delivery } from '../../src/core/shared.ts'
import { addToken } from '../../src/server/auth/token-file.ts'
import type { AuditRecord } from '../../src/server/telemetry/audit.ts'
import { createWebhooks, type WebhookOptions } from '../../src/server/webhooks/index.ts'
import { eventClient } from './event-client.ts'
import { type Behave, endpointCa, startEndpoint } from './event-endpoint.ts'
import { useHttp } from './http-service.ts'
import { live } from './live.ts'

/** A secret of Standard Webhooks, of so many bytes. */
export const secretOf = (bytes = 32) => `whsec_${randomBytes(bytes).toString('base64')}`

const local = ['127.0.0.0/8', '::1']

export interface WebhookSetting extends Partial<WebhookOptions> {
  readonly behave?: Behave
}

/** Starts servers with webhooks, until the end of a test. */
export function useWebhooks() {
  const serve = useHttp()
  const cleanups: (() => Promise<unknown> | unknown)[] = []
  afterEach(async () => {
    for (const clean of cleanups.splice(0)) await clean()
  })
  return { start: (setting: WebhookSetting = {}) => start(setting, serve, cleanups), serve, cleanups }
}

/** A server with webhooks over one changing source, two callers, and an endpoint. */
async function start(
  { behave, ...options }: WebhookSetting,
  serve: ReturnType<typeof useHttp>,
  cleanups: (() => Promise<unknown> | unknown)[],
) {
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
    token: one.token,
    url,
    other: eventClient(url, two.token),
    subscribe: async (more: object = {}) => (await client.ask('events/subscribe', paramsOf(more))).result ?? {},
  }
}
