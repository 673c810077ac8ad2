import type { Principal } from '../../core/provider.ts'
import type { View } from '../../core/view.ts'
import type { Caller } from '../auth/caller.ts'
import { eventsExtension } from '../messages/messages.ts'
import type { Method } from './method.ts'

/**
 * The form of the extension that clients speak. `sep`: that of SEP-3415. `sketch`: that of its earlier sketch, which ChatGPT and older
 * clients speak.
 */
export type EventDialect = 'sep' | 'sketch'

export interface EventOptions {
  /** Default `sep`. */
  readonly dialect?: EventDialect
  /** Serves webhooks. Undefined: there are none. */
  readonly webhooks?: WebhookMethods | undefined
}

/** Finds the view and the caller of a webhook subscription when there is no request of its client. */
export interface SubscriptionService {
  viewOf(principal: Principal): Promise<View>
  /** Returns the caller with some credentials, by their digest. Undefined when they are not valid any more. */
  callerOf(digest: string): Promise<Caller | undefined>
}

export interface WebhookMethods {
  readonly subscribe: Method
  readonly unsubscribe: Method
  /** Continues the subscriptions of an earlier process. */
  resume(service: SubscriptionService): Promise<void>
}

/** The methods of the extension that have one answer, unlike `events/stream`. */
export const eventMethodNames = ['events/list', 'events/poll', 'events/subscribe', 'events/unsubscribe'] as const

export type EventMethodName = (typeof eventMethodNames)[number]

/** Returns the declaration of the extension; for the dialect `sketch` also that of the sketch. */
export function eventCapabilities({ dialect = 'sep' }: EventOptions) {
  return { extension: { [eventsExtension]: {} }, ...(dialect === 'sketch' ? { events: {} } : {}) }
}
