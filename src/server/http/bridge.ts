import { request as askOver, type IncomingMessage, type Server } from 'node:http'
import { type Duplex, duplexPair, Readable } from 'node:stream'

/** Passes requests of the Fetch standard to a Node server that listens on no port. */
export interface Bridge<Note> {
  /** @param address Peer address of the simulated connection. */
  fetch(request: Request, note: Note, address: string | undefined): Promise<Response>
  /** Returns the note of the request on a connection. */
  callOf(socket: Duplex): Note
}

/** Headers that concern only one connection, not the message. */
const ofConnection = new Set(['connection', 'keep-alive', 'transfer-encoding', 'upgrade', 'proxy-connection', 'te'])

/**
 * Creates a bridge. Each request has its own in-memory connection, so it behaves like any other HTTP request, from the limit on
 * headers to back-pressure and disconnects.
 */
export function createBridge<Note extends object>(server: Server): Bridge<Note> {
  const notes = new WeakMap<Duplex, Note>()
  return {
    callOf: (socket) => notes.get(socket) ?? fail(),
    fetch: (request, note, address) =>
      new Promise((resolve, reject) => {
        const [near, far] = duplexPair()
        Object.assign(far, { remoteAddress: address })
        notes.set(far, note)
        // When one end closes, the other one must too.
        near.once('close', () => far.destroy())
        far.once('close', () => near.destroy())
        for (const end of [near, far]) end.on('error', () => {})
        const { pathname, search, host } = partsOf(request.url)
        const sent = askOver({
          createConnection: () => near,
          method: request.method,
          path: `${pathname}${search}`,
          headers: headersOf(request, host),
        })
        const abort = () => near.destroy()
        request.signal.addEventListener('abort', abort)
        if (request.signal.aborted) abort()
        near.once('close', () => request.signal.removeEventListener('abort', abort))
        sent.once('response', (answer) => resolve(responseOf(answer)))
        // After the answer, sending the rest of an unread body may fail.
        sent.on('error', reject)
        server.emit('connection', far)
        if (request.body === null) sent.end()
        else
          Readable.fromWeb(request.body as Parameters<typeof Readable.fromWeb>[0])
            .on('error', (error) => sent.destroy(error))
            .pipe(sent)
      }),
  }
}

function fail(): never {
  throw new Error('a connection that this bridge has not made')
}

/** Returns the original path and the host of an absolute URL that the Fetch standard has parsed. */
function partsOf(url: string) {
  const [, host = '', pathname = '/', search = ''] = /^[a-z]+:\/\/([^/?#]*)(\/[^?#]*)?(\?[^#]*)?/i.exec(url) ?? []
  return { host, pathname, search }
}

function headersOf(request: Request, host: string): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const [name, value] of request.headers) if (!ofConnection.has(name)) headers[name] = value
  headers.host ??= host
  return headers
}

function responseOf(answer: IncomingMessage): Response {
  const headers = new Headers()
  const { rawHeaders, statusCode = 500 } = answer
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? ''
    if (!ofConnection.has(name.toLowerCase())) headers.append(name, rawHeaders[i + 1] ?? '')
  }
  const empty = [204, 205, 304].includes(statusCode)
  if (empty) answer.resume()
  const body = empty ? null : (Readable.toWeb(answer) as unknown as ReadableStream<Uint8Array>)
  return new Response(body, { status: statusCode, headers })
}
