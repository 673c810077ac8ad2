import type { IncomingMessage } from 'node:http'
import { pipeline, type Readable } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { type AddressGuard, refusedHostCode, sendGuarded } from '../../core/address-guard.ts'
import { isResourceError, type ResourceError, tooLarge, unavailable } from '../../core/errors.ts'
import { type HttpUrl, isNotTlsCode, originOf, resolveHttpUrl } from '../../core/http-url.ts'
import { followAbortFor } from '../../core/kit/abort.ts'
import { defined } from '../../core/kit/object.ts'

interface ClientOptions {
  readonly guard: AddressGuard
  /** Time-out of one answer, with all redirects and the whole body, in milliseconds. */
  readonly timeoutMs: number
  /** Maximum size of a body, compressed and uncompressed, in bytes. */
  readonly maxBytes: number
  /** Other origins that redirects may lead to (`https://www.example.org`), besides the requested one. */
  readonly redirects?: readonly string[]
  /** Certificates of additional authorities, besides those that Node trusts. */
  readonly ca?: string
}

export interface HttpRequest {
  readonly url: HttpUrl
  /** Headers sent also after a redirect. */
  readonly headers?: Readonly<Record<string, string>>
  /** Headers sent only to the origin of the request, and not after a redirect has left it. */
  readonly own?: Readonly<Record<string, string>>
  /** Checks the media type before the body is read, and throws for an unwanted one. */
  readonly accept?: (contentType: string | undefined) => void
  readonly signal: AbortSignal
}

export interface HttpAnswer {
  readonly status: number
  header(name: string): string | undefined
  /** The uncompressed body of a successful answer; otherwise empty. */
  readonly body: Buffer
  /** The URL after all redirects. */
  readonly url: HttpUrl
}

export type HttpGet = (ask: HttpRequest) => Promise<HttpAnswer>

const maxHops = 5

/**
 * Creates a client for HTTP GET, with limits of time and size, which connects only where the guard allows it.
 *
 * A redirect may lead to the same origin, or one of `redirects`; the guard checks it like the first URL. Throws ResourceError
 * `unavailable` or `too-large`, and the errors of `accept`.
 */
export function createHttpClient(options: ClientOptions): HttpGet {
  const { guard, timeoutMs, maxBytes, redirects = [], ca } = options

  const send = (url: HttpUrl, headers: Readonly<Record<string, string>>, signal: AbortSignal) => {
    const refusal = guard.refusal(url)
    if (refusal !== undefined) throw unreachableError(url, refusal)
    return sendGuarded(guard, {
      url,
      headers: { 'User-Agent': userAgent, 'Accept-Encoding': 'gzip, br', ...headers },
      signal,
      ...defined({ ca }),
    })
  }

  const follow = (from: HttpUrl, first: string, location: string): HttpUrl => {
    let next: HttpUrl
    try {
      next = resolveHttpUrl(from, location)
    } catch {
      throw unreachableError(from, 'it redirects to a URL that is not valid, or is not http or https')
    }
    if (from.scheme === 'https' && next.scheme === 'http')
      throw unreachableError(
        from,
        'it redirects from https:// to http://, where others could read and change the answer',
      )
    const origin = originOf(next)
    if (origin !== first && !redirects.includes(origin))
      throw unreachableError(from, 'it redirects to another origin ("redirects" permits origins)')
    return next
  }

  const ask = async (
    { url: start, headers = {}, own = {}, accept }: HttpRequest,
    signal: AbortSignal,
  ): Promise<HttpAnswer> => {
    const first = originOf(start)
    let url = start
    let isOwn = true
    for (let hop = 0; ; hop++) {
      const response = await send(url, { ...headers, ...(isOwn ? own : {}) }, signal)
      const { statusCode: status = 0 } = response
      const { location } = response.headers
      if (redirectCodes.has(status) && location !== undefined) {
        response.destroy()
        if (hop === maxHops) throw unreachableError(start, `it redirects more than ${maxHops} times`)
        url = follow(url, first, location)
        isOwn &&= originOf(url) === first
        continue
      }
      const isGood = status >= 200 && status < 300 && status !== 206
      try {
        if (isGood) accept?.(response.headers['content-type'])
        const body = isGood ? await readAnswerBody(response, url, maxBytes) : Buffer.alloc(0)
        return { status, url, body, header: (name) => [response.headers[name]].flat().join(', ') || undefined }
      } finally {
        response.destroy()
      }
    }
  }

  return async (request) => {
    request.signal.throwIfAborted()
    const { signal, release } = followAbortFor(request.signal, timeoutMs)
    try {
      return await ask(request, signal)
    } catch (error) {
      request.signal.throwIfAborted()
      if (isResourceError(error)) throw error
      throw unreachableError(
        request.url,
        signal.aborted ? `it took longer than ${timeoutMs} ms` : requestErrorReason(error),
        connectionErrorCode(error),
      )
    } finally {
      release()
    }
  }
}

