import { invalid, type ResourceError } from './errors.ts'

/** A parsed http or https URL. It is parsed once, so the checked URL is also the one that is connected to. */
export interface HttpUrl {
  readonly scheme: 'http' | 'https'
  /** Host: a name in lower case (in another script as `xn--…`), or an address without brackets. */
  readonly host: string
  readonly port: number
  /** The path and query of the request. */
  readonly target: string
}

const maxLength = 8192

/**
 * Parses a URL that begins with `http://` or `https://`. It is strict: a host is one name, or one address in a standard
 * notation (no `127.1`, `0x7f.1`, `2130706433`, no `%31`), without a final dot, a user name and password, or a zone.
 *
 * @throws ResourceError `invalid` (reason `uri`), whose message does not repeat the URL.
 */
export function parseHttpUrl(text: string): HttpUrl {
  const [, scheme, authority, rest] = /^(https?):\/\/([^/?#\\]*)([^#]*)$/i.exec(withoutFragment(text)) ?? []
  if (scheme === undefined || authority === undefined || rest === undefined)
    throw urlError('The URL does not begin with http:// or https:// and a host.')
  const isSecure = scheme.toLowerCase() === 'https'
  const { host, port = isSecure ? 443 : 80 } = parseHost(authority)
  return { scheme: isSecure ? 'https' : 'http', host, port, target: normalizeTarget(rest) }
}

/** Resolves a reference (of a redirect, of a link) against a URL (RFC 3986, section 5.2). Throws as {@link parseHttpUrl} does. */
export function resolveHttpUrl(base: HttpUrl, reference: string): HttpUrl {
  const text = withoutFragment(reference)
  if (/^[A-Za-z][A-Za-z0-9+.-]*:/.test(text)) return parseHttpUrl(text)
  if (text.startsWith('//')) return parseHttpUrl(`${base.scheme}:${text}`)
  if (text === '') return base
  const path = base.target.replace(/\?.*$/s, '')
  if (text.startsWith('?')) return { ...base, target: normalizeTarget(path + text) }
  return {
    ...base,
    target: normalizeTarget(text.startsWith('/') ? text : path.slice(0, path.lastIndexOf('/') + 1) + text),
  }
}

/** Returns scheme, host and port for comparison: without the default port of the scheme. */
export function originOf({ scheme, host, port }: HttpUrl): string {
  const name = host.includes(':') ? `[${host}]` : host
  return `${scheme}://${name}${port === (scheme === 'https' ? 443 : 80) ? '' : `:${port}`}`
}

export function formatHttpUrl(url: HttpUrl): string {
  return originOf(url) + url.target
}

/** Returns the URL of a path below another URL. `below` is encoded, without a leading `/`, and may have a query. */
export function httpUrlBelow(base: HttpUrl, below: string): HttpUrl {
  const path = base.target.replace(/\/$/, '')
  return { ...base, target: below === '' ? base.target : path + (below.startsWith('?') ? below : `/${below}`) }
}

function withoutFragment(text: string): string {
  if (text.length > maxLength) throw urlError(`The URL is longer than ${maxLength} characters.`)
  const mark = text.indexOf('#')
  return mark === -1 ? text : text.slice(0, mark)
}

function parseHost(authority: string): { readonly host: string; readonly port?: number } {
  if (authority.includes('@')) throw urlError('The URL has a name or password before its host (@). Remove them.')
  const [, bracketed, plain, digits] = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::(.*))?$/s.exec(authority) ?? []
  const host = (bracketed ?? plain ?? '').toLowerCase()
  if (bracketed !== undefined ? addressBytes(host)?.length !== 16 : !isHost(host))
    throw urlError('The host of the URL is neither a valid name nor a valid IP address.')
  const port = digits === undefined ? undefined : /^\d{1,5}$/.test(digits) ? Number(digits) : Number.NaN
  if (port !== undefined && !(port > 0 && port <= 65_535))
    throw urlError('The port of the URL is not a number from 1 to 65535.')
  return port === undefined ? { host } : { host, port }
}

/** Whether a host is an IPv4 address or a name. A name that ends in a number is refused, because some programs take it for an address. */
function isHost(host: string): boolean {
  if (host.length > 253 || !/^[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*$/.test(host))
    return false
  return addressBytes(host) !== undefined || !/(?:^|\.)(?:\d+|0x[\da-f]*)$/.test(host)
}

function normalizeTarget(text: string): string {
  if (/[\p{Cc}\\]/u.test(text) || !text.isWellFormed())
    throw urlError('The URL has a control character, a backslash or a lone surrogate. Percent-encode or remove it.')
  const [, path = '', query = ''] = /^([^?]*)(.*)$/s.exec(text) ?? []
  const segments: string[] = []
  const parts = path.split('/').slice(1)
  for (const [index, part] of parts.entries()) {
    const dots = part.replace(/%2e/gi, '.')
    const isLast = index === parts.length - 1
    if (dots === '..') segments.pop()
    if (dots !== '.' && dots !== '..') segments.push(part)
    else if (isLast) segments.push('')
  }
  return `/${segments.join('/')}${query}`.replace(/[^\w.~!$&'()*+,;=:@/?%-]/gu, encodeURIComponent)
}

function urlError(message: string): ResourceError {
  return invalid(message, 'uri')
}

/** Whether {@link parseHttpUrl} accepts a text. */
export function isHttpUrl(text: string): boolean {
  try {
    return formatHttpUrl(parseHttpUrl(text)) !== ''
  } catch {
    return false
  }
}

type AddressBytes = readonly number[]

/**
 * Returns the bytes of an address in a standard notation: `192.0.2.1`, `2001:db8::1`, `::ffff:192.0.2.1`. Undefined for
 * any other text, including those that only some programs accept as addresses: `127.1`, `0x7f.1`, `0177.0.0.1`, `2130706433`, a
 * zone (`fe80::1%eth0`).
 */
export function addressBytes(text: string): AddressBytes | undefined {
  return text.includes(':') ? ipv6Bytes(text) : ipv4Bytes(text)
}

function ipv4Bytes(text: string): AddressBytes | undefined {
  const parts = text.split('.')
  if (parts.length !== 4 || !parts.every((part) => /^(?:0|[1-9]\d{0,2})$/.test(part))) return undefined
  const bytes = parts.map(Number)
  return bytes.every((byte) => byte < 256) ? bytes : undefined
}

function ipv6Bytes(text: string): AddressBytes | undefined {
  const halves = text.split('::')
  if (halves.length > 2) return undefined
  const [front, back] = [bytesOfGroups(halves[0] ?? '', halves.length === 1), bytesOfGroups(halves[1] ?? '', true)]
  if (front === undefined || back === undefined) return undefined
  const zeros = 16 - front.length - back.length
  // `::` replaces at least one group.
  if (halves.length === 1 ? zeros !== 0 : zeros < 2) return undefined
  return [...front, ...Array.from({ length: zeros }, () => 0), ...back]
}

/** Returns the bytes of groups of an IPv6 address. At the `end` of the address the last group may be an IPv4 address. */
function bytesOfGroups(text: string, end: boolean): AddressBytes | undefined {
  if (text === '') return []
  const groups = text.split(':')
  const bytes: number[] = []
  for (const [index, group] of groups.entries()) {
    if (group.includes('.')) {
      const last = end && index === groups.length - 1 ? ipv4Bytes(group) : undefined
      if (last === undefined) return undefined
      bytes.push(...last)
    } else if (/^[0-9A-Fa-f]{1,4}$/.test(group)) {
      const number = Number.parseInt(group, 16)
      bytes.push(number >> 8, number & 0xff)
    } else return undefined
  }
  return bytes
}

/** A block of addresses: those that begin with the same `bits` bits. */
export interface AddressBlock {
  readonly bytes: AddressBytes
  readonly bits: number
}

/** Parses a block such as `10.0.0.0/8` or `fd00::/8`; an address alone is a block of one. Undefined for any other text. */
export function addressBlock(text: string): AddressBlock | undefined {
  const [, address = '', length] = /^([^/]*)(?:\/(0|[1-9]\d{0,2}))?$/.exec(text) ?? []
  const bytes = addressBytes(address)
  const bits = bytes === undefined ? 0 : length === undefined ? bytes.length * 8 : Number(length)
  return bytes === undefined || bits > bytes.length * 8 ? undefined : { bytes, bits }
}

/** Whether an address lies in a block. An IPv4 address never lies in an IPv6 block, nor the other way round. */
export function isInBlock(address: AddressBytes, { bytes, bits }: AddressBlock): boolean {
  if (address.length !== bytes.length) return false
  return bytes.every((byte, index) => {
    const prefixBits = Math.min(8, Math.max(0, bits - index * 8))
    const mask = (0xff << (8 - prefixBits)) & 0xff
    return ((address[index] ?? 0) & mask) === (byte & mask)
  })
}

function blocks(text: string): () => readonly AddressBlock[] {
  let addressBlocks: readonly AddressBlock[] | undefined
  return () => {
    addressBlocks ??= text
      .trim()
      .split(/\s+/)
      .flatMap((one) => addressBlock(one) ?? [])
    return addressBlocks
  }
}

/** Addresses that are not public: the registries of special addresses (RFC 6890), multicast, and reserved blocks. */
const special = blocks(`
  0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.31.196.0/24
  192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3
  2001::/23 2001:db8::/32 2620:4f:8000::/48 3fff::/20
`)
const global = blocks('2000::/3')

/**
 * Addresses of metadata services, which give cloud machines their credentials (AWS, Google, Azure, Alibaba, Oracle),
 * with blocks around some, and the unspecified addresses.
 */
const metadata = blocks(`
  169.254.0.0/16 fe80::/10 fd00:ec2::254/128 fd20:ce::254/128 100.100.100.200/32 192.0.0.192/32 0.0.0.0/32 ::/128
`)

/** Ways to embed an IPv4 address in an IPv6 address: mapped, compatible, translated (NAT64), tunnelled (6to4). */
const embeddings = blocks('::ffff:0:0/96 ::ffff:0:0:0/96 ::/96 64:ff9b::/96 2002::/16')
/** Offset of the embedded IPv4 address in 6to4 and in all other embeddings, in bytes. */
const embeddedAt = { sixToFour: 2, others: 12 }

function embedded(bytes: AddressBytes): AddressBytes | undefined {
  if (bytes.length !== 16) return undefined
  const addressBlock = embeddings().find((block) => isInBlock(bytes, block))
  if (addressBlock === undefined) return undefined
  const at = addressBlock.bits === 16 ? embeddedAt.sixToFour : embeddedAt.others
  return bytes.slice(at, at + 4)
}

/**
 * Whether an address is public, as opposed to one of this machine, of a private network, reserved, or unassigned. An IPv6 address that
 * embeds an IPv4 address is judged by the latter.
 */
export function isPublicAddress(bytes: AddressBytes): boolean {
  const inner = embedded(bytes)
  if (inner !== undefined) return isPublicAddress(inner)
  if (bytes.length === 16 && !global().some((block) => isInBlock(bytes, block))) return false
  return !special().some((block) => isInBlock(bytes, block))
}

/**
 * Whether an address is that of a metadata service, or in another refused block such as the link-local addresses. An
 * embedded IPv4 address counts too.
 */
export function isMetadataAddress(bytes: AddressBytes): boolean {
  const inner = embedded(bytes)
  return metadata().some((block) => isInBlock(bytes, block) || (inner !== undefined && isInBlock(inner, block)))
}

/**
 * Whether requests to an address are allowed: it is public, or in a block that the operator allowed, and {@link
 * isMetadataAddress} does not hold. An IPv6 address that embeds an IPv4 address is judged by the latter.
 */
export function isAllowedAddress(bytes: AddressBytes, allowed: readonly AddressBlock[]): boolean {
  if (isMetadataAddress(bytes)) return false
  const inner = embedded(bytes) ?? bytes
  return isPublicAddress(bytes) || allowed.some((block) => isInBlock(bytes, block) || isInBlock(inner, block))
}

/** Error codes of a TLS handshake with a server that does not speak TLS. The code depends on the answer of the server and on the version of OpenSSL. */
const notTls =
  /^(?:EPROTO|ERR_SSL_(?:WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST|UNKNOWN_PROTOCOL|UNEXPECTED_MESSAGE|BAD_RECORD_TYPE|RECORD_LAYER_FAILURE))$/

export function isNotTlsCode(code: string): boolean {
  return notTls.test(code)
}
