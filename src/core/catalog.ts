import { randomBytes } from 'node:crypto'
import { type ChangeLimits, type Changes, createChanges, type DegradedMount } from './changes.ts'
import { completePaths } from './completion.ts'
import { createCursorSeal } from './cursor.ts'
import { createDirectoryReader, type DirectoryReader } from './directory.ts'
import { asDenied, denied, invalid, isLater, isResourceError, notFound, ResourceError } from './errors.ts'
import { createListing, isVisible, type Listing } from './listing.ts'
import type { Log } from './log.ts'
import { createMount, type Mounted, type MountOptions } from './mount.ts'
import { createMountReader, type MountReader } from './mount-reader.ts'
import { type Narrowing, narrowMounts } from './narrowing.ts'
import { createPaging, type Paging } from './paging.ts'
import { baseName } from './path.ts'
import { createPrompts } from './prompts.ts'
import type { Context, Principal } from './provider.ts'
import { requireKeys } from './required.ts'
import { createRouter } from './router.ts'
import type { CatalogState } from './state.ts'
import type { Clock } from './throttle.ts'
import { cleanTexts } from './untrusted.ts'
import { type ParsedUri, parseAddress, parseQuery, parseUri } from './uri.ts'
import type { CallOptions, ReadOptions, ReadResult, ResourceContent, View } from './view.ts'

export type Mount = MountOptions

export interface CatalogOptions {
  readonly mounts: readonly Mount[]
  /** What authenticates cursors. Replicas share it; where it is left out, cursors end with the process. */
  readonly secret?: Uint8Array
  /** Earlier secrets: cursors that they sealed still open. */
  readonly earlierSecrets?: readonly Uint8Array[]
  readonly pages?: Partial<Paging>
  /** How much may be listened to. */
  readonly changes?: Partial<ChangeLimits>
  /** The time by which clients are told of lists. By default that of the system. */
  readonly clock?: Clock
  readonly log?: Log
}

/** The mount table. It owns everything that lives long: providers, compiled templates, the secret of the cursors. */
export interface Catalog {
  readonly mounts: readonly Mount[]
  /** The catalog as one principal sees it. */
  view(principal: Principal): View
  /** Views that list less. What they do not list can be read, and listened to, all the same. */
  narrowed(narrowing: Narrowing): (principal: Principal) => View
  /**
   * The OAuth scopes that a token needs for what is at a URI, or of a template. The mount alone decides: they tell nothing
   * of what is there. None for what lies in no mount.
   */
  scopesOf(uri: string): readonly string[]
  /**
   * Whether the rules let a principal see what is at a URI; of a directory (with a `/` at its end), whether they let it see
   * something in there. Whether anything is there makes no difference.
   */
  allows(principal: Principal, uri: string): boolean
  /** A mount as what indexes it reads it. `undefined`: none is at this address. */
  reader(address: string): MountReader | undefined
  /** The mounts that tell less well of changes than they should, just now: for the operator. */
  degraded(): readonly DegradedMount[]
  /** Closes every provider. */
  close(): Promise<void>
}

/**
 * Mounts providers at addresses.
 *
 * @throws ResourceError `invalid` for a malformed address, or one that lies at or under another.
 */
