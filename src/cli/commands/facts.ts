import { type Command, Option } from 'commander'
import type { Encoding } from '../../context/tokens.ts'
import { isResourceError } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import { directoryMimeType, type Resource, type View } from '../../core/view.ts'
import {
  addSourceOptions,
  lastUriSegment,
  nothingAtError,
  parseCount,
  type SourceOptions,
  withSource,
} from '../operations/source.ts'
import { resourceOfMount, type StatResult, statUri } from '../operations/stat-find.ts'
import { createTreeJson, createTreePrinter, formatTokens } from '../operations/tree-print.ts'
import { listTreeRoots, type TokenCount, type TreeTotals, type TreeVisitor, walkTree } from '../operations/tree-walk.ts'
import { commandFailure, helpExamples, usageError } from '../terminal/exit.ts'
import { formatCount, formatSize, formatUtcTime, type Io, resourceToJson, writeJson } from '../terminal/io.ts'
import { createProgress } from '../terminal/progress.ts'
import { coloursFor, displayUri, escapeText } from '../terminal/text.ts'

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

export function defineTree(command: Command, io: Io): void {
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
    .option('-t, --tokens', 'show numbers of tokens, for which resources are read; ~ marks an estimate')
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
      ...helpExamples(`
  hikidashi tree --depth 2                              the beginning of every mount
  hikidashi tree src --tokens                           the tokens of each file
  hikidashi tree --tokens --depth 1                     the folders with the most tokens
  hikidashi tree --most 20 --url http://127.0.0.1:8787/mcp`),
    )
    .action((uri: string | undefined, options: TreeOptions) => tree(uri, options, io))
}

async function tree(argument: string | undefined, options: TreeOptions, io: Io): Promise<void> {
  await withSource(options, io, async ({ view, mounts, uriOf }) => {
    const tokens = options.tokens === true || options.estimate === true
    const isWhole = tokens || options.size === true
    const { size = false, long = false, full = false, ascii = false } = options
    const { depth = Number.POSITIVE_INFINITY, most = Number.POSITIVE_INFINITY } = options
    const display = { tokens, size, long, full, ascii, isWhole }
    const printer = options.json ? createTreeJson(io.out, display) : createTreePrinter(io.out, display)
    const faults: string[] = []
    const visitor: TreeVisitor = {
      ...printer,
      fault: (message, position) => {
        faults.push(message)
        return printer.fault(message, position)
      },
    }
    const roots = argument === undefined ? await listTreeRoots({ view, mounts }) : [await rootAt(view, uriOf(argument))]
    const progress = createProgress(io, { done: 0, besideOutput: isWhole && !options.json })
    const totals: TreeTotals[] = []
    try {
      const measure = tokens ? await measureFor(view, options) : undefined
      for (const root of roots)
        totals.push(
          await walkTree(view, root, visitor, {
            ...{ depth, most, isWhole, isNamed: argument !== undefined, onSeen: () => progress.add(1) },
            ...defined({ measure }),
          }),
        )
    } finally {
      progress.end()
    }
    await printer.end()
    if (!options.json) await io.out.write(`\n${formatTotals(totals, display)}\n`)
    if (faults.length > 0) throw commandFailure(`The tree is not complete. ${faults[0]}`)
  })
}

async function measureFor(
  view: View,
  { estimate, encoding }: TreeOptions,
): Promise<(resource: Resource) => Promise<TokenCount>> {
  const { estimateTokens, createTokenCounter } = await import('../operations/tree-tokens.ts')
  return estimate === true ? async (resource) => estimateTokens(resource) : createTokenCounter(view, encoding)
}

async function rootAt(view: View, uri: string): Promise<Resource> {
  const bare = (text: string) => text.replace(/\/$/, '')
  const mount = (await view.mounts()).find((one) => bare(one.uri) === bare(uri))
  if (mount !== undefined) {
    const root = await resourceOfMount(view, mount)
    return root.mimeType === directoryMimeType ? { ...root, uri } : root
  }
  try {
    await view.directory({ uri })
    return { uri, name: lastUriSegment(uri), mimeType: directoryMimeType }
  } catch (error) {
    if (isResourceError(error, 'not-found')) throw await nothingAtError(uri, view)
    if (!isResourceError(error, 'invalid') || error.detail.reason !== 'not-a-directory') throw error
    throw usageError(`${uri} is not a directory. To see its metadata: hikidashi stat ${uri}`)
  }
}

function formatTotals(
  roots: readonly TreeTotals[],
  { isWhole, tokens }: { readonly isWhole: boolean; readonly tokens: boolean },
): string {
  const sum = (of: (totals: TreeTotals) => number) => roots.reduce((all, totals) => all + of(totals), 0)
  const directories = sum((totals) => totals.directories)
  const resources = sum((totals) => totals.resources)
  const counts = [formatCount(directories, 'directory', 'directories'), formatCount(resources, 'resource')]
  const sums = { tokens: sum((totals) => totals.tokens), isEstimate: roots.some(({ isEstimate }) => isEstimate) }
  const size = isWhole ? [formatSize(sum(({ bytes }) => bytes))] : []
  return [...counts, ...size, ...(tokens ? [`${formatTokens(sums)} tokens`] : [])].join(', ')
}

