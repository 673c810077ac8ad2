import { invalid, notFound, type ResourceError, tooLarge, unavailable } from '../../core/errors.ts'
import { followAbortFor } from '../../core/kit/abort.ts'
import { defined, jsonIn } from '../../core/kit/object.ts'
import { traceContext } from '../../core/trace.ts'
import { isLoopback } from '../../core/uri.ts'
import { parseEndpoint } from '../objects/endpoint.ts'

/** Allow list of hosts: the API, the token server, and the exchange of federated credentials. */
const hosts: ReadonlySet<string> = new Set([
  'www.googleapis.com',
  'oauth2.googleapis.com',
  'sts.googleapis.com',
  'iamcredentials.googleapis.com',
])

/** Default maximum size of an answer, in bytes. */
const maxAnswerBytes = 32 * 2 ** 20
/** Maximum number of bytes read of an error answer. */
const maxRefusalBytes = 64 * 1024

interface Sending extends RequestInit {
  /** Maximum size of the answer, in bytes. */
  readonly size?: number
}

const tooLong = 'ETOOLONG'

/** The `fetchImplementation` of Google's client. */
export type Transport = (input: unknown, init?: unknown) => Promise<Response>

/**
 * Creates the transport, which sends requests only to Google's own hosts, over TLS. It refuses other hosts that a credentials file or an
 * answer names, and follows no redirects. It buffers an answer as a whole, up to a limit.
 *
 * @param endpoint A server on this machine that replaces Google, for tests.
 * @param timeoutMs Time-out of one answer with its body, in milliseconds.
 */
export function createTransport(endpoint: string | undefined, timeoutMs: number): Transport {
  return async (input, init = {}) => {
    const { size = maxAnswerBytes, signal, headers, method, body } = init as Sending
    const target = input instanceof URL ? input : undefined
    if (target === undefined || target.protocol !== 'https:' || !hosts.has(target.host))
      throw Object.assign(new Error('No request is sent to this host.'), { code: 'EREFUSED' })
    const sent = new Headers(headers)
    // A range refers to the stored bytes, not to a compressed encoding.
    if (sent.has('range')) sent.set('accept-encoding', 'identity')
    for (const [name, value] of Object.entries(traceContext())) sent.set(name, value)
    const own = followAbortFor(signal ?? [], timeoutMs)
    try {
      const response = await fetch((endpoint ?? target.origin) + target.pathname + target.search, {
        ...defined({ method }),
        ...(body === undefined || body === null ? {} : { body }),
        headers: sent,
        redirect: 'manual',
        signal: own.signal,
      })
      const bytes = await readResponseBody(response, response.ok ? size : maxRefusalBytes)
      return new Response([204, 205, 304].includes(response.status) ? null : bytes, {
        status: response.status,
        headers: response.headers,
      })
    } finally {
      own.release()
    }
  }
}

