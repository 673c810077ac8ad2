import { cleanText } from '../core/entry.ts'
import type { MountReader } from '../core/mount-reader.ts'
import type { Principal } from '../core/provider.ts'
import type { FeedStatus, MountProgress } from '../core/tool.ts'
import { parseAddress } from '../core/uri.ts'
import type { MountedCatalog, MountOpening } from './build.ts'
import {
  createVisibilityTest,
  isSearch,
  mountNoun,
  type PlannedMount,
  reportsChanges,
  searchesOf,
  servesFiles,
} from './plan.ts'

export interface OverviewSources {
  readonly name: string
  readonly mounts: readonly PlannedMount[]
  readonly opened: () => MountedCatalog | undefined
  /** Interval in milliseconds at which the overview is compared while a client listens to it. Default 2,000. */
  readonly compareIntervalMs?: number
}

const maxRows = 200
/** How long the overview waits for the progress of the indexes. */
const statusTimeoutMs = 1000

interface OverviewRow {
  readonly mount: PlannedMount
  readonly address: string
  readonly opening: MountOpening['state']
  /** Whether the principal sees the whole mount. Otherwise a count would reveal hidden entries. */
  readonly isWhole: boolean
  readonly reader: MountReader | undefined
  readonly progress: MountProgress | undefined
}

/** Writes the overview for a principal, without opening a mount. */
export async function writeOverview(sources: OverviewSources, principal: Principal): Promise<string> {
  const { name } = sources
  const rows = await rowsFor(sources, principal)
  const count = `${rows.length.toLocaleString('en')} ${rows.length === 1 ? 'mount' : 'mounts'}`
  if (rows.length === 0)
    return `# ${plainText(name)}\n\nThis server serves data as MCP resources. Nothing is mounted.\n`
  const more = rows.length - maxRows
  return [
    `# ${plainText(name)}`,
    '',
    `This server serves ${count} as MCP resources.`,
    '',
    '| mount | address | state | how much | how fresh |',
    '| --- | --- | --- | --- | --- |',
    ...rows.slice(0, maxRows).map(writeRow),
    ...(more > 0 ? ['', `Further mounts: ${more.toLocaleString('en')}.`] : []),
    '',
    ...usageAdvice(rows),
    '',
  ].join('\n')
}

async function rowsFor({ mounts, opened }: OverviewSources, principal: Principal): Promise<readonly OverviewRow[]> {
  const catalog = opened()
  return catalog === undefined ? rowsBefore(mounts, principal) : rowsOf(catalog, principal)
}

function rowsBefore(mounts: readonly PlannedMount[], principal: Principal): readonly OverviewRow[] {
  return mounts
    .filter(({ config }) => createVisibilityTest(config)(principal))
    .map((mount) => ({
      mount,
      address: parseAddress(mount.address).text,
      opening: 'closed',
      isWhole: false,
      reader: undefined,
      progress: undefined,
    }))
}

async function rowsOf(catalog: MountedCatalog, principal: Principal): Promise<readonly OverviewRow[]> {
  const progress = await progressOf(catalog)
  return catalog.openings().flatMap(({ mount, state }) => {
    const reader = catalog.reader(mount.address)
    if (reader === undefined) return []
    const { address } = reader
    const reach = reader.reach(principal)
    if (reach === 'none' && !reader.allows(principal, '')) return []
    const isWhole = reach === 'all'
    return [{ mount, address, opening: state, isWhole, reader, progress: progress.get(address) }]
  })
}

async function progressOf(catalog: MountedCatalog): Promise<ReadonlyMap<string, MountProgress>> {
  const isOpen = new Set(catalog.openings().flatMap(({ mount, state }) => (state === 'open' ? [mount.address] : [])))
  const searches = searchesOf(catalog).filter(({ address }) => isOpen.has(address))
  const statuses = await Promise.all(searches.map(({ provider }) => withinTime(provider.feedStatus())))
  return new Map(statuses.flatMap((status) => status?.mounts ?? []).map((mount) => [mount.address, mount]))
}

async function withinTime(status: Promise<FeedStatus | undefined>): Promise<FeedStatus | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), statusTimeoutMs)
  })
  try {
    return await Promise.race([status.catch(() => undefined), late])
  } finally {
    clearTimeout(timer)
  }
}

function writeRow(row: OverviewRow): string {
  const { title, kind } = mountName(row.mount)
  const heading = title === '' ? kind : title.toLowerCase() === kind ? title : `${title} (${kind})`
  const cells = [plainText(heading), `\`${row.address}\``, stateOf(row), extentOf(row), freshnessOf(row)]
  return `| ${cells.join(' | ')} |`
}

