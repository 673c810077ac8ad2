import { readFile } from 'node:fs/promises'
import type { Server, ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { invalid } from '../../core/errors.ts'
import type { Meter } from '../telemetry/meter.ts'
import { createSustainedRateLimit, type RefusedRequest, type ServedLimits } from './limits.ts'

interface SocketOptions {
  readonly liveness: Liveness
  readonly addresses: AddressRateLimits
  readonly meter: Meter
  readonly onRefused: (refusal: RefusedRequest) => void
  /** Returns the answer that is currently made or sent on a connection. */
  readonly answering: (socket: Duplex) => ServerResponse | undefined
  /** Limits the number of open connections. Default no limit. */
  readonly room?: Room
}

/**
 * Limits and watches the connections of a service.
 *
 * @returns A function that closes the connections without a request.
 */
export function watchSockets(server: Server, options: SocketOptions): () => void {
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
    // The answer has begun, so a status line would be read as a part of it.
    if (response?.headersSent && !response.writableFinished) socket.destroy()
    else hangUp(socket, clientErrors.get(error.code) ?? '400 Bad Request')
  })

  return () => {
    server.closeIdleConnections()
    // Node does not count connections that have received nothing yet.
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
  }
}

const clientErrors: ReadonlyMap<string | undefined, string> = new Map([
  ['HPE_HEADER_OVERFLOW', '431 Request Header Fields Too Large'],
  ['ERR_HTTP_REQUEST_TIMEOUT', '408 Request Timeout'],
])

/** Answers with a last status, and closes both halves of the connection. */
function hangUp(socket: Duplex, status: string, headers = ''): void {
  if (!socket.writable) return void socket.destroy()
  const head = `HTTP/1.1 ${status}\r\n${headers}Connection: close\r\nContent-Length: 0\r\n\r\n`
  socket.end(head, () => socket.destroy())
}

/**
 * @param backlog Maximum number of connections that wait to be accepted; the system drops further ones.
 * @throws ResourceError `invalid` when the server cannot listen on the address.
 */
export async function listenOnPort(server: Server, host: string, port: number, backlog: number): Promise<AddressInfo> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const why =
        error.code === 'EADDRINUSE'
          ? 'the port is in use. Set another port, or end the program that uses it'
          : error.code === 'EACCES'
            ? 'the system does not permit it. Set another port'
            : error.code === 'EADDRNOTAVAIL'
              ? 'this machine has no such address. Set another host'
              : error.code
      reject(invalid(`Cannot listen on ${host}:${port}: ${why}.`, 'configuration', { option: 'listen' }))
    })
    server.listen({ port, host, backlog }, resolve)
  })
  const address = server.address()
  if (address === null || typeof address === 'string')
    throw invalid('The server has no port.', 'configuration', { option: 'listen' })
  return address
}

type Room = ReturnType<typeof createConnectionLimit>

/**
 * Limits the number of open connections. A connection that has sent no request yet gives way to a new one.
 *
 * @param addressOf Returns the address that a connection counts for.
 */
export function createConnectionLimit(
  { connections, connectionsPerAddress }: ServedLimits,
  addressOf: (socket: Socket) => string,
) {
  const open = new Map<string, Set<Socket>>()
  /** Connections that have sent no request yet, the oldest first. */
  const idle = new Set<Socket>()
  let count = 0

  const numberAt = (address: string): number => open.get(address)?.size ?? 0

  const leave = (socket: Socket): void => {
    const address = addressOf(socket)
    if (open.get(address)?.delete(socket)) count--
    if (numberAt(address) === 0) open.delete(address)
    idle.delete(socket)
  }

  const oldestIdle = (of: string | undefined): Socket | undefined => {
    let oldest: Socket | undefined
    let most = 0
    for (const socket of idle) {
      const address = addressOf(socket)
      if ((of !== undefined && address !== of) || numberAt(address) <= most) continue
      oldest = socket
      most = numberAt(address)
    }
    return oldest
  }

  return {
    /** Adds a new connection, and closes an idle one if necessary. Returns false when there is no room for it. */
    enter: (socket: Socket): boolean => {
      const address = addressOf(socket)
      const isOwn = numberAt(address) >= connectionsPerAddress
      if (isOwn || count >= connections) {
        const oldest = oldestIdle(isOwn ? address : undefined)
        if (oldest === undefined) return false
        leave(oldest)
        oldest.destroy()
      }
      open.set(address, (open.get(address) ?? new Set()).add(socket))
      idle.add(socket)
      count++
      socket.once('close', () => leave(socket))
      return true
    },
    /** Marks a connection as used, when a request has arrived: it no longer gives way to others. */
    asked: (socket: Socket) => void idle.delete(socket),
  }
}