interface StatOptions extends SourceOptions {
  readonly json?: true
}

export function defineStat(command: Command, io: Io): void {
  command
    .description(
      `Prints the metadata of a resource or a directory: name, title, size, type, times, annotations, its mount, whether it can be
watched, and the templates that match it. It looks in the listing of the directory, and reads the resource only if it is not
listed.`,
    )
    .argument('<uri>', 'a resource or a directory: its URI, or a path of this machine')
    .option('--json', 'print the metadata as JSON')
  addSourceOptions(command)
    .addHelpText(
      ...helpExamples(`
  hikidashi stat README.md                              a file here
  hikidashi stat file:///docs/                          a directory
  hikidashi stat file:///docs/manual.md --json --url http://127.0.0.1:8787/mcp`),
    )
    .action((uri: string, options: StatOptions) => stat(uri, options, io))
}

async function stat(argument: string, options: StatOptions, io: Io): Promise<void> {
  await withSource(options, io, async ({ view, uriOf }) => {
    const uri = uriOf(argument)
    const progress = createProgress(io, { what: 'Looking for the resource in its directory', besideOutput: true })
    const facts = await statUri(view, uri).finally(progress.end)
    if (facts === undefined) throw await nothingAtError(uri, view)
    await (options.json ? writeJson(io.out, toJson(facts)) : io.out.write(format(facts, io), { isStyled: true }))
  })
}

function toJson({ resource, mount, children, ...facts }: StatResult) {
  return {
    ...resourceToJson(resource),
    ...(mount === undefined ? {} : { mount: mount.uri }),
    ...defined({ children }),
    ...facts,
  }
}

function format({ resource, mount, children, listed, watchable, templates }: StatResult, { out }: Io): string {
  const { uri, name, title, description, mimeType, size, modified, version, priority, audience, icons, meta } = resource
  const isDirectory = children !== undefined
  const shownUri = (text: string) => displayUri(text, out.isTerminal)
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['uri', shownUri(uri)],
    ['name', escapeText(name)],
    ['title', escapeOptionalText(title)],
    ['description', escapeOptionalText(description)],
    ['type', escapeOptionalText(mimeType)],
    ['children', children === undefined ? undefined : formatChildren(children)],
    ['size', size === undefined ? undefined : formatBytes(size)],
    [
      'modified',
      modified === undefined ? undefined : `${formatUtcTime(modified)}  (${formatAge(Date.now() - modified)})`,
    ],
    ['version', escapeOptionalText(version)],
    ['priority', priority === undefined ? undefined : formatPriority(priority)],
    ['audience', audience === undefined ? undefined : audience.join(', ')],
    ['icons', icons === undefined ? undefined : escapeText(icons.map(({ src }) => src).join(', '))],
    [
      'mount',
      mount === undefined
        ? undefined
        : [shownUri(mount.uri), escapeOptionalText(mount.title)].filter(Boolean).join('  '),
    ],
    ['listed', isDirectory ? undefined : listed ? 'yes' : 'no: it is read by its URI, or by a template'],
    ['watchable', watchable ? 'yes: hikidashi watch reports its changes' : 'no: nothing reports its changes'],
    ...templates.map(({ uriTemplate, name: called, values }, i): readonly [string, string] => [
      i === 0 ? 'templates' : '',
      escapeText(`${uriTemplate}  (${called})${formatValues(values)}`),
    ]),
    ...Object.entries(meta ?? {}).map(([key, value], i): readonly [string, string] => [
      i === 0 ? '_meta' : '',
      escapeText(`${key}: ${JSON.stringify(value)}`),
    ]),
  ]
  const { bold } = coloursFor(out.isTerminal)
  return rows.flatMap(([key, value]) => (value === undefined ? [] : [`${bold(key.padEnd(11))}  ${value}\n`])).join('')
}

function escapeOptionalText(text: string | undefined): string | undefined {
  return text === undefined ? undefined : escapeText(text)
}

function formatChildren({ directories, resources, complete }: NonNullable<StatResult['children']>): string {
  const most = complete ? '' : ', and more'
  return `${formatCount(resources, 'resource')} and ${formatCount(directories, 'directory', 'directories')}${most}`
}

function formatBytes(size: number): string {
  const bytes = `${size.toLocaleString('en')} bytes`
  return size < 1024 ? bytes : `${formatSize(size)}  (${bytes})`
}

function formatPriority(priority: number): string {
  const word = priority === 1 ? '  (required)' : priority === 0 ? '  (entirely optional)' : ''
  return `${priority}${word}`
}

function formatValues(values: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(values).map(([name, value]) => `${name}=${value}`)
  return pairs.length === 0 ? '' : `: ${pairs.join(', ')}`
}

const spans = [
  [86_400_000 * 365, 'year'],
  [86_400_000, 'day'],
  [3_600_000, 'hour'],
  [60_000, 'minute'],
] as const

export function formatAge(milliseconds: number): string {
  if (milliseconds < -60_000) return 'in the future, by the clock here'
  for (const [span, word] of spans) {
    const number = Math.floor(milliseconds / span)
    if (number > 0) return `${number} ${word}${number === 1 ? '' : 's'} ago`
  }
  return 'just now'
}
