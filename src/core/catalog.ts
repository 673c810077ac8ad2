import { randomBytes } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { type ListRestriction, narrowMounts } from './access.ts'
import type { Clock } from './changes.ts'
import {
  type ChangeLimits,
  type ChangeSubscriptions,
  createChangeSubscriptions,
  type DegradedMount,
} from './changes.ts'
import { completeTemplate } from './completion.ts'
import { createDirectoryReader, type DirectoryReader } from './directory.ts'
import type { EarlierTexts } from './earlier.ts'
import { cleanTexts } from './entry.ts'
import {
  asDenied,
  denied,
  invalid,
  isOverReadLimit,
  isResourceError,
  notFound,
  ResourceError,
  valueOr,
} from './errors.ts'
import { defined, requireKeys } from './kit/object.ts'
import { doneOnce } from './kit/once.ts'
import { createListing, isVisible, type Listing } from './listing.ts'
import type { Log } from './log.ts'
import { createMount, type Mounted, type MountOptions } from './mount.ts'
import { createMountReader, type MountReader } from './mount-reader.ts'
import { type CatalogState, completePaging, createCursorSeal, type Paging } from './paging.ts'
import { baseName } from './path.ts'
import { createPrompts } from './prompts.ts'
import type { Content, Context, Principal, ReadRequest } from './provider.ts'
import { createRouter } from './router.ts'
import { createTools } from './tools.ts'
import { runSourceInSpan } from './trace.ts'
import { type ParsedUri, parseAddress, parseQuery, parseUri } from './uri.ts'
import type { CallOptions, ReadOptions, ReadResult, ResourceContent, View } from './view.ts'

/** A provider at an address, with access rules and a description. */
export type Mount = MountOptions

export interface CatalogOptions {
  readonly mounts: readonly Mount[]
  /**
   * Secret that encrypts and authenticates cursors. Replicas must share it. Default random: then cursors become invalid
   * when the process ends.
   */
  readonly secret?: Uint8Array
  /** Earlier secrets, whose cursors remain valid. */
  readonly earlierSecrets?: readonly Uint8Array[]
  readonly pages?: Partial<Paging>
  readonly changes?: Partial<ChangeLimits>
  /** Opens the storage of earlier texts, listings and changes, for reads since a version and comparisons. Default: in memory. */
  readonly earlier?: () => Promise<EarlierTexts>
  /** Clock of the throttle on notifications of changed lists. Default: the clock of the system. */
  readonly clock?: Clock
  readonly log?: Log
}

/** Providers at their addresses. Requests go through a view of it, which has the rights of one principal. */
export interface Catalog {
  readonly mounts: readonly Mount[]
  view(principal: Principal): View
  /** Returns a function that creates views with shorter lists. Unlisted resources can still be read and listened to. */
  narrowed(narrowing: ListRestriction): (principal: Principal) => View
  /**
   * Returns the OAuth scopes that a token needs for a URI or a template, by its mount. Empty outside of every mount,
   * and for a malformed URI.
   */
  scopesOf(uri: string): readonly string[]
  /**
   * Whether the rules let a principal see a URI, or, for a directory (with a final `/`), anything below it. The entry
   * need not exist.
   * @throws ResourceError `invalid` for a malformed URI.
   */
  allows(principal: Principal, uri: string): boolean
  /** Returns a reader for the indexer, without access rules. Undefined when no mount has this address. */
  reader(address: string): MountReader | undefined
  /** Returns the mounts whose notifications of changes are currently degraded. */
  degraded(): readonly DegradedMount[]
  /** Closes the providers. Failures are only logged. */
  close(): Promise<void>
}

/**
 * Mounts providers at addresses.
 *
 * @throws ResourceError `invalid` for malformed options, or an address that is malformed or lies at or under another.
 */
