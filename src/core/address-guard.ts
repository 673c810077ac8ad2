import { type LookupAddress, lookup as lookupHost } from 'node:dns'
import { type IncomingMessage, type RequestOptions, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { LookupFunction } from 'node:net'
import { invalid } from './errors.ts'
import { type AddressBlock, addressBlock, addressBytes, type HttpUrl, isAllowedAddress } from './http-url.ts'
import { runInSpan, traceContext } from './trace.ts'

/** Error code of a request that a guard refuses, or of a look-up whose host resolves to a refused address. */
export const refusedHostCode = 'EREFUSEDHOST'

export type ResolveHost = (
  host: string,
  done: (error: NodeJS.ErrnoException | null, addresses: readonly LookupAddress[]) => void,
) => void

/** Decides to which addresses requests may go. */
export interface AddressGuard {
  /** Returns why a URL is refused, as far as the URL itself shows; undefined when its host may be looked up. */
  refusal(url: HttpUrl): string | undefined
  allows(address: string | undefined): boolean
  /** Fails if any address of the host is refused. */
  readonly lookup: LookupFunction
}

/** Host names of cloud services that give machines their credentials. */
const refusedNames = /^(?:metadata|metadata\.google\.internal|instance-data(?:\.ec2\.internal)?)$/

/**
 * Ports of other protocols, whose servers could take an HTTP request for a message, such as the bad ports of WHATWG
 * Fetch and those of databases.
 */
const refusedPorts: ReadonlySet<number> = new Set([
  1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
  111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
  540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1433, 1521, 1719, 1720, 1723, 2049, 2375, 2379, 3306,
  3389, 3659, 4045, 4190, 5060, 5061, 5432, 6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080, 11211,
  27017,
])

/**
 * Creates a guard that allows requests to the internet and to the given address blocks, but not to cloud metadata
 * services or to the ports of other protocols. Each address of a name must be allowed, and the connection goes to one
 * of the checked addresses, so a later answer of DNS makes no difference.
 */
export function createGuard(allowed: readonly AddressBlock[], resolve: ResolveHost = resolveHost): AddressGuard {
  const allows = (address: string | undefined) => {
    const bytes = address === undefined ? undefined : addressBytes(address)
    return bytes !== undefined && isAllowedAddress(bytes, allowed)
  }
  return {
    allows,
    refusal: ({ host, port }) => {
      if (refusedPorts.has(port)) return `the port ${port} is one of another protocol`
      if (refusedNames.test(host)) return 'its host is a cloud metadata service, which gives out credentials'
      if (addressBytes(host) !== undefined && !allows(host)) return notPublic
      return undefined
    },
    lookup: createGuardedLookup((address) => !allows(address), refusedHostCode, resolve),
  }
}

/** Rules for the addresses to which requests to one service may go. */
export interface ServiceNetwork {
  /** Addresses or address blocks (`10.0.0.0/8`) outside the internet that are allowed. Default none. */
  readonly allowAddresses?: readonly string[]
  /** Resolver of host names. Default: the resolver of the system. */
  readonly resolve?: ResolveHost
}

/**
 * Creates the guard of a service whose URL is in the configuration. If the host of that URL is an address, this address
 * is allowed; if it is `localhost`, this machine is. The addresses of another name must be on the internet or in
 * `allowAddresses`.
 * @throws ResourceError `invalid` (reason `configuration`) for a text in `allowAddresses` that is not an address.
 */
export function createServiceGuard(
  { host }: HttpUrl,
  { allowAddresses = [], resolve }: ServiceNetwork = {},
): AddressGuard {
  const addresses = host === 'localhost' ? loopback : [host]
  return createGuard(
    [...parseAllowed(allowAddresses), ...addresses.flatMap((address) => addressBlock(address) ?? [])],
    resolve,
  )
}

const loopback = ['127.0.0.0/8', '::1']

/**
 * @throws ResourceError `invalid` (reason `configuration`) for a text that is neither an address nor an address block.
 */
export function parseAllowed(allowAddresses: readonly string[]): readonly AddressBlock[] {
  return allowAddresses.map((text) => {
    const block = addressBlock(text)
    if (block === undefined)
      throw invalid(
        `"allowAddresses" has an entry that is neither an IP address, such as 10.0.0.5, nor a block of addresses, such as 10.0.0.0/8.`,
        'configuration',
      )
    return block
  })
}

const notPublic =
  'its host resolves to an address outside the public internet, such as this machine or a private network ("allowAddresses" permits such addresses)'

/** Creates a look-up for sockets that fails with `code` when any address of the host is refused. */
export function createGuardedLookup(
  isRefused: (address: string) => boolean,
  code: string,
  resolve: ResolveHost = resolveHost,
): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, (error, addresses) => {
      if (error !== null) return callback(error, '')
      const [first] = addresses
      if (first === undefined) return callback(Object.assign(new Error('no address'), { code: 'ENOTFOUND' }), '')
      if (addresses.some(({ address }) => isRefused(address)))
        return callback(Object.assign(new Error(notPublic), { code }), '')
      if (options.all === true) return callback(null, [...addresses])
      callback(null, first.address, first.family)
    })
  }
}

