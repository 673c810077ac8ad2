import { unlink } from 'node:fs/promises'
import { isAbsolute } from 'node:path'
import { type Command, Option } from 'commander'
import { defined, stringItems } from '../../core/kit/object.ts'
import { type AddLaunchOptions, launchFor } from '../hosts/add-launch.ts'
import {
  fileDiff,
  type HostFileReport,
  type HostReport,
  hostSettingsFile,
  isInstalled,
  type OpenedHostFile,
  type OwnServer,
  openHostFile,
  reportHost,
  serversOf,
  showDiff,
  startsHikidashi,
  withEntry,
  withoutEntry,
} from '../hosts/change.ts'
import { backupPath, writeHostFile } from '../hosts/files.ts'
import { settingsEditorFor } from '../hosts/format.ts'
import { openHook, withHook, withoutHook } from '../hosts/hook-files.ts'
import { promptHooks } from '../hosts/hooks.ts'
import { hasRefusedSyntax } from '../hosts/json.ts'
import { entryName, hostArgument, hostNamed, scopeOption, hosts as table } from '../hosts/table.ts'
import {
  type EntryContext,
  type Host,
  type HostEntry,
  type HostScope,
  type Launch,
  type Machine,
  thisMachine,
  valueAt,
} from '../hosts/types.ts'
import { addHeaderEnv } from '../operations/headers.ts'
import { saveTrust, trustNotSavedNote } from '../operations/withheld.ts'
import { CommandError, collectValues, commandFailure, exitCodes, helpExamples } from '../terminal/exit.ts'
import { type Io, writeJson } from '../terminal/io.ts'
import { createColumns, escapeText } from '../terminal/text.ts'

interface AddOptions extends AddLaunchOptions, RemoveOptions {
  readonly print?: true
  readonly hook?: true
}

export function defineAdd(command: Command, io: Io): void {
  command
    .description(
      `Adds hikidashi to a host: writes an entry into the settings file of the host, and changes nothing else in it. The host then
starts hikidashi for the given folders or configuration (without either: for hikidashi.json in the current folder, else the folder
itself), or connects to the server at --url. The old file is kept beside the new one as FILE.hikidashi.bak.`,
    )
    .addArgument(hostArgument())
    .argument('[dir...]', 'folders to serve')
    .option('--config <file>', 'serve the mounts of this configuration')
    .option('--name <name>', 'the name of the server in the host', 'hikidashi')
    .addOption(scopeOption())
    .option('--npx', 'start with npx instead of the path of this installation (once hikidashi is in the npm registry)')
    .option('--env <name>', 'an environment variable that the host passes on (repeatable)', collectValues)
    .addOption(new Option('--url <url>', 'connect to this running server instead').conflicts(['config', 'npx', 'env']))
    .option('--token-env <name>', 'with --url: the environment variable that holds the bearer token')
    .addOption(
      new Option('--token-prompt', 'with --url: the host asks for the bearer token (vscode)').conflicts('tokenEnv'),
    )
    .option(
      '--header-env <name=variable>',
      'with --url: a header whose value is in an environment variable (repeatable)',
      addHeaderEnv,
    )
    .option(
      '--header <header>',
      `with --url: a header, 'Name: value' or 'Name: \${VARIABLE}' (repeatable)`,
      collectValues,
    )
    .option(
      '--hook',
      'also add a hook, which adds to each prompt the texts that help with it (claude-code, codex, cursor, gemini-cli, opencode)',
    )
    .option('--force', 'replace another entry of that name')
    .option('--dry-run', 'print the change as a diff, and write nothing')
    .option('--print', 'print the entry, and other ways to add it')
    .option('--json', 'print the outcome as JSON')
    .addHelpText(
      ...helpExamples(`
  hikidashi add claude-code                      this folder, for you
  hikidashi add vscode docs --scope project
  hikidashi add codex --url https://context.example.org/mcp --token-env CONTEXT_TOKEN
  hikidashi add zed ~/notes --name notes --dry-run
  hikidashi add claude-code --hook               and a context for each prompt

Values that look like a token or a password are refused: name the variable that holds them.`),
    )
    .action((id: string, folders: readonly string[], options: AddOptions) => addToHost(id, folders, options, io))
}

