import { type IncomingMessage, type RequestOptions, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { type Guard, notPublic, refusedHost } from './address-guard.ts'
import type { HttpUrl } from './http-url.ts'
import { traceContext, traced } from './trace.ts'

interface GuardedRequest {
  readonly url: HttpUrl
  readonly headers: Readonly<Record<string, string>>
  /** Body of a POST. Without it, the request is a GET. */
  readonly body?: string
  /** Aborts the request, and the reading of its answer. */
  readonly signal: AbortSignal
  /** Certificates of authorities, in PEM. They replace those that Node trusts. */
  readonly ca?: string
}

/** Maximum size of the answer's headers, in bytes. */
const maxHeaderBytes = 32 * 1024
/** Maximum number of informational answers before the answer (100 Continue, 103 Early Hints). */
const maxPreliminary = 16

/**
 * Sends one request over a connection of its own, and resolves with the answer, whose body has not been read. Before any byte is
 * sent, the guard checks the URL, then every address of the host, then the address of the connection. A redirect is an answer
 * like any other. Proxy variables of the environment have no effect.
 *
 * Rejects with an error of Node, or, when the guard refuses, with the code {@link refusedHost} and a message for the operator.
 */
export function sendGuarded(guard: Guard, request: GuardedRequest): Promise<IncomingMessage> {
  const { host, port, scheme } = request.url
  const method = request.body === undefined ? 'GET' : 'POST'
  const place = { 'server.address': host, 'server.port': Number(port), 'url.scheme': scheme }
  const attributes = { 'http.request.method': method, ...place }
  const options = { kind: 'client', attributes, duration: 'http.client.request.duration' } as const
  return traced(method, options, async (span) => {
    const response = await send(guard, request)
    const { statusCode = 0 } = response
    span.set({ 'http.response.status_code': statusCode })
    if (statusCode >= 400) span.fail(String(statusCode))
    return response
  })
}

function send(guard: Guard, { url, headers, body, signal, ca }: GuardedRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const refusal = guard.refusal(url)
    if (refusal !== undefined) return reject(refused(refusal))
    const options: RequestOptions & { ca?: string } = {
      method: body === undefined ? 'GET' : 'POST',
      hostname: url.host,
      port: url.port,
      path: url.target,
      headers: {
        ...headers,
        ...traceContext(),
        ...(body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }),
      },
      agent: false,
      lookup: guard.lookup,
      maxHeaderSize: maxHeaderBytes,
      signal,
      ...(ca === undefined ? {} : { ca }),
    }
    const request =
      url.scheme === 'https'
        ? requestHttps({ ...options, minVersion: 'TLSv1.2' }, resolve)
        : requestHttp(options, resolve)
    let preliminary = 0
    request.on('information', () => {
      if (++preliminary > maxPreliminary) request.destroy(Object.assign(new Error('stalled'), { code: 'ECONNRESET' }))
    })
    request.on('upgrade', (_, socket) => socket.destroy())
    request.on('socket', (socket) =>
      socket.once('connect', () => {
        if (!guard.allows(socket.remoteAddress)) request.destroy(refused(notPublic))
      }),
    )
    request.on('error', reject)
    request.end(body)
  })
}

function refused(why: string): Error {
  return Object.assign(new Error(why), { code: refusedHost })
}
