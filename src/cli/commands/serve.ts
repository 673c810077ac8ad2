import type { Socket } from 'node:net'
import { resolve } from 'node:path'
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { MountedCatalog } from '../../config/build.ts'
import { isResourceError } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import { doneOnce } from '../../core/kit/once.ts'
import type { Log } from '../../core/log.ts'
import type { PendingOpen } from '../../core/opening.ts'
import type { Scrubber } from '../../core/scrub.ts'
import { type ListenAddress, parseListenAddress } from '../../schema/values.ts'
import type { Audit, AuditFile, HttpOptions, ServeOptions as Service } from '../../server/index.ts'
import { sendConsoleTo } from '../../server/stdio/console.ts'
import { serveStdio } from '../../server/stdio/serve-stdio.ts'
import { ownCommand, packageVersion, toHostServerName } from '../operations/command-line.ts'
import { boundHeap } from '../operations/heap.ts'
import { createLocalScopeFinder, type LocalSetUp, openLocalCatalog, requireLocalSetUp } from '../operations/local.ts'
import {
  clientUrlOf,
  createAnnouncer,
  createOutdatedCheck,
  explorerUrlOf,
  httpOptions,
  openExplorerPage,
  optionAdvice,
  prepareService,
  refuseServedTokens,
  refuseWithheld,
  type ServeCommandOptions,
  serveArguments,
  startMeasuring,
  tokenFileOption,
  warnOfLargeFolders,
  warnOfMachineLimits,
} from '../operations/serving.ts'
import {
  collectValues,
  commandFailure,
  exitCodeHelp,
  installStopHandlers,
  rethrowAsFailure,
  type StopHandlers,
  usageError,
} from '../terminal/exit.ts'
import { type Io, standardError, writeError } from '../terminal/io.ts'
import { createLog, logFormats, logLevels } from '../terminal/log.ts'

/** Time in milliseconds after which a server on stdio opens its mounts even if it has not answered its client yet. */
const latestOpeningMs = 250

export function define(command: Command, io: Io): void {
  command
    .description(
      `Serves folders, or the mounts of a configuration, to MCP clients. Without either: hikidashi.json in the current folder,
else the current folder. Over stdio, unless --http or http.listen in the configuration says otherwise.

A folder is served with its files, its git history, its settings (secrets redacted), its prompts, its SQLite databases, and a
search over its documents, if it has them. Its files are at file:// and its absolute path, so that a host on this machine can
open them. With a configuration, only its mounts are served; hikidashi init writes these mounts into one.`,
    )
    .argument('[dir...]', 'folders to serve')
    .option('--config <file>', 'serve the mounts of this configuration')
    .option('--name <name>', 'serve a single folder at file:///NAME instead of its absolute path')
    .addOption(new Option('--stdio', 'serve one client over stdin and stdout').conflicts('http'))
    .addOption(
      new Option('--http <[host:]port>', 'serve many clients over HTTP; port 0 is any free port')
        .argParser(parseHttp)
        .conflicts('stdio'),
    )
    .option(
      '--allow-host <host>',
      'accept this value of the Host header: a host with its port, unless the port is 80 or 443 (repeatable)',
      addHost,
    )
    .option(
      '--tokens <file>',
      'over HTTP, serve only callers with a token: of this file (see hikidashi token) or of the configured issuers',
    )
    .option('--insecure', 'serve other machines without authentication')
    .addOption(
      new Option('--only <part>', 'serve only the files of the folders, without hikidashi.json').choices(['files']),
    )
    .addOption(
      new Option(
        '--replica <name>',
        'begin the ids of sessions with this name, by which a proxy finds the replica of a session',
      ).argParser(parseReplica),
    )
    .option('--no-share', 'over stdio: serve in a process of its own, which no other host and no hook uses')
    .option('--strict', 'open every mount at the start, and end if one cannot be opened')
    .addOption(new Option('--log-level <level>', 'the log level for stderr').choices(logLevels).default('info'))
    .addOption(new Option('--log-format <format>', 'the format of the log').choices(logFormats).default('text'))
    .addHelpText(
      'after',
      `
On SIGTERM and SIGINT (Ctrl-C) the server answers the requests in flight, and ends. A second signal ends it at once.

Examples:
  hikidashi serve . --http 8787
  hikidashi serve ~/notes ~/work/docs --stdio
  hikidashi serve . --http 0.0.0.0:8787 --allow-host context.example.org:8787 --tokens ~/.hikidashi-tokens.json
${exitCodeHelp}`,
    )
    .action((folders: readonly string[], options: ServeCommandOptions) => serve(folders, options, io))
}

function parseHttp(value: string): ListenAddress {
  const listen = parseListenAddress(value)
  if (listen === undefined) throw new InvalidArgumentError('Give a port, or HOST:PORT such as 127.0.0.1:8787.')
  return listen
}

