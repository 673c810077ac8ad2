import { followFor } from '../../core/abort.ts'
import { invalid } from '../../core/errors.ts'
import { isLoopback } from '../../core/host.ts'
import { parseEndpoint } from '../objects/endpoint.ts'

/** The hosts that are ever asked: of the API, of tokens, and of what exchanges federated credentials. */
const hosts: ReadonlySet<string> = new Set([
  'www.googleapis.com',
  'oauth2.googleapis.com',
  'sts.googleapis.com',
  'iamcredentials.googleapis.com',
])

/** The longest answer that is taken where nothing else is said, in bytes: a page of a thousand files has a fiftieth of it. */
const maxAnswer = 32 * 2 ** 20
/** What is looked at of an answer that is no success. */
const maxRefusal = 64 * 1024

/** What the official client hands over: the options of a request, as `fetch` takes them, with limits of its own. */
interface Sending extends RequestInit {
  /** In bytes, of the answer. */
  readonly size?: number
}

export interface TransportOptions {
  /** A server on this machine that is asked in the place of Google: for tests. */
  readonly endpoint: string | undefined
  /** How long one answer may take, with its body, in milliseconds. */
  readonly timeoutMs: number
}

/** An answer would be longer than what is taken. */
export const tooLong = 'ETOOLONG'

/** How Google's client sends what it has to say: given to it as `fetchImplementation`. */
export type Transport = (input: unknown, init?: unknown) => Promise<Response>

/**
 * Sends requests to Google, and to nobody else: whatever a credentials file, an answer or the environment (proxies) names, only
 * Google's own hosts are asked, over TLS. Redirects are not followed. An answer is held as a whole, up to a limit.
 */
export function createTransport({ endpoint, timeoutMs }: TransportOptions): Transport {
  return async (input, init = {}) => {
    const { size = maxAnswer, signal, headers, method, body } = init as Sending
    const target = input instanceof URL ? input : undefined
    if (target === undefined || target.protocol !== 'https:' || !hosts.has(target.host))
      throw Object.assign(new Error('This host is not asked.'), { code: 'EREFUSED' })
    const sent = new Headers(headers)
    // Parts of what is stored are parts of it as it is stored.
    if (sent.has('range')) sent.set('accept-encoding', 'identity')
    const own = followFor(signal ?? [], timeoutMs)
    try {
      const response = await fetch((endpoint ?? target.origin) + target.pathname + target.search, {
        ...(method === undefined ? {} : { method }),
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
  // Leaving the loop ends the connection.
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
 * The address of a server that stands in for Google: on this machine alone, so that no token is ever led elsewhere.
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
