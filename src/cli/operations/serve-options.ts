import { homedir } from 'node:os'
import { parse, resolve } from 'node:path'
import { isResourceError } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import { createMeasurements, type Log, type Measurements } from '../../core/log.ts'
import { isLoopback } from '../../core/uri.ts'
import type { Page } from '../../explorer/index.ts'
import { type Listen, resolveFolder } from '../../schema/values.ts'
import type { ContentLinkOptions } from '../../server/index.ts'
import { failed, misused } from '../terminal/exit.ts'
import type { logFormats, logLevels } from '../terminal/log.ts'
import { packageVersion } from './command-line.ts'
import type { Local } from './local.ts'
import { reasonsOf, trustCommand } from './withheld.ts'

export interface ServeOptions {
  readonly config?: string
  readonly stdio?: true
  readonly http?: Listen
  readonly name?: string
  readonly allowHost?: readonly string[]
  readonly tokens?: string
  readonly insecure?: boolean
  readonly only?: 'files'
  readonly replica?: string
  readonly strict?: true
  readonly logLevel: (typeof logLevels)[number]
  readonly logFormat: (typeof logFormats)[number]
}

export function httpOptions({ config }: Local, { allowHost = [], tokens, insecure = false, replica }: ServeOptions) {
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

/** Links are signed with the secrets of cursors, if there are any. */
function linkOptions({ lifetime }: { readonly lifetime?: number }, config: Local['config']): ContentLinkOptions {
  const { cursorSecret, earlierCursorSecrets = [] } = config ?? {}
  return {
    ...defined({ lifetimeMs: lifetime }),
    ...(cursorSecret === undefined ? {} : { secret: Buffer.from(cursorSecret) }),
    earlierSecrets: earlierCursorSecrets.map((secret) => Buffer.from(secret)),
  }
}

/** The file of tokens that clients over HTTP need, if they do. */
export function tokensOf(auth: { readonly tokens?: string } | undefined): { readonly tokens?: string } {
  return auth?.tokens === undefined ? {} : { tokens: auth.tokens }
}

/** Settings that protect the service must not be left out silently: without them, nothing that they protect is served. */
export function refuseWithheld({ config }: Local, { stdio }: ServeOptions): void {
  const needed = ['audit', ...(stdio ? [] : ['http'])]
  const missing = config?.withheld.find(({ part, name }) => part === 'setting' && needed.includes(name))
  if (config === undefined || missing === undefined) return
  throw failed(
    `"${missing.name}" is left out (${reasonsOf(missing)}), and hikidashi serves nothing without it. If you trust this configuration: ${trustCommand(config.file)}`,
  )
}

/** Tokens have no effect over stdio, where the starting program is trusted. So the user must choose stdio explicitly. */
export function refuseUnasked({ config }: Local, { stdio, tokens }: ServeOptions, listen: Listen | undefined): void {
  if (listen !== undefined || stdio || (config?.auth === undefined && tokens === undefined)) return
  throw misused(
    'Tokens are for HTTP, but no address is given. Set http.listen or give --http; or give --stdio to serve the program that starts this.',
  )
}

export function adviceOn(reason: string | number | undefined): string {
  if (reason === 'listen') return ' Choose another one: --http 0 takes any that is free.'
  if (reason === 'insecure') return ' Or give --tokens FILE. To serve everybody who can reach it: --insecure.'
  return reason === 'allowed-hosts' ? ' Or name them here: --allow-host NAME.' : ''
}

/** The command line by which a host starts the same service. */
export function argumentsFor(
  folders: readonly string[],
  { name, only, strict }: ServeOptions,
  local: Local,
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

export function warnOfLargeFolders({ mounts }: Local, log: Log): void {
  for (const { address, config, folder } of mounts) {
    if (config.provider !== 'files' && config.provider !== 'settings') continue
    const root = resolveFolder(config.root, folder)
    if (root === parse(root).root || root === homedir())
      log('warn', 'a whole file system or home folder is served', { mount: address, root })
  }
}

/** Settings of the page in a configuration. */
interface PageSettings {
  readonly explorer?: boolean
  readonly path?: string
}

/** The page of a service over HTTP. `undefined`: it has none. */
export async function openPage(
  { explorer, path = '/mcp' }: PageSettings = {},
  { host }: { readonly host: string },
  log: Log,
): Promise<Page | undefined> {
  if (!(explorer ?? isLoopback(host))) return undefined
  // The MCP endpoint already has the path of the page.
  if (path.endsWith('/')) {
    if (explorer) throw failed(`The explorer cannot be served if http.path is "${path}": let the path end with a name.`)
    return undefined
  }
  const { createPage } = await import('../../explorer/index.ts')
  try {
    return await createPage({ path })
  } catch (error) {
    if (!isResourceError(error)) throw error
    if (explorer) throw failed(error.message)
    log('warn', 'the explorer is not served', { reason: error.message })
    return undefined
  }
}

/** The address of the page beside an MCP endpoint. */
export function pageOf(url: string): string {
  return url.slice(0, url.lastIndexOf('/') + 1)
}

/** Growth of the heap between two full collections, in percent of the live data. */
const growth = 100

/**
 * Lets the heap of a server grow to twice its live size before the next full garbage collection. By default V8 lets a small heap grow
 * by about a third, which means a collection every three seconds at 200 reads a second; requests at that moment take several times
 * as long. The limit of `--max-old-space-size` still holds.
 */
export function relaxHeap(): void {
  process.getBuiltinModule('node:v8').setFlagsFromString(`--heap-growing-percent=${growth}`)
}

/** Measurements of this process, until `end` is called. */
interface Measuring {
  readonly measurements: Measurements
  end(): void
}

/** Measures this process, if a mount or `/metrics` serves the measurements. */
export async function startMeasuring({ config, mounts }: Local): Promise<Measuring | undefined> {
  const { metrics = false } = config?.http ?? {}
  const isMounted = mounts.some(({ config: mount }) => mount.provider === 'metrics' && mount.source === 'self')
  if (metrics === false && !isMounted) return undefined
  const { measureProcess } = await import('../../providers/metrics/index.ts')
  const { measure, end } = measureProcess()
  const measurements = createMeasurements()
  const labels = { version: packageVersion(), node: process.version }
  const help = 'Which hikidashi this is, on which Node.'
  measurements.add(measure)
  measurements.add(() => [{ name: 'hikidashi_build_info', type: 'gauge', help, samples: [{ labels, value: 1 }] }])
  return { measurements, end }
}
