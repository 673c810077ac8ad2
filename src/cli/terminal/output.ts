import type { Writable } from 'node:stream'
import { escapeLines } from './text.ts'

/** Output for the data of a command. */
export interface Output {
  /** Whether a person is looking at it, rather than a program. */
  readonly isTerminal: boolean
  /**
   * Writes data. On a terminal, control characters are shown as escapes (`\u001b`), whatever the source of the data; a pipe or a
   * file gets the bytes unchanged. Waits while the reader is slow. Rejects with {@link outputClosed} when the reader is gone.
   */
  write(data: string | Uint8Array, options?: WriteOptions): Promise<void>
}

interface WriteOptions {
  /** The text contains colours of `coloursFor`, which are written. All other text in it must have gone through `escapeText`. */
  readonly isStyled?: boolean
}

/** The sequences of `coloursFor`: colours and weights (SGR, ECMA-48). They neither move the cursor nor write characters. */
const style = new RegExp(`(${String.fromCharCode(27)}\\[\\d{1,2}(?:;\\d{1,2})?m)`)

/** A text that is safe for a terminal: control characters as escapes, line ends and tabs unchanged. */
export function forTerminal(text: string, { isStyled = false }: WriteOptions = {}): string {
  if (!isStyled) return escapeLines(text)
  return text
    .split(style)
    .map((part, i) => (i % 2 === 1 ? part : escapeLines(part)))
    .join('')
}

/** The reader of the output is gone (`| head`): the command ends without an error. */
export const outputClosed = new Error('the reader of the output is gone')

export function createOutput(stream: Writable & { readonly isTTY?: boolean }): Output {
  let failure: Error | undefined
  // Keep a listener: without it, a late failure would end the process.
  stream.on('error', (error: NodeJS.ErrnoException) => {
    failure ??= reasonOf(error)
  })
  const isTerminal = stream.isTTY === true
  // A character may be split over two chunks of bytes.
  const decoder = new TextDecoder()
  const textOf = (data: string | Uint8Array) =>
    typeof data === 'string' ? data : decoder.decode(data, { stream: true })
  return {
    isTerminal,
    write: (data, options) =>
      new Promise((resolve, reject) => {
        if (failure !== undefined) return reject(failure)
        const written = isTerminal ? forTerminal(textOf(data), options) : data
        stream.write(written, (error) => (error ? reject(reasonOf(error)) : resolve()))
      }),
  }
}

function reasonOf(error: NodeJS.ErrnoException): Error {
  const gone = error.code === 'EPIPE' || error.code === 'ERR_STREAM_DESTROYED' || error.code === 'ECONNRESET'
  return gone ? outputClosed : error
}

/** Writes a JSON array while its items arrive, one a line, so that a long array is never held in memory. */
interface JsonArray {
  add(items: readonly unknown[]): Promise<void>
  end(): Promise<void>
}

export function createJsonArray(output: Output): JsonArray {
  let empty = true
  return {
    add: async (items) => {
      if (items.length === 0) return
      const lines = items.map((item) => JSON.stringify(item)).join(',\n')
      await output.write(empty ? `[\n${lines}` : `,\n${lines}`)
      empty = false
    },
    end: () => output.write(empty ? '[]\n' : '\n]\n'),
  }
}

/** Writes one value as JSON, for programs and people. */
export async function writeJson(output: Output, value: unknown): Promise<void> {
  await output.write(`${JSON.stringify(value, undefined, 2)}\n`)
}
