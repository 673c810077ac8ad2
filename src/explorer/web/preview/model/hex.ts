/** Number of bytes in a row. */
export const bytesInRow = 16

export interface HexRow {
  readonly offset: string
  readonly bytes: string
  readonly text: string
}

/** Formats bytes as a hex dump: offset, hexadecimal digits, and ASCII characters. */
export function hexRow(bytes: Uint8Array, row: number): HexRow {
  const start = row * bytesInRow
  const part = bytes.subarray(start, start + bytesInRow)
  const pairs = Array.from(part, (byte) => byte.toString(16).padStart(2, '0'))
  return {
    offset: start.toString(16).padStart(8, '0'),
    bytes: [pairs.slice(0, 8).join(' '), pairs.slice(8).join(' ')].join('  ').padEnd(48),
    text: String.fromCharCode(...part.map((byte) => (byte >= 0x20 && byte < 0x7f ? byte : 0x2e))),
  }
}
