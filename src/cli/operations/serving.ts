import { parse, resolve } from 'node:path'
import type { MountedCatalog } from '../../config/build.ts'
import { createGuide, withOverview } from '../../config/overview.ts'
import { abilitiesOf, folderOption, hasWriters, mountSource, searchesOf, withMountedSkills } from '../../config/plan.ts'
import { createProfileFinder } from '../../config/profiles.ts'
import { createWriteAccess, postPathPrefix, type WriteAccess } from '../../config/writing.ts'
import { createReadingCaches } from '../../context/memory.ts'
import { withAssemblePrompt } from '../../context/prompt.ts'
import { callerKey, createAssembleTool, createAssembleTurns } from '../../context/tool.ts'
import { isResourceError } from '../../core/errors.ts'
import { homeFolder } from '../../core/kit/home.ts'
import { defined } from '../../core/kit/object.ts'
import { createMetricsRegistry, type Log } from '../../core/log.ts'
import { createOpeningViews, createPendingOpen, type PendingOpen, type ViewFactory } from '../../core/opening.ts'
import type { Principal } from '../../core/provider.ts'
import type { Tool } from '../../core/tool.ts'
import { isLoopback } from '../../core/uri.ts'
import type { View } from '../../core/view.ts'
import { createExplorerApp } from '../../explorer/app.ts'
import type { PageHandler } from '../../explorer/index.ts'
import { sources } from '../../providers/index.ts'
import { isInside, type ListenAddress, resolveConfigPath } from '../../schema/values.ts'
import type { ContentLinkOptions, HttpOptions, ServeOptions as StdioOptions } from '../../server/index.ts'
import { changedTools } from '../../server/tools/index.ts'
import { commandFailure } from '../terminal/exit.ts'
import { pluralize } from '../terminal/io.ts'
import type { logFormats, logLevels } from '../terminal/log.ts'
import { httpInstructions, packageVersion, type ServerToAdd, stdioInstructions } from './command-line.ts'
import type { LocalSetUp } from './local.ts'
import { formatEffects, trustCommand } from './withheld.ts'

interface AnnouncerOptions {
  readonly say: (text: string) => void
  readonly log: Log | undefined
  readonly server: ServerToAdd
  readonly addresses: readonly string[]
  readonly assumed: boolean
}

const noConfig = 'the current folder has no hikidashi.json, so the folder itself is served'

export function createAnnouncer({ say, log, server, addresses, assumed }: AnnouncerOptions) {
  const sentences = (where: string, ...more: readonly string[]) => {
    const headline = `hikidashi ${packageVersion()} serves ${pluralize(addresses.length, 'mount')} ${where}`
    const mounts = addresses.map((address) => `  ${address}`)
    say([...(assumed ? [`Note: ${noConfig}.`] : []), headline, ...mounts, ...more].join('\n'))
  }
  const event = (to: Log, message: string, fields: Readonly<Record<string, unknown>>) => {
    if (assumed) to('info', noConfig)
    to('info', message, { ...fields, mounts: addresses })
  }
  const started = (to: Log) => event(to, 'serving on stdio', {})
  return {
    /** For a server on stdio that a host has started. */
    started,
    /** For a server on stdio that a person has started. */
    waiting: () => {
      if (log !== undefined) return started(log)
      const ends = 'Or serve it over HTTP: --http 8787. Ctrl-C stops it.'
      sentences('on stdin and stdout, and waits for a client', '', stdioInstructions(server), '', ends)
    },
    /**
     * @param clientUrl The URL for clients, which may be that of a proxy.
     * @param page The URL of the explorer, if there is one.
     */
    listening: (url: string, clientUrl: string, page: string | undefined) => {
      if (log !== undefined) return event(log, 'serving over HTTP', { url, ...defined({ page }) })
      const explore = page === undefined ? [] : ['', `Explore it in a browser: ${page}`]
      sentences(`at ${url}`, ...explore, '', httpInstructions({ ...server, url: clientUrl }), '', 'Ctrl-C stops it.')
    },
  }
}

interface ServedLater
  extends Pick<StdioOptions, 'view' | 'profileOf' | 'guide' | 'readingTools' | 'explorerApp' | 'tools'>,
    Pick<HttpOptions, 'postings' | 'llms'> {
  readonly opening: PendingOpen<MountedCatalog>
}

/** Prepares the service without opening its mounts. The description of the server comes from the configuration. */
export function prepareService(local: LocalSetUp, open: () => Promise<MountedCatalog>, log: Log): ServedLater {
  const { config, mounts } = local
  let writing: WriteAccess | undefined
  const opening = createPendingOpen(async () => {
    const catalog = await open()
    writing = createWriteAccess(catalog)
    for (const { provider } of searchesOf(catalog)) provider.feed()
    return catalog
  })
  const context = contextFor(local, createOpeningViews(opening, abilitiesOf(mounts)))
  const name = config?.name ?? 'hikidashi'
  const sources = { name, mounts, opened: () => opening.opened }
  const overseen = config?.overview === false ? context : withOverview(context, sources)
  const views = withMountedSkills(overseen, mounts, log)
  return {
    opening,
    view: views.view,
    profileOf: createProfileFinder(config?.clients, views),
    guide: createGuide(mounts),
    llms: async (principal, endpoint) => {
      const { writeLlms } = await import('../../config/overview-text.ts')
      return writeLlms(sources, principal, endpoint)
    },
    readingTools: context.tools,
    explorerApp: createExplorerApp(),
    ...(hasWriters(mounts)
      ? {
          tools: (principal) => writing?.tools(principal) ?? [],
          postings: { under: postPathPrefix, at: (path, principal) => writing?.postingAt(path, principal) },
        }
      : {}),
  }
}

