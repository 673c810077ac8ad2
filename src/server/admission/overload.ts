import type { ErrorReason } from '../../core/errors.ts'
import type { Principal } from '../../core/provider.ts'
import { errorAnswer, isObject, type RequestId, type Response, wireErrorCodes } from '../messages/messages.ts'
import type { Meter } from '../telemetry/meter.ts'
import type { NoSlotReason } from './gate.ts'
import type { RefusedRequest } from './limits.ts'

/** Why a request is refused because of overload: there is no slot, or the rate is too high. */
export type OverloadReason = NoSlotReason | Extract<ErrorReason, 'rate'>

const messages: Readonly<Record<OverloadReason, string>> = {
  rate: 'This client sends too many requests. Try again later.',
  share: 'Too many requests of this client are in flight. Try again later.',
  busy: 'Too many requests are in flight. Try again later.',
}

/** Returns the answer to a request that is refused because of overload. `retryAfter` is in seconds. */
export function overloadAnswer(id: RequestId | null, reason: OverloadReason, retryAfter = 1): Response {
  const data = { reason, retryAfter: Math.max(1, Math.ceil(retryAfter)) }
  return errorAnswer(id, { code: wireErrorCodes.internal, message: messages[reason], data })
}

/** Returns the HTTP status and the header `Retry-After` of an answer that contains a time to retry; undefined for other answers. */
export function statusOfOverload(
  answer: Response,
): { readonly status: 429 | 503; readonly headers: Readonly<Record<string, string>> } | undefined {
  const { reason, retryAfter } = ('error' in answer ? answer.error.data : undefined) ?? {}
  if (typeof retryAfter !== 'number') return undefined
  // 429: this client sends too much. 503: the server is overloaded.
  return { status: reason === 'rate' || reason === 'share' ? 429 : 503, headers: { 'Retry-After': String(retryAfter) } }
}

export function countOverload(
  answer: unknown,
  meter: Meter,
  onRefused: ((refusal: RefusedRequest) => void) | undefined,
  principal: Principal,
  body: unknown,
): void {
  const data = isObject(answer) && isObject(answer.error) ? answer.error.data : undefined
  const reason = isObject(data) ? data.reason : undefined
  if (reason !== 'share' && reason !== 'busy') return
  meter.count(reason === 'share' ? 'refusedShare' : 'refusedBusy')
  onRefused?.({ outcome: reason, status: reason === 'share' ? 429 : 503, principal: principal.id, body })
}
