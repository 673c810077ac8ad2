import { statSync } from 'node:fs'
import { dirname, parse, relative, resolve, sep } from 'node:path'
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { ServerTarget } from '../../client/index.ts'
import { folderOption, type PlannedMount, servesFiles } from '../../config/plan.ts'
import type { WithheldPart } from '../../config/untrusted.ts'
import type { Catalog } from '../../core/catalog.ts'
import { isResourceError, type ResourceError } from '../../core/errors.ts'
import { iteratePages } from '../../core/kit/groups.ts'
import { defined } from '../../core/kit/object.ts'
import type { Log } from '../../core/log.ts'
import { decodeIfValid, fileAddress, formatUri, parseAddress } from '../../core/uri.ts'
import type { Resource, View } from '../../core/view.ts'
import { nearestWord } from '../../schema/refusals.ts'
import { isInside, realPath, resolveConfigPath } from '../../schema/values.ts'
import { CommandError, exitCodes, usageError } from '../terminal/exit.ts'
import type { Io } from '../terminal/io.ts'
import { createTextLog, logLevels } from '../terminal/log.ts'
import { createProgress } from '../terminal/progress.ts'
import type { Secrets } from '../terminal/secrets.ts'
import { cleanView } from './clean-view.ts'
import { splitCommand } from './command-line.ts'
import { addHeaderOptions, type HeaderOptions, headersOf, requireUrlForHeaders } from './headers.ts'
import { type LocalOptions, openLocalCatalog, requireLocalSetUp } from './local.ts'

export interface SourceOptions extends Omit<LocalOptions, 'name'>, HeaderOptions {
  readonly url?: string
  readonly command?: string
  readonly remote?: string
  readonly logLevel: (typeof logLevels)[number]
}

export interface CommandSource {
  readonly view: View
  readonly catalog?: Catalog
  /** The local mounts; empty for a server. */
  readonly mounts: readonly PlannedMount[]
  /** Parts of the local configuration that are left out because it is not trusted. */
  readonly withheld: readonly WithheldPart[]
  readonly name?: string
  /** Resolves with the reason when the connection to a server is over for good. */
  readonly over: Promise<ResourceError>
  /** Returns the URI for an argument of the user: a URI, or a path of this machine. */
  uriOf(argument: string): string
  close(): Promise<void>
}

export function addSourceOptions(command: Command): Command {
  command
    .option('--config <file>', 'use this configuration; by default hikidashi.json here, else the current folder')
    .addOption(new Option('--url <url>', 'look at the MCP server at this URL instead').conflicts(['config', 'command']))
    .addOption(
      new Option('--command <line>', 'start an MCP server with this command line, and look at it instead').conflicts([
        'config',
        'url',
      ]),
    )
    .addOption(
      new Option(
        '--remote <repository>',
        'fetch owner/repo of GitHub, or a URL of git, and look at its files; #ref names a branch, tag or commit',
      ).conflicts(['config', 'url', 'command']),
    )
  return addHeaderOptions(command)
    .addOption(
      new Option('--only <part>', 'look only at the files of the folder, without hikidashi.json').choices(['files']),
    )
    .addOption(new Option('--log-level <level>', 'the log level for stderr').choices(logLevels).default('warn'))
}

export function parseCount(value: string): number {
  const number = Number(value)
  if (!Number.isSafeInteger(number) || number < 1) throw new InvalidArgumentError('Give a whole number, at least 1.')
  return number
}

/** @param before Names from earlier occurrences of the option. */
export function splitNames(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, ...value.split(',').map((name) => name.trim())].filter((name) => name !== '')
}

