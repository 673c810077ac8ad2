import { createGuard, parseAllowed, type ResolveHost } from '../../core/address-guard.ts'
import type { Log } from '../../core/log.ts'
import type { Delivery, KeptSubscription, SubscriptionKeeper } from '../../core/shared.ts'
import { requiredString } from '../messages/messages.ts'
import type { MethodResult } from '../protocol/envelope.ts'
import type { EventDialect, SubscriptionService, WebhookMethods } from '../protocol/event-options.ts'
import type { EventReader } from '../protocol/event-reader.ts'
import { eventTypes } from '../protocol/event-types.ts'
import { eventError, parseRequestedSubscription, toExhaustedError } from '../protocol/events.ts'
import type { MethodCall } from '../protocol/method.ts'
import type { Audit } from '../telemetry/audit.ts'
import { createWebhookSender, faultCategory } from './delivery.ts'
import { createSubscriptionRegistry, noKeeper } from './registry.ts'
import type { WebhookSubscription } from './run.ts'
import { createSigner } from './secret.ts'
import { type LifetimeLimits, lifetimeIn, parseCallbackUrl, parseDelivery, subscriptionId } from './subscribing.ts'
import { createEndpointVerification } from './verification.ts'

export interface WebhookOptions {
  readonly dialect?: EventDialect
  /** Addresses or address blocks outside the internet to which messages may go. Default none. */
  readonly allowAddresses?: readonly string[]
  /** Maximum lifetime of a subscription, in milliseconds. Default one hour. */
  readonly maxLifetimeMs?: number
  /** Maximum number of subscriptions of one principal, and of all. Default 100 and 10,000. */
  readonly maxPerPrincipal?: number
  readonly maxTotal?: number
  readonly log: Log
  readonly audit?: Audit | undefined
  readonly clean?: (text: string) => string
  readonly onDelivery?: (delivery: Delivery) => void
  /** Keeps the subscriptions, so that a later process continues them. Default: they end with this process. */
  readonly keeper?: SubscriptionKeeper
  /** Resolver of host names. Default: that of the system. */
  readonly resolve?: ResolveHost
  readonly ca?: string
  /** Pauses between the attempts to send one message, in milliseconds. Default 1, 5, 25 and 120 seconds. */
  readonly retriesMs?: readonly number[]
}

const usualRetriesMs = [1000, 5000, 25_000, 120_000]
const minuteMs = 60_000
const hourMs = 60 * minuteMs
export interface Webhooks extends WebhookMethods {
  /** Ends all deliveries, without a message. Kept subscriptions are continued by the next process. */
  close(): void
}

/**
 * Delivers events to the endpoints of clients (SEP-3415, webhooks). An endpoint gets only verifications until it has proved that it wants
 * messages. The events of one subscription are sent in order.
 */
