import { createOutput, type Output } from './output.ts'
import type { Secrets } from './secrets.ts'
import { escapeLines } from './text.ts'

/** What a command talks to: data goes to `out`, everything else to `say`. */
export interface Io {
  readonly out: Output
  /** Tells a person something, on standard error, without secrets. What could be dangerous to a terminal is escaped. */
  say(text: string): void
  /** Whether a person sees what is said. */
  readonly saysToTerminal: boolean
  /** What must not be told. */
  readonly secrets: Secrets
}

export function createIo(secrets: Secrets): Io {
  // Without a reader there is nobody to tell.
  process.stderr.on('error', () => {})
  return {
    out: createOutput(process.stdout),
    say: (text) => void process.stderr.write(`${escapeLines(secrets.scrub(text))}\n`),
    saysToTerminal: process.stderr.isTTY === true,
    secrets,
  }
}
