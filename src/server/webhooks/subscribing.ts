import { createHash } from 'node:crypto'
import { invalid } from '../../core/errors.ts'
import { formatHttpUrl, type HttpUrl, parseHttpUrl } from '../../core/http-url.ts'
import type { JsonObject } from '../../core/tool.ts'
import { isObject, type Params, type ProtocolError, requiredString } from '../messages/messages.ts'

export interface LifetimeLimits {
  readonly usual: number
  readonly least: number
  readonly most: number
}

export interface CallbackUrl {
  readonly url: HttpUrl
  /** The URL in one spelling. It may hold secrets, so it is shown to nobody. */
  readonly text: string
}

/**
 * Returns the param `delivery`, and the endpoint in it.
 *
 * @param unsupported Returns the error for another way of delivery.
 * @throws ResourceError `invalid` for a malformed URL, or one that is not https; the error of `unsupported`.
 */
export function parseDelivery(params: Params, unsupported: (mode: string) => ProtocolError) {
  const { delivery } = params
  if (!isObject(delivery)) throw invalid('The param delivery is not an object.', 'params')
  const { mode = 'webhook' } = delivery
  if (mode !== 'webhook') throw unsupported(String(mode).slice(0, 64))
  return { delivery, endpoint: parseCallbackUrl(requiredString(delivery, 'url')) }
}

/** @throws ResourceError `invalid` for a malformed URL, or one that is not https. */
export function parseCallbackUrl(text: string): CallbackUrl {
  const url = parseHttpUrl(text)
  if (url.scheme !== 'https') throw invalid('delivery.url is not an https URL.', 'params')
  return { url, text: formatHttpUrl(url) }
}

/** Returns the lifetime of a subscription, in milliseconds. A value outside of the limits becomes the nearest one; null, the maximum. */
export function lifetimeIn({ ttlMs }: Params, { usual, least, most }: LifetimeLimits): number {
  if (ttlMs === undefined) return Math.min(usual, most)
  if (ttlMs === null) return most
  if (typeof ttlMs !== 'number' || !Number.isFinite(ttlMs)) throw invalid('The param ttlMs is not a number.', 'params')
  return Math.min(most, Math.max(least, ttlMs))
}

/** Returns an id, which is the same for the same caller, endpoint, type and arguments. The id gives no access. */
export function subscriptionId(principal: string, { text }: CallbackUrl, name: string, args: JsonObject): string {
  const key = JSON.stringify([principal, text, name, sorted(args)])
  return `sub_${createHash('sha256').update(key).digest('hex').slice(0, 32)}`
}

/** Sorts the members of objects, so that equal values have equal JSON. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isObject(value)) return value
  const names = Object.keys(value).sort()
  return Object.fromEntries(names.map((name) => [name, sorted(value[name])]))
}