async function addToHost(id: string, folders: readonly string[], options: AddOptions, io: Io): Promise<void> {
  const host = hostNamed(id)
  const { scope } = options
  const launch = await launchFor(folders, options)
  const machine = thisMachine()
  const context: EntryContext = { name: entryName(host, options.name), scope, machine }
  if (options.print) return print(host, launch, context, options, io)
  // A host without hooks is refused before anything is written.
  if (options.hook) await openHook(host, scope, machine)
  const file = await openHostFile(host, scope, machine)
  const entry = host.entryOf(launch, context, file.settings)
  const after = withEntry(file, context.name, entry)
  const { before } = file
  const isSame = before.text !== undefined && after === before.text
  const isShared = options.hook && hasSharedFile(host)
  if (!isSame) refuseTaken(file, context.name, options)
  if (options.dryRun) {
    await showDiff(fileDiff(before.file, before.text, after), io)
    if (options.hook) await showHookDiff(host, scope, machine, isSame ? before.text : after, io)
    return isSame ? io.say(`${host.title} has this entry already, so the entry would not change.`) : undefined
  }
  // Before the file is written: its new folder would look like an installed host.
  const notes = notesOn(host, launch, entry, context, after)
  const whole = isShared ? withHook(await openChangedHook(host, scope, machine, after)) : after
  if (!isSame || whole !== before.text) await writeHostFile(before, whole)
  const hookFile = isShared ? before.file : options.hook ? await addHook(host, scope, machine) : undefined
  const isTrusted = options.config === undefined || (await saveTrust(options.config))
  const status = isSame ? 'unchanged' : 'added'
  const backup = isSame || before.text === undefined ? undefined : backupPath(before)
  if (options.json)
    await writeJson(io.out, {
      host: id,
      scope,
      file: before.file,
      name: context.name,
      status,
      backup,
      ...defined({ hook: hookFile }),
    })
  else if (isSame) io.say(`${host.title} has this entry already: ${context.name} in ${before.file}.`)
  else
    io.say(
      [
        `Added to ${host.title} as ${context.name}, in ${before.file}.`,
        ...(backup === undefined ? [] : [`The old file: ${backup}`]),
        host.next,
      ].join('\n'),
    )
  if (hookFile !== undefined && !options.json)
    io.say(
      `The hook in ${hookFile} gives a prompt a context if some resources fit it. To see the last one: hikidashi why --context`,
    )
  for (const note of [...notes, ...(isTrusted ? [] : [trustNotSavedNote])]) io.say(`Note: ${note}`)
}

/** If the file is shared, the hook and the entry are written at once, so that the backup is the original file. */
const hasSharedFile = ({ id }: Host) => promptHooks[id] !== undefined && promptHooks[id].files === undefined

async function addHook(host: Host, scope: HostScope, machine: Machine): Promise<string> {
  const hook = await openHook(host, scope, machine)
  const after = withHook(hook)
  if (after !== hook.opened.before.text) await writeHostFile(hook.opened.before, after)
  return hook.opened.before.file
}

/** @param text The new text of the settings file, which the hook may share with the servers. */
async function showHookDiff(host: Host, scope: HostScope, machine: Machine, text: string | undefined, io: Io) {
  const hook = await openChangedHook(host, scope, machine, text)
  const { before } = hook.opened
  await showDiff(fileDiff(before.file, before.text, withHook(hook)), io)
}

async function showHookRemoval(host: Host, scope: HostScope, text: string, io: Io): Promise<void> {
  const hook = await openChangedHook(host, scope, thisMachine(), text)
  const { before } = hook.opened
  if (hook.index !== -1) await showDiff(fileDiff(before.file, before.text, withoutHook(hook)), io)
}

/** @param hookText The new text of the settings file. It counts if the hook is in the same file. */
async function openChangedHook(host: Host, scope: HostScope, machine: Machine, hookText: string | undefined) {
  const hook = await openHook(host, scope, machine)
  const { before, format } = hook.opened
  const text = before.file === hostSettingsFile(host, scope, machine) ? (hookText ?? '') : before.text
  return { ...hook, opened: { ...hook.opened, before: { ...before, text }, settings: format.parse(text ?? '') } }
}