async function readResponseBody(response: Response, limit: number): Promise<Buffer<ArrayBuffer>> {
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
 * Parses the address of a server that replaces Google. It must be on this machine, because it gets the tokens.
 *
 * @throws ResourceError `invalid` (reason `configuration`).
 */
export function parseLoopbackEndpoint(text: string): string {
  const { url, host } = parseEndpoint(text, false)
  if (!isLoopback(host))
    throw invalid(
      '"endpoint" must be a server on this machine, such as "http://127.0.0.1:4443", because other servers must not get the tokens. Remove it.',
      'configuration',
    )
  return url
}

/** Facts of a failed request that are safe to show. */
export interface RequestFault {
  /** HTTP status; undefined: there was no answer. */
  readonly status?: number
  /** Google's error code, such as `userRateLimitExceeded`. */
  readonly reason?: string
  readonly retryAfterMs?: number
  /** Error code of the system, or `EREFUSED` or `ETOOLONG` of this module, when there is no status. */
  readonly code?: string
}

/** Maximum size of an export by Google, in bytes. */
export const maxExportBytes = 10 * 1024 * 1024

export function toRequestFault(error: unknown): RequestFault {
  const response = memberOf(error, 'response')
  const status = memberOf(response, 'status')
  if (typeof status !== 'number') return defined({ code: findErrorCode(error) })
  const reason = reasonIn(dataOf(memberOf(response, 'data')))
  const headers = memberOf(response, 'headers')
  const wait = headers instanceof Headers ? headers.get('retry-after') : memberOf(headers, 'retry-after')
  const retryAfterMs = typeof wait === 'string' ? waitOf(wait) : undefined
  return { status, ...defined({ reason, retryAfterMs }) }
}

/** Parses `Retry-After`: seconds, or a date (RFC 9110, section 10.2.3). Returns milliseconds. */
function waitOf(text: string): number | undefined {
  const ms = /^\d{1,6}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now()
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined
}

function dataOf(data: unknown): unknown {
  const text = typeof data === 'string' ? data : data instanceof ArrayBuffer ? Buffer.from(data).toString() : undefined
  return text === undefined ? data : jsonIn(text)
}

/** Reads the reason from an API error (`error.errors[].reason`), or from an error of the token server (`error`). Accepts only a single word. */
function reasonIn(data: unknown): string | undefined {
  const error = memberOf(data, 'error')
  const errors = memberOf(error, 'errors')
  const reason = typeof error === 'string' ? error : memberOf(Array.isArray(errors) ? errors[0] : undefined, 'reason')
  return typeof reason === 'string' && /^\w{1,64}$/.test(reason) ? reason : undefined
}

function findErrorCode(error: unknown): string | undefined {
  for (let at: unknown = error, depth = 0; depth < 6 && at !== undefined; depth++) {
    const code = memberOf(at, 'code')
    if (typeof code === 'string' && /^[A-Z][A-Z0-9_]+$/.test(code)) return code
    at = memberOf(at, 'cause')
  }
  return undefined
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}

export function isQuotaFault({ status, reason }: RequestFault): boolean {
  return status === 429 || (status === 403 && reason !== undefined && quota.has(reason))
}

const quota: ReadonlySet<string> = new Set(['userRateLimitExceeded', 'rateLimitExceeded', 'sharingRateLimitExceeded'])

export function isTransientFault(fault: RequestFault): boolean {
  const { status, code } = fault
  if (status !== undefined) return status === 408 || status >= 500 || isQuotaFault(fault)
  return code !== 'EREFUSED' && code !== tooLong
}

export function isExpiredChangesFault({ status = 0, reason }: RequestFault): boolean {
  return [400, 404, 410].includes(status) && reason !== 'invalid_grant'
}

/** Subject of a request: a file, which may be gone; or the mounted folder or drive, which must exist. */
export type RequestSubject = 'file' | 'drive'

export function toCallerError(fault: RequestFault, about: RequestSubject): ResourceError {
  const { status, reason = '', code } = fault
  if (isQuotaFault(fault))
    return unavailable('Google limits the rate of requests. Try again later, or raise the quota.')
  if (status === 401 || reason === 'invalid_grant' || reason === 'unauthorized_client' || reason === 'invalid_client')
    return unavailable(
      'Google rejects the credentials. They may have been revoked, or have expired: run hikidashi auth gdrive. ' +
        'For a service account, check its key, and the delegation to "subject".',
    )
  if (reason === 'exportSizeLimitExceeded')
    return tooLarge(
      `Google exports at most ${maxExportBytes} bytes of a document, and this one is larger. Split it, or open its link.`,
      { reason: 'too-much', limit: maxExportBytes },
    )
  if (reason === 'cannotDownloadAbusiveFile')
    return invalid('Google classifies this file as malware or spam, and refuses the download.', 'refused')
  if (status === 416) return invalid('The range begins after the end of the file.', 'range')
  if (reason === 'accessNotConfigured')
    return unavailable('The Google Drive API is not enabled for the project of the credentials. Enable it.')
  if (reason === 'insufficientPermissions' || reason === 'insufficientScopes')
    return unavailable(
      'The credentials do not have the scope drive.readonly. Run: hikidashi auth gdrive, and allow what it asks for.',
    )
  if (reason === 'dailyLimitExceeded' || reason === 'domainPolicy')
    return unavailable(
      'Google refuses this request: the quota of the day is used up, or a policy of the domain forbids it.',
    )
  if (status === 403 || status === 404)
    return about === 'file'
      ? notFound('Drive has no such file for these credentials')
      : unavailable(
          'There is no such folder or shared drive, or the credentials may not see it. Correct the id, or share the folder with them.',
        )
  if (code === 'EREFUSED')
    return unavailable('The credentials name a host that is not one of Google. No request is sent to it.')
  if (code === tooLong)
    return unavailable('The answer of Google is longer than expected, so it is not read. Try again later.')
  return status === undefined
    ? unavailable(`Google cannot be reached (${code ?? 'no answer'}). Check the network.`)
    : unavailable(`Google has answered with HTTP ${status}. Try again later.`)
}