function mountName({ config }: PlannedMount): { readonly title: string; readonly kind: string } {
  return { title: config.title === undefined ? '' : cleanText(config.title).trim(), kind: mountNoun(config) }
}

function stateOf({ opening, progress, reader }: OverviewRow): string {
  const failing = opening === 'open' ? reader?.failing() : undefined
  if (failing !== undefined) return `does not answer: ${plainText(failing)}`
  if (opening === 'failed' || progress?.state === 'unavailable') return 'does not answer'
  if (opening === 'open') return 'open'
  return opening === 'opening' ? 'being opened' : 'not opened yet'
}

function extentOf({ mount, opening, isWhole, progress }: OverviewRow): string {
  if (isSearch(mount.config) || !isWhole || opening !== 'open') return ''
  if (progress === undefined) return 'not counted'
  const { state, looked, of } = progress
  const number = (value: number) => value.toLocaleString('en')
  if (state === 'current') return `${number(looked)} ${looked === 1 ? 'document' : 'documents'}`
  return looked === 0 && of === undefined
    ? ''
    : `${number(looked)}${of === undefined ? '' : ` of ${number(of)}`} so far`
}

function freshnessOf({ mount, opening, isWhole, reader, progress }: OverviewRow): string {
  if (isSearch(mount.config)) return ''
  const indexed = progress === undefined ? [] : [indexedOf(progress, isWhole)]
  const changes =
    reader?.degraded() === undefined && reader?.failing() === undefined
      ? changesOf(mount, progress)
      : 'changes may be missed now'
  return [...indexed, ...(opening === 'open' ? [changes] : [])].filter((part) => part !== '').join('; ')
}

function indexedOf({ state, since }: MountProgress, isWhole: boolean): string {
  if (state === 'waiting' || state === 'comparing') return 'being indexed'
  if (state === 'unavailable') return 'the index may be old'
  return isWhole ? `indexed at ${new Date(since).toISOString().replace(/\.\d+Z$/, 'Z')}` : 'indexed'
}

function changesOf({ config }: PlannedMount, progress: MountProgress | undefined): string {
  if (config.poll !== undefined) return 'polled for changes'
  if (reportsChanges(config)) return 'changes are reported'
  return progress?.changes === 'compared' ? 'compared periodically' : 'read on request'
}

function usageAdvice(rows: readonly OverviewRow[]): readonly string[] {
  const search = rows.find(({ mount }) => isSearch(mount.config))
  const files = rows.find(({ mount }) => servesFiles(mount.config))
  return [
    ...(search === undefined ? [] : [`- Search: read \`${search.address}?q=WORDS\`, or call \`search_resources\`.`]),
    `- List a directory: end its URI with a slash${files === undefined ? '' : `, such as \`${files.address}/\``}.`,
    '- Read a part of a text: add `?lines=10-40` to its URI.',
    '- A mount that is not opened yet is opened when it is used.',
  ]
}

function plainText(text: string): string {
  return cleanText(text).replace(/[\\`*_[\]<>|#]/g, '\\$&')
}

const maxMounts = 1000

/**
 * Writes `/llms.txt` (llmstxt.org) for a principal, without opening a mount.
 * @param endpoint URL of the MCP endpoint.
 */
export async function writeLlms(sources: OverviewSources, principal: Principal, endpoint: string): Promise<string> {
  const rows = await rowsFor(sources, principal)
  const count = `${rows.length.toLocaleString('en')} ${rows.length === 1 ? 'mount' : 'mounts'}`
  const more = rows.length - maxMounts
  return [
    `# ${plainText(sources.name)}`,
    '',
    `> This server serves ${rows.length === 0 ? 'data' : count} as MCP resources, to read only. An MCP client reads them at ${endpoint}.`,
    '',
    ...(rows.length === 0 ? ['Nothing is mounted.'] : usageAdvice(rows)),
    ...(rows.length === 0 ? [] : ['', '## Mounts', '', ...rows.slice(0, maxMounts).map(linkTo)]),
    ...(more > 0 ? [`- Further mounts: ${more.toLocaleString('en')}.`] : []),
    '',
  ].join('\n')
}

function linkTo({ mount, address }: OverviewRow): string {
  const { title, kind } = mountName(mount)
  // In Markdown, a parenthesis ends an address that is not in angle brackets.
  const target = /[()]/.test(address) ? `<${address}>` : address
  return `- [${plainText(title === '' ? kind : title)}](${target})${title === '' ? '' : `: ${kind}`}`
}
