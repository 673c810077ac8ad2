import { Console } from 'node:console'
import { homedir } from 'node:os'
import { parse, resolve } from 'node:path'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { resolveFolder } from '../config/folder.ts'
import { type Listen, parseListen } from '../config/values.ts'
import { isResourceError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { Scrubber } from '../core/scrub.ts'
import type { AuditFile, HttpOptions, ServeOptions as Service } from '../server/index.ts'
import { type Announcer, createAnnouncer } from './announce.ts'
import { contextFor } from './context.ts'
import { exitCodeHelp, failed, misused } from './exit.ts'
import { openPage, pageOf } from './explorer.ts'
import { relaxHeap } from './heap.ts'
import type { Io } from './io.ts'
import { type Local, openLocal, requireLocal } from './local.ts'
import { createLog, logFormats, logLevels } from './log.ts'
import { startMeasuring } from './measure.ts'
import { hostName, ownCommand } from './own-command.ts'
import { createStop } from './stop.ts'
import { packageVersion } from './version.ts'

interface ServeOptions {
  readonly config?: string
  readonly stdio?: true
  readonly http?: Listen
  readonly name?: string
  readonly allowHost?: readonly string[]
  readonly tokens?: string
  readonly insecure?: boolean
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
    .option('--tokens <file>', 'serve over HTTP only to who has a token of this file (see hikidashi token)')
    .option('--insecure', 'serve other machines without asking who they are')
    .addOption(new Option('--log-level <level>', 'what to log on stderr').choices(logLevels).default('info'))
    .addOption(new Option('--log-format <format>', 'how to log it').choices(logFormats).default('text'))
    .addHelpText(
      'after',
      `
SIGTERM and SIGINT (Ctrl-C) let what was asked be answered, and end it; a second one ends it at once.

Examples:
  hikidashi serve . --http 8787
  hikidashi serve ~/notes ~/work/docs --stdio
  hikidashi serve . --http 0.0.0.0:8787 --allow-host context.example.org --tokens ~/.hikidashi-tokens.json
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
  const { secrets } = io
  const local = await requireLocal({ ...options, folders }, secrets)
  const listen = options.stdio ? undefined : (options.http ?? local.config?.http?.listen)
  refuseUnasked(local, options, listen)
  // On stdio, stdout belongs to the protocol: what any library prints goes elsewhere.
  if (listen === undefined) globalThis.console = new Console(process.stderr, process.stderr)
  const { logLevel: level, logFormat: format } = options
  const log = createLog({ level, format, write: (line) => void process.stderr.write(line), scrubber: secrets })
  const stop = createStop(log)
  warnOfLargeFolders(local, log)
  const auditFile = await openAudit(local, log, secrets)
  const measuring = await startMeasuring(local)
  const catalog = await openLocal(local, log, secrets, measuring?.measurements).catch(async (error: unknown) => {
    measuring?.end()
    await auditFile?.close()
    throw error
  })
  const { name = 'hikidashi', instructions } = local.config ?? {}
  // Whoever serves folders does not wait for what reads configurations.
  const [{ postsUnder, writingOf }, { profilesOf }] = await Promise.all([
    import('../config/writing.ts'),
    import('../config/profiles.ts'),
  ])
  const { searchesOf } = await import('../config/search.ts')
  const context = contextFor(local, catalog)
  const writing = writingOf(catalog)
  for (const { provider } of searchesOf(catalog)) provider.feed()
  const service: Service = {
    view: context.view,
    name,
    version: packageVersion(),
    log,
    scrubber: secrets,
    principal: local.principal,
    profileOf: profilesOf(local.config?.clients, context),
    readingTools: context.tools,
    ...(auditFile === undefined ? {} : { audit: auditFile.write }),
    ...(writing === undefined ? {} : { tools: writing.tools }),
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
    else {
      const pages = await openPage(local.config?.http, listen, log)
      await serveOverHttp(
        {
          ...service,
          ...httpOptions(local, options),
          ...listen,
          ...(pages === undefined ? {} : { pages }),
          degraded: catalog.degraded,
          scopesOf: catalog.scopesOf,
          ...(measuring === undefined ? {} : { measurements: measuring.measurements }),
          ...(writing === undefined ? {} : { postings: { under: postsUnder, at: writing.postingAt } }),
        },
        stop.signal,
        announce,
      )
    }
  } finally {
    await catalog.close()
    measuring?.end()
    await auditFile?.close()
    stop.done()
  }
}

/** The audit log of a configuration. It lies in no folder that is served: nobody reads there what others asked for. */
async function openAudit({ config }: Local, log: Log, scrubber: Scrubber): Promise<AuditFile | undefined> {
  if (config?.audit === undefined) return undefined
  const { openAuditFile } = await import('../server/index.ts')
  const { file, ...options } = config.audit
  return openAuditFile({ ...options, file: resolve(config.folder, file), scrubber, log }).catch((error: unknown) => {
    throw isResourceError(error) ? failed(error.message) : error
  })
}

async function serveOverStdio(service: Service, stop: AbortSignal, announce: Announcer): Promise<void> {
  const { serveStdio } = await import('../server/index.ts')
  if (process.stdin.isTTY) announce.waiting()
  else announce.started(service.log)
  await serveStdio({ ...service, signal: stop })
}

async function serveOverHttp(options: HttpOptions, stop: AbortSignal, announce: Announcer): Promise<void> {
  const { serveHttp } = await import('../server/index.ts')
  relaxHeap()
  const running = await serveHttp(options).catch((error: unknown) => {
    // A port that is taken is no fault of the command line.
    if (isResourceError(error, 'invalid')) throw failed(`${error.message}${adviceOn(error.detail.reason)}`)
    throw error
  })
  announce.listening(running.url, options.pages === undefined ? undefined : pageOf(running.url))
  await new Promise<void>((resolve) => {
    if (stop.aborted) resolve()
    stop.addEventListener('abort', () => resolve())
  })
  await running.close()
}

function httpOptions({ config }: Local, { allowHost = [], tokens, insecure = false }: ServeOptions) {
  const { listen: _, auth: __, explorer: ___, allowedHosts = [], ...rest } = config?.http ?? {}
  const auth = tokens === undefined ? config?.auth : { ...config?.auth, tokens: resolve(tokens) }
  return {
    ...rest,
    allowedHosts: [...allowedHosts, ...allowHost],
    insecure,
    ...(auth === undefined ? {} : { auth }),
  }
}

/** Over stdio nobody is asked for a token: whoever starts the process is trusted. That must be what is meant. */
function refuseUnasked({ config }: Local, { stdio, tokens }: ServeOptions, listen: Listen | undefined): void {
  if (listen !== undefined || stdio || (config?.auth === undefined && tokens === undefined)) return
  throw misused(
    'Tokens are asked for over HTTP, and nothing says where to listen. Set http.listen or give --http, or say --stdio to serve whoever starts this.',
  )
}

function adviceOn(reason: string | number | undefined): string {
  if (reason === 'listen') return ' Choose another one: --http 0 takes any that is free.'
  if (reason === 'insecure') return ' Or give --tokens FILE. To serve everybody who can reach it: --insecure.'
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
    if (config.provider !== 'files' && config.provider !== 'settings') continue
    const root = resolveFolder(config.root, folder)
    if (root === parse(root).root || root === homedir())
      log('warn', 'a whole file system or home folder is served', { mount: address, root })
  }
}
