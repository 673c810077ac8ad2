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
  /** Maximum number of connections per address. Default 7 of 8. */
  readonly connectionsPerAddress: number
  /** Sustained rate of new connections per address, per second; the burst is ten times as large. 0: no limit. */
  readonly newConnections: number
  /** Sustained rate of bad tokens per address, per second; the burst is ten times as large. 0: no limit. */
  readonly badTokens: number
  readonly sessions: number
  /** Maximum idle time of a session, in milliseconds. */
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

/** Complete limits. Without limits per principal, all clients count as one. */
export type ServedLimits = Omit<HttpLimits, 'perPrincipal'> & { readonly perPrincipal: PrincipalLimits | undefined }

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
export const burst = 10

/** @param asked Whether clients are authenticated: otherwise their shares cannot be told apart. */
export function completeLimits(given: GivenLimits | undefined, asked: boolean): ServedLimits {
  const perPrincipal = asked ? { ...defaultLimits.perPrincipal, ...given?.perPrincipal } : undefined
  const { connections = defaultLimits.connections } = given ?? {}
  // An eighth of all connections is left to other addresses.
  const connectionsPerAddress = connections - Math.floor(connections / 8)
  return { ...defaultLimits, connectionsPerAddress, ...given, perPrincipal }
}

/**
 * Returns the time-outs of a request for Node's HTTP server. Node checks them only periodically, so they are shortened by the
 * period of the checks.
 */
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

interface Bucket {
  tokens: number
  /** Time at which it had this number of tokens. */
  at: number
}

/** Maximum number of keys. Beyond it, full buckets are removed first. */
const maxKeys = 10_000
/** Minimum time between searches for full buckets, in milliseconds. */
const forgetIntervalMs = 1000

/** A rate limit with one token bucket per key. */
export function createRate({ perSecond, burst, now = () => performance.now() }: RateOptions) {
  const buckets = new Map<string, Bucket>()
  let forgot = Number.NEGATIVE_INFINITY

  const fill = (bucket: Bucket, time: number): void => {
    bucket.tokens = Math.min(burst, bucket.tokens + ((time - bucket.at) / 1000) * perSecond)
    bucket.at = time
  }
  /** Removes full buckets, which are equal to new ones. */
  const forget = (time: number): void => {
    // Not for each new key: anyone could cause that work.
    if (time - forgot >= forgetIntervalMs) {
      forgot = time
      for (const [key, bucket] of buckets) {
        fill(bucket, time)
        if (bucket.tokens >= burst) buckets.delete(key)
      }
    }
    // A client that uses ever new keys only displaces the oldest of them.
    for (const key of buckets.keys()) {
      if (buckets.size < maxKeys) break
      buckets.delete(key)
    }
  }

  const bucketOf = (key: string): Bucket => {
    const time = now()
    let bucket = buckets.get(key)
    if (bucket === undefined) {
      if (buckets.size >= maxKeys) forget(time)
      bucket = { tokens: burst, at: time }
      buckets.set(key, bucket)
    }
    fill(bucket, time)
    return bucket
  }

  return {
    /** Takes a token. Returns 0, or, when there is none, the seconds until there is one. */
    take: (key: string): number => {
      const bucket = bucketOf(key)
      if (bucket.tokens < 1) return (1 - bucket.tokens) / perSecond
      bucket.tokens--
      return 0
    },
    /** Number of stored buckets. */
    get size(): number {
      return buckets.size
    },
  }
}

/** A rate limit of an operator; the burst is ten times as large. Undefined: no limit. */
export function sustainedRate(perSecond: number | undefined) {
  return perSecond ? createRate({ perSecond, burst: perSecond * burst }) : undefined
}

/** A request that was refused before any source was called. */
export interface TurnedAway extends Pick<AuditRecord, 'outcome' | 'principal' | 'address'> {
  readonly status: number
  /** Body of the request, if it was read. */
  readonly body?: unknown
}

/** Token buckets of the records: for one client and one reason, and for all. */
const perClient = { perSecond: 1, burst: 20 }
const overall = { perSecond: 20, burst: 500 }
/** Maximum delay of the record with the number of omitted refusals, in milliseconds. */
const maxReportDelayMs = 10_000
/** Maximum length of a URI in a record, in characters: the record of a refusal must cost little. */
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
])

/** Creates the audit of refusals over HTTP: one record each; in a flood only a few, and the number of the omitted ones. */
export function createRefusalAudit(audit: Audit | undefined) {
  if (audit === undefined) return { add: () => {}, close: () => {} }
  const ofOne = createRate(perClient)
  const ofAll = createRate(overall)
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
    /** Records a refusal, unless the rate limit is exceeded. Never a token, nor any other header. */
    add: ({ outcome, status, principal, address, body }: TurnedAway) => {
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
    /** Records the number of omitted refusals. */
    close: tell,
  }
}

const stamp = () => ({ time: new Date().toISOString(), transport: 'http' as const })