const redirectCodes: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

const userAgent = 'hikidashi (reads what its operator configured; https://modelcontextprotocol.io)'

/** @throws ResourceError `too-large` beyond `maxBytes`, `unavailable` for an unknown content encoding, and for several. */
async function readAnswerBody(response: IncomingMessage, url: HttpUrl, maxBytes: number): Promise<Buffer> {
  if (Number(response.headers['content-length'] ?? 0) > maxBytes) throw tooLong(maxBytes)
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of decompressBody(response, url, maxBytes)) {
    length += chunk.length
    if (length > maxBytes) throw tooLong(maxBytes)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/**
 * Returns the uncompressed body of an answer in chunks. The caller limits its size; the compressed size is limited to `maxBytes`.
 *
 * @throws ResourceError `unavailable` for an unknown content encoding, and for several.
 */
export function decompressBody(response: IncomingMessage, url: HttpUrl, maxBytes: number): AsyncIterable<Buffer> {
  const encoding = (response.headers['content-encoding'] ?? 'identity').trim().toLowerCase()
  const unpack = unpackers[encoding]
  if (unpack === undefined) throw unreachableError(url, 'its answer has an unknown content encoding, or more than one')
  const stream: Readable =
    encoding === 'identity' ? response : pipeline(response, limitCompressedSize(response, unpack(), maxBytes), () => {})
  return stream as AsyncIterable<Buffer>
}

const unpackers: Readonly<Record<string, () => ReturnType<typeof createGunzip>>> = {
  identity: () => createGunzip(),
  gzip: () => createGunzip(),
  'x-gzip': () => createGunzip(),
  deflate: () => createInflate(),
  br: () => createBrotliDecompress() as ReturnType<typeof createGunzip>,
}

/** Limits the compressed size, because a large input may have little output. */
function limitCompressedSize<T extends { destroy(error?: Error): unknown }>(
  response: IncomingMessage,
  unpacker: T,
  most: number,
): T {
  let value = 0
  response.on('data', (chunk: Buffer) => {
    value += chunk.length
    if (value > most) unpacker.destroy(tooLong(most))
  })
  return unpacker
}

export function unreachableError(url: HttpUrl, why: string, code?: string): ResourceError {
  const message = `${originOf(url)} did not give a usable answer: ${why}.`
  return unavailable(message, code === undefined ? {} : { code })
}

function tooLong(limit: number): ResourceError {
  return tooLarge(`The answer is longer than the limit of ${limit} bytes. Raise "maxBytes" of the mount.`, { limit })
}

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ECONNRESET: 'it closed the connection',
  EPIPE: 'it closed the connection',
  UND_ERR_SOCKET: 'it closed the connection',
  ENOTFOUND: 'the host does not exist',
  EAI_AGAIN: 'the name of the host cannot be looked up',
  EHOSTUNREACH: 'there is no route to the host',
  ENETUNREACH: 'there is no route to the host',
  UND_ERR_CONNECT_TIMEOUT: 'the connection timed out',
  HPE_HEADER_OVERFLOW: 'the headers of its answer are too long',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is not from a trusted authority (NODE_EXTRA_CA_CERTS names others)',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is not from a trusted authority (NODE_EXTRA_CA_CERTS names others)',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate is not from a trusted authority (NODE_EXTRA_CA_CERTS names others)',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another host',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  ERR_SSL_UNSUPPORTED_PROTOCOL: 'it supports only an insecure version of TLS',
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: 'it supports only an insecure version of TLS',
  Z_DATA_ERROR: 'its compressed answer is damaged',
  Z_BUF_ERROR: 'its compressed answer is cut off',
}

/** Returns why a server does not answer, without text from the server. */
export function requestErrorReason(error: unknown): string {
  const code = connectionErrorCode(error)
  if (code === refusedHostCode && error instanceof Error) return error.message
  if (isNotTlsCode(code)) return 'it does not speak TLS'
  return reasons[code] ?? (code.startsWith('HPE_') ? 'its answer is not HTTP' : code)
}

/** Returns the error code of the underlying failure, or a fixed text if there is none. The message of an error may hold parts of the answer. */
function connectionErrorCode(error: unknown): string {
  for (let at: unknown = error; at instanceof Error; at = at.cause)
    if ('code' in at && typeof at.code === 'string') return at.code
  return 'the connection failed'
}