export function createWebhooks(options: WebhookOptions): Webhooks {
  const { dialect = 'sep', log, audit, onDelivery, ca, retriesMs = usualRetriesMs } = options
  const { maxPerPrincipal = 100, maxTotal = 10_000, maxLifetimeMs: most = hourMs } = options
  const lifetimes: LifetimeLimits = { usual: hourMs, least: Math.min(minuteMs, most), most }
  const guard = createGuard(parseAllowed(options.allowAddresses ?? []), options.resolve)
  const closing = new AbortController()
  const { signal: ending } = closing
  const sender = createWebhookSender({ guard, ca, retriesMs, audit, onDelivery, signal: ending })
  const verify = createEndpointVerification(sender, dialect)
  const { clean = (text: string) => text, keeper = noKeeper } = options
  const limits = { maxPerPrincipal, maxTotal }
  const registry = createSubscriptionRegistry({ sender, dialect, log, clean, keeper, limits })
  const principalOf = ({ caller }: MethodCall): string => {
    if (caller?.credential === undefined) throw eventError(dialect, 'forbidden', { reason: 'authentication' })
    return caller.principal.id
  }
  const unsupported = (mode: string) => eventError(dialect, 'unsupported', { feature: 'deliveryMode', value: mode })

  const subscribe = async (call: MethodCall): Promise<MethodResult> => {
    const { params, view, signal, caller } = call
    const subscription = parseRequestedSubscription(params, dialect)
    const principal = principalOf(call)
    const { delivery, endpoint } = parseDelivery(params, unsupported)
    const secret = requiredString(delivery, 'secret')
    const signer = createSigner(secret)
    const lifetime = lifetimeIn(params, lifetimes)
    const reader = await subscription.type.open(view, subscription.given, { signal })
    const { name } = subscription.type
    const id = subscriptionId(principal, endpoint, name, subscription.given)
    registry.refuseTooMany(id, principal)
    await verify({ id, name, principal, endpoint, signer })
    const first = await beginningOf(reader, subscription.cursor, subscription.maxAgeMs, signal)
    const until = Math.min(Date.now() + lifetime, caller?.expires ?? Number.POSITIVE_INFINITY)
    const { credential } = caller ?? {}
    const isKept = credential !== undefined && caller?.isRestorable === true
    const facts = isKept ? { given: subscription.given, url: endpoint.text, secret, credential } : undefined
    // A concurrent request may have created the subscription meanwhile.
    const current = registry.get(id)
    if (current !== undefined) {
      const status = toDeliveryStatus(current)
      current.signer.replace(secret)
      registry.refresh(current, { reader, until }, caller, facts)
      // The refreshed subscription keeps its position, so events that the endpoint has not received yet are still sent.
      await keeper.written()
      return answerOf(current, false, status)
    }
    registry.refuseTooMany(id, principal)
    const { position, isTruncated } = first
    const newSubscription = {
      id,
      name,
      principal,
      endpoint,
      signer,
      reader,
      until,
      position,
      maxAgeMs: subscription.maxAgeMs,
    }
    try {
      const subscription = registry.add(newSubscription, caller, facts)
      // Answer only when the subscription is stored: the client then finds it even after a crash.
      await keeper.written()
      return answerOf(subscription, isTruncated)
    } catch (error) {
      throw toExhaustedError(error, dialect)
    }
  }

  const resume = async (one: KeptSubscription, { callerOf, viewOf }: SubscriptionService): Promise<void> => {
    const { id, name, principal, position } = one
    const type = eventTypes.find((eventType) => eventType.name === name)
    if (type === undefined || one.until <= Date.now()) return keeper.remove(id)
    const receiver = { id, name, principal, endpoint: parseCallbackUrl(one.url), signer: createSigner(one.secret) }
    const caller = await callerOf(one.credential)
    if (caller?.principal.id !== principal) {
      keeper.remove(id)
      return registry.tellEnd(receiver, ending)
    }
    const reader = await type.open(await viewOf(caller.principal), one.given, { signal: ending })
    if (ending.aborted || registry.get(id) !== undefined) return
    const until = Math.min(one.until, caller.expires ?? Number.POSITIVE_INFINITY)
    registry.add({ ...receiver, reader, until, position, maxAgeMs: undefined }, caller, one)
  }

  return {
    subscribe,
    resume: async (service) => {
      for (const one of await keeper.all(ending)) {
        if (ending.aborted) return
        await resume(one, service).catch((error: unknown) =>
          log('warn', 'a webhook subscription cannot be continued', { subscription: one.id, error }),
        )
      }
    },
    unsubscribe: async (call) => {
      const { params } = call
      const subscription = parseRequestedSubscription(params, dialect)
      const principal = principalOf(call)
      const { endpoint } = parseDelivery(params, unsupported)
      const one = registry.get(subscriptionId(principal, endpoint, subscription.type.name, subscription.given))
      if (one === undefined) throw eventError(dialect, 'notFound', { kind: 'subscription' })
      registry.remove(one)
      return {}
    },
    close: () => {
      registry.close()
      closing.abort()
    },
  }
}

/** Returns the position from which on a new subscription gets events. */
async function beginningOf(
  reader: EventReader,
  cursor: string | undefined,
  maxAgeMs: number | undefined,
  signal: AbortSignal,
): Promise<{ readonly position: string; readonly isTruncated: boolean }> {
  if (cursor === undefined) return { position: await reader.now({ signal }), isTruncated: false }
  const page = { limit: 1, ...(maxAgeMs === undefined ? {} : { maxAgeMs }) }
  const { gap, position, occurrences } = await reader.since(cursor, page, { signal })
  // The subscription begins with the events that are still there, and `isTruncated` tells the client of a gap.
  return { position: gap && occurrences.length === 0 ? position : cursor, isTruncated: gap }
}

function answerOf(
  { id, until, position }: WebhookSubscription,
  truncated: boolean,
  deliveryStatus?: object,
): MethodResult {
  const refreshBefore = new Date(until).toISOString()
  return { id, refreshBefore, cursor: position, truncated, ...(deliveryStatus === undefined ? {} : { deliveryStatus }) }
}

function toDeliveryStatus({ isActive, lastDeliveryAt, lastError, failedSince }: WebhookSubscription) {
  const timeOf = (ms: number | undefined) => (ms === undefined ? null : new Date(ms).toISOString())
  return {
    active: isActive,
    lastDeliveryAt: timeOf(lastDeliveryAt),
    lastError: lastError === undefined ? null : faultCategory(lastError),
    ...(failedSince === undefined ? {} : { failedSince: timeOf(failedSince) }),
  }
}
