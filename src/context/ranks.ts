import { setImmediate as turn } from 'node:timers/promises'

/** Rank of each token in the order of merging, by its bytes as characters from 0 to 255. */
export interface Ranks {
  get(bytes: string): number | undefined
}

/** A token of an encoding: its text, or its bytes if they are no text. An unused token is a hole. */
type Token = string | readonly number[] | undefined

/** Number of tokens taken before the task yields to the event loop. */
const slice = 16_384

/**
 * A hash table with open addressing in typed arrays. A Map of 200,000 strings takes four times the memory, and all of it on the
 * heap, whose size decides when V8 collects.
 */
export async function ranksOf(tokens: readonly Token[]): Promise<Ranks> {
  const mask = 2 ** Math.ceil(Math.log2(2 * tokens.length + 1)) - 1
  /** The rank in a slot, plus 1; 0: the slot is free. */
  const slots = new Int32Array(mask + 1)
  /** Start of the bytes of each token; they end at the start of the next one. */
  const starts = new Uint32Array(tokens.length + 1)
  let bytes = Buffer.alloc(8 * tokens.length)
  let size = 0
  for (let rank = 0; rank < tokens.length; rank++) {
    const token = tokens[rank]
    if (rank % slice === slice - 1) await turn()
    starts[rank] = size
    if (token === undefined) continue
    const text = typeof token === 'string' ? bytesOf(token) : String.fromCharCode(...token)
    if (size + text.length > bytes.length) bytes = Buffer.concat([bytes], 2 * bytes.length + text.length)
    size += bytes.write(text, size, 'latin1')
    let slot = hashOf(text) & mask
    while (slots[slot] !== 0) slot = (slot + 1) & mask
    slots[slot] = rank + 1
  }
  starts[tokens.length] = size
  const held = Uint8Array.from(bytes.subarray(0, size))

  const isAt = (rank: number, text: string): boolean => {
    const start = starts[rank] ?? 0
    if ((starts[rank + 1] ?? 0) - start !== text.length) return false
    for (let index = 0; index < text.length; index++) if (held[start + index] !== text.charCodeAt(index)) return false
    return true
  }
  return {
    get: (text) => {
      for (let slot = hashOf(text) & mask; ; slot = (slot + 1) & mask) {
        const rank = (slots[slot] ?? 0) - 1
        if (rank < 0) return undefined
        if (isAt(rank, text)) return rank
      }
    },
  }
}

/** FNV-1a, whose upper bits are mixed into the lower ones. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  return hash ^ (hash >>> 15)
}

/** The bytes of a text in UTF-8, as characters from 0 to 255. */
export function bytesOf(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: what is ASCII is its own bytes
  return /^[\x00-\x7f]*$/.test(text) ? text : Buffer.from(text, 'utf8').toString('latin1')
}
