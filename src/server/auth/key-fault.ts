import { checkPrime, createPublicKey, type JsonWebKey } from 'node:crypto'
import { promisify } from 'node:util'
import { isObject } from '../../core/kit/object.ts'

/** Members of a JWK that only the signer may know (RFC 7518, section 6). */
const secretMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv']

/** Least RSA exponent (FIPS 186-5, section 5.1). */
const leastExponent = 65_537n
/** Maximum number of bits of an exponent (FIPS 186-5, section 5.1). */
const maxExponentBits = 256
/** Number of bits of an RSA modulus. OpenSSL reads no longer one. */
const modulusBits = { least: 2048, most: 16_384 }
/** Upper bound of the factors that are tried on a modulus. */
const smallFactor = 1000n
/** Number of steps of Fermat's method. Each step tries a number as half of the sum of two factors. */
const fermatSteps = 100n

interface EdwardsCurve {
  readonly prime: bigint
  readonly bytes: number
  /** The `y` of the points of small order, reduced. */
  readonly weak: readonly bigint[]
}

const prime25519 = 2n ** 255n - 19n
const prime448 = 2n ** 448n - 2n ** 224n - 1n
/** The `y` of the points of order 8 of Ed25519, whose negatives are of order 8 too. */
const order8 = 0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n

const edwards: Readonly<Record<string, EdwardsCurve>> = {
  Ed25519: { prime: prime25519, bytes: 32, weak: [0n, 1n, prime25519 - 1n, order8, prime25519 - order8] },
  Ed448: { prime: prime448, bytes: 57, weak: [0n, 1n, prime448 - 1n] },
}

/** Returns a key that verifies signatures, in the form of the cryptographic library; or why a signature by this key would prove nothing. */
export async function checkVerifyingKey(key: unknown): Promise<{ readonly key: object } | { readonly fault: string }> {
  if (!isObject(key)) return { fault: 'It is not an object.' }
  const fault = purposeFault(key)
  if (fault !== undefined) return { fault }
  let jsonWebKey: JsonWebKey
  try {
    jsonWebKey = createPublicKey({ key: key as JsonWebKey, format: 'jwk' }).export({ format: 'jwk' })
  } catch {
    return { fault: 'It is not a public key of a known type, or its point is not on its curve.' }
  }
  const weakness = jsonWebKey.kty === 'RSA' ? await rsaFault(jsonWebKey) : pointFault(jsonWebKey)
  return weakness === undefined ? { key: { ...key, ...jsonWebKey } } : { fault: weakness }
}

function purposeFault({ kty, use, key_ops: operations, ...members }: Readonly<Record<string, unknown>>) {
  if (kty === 'oct') return 'It is a shared secret.'
  if (secretMembers.some((name) => name in members)) return 'Its private part is published, so anyone can sign.'
  if (use !== undefined && use !== null && use !== 'sig') return 'Its use is not to verify signatures.'
  if (operations !== undefined && operations !== null && !(Array.isArray(operations) && operations.includes('verify')))
    return 'Its key_ops do not include verify.'
  return undefined
}

async function rsaFault({ n, e }: JsonWebKey): Promise<string | undefined> {
  const [modulus, exponent] = [decodeBase64urlInteger(n), decodeBase64urlInteger(e)]
  // With an exponent of 1 a signature is the message itself (RFC 8017, section 3.1).
  if (exponent % 2n === 0n || exponent < leastExponent || bitsOf(exponent) > maxExponentBits)
    return `Its exponent is even, is less than ${leastExponent}, or has more than ${maxExponentBits} bits.`
  const bits = bitsOf(modulus)
  if (bits < modulusBits.least || bits > modulusBits.most)
    return `Its modulus does not have ${modulusBits.least} to ${modulusBits.most} bits.`
  for (let factor = 2n; factor < smallFactor; factor++)
    if (modulus % factor === 0n) return 'Its modulus is even, or has another small factor.'
  if (hasCloseFactors(modulus)) return 'Its modulus is the product of two numbers that are close together.'
  return (await promisify(checkPrime)(modulus)) ? 'Its modulus is a prime.' : undefined
}

/** Whether a few steps of Fermat's method factor a modulus: its factors are equal, or close together (FIPS 186-5, section A.1.3). */
function hasCloseFactors(modulus: bigint): boolean {
  const root = squareRoot(modulus)
  for (let middle = root; middle <= root + fermatSteps; middle++) {
    const square = middle * middle - modulus
    if (square >= 0n && squareRoot(square) ** 2n === square) return true
  }
  return false
}

/** Returns the square root of a number, rounded down, by Newton's method. */
function squareRoot(value: bigint): bigint {
  if (value === 0n) return 0n
  let root = 1n << BigInt(Math.ceil(bitsOf(value) / 2))
  for (;;) {
    const next = (root + value / root) / 2n
    if (next >= root) return root
    root = next
  }
}

function pointFault({ kty, crv = '', x = '' }: JsonWebKey): string | undefined {
  if (kty === 'EC') return undefined
  const curve = Object.hasOwn(edwards, crv) ? edwards[crv] : undefined
  if (curve === undefined) return 'It is of a kind that is not used for signatures here.'
  const { prime, bytes, weak } = curve
  // The highest bit is the sign of the other coordinate (RFC 8032, sections 5.1.2 and 5.2.2).
  const y = BigInt(`0x${Buffer.from(x, 'base64url').reverse().toString('hex')}`) & (2n ** BigInt(bytes * 8 - 1) - 1n)
  return weak.includes(y % prime) ? 'Its point has a small order, so anyone can sign.' : undefined
}

function decodeBase64urlInteger(text = ''): bigint {
  return BigInt(`0x${Buffer.from(text, 'base64url').toString('hex') || '0'}`)
}

function bitsOf(value: bigint): number {
  return value.toString(2).length
}
