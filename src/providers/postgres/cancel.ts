import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type pg from 'pg'
import type { Target } from './target.ts'

/** How long asking for a cancellation may take, in milliseconds. */
const patience = 2000

/**
 * How to end the statement that a client runs: a message over a connection of its own (PostgreSQL, "Canceling Requests in
 * Progress"), encrypted where the client's is. Whether it helps is not waited for.
 */
export function createCancel(client: pg.Client, target: Target): () => void {
  const { processID, secretKey } = client as unknown as { processID: number | null; secretKey: number | null }
  return () => {
    if (typeof processID !== 'number' || typeof secretKey !== 'number') return
    const message = Buffer.alloc(16)
    message.writeInt32BE(16, 0)
    message.writeInt32BE(80877102, 4)
    message.writeInt32BE(processID, 8)
    message.writeInt32BE(secretKey, 12)
    const { host, port, ssl } = target
    const socket = host.startsWith('/') ? connectTcp(`${host}/.s.PGSQL.${port}`) : connectTcp(port, host)
    const over = guarded(socket)
    socket.once('connect', () => {
      if (ssl === false) {
        over.end(message)
        return
      }
      const request = Buffer.alloc(8)
      request.writeInt32BE(8, 0)
      request.writeInt32BE(80877103, 4)
      socket.write(request)
      socket.once('data', (answer) => {
        if (answer.toString() !== 'S') {
          socket.destroy()
          return
        }
        const secure = connectTls({ ...ssl, socket, host, ...(isIP(host) === 0 ? { servername: host } : {}) })
        guarded(secure)
        secure.once('secureConnect', () => secure.end(message))
      })
    })
  }
}

function guarded<S extends Socket>(socket: S): S {
  socket.on('error', () => socket.destroy())
  socket.setTimeout(patience, () => socket.destroy())
  socket.unref()
  return socket
}
