export interface AnswerEvents {
  /** Returns the maximum number of bytes of the next object to keep. */
  readonly limit: () => number
  readonly answer: (found: Found | undefined) => void
  /** Called for an object larger than the limit. Its bytes follow and are skipped. */
  readonly tooLarge: (found: Found) => void
  /** Called when the output is not in git's format. */
  readonly broken: () => void
}

/** Maximum length of the first line of an answer: an id, a type and a size, or a name and an error. */
const maxHeader = 1024

/**
 * Parses the output of `git cat-file --batch` or `--batch-check`, in chunks of any size: `id type size`, and with contents the bytes and a
 * line feed; or `name missing`.
 */
export function createAnswerReader(contents: boolean, events: AnswerEvents): (chunk: Buffer) => void {
  let header = ''
  /** The object whose bytes are being collected. */
  let current: Found | undefined
  let gathered: { readonly bytes: Buffer; filled: number } | undefined
  /** Number of bytes to skip: the line feed after an object, or a whole object that is too large. */
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
    current = facts
  }

  const finish = (found: Found, bytes: Buffer) => {
    current = undefined
    gathered = undefined
    skip = 1
    events.answer({ ...found, bytes })
  }

  /** Takes the available bytes of the current object, and returns their number. Most objects arrive in one chunk: no copy is made. */
  const gather = (found: Found, chunk: Buffer, at: number): number => {
    if (gathered === undefined && chunk.length - at >= found.size) {
      finish(found, chunk.subarray(at, at + found.size))
      return found.size
    }
    gathered ??= { bytes: Buffer.allocUnsafe(found.size), filled: 0 }
    const copied = chunk.copy(gathered.bytes, gathered.filled, at)
    gathered.filled += copied
    if (gathered.filled === found.size) finish(found, gathered.bytes)
    return copied
  }

  return (chunk) => {
    for (let at = 0; at < chunk.length && !over; ) {
      if (skip > 0) {
        const passed = Math.min(skip, chunk.length - at)
        skip -= passed
        at += passed
      } else if (current !== undefined) {
        at += gather(current, chunk, at)
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

/** The answer of git for one object. `bytes` is undefined when only the metadata was requested, or when the object is over the limit. */
export interface Found {
  readonly oid: string
  readonly type: string
  readonly size: number
  readonly bytes?: Buffer
}
