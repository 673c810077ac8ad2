import type { Socket } from 'node:net'

/** The limits on open connections. */
export interface RoomLimits {
  /** Maximum number of open connections. */
  readonly connections: number
  /** Maximum number of open connections per address. */
  readonly connectionsPerAddress: number
}

/** Limits the number of open connections. A connection that has sent no request yet gives way to a new one. */
export interface Room {
  /** Adds a new connection, and closes an idle one if necessary. Returns false when there is no room for it. */
  enter(socket: Socket): boolean
  /** Marks a connection as used, when a request has arrived: it no longer gives way to others. */
  asked(socket: Socket): void
}

/** The connections of one address. */
interface Share {
  readonly open: Set<Socket>
  /** Connections that have sent no request yet, the oldest first. */
  readonly idle: Set<Socket>
}

/** @param addressOf Returns the address that a connection counts for. */
export function createRoom(
  { connections, connectionsPerAddress }: RoomLimits,
  addressOf: (socket: Socket) => string,
): Room {
  const shares = new Map<string, Share>()
  let open = 0

  const leave = (address: string, share: Share, socket: Socket): void => {
    if (!share.open.delete(socket)) return
    open--
    share.idle.delete(socket)
    if (share.open.size === 0) shares.delete(address)
  }

  /** Closes the oldest idle connection of an address. Returns false when it has none. */
  const closeIdle = ([address, share]: readonly [string, Share]): boolean => {
    const [oldest] = share.idle
    if (oldest === undefined) return false
    leave(address, share, oldest)
    oldest.destroy()
    return true
  }

  /** Returns the address with the most open connections, among those with idle ones. */
  const largestIdle = (): readonly [string, Share] | undefined => {
    let largest: readonly [string, Share] | undefined
    for (const one of shares)
      if (one[1].idle.size > 0 && one[1].open.size > (largest?.[1].open.size ?? 0)) largest = one
    return largest
  }

  /** Makes room for another connection of an address. Returns whether there is room. */
  const makeRoom = (address: string): boolean => {
    const share = shares.get(address)
    if (share !== undefined && share.open.size >= connectionsPerAddress) return closeIdle([address, share])
    if (open < connections) return true
    const largest = largestIdle()
    return largest !== undefined && closeIdle(largest)
  }

  return {
    enter: (socket) => {
      const address = addressOf(socket)
      if (!makeRoom(address)) return false
      const share = shares.get(address) ?? { open: new Set(), idle: new Set() }
      shares.set(address, share)
      open++
      share.open.add(socket)
      share.idle.add(socket)
      socket.once('close', () => leave(address, share, socket))
      return true
    },
    asked: (socket) => void shares.get(addressOf(socket))?.idle.delete(socket),
  }
}
