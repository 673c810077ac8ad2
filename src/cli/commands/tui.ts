import { ReadStream, WriteStream } from 'node:tty'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { parseBudget } from '../../context/asked.ts'
import { defined } from '../../core/kit/object.ts'
import { addSourceOptions, openSource, type SourceOptions } from '../operations/source.ts'
import { exitCodeHelp, failed } from '../terminal/exit.ts'
import type { Io } from '../terminal/io.ts'
import { createTextLog } from '../terminal/log.ts'
import { isColourful } from '../terminal/text.ts'
import { helpLines } from '../tui/keys.ts'
import { showSource } from '../tui/session.ts'
import type { Basket } from '../tui/state.ts'

/** Maximum budget of the basket, in tokens. */
const maxTokens = 100_000_000

interface TuiOptions extends SourceOptions {
  readonly budget: number
  readonly format: Basket['format']
  readonly at?: string
}

export function define(command: Command, io: Io): void {
  command
    .description(
      `Shows resources in the terminal: a tree of the mounts, a filter, search, previews, and a basket that counts tokens, to make a
context for a model. If stdout is a pipe or a file, the basket is printed there at the end.`,
    )
    .argument('[uri]', 'the first resource to show: a URI, or a path of this machine')
    .option('--budget <tokens>', 'the token budget of the basket: 32k, 200000', parseTokens, 32_000)
    .addOption(
      new Option('--format <format>', 'the format of the basket')
        .choices(['markdown', 'xml', 'json'])
        .default('markdown'),
    )
    .option('--at <address>', 'the search to use, if several are mounted')
  addSourceOptions(command)
    .addHelpText(
      'after',
      `
Keys:
${helpLines()
  .map((line) => `  ${line}`)
  .join('\n')}

Examples:
  hikidashi tui                                         the configuration here, or this folder
  hikidashi tui docs/guide.md
  hikidashi tui --url http://127.0.0.1:8787/mcp
  hikidashi tui --budget 64k --format xml > context.xml
${exitCodeHelp}`,
    )
    .action((uri: string | undefined, options: TuiOptions) => tui(uri, options, io))
}

function parseTokens(value: string): number {
  const tokens = parseBudget(value) ?? 0
  if (tokens < 1 || tokens > maxTokens)
    throw new InvalidArgumentError('It is a number of tokens from 1 to 100m, such as 32k or 200000.')
  return tokens
}

async function tui(uri: string | undefined, options: TuiOptions, io: Io): Promise<void> {
  const { input, output } = terminalOf()
  const log = createTextLog(io, options.logLevel)
  const source = await openSource(options, io, log)
  try {
    const { budget, format, at } = options
    await showSource(
      source,
      {
        ...{ title: io.secrets.scrub(titleOf(options)), budget, format, input, output },
        colour: isColourful(true),
        ...defined({ uri, at }),
      },
      io,
    )
  } finally {
    await source.close()
  }
}

/** The terminal: keys come from stdin; the screen is stdout, or stderr if stdout is a pipe or a file. */
function terminalOf(): { readonly input: ReadStream; readonly output: WriteStream } {
  const elsewhere = 'In a pipe or a script, these do the same: hikidashi ls, read, search.'
  const { stdin, stdout, stderr, env, platform } = process
  if (!(stdin instanceof ReadStream)) throw failed(`This needs a terminal, but stdin is not one. ${elsewhere}`)
  const output = [stdout, stderr].find((stream) => stream instanceof WriteStream)
  if (output === undefined) throw failed(`This needs a terminal, but neither stdout nor stderr is one. ${elsewhere}`)
  if (platform !== 'win32' && (env.TERM === undefined || env.TERM === '' || env.TERM === 'dumb'))
    throw failed(`This terminal cannot be drawn on (TERM=${env.TERM ?? ''}). ${elsewhere}`)
  return { input: stdin, output }
}

/** Returns the name of the source, without user information of a URL, which may be a password. */
function titleOf({ url, command, config }: TuiOptions): string {
  if (url !== undefined) return url.replace(/\/\/[^/@]*@/, '//').replace(/\?.*$/, '')
  return command?.split(/\s+/)[0] ?? config ?? process.cwd()
}
