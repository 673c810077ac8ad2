import { type LookupAddress, lookup as lookupHost } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { type AddressBlock, addressBlock, addressBytes, isAllowedAddress } from './address.ts'
import { invalid } from './errors.ts'
import type { HttpUrl } from './http-url.ts'

/** The code of the error of a host that leads to where nobody may be sent. */
export const refusedHost = 'EREFUSEDHOST'

/** Finds all addresses of a host. */
export type Resolve = (
  host: string,
  done: (error: NodeJS.ErrnoException | null, addresses: readonly LookupAddress[]) => void,
) => void

/** Decides where requests may go: before a connection, and again by the address that it has come to. */
export interface Guard {
  /** Why a URL is not asked, as far as it tells by itself; `undefined` where its host may be looked up. */
  refusal(url: HttpUrl): string | undefined
  /** Whether an address may be connected to. */
  allows(address: string | undefined): boolean
  /** What connects to the addresses that it has looked at, and to no others. */
  readonly lookup: LookupFunction
}

/** Names that lead to this machine, or to where machines are told their credentials, whatever is answered for them. */
const refusedNames = /^(?:metadata|metadata\.google\.internal|instance-data(?:\.ec2\.internal)?)$/

/** Ports of other protocols, to which a request for a page is a message too (WHATWG Fetch: bad ports; and databases). */
const refusedPorts: ReadonlySet<number> = new Set([
  1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
  111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
  540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1433, 1521, 1719, 1720, 1723, 2049, 2375, 2379, 3306,
  3389, 3659, 4045, 4190, 5060, 5061, 5432, 6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080, 11211,
  27017,
])

/**
 * Lets requests go to the internet, and to the blocks of addresses that the operator allows. Of a name every address that it has must
 * be such a one, and the connection goes to one of those: an answer that changes afterwards changes nothing.
 */
export function createGuard(allowed: readonly AddressBlock[], resolve: Resolve = resolveHost): Guard {
  const allows = (address: string | undefined) => {
    const bytes = address === undefined ? undefined : addressBytes(address)
    return bytes !== undefined && isAllowedAddress(bytes, allowed)
  }
  return {
    allows,
    refusal: ({ host, port }) => {
      if (refusedPorts.has(port)) return `the port ${port} is one of another protocol`
      if (refusedNames.test(host)) return 'its host is where machines are given their credentials'
      if (addressBytes(host) !== undefined && !allows(host)) return notPublic
      return undefined
    },
    lookup: guardedLookup((address) => !allows(address), refusedHost, resolve),
  }
}

/** Where the requests to one service may go, besides the internet. */
export interface ServiceNetwork {
  /** Addresses, alone or in blocks (`10.0.0.0/8`), that may be asked though they are not on the internet. Default none. */
  readonly allowAddresses?: readonly string[]
  /** Finds the addresses of hosts. By default as the system does. */
  readonly resolve?: Resolve
}

/**
 * The guard of a service whose URL stands in the configuration. An address in the URL is itself the permission to ask that address, and
 * `localhost` the permission to ask this machine. Of another name, every address must be on the internet or in `allowAddresses`.
 *
 * @throws ResourceError `invalid` (reason `address`) for a text in `allowAddresses` that is no address.
 */
export function createServiceGuard({ host }: HttpUrl, { allowAddresses = [], resolve }: ServiceNetwork = {}): Guard {
  const named = host === 'localhost' ? loopback : [host]
  return createGuard(
    [...parseAllowed(allowAddresses), ...named.flatMap((address) => addressBlock(address) ?? [])],
    resolve,
  )
}

const loopback = ['127.0.0.0/8', '::1']

/** @throws ResourceError `invalid` (reason `address`) for a text that is no address. */
export function parseAllowed(allowAddresses: readonly string[]): readonly AddressBlock[] {
  return allowAddresses.map((text) => {
    const block = addressBlock(text)
    if (block === undefined)
      throw invalid(`"allowAddresses" names no address: write one such as 10.0.0.5, or 10.0.0.0/8.`, 'address')
    return block
  })
}

/** Why an address is refused, in words for the operator. */
export const notPublic =
  'its host leads to this machine or a private network ("allowAddresses" names what may be asked there)'

/** Looks a host up as a socket does, and refuses it with a code where one of its addresses is refused. */
export function guardedLookup(
  isRefused: (address: string) => boolean,
  code: string,
  resolve: Resolve = resolveHost,
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

const resolveHost: Resolve = (host, done) => lookupHost(host, { all: true }, done)
