import type { Command } from 'commander'
import { pagesOf } from '../../core/kit/pages.ts'
import { addSourceOptions, type SourceOptions, withSource } from '../operations/source.ts'
import { exitCodeHelp } from '../terminal/exit.ts'
import { createJsonArray, type Io } from '../terminal/io.ts'
import { createColumns, escapeText } from '../terminal/text.ts'

interface TemplatesOptions extends SourceOptions {
  readonly json?: true
}

export function define(command: Command, io: Io): void {
  command
    .description('Lists the templates (RFC 6570) with which clients make URIs of resources that are not listed.')
    .option('--json', 'print a JSON array of templates')
  addSourceOptions(command)
    .addHelpText(
      'after',
      `
Examples:
  hikidashi templates
  hikidashi templates --json --url http://127.0.0.1:8787/mcp
${exitCodeHelp}`,
    )
    .action((options: TemplatesOptions) => templates(options, io))
}

async function templates(options: TemplatesOptions, io: Io): Promise<void> {
  const { out } = io
  await withSource(options, io, async ({ view }) => {
    const array = options.json ? createJsonArray(out) : undefined
    const layOut = createColumns([{ side: 'left' }, { side: 'left' }, { side: 'left' }])
    for await (const { items } of pagesOf((query) => view.templates(query))) {
      const rows = items.map(({ uriTemplate, name, title }) => [uriTemplate, name, title ?? ''].map(escapeText))
      if (array !== undefined) await array.add(items)
      else if (rows.length > 0) await out.write(layOut(rows))
    }
    await array?.end()
  })
}