export function createCatalog(options: CatalogOptions): Catalog {
  requireKeys('createCatalog({ mounts })', options, { mounts: 'an array' })
  for (const mount of options.mounts) {
    requireKeys('A mount of createCatalog', mount, { address: 'a string', provider: 'an object' })
    if (mount.access !== undefined) requireKeys('A mount of createCatalog', mount, { access: 'a function' })
    if (mount.provider instanceof Promise)
      throw invalid(`The provider at ${mount.address} is a promise: await it.`, 'argument')
    requireKeys(`The provider at ${mount.address}`, mount.provider, { list: 'a function', read: 'a function' })
  }
  const mounts = options.mounts.map(createMount)
  const route = createRouter(mounts)
  const state: CatalogState = {
    mounts: sortMounts(mounts),
    seal: createCursorSeal(options.secret ?? randomBytes(32), options.earlierSecrets),
    paging: completePaging(options.pages),
    log: options.log ?? (() => {}),
    earlier: doneOnce(options.earlier ?? (async () => (await import('./earlier.ts')).createMemoryTexts())),
  }
  const listing = createListing(state)
  const directories = createDirectoryReader(state)
  const changes = createChangeSubscriptions(state, route, options.changes, options.clock)
  return {
    mounts: options.mounts,
    view: (principal) => createView({ state, listing, directories, changes, route }, principal),
    narrowed: (narrowing) => {
      const selectedMounts = sortMounts(narrowMounts(options.mounts, narrowing).map(createMount))
      const own = { ...state, mounts: selectedMounts }
      const parts = { state: own, listing: createListing(own, narrowing), directories: createDirectoryReader(own) }
      const narrow = { ...parts, changes, route: createRouter(selectedMounts) }
      return (principal) => {
        const whole = createView({ state, listing, directories, changes, route }, principal)
        const { mounts, list, templates, directory, complete } = createView(narrow, principal)
        return { ...whole, mounts, list, templates, directory, complete }
      }
    },
    scopesOf: (uri) => valueOr(() => route(parseUri(uri))?.mount.scopes ?? [], [], 'invalid'),
    allows: (principal, uri) => allowsAt(route, principal, uri),
    reader: (address) => {
      const { text } = parseAddress(address)
      const mount = mounts.find((one) => one.address.text === text)
      return mount && createMountReader(mount, changes.watchOf(mount))
    },
    degraded: changes.degraded,
    close: async () => {
      await changes.close()
      const closed = await Promise.allSettled(mounts.map((mount) => mount.provider.close?.()))
      for (const result of closed)
        if (result.status === 'rejected') state.log('warn', 'a provider could not be closed', { error: result.reason })
    },
  }
}

function allowsAt(route: Parts['route'], principal: Principal, uri: string): boolean {
  const parsedUri = parseUri(uri)
  const location = route(parsedUri)
  if (location === undefined) return false
  const { mount, path } = location
  return parsedUri.directory ? mount.reach(principal, path) !== 'none' : mount.access(principal, path)
}

function sortMounts(mounts: Mounted[]): Mounted[] {
  return mounts.sort((a, b) => Buffer.compare(Buffer.from(a.address.text), Buffer.from(b.address.text)))
}

interface Parts {
  readonly state: CatalogState
  readonly listing: Listing
  readonly directories: DirectoryReader
  readonly changes: ChangeSubscriptions
  readonly route: (uri: ParsedUri) => { readonly mount: Mounted; readonly path: string } | undefined
}

