import { writeFile } from 'node:fs/promises'
import { constants } from 'node:os'
import type { ReadStream, WriteStream } from 'node:tty'
import { isResourceError } from '../../core/errors.ts'
import { withResolvers } from '../../core/kit/abort.ts'
import type { CommandSource } from '../operations/source.ts'
import { CommandError, exitCodes, explain } from '../terminal/exit.ts'
import { type Io, standardError } from '../terminal/io.ts'
import { escapeLines } from '../terminal/text.ts'
import { createInputDecoder, type Input } from './input.ts'
import { createLoader } from './loading.ts'
import { createRunner, type Runner } from './runner.ts'
import { createPainter, type Screen } from './screen.ts'
import { type Basket, begin, type Effect, type Size } from './state.ts'
import { createLive } from './wants.ts'

interface SessionOptions {
  readonly title: string
  readonly budget: number
  readonly format: Basket['format']
  /** The first resource to show: a URI, or a path of this machine. `at`: the address of the search to use. */
  readonly uri?: string
  readonly at?: string
  readonly input: ReadStream
  readonly output: WriteStream
  readonly colour: boolean
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
/** Maximum length of the base64 that terminals accept in OSC 52 (copy), in characters. */
const maxCopied = 74_994

/** Shows a source until the user leaves it. Then prints the context of the basket, if the user chose that. */
export async function showSource(source: CommandSource, options: SessionOptions, io: Io): Promise<void> {
  const { view, catalog, uriOf } = source
  const { input, output, colour, uri, at, ...rest } = options
  // Denied and missing look the same, so the reason of a provider is not shown.
  const reasonOf = (error: unknown): string =>
    isResourceError(error, 'not-found')
      ? 'There is nothing here, or you may not see it.'
      : io.secrets.scrub(explain(error).message)
  const loader = createLoader(view, reasonOf, catalog, at)
  let runner: Runner | undefined
  const { promise: ended, resolve: end } = withResolvers<SessionResult>()
  const terminal = openTerminal(input, output, {
    input: (inputs) => {
      for (const each of inputs) runner?.dispatch(each)
    },
    resize: (size) => {
      painter.forget()
      runner?.dispatch({ kind: 'resize', size })
    },
    gone: () => end({ error: new CommandError(exitCodes.failed, 'The terminal is gone.') }),
  })
  const painter = createPainter((text) => void terminal.write(text), colour)
  const redraw = (): void => {
    painter.forget()
    runner?.dispatch({ kind: 'resize', size: terminal.size })
  }
  const resume = (): void => {
    terminal.leave()
    terminal.enter()
    redraw()
  }
  const suspend = (): void => {
    terminal.leave()
    // The whole process group is suspended, so that the shell notices. Execution continues after this line when the group is in
    // the foreground again.
    process.kill(0, 'SIGTSTP')
    setTimeout(resume, 20)
  }

  const act = (effect: Effect): void => {
    const tell = (text: string, isError = false): void =>
      runner?.dispatch({ kind: 'notice', text, ...(isError ? { isError: true as const } : {}) })
    const fail = (error: unknown): void => tell(reasonOf(error), true)
    const basket = runner?.state.basket
    if (effect.kind === 'suspend') {
      // Windows has no job control.
      if (process.platform !== 'win32') suspend()
    } else if (effect.kind === 'redraw') redraw()
    else if (effect.kind === 'gather') loader.gather(effect.uri).then((event) => runner?.dispatch(event), fail)
    else if (effect.kind === 'goto') {
      try {
        runner?.dispatch({ kind: 'meant', uri: uriOf(effect.text) })
      } catch (error) {
        fail(error)
      }
    } else if (effect.kind === 'copy') {
      const data = Buffer.from(effect.text).toString('base64')
      const fits = data.length <= maxCopied
      if (fits) void terminal.write(`\u001b]52;c;${data}\u0007`)
      tell(fits ? `Copied, if the terminal allows it: ${effect.text}` : 'The URI is too long to be copied.', !fits)
    } else if (basket !== undefined && effect.kind === 'export')
      exportTo(effect.file, () => loader.context(basket)).then(tell, fail)
    else if (effect.kind === 'quit' && !effect.print) end({})
    else if (basket !== undefined) loader.context(basket).then(({ text }) => end({ text }), fail)
  }

  const onSignal = (name: (typeof signals)[number]): void =>
    end({ error: new CommandError(128 + constants.signals[name], `Ended by ${name}.`) })
  const onFault = (error: unknown): void => {
    terminal.leave()
    io.say(`hikidashi: ${explain(error).message}`)
    process.exit(exitCodes.failed)
  }
  for (const name of signals) process.on(name, onSignal)
  process.on('SIGCONT', resume)
  process.on('exit', terminal.leave)
  process.on('uncaughtException', onFault)
  process.on('unhandledRejection', onFault)
  // `uri` may be a path of this machine, so convert it to a URI.
  const goal = uri === undefined ? {} : { goal: uriOf(uri) }
  terminal.enter()
  try {
    const initial = begin({ ...rest, ...goal, size: terminal.size, isPiped: !io.out.isTerminal })
    const live = createLive(view, (uris) => runner?.dispatch({ kind: 'changed', uris }))
    const draw = ({ rows, cursor }: Screen): Promise<void> => {
      painter.draw(rows, cursor)
      return terminal.write('')
    }
    runner = createRunner(initial, { loader, live, draw, act })
    loader.indexed.then(() => runner?.dispatch({ kind: 'indexed' }))
    source.over.then((error) =>
      runner?.dispatch({ kind: 'notice', text: `The connection has ended: ${reasonOf(error)}`, isError: true }),
    )
    const { text, error } = await ended
    if (error !== undefined) throw error
    terminal.leave()
    if (text !== undefined) await io.out.write(io.out.isTerminal ? escapeLines(text) : text)
  } finally {
    runner?.close()
    terminal.leave()
    for (const name of signals) process.off(name, onSignal)
    process.off('SIGCONT', resume)
    process.off('exit', terminal.leave)
    process.off('uncaughtException', onFault)
    process.off('unhandledRejection', onFault)
  }
}

interface SessionResult {
  /** Text to print at the end. */
  readonly text?: string
  readonly error?: CommandError
}

/** Writes the context to a new file; an existing file is not overwritten. Returns the message to show. */
async function exportTo(
  file: string,
  context: () => Promise<{ readonly text: string; readonly tokens: number }>,
): Promise<string> {
  const { text, tokens } = await context()
  try {
    await writeFile(file, text, { flag: 'wx' })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const reason = code === 'EEXIST' ? 'The file exists already: choose another name.' : message
    throw new CommandError(exitCodes.failed, `${file} was not written. ${reason}`)
  }
  return `Written: ${file}, ${tokens.toLocaleString('en')} tokens.`
}

interface TerminalEvents {
  input(inputs: readonly Input[]): void
  resize(size: Size): void
  /** Called when the terminal is gone. */
  gone(): void
}

// Alternate screen, no automatic line breaks, bracketed paste, no cursor.
const taken = '\u001b[?1049h\u001b[?7l\u001b[?2004h\u001b[?25l'
const given = '\u001b[?2026l\u001b[0m\u001b[?25h\u001b[?2004l\u001b[?7h\u001b[?1049l'
/** Time after an escape until it counts as the key Escape rather than the beginning of a sequence, in milliseconds. */
const escapeTimeoutMs = 50
/** Maximum number of characters of other output that are buffered while the screen is shown. */
const maxKept = 100_000

/**
 * Controls a terminal that shows screens. The result takes over the terminal with `enter`, and gives it back with `leave`.
 *
 * @param output Stream of the screen: stdout, or stderr if stdout is a pipe.
 */
function openTerminal(input: ReadStream, output: WriteStream, events: TerminalEvents) {
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
    if (decoder.isOpen) timer = setTimeout(() => events.input(decoder.settle()), escapeTimeoutMs)
  }
  const resized = (): void => events.resize(sizeOf(output))

  /** Buffers the output of libraries, which would disturb the screen. Returns a function that prints it and ends the buffering. */
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
      if (kept !== '') standardError().write(kept)
      kept = ''
    }
  }

  return {
    get size(): Size {
      return sizeOf(output)
    },
    /** Resolves when the terminal has taken the text. */
    write: (text: string): Promise<void> => new Promise((resolve) => write(text, () => resolve())),
    /** Takes over the screen. {@link leave} restores its earlier content. */
    enter: () => {
      if (isTaken) return
      isTaken = true
      output.on('error', events.gone)
      // The shell may have changed the mode while the process was stopped, so set it again.
      input.setRawMode(false).setRawMode(true).resume()
      input.on('data', take).on('end', events.gone).on('error', events.gone)
      output.on('resize', resized)
      // A stopped process gets no SIGWINCH, so the size is read again.
      process.emit('SIGWINCH', 'SIGWINCH')
      write(taken)
      giveBack = keep()
    },
    /** Restores the screen. It may be called at any time, and more than once. */
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
        // The terminal is gone: there is nothing to restore.
      }
      giveBack()
    },
  }
}

function sizeOf({ columns = 80, rows = 24 }: WriteStream): Size {
  return { columns, rows }
}
