import { createWriteStream, openSync } from 'node:fs'
import type { Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'
import { defined } from '../../core/kit/object.ts'
import type { Resource } from '../../core/view.ts'
import { commandFailure } from './exit.ts'
import type { Secrets } from './secrets.ts'
import { coloursFor, displayWidth, escapeLines } from './text.ts'

/** The outputs of a command: data goes to `out`, everything else to `say`. */
export interface Io {
  readonly out: Output
  /** Prints a message on standard error, without secrets. Control characters are escaped. */
  say(text: string): void
  /** Whether standard error is a terminal, so that a person reads the messages. */
  readonly saysToTerminal: boolean
  /** Secrets that no output may contain. */
  readonly secrets: Secrets
  /** Lets the processes of other hosts join this one. */
  readonly sharing?: Sharing
}

/** Access to the clients of other processes. These processes join this one, which serves their clients. */
export interface Sharing {
  /** The secret that seals the cursors of lists. A process that takes over from this one gets it too. */
  readonly cursorSecret: string
  /** Calls `serve` for every client that joins, and for those that have joined already. */
  readonly onClient: (serve: (socket: Socket) => void) => void
  /** Refuses further processes. Those that have joined stay. */
  readonly leave: () => void
  /** The streams of this process's own client, if another process has served it before. */
  readonly own?: { readonly input: Readable; readonly output: Writable }
}

/** The outputs of the process, with one for the error that ends a command. */
export interface ProcessIo extends Io {
  /** Prints an error as `say` does, after `hikidashi:`. */
  complain(text: string): void
}

export function createIo(secrets: Secrets, sharing?: Sharing): ProcessIo {
  const out = createOutput(process.stdout)
  const saysToTerminal = () => standardError().isTTY === true
  const clean = (text: string) => escapeLines(secrets.scrub(text))
  /** Clears the status line before data is written, because both outputs may share the terminal. */
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

/** The last line of a terminal, which shows a changing status. It is erased before anything else is written. */
export type StatusLine = ReturnType<typeof createStatusLine>

/** @param columns Returns the number of columns of the terminal. */
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

/** Returns the beginning of a text that fits into a number of columns. */
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

/** Returns standard error. Node creates the stream at its first use, which takes about a millisecond. */
export function standardError(): typeof process.stderr {
  // A failure to write to standard error cannot be reported anywhere.
  if (!hasListener) process.stderr.on('error', () => {})
  hasListener = true
  return process.stderr
}

/** The status line of standard error, which all writers of the process share. */
export const statusLine = createStatusLine(
  (text) => void standardError().write(text),
  // Some terminals report no size.
  () => process.stderr.columns || 80,
)

/** Writes whole lines to standard error. On a terminal, control characters are escaped, except those of our own colours. */
export function writeError(text: string): void {
  statusLine.clear()
  const stream = standardError()
  stream.write(stream.isTTY === true ? forTerminal(text, { isStyled: true }) : text)
}

/** Output for the data of a command. */
export interface Output {
  /** Whether the output is a terminal, so that a person reads it rather than a program. */
  readonly isTerminal: boolean
  /**
   * Writes data. On a terminal, control characters are shown as escapes (`\u001b`), whatever the source of the data; a pipe or a
   * file gets the bytes unchanged. Waits while the reader is slow. Rejects with {@link outputClosedError} when the reader is gone.
   */
  write(data: string | Uint8Array, options?: WriteOptions): Promise<void>
}

interface WriteOptions {
  /** The text contains colours of `coloursFor`, which stay. All other text in it must have gone through `escapeText`. */
  readonly isStyled?: boolean
}

/** The sequences of `coloursFor`: colours and weights (SGR, ECMA-48). They neither move the cursor nor write characters. */
const style = new RegExp(`(${String.fromCharCode(27)}\\[\\d{1,2}(?:;\\d{1,2})?m)`)

/** Makes a text safe for a terminal: control characters are escaped, line ends and tabs stay. */
function forTerminal(text: string, { isStyled = false }: WriteOptions = {}): string {
  if (!isStyled) return escapeLines(text)
  return text
    .split(style)
    .map((part, i) => (i % 2 === 1 ? part : escapeLines(part)))
    .join('')
}

/** The reader of the output is gone (`| head`): the command ends without an error. */
export const outputClosedError = new Error('the reader of the output is gone')

/** @param name The output, as the subject of an error. */
export function createOutput(stream: Writable & { readonly isTTY?: boolean }, name = 'The output'): Output {
  let failure: Error | undefined
  const reasonOf = (error: NodeJS.ErrnoException) => {
    const isGone = error.code === 'EPIPE' || error.code === 'ERR_STREAM_DESTROYED' || error.code === 'ECONNRESET'
    return isGone ? outputClosedError : ioError('written', name, error)
  }
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
        const bytes = isTerminal ? forTerminal(textOf(data), options) : data
        stream.write(bytes, (error) => (error ? reject(reasonOf(error)) : resolve()))
      }),
  }
}

/** Writes a JSON array while its items arrive, one a line, so that a long array is never held in memory. */
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

/** Writes one value as JSON, for programs and people. */
export async function writeJson(output: Output, value: unknown): Promise<void> {
  await output.write(`${JSON.stringify(value, undefined, 2)}\n`)
}

const units = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const

/** Formats a number of bytes for people: `0 B`, `1023 B`, `1.5 KiB`, `12 MiB`. */
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

/** Formats a time, in milliseconds since 1970, in ISO 8601 (UTC), to the second. */
export function formatUtcTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString().replace(/\.\d+Z$/, 'Z')
}

/** Converts a resource for `--json`: the time becomes ISO 8601, everything else stays as in the view. */
export function resourceToJson({ modified, ...facts }: Resource): Readonly<Record<string, unknown>> {
  return modified === undefined ? facts : { ...facts, modified: new Date(modified).toISOString() }
}

/** Formats a number and a word with a regular plural: `1 mount`, `2 mounts`. */
export function pluralize(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? '' : 's'}`
}

/** Formats a number with separators and a word, whose plural may be irregular: `1 entry`, `1,203 entries`. */
export function formatCount(number: number, one: string, many: string = `${one}s`): string {
  return `${number.toLocaleString('en')} ${number === 1 ? one : many}`
}

/** Opens a file as an output, and truncates it. @throws CommandError when the file cannot be opened. */
export function openFileOutput(file: string): Output {
  let descriptor: number
  try {
    descriptor = openSync(file, 'w')
  } catch (error) {
    throw ioError('written', `The file ${file}`, error)
  }
  return createOutput(createWriteStream(file, { fd: descriptor }), `The file ${file}`)
}

/** Returns the error for a file or an output that cannot be read or written. It omits the path that Node adds to its messages. */
export function ioError(what: 'read' | 'written', name: string, error: unknown): Error {
  const reason = error instanceof Error ? error.message.replace(/, \w+(?: '.*')?$/s, '') : String(error)
  return commandFailure(`${name} cannot be ${what}: ${reason}`)
}
