import type { Secrets } from '../operations/secrets.ts'
import { createOutput, forTerminal, type Output } from './output.ts'
import { coloursFor, displayWidth, escapeLines } from './text.ts'

/** Input and output of a command: data goes to `out`, everything else to `say`. */
export interface Io {
  readonly out: Output
  /** Prints a message on standard error, without secrets. Control characters are escaped. */
  say(text: string): void
  /** Whether a person reads the messages. */
  readonly saysToTerminal: boolean
  /** Secrets that no output may contain. */
  readonly secrets: Secrets
}

/** Input and output of the process itself. */
export interface ProcessIo extends Io {
  /** Prints an error, as `say` does. */
  complain(text: string): void
}

export function createIo(secrets: Secrets): ProcessIo {
  const out = createOutput(process.stdout)
  const saysToTerminal = () => standardError().isTTY === true
  const clean = (text: string) => escapeLines(secrets.scrub(text))
  return {
    out: out.isTerminal ? { ...out, write: (data, options) => cleared(() => out.write(data, options)) } : out,
    say: (text) => writeError(`${clean(text)}\n`),
    complain: (text) => writeError(`${coloursFor(saysToTerminal()).red('hikidashi:')} ${clean(text)}\n`),
    get saysToTerminal() {
      return saysToTerminal()
    },
    secrets,
  }
}

/** Both outputs share a terminal, so the status line would be mixed with the data. */
function cleared<T>(write: () => T): T {
  statusLine.clear()
  return write()
}

/** The last line of a terminal, which is written over again and again, and is gone before anything else is written. */
export interface StatusLine {
  show(text: string): void
  clear(): void
}

interface StatusLineOptions {
  readonly write: (text: string) => void
  /** How many columns the terminal has. */
  readonly columns: () => number
}

export function createStatusLine({ write, columns }: StatusLineOptions): StatusLine {
  let shown = ''
  return {
    show: (text) => {
      // A line that is broken by the terminal cannot be written over.
      const line = fitting(text, columns() - 1)
      if (line === shown) return
      shown = line
      write(`\r${line}\u001b[K`)
    },
    clear: () => {
      if (shown !== '') write('\r\u001b[K')
      shown = ''
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

/** Returns standard error. Node makes the stream at its first use, which would take a start a millisecond. */
export function standardError(): typeof process.stderr {
  // Without a reader there is no one to report to.
  if (!hasListener) process.stderr.on('error', () => {})
  hasListener = true
  return process.stderr
}

/** The status line of standard error. A process has only this one, and all writers share it. */
export const statusLine = createStatusLine({
  write: (text) => void standardError().write(text),
  // Some terminals report no size.
  columns: () => process.stderr.columns || 80,
})

/** Writes whole lines to standard error. A terminal gets control characters in a visible form, and colours of ours. */
export function writeError(text: string): void {
  statusLine.clear()
  const stream = standardError()
  stream.write(stream.isTTY === true ? forTerminal(text, { isStyled: true }) : text)
}
