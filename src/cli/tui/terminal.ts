import type { ReadStream, WriteStream } from 'node:tty'
import { createInputDecoder, type Input } from './input.ts'
import type { Size } from './state.ts'

/** The terminal, while the screen is ours. */
export interface Terminal {
  readonly size: Size
  /** Resolves once the terminal has taken it. */
  write(text: string): Promise<void>
  /** Takes the screen: what was on it comes back with {@link leave}. */
  enter(): void
  /** Gives the screen back as it was. It may be called at any time, and more than once. */
  leave(): void
}

export interface TerminalEvents {
  input(inputs: readonly Input[]): void
  resize(size: Size): void
  /** Nobody is there any more. */
  gone(): void
}

// Another screen, no line breaks by itself, pastes told apart from keys, no cursor.
const taken = '\u001b[?1049h\u001b[?7l\u001b[?2004h\u001b[?25l'
const given = '\u001b[?2026l\u001b[0m\u001b[?25h\u001b[?2004l\u001b[?7h\u001b[?1049l'
/** How long it is waited whether an escape begins a key, in milliseconds. */
const patience = 50
/** Maximum number of characters that are kept of other output meanwhile. */
const maxKept = 100_000

/**
 * @param output Stream of the screen: stdout, or stderr if stdout is a pipe.
 */
export function openTerminal(input: ReadStream, output: WriteStream, events: TerminalEvents): Terminal {
  const decoder = createInputDecoder()
  const write = output.write.bind(output) as (text: string, done?: () => void) => boolean
  let kept = ''
  let isTaken = false
  let timer: NodeJS.Timeout | undefined
  let giveBack = (): void => {}

  const take = (bytes: Buffer): void => {
    clearTimeout(timer)
    const inputs = decoder.take(bytes)
    if (inputs.length > 0) events.input(inputs)
    if (decoder.isOpen) timer = setTimeout(() => events.input(decoder.settle()), patience)
  }
  const resized = (): void => events.resize(sizeOf(output))

  /** Output of libraries would disturb the screen, so it is printed afterwards. */
  const keep = (): (() => void) => {
    const streams = [process.stdout, process.stderr]
    const before = streams.map((stream) => stream.write)
    for (const stream of streams) {
      stream.write = ((chunk: string | Uint8Array, encoding?: unknown, done?: unknown) => {
        if (kept.length < maxKept) kept += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8')
        const callback = typeof encoding === 'function' ? encoding : done
        if (typeof callback === 'function') process.nextTick(callback as () => void)
        return true
      }) as typeof stream.write
    }
    return () => {
      for (const [index, stream] of streams.entries()) stream.write = before[index] ?? stream.write
      if (kept !== '') process.stderr.write(kept)
      kept = ''
    }
  }

  return {
    get size() {
      return sizeOf(output)
    },
    write: (text) => new Promise((resolve) => write(text, () => resolve())),
    enter: () => {
      if (isTaken) return
      isTaken = true
      output.on('error', events.gone)
      // A process that was stopped may have been given another mode by the shell: it is set anew.
      input.setRawMode(false).setRawMode(true).resume()
      input.on('data', take).on('end', events.gone).on('error', events.gone)
      output.on('resize', resized)
      // A stopped process gets no SIGWINCH, so the size is read again.
      process.emit('SIGWINCH', 'SIGWINCH')
      write(taken)
      giveBack = keep()
    },
    leave: () => {
      if (!isTaken) return
      isTaken = false
      clearTimeout(timer)
      input.off('data', take).off('end', events.gone).off('error', events.gone)
      output.off('resize', resized)
      try {
        input.setRawMode(false).pause()
        write(given)
      } catch {
        // The terminal is gone: there is nothing to give back.
      }
      giveBack()
    },
  }
}

function sizeOf({ columns = 80, rows = 24 }: WriteStream): Size {
  return { columns, rows }
}
