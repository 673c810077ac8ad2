import { defined } from '../core/kit/object.ts'
import { comparePaths } from '../core/path.ts'
import {
  type CallOptions,
  directoryMimeType,
  type Page,
  type ReadResult,
  type Resource,
  type ViewCompletionRequest,
} from '../core/view.ts'
import {
  type ConvertItems,
  cacheHintOf,
  completionOf,
  contentsOf,
  cursorOf,
  decodeBase64,
  directoryPageOf,
  filledPromptOf,
  lastSegment,
  parseMounts,
  promptPageOf,
  resourcePageOf,
  templatePageOf,
  type WireObject,
} from './wire.ts'

type SendRequest = (method: string, params: WireObject, options: CallOptions | undefined) => Promise<WireObject>

type Cursor = string | undefined
type Options = CallOptions | undefined

/** A variable to complete, and the values of those that are filled in already. */
export type VariableCompletionRequest = Omit<ViewCompletionRequest, 'uriTemplate'>

/** The requests that a view of a server is made of. Results are core types, cursors are those of the server. */
export type Requests = ReturnType<typeof createRequests>

export function createRequests(ask: SendRequest, decode = decodeBase64, convertItems?: ConvertItems) {
  const pageOf = async <T>(
    answer: WireObject,
    parseAnswer: (answer: WireObject, convertItems?: ConvertItems) => Promise<Omit<Page<T>, 'nextCursor'>>,
  ): Promise<Page<T>> => ({
    ...(await parseAnswer(answer, convertItems)),
    ...defined({ nextCursor: cursorOf(answer) }),
  })
  return {
    /** Lists resources. `mounts`: the mounts of a hikidashi server, which its first page names; undefined for other servers. */
    resources: async (cursor: Cursor, options: Options) => {
      const answer = await ask('resources/list', defined({ cursor }), options)
      const mounts = parseMounts(answer)?.map((mount) => ({ ...mount, mimeType: mount.mimeType ?? directoryMimeType }))
      return { page: await pageOf(answer, resourcePageOf), mounts }
    },
    templates: async (cursor: Cursor, options: Options) =>
      pageOf(await ask('resources/templates/list', defined({ cursor }), options), templatePageOf),
    directory: async (uri: string, cursor: Cursor, options: Options) =>
      pageOf(await ask('resources/directory/read', { uri, ...defined({ cursor }) }, options), directoryPageOf),
    read: async (uri: string, options: Options): Promise<ReadResult> => {
      const answer = await ask('resources/read', { uri }, options)
      return { contents: contentsOf(answer, uri, decode), cache: cacheHintOf(answer) }
    },
    /** Completes a variable of `ref`: a resource template or a prompt. */
    complete: async (ref: WireObject, { argument, arguments: values }: VariableCompletionRequest, options: Options) => {
      const context =
        values === undefined || values.size === 0 ? {} : { context: { arguments: Object.fromEntries(values) } }
      return completionOf(await ask('completion/complete', { ref, argument, ...context }, options))
    },
    prompts: async (cursor: Cursor, options: Options) =>
      pageOf(await ask('prompts/list', defined({ cursor }), options), promptPageOf),
    prompt: async (name: string, values: ReadonlyMap<string, string> = new Map(), options?: CallOptions) =>
      filledPromptOf(await ask('prompts/get', { name, arguments: Object.fromEntries(values) }, options), decode),
  }
}

/**
 * A tree from a flat list of URIs, for servers that cannot read directories. The URIs belong to the server: they are not decoded or
 * normalized, only compared as text and split at slashes.
 */

/** The root of a URI: `file:///`, `https://host/`, `memo://` (for `memo://today`, which has no path), `note:`. */
const root = /^[a-z][a-z0-9+.-]*:(?:\/\/(?:[^/?#]*\/)?)?/i

/** Returns a directory's URI with a final slash: the prefix of its children's URIs. */
function directoryBase(uri: string): string {
  return /[/:]$/.test(uri) ? uri : `${uri}/`
}

/** Whether a URI is a root that this module made up (`memo://`, `note:`), so that no server knows it. */
export function isInventedRoot(uri: string): boolean {
  return /^[a-z][a-z0-9+.-]*:(?:\/\/)?$/i.test(uri)
}

/** Returns the roots of a listing: for each scheme and authority, the deepest directory that holds all of its resources. */
export function rootsOf(resources: readonly Resource[]): readonly Resource[] {
  const roots = new Map<string, string>()
  for (const { uri } of resources) {
    const start = root.exec(uri)?.[0]
    if (start === undefined) continue
    const path = uri.replace(/[?#].*$/s, '')
    const directory = path.slice(0, Math.max(path.lastIndexOf('/') + 1, start.length))
    roots.set(start, commonDirectory(roots.get(start) ?? directory, directory, start))
  }
  return [...roots.values()].sort(comparePaths).map(directory)
}

/** Returns the direct children of a directory, sorted by URI; undefined when it has none and is not listed as a directory. */
export function directChildren(resources: readonly Resource[], uri: string): readonly Resource[] | undefined {
  const base = directoryBase(uri)
  const children = new Map<string, Resource>()
  let isDirectory = false
  for (const resource of resources) {
    if (resource.uri === base || resource.uri === uri) isDirectory ||= resource.mimeType === directoryMimeType
    if (!resource.uri.startsWith(base) || resource.uri.length === base.length) continue
    const slash = resource.uri
      .slice(base.length)
      .replace(/[?#].*$/s, '')
      .indexOf('/')
    const child = slash === -1 ? resource.uri : resource.uri.slice(0, base.length + slash + 1)
    // A listed entry of a directory has more metadata than one derived from a URI.
    if (child === resource.uri)
      children.set(child, child.endsWith('/') ? { ...resource, mimeType: directoryMimeType } : resource)
    else if (!children.has(child)) children.set(child, directory(child))
  }
  if (children.size === 0) return isDirectory ? [] : undefined
  return [...children.values()].sort((a, b) => comparePaths(a.uri, b.uri))
}

function commonDirectory(a: string, b: string, start: string): string {
  let common = a
  while (!b.startsWith(common)) common = common.slice(0, common.lastIndexOf('/', common.length - 2) + 1)
  return common.length < start.length ? start : common
}

function directory(uri: string): Resource {
  return { uri, name: lastSegment(uri), mimeType: directoryMimeType }
}
