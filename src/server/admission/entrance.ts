import type { IncomingMessage, ServerResponse } from 'node:http'
import { chain, type Soon } from '../../core/kit/chain.ts'
import type { Caller } from '../auth/caller.ts'
import type { Refusal } from '../auth/challenge.ts'
import type { Authorizer } from '../auth/index.ts'
import { refuse, replyJson } from '../http/reply.ts'
import type { Meter } from '../telemetry/meter.ts'
import type { Addresses } from './addresses.ts'
import type { ServedLimits } from './limits.ts'
import { overloaded, statusOfOverload } from './overload.ts'
import { createRate } from './rate.ts'
import type { TurnedAway } from './refused.ts'
import { createTurnstile } from './turnstile.ts'

/** Admission of requests: first authentication, then the rate limits. */
export interface Entrance {
  /** Returns the caller of a request. Undefined when the request was refused, and answered. */
  callerOf(request: IncomingMessage, response: ServerResponse): Soon<Caller | undefined>
  /** Applies the rate limits to a caller that is known already. Undefined when the request was refused, and answered. */
  admit(caller: Caller, request: IncomingMessage, response: ServerResponse): Soon<Caller | undefined>
  /** Whether a caller may do what a body requests. When false, the request was refused, and answered. */
  permits(caller: Caller, body: unknown, response: ServerResponse): boolean
  /** Answers a caller whose body is too long. Reading a part of it was work, so it is charged as several requests. */
  refuseBody(caller: Caller, response: ServerResponse, read: number): void
}

export interface EntranceOptions {
  /** Returns the authorizer; without one, every request has the caller `everybody`. */
  readonly authorizer: () => Authorizer | undefined
  readonly everybody: Caller
  readonly limits: ServedLimits
  readonly addresses: Addresses
  readonly meter: Meter
  readonly onRefused: (refusal: TurnedAway) => void
}

export function createEntrance(options: EntranceOptions): Entrance {
  const { authorizer, everybody, limits, addresses, meter, onRefused } = options
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
    const paced = await pace.wait(`address ${address}`, response)
    const end = ending(!paced || !isShort(request, limits.body))
    if (seconds === 0) return refuse(response, status, message, { ...headers, ...end })
    const later = overloaded(null, 'rate', seconds)
    replyJson(response, 429, later, { ...statusOfOverload(later)?.headers, ...end })
  }

  const admit: Entrance['admit'] = (caller, request, response) => {
    const share = turnstile.shareOf(caller.principal, request)
    const over = turnstile.take(share, request)
    return over === undefined ? { ...caller, share } : refuseOver(over, caller, share, request, response)
  }

  /** Refuses a request that exceeds a limit. */
  const refuseOver = async (
    { reason, answer }: NonNullable<ReturnType<typeof turnstile.take>>,
    { principal }: Caller,
    share: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<undefined> => {
    onRefused({ outcome: reason === 'share' ? 'connections' : reason, status: 429, principal: principal.id })
    const key = limits.perPrincipal === undefined ? `address ${addresses.of(request.socket)}` : share
    // A connection beyond the share is closed at once.
    const paced = reason === 'rate' && (await pace.wait(key, response))
    const { status = 429, headers } = statusOfOverload(answer) ?? {}
    replyJson(response, status, answer, { ...headers, ...ending(!paced || !isShort(request, limits.body)) })
    return undefined
  }

  return {
    callerOf: (request, response) =>
      chain(authorizer()?.authenticate(request) ?? everybody, (caller) => {
        if (!('status' in caller)) return admit(caller, request, response)
        return turnAway(request, response, caller).then(() => undefined)
      }),

    admit,

    permits: (caller, body, response) => {
      const refused = authorizer()?.refusalOf(caller, body)
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
}

/** Whether an unread request will end soon: its body is short. */
function isShort({ headers, complete }: IncomingMessage, most: number): boolean {
  return (
    complete ||
    Number(headers['content-length'] ?? (headers['transfer-encoding'] === undefined ? 0 : Number.NaN)) <= most
  )
}

/** Token bucket of refusals per key: sustained rate per second, and burst. */
const perSecond = 100
const burst = 200
/** Maximum number of waiting refusals per key. */
const maxWaiting = 500

/**
 * Throttles refusals (tarpit): a client that retries at once after a refusal gets slow refusals, and costs little. A refusal
 * takes so little time that without this the server would do nothing else.
 */
interface Pace {
  /**
   * Resolves when the next refusal may be sent, or when its client is gone.
   *
   * @param key The client that is refused.
   * @returns false when too many wait: then the refusal can be sent at once, and should close its connection.
   */
  wait(key: string, response: ServerResponse): Promise<boolean>
}

function createPace(): Pace {
  const rate = createRate({ perSecond, burst })
  return {
    wait: async (key, response) => {
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
    },
  }
}
