import type { Server, ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { invalid } from '../../core/errors.ts'
import type { Meter } from '../telemetry/meter.ts'
import type { Addresses } from './addresses.ts'
import type { Liveness } from './liveness.ts'
import type { TurnedAway } from './refused.ts'
import type { Room } from './room.ts'

/** The connections of a service, below the level of requests. */
export interface Sockets {
  /** Closes the connections without a request. */
  closeIdle(): void
}

export interface SocketOptions {
  readonly liveness: Liveness
  readonly addresses: Addresses
  readonly meter: Meter
  readonly onRefused: (refusal: TurnedAway) => void
  /** Returns the answer that is currently made or sent on a connection. */
  readonly answering: (socket: Duplex) => ServerResponse | undefined
  /** Limits the number of open connections. Default no limit. */
  readonly room?: Room
}

export function watchSockets(server: Server, options: SocketOptions): Sockets {
  const { liveness, addresses, meter, onRefused, answering, room } = options
  const sockets = new Set<Socket>()

  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    const seconds = addresses.connect(socket)
    if (seconds === 0) {
      if (room === undefined || room.enter(socket)) liveness.watch(socket)
      else {
        meter.count('refusedConnections')
        socket.destroy()
      }
      return
    }
    liveness.watch(socket)
    meter.count('refusedConnects')
    onRefused({ outcome: 'connections', status: 429, address: addresses.of(socket) })
    // Do not even read the received bytes.
    socket.pause()
    hangUp(socket, '429 Too Many Requests', `Retry-After: ${Math.max(1, Math.ceil(seconds))}\r\n`)
  })
  server.on('drop', () => meter.count('refusedConnections'))
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const response = answering(socket)
    if (error.code === 'HPE_HEADER_OVERFLOW') meter.count('refusedHeaders')
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') meter.count('late')
    // In the middle of an answer, a status line would be read as a part of it.
    if (response?.headersSent && !response.writableFinished) socket.destroy()
    else hangUp(socket, clientErrors.get(error.code) ?? '400 Bad Request')
  })
  server.on('upgrade', (_request, socket) => hangUp(socket, '400 Bad Request'))

  return {
    closeIdle: () => {
      server.closeIdleConnections()
      // Node does not count connections that have received nothing yet.
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
    },
  }
}

const clientErrors: ReadonlyMap<string | undefined, string> = new Map([
  ['HPE_HEADER_OVERFLOW', '431 Request Header Fields Too Large'],
  ['ERR_HTTP_REQUEST_TIMEOUT', '408 Request Timeout'],
])

/** Ends a connection with a last status. It closes both halves, even if the client keeps its own open. */
function hangUp(socket: Duplex, status: string, headers = ''): void {
  if (!socket.writable) return void socket.destroy()
  const head = `HTTP/1.1 ${status}\r\n${headers}Connection: close\r\nContent-Length: 0\r\n\r\n`
  socket.end(head, () => socket.destroy())
}

/**
 * @param backlog Maximum number of connections that wait to be accepted; the system drops further ones.
 * @throws ResourceError `invalid` when it cannot listen there.
 */
export async function listen(server: Server, host: string, port: number, backlog: number): Promise<AddressInfo> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const why =
        error.code === 'EADDRINUSE'
          ? 'the port is in use'
          : error.code === 'EACCES'
            ? 'it is not permitted'
            : error.code
      reject(invalid(`Cannot listen on ${host}:${port}: ${why}.`, 'listen'))
    })
    server.listen({ port, host, backlog }, resolve)
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw invalid('The server has no port.', 'listen')
  return address
}
