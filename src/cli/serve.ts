import { Console } from 'node:console'
import { homedir } from 'node:os'
import { parse, resolve } from 'node:path'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { resolveFolder } from '../config/folder.ts'
import { type Listen, parseListen } from '../config/values.ts'
import type { Catalog } from '../core/catalog.ts'
import { isResourceError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { ServeOptions as Service } from '../server/index.ts'
import { exitCodeHelp, failed } from './exit.ts'
import { count } from './format.ts'
import { addOverHttp, addOverStdio, hostName, ownCommand } from './hosts.ts'
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
  const log = createLog({
    level: options.logLevel,
    format: options.logFormat,
    write: (line) => void process.stderr.write(line),
  })
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
  const own = { name: hostName(name), command: ownCommand(argumentsFor(folders, options, local)) }
  // A person reads sentences; a program that collects the log gets one event.
  const tell = (sentence: string, event: string, fields: Readonly<Record<string, unknown>>) =>
    options.logFormat === 'text' ? io.say(sentence) : log('info', event, fields)
  try {
    if (listen === undefined) await serveOverStdio(service, { stop: stop.signal, local, catalog, own, tell })
    else await serveOverHttp(service, { listen, options, stop: stop.signal, local, catalog, own, tell })
  } finally {
    await catalog.close()
    stop.done()
  }
}

interface Surroundings {
  readonly local: Local
  readonly catalog: Catalog
  readonly stop: AbortSignal
  readonly own: { readonly name: string; readonly command: readonly string[] }
  readonly tell: (sentence: string, event: string, fields: Readonly<Record<string, unknown>>) => void
}

async function serveOverStdio(service: Service, { local, catalog, stop, own, tell }: Surroundings): Promise<void> {
  const { serveStdio } = await import('../server/index.ts')
  const addresses = addressesOf(catalog)
  if (process.stdin.isTTY)
    tell(
      `${headline(local, catalog, 'on stdin and stdout, and waits for a client')}\n\n${addOverStdio(own)}\n\nOr serve it over HTTP: --http 8787. Ctrl-C stops it.`,
      'serving on stdio',
      { mounts: addresses },
    )
  else service.log('info', 'serving on stdio', { mounts: addresses })
  await serveStdio({ ...service, signal: stop })
}

async function serveOverHttp(
  service: Service,
  {
    listen,
    options,
    local,
    catalog,
    stop,
    own,
    tell,
  }: Surroundings & { readonly listen: Listen; readonly options: ServeOptions },
): Promise<void> {
  const { serveHttp } = await import('../server/index.ts')
  const { path, allowedOrigins, sse, limits, allowedHosts = [] } = local.config?.http ?? {}
  const opened = serveHttp({
    ...service,
    ...listen,
    ...(path === undefined ? {} : { path }),
    ...(sse === undefined ? {} : { sse }),
    ...(allowedOrigins === undefined ? {} : { allowedOrigins }),
    allowedHosts: [...allowedHosts, ...(options.allowHost ?? [])],
    ...(limits === undefined ? {} : { limits }),
  })
  const running = await opened.catch((error: unknown) => {
    // A port that is taken is no fault of the command line.
    if (isResourceError(error, 'invalid')) throw failed(`${error.message}${adviceOn(error.detail.reason)}`)
    throw error
  })
  tell(
    `${headline(local, catalog, `at ${running.url}`)}\n\n${addOverHttp({ ...own, url: running.url })}\n\nCtrl-C stops it.`,
    'serving over HTTP',
    { url: running.url, mounts: addressesOf(catalog) },
  )
  await new Promise<void>((resolve) => {
    if (stop.aborted) resolve()
    stop.addEventListener('abort', () => resolve())
  })
  await running.close()
}

function adviceOn(reason: string | number | undefined): string {
  if (reason === 'listen') return ' Choose another one: --http 0 takes any that is free.'
  return reason === 'allowed-hosts' ? ' Or name them here: --allow-host NAME.' : ''
}

function headline(local: Local, catalog: Catalog, where: string): string {
  const addresses = addressesOf(catalog)
  const assumed = local.assumed ? 'There is no hikidashi.json here: the current folder is served.\n' : ''
  return `${assumed}hikidashi ${packageVersion()} serves ${count(addresses.length, 'mount')} ${where}\n${addresses.map((address) => `  ${address}`).join('\n')}`
}

function addressesOf(catalog: Catalog): readonly string[] {
  return catalog.mounts.map(({ address }) => address)
}

/** The command line by which a host starts the same service. */
function argumentsFor(folders: readonly string[], { config, name }: ServeOptions, local: Local): readonly string[] {
  const file = local.config?.file ?? (config === undefined ? undefined : resolve(config))
  return [
    'serve',
    ...(local.assumed ? [resolve('.')] : folders.map((folder) => resolve(folder))),
    ...(file === undefined ? [] : ['--config', file]),
    ...(name === undefined ? [] : ['--name', name]),
    '--stdio',
  ]
}

function warnOfLargeFolders({ mounts }: Local, log: Log): void {
  for (const { address, config, folder } of mounts) {
    const root = resolveFolder(config.root, folder)
    if (root === parse(root).root || root === homedir())
      log('warn', 'a whole file system or home folder is served', { mount: address, root })
  }
}
