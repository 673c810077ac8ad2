import { createWriteStream, openSync } from 'node:fs'
import type { Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'
import { defined } from '../../core/kit/object.ts'
import type { Resource } from '../../core/view.ts'
import { commandFailure } from './exit.ts'
import type { Secrets } from './secrets.ts'
import { coloursFor, displayWidth, escapeLines } from './text.ts'

/** The outputs of a command: data goes to `out`, messages to `say`. */
export interface Io {
  readonly out: Output
  /** Prints a message on standard error. Secrets are removed and control characters escaped. */
  say(text: string): void
  readonly saysToTerminal: boolean
  readonly secrets: Secrets
  readonly sharing?: Sharing
}

/** Access to other processes that join this one. This process serves their clients. */
export interface Sharing {
  /** The secret that seals the cursors of lists. A process that takes over from this one needs the same. */
  readonly cursorSecret: string
  /** Calls `serve` for clients that join, and for those that have joined already. */
  readonly onClient: (serve: (socket: Socket) => void) => void
  readonly leave: () => void
  /** The streams of this process's own client, if another process has served it before. */
  readonly own?: { readonly input: Readable; readonly output: Writable }
}

export interface ProcessIo extends Io {
  complain(text: string): void
}

export function createIo(secrets: Secrets, sharing?: Sharing): ProcessIo {
  const out = createOutput(process.stdout)
  const saysToTerminal = () => standardError().isTTY === true
  const clean = (text: string) => escapeLines(secrets.scrub(text))
  const clearly: Output['write'] = (data, options) => {
    statusLine.clear()
    return out.write(data, options)
  }
  return {
    out: out.isTerminal ? { ...out, write: clearly } : out,
    say: (text) => writeError(`${clean(text)}\n`),
    complain: (text) => writeError(`${coloursFor(saysToTerminal()).red('hikidashi:')} ${clean(text)}\n`),
    get saysToTerminal() {
      return saysToTerminal()
    },
    secrets,
    ...defined({ sharing }),
  }
}

export type StatusLine = ReturnType<typeof createStatusLine>

export function createStatusLine(write: (text: string) => void, columns: () => number) {
  let lastLine = ''
  return {
    show: (text: string) => {
      // A line that the terminal wraps cannot be overwritten.
      const line = fitting(text, columns() - 1)
      if (line === lastLine) return
      lastLine = line
      write(`\r${line}\u001b[K`)
    },
    clear: () => {
      if (lastLine !== '') write('\r\u001b[K')
      lastLine = ''
    },
  }
}

function fitting(text: string, columns: number): string {
  if (displayWidth(text) <= columns) return text
  const characters = [...text]
  let line = ''
  for (const character of characters) {
    if (displayWidth(line + character) > columns) return line
    line += character
  }
  return line
}

let hasListener = false

/** Node creates the stream at its first use, which takes time. */
export function standardError(): typeof process.stderr {
  // A failure to write to standard error cannot be reported anywhere.
  if (!hasListener) process.stderr.on('error', () => {})
  hasListener = true
  return process.stderr
}

export const statusLine = createStatusLine(
  (text) => void standardError().write(text),
  // Some terminals report no size.
  () => process.stderr.columns || 80,
)

/** On a terminal, control characters are escaped, except for the colours of `coloursFor`. */
export function writeError(text: string): void {
  statusLine.clear()
  const stream = standardError()
  stream.write(stream.isTTY === true ? forTerminal(text, { isStyled: true }) : text)
}

export interface Output {
  readonly isTerminal: boolean
  /**
   * On a terminal, control characters are shown as escapes (`\u001b`); a pipe or a file gets the bytes unchanged.
   * @throws {@link outputClosedError} when the reader is gone
   */
  write(data: string | Uint8Array, options?: WriteOptions): Promise<void>
}

interface WriteOptions {
  /** The text contains colours of `coloursFor`, which stay. */
  readonly isStyled?: boolean
}

/** Colours and weights (SGR, ECMA-48). */
const style = new RegExp(`(${String.fromCharCode(27)}\\[\\d{1,2}(?:;\\d{1,2})?m)`)

function forTerminal(text: string, { isStyled = false }: WriteOptions = {}): string {
  if (!isStyled) return escapeLines(text)
  return text
    .split(style)
    .map((part, i) => (i % 2 === 1 ? part : escapeLines(part)))
    .join('')
}

/** The reader of the output is gone. A command then ends without an error. */
export const outputClosedError = new Error('the reader of the output is gone')

/** @param name The output, as the subject of an error. */
export function createOutput(stream: Writable & { readonly isTTY?: boolean }, name = 'The output'): Output {
  let failure: Error | undefined
  const reasonOf = (error: NodeJS.ErrnoException) => {
    const isGone = error.code === 'EPIPE' || error.code === 'ERR_STREAM_DESTROYED' || error.code === 'ECONNRESET'
    return isGone ? outputClosedError : ioError('written', name, error)
  }
  // Without a listener, a late failure would end the process.
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
        const bytes = isTerminal ? forTerminal(textOf(data), options) : data
        stream.write(bytes, (error) => (error ? reject(reasonOf(error)) : resolve()))
      }),
  }
}

/** Writes a JSON array while its items arrive, one a line. */
export function createJsonArray(output: Output) {
  let empty = true
  return {
    add: async (items: readonly unknown[]) => {
      if (items.length === 0) return
      const lines = items.map((item) => JSON.stringify(item)).join(',\n')
      await output.write(empty ? `[\n${lines}` : `,\n${lines}`)
      empty = false
    },
    end: (): Promise<void> => output.write(empty ? '[]\n' : '\n]\n'),
  }
}

export async function writeJson(output: Output, value: unknown): Promise<void> {
  await output.write(`${JSON.stringify(value, undefined, 2)}\n`)
}

const units = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const

/** Formats a number of bytes: `0 B`, `1023 B`, `1.5 KiB`, `12 MiB`. */
export function formatSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  let value = bytes / 1024
  let unit = 0
  // A value that would be rounded to 1024 of a unit is shown as 1 of the next.
  while (value >= 1023.5 && unit < units.length - 1) {
    value /= 1024
    unit++
  }
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`
}

/** Formats milliseconds since 1970 in ISO 8601 (UTC), to the second. */
export function formatUtcTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString().replace(/\.\d+Z$/, 'Z')
}

export function resourceToJson({ modified, ...facts }: Resource): Readonly<Record<string, unknown>> {
  return modified === undefined ? facts : { ...facts, modified: new Date(modified).toISOString() }
}

/** Formats a number with a regular plural: `1 mount`, `2 mounts`. */
export function pluralize(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? '' : 's'}`
}

/** Formats a number with separators and a plural: `1 entry`, `1,203 entries`. */
export function formatCount(number: number, one: string, many: string = `${one}s`): string {
  return `${number.toLocaleString('en')} ${number === 1 ? one : many}`
}

/** Truncates the file. @throws CommandError if the file cannot be opened */
export function openFileOutput(file: string): Output {
  let descriptor: number
  try {
    descriptor = openSync(file, 'w')
  } catch (error) {
    throw ioError('written', `The file ${file}`, error)
  }
  return createOutput(createWriteStream(file, { fd: descriptor }), `The file ${file}`)
}

/** The message omits the path that Node adds to its messages. */
export function ioError(what: 'read' | 'written', name: string, error: unknown): Error {
  const reason = error instanceof Error ? error.message.replace(/, \w+(?: '.*')?$/s, '') : String(error)
  return commandFailure(`${name} cannot be ${what}: ${reason}`)
}