export async function openSource(
  options: SourceOptions,
  io: Pick<Io, 'secrets' | 'say'>,
  log: Log,
): Promise<CommandSource> {
  const { url, command } = options
  requireUrlForHeaders(options)
  if (url !== undefined || command !== undefined) {
    const { connect } = await import('../../client/index.ts')
    const view = await connect(serverTarget(options, io.secrets), { log })
    const { name } = view.about
    return {
      view,
      ...defined({ name }),
      mounts: [],
      withheld: [],
      over: view.over,
      uriOf: (argument) => uriFromArgument(argument, []),
      close: view.close,
    }
  }
  const remote = options.remote === undefined ? undefined : await fetched(options.remote, io)
  const local = await requireLocalSetUp({ ...options, ...remote?.local }, io)
  const catalog = await openLocalCatalog(local, log, io.secrets)
  return {
    view: cleanView(catalog.view(local.principal), io.secrets),
    catalog,
    mounts: local.mounts,
    withheld: local.config?.withheld ?? [],
    over: new Promise(() => {}),
    uriOf: (argument) => uriFromArgument(argument, local.mounts, remote?.folder),
    close: () => catalog.close(),
  }
}

/** Paths on the command line are relative to the folder of the repository. */
async function fetched(repository: string, io: Pick<Io, 'say'>) {
  const { fetchRemote } = await import('./remote.ts')
  const { folder, name } = await fetchRemote(repository, io)
  return { folder, local: { folders: [folder], name } }
}

export function serverTarget(options: SourceOptions, secrets: Pick<Secrets, 'add'>): ServerTarget {
  const { url, command = '' } = options
  return url === undefined ? commandTarget(command) : { url, headers: headersOf(options, secrets) }
}

function commandTarget(line: string) {
  const [command, ...args] = splitCommand(line)
  if (command === undefined) throw usageError('--command is empty. Give it the command line of a server.')
  // The user starts the command, so it gets the environment of the user.
  const env = Object.fromEntries(
    Object.entries(process.env).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])),
  )
  return { command, args, env }
}

/**
 * Returns an argument with a scheme unchanged. A path becomes its URI in the mount that serves it, else its file URI.
 */
export function uriFromArgument(argument: string, mounts: readonly PlannedMount[], cwd = process.cwd()): string {
  // An empty argument, as from an unset variable of a shell, does not mean the current folder.
  if (argument === '') throw usageError('The URI is empty.')
  // One letter and a colon without slashes is a drive of Windows.
  if (/^[A-Za-z][A-Za-z0-9+.-]*:(?:\/\/|(?<=..:))/.test(argument)) return argument
  const path = resolve(cwd, argument)
  const slash = /[\\/]$/.test(argument) || isDirectory(path) ? '/' : ''
  for (const { address, config, folder } of mounts) {
    const root = servesFiles(config) ? folderOption(config) : undefined
    if (root === undefined) continue
    const below = findPathInFolder(resolveConfigPath(root, folder), path)
    if (below === '') return `${parseAddress(address).text}/`
    if (below !== undefined) return formatUri(parseAddress(address), below) + slash
  }
  return path === parse(path).root ? fileAddress(path) : fileAddress(path) + slash
}

