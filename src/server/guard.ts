import type { IncomingMessage } from 'node:http'
import { invalid } from '../core/errors.ts'
import { isLoopback } from '../core/host.ts'

/** Why a request is refused before anything of it is looked at; `undefined` when it is not. */
export type Guard = (request: IncomingMessage) => { readonly status: 400 | 403; readonly message: string } | undefined

export interface GuardOptions {
  readonly host: string
  readonly port: number
  /** Hosts that requests may name besides those of the loopback, as `name` or `name:port`, exactly. */
  readonly allowedHosts?: readonly string[]
  /** Origins that web pages may ask from besides those of the loopback, as `scheme://host[:port]`, exactly. */
  readonly allowedOrigins?: readonly string[]
}

const loopback = ['localhost', '127.0.0.1', '[::1]']

/**
 * The guard against web pages that reach for this machine (DNS rebinding, cross-site requests): `Host` must be one of a
 * list, and `Origin` too where there is one. Both are compared as they are, never parsed.
 *
 * @throws ResourceError `invalid` when it is to listen beyond the loopback and no host is allowed by name.
 */
export function createGuard({ host, port, allowedHosts = [], allowedOrigins = [] }: GuardOptions): Guard {
  if (!isLoopback(host) && allowedHosts.length === 0)
    throw invalid(
      `Listening on ${host} needs a list of the host names that clients will use: set http.allowedHosts, such as ["context.example.org"].`,
      'allowed-hosts',
    )
  const hosts = new Set([
    ...loopback.map((name) => `${name}:${port}`),
    ...allowedHosts.map((name) => name.toLowerCase()),
  ])
  if (port === 80) for (const name of loopback) hosts.add(name)
  const origins = new Set([...loopback.map((name) => `http://${name}:${port}`), ...allowedOrigins])
  if (port === 80) for (const name of loopback) origins.add(`http://${name}`)

  return guardBy(
    (named) => hosts.has(named),
    (origin) => origins.has(origin),
  )
}

/**
 * The same guard for a server of somebody else's, whose port nobody says: the loopback may be named with any port, and a page
 * of the loopback may ask the host and port that it came from.
 */
export function createMountedGuard({
  allowedHosts = [],
  allowedOrigins = [],
}: Pick<GuardOptions, 'allowedHosts' | 'allowedOrigins'>): Guard {
  const hosts = new Set(allowedHosts.map((name) => name.toLowerCase()))
  const origins = new Set(allowedOrigins)
  const isOwn = (named: string) => /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/.test(named)
  return guardBy(
    (named) => isOwn(named) || hosts.has(named),
    (origin, named) => origins.has(origin) || (isOwn(named) && origin === `http://${named}`),
  )
}

function guardBy(isHost: (named: string) => boolean, isOrigin: (origin: string, named: string) => boolean): Guard {
  return (request) => {
    const [hostHeader, ...others] = valuesOf(request, 'host')
    if (others.length > 0 || hostHeader === undefined)
      return { status: 400, message: 'The request needs one Host header.' }
    const named = hostHeader.toLowerCase()
    if (!isHost(named)) return { status: 403, message: 'This Host is not served here.' }
    const from = valuesOf(request, 'origin')
    if (from.length > 0 && !(from.length === 1 && isOrigin(from[0] ?? '', named)))
      return { status: 403, message: 'This Origin may not ask here.' }
    return undefined
  }
}

/** Every value that a header was given, as it was given: Node keeps one of some headers only. */
export function valuesOf(request: IncomingMessage, name: string): readonly string[] {
  const values: string[] = []
  const raw = request.rawHeaders
  for (let i = 0; i + 1 < raw.length; i += 2) if (raw[i]?.toLowerCase() === name) values.push(raw[i + 1] ?? '')
  return values
}
