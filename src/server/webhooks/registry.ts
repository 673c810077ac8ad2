import { createAutoResetEvent } from '../../core/kit/abort.ts'
import type { Log } from '../../core/log.ts'
import type { KeptSubscription, SubscriptionKeeper } from '../../core/shared.ts'
import type { Caller } from '../auth/caller.ts'
import { protocolErrorToWire } from '../messages/messages.ts'
import type { EventDialect } from '../protocol/event-options.ts'
import { eventError } from '../protocol/events.ts'
import { newControlMessageId, type WebhookReceiver, type WebhookSender } from './delivery.ts'
import { createEventDelivery, type WebhookSubscription } from './run.ts'

/** A keeper that stores no subscriptions. */
export const noKeeper: SubscriptionKeeper = {
  put: () => {},
  remove: () => {},
  written: async () => {},
  all: async () => [],
}

interface RegistryOptions {
  readonly sender: WebhookSender
  readonly dialect: EventDialect
  readonly log: Log
  readonly clean: (text: string) => string
  readonly keeper: SubscriptionKeeper
  readonly limits: { readonly maxPerPrincipal: number; readonly maxTotal: number }
}

type Beginning = WebhookReceiver & Pick<WebhookSubscription, 'reader' | 'until' | 'position' | 'maxAgeMs'>

/** The facts that are stored for a later process, besides those of the running subscription. Undefined: the subscription ends with this process. */
type KeptFacts = Pick<KeptSubscription, 'given' | 'url' | 'secret' | 'credential'> | undefined

/** The running subscriptions. Each ends with its lifetime, with the credentials of its caller, or when its endpoint wants no more. */
export function createSubscriptionRegistry({ sender, dialect, log, clean, keeper, limits }: RegistryOptions) {
  const { maxPerPrincipal, maxTotal } = limits
  const subscriptions = new Map<string, WebhookSubscription>()
  const facts = new WeakMap<WebhookSubscription, NonNullable<KeptFacts>>()
  const keep = (one: WebhookSubscription): void => {
    const savedFacts = facts.get(one)
    if (savedFacts === undefined || one.over.signal.aborted) return
    const { id, name, principal, until, position } = one
    const { given, url, secret, credential } = savedFacts
    keeper.put({ id, name, principal, until, position, given, url, secret, credential })
  }
  const end = (one: WebhookSubscription): void => {
    if (subscriptions.get(one.id) === one) subscriptions.delete(one.id)
    one.over.abort()
    one.news.set()
    one.release()
  }
  const remove = (one: WebhookSubscription): void => {
    end(one)
    if (facts.has(one)) keeper.remove(one.id)
  }
  const run = createEventDelivery({ sender, dialect, log, clean, remove, onTaken: keep })

  const tellEnd = async (one: WebhookReceiver, signal: AbortSignal): Promise<void> => {
    const error = protocolErrorToWire(eventError(dialect, 'forbidden', { reason: 'credentials' }))
    const body = JSON.stringify({ type: 'terminated', error })
    const state = { ...one, lastDeliveryAt: undefined, lastError: undefined, failedSince: undefined }
    await sender.deliver(state, 'terminated', newControlMessageId('terminated'), body, signal)
  }
  const terminate = (one: WebhookSubscription): void => {
    remove(one)
    // Send no message if the lifetime ends now as well: the client knows that time.
    if (Date.now() < one.until - 1000) void tellEnd(one, one.over.signal)
  }

  /** Follows the events, the credentials and the lifetime of a subscription. Returns a function that ends this. */
  const hold = (one: WebhookSubscription, caller: Caller | undefined): (() => void) => {
    const timer = setTimeout(() => remove(one), Math.min(one.until - Date.now(), 2 ** 31 - 1))
    timer.unref()
    const forget = caller?.untilEnd(() => terminate(one)) ?? (() => {})
    const stop = one.reader.follow(one.news.set)
    return () => {
      clearTimeout(timer)
      forget()
      stop()
    }
  }
  const keepFor = (one: WebhookSubscription, newFacts: KeptFacts): void => {
    if (newFacts === undefined) return
    facts.set(one, newFacts)
    keep(one)
  }
  const countOf = (principal: string) => [...subscriptions.values()].filter((one) => one.principal === principal).length

  return {
    get: (id: string) => subscriptions.get(id),
    remove,
    tellEnd,
    /** @throws ProtocolError for one subscription too many. */
    refuseTooMany: (id: string, principal: string): void => {
      if (subscriptions.has(id)) return
      const isOwn = countOf(principal) >= maxPerPrincipal
      if (!isOwn && subscriptions.size < maxTotal) return
      throw eventError(dialect, 'exhausted', { limit: 'subscriptions', max: isOwn ? maxPerPrincipal : maxTotal })
    },
    /**
     * Begins a subscription.
     *
     * @throws ResourceError `invalid` (reason `too-many`) from `reader.follow`, whose limits count subscriptions of every kind.
     */
    add: (beginning: Beginning, caller: Caller | undefined, newFacts: KeptFacts): WebhookSubscription => {
      const subscription: WebhookSubscription = {
        ...{ ...beginning, isActive: true, lastDeliveryAt: undefined, lastError: undefined, failedSince: undefined },
        ...{ news: createAutoResetEvent(), over: new AbortController(), release: () => {} },
      }
      subscription.release = hold(subscription, caller)
      subscriptions.set(subscription.id, subscription)
      keepFor(subscription, newFacts)
      void run(subscription)
      return subscription
    },
    refresh: (
      subscription: WebhookSubscription,
      next: Pick<WebhookSubscription, 'reader' | 'until'>,
      caller: Caller | undefined,
      newFacts: KeptFacts,
    ): void => {
      subscription.release()
      Object.assign(subscription, next, { isActive: true })
      subscription.release = hold(subscription, caller)
      subscription.news.set()
      keepFor(subscription, newFacts)
    },
    /** Ends the running subscriptions without notifying their endpoints. They stay stored, for the next process. */
    close: (): void => {
      for (const one of subscriptions.values()) end(one)
    },
  }
}