function createView({ state, listing, directories, changes, route }: Parts, principal: Principal): View {
  const contextOf = (options: CallOptions | undefined): Context => {
    // Each call without a signal gets its own: a shared one would keep the listeners of all calls.
    const signal = options?.signal ?? new AbortController().signal
    signal.throwIfAborted()
    // Any number of mounts may listen to the signal: Node would warn of a leak at the eleventh listener.
    setMaxListeners(0, signal)
    return { principal, signal }
  }

  const locate = (uri: string) => {
    const parsedUri = parseUri(uri)
    const location = route(parsedUri)
    if (location === undefined) throw notFound('no mount at this address')
    const { mount, path } = location
    if (mount.restricted && mount.isHidden(principal)) throw denied()
    return { mount, path, parsed: parsedUri }
  }

  const readUri = async (uri: string, options: ReadOptions = {}): Promise<ReadResult> => {
    const most = options.room === undefined ? undefined : largeBytes
    const context: Context = { ...contextOf(options), most }
    try {
      const result = await readNow(uri, context)
      return options.keep === true ? await keepResultText(state, locate(uri), result) : result
    } catch (error) {
      if (most !== undefined && isResourceError(error) && isOverReadLimit(error))
        return readLarge(uri, options, Number(error.detail.size))
      throw error
    }
  }

  const readNow = async (uri: string, context: Context): Promise<ReadResult> => {
    const { mount, path, parsed } = locate(uri)
    const { query, directory } = parsed
    if (query !== undefined) {
      const since = await sinceIn(mount, path, query, context)
      if (since !== undefined) return readDelta(mount, state, uri, { path, since }, context)
      const params = await paramsOf(mount, state, path, query, context)
      return readPath(mount, uri, { path, params }, context)
    }
    if (directory) return { contents: await directories.list(mount, uri, path, context), cache: mount.cache }
    try {
      return await readPath(mount, uri, { path, params: noParams }, context)
    } catch (error) {
      if (!isResourceError(error, 'not-found')) throw error
      return readDirectory(mount, uri, path, context, error)
    }
  }

  /** @param missing The error to throw if the path is no directory either. */
  const readDirectory = async (mount: Mounted, uri: string, path: string, context: Context, missing: ResourceError) => {
    try {
      return { contents: await directories.expand(mount, uri, path, context), cache: mount.cache }
    } catch (error) {
      const isFile = isResourceError(error, 'invalid') && error.detail.reason === 'not-a-directory'
      throw isFile || isResourceError(error, 'not-found') ? missing : error
    }
  }

  /** Reads in parts if the caller accepts a stream of them, or else as a whole once there is room for it in memory. */
  const readLarge = async (uri: string, options: ReadOptions, size: number): Promise<ReadResult> => {
    const { large, room, ...whole } = options
    const part = async (of: string, { signal }: CallOptions) => readUri(of, defined({ signal }))
    const streamed = size > 0 ? await large?.(size, part) : undefined
    if (streamed !== undefined) return streamed
    await room?.()
    return readUri(uri, whole)
  }

  const complete: View['complete'] = async (request, options) =>
    completeTemplate(state.mounts, request, contextOf(options), (mount, context) => isVisible(mount, state, context))

  const prompts = createPrompts(state, changes, { read: readUri, complete }, contextOf)
  const tools = createTools(state, changes, contextOf)

  return {
    mounts: (options) => listing.mounts(contextOf(options)),
    list: (query, options) => listing.list(query?.cursor, contextOf(options)),
    templates: (query, options) => listing.templates(query?.cursor, contextOf(options)),
    directory: async (query, options) => {
      const { mount, path, parsed } = locate(query.uri)
      if (parsed.query !== undefined) throw notFound('a directory has no query')
      return directories.page(mount, path, query.cursor, contextOf(options))
    },
    complete,
    read: readUri,
    stat: async (uri, options) => {
      const [{ mount, path, parsed }, context] = [locate(uri), contextOf(options)]
      const page = (cursor: string | undefined) => directories.page(mount, path, cursor, context)
      const located = { mount, path, uri, hasQuery: parsed.query !== undefined }
      const { statResource } = await import('./stat.ts')
      return statResource(located, { read: (at) => readUri(at, options), directory: page }, context)
    },
    changed: async (query, options) => {
      const { changedResources } = await import('./changed.ts')
      const list = (cursor: string | undefined) => listing.list(cursor, contextOf(options))
      const allows = (uri: string) => allowsAt(route, principal, uri)
      return changedResources(query, { texts: await state.earlier(), principal, list, allows })
    },
    ...(prompts === undefined ? {} : { prompts }),
    ...(tools === undefined ? {} : { tools }),
    live: changes.possible,
    ...(changes.possible
      ? {
          subscribe: (listener) => changes.open(listener, principal),
          history: changes.historyOf(principal),
        }
      : {}),
  }
}

