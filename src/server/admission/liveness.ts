import { readFile } from 'node:fs/promises'
import type { Socket } from 'node:net'

/**
 * Cuts connections whose peer has stopped reading: it is asleep, or gone without notice, which TCP itself would detect after a
 * quarter of an hour. The kernel's send queues are in /proc/net/tcp, so this works on Linux; elsewhere nothing is cut, and the
 * kernel's own time-out applies.
 *
 * A watched stream writes something periodically. When bytes are queued, and none were taken since the previous check, a number
 * of times in a row, then nobody reads them, even if more were written meanwhile.
 */
export interface Liveness {
  watch(socket: Socket): void
  /** Number of watched sockets. */
  readonly size: number
  close(): void
}

export interface LivenessOptions {
  /** Period of the checks, in milliseconds. Default 15,000. */
  readonly interval?: number
  /** Number of checks in a row without progress before a connection is cut. Default 2. */
  readonly looks?: number
}

export function createLiveness({ interval = 15_000, looks = 2 }: LivenessOptions = {}): Liveness {
  const sockets = new Map<Socket, { handed: number; most: number; same: number }>()

  const look = async (): Promise<void> => {
    if (sockets.size === 0) return
    for (const [socket, seen] of sockets) seen.handed = handedOver(socket)
    const queues = await readQueues()
    for (const [socket, seen] of sockets) {
      const waiting = queues.get(`${socket.localPort} ${socket.remotePort}`) ?? 0
      // More may have been written since the queues were read: the number of taken bytes lies between these two.
      const [least, most] = [seen.handed - waiting, handedOver(socket) - waiting]
      const stuck = waiting > 0 && least <= seen.most
      seen.same = stuck ? seen.same + 1 : 0
      if (!stuck) seen.most = most
      if (seen.same >= looks) socket.destroy()
    }
  }
  const timer = setInterval(() => void look().catch(() => {}), interval)
  timer.unref()

  return {
    watch: (socket) => {
      if (sockets.has(socket)) return
      sockets.set(socket, { handed: 0, most: -1, same: 0 })
      socket.once('close', () => sockets.delete(socket))
    },
    get size() {
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
      // Two peers can have the same port: keep the smaller queue, so that neither is cut because of the other.
      queues.set(key, Math.min(queues.get(key) ?? waiting, waiting))
    }
  }
  return queues
}
