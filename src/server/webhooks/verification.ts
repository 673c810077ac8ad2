import { createLruCache } from '../../core/kit/lru.ts'
import { jsonIn, memberOf } from '../../core/kit/object.ts'
import { isSameText } from '../../core/kit/same-text.ts'
import type { EventDialect } from '../protocol/event-options.ts'
import { eventError } from '../protocol/events.ts'
import { faultCategory, newControlMessageId, type WebhookReceiver, type WebhookSender } from './delivery.ts'
import { createChallenge } from './secret.ts'

/** Time for which a verified endpoint stays verified. */
const verifiedMs = 24 * 3_600_000
const maxVerified = 10_000
/** Maximum number of verifications of one host in a minute. */
const maxVerifications = 10
const minuteMs = 60_000

/**
 * Creates the verification of endpoints: each must repeat a challenge once a day for each principal, so nobody can have messages
 * sent to an endpoint that does not want them.
 */
export function createEndpointVerification({ attempt }: WebhookSender, dialect: EventDialect) {
  /** Time until which an endpoint is verified for a principal, in milliseconds since 1970. */
  const verified = createLruCache<number>(maxVerified)
  const hosts = createLruCache<{ readonly since: number; count: number }>(maxVerified)

  /** @throws ProtocolError when the endpoint does not repeat the challenge, or its host is asked too often. */
  return async (to: WebhookReceiver): Promise<void> => {
    const key = JSON.stringify([to.principal, to.endpoint.text])
    if ((verified.get(key) ?? 0) > Date.now()) return
    const { host } = to.endpoint.url
    const verification = hosts.get(host)
    const recent =
      verification !== undefined && verification.since > Date.now() - minuteMs
        ? verification
        : { since: Date.now(), count: 0 }
    hosts.set(host, recent)
    if (++recent.count > maxVerifications)
      throw eventError(dialect, 'exhausted', { limit: 'verifications', max: maxVerifications })
    const challenge = createChallenge()
    const body = JSON.stringify({ type: 'verification', challenge })
    const posted = await attempt(to, 'verification', newControlMessageId('verification'), body, 1)
    const isEchoed = 'answer' in posted && isSameText(memberOf(jsonIn(posted.answer), 'challenge'), challenge)
    if (!isEchoed)
      throw eventError(dialect, 'callback', { reason: faultCategory('fault' in posted ? posted.fault : undefined) })
    verified.set(key, Date.now() + verifiedMs)
  }
}
