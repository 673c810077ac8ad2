import type { Found } from './batch.ts'

export interface AnswerEvents {
  /** How many bytes of the next object are wanted at most. */
  readonly limit: () => number
  readonly answer: (found: Found | undefined) => void
  /** An object has more bytes than are wanted. They follow, and are passed over. */
  readonly tooLarge: (found: Found) => void
  /** The output is none that git writes. */
  readonly broken: () => void
}

/** The longest line that git begins an answer with: an id, a type and a size, or a name and why there is no object. */
const maxHeader = 1024

/**
 * Takes the output of `git cat-file --batch` or `--batch-check` apart, whatever pieces it comes in: `id type size`, and with
 * contents the bytes and a line feed; or `name missing`.
 */
export function createAnswerReader(contents: boolean, events: AnswerEvents): (chunk: Buffer) => void {
  let header = ''
  /** The object whose bytes are being gathered. */
  let current: { readonly found: Found; readonly bytes: Buffer; filled: number } | undefined
  /** Bytes to pass over: the line feed behind an object, or a whole one that is too large. */
  let skip = 0
  let over = false

  const begin = (line: string) => {
    const found = /^([0-9a-f]{40,64}) (\w+) (\d+)$/.exec(line)
    if (found === null) {
      if (/ (?:missing|ambiguous)$/.test(line)) return events.answer(undefined)
      over = true
      return events.broken()
    }
    const [, oid = '', type = '', length = ''] = found
    const facts: Found = { oid, type, size: Number(length) }
    if (!contents) return events.answer(facts)
    if (facts.size > events.limit()) {
      skip = facts.size + 1
      return events.tooLarge(facts)
    }
    current = { found: facts, bytes: Buffer.allocUnsafeSlow(facts.size), filled: 0 }
    if (facts.size === 0) finish()
  }

  const finish = () => {
    if (current === undefined) return
    const { found, bytes } = current
    current = undefined
    skip = 1
    events.answer({ ...found, bytes })
  }

  return (chunk) => {
    for (let at = 0; at < chunk.length && !over; ) {
      if (skip > 0) {
        const passed = Math.min(skip, chunk.length - at)
        skip -= passed
        at += passed
      } else if (current !== undefined) {
        const copied = chunk.copy(current.bytes, current.filled, at)
        current.filled += copied
        at += copied
        if (current.filled === current.bytes.length) finish()
      } else {
        const end = chunk.indexOf(0x0a, at)
        header += chunk.toString('latin1', at, end === -1 ? chunk.length : end)
        at = end === -1 ? chunk.length : end + 1
        if (end === -1 && header.length <= maxHeader) return
        const line = header
        header = ''
        begin(line)
      }
    }
  }
}
