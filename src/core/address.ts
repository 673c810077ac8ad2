/** IP addresses as numbers: which ones are public, and which ones lead into a private network. */

/** The bytes of an address: 4 or 16. */
type AddressBytes = readonly number[]

/**
 * Returns the bytes of an address in its one canonical spelling: `192.0.2.1`, `2001:db8::1`, `::ffff:192.0.2.1`. Undefined for
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
    const kept = Math.min(8, Math.max(0, bits - index * 8))
    const mask = (0xff << (8 - kept)) & 0xff
    return ((address[index] ?? 0) & mask) === (byte & mask)
  })
}

/** Returns a function that parses a list of blocks at its first call: most starts never need one. */
function blocks(text: string): () => readonly AddressBlock[] {
  let read: readonly AddressBlock[] | undefined
  return () => {
    read ??= text
      .trim()
      .split(/\s+/)
      .flatMap((one) => addressBlock(one) ?? [])
    return read
  }
}

/** Addresses that are not public: the registries of special addresses (RFC 6890), multicast, and reserved blocks. */
const special = blocks(`
  0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.31.196.0/24
  192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3
  2001::/23 2001:db8::/32 2620:4f:8000::/48 3fff::/20
`)
/** The only IPv6 addresses that are assigned for global use. An IPv6 address that embeds an IPv4 address is judged by the latter. */
const global = blocks('2000::/3')

/** Addresses of metadata services, which give cloud machines their credentials (AWS, Google, Azure, Alibaba, Oracle), and their neighbourhood. */
const metadata = blocks(`
  169.254.0.0/16 fe80::/10 fd00:ec2::254/128 fd20:ce::254/128 100.100.100.200/32 192.0.0.192/32 0.0.0.0/32 ::/128
`)

/** Ways to embed an IPv4 address in an IPv6 address: mapped, compatible, translated (NAT64), tunnelled (6to4). */
const embeddings = blocks('::ffff:0:0/96 ::ffff:0:0:0/96 ::/96 64:ff9b::/96 2002::/16')
/** Offset of the embedded IPv4 address in 6to4 and in all other embeddings, in bytes. */
const embeddedAt = { sixToFour: 2, others: 12 }

/** Returns the IPv4 address that an IPv6 address embeds; undefined when it embeds none. */
function embedded(bytes: AddressBytes): AddressBytes | undefined {
  if (bytes.length !== 16) return undefined
  const found = embeddings().find((block) => isInBlock(bytes, block))
  if (found === undefined) return undefined
  const at = found.bits === 16 ? embeddedAt.sixToFour : embeddedAt.others
  return bytes.slice(at, at + 4)
}

/**
 * Whether an address is public, as opposed to one of this machine, of a private network, or unassigned. An IPv6 address that
 * embeds an IPv4 address is judged by the latter.
 */
export function isPublicAddress(bytes: AddressBytes): boolean {
  const inner = embedded(bytes)
  if (inner !== undefined) return isPublicAddress(inner)
  if (bytes.length === 16 && !global().some((block) => isInBlock(bytes, block))) return false
  return !special().some((block) => isInBlock(bytes, block))
}

/** Whether an address belongs to a metadata service, which gives machines their credentials, in any spelling. */
export function isMetadataAddress(bytes: AddressBytes): boolean {
  const inner = embedded(bytes)
  return metadata().some((block) => isInBlock(bytes, block) || (inner !== undefined && isInBlock(inner, block)))
}

/**
 * Whether requests to an address are allowed: it is public, or in a block that the operator `allowed`. The operator cannot allow
 * the addresses of metadata services. An IPv6 address that embeds an IPv4 address is judged by the latter.
 */
export function isAllowedAddress(bytes: AddressBytes, allowed: readonly AddressBlock[]): boolean {
  if (isMetadataAddress(bytes)) return false
  const inner = embedded(bytes) ?? bytes
  return isPublicAddress(bytes) || allowed.some((block) => isInBlock(bytes, block) || isInBlock(inner, block))
}
