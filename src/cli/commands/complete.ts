import { type Command, InvalidArgumentError } from 'commander'
import { addSourceOptions, type SourceOptions, withSource } from '../operations/source.ts'
import { exitCodeHelp } from '../terminal/exit.ts'
import { type Io, writeJson } from '../terminal/io.ts'
import { escapeText } from '../terminal/text.ts'

interface CompleteOptions extends SourceOptions {
  readonly json?: true
  readonly with?: ReadonlyMap<string, string>
}

export function define(command: Command, io: Io): void {
  command
    .description('Completes a variable of a template, as a host does while a person types. Prints one value on a line.')
    .argument('<template>', 'a template, as `hikidashi templates` prints it')
    .argument('<variable>', 'the name of the variable')
    .argument('[value]', 'the typed beginning of the value', '')
    .option('--with <name=value>', 'the value of another variable (repeatable)', addVariable)
    .option('--json', 'print the completion as JSON, with the counts of the server')
  addSourceOptions(command)
    .addHelpText(
      'after',
      `
Examples:
  hikidashi complete 'file:///docs/{+path}' path gui
${exitCodeHelp}`,
    )
    .action((template: string, variable: string, value: string, options: CompleteOptions) =>
      complete(template, { name: variable, value }, options, io),
    )
}

function addVariable(text: string, variables: ReadonlyMap<string, string> = new Map()): ReadonlyMap<string, string> {
  const equals = text.indexOf('=')
  if (equals < 1) throw new InvalidArgumentError('It is written NAME=VALUE.')
  return new Map([...variables, [text.slice(0, equals), text.slice(equals + 1)]])
}

async function complete(
  uriTemplate: string,
  argument: { readonly name: string; readonly value: string },
  options: CompleteOptions,
  io: Io,
): Promise<void> {
  const { out } = io
  await withSource(options, io, async ({ view }) => {
    const completion = await view.complete({ uriTemplate, argument, arguments: options.with ?? new Map() })
    if (options.json) await writeJson(out, completion)
    else await out.write(completion.values.map((value) => `${escapeText(value)}\n`).join(''))
  })
}
