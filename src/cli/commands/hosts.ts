import { type Command, Option } from 'commander'
import { type FileReport, type HostReport, type OwnServer, reportHost } from '../hosts/change.ts'
import { hosts as table } from '../hosts/known.ts'
import { placeHere } from '../hosts/types.ts'
import { exitCodeHelp } from '../terminal/exit.ts'
import { type Io, writeJson } from '../terminal/io.ts'
import { createColumns, escapeText } from '../terminal/text.ts'

interface HostsOptions {
  readonly json?: true
  readonly resources?: true
}

export function define(command: Command, io: Io): void {
  command
    .description(
      'Lists the hosts on this machine, the settings files of each (for you, and for the current folder as a project), whether hikidashi is in them, and the support of the host for resources. It only reads.',
    )
    .addOption(new Option('--resources', 'print the support of each host for resources instead').conflicts('json'))
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Examples:
  hikidashi hosts
  hikidashi hosts --resources
  hikidashi add claude-code
${exitCodeHelp}`,
    )
    .action((options: HostsOptions) => hosts(options, io))
}

async function hosts({ json, resources }: HostsOptions, io: Io): Promise<void> {
  const place = placeHere()
  const reports: HostReport[] = []
  for (const host of table) reports.push(await reportHost(host, place))
  if (json) return writeJson(io.out, reports)
  const [columns, header, rows] = resources
    ? [2, ['HOST', 'RESOURCES'], reports.map((report) => [report.host, report.resources])]
    : [5, ['HOST', 'FOUND', 'SCOPE', 'HIKIDASHI', 'FILE'], reports.flatMap(rowsOf)]
  const layOut = createColumns(Array.from({ length: columns }, () => ({ side: 'left' })))
  await io.out.write(layOut([header, ...rows.map((row) => row.map(escapeText))]))
  const faults = reports.flatMap(({ files }) => files.flatMap(faultsOf))
  if (faults.length > 0 && !resources) io.say(faults.map((fault) => `Note: ${fault}`).join('\n'))
}

function rowsOf({ host, found, files }: HostReport): readonly (readonly string[])[] {
  return files.map((file, i) => [i === 0 ? host : '', i === 0 ? yes(found) : '', file.scope, ownIn(file), file.file])
}

const yes = (found: boolean) => (found ? 'yes' : 'no')

function ownIn({ servers, problem }: FileReport): string {
  if (problem !== undefined) return 'unreadable'
  if (servers.length === 0) return '-'
  return servers
    .map(({ name, transport, missing }) => `${name} (${missing === undefined ? transport : 'broken'})`)
    .join(', ')
}

function faultsOf({ file, servers, problem }: FileReport): readonly string[] {
  if (problem !== undefined) return [problem]
  const broken = servers.filter((server): server is OwnServer & { missing: string } => server.missing !== undefined)
  return broken.map(
    ({ name, missing }) => `${file}: ${name} is started by ${missing}, which is not there. Add it again with --force.`,
  )
}
