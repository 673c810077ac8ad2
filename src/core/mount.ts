import { type Access, decoyOf } from './access.ts'
import { cleanTexts } from './entry.ts'
import { isResourceError } from './errors.ts'
import type { Reach } from './glob.ts'
import { metaKeys } from './meta.ts'
import type { MountKind } from './mount-kind.ts'
import { baseName, comparePaths, parentOf } from './path.ts'
import type { Context, Entry, Icon, ListQuery, Principal, Provider, Template } from './provider.ts'
import { compileTemplate, type UriTemplate } from './template.ts'
import { filterListing, type ListEntries } from './tree.ts'
import { type Address, encodePath, formatTemplate, formatUri, nameOfAddress, parseAddress } from './uri.ts'
import { type CacheHint, directoryMimeType, type Resource } from './view.ts'

export interface MountOptions {
  /** A URI prefix, such as `file:///srv/docs`. Addresses of mounts must not overlap. */
  readonly address: string
  /** Other addresses of the same resources. They are in no list. One that overlaps with another mount has no effect. */
  readonly aliases?: readonly string[]
  readonly provider: Provider
  /** Access rules. Default: everyone may see everything. */
  readonly access?: Access
  /** The OAuth scopes that a token needs to see anything of the mount. Default none. */
  readonly scopes?: readonly string[]
  readonly title?: string
  readonly description?: string
  readonly icons?: readonly Icon[]
  readonly kind?: MountKind
  /** How long, and for whom, clients may cache answers. Default: not at all, and for one user only. */
  readonly cache?: CacheHint
  /**
   * Whether the contents of the mount are about other mounts or about the machine: settings, environment, history,
   * search. Default false.
   */
  readonly derived?: boolean
  /** The roles that may store records in the mount; `*` is everybody. Default: nobody may. */
  readonly writers?: readonly string[]
}

/** A mount as the catalog works with it: its address parsed, its templates compiled, its listing filtered by access. */
export interface Mounted {
  readonly address: Address
  readonly aliases: readonly Address[]
  readonly provider: Provider
  readonly access: Access
  /** Whether the rules let the principal see nothing of the mount. It must then look as if it were not mounted. */
  isHidden(principal: Principal): boolean
  /** Returns how much the principal may see below a directory, by the rules alone. */
  reach(principal: Principal, directory: string): Reach
  /** Like {@link Access.callers}, but includes all parts of an access decision: rules, scopes and the source. */
  callers(principal: Principal): string | undefined
  /** Returns the path to request from the source: a denied path is replaced by a decoy that does not exist. */
  asked(path: string, principal: Principal): { readonly path: string; readonly denied: boolean }
  readonly scopes: readonly string[]
  /** Whether any rule, scope or source restricts access to the mount. */
  readonly restricted: boolean
  readonly name: string
  readonly cache: CacheHint
  readonly derived: boolean
  uriOf(path: string): string
  resourceOf(entry: Entry): Resource
  readonly root: Resource
  /** Lists the entries that the principal may see, in path order. */
  list(context: Context): ListEntries
  /** Returns the entry at a path if the principal may see it. */
  find(path: string, context: Context): Promise<Entry | undefined>
  /** Returns the entry at a path, regardless of access. */
  findAny(path: string, context: Context): Promise<Entry | undefined>
  templates(context: Context): Promise<readonly MountTemplate[]>
  templateOf(uriTemplate: string, context: Context): Promise<MountTemplate | undefined>
}

export interface MountTemplate {
  readonly declared: Template
  readonly compiled: UriTemplate
  readonly uriTemplate: string
  matches(path: string, query: string): boolean
}

