const pkcs = /^06[0-9a-f]{2}2a864886f70d01([0-9a-f]{2})/

/**
 * Whether bytes begin like a private key or a store of keys: in DER (PKCS #1 and DSA, SEC 1, PKCS #8, also encrypted, PKCS #12), or a
 * keystore of Java. Only the beginning is examined.
 */
export function beginsLikePrivateKey(bytes: Uint8Array): boolean {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, 64))
  if (/^(?:feedfeed|cececece)0000000[12]/.test(head.toString('hex', 0, 8))) return true
  const body = derContent(head, 0x30)
  if (body === undefined) return false
  const version = derContent(body, 0x02)
  if (version === undefined) {
    const algorithm = derContent(body, 0x30)
    // Encrypted PKCS #8: an algorithm of PKCS #5 or #12, then the octets.
    const set = pkcs.exec(algorithm?.toString('hex') ?? '')?.[1]
    return set === '05' || set === '0c'
  }
  if (body[1] !== 1) return false
  const rest = body.subarray(3)
  const inner = derContent(rest, 0x30)
  if (body[2] === 3) return /^06092a864886f70d0107/.test(inner?.toString('hex') ?? '')
  if (body[2] !== 0 && body[2] !== 1) return false
  // After the version follows an algorithm (PKCS #8), the octets of the key (SEC 1), or a long number (PKCS #1, DSA).
  const isLong = (size: number) => (rest[1] ?? 0) >= size || rest[1] === 0x81 || rest[1] === 0x82
  if (inner !== undefined) return inner[0] === 0x06 && (inner[1] ?? 0) >= 3 && (inner[1] ?? 0) <= 16
  if (rest[0] === 0x04) return body[2] === 1 && isLong(16)
  return rest[0] === 0x02 && isLong(48)
}

/** The content of a value of DER, or its beginning if the bytes end earlier; `undefined` for another tag. */
function derContent(bytes: Buffer, tag: number): Buffer | undefined {
  const length = bytes[1]
  if (bytes[0] !== tag || length === undefined || length > 0x84) return undefined
  return bytes.subarray(2 + (length & 0x80 ? length & 0x7f : 0))
}
