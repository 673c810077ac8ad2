import { foreignCursorError, invalid, isResourceError } from '../../core/errors.ts'
import type { JsonObject } from '../../core/tool.ts'
import { isObject, optionalString, type Params, ProtocolError, requiredString } from '../messages/messages.ts'
import type { MethodResult } from './envelope.ts'
import type { EventDialect, EventMethodName, EventOptions } from './event-options.ts'
import type { Occurrence } from './event-reader.ts'
import { type EventType, eventTypes } from './event-types.ts'
import type { Method } from './method.ts'

const errorCodes = {
  sep: { notFound: -32023, forbidden: -32024, exhausted: -32025, unsupported: -32026, callback: -32027 },
  sketch: { notFound: -32011, forbidden: -32012, exhausted: -32013, unsupported: -32014, callback: -32015 },
} as const

type EventFault = keyof (typeof errorCodes)['sep']

const faultNames: Readonly<Record<EventFault, string>> = {
  notFound: 'NotFound',
  forbidden: 'Forbidden',
  exhausted: 'ResourceExhausted',
  unsupported: 'Unsupported',
  callback: 'CallbackEndpointError',
}

/** Returns an error of the extension. `data` has the details for the client. */
export function eventError(dialect: EventDialect, fault: EventFault, data: JsonObject): ProtocolError {
  return new ProtocolError(errorCodes[dialect][fault], faultNames[fault], data)
}

/** Number of events of one answer: the default, and the maximum. */
const pageLimits = { usual: 100, most: 1000 }
/** Recommended time between two polls, in milliseconds. */
const nextPollMs = 5000
/** Maximum age that a client can name, in milliseconds. */
const longestAgeMs = Number.MAX_SAFE_INTEGER

export interface RequestedSubscription {
  readonly type: EventType
  readonly given: JsonObject
  /** The position of the client. Undefined: from now on. */
  readonly cursor: string | undefined
  readonly maxAgeMs: number | undefined
}

/** @throws ProtocolError for an unknown type of events; ResourceError `invalid` for params of another form. */
export function parseRequestedSubscription(params: Params, dialect: EventDialect): RequestedSubscription {
  const name = requiredString(params, 'name')
  const args = params.arguments ?? {}
  if (!isObject(args)) throw invalid('The param arguments is not an object.', 'params')
  const type = eventTypes.find((one) => one.name === name)
  if (type === undefined) throw eventError(dialect, 'notFound', { kind: 'event' })
  return {
    type,
    given: args,
    cursor: optionalString(params, 'cursor'),
    maxAgeMs: readIntegerParam(params, 'maxAgeMs', 0, longestAgeMs),
  }
}

/** Converts the error of an exhausted limit of subscriptions to that of the extension. Other errors stay unchanged. */
export function toExhaustedError(error: unknown, dialect: EventDialect): unknown {
  if (!isResourceError(error, 'invalid') || error.detail.reason !== 'too-many') return error
  const { reason, of, limit } = error.detail
  return eventError(dialect, 'exhausted', { limit: 'subscriptions', max: limit, reason, of })
}

/** A number above `most` becomes `most`; null counts as absent. @throws ResourceError `invalid` for no whole number, or one below `least`. */
function readIntegerParam(params: Params, name: string, least: number, most: number): number | undefined {
  const value = params[name] ?? undefined
  if (value === undefined) return undefined
  if (!Number.isSafeInteger(value) || Number(value) < least)
    throw invalid(`The param ${name} is not a whole number of at least ${least}.`, 'params')
  return Math.min(Number(value), most)
}

export function occurrenceToWire(name: string, { id, time, data }: Occurrence) {
  return { eventId: id, name, timestamp: new Date(time).toISOString(), data }
}

export function createEventMethods({
  dialect = 'sep',
  webhooks,
}: EventOptions): Readonly<Record<EventMethodName, Method>> {
  const noWebhooks: Method = async ({ params }) => {
    parseRequestedSubscription(params, dialect)
    throw eventError(dialect, 'unsupported', { feature: 'deliveryMode', value: 'webhook' })
  }
  const delivery = ['poll', 'push', ...(webhooks === undefined ? [] : ['webhook'])]
  return {
    'events/subscribe': webhooks?.subscribe ?? noWebhooks,
    'events/unsubscribe': webhooks?.unsubscribe ?? noWebhooks,
    'events/list': async ({ params }): Promise<MethodResult> => {
      if (optionalString(params, 'cursor') !== undefined) throw foreignCursorError()
      const events = eventTypes.map(({ name, description, inputSchema, payloadSchema }) => ({
        ...{ name, description, delivery, inputSchema, payloadSchema },
      }))
      return { events }
    },
    'events/poll': async ({ params, view, signal }): Promise<MethodResult> => {
      const subscription = parseRequestedSubscription(params, dialect)
      const limit = readIntegerParam(params, 'maxEvents', 1, pageLimits.most) ?? pageLimits.usual
      const reader = await subscription.type.open(view, subscription.given, { signal })
      const { cursor, maxAgeMs } = subscription
      if (cursor === undefined) {
        const now = await reader.now({ signal })
        return { events: [], cursor: now, truncated: false, hasMore: false, nextPollMs }
      }
      const query = maxAgeMs === undefined ? { limit } : { limit, maxAgeMs }
      const { occurrences, position, gap, more } = await reader.since(cursor, query, { signal })
      const events = occurrences.map((one) => occurrenceToWire(subscription.type.name, one))
      return { events, cursor: position, truncated: gap, hasMore: more, nextPollMs }
    },
  }
}