export function createMount(options: MountOptions): Mounted {
  const address = parseAddress(options.address)
  const { scopes = [] } = options
  const restricted = options.access !== undefined || scopes.length > 0 || options.provider.sees !== undefined
  const granted = (principal: Principal) => scopes.every((scope) => principal.scopes?.includes(scope) ?? true)
  const access: Access = (principal, path, others) =>
    granted(principal) &&
    (options.access?.(principal, path, others) ?? true) &&
    (options.provider.sees?.(principal, path) ?? true)
  const reach = (principal: Principal, directory: string): Reach => {
    if (!granted(principal)) return 'none'
    const ruled = options.access === undefined ? 'all' : (options.access.reach?.(principal, directory) ?? 'some')
    // The source decides for each path.
    return ruled === 'all' && options.provider.sees !== undefined ? 'some' : ruled
  }
  const callers = (principal: Principal): string | undefined => {
    // The source may change its decisions at any time.
    if (options.provider.sees !== undefined) return undefined
    if (!granted(principal)) return ''
    return options.access === undefined ? '*' : options.access.callers?.(principal)
  }
  const allows = (principal: Principal, path: string) =>
    path.endsWith('/') ? reach(principal, path) !== 'none' : access(principal, path)
  const provider = restricted ? withAccess(options.provider, allows) : options.provider
  const decoy = (path: string, principal: Principal) =>
    decoyOf(path, (directory) => reach(principal, directory) === 'none')
  const name = nameOfAddress(address)
  const compiled = new Map<string, MountTemplate>()

  const templateFor = (declared: Template): MountTemplate => {
    const mountTemplate = compiled.get(declared.template)
    if (mountTemplate?.declared === declared) return mountTemplate
    const template =
      mountTemplate === undefined ? compileMountTemplate(address, declared) : { ...mountTemplate, declared }
    // Bounds the memory for a source with ever new templates (one per table, say).
    if (compiled.size >= 10_000) compiled.clear()
    compiled.set(declared.template, template)
    return template
  }

  const list = (context: Context): ListEntries => {
    const { principal } = context
    const all: ListEntries = (query: ListQuery) => provider.list(query, context)
    if (!restricted) return all
    const isClosed = (directory: string) => reach(principal, directory) === 'none'
    const visible = filterListing(all, (entry) => access(principal, entry.path), isClosed)
    const skim = (path: string) => (path.endsWith('/') ? !isClosed(path) : access(principal, path))
    return ({ shallow, ...asked }) => {
      const { prefix = '' } = asked
      // The contents of a directory have to be checked, unless all of it may be seen.
      if (shallow === true && reach(principal, prefix) === 'all') return all({ ...asked, shallow })
      // One visible entry per directory is enough to show the directory.
      const query = shallow === true ? { ...asked, skim } : asked
      if (prefix === '') return mount.isHidden(principal) ? nothing() : visible(query)
      const elsewhere = decoy(prefix, principal)
      return isClosed(prefix) ? filterListing(all, () => false)({ prefix: elsewhere }) : visible(query)
    }
  }

  const mount: Mounted = {
    address,
    aliases: (options.aliases ?? []).map(parseAddress),
    provider,
    access,
    scopes,
    restricted,
    name,
    derived: options.derived ?? false,
    // An answer that depends on the caller must not be cached for others, even if the operator allows it.
    cache: {
      ttlMs: options.cache?.ttlMs ?? 0,
      scope: restricted ? 'private' : (options.cache?.scope ?? 'private'),
    },
    uriOf: (path) => formatUri(address, path),
    root: {
      uri: formatUri(address, ''),
      name,
      mimeType: directoryMimeType,
      ...(options.title === undefined ? {} : { title: options.title }),
      ...(options.description === undefined ? {} : { description: options.description }),
      ...(options.icons === undefined ? {} : { icons: options.icons }),
      ...(options.kind === undefined ? {} : { meta: { [metaKeys.kind]: options.kind } }),
    },
    resourceOf: (entry) =>
      resourceAt(formatUri(address, entry.path), entry.path === '' ? name : baseName(entry.path), entry),
    list,
    isHidden: (principal) => restricted && reach(principal, '') === 'none' && !access(principal, ''),
    reach,
    callers,
    asked: (path, principal) => {
      if (!restricted) return { path, denied: false }
      // Computed in both cases, since the time for it would reveal a denial.
      const elsewhere = decoy(path, principal)
      // A directory whose contents are all hidden is hidden too, though no rule names it.
      const isHidden = path.endsWith('/') && reach(principal, path) === 'none'
      return access(principal, path) && !isHidden ? { path, denied: false } : { path: elsewhere, denied: true }
    },
    find: async (path, context) => {
      const target = mount.asked(path, context.principal)
      const entry = await findEntry(provider, target.path, context)
      if (target.denied || entry === undefined || entry.path === path) return target.denied ? undefined : entry
      // The source lists the entry under another spelling of the path. The rules are applied to that spelling.
      return allows(context.principal, entry.path) ? entry : undefined
    },
    findAny: (path, context) => findEntry(provider, path, context),
    templates: async (context) => (await provider.templates?.(context))?.map(templateFor) ?? [],
    templateOf: async (uriTemplate, context) =>
      (await mount.templates(context)).find((template) => template.uriTemplate === uriTemplate),
  }
  return mount
}

