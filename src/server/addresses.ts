import type { Socket } from 'node:net'
import { burst, type ServedLimits } from './limits.ts'
import { createRate } from './rate.ts'

/** What the clients of one address may do together, before anybody knows who they are. */
export interface Addresses {
  /** The address that a connection comes from. IPv6 addresses of one network of 64 bits are one. */
  of(socket: Socket): string
  /** Counts a new connection. Answers 0, or in how many seconds there may be another: it is one too many then. */
  connect(socket: Socket): number
  /** Requests that came on a connection and were thrown away with it. Each counts as a connection. */
  waste(socket: Socket, requests: number): void
  /** Counts a token that is not good. Answers 0, or in how many seconds there may be another. */
  fail(socket: Socket): number
}

export function createAddresses({ newConnections, badTokens }: ServedLimits): Addresses {
  const rateOf = (perSecond: number) =>
    perSecond > 0 ? createRate({ perSecond, burst: perSecond * burst }) : { take: () => 0, owe: () => 0 }
  const opened = rateOf(newConnections)
  const failed = rateOf(badTokens)
  // A socket that is closed does not know any more.
  const known = new WeakMap<Socket, string>()

  const of = (socket: Socket): string => {
    const address = known.get(socket) ?? networkOf(socket.remoteAddress ?? '')
    known.set(socket, address)
    return address
  }

  return {
    of,
    connect: (socket) => opened.take(of(socket)),
    // Nobody is shut out for much longer than it takes to rest.
    waste: (socket, requests) => void opened.owe(of(socket), requests, newConnections * burst),
    fail: (socket) => failed.take(of(socket)),
  }
}

/** An IPv4 address as it is; of an IPv6 address the network, which one client has all of. */
export function networkOf(address: string): string {
  const [, v4] = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address) ?? []
  if (v4 !== undefined || !address.includes(':')) return v4 ?? address
  const [before = '', after] = (address.split('%')[0] ?? '').split('::')
  const head = before === '' ? [] : before.split(':')
  const tail = after === undefined || after === '' ? [] : after.split(':')
  const zeros = Array<string>(Math.max(0, 8 - head.length - tail.length)).fill('0')
  return `${[...head, ...zeros, ...tail].slice(0, 4).join(':')}::/64`
}