/** A Host header contains no URL. */
function addHost(value: string, hosts: readonly string[] = []): readonly string[] {
  if (/^[^/\s]+$/.test(value)) return collectValues(value, hosts)
  throw new InvalidArgumentError('Give NAME or NAME:PORT, such as context.example.org:8787.')
}

function parseReplica(value: string): string {
  if (/^[a-z0-9-]{1,32}$/.test(value)) return value
  throw new InvalidArgumentError('Give a name of up to 32 characters of a-z, 0-9 and "-".')
}

function refuseUnasked({ config }: LocalSetUp, options: ServeCommandOptions, listen: ListenAddress | undefined): void {
  if (listen !== undefined && !options.share)
    throw usageError('--no-share is only for stdio, because over HTTP one server serves every client. Leave it out.')
  if (listen !== undefined) return
  const { stdio, tokens, allowHost, insecure, replica } = options
  for (const [option, value] of Object.entries({
    '--allow-host': allowHost,
    '--insecure': insecure,
    '--replica': replica,
  }))
    if (value !== undefined)
      throw usageError(
        `${option} is only for HTTP, but this command would serve over stdio. Give --http, or leave out ${option}.`,
      )
  if (stdio || (config?.auth === undefined && tokens === undefined)) return
  throw usageError(
    'Tokens are only for HTTP, but no address is given. Set http.listen or give --http; or give --stdio to serve the program that starts this command.',
  )
}

async function serve(folders: readonly string[], options: ServeCommandOptions, io: Io): Promise<void> {
  const { secrets, sharing } = io
  const { logLevel: level, logFormat: format } = options
  const log = createLog({ level, format, write: writeError, scrubber: secrets })
  const say = format === 'json' ? (text: string) => log('warn', text) : io.say
  const plan = (io: Parameters<typeof requireLocalSetUp>[1]) => requireLocalSetUp({ ...options, folders }, io)
  const planned = await plan({ secrets, say })
  const local = { ...planned, ...(planned.complete && { complete: doneOnce(planned.complete) }) }
  refuseWithheld(local, options)
  const listen = options.stdio ? undefined : (options.http ?? local.config?.http?.listen)
  refuseUnasked(local, options, listen)
  await refuseServedTokens(local, options)
  // On stdio, stdout belongs to the protocol.
  if (listen === undefined) sendConsoleTo(standardError)
  const stop = installStopHandlers(log)
  warnOfLargeFolders(local, log)
  warnOfMachineLimits(local, log)
  const scopesOf = createLocalScopeFinder(local)
  const auditFile = await openAudit(local, log, secrets)
  const measuring = await startMeasuring(local)
  const { opening, ...served } = prepareService(
    local,
    async () => {
      const catalog = await openLocalCatalog(local, log, secrets, {
        strict: options.strict ?? false,
        ...defined({ ownCursorSecret: sharing?.cursorSecret }),
        ...(measuring === undefined ? {} : { measurements: measuring.measurements }),
      })
      void import('../operations/indexing.ts').then(({ reportIndexing }) =>
        reportIndexing(catalog, { io, log, isStructured: format === 'json', signal: stop.signal }),
      )
      return catalog
    },
    log,
  )
  const { name = 'hikidashi', instructions, experimental } = local.config ?? {}
  const service: Service = {
    ...served,
    opening,
    name,
    version: packageVersion(),
    log,
    scrubber: secrets,
    principal: local.principal,
    ...(auditFile === undefined ? {} : { audit: auditFile.write }),
    ...defined({ instructions, resourceOperations: experimental?.resourceOperations }),
  }
  const events = await openEvents(local, log, service.audit, secrets, listen !== undefined)
  const announce = createAnnouncer({
    log: format === 'json' ? log : undefined,
    say: io.say,
    server: {
      name: toHostServerName(name),
      command: ownCommand(serveArguments(folders, options, local)),
      ...tokenFileOption(httpOptions(local, options).auth),
    },
    addresses: local.mounts.map(({ address }) => address),
    assumed: local.assumed,
  })
  try {
    if (listen === undefined)
      await serveOverStdio({ ...service, events: events.options }, opening, stop.signal, announce, {
        local,
        isOutdated: createOutdatedCheck(local, () => plan({ secrets, say: () => {} })),
        io,
      })
    else {
      const pages = await openExplorerPage(local.config?.http, listen, log)
      await serveOverHttp(
        {
          ...service,
          events: events.options,
          ...httpOptions(local, options),
          ...listen,
          ...defined({ pages }),
          degraded: () => opening.opened?.degraded() ?? [],
          scopesOf,
          ...(measuring === undefined ? {} : { measurements: measuring.measurements }),
        },
        opening,
        stop,
        announce,
      )
    }
  } finally {
    if (opening.isStarted)
      await opening.start().then(
        ({ close }) => close(),
        () => {},
      )
    measuring?.end()
    await events.close()
    await auditFile?.close()
    stop.done()
  }
}

