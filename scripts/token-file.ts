/** A token of an encoding: its text, or its bytes if they are not valid text. `undefined`: the id is unused, a hole in the list. */
type Token = string | readonly number[] | undefined

/**
 * Formats the tokens of an encoding as the file that `src/context/ranks.ts` reads: their number (32 bits, little endian), the length of
 * each in bytes (0 for a hole), and the bytes of all of them. As a module, a list of 200,000 strings would stay in memory.
 */
export function tokenFileOf(tokens: readonly Token[]): Uint8Array {
  const parts = Array.from(tokens, (token = '') =>
    typeof token === 'string' ? Buffer.from(token) : Buffer.from(token),
  )
  const longest = parts.reduce((most, { length }) => Math.max(most, length), 0)
  if (longest > 255) throw new RangeError(`A token has ${longest} bytes.`)
  const head = Buffer.alloc(4)
  head.writeUInt32LE(parts.length)
  return Buffer.concat([head, Uint8Array.from(parts, ({ length }) => length), ...parts])
}