/** Rate limits per network address, which hold before a client is authenticated. */
export type AddressRateLimits = ReturnType<typeof createAddressRateLimits>

export function createAddressRateLimits({ newConnections, badTokens }: ServedLimits) {
  const connectionLimit = createSustainedRateLimit(newConnections)
  const badTokenLimit = createSustainedRateLimit(badTokens)
  // A closed socket no longer knows its peer.
  const addresses = new WeakMap<Socket, string>()

  const of = (socket: Socket): string => {
    const address = addresses.get(socket) ?? clientNetworkOf(socket.remoteAddress ?? '')
    addresses.set(socket, address)
    return address
  }

  return {
    /** Returns the address of a connection's peer. IPv6 addresses of one 64-bit network count as one. */
    of,
    /** Counts a new connection. Returns 0, or, when it exceeds the rate, the seconds until another one is allowed. */
    connect: (socket: Socket): number => connectionLimit?.take(of(socket)) ?? 0,
    /** Counts a bad token. Returns 0, or, when it exceeds the rate, the seconds until another one is allowed. */
    fail: (socket: Socket): number => badTokenLimit?.take(of(socket)) ?? 0,
  }
}

/** Returns an IPv4 address, also if it is mapped to IPv6; for another IPv6 address its 64-bit network, all of which one client may own. */
export function clientNetworkOf(address: string): string {
  const [, v4] = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address) ?? []
  if (v4 !== undefined || !address.includes(':')) return v4 ?? address
  const [before = '', after] = (address.split('%')[0] ?? '').split('::')
  const head = before === '' ? [] : before.split(':')
  const tail = after === undefined || after === '' ? [] : after.split(':')
  const zeros = Array<string>(Math.max(0, 8 - head.length - tail.length)).fill('0')
  return `${[...head, ...zeros, ...tail].slice(0, 4).join(':')}::/64`
}

type Liveness = ReturnType<typeof createLiveness>

/**
 * Cuts connections whose peer has stopped reading: the peer is asleep, or gone without notice. The kernel's send queues are in
 * /proc/net/tcp, so this works on Linux; elsewhere the kernel's own time-out applies. If bytes are queued at several checks in a row, and
 * the peer took none in between, it has stopped reading. A stream must write something periodically, so that bytes are queued.
 *
 * @param intervalMs Period of the checks, in milliseconds.
 * @param looks Number of checks in a row without progress before a connection is cut.
 */
export function createLiveness(intervalMs: number, looks: number) {
  const sockets = new Map<Socket, { handed: number; most: number; same: number }>()

  const look = async (): Promise<void> => {
    if (sockets.size === 0) return
    for (const [socket, sample] of sockets) sample.handed = handedOver(socket)
    const queues = await readQueues()
    for (const [socket, sample] of sockets) {
      const waiting = queues.get(`${socket.localPort} ${socket.remotePort}`) ?? 0
      // More may have been written since the queues were read, so the number of taken bytes lies between these two.
      const [least, most] = [sample.handed - waiting, handedOver(socket) - waiting]
      const stuck = waiting > 0 && least <= sample.most
      sample.same = stuck ? sample.same + 1 : 0
      if (!stuck) sample.most = most
      if (sample.same >= looks) socket.destroy()
    }
  }
  const timer = setInterval(() => void look().catch(() => {}), intervalMs)
  timer.unref()

  return {
    watch: (socket: Socket) => {
      if (sockets.has(socket)) return
      sockets.set(socket, { handed: 0, most: -1, same: 0 })
      socket.once('close', () => sockets.delete(socket))
    },
    get size(): number {
      return sockets.size
    },
    close: () => clearInterval(timer),
  }
}

/** Returns the number of bytes that the kernel was given to send. */
const handedOver = (socket: Socket) => socket.bytesWritten - socket.writableLength

/** Returns the number of queued bytes of each established connection, by the ports of its two ends. */
async function readQueues(): Promise<ReadonlyMap<string, number>> {
  const queues = new Map<string, number>()
  for (const file of ['/proc/net/tcp', '/proc/net/tcp6']) {
    const text = await readFile(file, 'latin1').catch(() => '')
    for (const match of text.matchAll(/^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:([0-9A-F]{4}) 01 ([0-9A-F]{8}):/gm)) {
      const [local = 0, remote = 0, waiting = 0] = match.slice(1).map((hex) => Number.parseInt(hex, 16))
      const key = `${local} ${remote}`
      // Two peers with the same port have the same key: keep the smaller queue.
      queues.set(key, Math.min(queues.get(key) ?? waiting, waiting))
    }
  }
  return queues
}
