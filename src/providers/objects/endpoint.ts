import { lookup as lookupHost } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { invalid } from '../../core/errors.ts'
import { isLoopback } from '../../core/host.ts'
import { parseUri } from '../../core/uri.ts'
import { refusedAddress } from './ways.ts'

/** Where a store is asked. */
export interface Endpoint {
  /** `https://host:port`, without a path. */
  readonly url: string
  readonly host: string
  readonly secure: boolean
}

/**
 * The addresses at which machines in a cloud are told their own credentials (AWS, Google, Azure, Alibaba, Oracle), and all others
 * that are meant for a machine and its neighbours alone. No store is there, and whoever reads from there reads secrets.
 */
const metadata = new BlockList()
metadata.addSubnet('169.254.0.0', 16)
metadata.addSubnet('fe80::', 10, 'ipv6')
metadata.addAddress('fd00:ec2::254', 'ipv6')
metadata.addAddress('fd20:ce::254', 'ipv6')
metadata.addAddress('100.100.100.200')
metadata.addAddress('192.0.0.192')
metadata.addAddress('0.0.0.0')
metadata.addAddress('::', 'ipv6')

/** Whether an address is one at which credentials of machines are given out, also where it is written as one of IPv6. */
export function isMetadataAddress(address: string): boolean {
  const plain = address.replace(/%.*$/, '')
  const mapped = embedded(plain)
  const family = isIP(plain)
  if (family === 0) return false
  return metadata.check(plain, family === 6 ? 'ipv6' : 'ipv4') || (mapped !== undefined && metadata.check(mapped))
}

/** The address of IPv4 in one of IPv6: mapped, compatible, translated (NAT64) or tunnelled (6to4). */
function embedded(address: string): string | undefined {
  if (isIP(address) !== 6) return undefined
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(address)
  const hex = (a = '', b = '') => ((Number(a) << 8) | Number(b)).toString(16)
  const text = dotted === null ? address : `${dotted[1]}${hex(dotted[2], dotted[3])}:${hex(dotted[4], dotted[5])}`
  const [head = '', tail] = text.split('::')
  const front = head === '' ? [] : head.split(':')
  const back = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? [] : Array.from({ length: 8 - front.length - back.length }, () => '0')
  const groups = [...front, ...zeros, ...back].map((group) => Number.parseInt(group, 16))
  const ipv4 = (at: number) =>
    [groups[at] ?? 0, groups[at + 1] ?? 0].flatMap((group) => [group >> 8, group & 0xff]).join('.')
  const isZero = (from: number, to: number) => groups.slice(from, to).every((group) => group === 0)
  if (isZero(0, 5) && (groups[5] === 0xffff || groups[5] === 0)) return ipv4(6)
  if (groups[0] === 0x64 && groups[1] === 0xff9b) return ipv4(6)
  return groups[0] === 0x2002 ? ipv4(1) : undefined
}

/** Finds the addresses of a host, as a socket does, and refuses it where one of them is {@link isMetadataAddress}. */
export const guardedLookup: LookupFunction = (hostname, options, callback) => {
  lookupHost(hostname, { ...options, all: true }, (error, addresses) => {
    if (error !== null) return callback(error, '')
    if (addresses.some(({ address }) => isMetadataAddress(address)))
      return callback(Object.assign(new Error('refused'), { code: refusedAddress }), '')
    const [first] = addresses
    if (options.all === true) return callback(null, addresses)
    callback(null, first?.address ?? '', first?.family)
  })
}

/**
 * Parses an endpoint that an operator gave: `https://storage.example.com`, `http://127.0.0.1:9000`.
 *
 * @param insecure Whether what is sent beyond the loopback may be plain.
 * @throws ResourceError `invalid` (reason `endpoint`); the message says what to do.
 */
export function parseEndpoint(text: string, insecure: boolean): Endpoint {
  const refuse = (message: string) => invalid(`The endpoint ${message}`, 'endpoint')
  const { scheme, authority, segments, query } = parsed(text)
  const match = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)(?::(\d{1,5}))?$/.exec(authority)
  const [, host = '', port] = match ?? []
  // `2852039166` is an address to some: to those who parse URLs, every host is that ends in a number.
  const isAddress = isIP(host.replace(/^\[|\]$/g, '')) !== 0 || !/(?:^|\.)(?:\d+|0x[\da-f]*)$/i.test(host)
  const hasPort = port === undefined || (Number(port) > 0 && Number(port) < 65_536)
  if ((scheme !== 'https' && scheme !== 'http') || match === null || !hasPort || !isAddress)
    throw refuse(
      'is no address of a server. Write one such as "https://storage.example.com" or "http://127.0.0.1:9000".',
    )
  if (segments.length > 0 || query !== undefined)
    throw refuse('has a path or a query. Leave it away: the bucket has a key of its own.')
  const address = host.replace(/^\[|\]$/g, '')
  if (isMetadataAddress(address) || /^metadata(?:\.google\.internal)?$/i.test(address))
    throw refuse('is where machines are given their credentials. Name the host of the store.')
  if (scheme === 'http' && !insecure && !isLoopback(address))
    throw refuse('is not encrypted. Write https://, or say "insecure": true if nobody else is on the way there.')
  return { url: `${scheme}://${authority}`, host: address, secure: scheme === 'https' }
}

function parsed(text: string) {
  try {
    return parseUri(text)
  } catch {
    throw invalid(
      'The endpoint is no address of a server, or holds a name and password. Write one such as "https://storage.example.com".',
      'endpoint',
    )
  }
}
