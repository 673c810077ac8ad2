import type { Command } from 'commander'
import type { WithheldPart } from '../../config/untrusted.ts'
import type { Catalog } from '../../core/catalog.ts'
import type { Diagnosis } from '../../core/kit/diagnosis.ts'
import { defined } from '../../core/kit/object.ts'
import { parseSearchStatus, type SearchStatus, type SearchStatusMount } from '../../core/search-answer.ts'
import type { View } from '../../core/view.ts'
import { packageVersion } from '../operations/command-line.ts'
import type { CheckReporter } from '../operations/doctor/findings.ts'
import { requireUrlForHeaders } from '../operations/headers.ts'
import { readResourceText, searchMountsOf } from '../operations/search-mounts.ts'
import { addSourceOptions, parseCount, type SourceOptions, withSource } from '../operations/source.ts'
import { formatEffects, withheldJson } from '../operations/withheld.ts'
import { commandFailure, helpExamples } from '../terminal/exit.ts'
import { formatCount, formatSize, type Io, pluralize, writeJson } from '../terminal/io.ts'
import { createTextLog } from '../terminal/log.ts'
import { createProgress } from '../terminal/progress.ts'
import { type Colours, coloursFor, createColumns, escapeText } from '../terminal/text.ts'

interface DoctorOptions extends SourceOptions {
  readonly limit: number
  readonly json?: true
}

export function defineDoctor(command: Command, io: Io): void {
  command
    .description(
      `Finds out why something does not work. It checks in order: this machine, the configuration, secrets, programs, every mount, the
store and the index, HTTP and its tokens; or for a server, whether it can be reached and conforms to the protocol. For each fault
it prints a fix. It only reads.`,
    )
    .option('--limit <entries>', 'the number of entries to look at in each mount', parseCount, 200)
    .option('--json', 'print the report as JSON')
  addSourceOptions(command)
    .addHelpText(
      ...helpExamples(`
  hikidashi doctor                                      the configuration here
  hikidashi doctor --url http://127.0.0.1:8787/mcp      a running server
  hikidashi doctor --command "npx -y some-mcp-server"   a server of another project
  hikidashi doctor --json | jq '.checks[] | select(.status != "ok")'`),
    )
    .action((options: DoctorOptions) => doctor(options, io))
}

async function doctor(options: DoctorOptions, io: Io): Promise<void> {
  requireUrlForHeaders(options)
  const checks: Diagnosis[] = []
  const progress = createProgress(io, { what: 'Checking', besideOutput: true })
  const colours = coloursFor(io.out.isTerminal)
  const lines: Promise<void>[] = []
  const findings: CheckReporter = {
    tell: (check, { status, found, fix }) => {
      const clean = (text: string) => io.secrets.scrub(text)
      const diagnosis = { check, status, found: clean(found), ...(fix === undefined ? {} : { fix: clean(fix) }) }
      checks.push(diagnosis)
      if (options.json) return
      const line = io.out.write(format(diagnosis, colours), { isStyled: true })
      // The lines are awaited after the checks. Without a handler, a rejection before that would end the process.
      line.catch(() => {})
      lines.push(line)
    },
    doing: (what) => progress.set({ what: escapeText(what) }),
  }
  const log = createTextLog(io, options.logLevel)
  try {
    const { checkMachine } = await import('../operations/doctor/needs.ts')
    await checkMachine(findings)
    const { checkLocal, checkServer } = await import('../operations/doctor/targets.ts')
    const isRemote = options.url !== undefined || options.command !== undefined
    const parts = { log, secrets: io.secrets }
    await (isRemote ? checkServer(options, findings, parts) : checkLocal(options, findings, parts))
  } finally {
    progress.end()
  }
  await Promise.all(lines)
  const wrong = checks.filter(({ status }) => status === 'failed').length
  const doubtful = checks.filter(({ status }) => status === 'warning').length
  if (options.json) await writeJson(io.out, { ok: wrong === 0, version: packageVersion(), checks })
  if (wrong > 0) throw commandFailure(`${pluralize(wrong, 'check')} of ${checks.length} failed. Each -> shows a fix.`)
  const notes = doubtful === 0 ? '' : ` ${pluralize(doubtful, 'note')} to read.`
  if (!options.json) io.say(`${pluralize(checks.length, 'check')}, nothing wrong.${notes}`)
}

const width = 13

function format({ check, status, found, fix }: Diagnosis, { green, yellow, red, bold }: Colours): string {
  const sign = status === 'ok' ? green('ok    ') : status === 'warning' ? yellow('note  ') : red('FAILED')
  const indent = ' '.repeat(6 + 2 + width + 2)
  const advice =
    fix === undefined ? [] : fix.split('\n').map((line, i) => `${indent}${i === 0 ? '->' : '  '} ${escapeText(line)}\n`)
  return [`${sign}  ${bold(check.padEnd(width))}  ${escapeText(found)}\n`, ...advice].join('')
}

interface StatusOptions extends SourceOptions {
  readonly json?: true
}

export function defineStatus(command: Command, io: Io): void {
  command
    .description(
      `Prints the mounts, how changes of each are noticed, and how far each search has indexed it. It describes the mounts of the
configuration, opened here, or those of the server at --url.`,
    )
    .option('--json', 'print JSON')
  addSourceOptions(command)
    .addHelpText(
      ...helpExamples(`
  hikidashi status
  hikidashi status --url http://127.0.0.1:8787/mcp --json`),
    )
    .action((options: StatusOptions) => tellStatus(options, io))
}

