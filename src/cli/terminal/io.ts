import type { Secrets } from '../operations/secrets.ts'
import { coloursFor } from './colour.ts'
import { createOutput, type Output } from './output.ts'
import { standardError, statusLine, writeError } from './status-line.ts'
import { escapeLines } from './text.ts'

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
