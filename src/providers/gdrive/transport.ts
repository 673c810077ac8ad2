import { invalid } from '../../core/errors.ts'
import { isLoopback } from '../../core/host.ts'
import { followFor } from '../../core/kit/abort.ts'
import { defined } from '../../core/kit/defined.ts'
import { traceContext } from '../../core/trace.ts'
import { parseEndpoint } from '../objects/endpoint.ts'

/** Allow list of hosts: the API, the token server, and the exchange of federated credentials. */
const hosts: ReadonlySet<string> = new Set([
  'www.googleapis.com',
  'oauth2.googleapis.com',
  'sts.googleapis.com',
  'iamcredentials.googleapis.com',
])

/** Default maximum size of an answer, in bytes: fifty times that of a page of a thousand files. */
const maxAnswer = 32 * 2 ** 20
/** Maximum number of bytes read of an error answer. */
const maxRefusal = 64 * 1024

/** Options of a request from the official client, as for `fetch`, with a limit. */
interface Sending extends RequestInit {
  /** Maximum size of the answer, in bytes. */
  readonly size?: number
}

export interface TransportOptions {
  /** A server on this machine that replaces Google, for tests. */
  readonly endpoint: string | undefined
  /** Time-out of one answer with its body, in milliseconds. */
  readonly timeoutMs: number
}

/** Error code of an answer above the limit. */
export const tooLong = 'ETOOLONG'

/** Sends the requests of Google's client, as its `fetchImplementation`. */
export type Transport = (input: unknown, init?: unknown) => Promise<Response>

/**
 * Creates the transport, which sends requests only to Google's own hosts, over TLS, whatever a credentials file, an answer or the environment
 * (proxies) names. It does not follow redirects. It buffers an answer as a whole, up to a limit.
 */
export function createTransport({ endpoint, timeoutMs }: TransportOptions): Transport {
  return async (input, init = {}) => {
    const { size = maxAnswer, signal, headers, method, body } = init as Sending
    const target = input instanceof URL ? input : undefined
    if (target === undefined || target.protocol !== 'https:' || !hosts.has(target.host))
      throw Object.assign(new Error('This host is not asked.'), { code: 'EREFUSED' })
    const sent = new Headers(headers)
    // A range refers to the stored bytes, not to a compressed encoding.
    if (sent.has('range')) sent.set('accept-encoding', 'identity')
    for (const [name, value] of Object.entries(traceContext())) sent.set(name, value)
    const own = followFor(signal ?? [], timeoutMs)
    try {
      const response = await fetch((endpoint ?? target.origin) + target.pathname + target.search, {
        ...defined({ method }),
        ...(body === undefined || body === null ? {} : { body }),
        headers: sent,
        redirect: 'manual',
        signal: own.signal,
      })
      const held = await bodyOf(response, response.ok ? size : maxRefusal)
      return new Response([204, 205, 304].includes(response.status) ? null : held, {
        status: response.status,
        headers: response.headers,
      })
    } finally {
      own.release()
    }
  }
}

async function bodyOf(response: Response, limit: number): Promise<Buffer<ArrayBuffer>> {
  const pieces: Uint8Array[] = []
  let length = 0
  // Leaving the loop closes the connection.
  for await (const piece of response.body ?? []) {
    length += (piece as Uint8Array).length
    if (length > limit) {
      if (!response.ok) break
      throw Object.assign(new Error('The answer is too long.'), { code: tooLong })
    }
    pieces.push(piece as Uint8Array)
  }
  return Buffer.concat(pieces)
}

/**
 * Returns the address of a server that replaces Google: only on this machine, so that no token is ever sent elsewhere.
 *
 * @throws ResourceError `invalid` (reason `endpoint`).
 */
export function standInEndpoint(text: string): string {
  const { url, host } = parseEndpoint(text, false)
  if (!isLoopback(host))
    throw invalid(
      'The endpoint is for tests on this machine, such as "http://127.0.0.1:4443": tokens go to Google alone. Remove it.',
      'endpoint',
    )
  return url
}