const resolveHost: ResolveHost = (host, callback) => lookupHost(host, { all: true }, callback)

interface GuardedRequest {
  readonly url: HttpUrl
  readonly headers: Readonly<Record<string, string>>
  /** Body of a POST. Without it, the request is a GET. */
  readonly body?: string
  readonly signal: AbortSignal
  /** Certificates of certificate authorities, in PEM. They replace those that Node trusts. */
  readonly ca?: string
}

const maxHeaderBytes = 32 * 1024
/** Maximum number of informational answers (100 Continue, 103 Early Hints). */
const maxPreliminary = 16

/**
 * Sends one request over a connection of its own, and resolves with the answer, whose body has not been read. The guard
 * checks the URL, the addresses of the host, and the address of the connection. Redirects are not followed, and proxy
 * variables of the environment have no effect.
 * Rejects with an error of Node, or, when the guard refuses, with the code {@link refusedHostCode} and a message for
 * the operator.
 */
export function sendGuarded(guard: AddressGuard, request: GuardedRequest): Promise<IncomingMessage> {
  const { host, port, scheme } = request.url
  const method = request.body === undefined ? 'GET' : 'POST'
  const server = { 'server.address': host, 'server.port': Number(port), 'url.scheme': scheme }
  const attributes = { 'http.request.method': method, ...server }
  const options = { kind: 'client', attributes, duration: 'http.client.request.duration' } as const
  return runInSpan(method, options, async (span) => {
    const response = await send(guard, request)
    const { statusCode = 0 } = response
    span.set({ 'http.response.status_code': statusCode })
    if (statusCode >= 400) span.fail(String(statusCode))
    return response
  })
}

function send(guard: AddressGuard, { url, headers, body, signal, ca }: GuardedRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const refusal = guard.refusal(url)
    if (refusal !== undefined) return reject(hostRefusalError(refusal))
    const options: RequestOptions & { ca?: string } = {
      method: body === undefined ? 'GET' : 'POST',
      hostname: url.host,
      port: url.port,
      path: url.target,
      headers: {
        ...headers,
        ...traceContext(),
        ...(body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }),
      },
      agent: false,
      lookup: guard.lookup,
      maxHeaderSize: maxHeaderBytes,
      signal,
      ...(ca === undefined ? {} : { ca }),
    }
    const request =
      url.scheme === 'https'
        ? requestHttps({ ...options, minVersion: 'TLSv1.2' }, resolve)
        : requestHttp(options, resolve)
    let preliminary = 0
    request.on('information', () => {
      if (++preliminary > maxPreliminary) request.destroy(Object.assign(new Error('stalled'), { code: 'ECONNRESET' }))
    })
    request.on('upgrade', (_, socket) => socket.destroy())
    request.on('socket', (socket) =>
      socket.once('connect', () => {
        if (!guard.allows(socket.remoteAddress)) request.destroy(hostRefusalError(notPublic))
      }),
    )
    request.on('error', reject)
    request.end(body)
  })
}

function hostRefusalError(why: string): Error {
  return Object.assign(new Error(why), { code: refusedHostCode })
}
