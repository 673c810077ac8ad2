import type { Command } from 'commander'
import { iteratePages } from '../../core/kit/groups.ts'
import { overviewUri } from '../../core/meta.ts'
import { directoryMimeType, type Page, type Resource, type View } from '../../core/view.ts'
import { addSourceOptions, type CommandSource, type SourceOptions, withSource } from '../operations/source.ts'
import { isMissingDirectory, listTreeRoots, readDirectoryPage, refuseDepth } from '../operations/tree-walk.ts'
import { commandFailure, helpExamples } from '../terminal/exit.ts'
import { createJsonArray, formatSize, formatUtcTime, type Io, resourceToJson } from '../terminal/io.ts'
import { createProgress } from '../terminal/progress.ts'
import { createColumns, displayUri, escapeText } from '../terminal/text.ts'

interface LsOptions extends SourceOptions {
  readonly long?: true
  readonly recursive?: true
  readonly json?: true
}

export function define(command: Command, io: Io): void {
  command
    .description(
      'Lists resources, one URI on a line: the mounts; the children of a directory; or, with --recursive, every resource below.',
    )
    .argument('[uri]', 'a directory: its URI, or a path of this machine')
    .option('-l, --long', 'show size, time of change, type and title too')
    .option('-r, --recursive', 'list every resource below, without directories')
    .option('--json', 'print a JSON array of resources, exact and complete')
  addSourceOptions(command)
    .addHelpText(
      ...helpExamples(`
  hikidashi ls                                          the mounts
  hikidashi ls src --long                               a folder here
  hikidashi ls -r --json | jq -r '.[].uri'              everything
  hikidashi ls file:///docs --url http://127.0.0.1:8787/mcp
  hikidashi ls --command "npx -y some-mcp-server"`),
    )
    .action((uri: string | undefined, options: LsOptions) => ls(uri, options, io))
}

async function ls(argument: string | undefined, options: LsOptions, io: Io): Promise<void> {
  await withSource(options, io, async ({ view, mounts, uriOf }) => {
    const uri = argument === undefined ? undefined : uriOf(argument)
    const print = options.json ? createJsonPrinter(io) : options.long ? createLongPrinter(io) : createPrinter(io)
    const progress = createProgress(io)
    const silent = new Set<string>()
    try {
      for await (const page of listed({ view, mounts }, uri, options.recursive === true)) {
        for (const address of page.unavailable ?? []) silent.add(address)
        await print.add(page.items)
        progress.add(page.items.length)
      }
      await print.end()
    } finally {
      progress.end()
    }
    if (silent.size > 0) throw commandFailure(`The list is not complete. No answer from: ${[...silent].join(', ')}`)
  })
}

type ListedPage = Pick<Page<Resource>, 'items' | 'unavailable'>

async function* listed(
  source: Pick<CommandSource, 'view' | 'mounts'>,
  uri: string | undefined,
  recursive: boolean,
): AsyncGenerator<ListedPage> {
  const { view } = source
  if (uri === undefined) {
    if (recursive) yield* iteratePages((query) => view.list(query))
    else yield { items: await listTreeRoots(source) }
    return
  }
  const mount = (await listTreeRoots(source)).find((one) => bare(one.uri) === bare(uri))
  if (mount !== undefined && mount.mimeType !== directoryMimeType) {
    yield { items: [mount] }
    return
  }
  // The flat list has larger pages than the directories; with a single mount it has the same entries.
  if (recursive && isOnlyMount(await view.mounts(), uri))
    yield* withoutOverview(iteratePages((query) => view.list(query)))
  else if (recursive) yield* below(view, uri, 0)
  else yield* iteratePages((query) => readDirectoryPage(view, uri, query))
}

async function* withoutOverview(pages: AsyncIterable<ListedPage>): AsyncGenerator<ListedPage> {
  for await (const page of pages) yield { ...page, items: page.items.filter((item) => item.uri !== overviewUri) }
}

function bare(uri: string): string {
  return uri.replace(/\/$/, '')
}

function isOnlyMount(mounts: readonly Resource[], uri: string): boolean {
  const [mount] = mounts
  return mount !== undefined && mounts.length === 1 && bare(mount.uri) === bare(uri)
}

/** Depth first, which is the order of the list. */
async function* below(view: View, uri: string, depth: number): AsyncGenerator<ListedPage> {
  refuseDepth(depth)
  const pages = iteratePages((query) => readDirectoryPage(view, uri, query))
  for (;;) {
    const next = await pages.next().catch((error: unknown) => {
      // The directory may have been removed while its parent was listed.
      if (depth > 0 && isMissingDirectory(error)) return { done: true } as const
      throw error
    })
    if (next.done) return
    let resources: Resource[] = []
    for (const item of next.value.items) {
      if (item.mimeType !== directoryMimeType) {
        resources.push(item)
        continue
      }
      if (resources.length > 0) yield { items: resources }
      resources = []
      yield* below(view, item.uri, depth + 1)
    }
    yield { ...next.value, items: resources }
  }
}

interface Printer {
  add(resources: readonly Resource[]): Promise<void>
  end(): Promise<void>
}

function createJsonPrinter({ out }: Io): Printer {
  const array = createJsonArray(out)
  return { add: (resources) => array.add(resources.map(resourceToJson)), end: array.end }
}

function createPrinter({ out }: Io): Printer {
  return {
    add: async (resources) => {
      if (resources.length > 0)
        await out.write(resources.map(({ uri }) => `${displayUri(uri, out.isTerminal)}\n`).join(''))
    },
    end: async () => {},
  }
}

function createLongPrinter({ out }: Io): Printer {
  const layOut = createColumns([0])
  const row = ({ uri, size, modified, mimeType, title }: Resource) => [
    size === undefined ? '-' : formatSize(size),
    modified === undefined ? '-' : formatUtcTime(modified),
    escapeText(mimeType ?? '-'),
    displayUri(uri, out.isTerminal),
    escapeText(title ?? ''),
  ]
  return {
    add: async (resources) => {
      if (resources.length > 0) await out.write(layOut(resources.map(row)))
    },
    end: async () => {},
  }
}
