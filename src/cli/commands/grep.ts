import { type Command, Option } from 'commander'
import { type GrepAnswer, grep, type MatchingLine } from '../../text/grep.ts'
import { addSourceOptions, parseCount, type SourceOptions, withSource, withSuggestion } from '../operations/source.ts'
import { helpExamples } from '../terminal/exit.ts'
import { formatCount, type Io, writeJson } from '../terminal/io.ts'
import { createProgress } from '../terminal/progress.ts'
import { type Colours, coloursFor, displayUri, escapeText } from '../terminal/text.ts'

interface GrepCommandOptions extends SourceOptions {
  readonly literal?: true
  readonly ignoreCase?: true
  readonly context?: number
  readonly limit: number
  readonly from?: number
  readonly json?: true
}

export function define(command: Command, io: Io): void {
  command
    .description(
      'Prints the lines of one resource that match a regular expression, with their numbers, however large the resource is. The syntax is that of RE2: no look-around, no back-references.',
    )
    .argument('<uri>', 'a resource: its URI, or a path of this machine')
    .argument('<pattern>', 'a regular expression')
    .option('-F, --literal', 'find the pattern as plain text')
    .option('-i, --ignore-case', 'ignore case')
    .option('-C, --context <lines>', 'print this many lines before and after each match', parseCount)
    .addOption(new Option('--limit <matches>', 'at most this many matches').argParser(parseCount).default(1000))
    .option('--from <line>', 'begin at this line', parseCount)
    .option('--json', 'print the answer as JSON')
  addSourceOptions(command)
    .addHelpText(
      ...helpExamples(`
  hikidashi grep logs/server.log 'ERROR.*timeout'
  hikidashi grep report.pdf -i revenue -C 2            the text of a document
  hikidashi grep file:///docs/manual.md -F '(c)' --url http://127.0.0.1:8787/mcp`),
    )
    .action((uri: string, pattern: string, options: GrepCommandOptions) => runGrepCommand(uri, pattern, options, io))
}

async function runGrepCommand(argument: string, pattern: string, options: GrepCommandOptions, io: Io): Promise<void> {
  await withSource(options, io, async ({ view, uriOf }) => {
    const uri = uriOf(argument)
    const progress = createProgress(io, { what: `Searching ${displayUri(uri)}`, besideOutput: true })
    const { limit, from = 1, context = 0, literal, ignoreCase } = options
    const query = { pattern, isLiteral: literal === true, ignoresCase: ignoreCase === true, limit, from, context }
    const report = (lineCount: number) => progress.set({ done: lineCount, what: 'lines searched' })
    const searching = grep((part, reading) => view.read(part, reading), uri, { ...query, report }).finally(progress.end)
    const answer = await withSuggestion(uri, searching, view)
    const { next, ...found } = answer
    if (options.json) return writeJson(io.out, { ...found, ...(next && { next: next.from }) })
    await io.out.write(formatMatches(answer, coloursFor(io.out.isTerminal)), { isStyled: true })
    if (answer.lastLine < from) io.say(`The text has no line ${from}.`)
    else if (answer.matches.length === 0) io.say(`No line matches, from line ${from} to line ${answer.lastLine}.`)
    if (answer.cutLines > 0)
      io.say(`Of ${formatCount(answer.cutLines, 'very long line')}, only the beginning was searched.`)
    if (next !== undefined) io.say(`There are more matches: --from ${next.from}`)
  })
}

function formatMatches({ matches }: GrepAnswer, colours: Colours): string {
  return matches.map((match) => formatMatch(match, colours)).join('')
}

function formatMatch({ line, text, start, end, before = [], after = [] }: MatchingLine, { mark }: Colours): string {
  const around = (lines: readonly string[], first: number) =>
    lines.map((one, index) => `${first + index}-${escapeText(one)}\n`).join('')
  const highlight = start === end ? '' : mark(escapeText(text.slice(start, end)))
  return [
    around(before, line - before.length),
    `${line}:${escapeText(text.slice(0, start))}${highlight}${escapeText(text.slice(end))}\n`,
    around(after, line + 1),
    before.length + after.length === 0 ? '' : '--\n',
  ].join('')
}