function resourceAt(uri: string, name: string, { path: _, ...facts }: Entry): Resource {
  return { uri, name, ...cleanTexts(facts) }
}

/** Wraps a provider so that its calls carry the access decision for other paths: a source may serve one entry under several. */
function withAccess(provider: Provider, allows: (principal: Principal, path: string) => boolean): Provider {
  const extended = (context: Context): Context => ({
    ...context,
    allows: context.allows ?? ((path: string) => allows(context.principal, path)),
  })
  const { list, read, stat, templates, complete, prompts, tools } = provider
  const completePrompt = prompts?.complete
  return {
    ...provider,
    list: (query, context) => list(query, extended(context)),
    read: async (request, context) => read(request, extended(context)),
    ...(stat && { stat: (path, context) => stat(path, extended(context)) }),
    ...(templates && { templates: (context) => templates(extended(context)) }),
    ...(complete && { complete: (request, context) => complete(request, extended(context)) }),
    ...(tools && {
      tools: {
        list: (context) => tools.list(extended(context)),
        call: (request, context) => tools.call(request, extended(context)),
      },
    }),
    ...(prompts && {
      prompts: {
        ...prompts,
        list: (context) => prompts.list(extended(context)),
        get: (request, context) => prompts.get(request, extended(context)),
        ...(completePrompt && { complete: (request, context) => completePrompt(request, extended(context)) }),
      },
    }),
  }
}

function compileMountTemplate(address: Address, declared: Template): MountTemplate {
  const compiled = compileTemplate(declared.template)
  return {
    declared,
    compiled,
    uriTemplate: formatTemplate(address, declared.template),
    matches: (path, query) => compiled.match(`${encodePath(path)}?${query}`) !== undefined,
  }
}

async function findEntry(provider: Provider, path: string, context: Context): Promise<Entry | undefined> {
  if (provider.stat === undefined) return findListed(provider, path, context)
  try {
    return await provider.stat(path, context)
  } catch (error) {
    if (isResourceError(error, 'not-found')) return undefined
    throw error
  }
}

/** Returns the entry that a provider without `stat` lists at a path; undefined when it lists none. */
export async function findListed(
  provider: Pick<Provider, 'list'>,
  path: string,
  context: Context,
): Promise<Entry | undefined> {
  // Begin the listing shortly before the path: it resumes strictly after a key.
  const before = [...path].slice(0, -1).join('')
  const from = before.length > parentOf(path).length ? { after: before } : {}
  for await (const entry of provider.list({ prefix: parentOf(path), ...from }, context)) {
    const order = comparePaths(entry.path, path)
    if (order === 0) return entry
    if (order > 0) break
  }
  return undefined
}

async function* nothing(): AsyncGenerator<Entry> {}
