import { writeFile } from 'node:fs/promises'
import { constants } from 'node:os'
import type { ReadStream, WriteStream } from 'node:tty'
import { defined } from '../../core/kit/defined.ts'
import type { Source } from '../operations/source.ts'
import { CommandError, exitCodes, explain } from '../terminal/exit.ts'
import type { Io } from '../terminal/io.ts'
import { escapeLines } from '../terminal/text.ts'
import { createLive } from './live.ts'
import { createLoader } from './loading.ts'
import { createPainter } from './paint.ts'
import { createRunner, type Runner } from './runner.ts'
import { type Basket, begin, type Effect } from './state.ts'
import { openTerminal } from './terminal.ts'

export interface SessionOptions {
  readonly title: string
  readonly budget: number
  readonly format: Basket['format']
  /** The URI to begin with, and the search to ask. */
  readonly uri?: string
  readonly at?: string
  readonly input: ReadStream
  readonly output: WriteStream
  readonly colour: boolean
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
/** Maximum length that terminals accept by OSC 52, in base64. */
const maxCopied = 74_994

/** Shows a source until its user leaves; then prints the text that was asked for. */
export async function showSource(source: Source, options: SessionOptions, io: Io): Promise<void> {
  const { view, catalog, uriOf } = source
  const { input, output, colour, uri, at, ...rest } = options
  const reasonOf = (error: unknown): string => io.secrets.scrub(explain(error).message)
  const loader = createLoader(view, {
    reasonOf,
    ...defined({ catalog, at }),
  })
  let runner: Runner | undefined
  let end = (_outcome: Outcome): void => {}
  const ended = new Promise<Outcome>((resolve) => {
    end = resolve
  })
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
    // The whole job, so that the shell sees it. It goes on behind this line once it is in the foreground again.
    process.kill(0, 'SIGTSTP')
    setTimeout(resume, 20)
  }

  const act = (effect: Effect): void => {
    const tell = (text: string, isError = false): void =>
      runner?.dispatch({ kind: 'notice', text, ...(isError ? { isError: true as const } : {}) })
    const fail = (error: unknown): void => tell(reasonOf(error), true)
    const basket = runner?.state.basket
    if (effect.kind === 'suspend') {
      // Windows has no jobs.
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
      tell(fits ? `Copied, where the terminal allows it: ${effect.text}` : 'The URI is too long to be copied.', !fits)
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
  // Of a URI that names a path of this machine, what it stands for.
  const goal = uri === undefined ? {} : { goal: uriOf(uri) }
  terminal.enter()
  try {
    const initial = begin({ ...rest, ...goal, size: terminal.size, isPiped: !io.out.isTerminal })
    const live = createLive(view, (uris) => runner?.dispatch({ kind: 'changed', uris }))
    const draw = async ({ rows, cursor }: Parameters<Parameters<typeof createRunner>[1]['draw']>[0]): Promise<void> => {
      painter.draw(rows, cursor)
      await terminal.write('')
    }
    runner = createRunner(initial, { loader, live, draw, act })
    loader.indexed.then(() => runner?.dispatch({ kind: 'indexed' }))
    source.over.then((error) =>
      runner?.dispatch({ kind: 'notice', text: `The connection is over: ${reasonOf(error)}`, isError: true }),
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

interface Outcome {
  /** Text to print. */
  readonly text?: string
  readonly error?: CommandError
}

/** Writes the context to a file that is not there yet. Answers what to tell of it. */
async function exportTo(
  file: string,
  context: () => Promise<{ readonly text: string; readonly tokens: number }>,
): Promise<string> {
  const { text, tokens } = await context()
  try {
    await writeFile(file, text, { flag: 'wx' })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const reason = code === 'EEXIST' ? 'It is there already: choose another name.' : message
    throw new CommandError(exitCodes.failed, `${file} was not written. ${reason}`)
  }
  return `Written: ${file}, ${tokens.toLocaleString('en')} tokens.`
}
