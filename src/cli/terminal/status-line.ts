import { forTerminal } from './output.ts'
import { displayWidth } from './text.ts'

/** The last line of a terminal, which is written over again and again, and is gone before anything else is written. */
export interface StatusLine {
  show(text: string): void
  clear(): void
}

export interface StatusLineOptions {
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
