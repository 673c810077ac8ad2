import { resolve } from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import { defined } from '../../core/kit/object.ts'
import { parseAddress } from '../../core/uri.ts'
import { parseDuration } from '../../schema/values.ts'
import {
  type AuditQuery,
  callerNames,
  findRecords,
  type RecordedContent,
  readRecordedContent,
} from '../operations/audit-records.ts'
import { cleanView } from '../operations/clean-view.ts'
import { openLocalCatalog, requireLocalSetUp } from '../operations/local.ts'
import { parseCount } from '../operations/source.ts'
import { commandFailure, helpExamples } from '../terminal/exit.ts'
import { formatCount, formatSize, type Io, writeJson } from '../terminal/io.ts'
import { createTextLog } from '../terminal/log.ts'
import { createColumns, escapeText, readableUri } from '../terminal/text.ts'

interface AuditOptions extends AuditQuery {
  readonly config?: string
  readonly file?: string
  readonly contents?: true
  readonly json?: true
}

export function define(command: Command, io: Io): void {
  command
    .description(
      'Prints records of the audit log, the newest last: time, caller, operation, outcome, size, version and URI. Rotated files are read, too.',
    )
    .option('--caller <name>', 'only this caller: name or id of a token, subject of an OAuth token, or address')
    .option('--since <time>', 'only records since a time: 30m, 12h or 7d ago, or a date such as 2026-11-29', parseSince)
    .option('--uri <prefix>', 'only URIs that begin with this text')
    .option('--verb <verb>', 'only this operation, such as read or call')
    .option('--outcome <outcome>', 'only this outcome, such as ok or denied')
    .option('-n, --limit <number>', 'maximum number of records', parseCount, 100)
    .option('--contents', 'also print the contents that were read, if they have not changed or git has them')
    .option('--config <file>', 'the configuration; by default hikidashi.json here')
    .option('--file <file>', 'the log; by default "audit.file" of the configuration')
    .option('--json', 'print JSON')
    .addHelpText(
      ...helpExamples(`
  hikidashi audit --caller ci --since 1d
  hikidashi audit --uri docs://manual/internal/ --outcome denied
  hikidashi audit --verb read --uri git://app/ --contents -n 1`),
    )
    .action((options: AuditOptions) => print(options, io))
}

function parseSince(value: string): number {
  const duration = /^\d+(?:\.\d+)?[a-z]+$/.test(value) ? parseDuration(value) : undefined
  if (duration !== undefined) return Date.now() - duration
  const time = /^\d{4}-\d\d-\d\d/.test(value) ? Date.parse(value) : Number.NaN
  if (!Number.isNaN(time)) return time
  throw new InvalidArgumentError('Give a duration such as 30m, 12h or 7d, or a date such as 2026-11-29.')
}

async function print(options: AuditOptions, io: Io): Promise<void> {
  const { config: configFile, file, caller, since, uri, verb, outcome, limit, contents, json } = options
  const local =
    file === undefined || contents ? await requireLocalSetUp(defined({ config: configFile }), io) : undefined
  const logged = local?.config?.audit === undefined ? undefined : resolve(local.config.folder, local.config.audit.file)
  const log = file ?? logged
  if (log === undefined)
    throw commandFailure('No audit log is configured. Add "audit" to the configuration, or name a log with --file.')
  const query = { limit, ...defined({ caller, since, uri, verb, outcome }) }
  const { records, more, damaged } = await findRecords(log, query)
  const reread: RecordedContent[] = []
  if (contents && local !== undefined) {
    const catalog = await openLocalCatalog(local, createTextLog(io, 'error'), io.secrets)
    const view = cleanView(catalog.view(local.principal), io.secrets)
    const mounts = local.mounts.map(({ address }) => parseAddress(address).text)
    try {
      for (const record of records) reread.push(await readRecordedContent(record, view, mounts))
    } finally {
      await catalog.close()
    }
  }
  if (json)
    await writeJson(
      io.out,
      records.map((record, at) => ({ ...record, ...(reread[at] && { content: toJsonContent(reread[at]) }) })),
    )
  else {
    const layOut = createColumns([4])
    const rows = records.map((record) => {
      const { time = '', verb = '', outcome = '', bytes, items, version = '', uri = '' } = record
      const size = bytes === undefined ? (items === undefined ? '' : String(items)) : formatSize(bytes)
      return [time, callerNames(record)[0] ?? '', verb, outcome, size, version, readableUri(uri)].map(escapeText)
    })
    if (reread.length === 0) await io.out.write(rows.length === 0 ? '' : layOut(rows))
    for (const [at, one] of reread.entries()) await io.out.write(`${layOut([rows[at] ?? []])}${formatContent(one)}\n`)
  }
  if (records.length === 0) io.say('No record matches.')
  if (more > 0) io.say(`Not printed: ${formatCount(more, 'older record')}. To see more, raise --limit.`)
  if (damaged > 0)
    io.say(`Skipped in ${log} and its rotated files: ${formatCount(damaged, 'line')} that cannot be read as records.`)
}

function toJsonContent(one: RecordedContent): object {
  return 'bytes' in one ? { uri: one.uri, blob: Buffer.from(one.bytes).toString('base64') } : one
}

function formatContent(one: RecordedContent): string {
  if ('reason' in one) return `  (the content cannot be read again: ${one.reason})\n`
  return 'text' in one ? one.text : `  (${formatSize(one.bytes.length)}, not text. To print it as base64: --json)\n`
}