function contextFor(
  { config }: LocalSetUp,
  catalog: ViewFactory,
): ViewFactory & { tools(view: View): readonly Tool[] } {
  const turns = createAssembleTurns()
  const memoryOf = createReadingCaches()
  const hasPrompt = config?.context?.prompt ?? true
  const withPrompt = (view: View, principal: Principal) =>
    hasPrompt ? withAssemblePrompt(view, { turns, share: principal.id, memory: memoryOf(callerKey(principal)) }) : view
  return {
    view: (principal) => withPrompt(catalog.view(principal), principal),
    narrowed: (narrowing) => {
      const viewOf = catalog.narrowed(narrowing)
      return (principal) => withPrompt(viewOf(principal), principal)
    },
    tools: (view) => [createAssembleTool(view, { turns, memoryOf }), ...changedTools(view)],
  }
}

export interface ServeCommandOptions {
  readonly config?: string
  readonly stdio?: true
  readonly http?: ListenAddress
  readonly name?: string
  readonly allowHost?: readonly string[]
  readonly tokens?: string
  readonly insecure?: boolean
  readonly only?: 'files'
  readonly replica?: string
  readonly strict?: true
  readonly share: boolean
  readonly logLevel: (typeof logLevels)[number]
  readonly logFormat: (typeof logFormats)[number]
}

export function httpOptions(
  { config }: LocalSetUp,
  { allowHost = [], tokens, insecure = false, replica }: ServeCommandOptions,
) {
  const { listen: _, auth: __, explorer: ___, contentLinks = {}, allowedHosts = [], ...rest } = config?.http ?? {}
  const auth = tokens === undefined ? config?.auth : { ...config?.auth, tokens: resolve(tokens) }
  return {
    ...rest,
    contentLinks: contentLinks === false ? contentLinks : linkOptions(contentLinks, config),
    allowedHosts: [...allowedHosts, ...allowHost],
    insecure,
    ...defined({ auth, replica }),
  }
}

/** The secrets of cursors also sign the links. */
function linkOptions({ lifetime }: { readonly lifetime?: number }, config: LocalSetUp['config']): ContentLinkOptions {
  const { cursorSecret, earlierCursorSecrets = [] } = config ?? {}
  return {
    ...defined({ lifetimeMs: lifetime }),
    ...(cursorSecret === undefined ? {} : { secret: Buffer.from(cursorSecret) }),
    earlierSecrets: earlierCursorSecrets.map((secret) => Buffer.from(secret)),
  }
}

export function tokenFileOption(auth: { readonly tokens?: string } | undefined): { readonly tokens?: string } {
  return auth?.tokens === undefined ? {} : { tokens: auth.tokens }
}

/**
 * @throws CommandError if a setting that protects the service is left out: `audit`, or `http` unless `--stdio` is given
 */
export function refuseWithheld({ config }: LocalSetUp, { stdio }: ServeCommandOptions): void {
  const requiredParts = ['audit', ...(stdio ? [] : ['http'])]
  const missing = config?.withheld.find(({ part, name }) => part === 'setting' && requiredParts.includes(name))
  if (config === undefined || missing === undefined) return
  throw commandFailure(
    `"${missing.name}" is left out (${formatEffects(missing)}), and hikidashi does not serve without it. If you trust this configuration: ${trustCommand(config.file)}`,
  )
}

/**
 * The loader of a configuration checks `http.auth.tokens`. @throws CommandError if a mount serves the token file of
 * `--tokens`
 */
export async function refuseServedTokens({ mounts }: LocalSetUp, { tokens }: ServeCommandOptions): Promise<void> {
  if (tokens === undefined) return
  const [{ servedFolderPath }, { servedFileFinding }] = await Promise.all([
    import('../../config/open-mount.ts'),
    import('../../config/problem.ts'),
  ])
  const file = resolve(tokens)
  const serving = mounts.find((mount) => {
    const folder = servedFolderPath(mount)
    return folder !== undefined && isInside(file, folder)
  })
  if (serving === undefined) return
  const { message, fix } = servedFileFinding([], `The token file ${file}`, serving.address)
  throw commandFailure(`${message} ${fix}`)
}

/**
 * Returns a sentence about the options of `serve` that correct a refused option of the HTTP server; empty if there are
 * none.
 */
export function optionAdvice(option: string | number | undefined): string {
  if (option === 'listen') return ' Choose another address: --http 0 takes a free port of the loopback interface.'
  if (option === 'insecure') return ' Or give --tokens FILE. To serve everybody who can reach the server: --insecure.'
  return option === 'allowedHosts' ? ' Or name the hosts here: --allow-host NAME.' : ''
}

