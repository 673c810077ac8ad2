import { readFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { createSecureContext, TLSSocket } from 'node:tls'

const folder = join(import.meta.dirname, '../fixtures/tls')
const pem = (name: string) => readFileSync(join(folder, name), 'utf8')

/** The authority that signed the certificate for `database.test` and `localhost`. */
export const authority = pem('ca.pem')
/** The certificate and its key. */
export const identity = { cert: pem('server.pem'), key: pem('server.key') }

export interface TlsFront {
  readonly port: number
  /** Number of encrypted connections, and of encrypted cancellations. */
  readonly encrypted: number
  readonly cancelled: number
  close(): Promise<void>
}

/** Starts a TLS proxy before a PostgreSQL server; with `refuse`, it refuses encryption as a server does. */
export async function startTlsFront(serverPort: number, refuse = false): Promise<TlsFront> {
  const secureContext = createSecureContext(identity)
  const sockets = new Set<Socket>()
  let encrypted = 0
  let cancelled = 0
  const guard = (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    socket.on('close', () => sockets.delete(socket))
  }
  const server = createServer((socket) => {
    guard(socket)
    socket.once('data', (request) => {
      // A connection that does not begin with SSLRequest gets no answer.
      if (request.length !== 8 || request.readInt32BE(4) !== 80877103) return socket.destroy()
      if (refuse) return socket.end('N')
      socket.write('S')
      const secure = new TLSSocket(socket, { isServer: true, secureContext })
      guard(secure)
      const upstream = connect(serverPort, '127.0.0.1')
      guard(upstream)
      secure.once('secure', () => encrypted++)
      secure.once('data', (bytes) => {
        if (bytes.length === 16 && bytes.readInt32BE(4) === 80877102) cancelled++
      })
      secure.pipe(upstream).pipe(secure)
      secure.on('close', () => upstream.destroy())
      upstream.on('close', () => secure.destroy())
      return undefined
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    get encrypted() {
      return encrypted
    },
    get cancelled() {
      return cancelled
    },
    close: () => {
      for (const socket of sockets) socket.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}
