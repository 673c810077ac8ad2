/** What protects the service from too much at once. docs/limits.md says what happens beyond each. */
export interface HttpLimits {
  /** The longest body of a request, in bytes. */
  readonly body: number
  /** The longest headers, with the line of the request, in bytes; and the longest path in it. */
  readonly headers: number
  readonly path: number
  /** The longest answer, in bytes of JSON. */
  readonly answer: number
  /** How long the headers of a request may take to come, and all of it, in milliseconds. */
  readonly headersTime: number
  readonly requestTime: number
  /** How long a request may take, in milliseconds. */
  readonly timeout: number
  /** Requests that are worked on at once, and ones that wait for that. */
  readonly concurrent: number
  readonly waiting: number
  /** Requests a second, in the long run, from all together. 0: as many as come. */
  readonly rate: number
  /** What each principal may have of that, where clients are asked who they are. */
  readonly perPrincipal: PrincipalLimits
  readonly connections: number
  /** How many of them one address may have open. By default 7 of 8. */
  readonly connectionsPerAddress: number
  /** New connections a second from one address, in the long run; after a rest ten times as many at once. 0: any number. */
  readonly newConnections: number
  /** Tokens a second from one address that are not good, in the same way. */
  readonly badTokens: number
  readonly sessions: number
  /** How long a session may be idle, in milliseconds. */
  readonly sessionIdle: number
  /** How long a client may take to read an answer, in milliseconds. */
  readonly slow: number
  /** How long a client may take nothing of what is sent to it, in milliseconds, before its connection is cut (Linux). */
  readonly stalled: number
  /** How long requests in flight may take when the server closes, in milliseconds. */
  readonly drain: number
}

export interface PrincipalLimits {
  /** Requests a second, in the long run; after a rest ten times as many at once. 0: as many as it sends. */
  readonly rate: number
  /** Requests that are worked on at once, and ones that wait for that. */
  readonly concurrent: number
  readonly waiting: number
  readonly connections: number
  readonly sessions: number
}

/** As they are given: what is left out is as by default. */
export type GivenLimits = Partial<Omit<HttpLimits, 'perPrincipal'>> & {
  readonly perPrincipal?: Partial<PrincipalLimits>
}

/** Without limits of a principal, all are one. */
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

/** After a rest, as many requests may come at once as otherwise in so many seconds. */
export const burst = 10

/** @param asked Whether clients are asked who they are: else nobody's share can be told from another's. */
export function completeLimits(given: GivenLimits | undefined, asked: boolean): ServedLimits {
  const perPrincipal = asked ? { ...defaultLimits.perPrincipal, ...given?.perPrincipal } : undefined
  const { connections = defaultLimits.connections } = given ?? {}
  return { ...defaultLimits, connectionsPerAddress: shareOf(connections), ...given, perPrincipal }
}

/** How many of all connections one address may have: an eighth is left to the others. */
function shareOf(connections: number): number {
  return connections - Math.floor(connections / 8)
}

/**
 * The deadlines of a request as Node's HTTP server takes them. Node looks only now and then for a request that is late, so they are
 * shorter by the time between two looks.
 */
export function deadlinesOf({ headersTime, requestTime }: Pick<HttpLimits, 'headersTime' | 'requestTime'>) {
  const connectionsCheckingInterval = Math.max(1, Math.min(1000, Math.floor(headersTime / 10)))
  return {
    headersTimeout: headersTime - connectionsCheckingInterval,
    requestTimeout: requestTime - connectionsCheckingInterval,
    connectionsCheckingInterval,
  }
}
