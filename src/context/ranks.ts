import { setImmediate as turn } from 'node:timers/promises'

type EncodedToken = string | readonly number[] | undefined

/** The tokens of an encoding by rank: the number of bytes of each, 0 for a hole; and their bytes, one after the other. */
interface TokenList {
  readonly lengths: Uint8Array
  readonly bytes: Uint8Array
}

function tokenListOf(tokens: readonly EncodedToken[]): TokenList {
  const parts = Array.from(tokens, (token = '') =>
    typeof token === 'string' ? Buffer.from(token) : Buffer.from(token),
  )
  return { lengths: Uint8Array.from(parts, ({ length }) => length), bytes: Buffer.concat(parts) }
}

/** Reads the file that the build makes of a module (scripts/token-file.ts). */
function parseTokenFile(file: Buffer): TokenList {
  const end = 4 + file.readUInt32LE(0)
  return { lengths: file.subarray(4, end), bytes: file.subarray(end) }
}

/** Number of tokens taken before the task yields to the event loop. */
const slice = 16_384

/**
 * Builds the table of the ranks of tokens, by their bytes as characters from 0 to 255. A hash table with open addressing in typed arrays
 * takes less memory than a Map of 200,000 strings.
 *
 * @param tokens The module of an encoding, or the file that the build makes of it.
 */
export async function buildTokenRanks(tokens: Buffer | readonly EncodedToken[]) {
  const { lengths, bytes } = Buffer.isBuffer(tokens) ? parseTokenFile(tokens) : tokenListOf(tokens)
  const mask = 2 ** Math.ceil(Math.log2(2 * lengths.length + 1)) - 1
  /** The rank in a slot, plus 1; 0: the slot is free. */
  const slots = new Int32Array(mask + 1)
  /** Start of the bytes of each token; they end at the start of the next one. */
  const starts = new Uint32Array(lengths.length + 1)
  let size = 0
  for (let rank = 0; rank < lengths.length; rank++) {
    if (rank % slice === slice - 1) await turn()
    starts[rank] = size
    const length = lengths[rank] ?? 0
    if (length === 0) continue
    let slot = hashOfBytes(bytes, size, size + length) & mask
    while (slots[slot] !== 0) slot = (slot + 1) & mask
    slots[slot] = rank + 1
    size += length
  }
  starts[lengths.length] = size
  if (size !== bytes.length)
    throw new RangeError(
      `The lengths of the tokens add up to ${size} bytes, but the file has ${bytes.length} bytes of tokens.`,
    )

  const isAt = (rank: number, text: string, from: number, length: number): boolean => {
    const start = starts[rank] ?? 0
    if ((starts[rank + 1] ?? 0) - start !== length) return false
    for (let index = 0; index < length; index++)
      if (bytes[start + index] !== text.charCodeAt(from + index)) return false
    return true
  }
  return {
    /** Returns the rank of the token that is the range from `start` to `end`; undefined if there is none. */
    get: (text: string, start = 0, end = text.length): number | undefined => {
      for (let slot = hashTextRange(text, start, end) & mask; ; slot = (slot + 1) & mask) {
        const rank = (slots[slot] ?? 0) - 1
        if (rank < 0) return undefined
        if (isAt(rank, text, start, end - start)) return rank
      }
    },
  }
}

export type TokenRanks = Awaited<ReturnType<typeof buildTokenRanks>>

/** Returns the hash that `hashTextRange` returns for the same bytes as a text. */
function hashOfBytes(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5 | 0
  for (let index = start; index < end; index++) hash = Math.imul(hash ^ (bytes[index] ?? 0), 0x01000193)
  return hash ^ (hash >>> 15)
}

/** Returns FNV-1a of a range of a text, with the upper bits mixed into the lower ones. */
function hashTextRange(text: string, start: number, end: number): number {
  let hash = 0x811c9dc5 | 0
  for (let index = start; index < end; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  return hash ^ (hash >>> 15)
}
