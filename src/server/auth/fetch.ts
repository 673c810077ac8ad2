import type { IncomingMessage } from 'node:http'
import { createServiceGuard, refusedHostCode, type ServiceNetwork, sendGuarded } from '../../core/address-guard.ts'
import { ResourceError } from '../../core/errors.ts'
import { parseHttpUrl } from '../../core/http-url.ts'
import { defined } from '../../core/kit/object.ts'

/** Time-out of a request to an issuer, in milliseconds. */
const timeoutMs = 3000
/** Maximum length of the answer, in bytes. */
const maxBytes = 256 * 1024

/** Additions to the request, and its network settings. */
interface FetchOptions extends ServiceNetwork {
  /** Form to send by POST. Without it, the request is a GET. */
  readonly body?: string
  readonly authorization?: string
}

/**
 * Fetches JSON from a URL of the configuration, if {@link createServiceGuard} allows the addresses of its host. A redirect is a failure.
 *
 * @throws ResourceError `unavailable`, for every fault.
 */
export async function fetchJson(url: string, options: FetchOptions = {}) {
  const { body, authorization } = options
  try {
    const httpUrl = parseHttpUrl(url)
    const response = await sendGuarded(createServiceGuard(httpUrl, options), {
      url: httpUrl,
      signal: AbortSignal.timeout(timeoutMs),
      headers: {
        Accept: 'application/json',
        // An answer that is not compressed cannot expand.
        'Accept-Encoding': 'identity',
        ...(body === undefined ? {} : { 'Content-Type': 'application/x-www-form-urlencoded' }),
        ...defined({ Authorization: authorization }),
      },
      ...defined({ body }),
    })
    const { statusCode: status = 0, headers } = response
    try {
      if (status !== 200) throw new Error(`the answer has the status ${status}`)
      const date = Date.parse(headers.date ?? '')
      const value: unknown = JSON.parse(await readBodyText(response))
      const ahead = Number.isNaN(date) ? undefined : date - Date.now()
      return { value, ahead }
    } finally {
      response.destroy()
    }
  } catch (error) {
    throw new ResourceError('unavailable', `There is no valid answer from ${url}: ${fetchErrorReason(error)}`)
  }
}

async function readBodyText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > maxBytes) throw new Error(`the answer is longer than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
}

/** Returns the reason of a failure, but not the message of the JSON parser, which may quote the answer. */
function fetchErrorReason(error: unknown): string {
  if (error instanceof SyntaxError) return 'it is not JSON'
  if (!(error instanceof Error)) return 'unknown'
  const code = 'code' in error ? String(error.code) : undefined
  if (code === refusedHostCode) return error.message
  return error.name === 'AbortError' ? `it took longer than ${timeoutMs} ms` : (code ?? error.message)
}
