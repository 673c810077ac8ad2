import { codes } from './errors.ts'
import type { Crowded } from './gate.ts'
import { failure, type RequestId, type Response } from './messages.ts'

/** Answers that say "later", in JSON-RPC and in HTTP. */

export type Overload = Crowded | 'rate'

const messages: Readonly<Record<Overload, string>> = {
  rate: 'There were too many requests. Try again later.',
  share: 'Too many requests of this client are in flight. Try again later.',
  busy: 'Too many requests are in flight. Try again later.',
}

/** The answer to a request that is not worked on. `retryAfter` is in seconds. */
export function overloaded(id: RequestId | null, reason: Overload, retryAfter = 1): Response {
  const data = { reason, retryAfter: Math.max(1, Math.ceil(retryAfter)) }
  return failure(id, { code: codes.internal, message: messages[reason], data })
}

/** The status of an answer that says when to come back, and the header that says it too. */
export function statusOfOverload(
  answer: Response,
): { readonly status: 429 | 503; readonly headers: Readonly<Record<string, string>> } | undefined {
  const { reason, retryAfter } = ('error' in answer ? answer.error.data : undefined) ?? {}
  if (typeof retryAfter !== 'number') return undefined
  // 429 is for who asks too much, 503 for who came when it was too much.
  return { status: reason === 'rate' || reason === 'share' ? 429 : 503, headers: { 'Retry-After': String(retryAfter) } }
}
