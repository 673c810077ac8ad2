import type { JsonObject } from '../../core/tool.ts'

/** What a later process needs to continue a subscription. */
export interface KeptSubscription {
  readonly id: string
  /** Name of the type of events. */
  readonly name: string
  /** The arguments of the subscription. */
  readonly given: JsonObject
  readonly url: string
  readonly secret: string
  readonly principal: string
  /** Digest of the credentials of the caller: they are checked again before anything is delivered. */
  readonly credential: string
  /** Time at which it ends, in milliseconds since 1970. */
  readonly until: number
  /** The position up to which every event was taken. */
  readonly position: string
}

/** Keeps subscriptions for a later process. A failure is logged: then they end with this process. */
export interface SubscriptionKeeper {
  put(one: KeptSubscription): void
  remove(id: string): void
  /** Returns the subscriptions, once no other process delivers to them. None when the signal aborts before that. */
  all(signal: AbortSignal): Promise<readonly KeptSubscription[]>
}

/** Keeps nothing. */
export const noSubscriptions: SubscriptionKeeper = { put: () => {}, remove: () => {}, all: async () => [] }
