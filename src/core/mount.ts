import type { Access } from './access.ts'
import { isResourceError } from './errors.ts'
import { baseName, comparePaths, parentOf } from './path.ts'
import type { Context, Entry, Icon, ListQuery, Provider, Template } from './provider.ts'
import { compileTemplate, type UriTemplate } from './template.ts'
import { filtered, type List } from './tree.ts'
import { type Address, encodePath, formatTemplate, formatUri, parseAddress } from './uri.ts'
import { type CacheHint, directoryMimeType, type Resource } from './view.ts'

/** A provider at an address, with its access rule. */
export interface MountOptions {
  /** A URI prefix, such as `file:///srv/docs`. No address lies at or under another. */
  readonly address: string
  readonly provider: Provider
  /** Everything is visible to everybody where it is left out. */
  readonly access?: Access
  readonly title?: string
  readonly description?: string
  readonly icons?: readonly Icon[]
  /** For how long clients may keep what they got. By default: not at all, and for themselves. */
  readonly cache?: CacheHint
}

/** A mount as the catalog works with it: its address parsed, its templates compiled, its listing filtered by access. */
export interface Mounted {
  readonly address: Address
  readonly provider: Provider
  readonly access: Access
  /** Whether a rule restricts it at all. */
  readonly restricted: boolean
  readonly name: string
  readonly cache: CacheHint
  uriOf(path: string): string
  resourceOf(entry: Entry): Resource
  /** The mount itself, as a directory. */
  readonly root: Resource
  /** What the principal may see, in path order. */
  list(context: Context): List
  /** The entry at a path, as far as the principal may see it. */
  find(path: string, context: Context): Promise<Entry | undefined>
  templates(context: Context): Promise<readonly MountTemplate[]>
  templateOf(uriTemplate: string, context: Context): Promise<MountTemplate | undefined>
}

export interface MountTemplate {
  readonly declared: Template
  readonly compiled: UriTemplate
  /** The complete URI template. */
  readonly uriTemplate: string
  /** Whether the template means a path with such a query. */
  matches(path: string, query: string): boolean
}

export function createMount(options: MountOptions): Mounted {
  const address = parseAddress(options.address)
  const { provider } = options
  const access = options.access ?? (() => true)
  const name = address.segments.at(-1) ?? (address.authority || address.scheme)
  const compiled = new Map<string, MountTemplate>()

  const templateFor = (declared: Template): MountTemplate => {
    const known = compiled.get(declared.template)
    if (known?.declared === declared) return known
    const template = known === undefined ? compileMountTemplate(address, declared) : { ...known, declared }
    // A source whose templates never end (one per table, say) does not fill the memory.
    if (compiled.size >= 10_000) compiled.clear()
    compiled.set(declared.template, template)
    return template
  }

  const list = (context: Context): List => {
    const all: List = (query: ListQuery) => provider.list(query, context)
    return options.access === undefined ? all : filtered(all, (entry) => access(context.principal, entry.path))
  }

  const mount: Mounted = {
    address,
    provider,
    access,
    restricted: options.access !== undefined,
    name,
    // What depends on who asks may not be kept for others, whatever the operator says.
    cache: {
      ttlMs: options.cache?.ttlMs ?? 0,
      scope: options.access === undefined ? (options.cache?.scope ?? 'private') : 'private',
    },
    uriOf: (path) => formatUri(address, path),
    root: {
      uri: formatUri(address, ''),
      name,
      mimeType: directoryMimeType,
      ...(options.title === undefined ? {} : { title: options.title }),
      ...(options.description === undefined ? {} : { description: options.description }),
      ...(options.icons === undefined ? {} : { icons: options.icons }),
    },
    resourceOf: ({ path, ...facts }) => ({
      uri: formatUri(address, path),
      name: path === '' ? name : baseName(path),
      ...facts,
    }),
    list,
    find: async (path, context) => {
      if (!access(context.principal, path)) return undefined
      return findEntry(provider, path, context)
    },
    templates: async (context) => (await provider.templates?.(context))?.map(templateFor) ?? [],
    templateOf: async (uriTemplate, context) =>
      (await mount.templates(context)).find((template) => template.uriTemplate === uriTemplate),
  }
  return mount
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
  if (provider.stat !== undefined) {
    try {
      return await provider.stat(path, context)
    } catch (error) {
      if (isResourceError(error, 'not-found')) return undefined
      throw error
    }
  }
  // Without `stat`, the listing is entered shortly before the path: it resumes strictly after a key.
  const before = [...path].slice(0, -1).join('')
  const from = before.length > parentOf(path).length ? { after: before } : {}
  for await (const entry of provider.list({ prefix: parentOf(path), ...from }, context)) {
    const order = comparePaths(entry.path, path)
    if (order === 0) return entry
    if (order > 0) break
  }
  return undefined
}
