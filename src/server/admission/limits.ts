import { defined, isObject } from '../../core/kit/object.ts'
import type { Audit, AuditRecord } from '../telemetry/audit.ts'

/** The limits that protect the service from overload. docs/limits.md describes the effect of each. */
export interface HttpLimits {
  /** Maximum size of a request's body, in bytes. */
  readonly body: number
  /** Maximum size of the headers with the request line, and of the path in it, in bytes. */
  readonly headers: number
  readonly path: number
  /** Maximum size of an answer, in bytes of JSON. */
  readonly answer: number
  /** Time-outs until all headers, and until the whole request, have arrived, in milliseconds. */
  readonly headersTime: number
  readonly requestTime: number
  /** Time-out of the handling of a request, in milliseconds. */
  readonly timeout: number
  /** Maximum number of requests that are handled at once, and of waiting ones. */
  readonly concurrent: number
  readonly waiting: number
  /** Sustained rate of all requests together, per second. 0: no limit. */
  readonly rate: number
  /** Limits per principal, when clients are authenticated. */
  readonly perPrincipal: PrincipalLimits
  readonly connections: number
  /** Maximum number of connections per address. Default: seven eighths of `connections`. */
  readonly connectionsPerAddress: number
  /** Sustained rate of new connections per address, per second; the burst is ten times as large. 0: no limit. */
  readonly newConnections: number
  /** Sustained rate of bad tokens per address, per second; the burst is ten times as large. 0: no limit. */
  readonly badTokens: number
  readonly sessions: number
  /** Time since its last request after which a session without a running request or stream ends, in milliseconds. */
  readonly sessionIdle: number
  /** Maximum time in which a client must read an answer, in milliseconds. */
  readonly slow: number
  /** Maximum time without a read of sent data by the client, in milliseconds. Then its connection is cut (Linux). */
  readonly stalled: number
  /** How long requests in flight may take when the server closes, in milliseconds. */
  readonly drain: number
}

export interface PrincipalLimits {
  /** Sustained rate of requests, per second; the burst is ten times as large. 0: no limit. */
  readonly rate: number
  /** Maximum number of requests that are handled at once, and of waiting ones. */
  readonly concurrent: number
  readonly waiting: number
  readonly connections: number
  readonly sessions: number
}

/** Limits as the operator gives them. Missing ones have their defaults. */
export type GivenLimits = Partial<Omit<HttpLimits, 'perPrincipal'>> & {
  readonly perPrincipal?: Partial<PrincipalLimits>
}

/** Complete limits. Undefined limits per principal: clients are not authenticated. */
export type ServedLimits = Omit<HttpLimits, 'perPrincipal'> & { readonly perPrincipal: PrincipalLimits | undefined }

/** The limits of the HTTP server that apply where none are given. */
export const defaultLimits: HttpLimits = {
  body: 1024 * 1024,
  headers: 32 * 1024,
  path: 8 * 1024,
  answer: 64 * 1024 * 1024,
  headersTime: 10_000,
  requestTime: 30_000,
  timeout: 120_000,
  concurrent: 64,
  waiting: 1024,
  rate: 0,
  perPrincipal: { rate: 100, concurrent: 8, waiting: 256, connections: 256, sessions: 100 },
  connections: 1024,
  connectionsPerAddress: 896,
  newConnections: 200,
  badTokens: 20,
  sessions: 1000,
  sessionIdle: 30 * 60_000,
  slow: 60_000,
  stalled: 45_000,
  drain: 10_000,
}

/** Size of a burst, as a multiple of the sustained rate per second. */
export const burstFactor = 10

/** @param isAuthenticated Whether clients are authenticated. */
export function completeLimits(limits: GivenLimits | undefined, isAuthenticated: boolean): ServedLimits {
  const perPrincipal = isAuthenticated ? { ...defaultLimits.perPrincipal, ...limits?.perPrincipal } : undefined
  const { connections = defaultLimits.connections } = limits ?? {}
  // An eighth of all connections is left to other addresses.
  const connectionsPerAddress = connections - Math.floor(connections / 8)
  return { ...defaultLimits, connectionsPerAddress, ...limits, perPrincipal }
}

/** Returns the time-outs of a request for Node's HTTP server, shortened by the period at which Node checks them. */
export function deadlinesOf({ headersTime, requestTime }: Pick<HttpLimits, 'headersTime' | 'requestTime'>) {
  const connectionsCheckingInterval = Math.max(1, Math.min(1000, Math.floor(headersTime / 10)))
  return {
    headersTimeout: headersTime - connectionsCheckingInterval,
    requestTimeout: requestTime - connectionsCheckingInterval,
    connectionsCheckingInterval,
  }
}

