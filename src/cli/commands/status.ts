import type { Command } from 'commander'
import type { Withheld } from '../../config/untrusted.ts'
import type { Catalog } from '../../core/catalog.ts'
import { parseSearchStatus, type SearchStatus, type SearchStatusMount } from '../../core/found.ts'
import { defined } from '../../core/kit/object.ts'
import type { View } from '../../core/view.ts'
import { addSourceOptions, type SourceOptions, withSource } from '../operations/source.ts'
import { reasonsOf, withheldJson } from '../operations/withheld.ts'
import { exitCodeHelp, failed } from '../terminal/exit.ts'
import { count, type Io, writeJson } from '../terminal/io.ts'
import { createProgress } from '../terminal/progress.ts'
import { createColumns, escapeText } from '../terminal/text.ts'
import { placesOf, textAt } from './search.ts'

interface StatusOptions extends SourceOptions {
  readonly json?: true
}

export function define(command: Command, io: Io): void {
  command
    .description(
      `Prints the mounts, how changes of each are noticed, and how far each search has indexed it. It describes the server that runs
with this configuration, or the server at --url.`,
    )
    .option('--json', 'print JSON')
  addSourceOptions(command)
    .addHelpText(
      'after',
      `
Examples:
  hikidashi status
  hikidashi status --url http://127.0.0.1:8787/mcp --json
${exitCodeHelp}`,
    )
    .action((options: StatusOptions) => status(options, io))
}

interface MountStatus {
  readonly address: string
  readonly title?: string
  /** How changes are noticed. Left out if unknown. */
  readonly changes?: string
  readonly degraded?: string
}

interface Told {
  readonly mounts: readonly MountStatus[]
  readonly searches: readonly (SearchStatus & { readonly address: string })[]
  /** Omitted parts of a configuration that is not trusted. */
  readonly leftOut: readonly Withheld[]
}

async function status(options: StatusOptions, io: Io): Promise<void> {
  await withSource(options, io, async ({ view, catalog, withheld }) => {
    const searches: Told['searches'][number][] = []
    const progress = createProgress(io, { what: 'Asking how far it is indexed', besideOutput: true })
    for (const place of await placesOf(view)) {
      const found = parseSearchStatus(await textAt(view, place.status))
      if (found === undefined) throw failed(`${place.address} does not report its status.`)
      searches.push({ address: place.address, ...found })
    }
    const told = { mounts: await mountsOf(view, catalog, searches), searches, leftOut: withheld.map(withheldJson) }
    progress.end()
    await (options.json ? writeJson(io.out, told) : io.out.write(formatStatus(told)))
  })
}

async function mountsOf(
  view: View,
  catalog: Catalog | undefined,
  searches: Told['searches'],
): Promise<readonly MountStatus[]> {
  const known = new Map(searches.flatMap(({ mounts }) => mounts.map((mount) => [mount.address, mount])))
  return (await view.mounts()).map(({ uri, title }) => {
    const local = catalog?.reader(uri)
    const told = known.get(uri)
    const changes = told?.changes ?? (local === undefined ? undefined : local.watch === undefined ? 'none' : 'watched')
    const degraded = told?.degraded ?? local?.degraded()
    return {
      address: uri,
      ...defined({ title, changes, degraded }),
    }
  })
}

function formatStatus({ mounts, searches, leftOut }: Told): string {
  const layOut = createColumns([{ side: 'left' }, { side: 'left' }, { side: 'left' }])
  const rows = mounts.map(({ address, title = '', changes, degraded }) => [
    escapeText(address),
    escapeText(
      [changes === undefined ? '' : (changeWords[changes] ?? changes), degraded ?? ''].filter(Boolean).join(', '),
    ),
    escapeText(title),
  ])
  const missing = leftOut.map((part) => [escapeText(part.name), `left out, not trusted: ${reasonsOf(part)}`])
  return [layOut([...rows, ...missing]), ...searches.map(formatSearch)].join('\n')
}

const changeWords: Readonly<Record<string, string>> = {
  none: 'tells of no changes',
  compared: 'compared now and then',
}

function formatSearch({ address, indexing, mounts, documents, passages, embedding }: Told['searches'][number]): string {
  const layOut = createColumns([{ side: 'left' }, { side: 'left' }, { side: 'left' }])
  const number = (value: number) => value.toLocaleString('en')
  const size = documents === undefined ? '' : `: ${number(documents)} documents, ${number(passages ?? 0)} passages`
  const vectors =
    embedding === undefined || embedding.waiting === 0 ? '' : `, ${number(embedding.waiting)} without a vector`
  const stopped = indexing === 'running' ? '' : '; no server keeps it up to date just now'
  const rows = mounts.map((mount) => [`  ${escapeText(mount.address)}`, progressOf(mount), sinceOf(mount)])
  return `${escapeText(address)}${size}${vectors}${stopped}\n${layOut(rows)}`
}

function progressOf({ state, looked, of, degraded, partial, firstPages }: SearchStatusMount): string {
  const number = (value: number) => value.toLocaleString('en')
  const far = looked === undefined ? '' : ` ${number(looked)}${of === undefined ? '' : ` of ${number(of)}`}`
  const words = state === 'comparing' ? `indexing${far}` : state === 'current' ? `indexed${far}` : state
  const rows = partial === undefined ? '' : `, of ${count(partial.entries, 'table')} only ${number(partial.limit)} rows`
  const first = firstPages === undefined ? '' : `, of ${count(firstPages, 'table')} without a key only the first page`
  return escapeText(`${words}${rows}${first}${degraded === undefined ? '' : `, changes: ${degraded}`}`)
}

function sinceOf({ since }: SearchStatusMount): string {
  return since === undefined ? '' : `since ${escapeText(since.replace(/\.\d+Z$/, 'Z'))}`
}