/** Size above which a content waits for room in memory, in bytes. */
const largeBytes = 512 * 1024

const yearMs = 365 * 24 * 3600 * 1000

/** The version of a query `since=VERSION`; undefined for another query, and for one that a template of the mount declares. */
async function sinceIn(mount: Mounted, path: string, query: string, context: Context): Promise<string | undefined> {
  if (!query.startsWith('since=')) return undefined
  const params = parseQuery(query)
  if (params.size > 1) return undefined
  const templates = await mount.templates(context)
  return templates.some((template) => template.matches(path, query)) ? undefined : params.get('since')
}

async function readDelta(
  mount: Mounted,
  { earlier }: CatalogState,
  uri: string,
  { path, since }: { readonly path: string; readonly since: string },
  { most: _, ...context }: Context,
): Promise<ReadResult> {
  const { contents, cache } = await readPath(mount, uri, { path, params: noParams }, context)
  const { readSince } = await import('./earlier.ts')
  return { contents: await readSince(await earlier(), { address: mount.address.text, path }, contents, since), cache }
}

interface Located {
  readonly mount: Mounted
  readonly path: string
  readonly parsed: ParsedUri
}

async function keepResultText(
  { earlier }: CatalogState,
  { mount, path, parsed }: Located,
  result: ReadResult,
): Promise<ReadResult> {
  const [content, ...others] = result.contents
  if (content === undefined || others.length > 0 || parsed.query !== undefined) return result
  const { keepText } = await import('./earlier.ts')
  const version = await keepText(await earlier(), { address: mount.address.text, path }, content)
  return version === undefined ? result : { ...result, contents: [{ ...content, version }] }
}

const noParams: ReadonlyMap<string, string> = new Map()

/**
 * Reads a path, if access allows it. For a denied path, the source is asked for one that does not exist, so that
 * neither the error nor its time tells a denied path from a missing one.
 */
async function readPath(
  mount: Mounted,
  uri: string,
  { path, params }: ReadRequest,
  context: Context,
): Promise<ReadResult> {
  const target = mount.asked(path, context.principal)
  let contents: readonly Content[]
  try {
    contents = await runSourceInSpan('read', mount.address.text, () =>
      mount.provider.read({ path: target.path, params }, context),
    )
  } catch (error) {
    throw target.denied && isResourceError(error, 'not-found') ? asDenied(error) : error
  }
  if (target.denied) throw denied()
  if (!Array.isArray(contents) || contents.length === 0)
    throw new ResourceError('internal', 'the provider must answer a read with an array of at least one content')
  const resources: ResourceContent[] = []
  let isImmutable = true
  for (const content of contents) {
    const at = content.path ?? path
    // A content with a path of its own is another resource, so its access is checked too.
    if (at !== path && !mount.access(context.principal, at)) throw denied()
    const name = at === '' ? mount.name : baseName(at)
    resources.push({ ...cleanTexts(content), uri: at === path ? uri : mount.uriOf(at), name })
    if (content.immutable !== true) isImmutable = false
  }
  return { contents: resources, cache: isImmutable ? { ...mount.cache, ttlMs: yearMs } : mount.cache }
}

/** Parses the query of a URI, which a template of the mount must match. */
async function paramsOf(mount: Mounted, state: CatalogState, path: string, query: string, context: Context) {
  const templates = await mount.templates(context)
  if (templates.some((template) => template.matches(path, query))) return parseQuery(query)
  if (templates.length === 0) throw notFound('nothing takes a query here')
  // The path makes no difference to the error, but a mount that the principal may not see must look empty.
  if (!(await isVisible(mount, state, context))) throw notFound('nothing in the mount is visible')
  throw invalid('The URI has a query that no resource template declares. Leave it out, or fill in a template.', 'query')
}