/** Returns the arguments with which a host starts the same service over stdio. */
export function serveArguments(
  folders: readonly string[],
  { name, only, strict }: ServeCommandOptions,
  local: LocalSetUp,
): readonly string[] {
  return [
    'serve',
    ...(local.assumed ? [resolve('.')] : folders.map((folder) => resolve(folder))),
    ...(local.config === undefined ? [] : ['--config', local.config.file]),
    ...(name === undefined ? [] : ['--name', name]),
    ...(only === undefined ? [] : ['--only', only]),
    ...(strict ? ['--strict'] : []),
    '--stdio',
  ]
}

/**
 * Returns a function that tells whether a server that starts now would serve other mounts or settings. With a source
 * from outside hikidashi the answer is yes, because its code may have changed. If the check fails, the answer is no.
 */
export function createOutdatedCheck(local: LocalSetUp, plan: () => Promise<LocalSetUp>): () => Promise<boolean> {
  const textOf = async ({ config, mounts, complete }: LocalSetUp) =>
    JSON.stringify([config, (await complete?.()) ?? mounts])
  const hasOutside = local.mounts.some(({ config }) => !Object.hasOwn(sources, config.provider))
  const check = async () => {
    if (hasOutside) return true
    try {
      return (await textOf(await plan())) !== (await textOf(local))
    } catch {
      return false
    }
  }
  let running: Promise<boolean> | undefined
  return () => {
    running ??= check().finally(() => {
      running = undefined
    })
    return running
  }
}

export function warnOfLargeFolders({ mounts }: LocalSetUp, log: Log): void {
  for (const { address, config, folder } of mounts) {
    const folderName = mountSource(config).folder?.prefix === undefined ? folderOption(config) : undefined
    if (folderName === undefined) continue
    const root = resolveConfigPath(folderName, folder)
    if (root === parse(root).root || root === homeFolder())
      log('warn', 'a whole file system or home folder is served', { mount: address, root })
  }
}

export function warnOfMachineLimits({ withoutGit = [] }: Pick<LocalSetUp, 'withoutGit'>, log: Log): void {
  for (const folder of withoutGit)
    log('warn', 'the git history of the folder is not served: git is not on the PATH', { folder })
  const { deno } = process.versions
  if (deno === undefined) return
  const lacking = 'databases of SQLite are not served, and a change that keeps the time of a file may be missed'
  log('warn', `this is Deno ${deno}, not Node: ${lacking}`)
}

/**
 * Returns `undefined` if the server has no explorer. @throws CommandError if the configuration demands an explorer that
 * cannot be served
 */
export async function openExplorerPage(
  { explorer, path = '/mcp' }: { readonly explorer?: boolean; readonly path?: string } = {},
  { host }: { readonly host: string },
  log: Log,
): Promise<PageHandler | undefined> {
  if (!(explorer ?? isLoopback(host))) return undefined
  // The path of the page would be the path of the MCP endpoint.
  if (path.endsWith('/')) {
    if (explorer)
      throw commandFailure(
        `The explorer cannot be served while http.path is "${path}". End the path with a name, such as "/mcp".`,
      )
    return undefined
  }
  const { createPageHandler } = await import('../../explorer/index.ts')
  try {
    return await createPageHandler({ path })
  } catch (error) {
    if (!isResourceError(error)) throw error
    if (explorer) throw commandFailure(error.message)
    log('warn', 'the explorer is not served', { reason: error.message })
    return undefined
  }
}

/**
 * Returns the URL by which clients reach a server that listens at `url`: beyond the loopback interface, that of the
 * first allowed host. For a host without a port, a proxy with TLS is assumed, unless the server listens at port 80.
 */
export function clientUrlOf(url: string, { host, allowedHosts: [named] = [] }: HttpOptions): string {
  if (isLoopback(host) || named === undefined) return url
  const { port, pathname } = new URL(url)
  return `${/:\d+$/.test(named) || port === '' ? 'http' : 'https'}://${named}${pathname}`
}

/** The explorer is beside the MCP endpoint `url`. */
export function explorerUrlOf(url: string): string {
  return url.slice(0, url.lastIndexOf('/') + 1)
}

/**
 * Measures this process until `end` is called. Returns `undefined` if neither a mount nor `/metrics` serves the
 * measurements.
 */
export async function startMeasuring({ config, mounts }: LocalSetUp) {
  const { metrics = false } = config?.http ?? {}
  const isMounted = mounts.some(({ config: mount }) => mountSource(mount).isMeasuring?.(mount) === true)
  if (metrics === false && !isMounted) return undefined
  const { measureProcess } = await import('../../providers/metrics/index.ts')
  const { measure, end } = measureProcess()
  const measurements = createMetricsRegistry()
  const labels = { version: packageVersion(), node: process.version }
  const help = 'The version of hikidashi, and the version of Node that runs it.'
  measurements.add(measure)
  measurements.add(() => [{ name: 'hikidashi_build_info', type: 'gauge', help, samples: [{ labels, value: 1 }] }])
  return { measurements, end }
}