export function createCatalog(options: CatalogOptions): Catalog {
  requireKeys('createCatalog({ mounts })', options, { mounts: 'an array' })
  for (const mount of options.mounts) {
    requireKeys('A mount of createCatalog', mount, { address: 'a text', provider: 'an object' })
    requireKeys(`The provider at ${mount.address}`, mount.provider, { list: 'a function', read: 'a function' })
  }
  const mounts = options.mounts.map(createMount)
  const route = createRouter(mounts)
  const state: CatalogState = {
    mounts: inOrder(mounts),
    seal: createCursorSeal(options.secret ?? randomBytes(32), options.earlierSecrets),
    paging: createPaging(options.pages),
    log: options.log ?? (() => {}),
  }
  const listing = createListing(state)
  const directories = createDirectoryReader(state)
  const changes = createChanges(state, route, options.changes, options.clock)
  return {
    mounts: options.mounts,
    view: (principal) => createView({ state, listing, directories, changes, route }, principal),
    narrowed: (narrowing) => {
      const shown = inOrder(narrowMounts(options.mounts, narrowing).map(createMount))
      const own = { ...state, mounts: shown }
      const parts = { state: own, listing: createListing(own, narrowing), directories: createDirectoryReader(own) }
      const narrow = { ...parts, changes, route: createRouter(shown) }
      return (principal) => {
        const whole = createView({ state, listing, directories, changes, route }, principal)
        const { mounts, list, templates, directory, complete } = createView(narrow, principal)
        return { ...whole, mounts, list, templates, directory, complete }
      }
    },
    scopesOf: (uri) => {
      try {
        return route(parseUri(uri))?.mount.scopes ?? []
      } catch (error) {
        if (isResourceError(error, 'invalid')) return []
        throw error
      }
    },
    allows: (principal, uri) => {
      const parsed = parseUri(uri)
      const found = route(parsed)
      if (found === undefined) return false
      const { mount, path } = found
      return parsed.directory ? mount.reach(principal, path) !== 'none' : mount.access(principal, path)
    },
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

function inOrder(mounts: Mounted[]): Mounted[] {
  return mounts.sort((a, b) => Buffer.compare(Buffer.from(a.address.text), Buffer.from(b.address.text)))
}

interface Parts {
  readonly state: CatalogState
  readonly listing: Listing
  readonly directories: DirectoryReader
  readonly changes: Changes
  readonly route: (uri: ParsedUri) => { readonly mount: Mounted; readonly path: string } | undefined
}

function createView({ state, listing, directories, changes, route }: Parts, principal: Principal): View {
  const contextOf = (options: CallOptions | undefined): Context => {
    // One for each call: whoever listens to it need not care that others do.
    const signal = options?.signal ?? new AbortController().signal
    signal.throwIfAborted()
    return { principal, signal }
  }

  const locate = (uri: string) => {
    const parsed = parseUri(uri)
    const found = route(parsed)
    if (found === undefined) throw notFound('no mount at this address')
    if (found.mount.isHidden(principal)) throw denied()
    return { ...found, parsed }
  }

  const read = async (uri: string, options?: ReadOptions): Promise<ReadResult> => {
    const bare = options?.bare === true ? { bare: true } : {}
    if (options?.room === undefined) return readNow(uri, { ...contextOf(options), ...bare })
    try {
      return await readNow(uri, { ...contextOf(options), ...bare, most: large })
    } catch (error) {
      if (!isLater(error)) throw error
      await options.room()
      return readNow(uri, { ...contextOf(options), ...bare })
    }
  }

  const readNow = async (uri: string, context: Context): Promise<ReadResult> => {
    const { mount, path, parsed } = locate(uri)
    if (parsed.query !== undefined) {
      const params = await paramsOf(mount, state, path, parsed.query, context)
      return answerOf(mount, await readPath(mount, uri, path, params, context))
    }
    if (parsed.directory) return { contents: await directories.list(mount, uri, path, context), cache: mount.cache }
    try {
      return answerOf(mount, await readPath(mount, uri, path, new Map(), context))
    } catch (error) {
      if (!isResourceError(error, 'not-found')) throw error
      const contents = await directories.expand(mount, uri, path, context).catch((missing: unknown) => {
        // Of a path that is nothing at all, it is told why it is no file.
        throw isResourceError(missing, 'not-found') ? error : missing
      })
      return { contents, cache: mount.cache }
    }
  }

  const complete: View['complete'] = async (request, options) => {
    const context = contextOf(options)
    for (const mount of state.mounts) {
      // The template of a mount that may not be seen is as unknown as any.
      if (mount.isHidden(principal) || !request.uriTemplate.startsWith(mount.address.text)) continue
      const template = await mount.templateOf(request.uriTemplate, context)
      if (template === undefined) continue
      const completion = await completePaths(mount, template, request, context)
      if (completion.values.length > 0 || (await isVisible(mount, state, context))) return completion
    }
    throw invalid('There is no such resource template.', 'unknown-template')
  }

  const prompts = createPrompts(state, changes, { read, complete }, contextOf)

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
    read,
    ...(prompts === undefined ? {} : { prompts }),
    live: changes.possible,
    ...(changes.possible ? { subscribe: (listener) => changes.open(listener, principal) } : {}),
  }
}

/** What is larger waits for room, in bytes. */
const large = 512 * 1024

/** A year, in milliseconds: as long as "for ever" is in a cache. */
const forever = 365 * 24 * 3600 * 1000

function answerOf(mount: Mounted, contents: readonly ResourceContent[]): ReadResult {
  const immutable = contents.every((content) => content.immutable === true)
  return { contents, cache: immutable ? { ...mount.cache, ttlMs: forever } : mount.cache }
}

/**
 * Reads one path, if access allows it. The contents carry the URI that was asked with. For one that it denies the source is
 * asked for something that is not there, and fails as it does then: neither its words nor its time tell the two apart.
 */
async function readPath(
  mount: Mounted,
  uri: string,
  path: string,
  params: ReadonlyMap<string, string>,
  context: Context,
): Promise<readonly ResourceContent[]> {
  const asked = mount.asked(path, context.principal)
  const contents = await mount.provider.read({ path: asked.path, params }, context).catch((error: unknown) => {
    throw asked.denied && isResourceError(error, 'not-found') ? asDenied(error) : error
  })
  if (asked.denied) throw denied()
  if (contents.length === 0) throw new ResourceError('internal', 'the provider answered a read with nothing')
  return contents.map((content) => {
    const at = content.path ?? path
    // A part with a path of its own is a resource of its own.
    if (at !== path && !mount.access(context.principal, at)) throw denied()
    const name = at === '' ? mount.name : baseName(at)
    return { ...cleanTexts(content), uri: at === path ? uri : mount.uriOf(at), name }
  })
}

/** The parameters of a URI with a query: some template of the mount must mean it. */
async function paramsOf(mount: Mounted, state: CatalogState, path: string, query: string, context: Context) {
  const templates = await mount.templates(context)
  if (templates.some((template) => template.matches(path, query))) return parseQuery(query)
  if (templates.length === 0) throw notFound('nothing takes a query here')
  // Whatever the path is, it is judged alike; but in a mount that may not be seen nothing is.
  if (!(await isVisible(mount, state, context))) throw notFound('nothing in the mount is visible')
  throw invalid('The URI has a query that no resource template declares.', 'query')
}