function refuseTaken({ host, before, settings }: OpenedHostFile, name: string, { force }: AddOptions): void {
  if (force || valueAt(settings, [...host.serversAt(settings), name]) === undefined) return
  throw commandFailure(
    `${before.file} has another entry named ${name}. Choose a name with --name, or replace it with --force.`,
  )
}

function notesOn(
  host: Host,
  launch: Launch,
  { value }: HostEntry,
  { scope, machine }: EntryContext,
  text: string,
): readonly string[] {
  const words = [value.command, value.args, value.cmd].flatMap((part) =>
    typeof part === 'string' ? [part] : stringItems(part),
  )
  const isLocal = launch.transport === 'stdio' && words.some((word) => isAbsolute(word))
  const isStray = host.refuses !== undefined && hasRefusedSyntax(text, host.refuses)
  return [
    ...(isStray ? [`the file has a comment or a trailing comma. ${host.title} cannot read such a file.`] : []),
    ...(isInstalled(host, machine) ? [] : [`${host.title} was not found on this machine.`]),
    ...(scope === 'project' && isLocal
      ? ['the file names paths of this machine. Everyone who shares the project needs the same paths.']
      : []),
  ]
}

async function print(host: Host, launch: Launch, context: EntryContext, { json }: AddOptions, io: Io): Promise<void> {
  const settings = await openHostFile(host, context.scope, context.machine).then(
    (file) => file.settings,
    () => undefined,
  )
  const file = hostSettingsFile(host, context.scope, context.machine)
  const entry = host.entryOf(launch, context, settings)
  const format = settingsEditorFor(host, file)
  const snippet = [
    format.show([...host.serversAt(settings), context.name], entry.value),
    ...(entry.inputs === undefined ? [] : [format.show(['inputs'], entry.inputs)]),
  ].join('\n')
  const ways = host.waysOf?.(launch, entry, context) ?? []
  if (json) return writeJson(io.out, { host: host.id, scope: context.scope, file, name: context.name, snippet, ways })
  io.say(`For ${host.title}, in ${file}:`)
  await io.out.write([snippet, ...ways.map(({ label, text }) => `\n${label}:\n${escapeText(text)}\n`)].join(''))
}

interface HostsOptions {
  readonly json?: true
  readonly resources?: true
}

export function defineHosts(command: Command, io: Io): void {
  command
    .description(
      'Lists the hosts that hikidashi knows, whether each was found on this machine, the settings files of each (for you, and for the current folder as a project), whether hikidashi is in them, and the support of the host for resources. It only reads.',
    )
    .addOption(new Option('--resources', 'print the support of each host for resources instead').conflicts('json'))
    .option('--json', 'print JSON')
    .addHelpText(
      ...helpExamples(`
  hikidashi hosts
  hikidashi hosts --resources
  hikidashi add claude-code`),
    )
    .action((options: HostsOptions) => hosts(options, io))
}

async function hosts({ json, resources }: HostsOptions, io: Io): Promise<void> {
  const machine = thisMachine()
  const reports: HostReport[] = []
  for (const host of table) reports.push(await reportHost(host, machine))
  if (json) return writeJson(io.out, reports)
  const [header, rows] = resources
    ? [['HOST', 'RESOURCES'], reports.map((report) => [report.host, report.resources])]
    : [['HOST', 'FOUND', 'SCOPE', 'HIKIDASHI', 'FILE'], reports.flatMap(rowsOf)]
  const layOut = createColumns()
  await io.out.write(layOut([header, ...rows.map((row) => row.map(escapeText))]))
  const faults = reports.flatMap(({ files }) => files.flatMap(faultsOf))
  if (faults.length > 0 && !resources) io.say(faults.map((fault) => `Note: ${fault}`).join('\n'))
}

function rowsOf({ host, found, files }: HostReport): readonly (readonly string[])[] {
  return files.map((file, i) => [i === 0 ? host : '', i === 0 ? yes(found) : '', file.scope, ownIn(file), file.file])
}