type MountStatus = Pick<SearchStatusMount, 'address' | 'title' | 'changes' | 'degraded'>

interface HealthFacts {
  readonly mounts: readonly MountStatus[]
  readonly searches: readonly (SearchStatus & { readonly address: string })[]
  readonly leftOut: readonly WithheldPart[]
}

async function tellStatus(options: StatusOptions, io: Io): Promise<void> {
  await withSource(options, io, async ({ view, catalog, withheld }) => {
    const searches: HealthFacts['searches'][number][] = []
    const progress = createProgress(io, { what: 'Reading the state of the index', besideOutput: true })
    for (const searchMount of await searchMountsOf(view)) {
      const status = parseSearchStatus(await readResourceText(view, searchMount.status))
      if (status === undefined)
        throw commandFailure(
          `The status of ${searchMount.address} cannot be parsed. Does its server have another version of hikidashi?`,
        )
      searches.push({ address: searchMount.address, ...status })
    }
    const status = {
      mounts: await readMountStatuses(view, catalog, searches),
      searches,
      leftOut: withheld.map(withheldJson),
    }
    progress.end()
    await (options.json ? writeJson(io.out, status) : io.out.write(formatStatus(status)))
  })
}

async function readMountStatuses(
  view: View,
  catalog: Catalog | undefined,
  searches: HealthFacts['searches'],
): Promise<readonly MountStatus[]> {
  const statusByMount = new Map(searches.flatMap(({ mounts }) => mounts.map((mount) => [mount.address, mount])))
  return (await view.mounts()).map(({ uri, title }) => {
    const local = catalog?.reader(uri)
    const mountStatus = statusByMount.get(uri)
    const changes =
      mountStatus?.changes ?? (local === undefined ? undefined : local.watch === undefined ? 'none' : 'watched')
    const degraded = mountStatus?.degraded ?? local?.degraded()
    return {
      address: uri,
      ...defined({ title, changes, degraded }),
    }
  })
}

function formatStatus({ mounts, searches, leftOut }: HealthFacts): string {
  const layOut = createColumns()
  const rows = mounts.map(({ address, title = '', changes, degraded }) => [
    escapeText(address),
    escapeText(
      [changes === undefined ? '' : (changeWords[changes] ?? changes), degraded ?? ''].filter(Boolean).join(', '),
    ),
    escapeText(title),
  ])
  const missing = leftOut.map((part) => [
    escapeText(part.name),
    `left out, because you have not trusted it: ${formatEffects(part)}`,
  ])
  return [layOut([...rows, ...missing]), ...searches.map(formatSearch)].join('\n')
}

const changeWords: Readonly<Record<string, string>> = {
  none: 'reports no changes',
  compared: 'compared periodically',
}

function formatSearch({
  address,
  indexing,
  mounts,
  documents,
  passages,
  embedding,
}: HealthFacts['searches'][number]): string {
  const layOut = createColumns()
  const number = (value: number) => value.toLocaleString('en')
  const size =
    documents === undefined ? '' : `: ${formatCount(documents, 'document')}, ${formatCount(passages ?? 0, 'passage')}`
  const vectors =
    embedding === undefined || embedding.waiting === 0 ? '' : `, ${number(embedding.waiting)} without a vector`
  const stopped = indexing === 'running' ? '' : '; no running server updates it'
  const rows = mounts.map((mount) => [`  ${escapeText(mount.address)}`, progressOf(mount), sinceOf(mount)])
  return `${escapeText(address)}${size}${vectors}${stopped}\n${layOut(rows)}`
}

function progressOf({ state, looked, of, degraded, partial, firstPages }: SearchStatusMount): string {
  const number = (value: number) => value.toLocaleString('en')
  const far = looked === undefined ? '' : ` ${number(looked)}${of === undefined ? '' : ` of ${number(of)}`}`
  const words = state === 'comparing' ? `indexing${far}` : state === 'current' ? `indexed${far}` : state
  const { entries, limit, texts, maxBytes, scans, waitingScans: waiting } = partial ?? {}
  const pictures = scans === undefined ? '' : `, in ${pluralize(scans, 'document')} pages with only pictures`
  const ocr = waiting === undefined ? '' : ` (${number(waiting)} wait for OCR)`
  const rows =
    entries === undefined || limit === undefined ? '' : `, of ${pluralize(entries, 'table')} only ${number(limit)} rows`
  const long =
    texts === undefined || maxBytes === undefined
      ? ''
      : `, of ${pluralize(texts, 'long text')} only the beginning (${formatSize(maxBytes)})`
  const first =
    firstPages === undefined ? '' : `, of ${pluralize(firstPages, 'table')} without a key only the first page`
  return escapeText(
    `${words}${rows}${long}${pictures}${ocr}${first}${degraded === undefined ? '' : `, changes: ${degraded}`}`,
  )
}

function sinceOf({ since }: SearchStatusMount): string {
  return since === undefined ? '' : `since ${escapeText(since.replace(/\.\d+Z$/, 'Z'))}`
}
