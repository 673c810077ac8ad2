import { type AddressGuard, sendGuarded } from '../../core/address-guard.ts'
import { type HttpUrl, isNotTlsCode } from '../../core/http-url.ts'
import { followAbortFor } from '../../core/kit/abort.ts'
import type { Signer } from './secret.ts'

/** Time-out of one message, in milliseconds. */
const timeoutMs = 10_000
const maxAnswerBytes = 4096
/** Maximum size of a message, in bytes. */
export const maxBodyBytes = 256 * 1024

/** Why an endpoint did not take a message. */
export type PostFault =
  | 'connection_refused'
  | 'timeout'
  | 'tls_error'
  | 'http_4xx'
  | 'http_5xx'
  | 'challenge_failed'
  /** The endpoint wants no more messages (410). */
  | 'gone'
  /** The message is too large for the endpoint (413). */
  | 'too_large'

export type PostResult = { readonly answer: string } | { readonly fault: PostFault }

export interface WebhookMessage {
  readonly url: HttpUrl
  readonly id: string
  readonly subscription: string
  readonly body: string
  readonly signer: Signer
}

interface PostOptions {
  readonly guard: AddressGuard
  readonly ca?: string
  readonly signal: AbortSignal
}

/**
 * Sends one message to an endpoint. The address is checked at each attempt, and the connection goes to the checked address. Redirects are
 * not followed. Never rejects.
 */
export async function postMessage(message: WebhookMessage, { guard, ca, signal }: PostOptions): Promise<PostResult> {
  const { url, id, subscription, body, signer } = message
  const seconds = Math.floor(Date.now() / 1000)
  const within = followAbortFor(signal, timeoutMs)
  try {
    const response = await sendGuarded(guard, {
      url,
      headers: {
        'Content-Type': 'application/json',
        'User-Agent': 'hikidashi',
        'webhook-id': id,
        'webhook-timestamp': String(seconds),
        'webhook-signature': signer.sign(id, seconds, body),
        'X-MCP-Subscription-Id': subscription,
      },
      body,
      signal: within.signal,
      ...(ca === undefined ? {} : { ca }),
    })
    const { statusCode = 0 } = response
    if (statusCode < 200 || statusCode > 299) {
      response.destroy()
      return { fault: faultOfStatus(statusCode) }
    }
    const chunks: Buffer[] = []
    let size = 0
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.length
      // The endpoint has accepted the message, so the rest of its answer does not matter.
      if (size > maxAnswerBytes) break
      chunks.push(chunk)
    }
    return { answer: Buffer.concat(chunks).toString() }
  } catch (error) {
    return { fault: within.signal.aborted ? 'timeout' : faultOfError(error) }
  } finally {
    within.release()
  }
}

function faultOfStatus(status: number): PostFault {
  if (status === 410) return 'gone'
  if (status === 413) return 'too_large'
  return status >= 500 ? 'http_5xx' : 'http_4xx'
}

/**
 * Converts an error of a connection. A refused address gives the same fault as one at which nothing listens, so the answer does not show
 * which addresses exist in a private network.
 */
function faultOfError(error: unknown): PostFault {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  const isTls =
    isNotTlsCode(code) || /^(?:ERR_TLS|ERR_SSL|CERT_|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|HOSTNAME_)/.test(code)
  return isTls ? 'tls_error' : 'connection_refused'
}
