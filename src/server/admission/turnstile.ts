import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Principal } from '../../core/provider.ts'
import type { Response } from '../protocol/messages.ts'
import type { Meter } from '../telemetry/meter.ts'
import { burst, type ServedLimits } from './limits.ts'
import { type Overload, overloaded } from './overload.ts'
import { createRate } from './rate.ts'

/** Charge of a request that was wasted work: a minimum number of requests, or one for each of these units of bytes read. */
const wastedCharge = { least: 10, bytes: 16 * 1024 }
/** Seconds after which a client may retry when all of its connections are taken. */
const connectionRetrySeconds = 5

/** Rate limits of requests: for all together, and per share. */
export interface Turnstile {
  /** Returns the share that a request belongs to: that of its principal or, without authentication, of its connection. */
  shareOf(principal: Principal, request: IncomingMessage): string
  /** Returns why a request exceeds a limit, and its answer; undefined when it is admitted. */
  take(share: string, request: IncomingMessage): { readonly reason: Overload; readonly answer: Response } | undefined
  /** Charges a request as several, since this number of bytes was read in vain. */
  charge(share: string, read: number): void
}

export function createTurnstile({ rate, perPrincipal }: ServedLimits, meter: Meter): Turnstile {
  const limit = (perSecond: number) =>
    perSecond > 0 ? createRate({ perSecond, burst: perSecond * burst }) : { take: () => 0, owe: () => 0 }
  const own = limit(perPrincipal?.rate ?? 0)
  const all = limit(rate)
  const connections = new WeakMap<Socket, string>()
  let count = 0
  /** The open connections of each principal. */
  const open = new Map<string, Set<Socket>>()

  /** Counts a connection. Returns false when the principal has too many already. */
  const connect = (share: string, socket: Socket, most: number): boolean => {
    const own = open.get(share) ?? new Set()
    if (own.has(socket)) return true
    if (own.size >= most) return false
    open.set(share, own.add(socket))
    socket.once('close', () => {
      own.delete(socket)
      if (own.size === 0 && open.get(share) === own) open.delete(share)
    })
    return true
  }

  return {
    shareOf: (principal, { socket }) => {
      if (perPrincipal !== undefined) return principal.id
      const known = connections.get(socket) ?? `connection ${count++}`
      connections.set(socket, known)
      return known
    },
    take: (share, { socket }) => {
      if (perPrincipal !== undefined && !connect(share, socket, perPrincipal.connections)) {
        meter.count('refusedShare')
        return { reason: 'share', answer: overloaded(null, 'share', connectionRetrySeconds) }
      }
      // A request that exceeds its own limit takes no token from the common one.
      const wait = own.take(share) || all.take('')
      if (wait === 0) return undefined
      meter.count('refusedRate')
      return { reason: 'rate', answer: overloaded(null, 'rate', wait) }
    },
    charge: (share, read) => {
      const requests = Math.max(wastedCharge.least, Math.ceil(read / wastedCharge.bytes))
      own.owe(share, requests - 1, requests)
    },
  }
}
