import type { Command } from 'commander'
import { isOurs, type Opened, openHostFile, serversOf, showDiff, unifiedDiff, withoutEntry } from '../hosts/change.ts'
import { backupOf, writeHostFile } from '../hosts/files.ts'
import { entryName, hostArgument, hostNamed, scopeOption } from '../hosts/known.ts'
import { placeHere, type Scope } from '../hosts/types.ts'
import { CommandError, exitCodeHelp, exitCodes, failed } from '../terminal/exit.ts'
import { type Io, writeJson } from '../terminal/io.ts'

interface RemoveOptions {
  readonly scope: Scope
  readonly name: string
  readonly force?: true
  readonly dryRun?: true
  readonly json?: true
}

export function define(command: Command, io: Io): void {
  command
    .description(
      'Removes hikidashi from a host: deletes its entry in the settings file of the host, and changes nothing else. The old file is kept beside the new one as FILE.hikidashi.bak.',
    )
    .addArgument(hostArgument())
    .option('--name <name>', 'the name of the server in the host', 'hikidashi')
    .addOption(scopeOption())
    .option('--force', 'remove the entry even if it starts another program')
    .option('--dry-run', 'print the change as a diff, and write nothing')
    .option('--json', 'print the outcome as JSON')
    .addHelpText(
      'after',
      `
Examples:
  hikidashi remove claude-code
  hikidashi remove vscode --scope project --name notes --dry-run
${exitCodeHelp}`,
    )
    .action((id: string, options: RemoveOptions) => remove(id, options, io))
}

async function remove(id: string, options: RemoveOptions, io: Io): Promise<void> {
  const host = hostNamed(id)
  const name = entryName(host, options.name)
  const opened = await openHostFile(host, options.scope, placeHere())
  refuseOthers(opened, name, options)
  const { before } = opened
  const after = await withoutEntry(opened, name)
  if (options.dryRun) return showDiff(unifiedDiff(before.file, before.text, after), io)
  await writeHostFile(before, after)
  const backup = backupOf(before)
  if (options.json)
    return writeJson(io.out, { host: id, scope: options.scope, file: before.file, name, status: 'removed', backup })
  const gone = after === undefined ? ' Nothing else was in that file: it is gone.' : ''
  io.say(`Took ${name} out of ${host.title}, from ${before.file}.${gone}\nWhat was there: ${backup}`)
}

function refuseOthers(opened: Opened, name: string, { force }: RemoveOptions): void {
  const { host, before } = opened
  const servers = serversOf(opened)
  const value = servers[name]
  if (value === undefined) {
    const ours = Object.entries(servers).filter(([other, entry]) => isOurs(other, host.foundIn(entry)))
    const names = ours.map(([other]) => other)
    const hint =
      names.length === 0 ? 'hikidashi hosts shows where it is.' : `There is ${names.join(', ')}: give --name.`
    throw new CommandError(exitCodes.notFound, `${before.file} has no entry named ${name}. ${hint}`)
  }
  const found = host.foundIn(value)
  // The URL of an entry does not show which program answers there.
  if (force || found.command === undefined || isOurs(name, found)) return
  throw failed(`${name} in ${before.file} does not start hikidashi. To remove it nevertheless: --force.`)
}
