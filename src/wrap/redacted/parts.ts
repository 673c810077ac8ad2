import { defined } from '../../core/kit/defined.ts'
import { wholeCharacters } from '../../core/kit/utf8.ts'
import type { Failure } from '../../core/kit/worker-host.ts'
import { type CleanPart, contextBytes, type Window, windowBytes } from '../../secrets/window.ts'

/** Some bytes of a text, from its beginning or from a later character. */
interface Piece {
  readonly bytes: Buffer
  /** Byte offset of the bytes in the text. */
  readonly start: number
  /** Whether these are the last bytes. */
  readonly final: boolean
}

/** Reads approximately the bytes of a text from `start` to `end`; they may be cut within a character. */
export type ReadPiece = (start: number, end: number) => Promise<Piece>

/** A part of a text without its secrets, and the position of the next part in the text. */
export interface Clean {
  readonly text: string
  readonly next: number
  readonly final: boolean
  readonly changed: boolean
}

/**
 * The parts of a text without their secrets, in order, from the beginning of a part. They are the same whether the whole text is
 * in memory or read chunk by chunk. A failure ends them.
 *
 * @param needsHead Whether a later window gets the first line of the text, which contains the column names of a table.
 */
export async function* cleanParts(
  read: ReadPiece,
  from: number,
  redact: (window: Window) => Promise<CleanPart | Failure>,
  needsHead = false,
): AsyncGenerator<Clean | Failure> {
  let head: string | undefined
  for (let at = from; ; ) {
    if (needsHead && head === undefined && at > contextBytes) head = firstLine((await read(0, maxHeadBytes)).bytes)
    const piece = await read(Math.max(0, at - contextBytes), at + windowBytes + contextBytes)
    const whole = wholeCharacters(piece.bytes)
    // The last bytes of a text are shown even if they are not a complete character.
    const bytes = piece.bytes.subarray(piece.start === 0 ? 0 : whole.from, piece.final ? undefined : whole.to)
    const start = piece.start + (piece.start === 0 ? 0 : whole.from)
    const text = bytes.toString()
    // A byte order mark is not among the bytes, which then begin after it.
    const begin = bytes.subarray(0, Math.max(0, at - start)).toString().length
    const part = await redact({ text, from: begin, final: piece.final, ...defined({ head }) })
    if (typeof part === 'string') {
      yield part
      return
    }
    const final = piece.final && part.cut === text.length
    at = start + Buffer.byteLength(text.slice(0, part.cut))
    yield { text: part.text, next: at, final, changed: part.changed }
    if (final) return
  }
}

/** Maximum length of the examined first line, in bytes. */
const maxHeadBytes = 4096

const firstLine = (bytes: Buffer) => /^[^\r\n]*/.exec(bytes.toString())?.[0] ?? ''

/** Reads chunks of a content in memory. */
export function piecesOf(bytes: Buffer): ReadPiece {
  return async (start, end) => ({ bytes: bytes.subarray(start, end), start, final: end >= bytes.length })
}
