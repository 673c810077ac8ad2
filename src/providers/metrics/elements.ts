/** Streaming reader that extracts the elements of `data.result` from an answer of the API of Prometheus. */
export interface ElementReader {
  push(chunk: Uint8Array): void
  /** Returns the JSON around the elements, with a `0` in place of each. */
  end(): string
}

const [quote, backslash] = [0x22, 0x5c]
const [openBrace, closeBrace, openBracket, closeBracket] = [0x7b, 0x7d, 0x5b, 0x5d]

/** Nesting level of the elements: objects in an array in an object in an object. */
const level = 3

/**
 * Scans JSON only for the start and end of its elements, so that they need not all be held or parsed at once. Malformed JSON in gives
 * malformed JSON out.
 */
export function createElementReader(take: (json: Uint8Array) => void): ElementReader {
  /** Open braces and brackets of the outermost levels. */
  const opened: number[] = []
  let depth = 0
  let inString = false
  let escaped = false
  let element: Uint8Array[] | undefined
  const rest: Uint8Array[] = []

  const isPlace = () =>
    depth === level && opened[0] === openBrace && opened[1] === openBrace && opened[2] === openBracket

  return {
    push: (chunk) => {
      let from = 0
      for (let at = 0; at < chunk.length; at++) {
        const byte = chunk[at]
        if (inString) {
          if (escaped) escaped = false
          else if (byte === backslash) escaped = true
          else if (byte === quote) inString = false
        } else if (byte === quote) inString = true
        else if (byte === openBrace || byte === openBracket) {
          if (byte === openBrace && isPlace()) {
            rest.push(chunk.subarray(from, at))
            element = []
            from = at
          }
          if (depth < level) opened[depth] = byte
          depth++
        } else if (byte === closeBrace || byte === closeBracket) {
          depth--
          if (element === undefined || depth !== level) continue
          take(Buffer.concat([...element, chunk.subarray(from, at + 1)]))
          element = undefined
          rest.push(zero)
          from = at + 1
        }
      }
      const left = chunk.subarray(from)
      if (element === undefined) rest.push(left)
      else element.push(left)
    },
    end: () => Buffer.concat(element === undefined ? rest : [...rest, ...element]).toString('utf8'),
  }
}

const zero = Buffer.from('0')
