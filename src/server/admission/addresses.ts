import type { Socket } from 'node:net'
import { burst, type ServedLimits } from './limits.ts'
import { createRate } from './rate.ts'

/** Rate limits per network address, for clients that are not authenticated yet. */
export interface Addresses {
  /** Returns the address of a connection's peer. IPv6 addresses of one 64-bit network count as one. */
  of(socket: Socket): string
  /** Counts a new connection. Returns 0, or, when it exceeds the rate, the seconds until another one is allowed. */
  connect(socket: Socket): number
  /** Counts requests that were dropped with their connection. Each counts as a connection. */
  waste(socket: Socket, requests: number): void
  /** Counts a bad token. Returns 0, or, when it exceeds the rate, the seconds until another one is allowed. */
  fail(socket: Socket): number
}

export function createAddresses({ newConnections, badTokens }: ServedLimits): Addresses {
  const rateOf = (perSecond: number) =>
    perSecond > 0 ? createRate({ perSecond, burst: perSecond * burst }) : { take: () => 0, owe: () => 0 }
  const opened = rateOf(newConnections)
  const failed = rateOf(badTokens)
  // A closed socket no longer knows its peer.
  const known = new WeakMap<Socket, string>()

  const of = (socket: Socket): string => {
    const address = known.get(socket) ?? networkOf(socket.remoteAddress ?? '')
    known.set(socket, address)
    return address
  }

  return {
    of,
    connect: (socket) => opened.take(of(socket)),
    // The debt is capped at one burst, so nobody is blocked for much longer than a burst takes to refill.
    waste: (socket, requests) => void opened.owe(of(socket), requests, newConnections * burst),
    fail: (socket) => failed.take(of(socket)),
  }
}

/** Returns an IPv4 address unchanged, and for an IPv6 address its 64-bit network, all of which one client may own. */
export function networkOf(address: string): string {
  const [, v4] = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address) ?? []
  if (v4 !== undefined || !address.includes(':')) return v4 ?? address
  const [before = '', after] = (address.split('%')[0] ?? '').split('::')
  const head = before === '' ? [] : before.split(':')
  const tail = after === undefined || after === '' ? [] : after.split(':')
  const zeros = Array<string>(Math.max(0, 8 - head.length - tail.length)).fill('0')
  return `${[...head, ...zeros, ...tail].slice(0, 4).join(':')}::/64`
}
