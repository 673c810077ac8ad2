import { randomBytes } from 'node:crypto'
import type { AddressGuard } from '../../core/address-guard.ts'
import { originOf } from '../../core/http-url.ts'
import { sleep } from '../../core/kit/abort.ts'
import type { Delivery } from '../../core/shared.ts'
import { createGate } from '../admission/gate.ts'
import type { Audit } from '../telemetry/audit.ts'
import { type PostFault, type PostResult, postMessage } from './post.ts'
import type { Signer } from './secret.ts'
import type { CallbackUrl } from './subscribing.ts'

export interface WebhookReceiver {
  /** Id of the receiver's subscription, as `hikidashi events` prints it. */
  readonly id: string
  readonly name: string
  readonly principal: string
  readonly endpoint: CallbackUrl
  readonly signer: Signer
}

export interface DeliveryState {
  lastDeliveryAt: number | undefined
  lastError: PostFault | undefined
  failedSince: number | undefined
}

export interface WebhookSenderOptions {
  readonly guard: AddressGuard
  /** Certificates of authorities, in PEM. Default: those that Node trusts. */
  readonly ca?: string | undefined
  /** Pauses between the attempts to send one message, in milliseconds. */
  readonly retriesMs: readonly number[]
  readonly audit?: Audit | undefined
  readonly onDelivery?: ((delivery: Delivery) => void) | undefined
  readonly signal: AbortSignal
}

/**
 * `taken`: the endpoint took the message, or never will. `gone`: the endpoint wants no more. `failed`: all attempts failed, or were
 * aborted.
 */
export type DeliveryOutcome = 'taken' | 'gone' | 'failed'

/** Maximum number of messages that are sent at once. */
const maxSending = 50

/** Sends messages to endpoints, and records each attempt. */
export function createWebhookSender({
  guard,
  ca,
  retriesMs,
  audit,
  onDelivery,
  signal: closing,
}: WebhookSenderOptions) {
  const gate = createGate(maxSending, Number.POSITIVE_INFINITY)

  const attempt = async (
    to: WebhookReceiver,
    kind: Delivery['kind'],
    message: string,
    body: string,
    number: number,
  ): Promise<PostResult> => {
    const start = performance.now()
    const { id: subscription, principal, name, endpoint, signer } = to
    const { url } = endpoint
    const origin = originOf(url)
    const sent = { url, id: message, subscription, body, signer }
    const ran = await gate.run(() => postMessage(sent, { guard, signal: closing, ...(ca === undefined ? {} : { ca }) }))
    const posted: PostResult = 'refused' in ran ? { fault: 'timeout' } : ran.value
    const outcome = 'fault' in posted ? posted.fault : 'ok'
    const facts = { time: new Date().toISOString(), subscription, principal, outcome }
    const ms = Math.round(performance.now() - start)
    onDelivery?.({ ...facts, origin, name, message, kind, attempt: number, ms })
    audit?.({ ...facts, transport: 'http', verb: 'webhook', uri: origin, ms })
    return posted
  }

  return {
    attempt,
    /** Sends a message until the endpoint takes it, the attempts are used up, or the signal aborts. */
    deliver: async (
      to: WebhookReceiver & DeliveryState,
      kind: Delivery['kind'],
      message: string,
      body: string,
      signal: AbortSignal,
    ): Promise<DeliveryOutcome> => {
      for (let number = 1; ; number++) {
        const posted = await attempt(to, kind, message, body, number)
        if (!('fault' in posted)) {
          Object.assign(to, { lastDeliveryAt: Date.now(), lastError: undefined, failedSince: undefined })
          return 'taken'
        }
        if (posted.fault === 'gone') return 'gone'
        if (posted.fault === 'too_large') return 'taken'
        to.lastError = posted.fault
        to.failedSince ??= Date.now()
        const pauseMs = retriesMs[number - 1]
        if (pauseMs === undefined) return 'failed'
        await sleep(pauseMs, signal)
        if (signal.aborted) return 'failed'
      }
    },
  }
}

export type WebhookSender = ReturnType<typeof createWebhookSender>

/** Creates a random id for a message that is no event, such as a verification. */
export function newControlMessageId(type: string): string {
  return `msg_${type}_${randomBytes(12).toString('hex')}`
}

/** Returns the category of a fault, as clients get it. Without a fault, the endpoint did not repeat the challenge. */
export function faultCategory(fault: PostFault | undefined): string {
  return fault === undefined ? 'challenge_failed' : fault === 'gone' || fault === 'too_large' ? 'http_4xx' : fault
}