const yes = (isFound: boolean) => (isFound ? 'yes' : 'no')

function ownIn({ servers, problem }: HostFileReport): string {
  if (problem !== undefined) return 'unreadable'
  if (servers.length === 0) return '-'
  return servers
    .map(({ name, transport, missing }) => `${name} (${missing === undefined ? transport : 'broken'})`)
    .join(', ')
}

function faultsOf({ file, servers, problem }: HostFileReport): readonly string[] {
  if (problem !== undefined) return [problem]
  const broken = servers.filter((server): server is OwnServer & { missing: string } => server.missing !== undefined)
  return broken.map(
    ({ name, missing }) =>
      `${file}: ${missing}, with which ${name} starts, was not found. Add the server again with --force.`,
  )
}

interface RemoveOptions {
  readonly scope: HostScope
  readonly name: string
  readonly force?: true
  readonly dryRun?: true
  readonly json?: true
}

export function defineRemove(command: Command, io: Io): void {
  command
    .description(
      'Removes hikidashi from a host: deletes its entry in the settings file of the host, and its hook, and changes nothing else. The old file is kept beside the new one as FILE.hikidashi.bak.',
    )
    .addArgument(hostArgument())
    .option('--name <name>', 'the name of the server in the host', 'hikidashi')
    .addOption(scopeOption())
    .option('--force', 'remove the entry even if it starts another program')
    .option('--dry-run', 'print the change as a diff, and write nothing')
    .option('--json', 'print the outcome as JSON')
    .addHelpText(
      ...helpExamples(`
  hikidashi remove claude-code
  hikidashi remove vscode --scope project --name notes --dry-run`),
    )
    .action((id: string, options: RemoveOptions) => remove(id, options, io))
}

async function remove(id: string, options: RemoveOptions, io: Io): Promise<void> {
  const host = hostNamed(id)
  const name = entryName(host, options.name)
  const file = await openHostFile(host, options.scope, thisMachine())
  refuseOthers(file, name, options)
  const { before } = file
  const after = withoutEntry(file, name)
  const hasHook = promptHooks[id] !== undefined
  if (options.dryRun) {
    await showDiff(fileDiff(before.file, before.text, after), io)
    if (hasHook) await showHookRemoval(host, options.scope, after, io)
    return
  }
  const shared = hasSharedFile(host) ? await openChangedHook(host, options.scope, thisMachine(), after) : undefined
  await writeHostFile(before, shared === undefined || shared.index === -1 ? after : withoutHook(shared))
  const backup = backupPath(before)
  if (hasHook && shared === undefined) await removeHook(host, options.scope)
  if (options.json)
    return writeJson(io.out, { host: id, scope: options.scope, file: before.file, name, status: 'removed', backup })
  io.say(`Removed ${name} from ${host.title}, in ${before.file}.\nThe old file: ${backup}`)
}

async function removeHook(host: Host, scope: HostScope): Promise<void> {
  const hook = await openHook(host, scope, thisMachine())
  if (hook.index === -1) return
  const { before } = hook.opened
  await writeHostFile(before, withoutHook(hook))
  if (hook.isPlugin) await unlink(before.target)
}

function refuseOthers(file: OpenedHostFile, name: string, { force }: RemoveOptions): void {
  const { host, before } = file
  const servers = serversOf(file)
  const value = servers[name]
  if (value === undefined) {
    const ours = Object.entries(servers).filter(([other, entry]) => startsHikidashi(other, host.foundIn(entry)))
    const names = ours.map(([other]) => other)
    const hint =
      names.length === 0
        ? 'To list the entries of hikidashi: hikidashi hosts'
        : `It has ${names.join(', ')}. Choose one with --name.`
    throw new CommandError(exitCodes.notFound, `${before.file} has no entry named ${name}. ${hint}`)
  }
  const launch = host.foundIn(value)
  // The URL of an entry does not show which program answers.
  if (force || launch.command === undefined || startsHikidashi(name, launch)) return
  throw commandFailure(`${name} in ${before.file} does not start hikidashi. To remove it nevertheless: --force.`)
}
