import { type Command, Option } from 'commander'
import type { Encoding } from '../../context/tokens.ts'
import { isResourceError } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import { directoryMimeType, type Resource, type View } from '../../core/view.ts'
import { nameOf } from '../operations/nearest-uri.ts'
import { addSourceOptions, nothingAt, parseCount, type SourceOptions, withSource } from '../operations/source.ts'
import { asResource } from '../operations/stat-find.ts'
import { createTreeJson, createTreePrinter, formatTokens } from '../operations/tree-print.ts'
import { type Measured, rootsOf, type Totals, type TreeVisitor, walk } from '../operations/tree-walk.ts'
import { exitCodeHelp, failed, misused } from '../terminal/exit.ts'
import { counted, formatSize, type Io } from '../terminal/io.ts'
import { createProgress } from '../terminal/progress.ts'

interface TreeOptions extends SourceOptions {
  readonly depth?: number
  readonly most?: number
  readonly long?: true
  readonly size?: true
  readonly tokens?: true
  readonly estimate?: true
  readonly encoding: Encoding
  readonly full?: true
  readonly ascii?: true
  readonly json?: true
}

export function define(command: Command, io: Io): void {
  command
    .description(
      `Shows the resources below a directory, or of every mount, as a tree, while it lists them. With --size or --tokens directories
have the totals of everything in them, shown or not, and the tree is printed when these are known.`,
    )
    .argument('[uri]', 'a directory: its URI, or a path of this machine')
    .option('-d, --depth <levels>', 'show at most this many levels', parseCount)
    .option(
      '-m, --most <nodes>',
      'show at most this many children of each directory, and the number of the others',
      parseCount,
    )
    .option('-l, --long', 'show size, time of change, type and title')
    .option('-s, --size', 'show sizes, also of directories')
    .option('-t, --tokens', 'show the number of tokens of each; reads everything; ~ is an estimate')
    .option('--estimate', 'as --tokens, but estimated from sizes, without reading')
    .addOption(
      new Option('--encoding <name>', 'the encoding of tokens')
        .choices(['o200k_base', 'cl100k_base'])
        .default('o200k_base'),
    )
    .option('-f, --full', 'show whole URIs instead of names')
    .option('--ascii', 'draw the lines with ASCII')
    .option('--json', 'print a JSON array of trees, exact and complete')
  addSourceOptions(command)
    .addHelpText(
      'after',
      `
Examples:
  hikidashi tree --depth 2                              the beginning of every mount
  hikidashi tree src --tokens                           the tokens of each file
  hikidashi tree --tokens --depth 1                     the folders with the most tokens
  hikidashi tree --most 20 --url http://127.0.0.1:8787/mcp
${exitCodeHelp}`,
    )
    .action((uri: string | undefined, options: TreeOptions) => tree(uri, options, io))
}

async function tree(argument: string | undefined, options: TreeOptions, io: Io): Promise<void> {
  await withSource(options, io, async ({ view, mounts, uriOf }) => {
    const tokens = options.tokens === true || options.estimate === true
    const isWhole = tokens || options.size === true
    const { size = false, long = false, full = false, ascii = false } = options
    const { depth = Number.POSITIVE_INFINITY, most = Number.POSITIVE_INFINITY } = options
    const shown = { tokens, size, long, full, ascii, isWhole }
    const printer = options.json ? createTreeJson(io.out, shown) : createTreePrinter(io.out, shown)
    const faults: string[] = []
    const visitor: TreeVisitor = {
      ...printer,
      fault: (message, place) => {
        faults.push(message)
        return printer.fault(message, place)
      },
    }
    const roots = argument === undefined ? await rootsOf({ view, mounts }) : [await rootAt(view, uriOf(argument))]
    const progress = createProgress(io, { done: 0, besideOutput: isWhole && !options.json })
    const totals: Totals[] = []
    try {
      const measure = tokens ? await measureFor(view, options) : undefined
      for (const root of roots)
        totals.push(
          await walk(view, root, visitor, {
            ...{ depth, most, isWhole, isNamed: argument !== undefined, onSeen: () => progress.add(1) },
            ...defined({ measure }),
          }),
        )
    } finally {
      progress.end()
    }
    await printer.end()
    if (!options.json) await io.out.write(`\n${formatTotals(totals, shown)}\n`)
    if (faults.length > 0) throw failed(`The tree is not complete. ${faults[0]}`)
  })
}

async function measureFor(
  view: View,
  { estimate, encoding }: TreeOptions,
): Promise<(resource: Resource) => Promise<Measured>> {
  const { estimateTokens, tokenCounter } = await import('../operations/tree-tokens.ts')
  return estimate === true ? async (resource) => estimateTokens(resource) : tokenCounter(view, encoding)
}

/** A directory as a root: the tree shows its URI and, for a mount, the metadata of the mount. */
async function rootAt(view: View, uri: string): Promise<Resource> {
  const bare = (text: string) => text.replace(/\/$/, '')
  const mount = (await view.mounts()).find((one) => bare(one.uri) === bare(uri))
  if (mount !== undefined) {
    const root = await asResource(view, mount)
    return root.mimeType === directoryMimeType ? { ...root, uri } : root
  }
  try {
    await view.directory({ uri })
    return { uri, name: nameOf(uri), mimeType: directoryMimeType }
  } catch (error) {
    if (isResourceError(error, 'not-found')) throw await nothingAt(uri, view)
    if (!isResourceError(error, 'invalid') || error.detail.reason !== 'not-a-directory') throw error
    throw misused(`${uri} is not a directory. To tell what is known of it: hikidashi stat ${uri}`)
  }
}

function formatTotals(
  roots: readonly Totals[],
  { isWhole, tokens }: { readonly isWhole: boolean; readonly tokens: boolean },
): string {
  const sum = (of: (totals: Totals) => number) => roots.reduce((all, totals) => all + of(totals), 0)
  const directories = sum((totals) => totals.directories)
  const resources = sum((totals) => totals.resources)
  const counts = [counted(directories, 'directory', 'directories'), counted(resources, 'resource')]
  const known = { tokens: sum((totals) => totals.tokens), isEstimate: roots.some(({ isEstimate }) => isEstimate) }
  const size = isWhole ? [formatSize(sum(({ bytes }) => bytes))] : []
  return [...counts, ...size, ...(tokens ? [`${formatTokens(known)} tokens`] : [])].join(', ')
}
