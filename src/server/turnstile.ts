import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Principal } from '../core/provider.ts'
import { burst, type ServedLimits } from './limits.ts'
import type { Response } from './messages.ts'
import type { Meter } from './meter.ts'
import { type Overload, overloaded } from './overload.ts'
import { createRate } from './rate.ts'

/** As so many requests counts at least one that was work for nothing, and as one more for each so many bytes that were read of it. */
const dear = { least: 10, bytes: 16 * 1024 }
/** When to come back where all connections are taken, in seconds. */
const connectionWait = 5

/** Lets requests in as fast as all of them, and those of each, may come. */
export interface Turnstile {
  /** Whose share of everything a request takes: that of a principal or, where all are one, that of a connection. */
  shareOf(principal: Principal, request: IncomingMessage): string
  /** Why a request has come too soon, and what it is answered. */
  take(share: string, request: IncomingMessage): { readonly reason: Overload; readonly answer: Response } | undefined
  /** Counts a request as several: so many bytes were read of it, for nothing. */
  charge(share: string, read: number): void
}

export function createTurnstile({ rate, perPrincipal }: ServedLimits, meter: Meter): Turnstile {
  const limit = (perSecond: number) =>
    perSecond > 0 ? createRate({ perSecond, burst: perSecond * burst }) : { take: () => 0, owe: () => 0 }
  const own = limit(perPrincipal?.rate ?? 0)
  const all = limit(rate)
  const connections = new WeakMap<Socket, string>()
  let count = 0
  /** The connections that each principal has open. */
  const open = new Map<string, Set<Socket>>()

  /** `false`: it has too many already. */
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
        return { reason: 'share', answer: overloaded(null, 'share', connectionWait) }
      }
      // Who is turned away for itself takes nothing from the others.
      const wait = own.take(share) || all.take('')
      if (wait === 0) return undefined
      meter.count('refusedRate')
      return { reason: 'rate', answer: overloaded(null, 'rate', wait) }
    },
    charge: (share, read) => {
      const requests = Math.max(dear.least, Math.ceil(read / dear.bytes))
      own.owe(share, requests - 1, requests)
    },
  }
}
