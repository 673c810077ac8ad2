import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Caller } from '../auth/caller.ts'
import type { Authorizer } from '../auth/index.ts'
import type { Refusal } from '../auth/metadata.ts'
import { refuse, replyJson } from '../http/reply.ts'
import type { Response } from '../protocol/messages.ts'
import type { Meter } from '../telemetry/meter.ts'
import type { Addresses } from './connections.ts'
import { createRate, type ServedLimits, sustainedRate, type TurnedAway } from './limits.ts'
import { type Overload, overloaded, statusOfOverload } from './overload.ts'

/** Admission of requests: first authentication, then the rate limits. */
export interface Entrance {
  /** Authenticates the callers. The service sets it; until then every request has the caller `everybody`. */
  authorizer: Authorizer | undefined
  /** Returns the caller of a request. Undefined when the request was refused, and answered. */
  callerOf(request: IncomingMessage, response: ServerResponse): Promise<Caller | undefined>
  /** Applies the rate limits to a caller that is known already. Undefined when the request was refused, and answered. */
  admit(caller: Caller, request: IncomingMessage, response: ServerResponse): Promise<Caller | undefined>
  /** Whether a caller may do what a body requests. When false, the request was refused, and answered. */
  permits(caller: Caller, body: unknown, response: ServerResponse): boolean
  /** Answers a caller whose body is too long. Reading a part of it was work, so it is charged as several requests. */
  refuseBody(caller: Caller, response: ServerResponse, read: number): void
}

interface EntranceOptions {
  readonly everybody: Caller
  readonly limits: ServedLimits
  readonly addresses: Addresses
  readonly meter: Meter
  readonly onRefused: (refusal: TurnedAway) => void
}

export function createEntrance(options: EntranceOptions): Entrance {
  const { everybody, limits, addresses, meter, onRefused } = options
  const turnstile = createTurnstile(limits, meter)
  const pace = createPace()

  /** The header that closes a connection after the answer: nothing more is read from it. */
  const ending = (end: boolean) => (end ? { Connection: 'close' } : undefined)

  const turnAway = async (
    request: IncomingMessage,
    response: ServerResponse,
    { reason, status, message, headers }: Refusal,
  ): Promise<void> => {
    const address = addresses.of(request.socket)
    const seconds = reason === 'bad-token' ? addresses.fail(request.socket) : 0
    if (seconds > 0) {
      meter.count('refusedTokens')
      onRefused({ outcome: 'bad-tokens', status: 429, address })
    } else onRefused({ outcome: reason, status, address })
    const paced = await pace(`address ${address}`, response)
    const end = ending(!paced || !isShort(request, limits.body))
    if (seconds === 0) return refuse(response, status, message, { ...headers, ...end })
    const later = overloaded(null, 'rate', seconds)
    replyJson(response, 429, later, { ...statusOfOverload(later)?.headers, ...end })
  }

  const admit: Entrance['admit'] = async (caller, request, response) => {
    const taken = turnstile.take(caller, request)
    return 'reason' in taken ? refuseOver(taken, caller, request, response) : taken
  }

  /** Refuses a request that exceeds a limit. */
  const refuseOver = async (
    { reason, share, answer }: Over,
    { principal }: Caller,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<undefined> => {
    onRefused({ outcome: reason === 'share' ? 'connections' : reason, status: 429, principal: principal.id })
    const key = limits.perPrincipal === undefined ? `address ${addresses.of(request.socket)}` : share
    // A connection beyond the share is closed at once.
    const paced = reason === 'rate' && (await pace(key, response))
    const { status = 429, headers } = statusOfOverload(answer) ?? {}
    replyJson(response, status, answer, { ...headers, ...ending(!paced || !isShort(request, limits.body)) })
    return undefined
  }

  const entrance: Entrance = {
    authorizer: undefined,

    callerOf: async (request, response) => {
      const caller = (await entrance.authorizer?.authenticate(request)) ?? everybody
      if (!('status' in caller)) return admit(caller, request, response)
      await turnAway(request, response, caller)
      return undefined
    },

    admit,

    permits: (caller, body, response) => {
      const refused = entrance.authorizer?.refusalOf(caller, body)
      if (refused === undefined) return true
      const { reason, status, message, headers } = refused
      onRefused({ outcome: reason, status, principal: caller.principal.id, body })
      refuse(response, status, message, headers)
      return false
    },

    refuseBody: ({ principal, share }, response, read) => {
      meter.count('refusedBody')
      onRefused({ outcome: 'too-large', status: 413, principal: principal.id })
      if (share !== undefined) turnstile.charge(share, read)
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

/** Token bucket of refusals per key: sustained rate per second, and burst. */
const refusalsPerSecond = 100
const refusalBurst = 200
/** Maximum number of waiting refusals per key. */
const maxWaiting = 500

/**
 * Creates the throttle of refusals (tarpit): a client that retries at once after a refusal gets slow refusals, and costs little. A
 * refusal takes so little time that without this the server would do nothing else.
 *
 * It resolves when the next refusal of a client (`key`) may be sent, or when the client is gone: to false when too many wait. Then
 * the refusal can be sent at once, and should close its connection.
 */
function createPace() {
  const rate = createRate({ perSecond: refusalsPerSecond, burst: refusalBurst })
  return async (key: string, response: ServerResponse): Promise<boolean> => {
    const seconds = rate.owe(key, 1, maxWaiting)
    if (seconds === undefined) return false
    if (seconds > 0)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, seconds * 1000)
        response.once('close', () => {
          clearTimeout(timer)
          resolve()
        })
      })
    return true
  }
}

/** Charge of a request that was wasted work: a minimum number of requests, or one for each of these units of bytes read. */
const wastedCharge = { least: 10, bytes: 16 * 1024 }
/** Seconds after which a client may retry when all of its connections are taken. */
const connectionRetrySeconds = 5

/** Why a request of a share exceeds a limit, and its answer. */
interface Over {
  readonly reason: Overload
  readonly share: string
  readonly answer: Response
}

/** Rate limits of requests: for all together, and per share. */
export function createTurnstile({ rate, perPrincipal }: ServedLimits, meter: Meter) {
  const own = sustainedRate(perPrincipal?.rate)
  const all = sustainedRate(rate)
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
    /**
     * Returns the caller with the share that a request belongs to (that of its principal or, without authentication, of its connection), or why the
     * request exceeds a limit.
     */
    take: (caller: Caller, { socket }: IncomingMessage): (Caller & { readonly share: string }) | Over => {
      let share = perPrincipal === undefined ? connections.get(socket) : caller.principal.id
      if (share === undefined) {
        share = `connection ${count++}`
        connections.set(socket, share)
      }
      if (perPrincipal !== undefined && !connect(share, socket, perPrincipal.connections)) {
        meter.count('refusedShare')
        return { reason: 'share', share, answer: overloaded(null, 'share', connectionRetrySeconds) }
      }
      // A request that exceeds its own limit takes no token from the common one.
      const waitSeconds = own?.take(share) || all?.take('') || 0
      if (waitSeconds === 0) return Object.assign({ share }, caller, { share })
      meter.count('refusedRate')
      return { reason: 'rate', share, answer: overloaded(null, 'rate', waitSeconds) }
    },
    /** Charges a request as several, since this number of bytes was read in vain. */
    charge: (share: string, read: number) => {
      const requests = Math.max(wastedCharge.least, Math.ceil(read / wastedCharge.bytes))
      own?.owe(share, requests - 1, requests)
    },
  }
}
