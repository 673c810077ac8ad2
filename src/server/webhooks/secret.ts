import { createHmac, randomBytes } from 'node:crypto'
import { invalid } from '../../core/errors.ts'

/** Length of a secret, in bytes (Standard Webhooks). */
const secretBytes = { least: 24, most: 64 }
/** Time for which messages are signed with the earlier secret too, in milliseconds. */
const graceMs = 600_000

/** Signs the messages of one subscription. The secrets cannot be read back. */
export interface Signer {
  /** Returns the header `webhook-signature`: a signature with each secret that is valid now. */
  sign(id: string, seconds: number, body: string): string
  /** Signs with another secret from now on. For ten minutes there is a signature with the earlier one, too. */
  replace(secret: string): void
}

/** @throws ResourceError `invalid`, which does not repeat the secret. */
function parseWebhookSecret(secret: string): Buffer {
  const [, base64] = /^whsec_([A-Za-z0-9+/]{32,88}={0,2})$/.exec(secret) ?? []
  const key = Buffer.from(base64 ?? '', 'base64')
  if (key.length < secretBytes.least || key.length > secretBytes.most || key.toString('base64') !== base64)
    throw invalid('delivery.secret must be "whsec_" and the base64 of 24 to 64 bytes.', 'params')
  return key
}

/** Creates a signer of Standard Webhooks: HMAC-SHA-256 over the id, the time and the body. */
export function createSigner(secret: string): Signer {
  let current = parseWebhookSecret(secret)
  let earlier: { readonly key: Buffer; readonly until: number } | undefined
  return {
    sign: (id, seconds, body) => {
      const keys = [current, ...(earlier !== undefined && earlier.until > Date.now() ? [earlier.key] : [])]
      return keys
        .map((key) => `v1,${createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64')}`)
        .join(' ')
    },
    replace: (next) => {
      const key = parseWebhookSecret(next)
      if (key.equals(current)) return
      earlier = { key: current, until: Date.now() + graceMs }
      current = key
    },
  }
}

/** Returns a challenge, which cannot be guessed. */
export function createChallenge(): string {
  return randomBytes(32).toString('base64url')
}