async function openEvents(
  { config }: LocalSetUp,
  log: Log,
  audit: Audit | undefined,
  { scrub }: Scrubber,
  isHttp: boolean,
) {
  const { dialect = 'sep', webhooks: settings } = config?.events ?? {}
  if (config === undefined || settings === undefined || !isHttp) return { options: { dialect }, close: async () => {} }
  const [{ createWebhooks }, { createDeliveries }, { createSubscriptionKeeper }, { createLazyStore }] =
    await Promise.all([
      import('../../server/webhooks/index.ts'),
      import('../../config/deliveries.ts'),
      import('../../config/subscriptions.ts'),
      import('../../providers/source.ts'),
    ])
  const store = createLazyStore(config.store, log)
  const deliveries = createDeliveries(store, log)
  const keeper = createSubscriptionKeeper({ store, config, log })
  const { allowAddresses, lifetime, perPrincipal, total } = settings
  const webhooks = createWebhooks({
    ...{ dialect, log, audit, clean: scrub, onDelivery: deliveries.add, keeper },
    ...defined({ allowAddresses, maxLifetimeMs: lifetime, maxPerPrincipal: perPrincipal, maxTotal: total }),
  })
  const close = async () => {
    webhooks.close()
    await Promise.all([deliveries.close(), keeper.close()])
    await store.close()
  }
  return { options: { dialect, webhooks }, close }
}

async function openAudit({ config }: LocalSetUp, log: Log, scrubber: Scrubber): Promise<AuditFile | undefined> {
  if (config?.audit === undefined) return undefined
  const { openAuditFile } = await import('../../server/telemetry/audit-file.ts')
  const { file, ...options } = config.audit
  return openAuditFile({ ...options, file: resolve(config.folder, file), scrubber, log }).catch(rethrowAsFailure)
}

/**
 * Opens the mounts after the first answer is written, so that the client does not wait for them: at the latest after
 * {@link latestOpeningMs}, or at the end of the input.
 */
async function serveOverStdio(
  service: Service,
  opening: PendingOpen<MountedCatalog>,
  stop: AbortSignal,
  announce: ReturnType<typeof createAnnouncer>,
  {
    local,
    isOutdated,
    io,
  }: { readonly local: LocalSetUp; readonly isOutdated: () => Promise<boolean>; readonly io: Io },
): Promise<void> {
  const { sharing, secrets } = io
  const failure = new AbortController()
  const open = doneOnce(async () => {
    boundHeap()
    void opening.start().then(
      () => (process.stdin.isTTY ? announce.waiting() : announce.started(service.log)),
      () => failure.abort(),
    )
  })
  const timer = setTimeout(open, latestOpeningMs)
  const signal = AbortSignal.any([stop, failure.signal])
  const leaveIfOutdated = async () => {
    if (!(await isOutdated())) return false
    service.log(
      'info',
      'the sources of the folder have changed since the start: other processes no longer share this process',
    )
    sharing?.leave()
    return true
  }
  const serveClient = (socket: Socket) =>
    void import('../operations/joined.ts').then(({ serveOtherProcess }) =>
      serveOtherProcess(
        socket,
        { ...service, signal },
        {
          ...{ opening, secrets, isOutdated: leaveIfOutdated },
          hook: local.config?.context?.hook,
        },
      ),
    )
  sharing?.onClient(serveClient)
  await serveStdio({ ...service, ...sharing?.own, onFirstAnswer: open, signal })
  clearTimeout(timer)
  if (stop.aborted) return
  await open()
  // This throws if the mounts could not be opened, which ends the process.
  await opening.start()
}

async function serveOverHttp(
  options: HttpOptions,
  opening: PendingOpen<MountedCatalog>,
  { signal, stopped }: StopHandlers,
  announce: ReturnType<typeof createAnnouncer>,
): Promise<void> {
  const { serveHttp } = await import('../../server/http/serve-http.ts')
  boundHeap()
  const running = await serveHttp(options).catch((error: unknown) => {
    // A port in use is not a fault of the command line.
    if (isResourceError(error, 'invalid')) throw commandFailure(`${error.message}${optionAdvice(error.detail.option)}`)
    throw error
  })
  try {
    await Promise.race([opening.start(), stopped])
    const { url } = running
    if (!signal.aborted)
      announce.listening(url, clientUrlOf(url, options), options.pages === undefined ? undefined : explorerUrlOf(url))
    await Promise.race([
      opening
        .start()
        .then(openAll)
        .then(() => stopped),
      stopped,
    ])
  } finally {
    await running.close()
  }
}

/** Opens the mounts, so that the log names those that cannot be opened. @throws CommandError if none can be opened */
async function openAll(catalog: MountedCatalog): Promise<void> {
  const broken = await catalog.openAll()
  if (broken.length > 0 && broken.length === catalog.mounts.length)
    throw commandFailure(`No mount can be opened: ${broken.join(', ')}. The log above tells why.`)
}