/** Options of a token bucket: the sustained rate per second, and the burst. */
interface RateOptions {
  readonly perSecond: number
  readonly burst: number
  /** Clock, in milliseconds. */
  readonly now?: () => number
}

/** Maximum number of keys. Beyond it, the one that was used least recently is dropped. */
const maxKeys = 10_000

/** A rate limit with one token bucket per key. */
export function createRateLimit({ perSecond, burst, now = () => performance.now() }: RateOptions) {
  /** The numbers of tokens at a time, the least recently used first. */
  const buckets = new Map<string, { readonly tokens: number; readonly at: number }>()
  return {
    /** Takes a token. Returns 0, or, when there is none, the seconds until there is one. */
    take: (key: string): number => {
      const at = now()
      const before = buckets.get(key)
      const tokens =
        before === undefined ? burst : Math.min(burst, before.tokens + ((at - before.at) / 1000) * perSecond)
      const isAllowed = tokens >= 1
      buckets.delete(key)
      buckets.set(key, { tokens: isAllowed ? tokens - 1 : tokens, at })
      for (const oldest of buckets.keys()) {
        if (buckets.size <= maxKeys) break
        buckets.delete(oldest)
      }
      return isAllowed ? 0 : (1 - tokens) / perSecond
    },
    get size(): number {
      return buckets.size
    },
  }
}

/** Creates the rate limit for a sustained rate; the burst is ten times as large. Undefined for no rate, and for a rate of 0: no limit. */
export function createSustainedRateLimit(perSecond: number | undefined) {
  return perSecond ? createRateLimit({ perSecond, burst: perSecond * burstFactor }) : undefined
}

/** A request that was refused before any source was called. */
export interface RefusedRequest extends Pick<AuditRecord, 'outcome' | 'principal' | 'address'> {
  readonly status: number
  /** Body of the request, if it was read. */
  readonly body?: unknown
}

/** Token bucket of the records for one client and one reason. */
const perClient = { perSecond: 1, burst: 20 }
/** Token bucket of all records. */
const overall = { perSecond: 20, burst: 500 }
/** Maximum delay of the record with the number of omitted refusals, in milliseconds. */
const maxReportDelayMs = 10_000
/** Maximum length of a URI in a record, in characters. */
const maxUriLength = 512

const verbs: ReadonlyMap<unknown, AuditRecord['verb']> = new Map([
  ['resources/list', 'list'],
  ['resources/templates/list', 'templates'],
  ['resources/read', 'read'],
  ['resources/directory/read', 'directory'],
  ['skills/list', 'skills'],
  ['skills/get', 'skill'],
  ['completion/complete', 'complete'],
  ['resources/subscribe', 'subscribe'],
  ['subscriptions/listen', 'subscribe'],
  ['events/list', 'events'],
  ['events/poll', 'events'],
  ['events/stream', 'events'],
  ['events/subscribe', 'events'],
  ['events/unsubscribe', 'events'],
])

/** Creates the audit of refusals over HTTP: one record each; in a flood only a few, and the number of the omitted ones. */
export function createRefusalAudit(audit: Audit | undefined) {
  if (audit === undefined) return { add: () => {}, close: () => {} }
  const ofOne = createRateLimit(perClient)
  const ofAll = createRateLimit(overall)
  let leftOut = 0
  let timer: NodeJS.Timeout | undefined

  const tell = (): void => {
    clearTimeout(timer)
    timer = undefined
    if (leftOut === 0) return
    audit({ ...stamp(), verb: 'refused', outcome: 'left-out', items: leftOut, ms: 0 })
    leftOut = 0
  }

  return {
    /** Records a refusal, unless the rate limit is exceeded. */
    add: ({ outcome, status, principal, address, body }: RefusedRequest) => {
      const who = principal ?? address ?? ''
      if (ofOne.take(`${outcome} ${who}`) > 0 || ofAll.take('') > 0) {
        leftOut++
        timer ??= setTimeout(tell, maxReportDelayMs).unref()
        return
      }
      const { method, params } = isObject(body) ? body : {}
      const uri = isObject(params) && typeof params.uri === 'string' ? params.uri : undefined
      audit({
        ...stamp(),
        ...defined({ principal }),
        ...(principal === undefined && address !== undefined ? { address } : {}),
        verb: verbs.get(method) ?? 'refused',
        ...(uri === undefined ? {} : { uri: uri.length > maxUriLength ? `${uri.slice(0, maxUriLength)}…` : uri }),
        outcome,
        status,
        ms: 0,
      })
    },
    close: tell,
  }
}

const stamp = () => ({ time: new Date().toISOString(), transport: 'http' as const })
