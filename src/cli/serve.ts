import { Console } from 'node:console'
import { homedir } from 'node:os'
import { parse, resolve } from 'node:path'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { resolveFolder } from '../config/folder.ts'
import { type Listen, parseListen } from '../config/values.ts'
import { isResourceError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { HttpOptions, ServeOptions as Service } from '../server/index.ts'
import { type Announcer, createAnnouncer } from './announce.ts'
import { exitCodeHelp, failed } from './exit.ts'
import { hostName, ownCommand } from './hosts.ts'
import type { Io } from './io.ts'
import { type Local, openLocal, requireLocal } from './local.ts'
import { createLog, logFormats, logLevels } from './log.ts'
import { createStop } from './stop.ts'
import { packageVersion } from './version.ts'

interface ServeOptions {
  readonly config?: string
  readonly stdio?: true
  readonly http?: Listen
  readonly name?: string
  readonly allowHost?: readonly string[]
  readonly logLevel: (typeof logLevels)[number]
  readonly logFormat: (typeof logFormats)[number]
}

export function define(command: Command, io: Io): void {
  command
    .description(
      `Serves folders, or what a configuration mounts, to MCP clients. Without either: what hikidashi.json in the current
folder says, else the current folder. Over stdio, unless --http or the configuration's http.listen says otherwise.

A folder is served at file:// and its absolute path, so that a host on this machine can open what it reads.`,
    )
    .argument('[dir...]', 'folders to serve')
    .option('--config <file>', 'serve what this configuration mounts')
    .option('--name <name>', 'serve the one folder at file:///NAME instead')
    .addOption(new Option('--stdio', 'speak to one client over stdin and stdout').conflicts('http'))
    .addOption(
      new Option('--http <[host:]port>', 'serve many over HTTP; port 0 is any free one')
        .argParser(parseHttp)
        .conflicts('stdio'),
    )
    .option('--allow-host <name>', 'a host name by which clients reach this machine (repeatable)', addName)
    .addOption(new Option('--log-level <level>', 'what to log on stderr').choices(logLevels).default('info'))
    .addOption(new Option('--log-format <format>', 'how to log it').choices(logFormats).default('text'))
    .addHelpText(
      'after',
      `
SIGTERM and SIGINT (Ctrl-C) let what was asked be answered, and end it; a second one ends it at once.

Examples:
  hikidashi serve . --http 8787
  hikidashi serve ~/notes ~/work/docs --stdio
  hikidashi serve --config hikidashi.json --http 0.0.0.0:8787 --allow-host context.example.org
${exitCodeHelp}`,
    )
    .action((folders: readonly string[], options: ServeOptions) => serve(folders, options, io))
}

function parseHttp(value: string): Listen {
  const listen = parseListen(value)
  if (listen === undefined) throw new InvalidArgumentError('It is a port, or HOST:PORT such as 127.0.0.1:8787.')
  return listen
}

function addName(name: string, names: readonly string[] = []): readonly string[] {
  return [...names, name]
}

async function serve(folders: readonly string[], options: ServeOptions, io: Io): Promise<void> {
  const local = await requireLocal({ ...options, folders })
  const listen = options.stdio ? undefined : (options.http ?? local.config?.http?.listen)
  // On stdio, stdout belongs to the protocol: what any library prints goes elsewhere.
  if (listen === undefined) globalThis.console = new Console(process.stderr, process.stderr)
  const { logLevel: level, logFormat: format } = options
  const log = createLog({ level, format, write: (line) => void process.stderr.write(line) })
  const stop = createStop(log)
  warnOfLargeFolders(local, log)
  const catalog = await openLocal(local, log)
  const { name = 'hikidashi', instructions } = local.config ?? {}
  const service: Service = {
    view: catalog.view,
    name,
    version: packageVersion(),
    log,
    principal: local.principal,
    ...(instructions === undefined ? {} : { instructions }),
  }
  const announce = createAnnouncer({
    log: format === 'json' ? log : undefined,
    say: io.say,
    server: { name: hostName(name), command: ownCommand(argumentsFor(folders, options, local)) },
    addresses: local.mounts.map(({ address }) => address),
    assumed: local.assumed,
  })
  try {
    if (listen === undefined) await serveOverStdio(service, stop.signal, announce)
    else await serveOverHttp({ ...service, ...httpOptions(local, options), ...listen }, stop.signal, announce)
  } finally {
    await catalog.close()
    stop.done()
  }
}

async function serveOverStdio(service: Service, stop: AbortSignal, announce: Announcer): Promise<void> {
  const { serveStdio } = await import('../server/index.ts')
  if (process.stdin.isTTY) announce.waiting()
  else announce.started(service.log)
  await serveStdio({ ...service, signal: stop })
}

async function serveOverHttp(options: HttpOptions, stop: AbortSignal, announce: Announcer): Promise<void> {
  const { serveHttp } = await import('../server/index.ts')
  const running = await serveHttp(options).catch((error: unknown) => {
    // A port that is taken is no fault of the command line.
    if (isResourceError(error, 'invalid')) throw failed(`${error.message}${adviceOn(error.detail.reason)}`)
    throw error
  })
  announce.listening(running.url)
  await new Promise<void>((resolve) => {
    if (stop.aborted) resolve()
    stop.addEventListener('abort', () => resolve())
  })
  await running.close()
}

function httpOptions({ config }: Local, { allowHost = [] }: ServeOptions) {
  const { listen: _, allowedHosts = [], ...rest } = config?.http ?? {}
  return { ...rest, allowedHosts: [...allowedHosts, ...allowHost] }
}

function adviceOn(reason: string | number | undefined): string {
  if (reason === 'listen') return ' Choose another one: --http 0 takes any that is free.'
  return reason === 'allowed-hosts' ? ' Or name them here: --allow-host NAME.' : ''
}

/** The command line by which a host starts the same service. */
function argumentsFor(folders: readonly string[], { name }: ServeOptions, local: Local): readonly string[] {
  return [
    'serve',
    ...(local.assumed ? [resolve('.')] : folders.map((folder) => resolve(folder))),
    ...(local.config === undefined ? [] : ['--config', local.config.file]),
    ...(name === undefined ? [] : ['--name', name]),
    '--stdio',
  ]
}

function warnOfLargeFolders({ mounts }: Local, log: Log): void {
  for (const { address, config, folder } of mounts) {
    if (config.provider !== 'files') continue
    const root = resolveFolder(config.root, folder)
    if (root === parse(root).root || root === homedir())
      log('warn', 'a whole file system or home folder is served', { mount: address, root })
  }
}
