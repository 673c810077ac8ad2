import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { AddressRateLimits } from '../admission/connections.ts'
import { createSustainedRateLimit, type RefusedRequest, type ServedLimits } from '../admission/limits.ts'
import { type OverloadReason, overloadAnswer, statusOfOverload } from '../admission/overload.ts'
import type { Caller } from '../auth/caller.ts'
import type { Authorizer } from '../auth/index.ts'
import type { AuthRefusal } from '../auth/metadata.ts'
import { refuse, replyJson } from '../exchange.ts'
import type { Response } from '../messages/messages.ts'
import type { Meter } from '../telemetry/meter.ts'

export interface Entrance {
  authorizer: Authorizer | undefined
  /** Returns the caller of a request. Undefined when the request was refused, and answered. */
  callerOf(request: IncomingMessage, response: ServerResponse): Promise<Caller | undefined>
  /** Applies the rate limits to a caller that is known already. Undefined when the request was refused, and answered. */
  admit(caller: Caller, request: IncomingMessage, response: ServerResponse): Caller | undefined
  /** Whether a caller may do what a body requests. When false, the request was refused, and answered. */
  permits(caller: Caller, body: unknown, response: ServerResponse): boolean
  /** Answers a caller whose body is too long. */
  refuseBody(caller: Caller, response: ServerResponse): void
}

interface EntranceOptions {
  readonly everybody: Caller
  readonly limits: ServedLimits
  readonly addresses: AddressRateLimits
  readonly meter: Meter
  readonly onRefused: (refusal: RefusedRequest) => void
}

export function createEntrance(options: EntranceOptions): Entrance {
  const { everybody, limits, addresses, meter, onRefused } = options
  const requestLimits = createRequestLimits(limits, meter)

  /** The header that closes a connection after the answer. */
  const ending = (end: boolean) => (end ? { Connection: 'close' } : undefined)

  const turnAway = (
    request: IncomingMessage,
    response: ServerResponse,
    { reason, status, message, headers }: AuthRefusal,
  ): void => {
    const address = addresses.of(request.socket)
    const seconds = reason === 'bad-token' ? addresses.fail(request.socket) : 0
    if (seconds > 0) {
      meter.count('refusedTokens')
      onRefused({ outcome: 'bad-tokens', status: 429, address })
    } else onRefused({ outcome: reason, status, address })
    const end = ending(!isShort(request, limits.body))
    const later = overloadAnswer(null, 'rate', seconds)
    if (seconds === 0) refuse(response, status, message, { ...headers, ...end })
    else replyJson(response, 429, later, { ...statusOfOverload(later)?.headers, ...end })
  }

  const admit: Entrance['admit'] = (caller, request, response) => {
    const limitRefusal = requestLimits.take(caller, request)
    if (!('reason' in limitRefusal)) return limitRefusal
    const { reason, answer } = limitRefusal
    onRefused({
      outcome: reason === 'share' ? 'connections' : reason,
      status: 429,
      principal: caller.principal.id,
    })
    const { status = 429, headers } = statusOfOverload(answer) ?? {}
    // A connection beyond the share is closed at once.
    const end = ending(reason === 'share' || !isShort(request, limits.body))
    replyJson(response, status, answer, { ...headers, ...end })
    return undefined
  }

  const entrance: Entrance = {
    authorizer: undefined,

    callerOf: async (request, response) => {
      const caller = (await entrance.authorizer?.authenticate(request)) ?? everybody
      if (!('status' in caller)) return admit(caller, request, response)
      turnAway(request, response, caller)
      return undefined
    },

    admit,

    permits: (caller, body, response) => {
      const refusal = entrance.authorizer?.refusalOf(caller, body)
      if (refusal === undefined) return true
      const { reason, status, message, headers } = refusal
      onRefused({ outcome: reason, status, principal: caller.principal.id, body })
      refuse(response, status, message, headers)
      return false
    },

    refuseBody: ({ principal }, response) => {
      meter.count('refusedBody')
      onRefused({ outcome: 'too-large', status: 413, principal: principal.id })
      refuse(response, 413, `The body is longer than ${limits.body} bytes.`, ending(true))
    },
  }
  return entrance
}

/** Whether an unread request will end soon: its body is short. */
function isShort({ headers, complete }: IncomingMessage, most: number): boolean {
  return (
    complete ||
    Number(headers['content-length'] ?? (headers['transfer-encoding'] === undefined ? 0 : Number.NaN)) <= most
  )
}

/** Seconds after which a client may retry when all of its connections are taken. */
const connectionRetrySeconds = 5

/** Why a request exceeds a limit, and its answer. */
interface Over {
  readonly reason: OverloadReason
  readonly answer: Response
}

/** Limits requests: their rate, for all together and per share, and the open connections of each principal. */
export function createRequestLimits({ rate, perPrincipal }: ServedLimits, meter: Meter) {
  const own = createSustainedRateLimit(perPrincipal?.rate)
  const all = createSustainedRateLimit(rate)
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
    /** Returns the caller with the share that a request belongs to, or why the request exceeds a limit. */
    take: (caller: Caller, { socket }: IncomingMessage): (Caller & { readonly share: string }) | Over => {
      let share = perPrincipal === undefined ? connections.get(socket) : caller.principal.id
      if (share === undefined) {
        share = `connection ${count++}`
        connections.set(socket, share)
      }
      if (perPrincipal !== undefined && !connect(share, socket, perPrincipal.connections)) {
        meter.count('refusedShare')
        return { reason: 'share', answer: overloadAnswer(null, 'share', connectionRetrySeconds) }
      }
      // A request that exceeds its own limit takes no token from the common one.
      const waitSeconds = own?.take(share) || all?.take('') || 0
      if (waitSeconds === 0) return Object.assign({ share }, caller, { share })
      meter.count('refusedRate')
      return { reason: 'rate', answer: overloadAnswer(null, 'rate', waitSeconds) }
    },
  }
}