/** Returns `undefined` for a file outside the folder. Either may be given through symbolic links. */
export function findPathInFolder(folder: string, file: string): string | undefined {
  const below = relative(folder, file)
  if (isInside(file, folder)) return below.split(sep).join('/')
  const top = realPath(folder)
  if (top === undefined) return undefined
  for (let at = file; at !== dirname(at); at = dirname(at))
    if (realPath(at) === top) return relative(at, file).split(sep).join('/')
  return undefined
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

export async function withSource(
  options: SourceOptions,
  io: Io,
  use: (source: CommandSource, log: Log) => Promise<void>,
): Promise<void> {
  const log = createTextLog(io, options.logLevel)
  const isRemote = options.url !== undefined || options.command !== undefined
  const progress = createProgress(io, { what: isRemote ? 'Connecting' : 'Opening the mounts', besideOutput: true })
  const source = await openSource(options, io, log).finally(progress.end)
  try {
    await use(source, log)
  } finally {
    await source.close()
  }
}

/**
 * If nothing is at the URI, the error suggests the URI that was probably meant.
 * @param view The view in which a similar URI is searched.
 */
export async function withSuggestion<T>(uri: string, answer: Promise<T>, view?: View): Promise<T> {
  try {
    return await answer
  } catch (error) {
    if (!isResourceError(error, 'not-found')) throw error
    throw await nothingAtError(uri, view)
  }
}

/** Returns the error for a URI without a resource, which is the same for a denied resource. */
export async function nothingAtError(uri: string, view?: View): Promise<CommandError> {
  const suggestion = view === undefined ? undefined : await nearestUri(view, uri)
  const advice = suggestion === undefined ? 'To list the resources: hikidashi ls' : `Did you mean ${suggestion} ?`
  return new CommandError(exitCodes.notFound, `${uri} does not exist, or you may not see it. ${advice}`)
}

/** Bounds of the search for a similar URI. */
const maxChildren = 2000
const searchTimeoutMs = 1500

/**
 * Replaces segments of a URI that do not exist by the nearest ones in the view. A denied resource is not in the view,
 * so it is not suggested. Returns `undefined` if nothing is near.
 */
export async function nearestUri(view: View, uri: string): Promise<string | undefined> {
  const signal = AbortSignal.timeout(searchTimeoutMs)
  try {
    const segments = segmentsOf(uri)
    const mount = nearestMount(await view.mounts({ signal }), segments)
    if (mount === undefined) return undefined
    const depth = segmentsOf(mount.uri).length
    let isOther = !hasSameSegments(segmentsOf(mount.uri), segments.slice(0, depth))
    let nearest = mount.uri
    for (const segment of segments.slice(depth)) {
      const children = await listChildren(view, nearest, signal)
      const child = childFor(segment, children)
      if (child === undefined) break
      isOther ||= lastUriSegment(child.uri) !== decodeIfValid(segment)
      nearest = child.uri
    }
    return isOther && nearest !== uri ? nearest : undefined
  } catch {
    // A failed suggestion must not cause a second error.
    return undefined
  }
}

function nearestMount(mounts: readonly Resource[], targetSegments: readonly string[]): Resource | undefined {
  const within = mounts.filter(({ uri }) => {
    const segments = segmentsOf(uri)
    return (
      segments.length <= targetSegments.length &&
      segments.every((segment, i) => isNear(targetSegments[i] ?? '', segment))
    )
  })
  const exact = within.find(({ uri }) =>
    hasSameSegments(segmentsOf(uri), targetSegments.slice(0, segmentsOf(uri).length)),
  )
  const texts = within.map(({ uri }) => uri)
  const closest = nearestWord(targetSegments.join('/'), texts)
  return exact ?? within.find(({ uri }) => uri === closest) ?? within[0]
}

async function listChildren(view: View, uri: string, signal: AbortSignal): Promise<readonly Resource[]> {
  const children: Resource[] = []
  for await (const { items } of iteratePages((query) => view.directory({ uri, ...query }, { signal }))) {
    children.push(...items)
    if (children.length >= maxChildren) break
  }
  return children
}

function childFor(segment: string, children: readonly Resource[]): Resource | undefined {
  const decodedSegment = decodeIfValid(segment)
  const names = children.map(({ uri }) => lastUriSegment(uri))
  const matches = names.filter((name) => name.toLowerCase().startsWith(decodedSegment.toLowerCase()))
  const alike = names.filter((name) => stemOf(name) === stemOf(decodedSegment))
  // The word may lack the suffix of the name, or have another one. This counts if one such name exists.
  const only = [matches, alike].find(({ length }) => length === 1)?.[0]
  const name = names.includes(decodedSegment) ? decodedSegment : (nearestWord(decodedSegment, names) ?? only)
  return name === undefined ? undefined : children[names.indexOf(name)]
}

function stemOf(name: string): string {
  return name.toLowerCase().replace(/(?<=.)\.[^.]*$/, '')
}

function isNear(word: string, segment: string): boolean {
  return word === segment || (word !== '' && segment !== '' && nearestWord(word, [segment]) !== undefined)
}

function hasSameSegments(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((segment, i) => segment === b[i])
}

function segmentsOf(uri: string): readonly string[] {
  return uri
    .replace(/[?#].*$/s, '')
    .replace(/(?<!\/)\/$/, '')
    .split('/')
}

/** The last segment of a URI, decoded. */
export function lastUriSegment(uri: string): string {
  return decodeIfValid(segmentsOf(uri).at(-1) ?? '')
}
