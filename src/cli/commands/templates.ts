import { type Command, InvalidArgumentError } from 'commander'
import { iteratePages } from '../../core/kit/groups.ts'
import { compileTemplate } from '../../core/template.ts'
import { addSourceOptions, type SourceOptions, withSource } from '../operations/source.ts'
import { helpExamples, usageError } from '../terminal/exit.ts'
import { createJsonArray, type Io, writeJson } from '../terminal/io.ts'
import { createColumns, escapeText } from '../terminal/text.ts'

interface TemplatesOptions extends SourceOptions {
  readonly json?: true
}

export function defineTemplates(command: Command, io: Io): void {
  command
    .description('Lists the templates (RFC 6570) from which clients make URIs, also of resources that are not listed.')
    .option('--json', 'print a JSON array of templates')
  addSourceOptions(command)
    .addHelpText(
      ...helpExamples(`
  hikidashi templates
  hikidashi templates --json --url http://127.0.0.1:8787/mcp`),
    )
    .action((options: TemplatesOptions) => templates(options, io))
}

async function templates(options: TemplatesOptions, io: Io): Promise<void> {
  const { out } = io
  await withSource(options, io, async ({ view }) => {
    const array = options.json ? createJsonArray(out) : undefined
    const layOut = createColumns()
    for await (const { items } of iteratePages((query) => view.templates(query))) {
      const rows = items.map(({ uriTemplate, name, title }) => [uriTemplate, name, title ?? ''].map(escapeText))
      if (array !== undefined) await array.add(items)
      else if (rows.length > 0) await out.write(layOut(rows))
    }
    await array?.end()
  })
}

interface CompleteOptions extends SourceOptions {
  readonly json?: true
  readonly with?: ReadonlyMap<string, string>
}

export function defineComplete(command: Command, io: Io): void {
  command
    .description('Completes a variable of a template, as a host does while a person types. Prints one value on a line.')
    .argument('<template>', 'a template, as `hikidashi templates` prints it')
    .argument('<variable>', 'the name of the variable')
    .argument('[value]', 'the typed beginning of the value', '')
    .option('--with <name=value>', 'the value of another variable (repeatable)', addVariable)
    .option('--json', 'print the completion as JSON, with the counts of the server')
  addSourceOptions(command)
    .addHelpText(
      ...helpExamples(`
  hikidashi complete 'file:///docs/{+path}' path gui`),
    )
    .action((template: string, variable: string, value: string, options: CompleteOptions) =>
      complete(template, { name: variable, value }, options, io),
    )
}

function addVariable(text: string, variables: ReadonlyMap<string, string> = new Map()): ReadonlyMap<string, string> {
  const equals = text.indexOf('=')
  if (equals < 1) throw new InvalidArgumentError('Write NAME=VALUE.')
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
    const { variables } = compileTemplate(uriTemplate)
    if (completion.values.length === 0 && !variables.includes(argument.name))
      throw usageError(`The template has no variable ${argument.name}. It has: ${variables.join(', ')}.`)
    if (options.json) await writeJson(out, completion)
    else await out.write(completion.values.map((value) => `${escapeText(value)}\n`).join(''))
  })
}
