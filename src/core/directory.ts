import { invalid, isOverReadLimit, isResourceError, notFound, ResourceError } from './errors.ts'
import { cursorScope, isVisible, itemSizeBound } from './listing.ts'
import { metaKeys } from './meta.ts'
import type { Mounted } from './mount.ts'
import { type CatalogState, createPageBuilder } from './paging.ts'
import { baseName, canonicalPath, mayHaveOtherSpellings } from './path.ts'
import type { Content, Context, Entry } from './provider.ts'
import { type Child, iterateChildren } from './tree.ts'
import { encodeSegment } from './uri.ts'
import { directoryMimeType, type Page, type Resource, type ResourceContent } from './view.ts'

/** Reads directories. Throws `not-found` when the principal sees no such directory. */
export interface DirectoryReader {
  page(mount: Mounted, path: string, cursor: string | undefined, context: Context): Promise<Page<Resource>>
  /** Returns the listing of a directory as one text, with a line for each child. */
  list(mount: Mounted, uri: string, path: string, context: Context): Promise<readonly ResourceContent[]>
  /** Returns the contents of the children of a directory: files whole or cut, directories empty. */
  expand(mount: Mounted, uri: string, path: string, context: Context): Promise<readonly ResourceContent[]>
}

/** Maximum length of a listing as one text, in characters. The last line of a longer listing says that there is more. */
const maxListingLength = 1024 * 1024
/** Maximum total size of the files that a directory returns whole, in bytes. Further files are cut, but not below `beginningBytes`. */
const maxWholeBytes = 256 * 1024
const beginningBytes = 256
const maxChildren = 2000

export function createDirectoryReader(state: CatalogState): DirectoryReader {
  /**
   * In a mount that the principal may not see, an invalid cursor must look like a missing directory: its own error
   * would reveal the mount.
   */
  const resume = async (mount: Mounted, cursor: string, scope: readonly string[], context: Context) => {
    try {
      return JSON.parse(state.seal.open(scope, cursor)) as [number, string?]
    } catch (error) {
      if (await isVisible(mount, state, context)) throw error
      throw notFound('nothing in the mount is visible')
    }
  }

  const page: DirectoryReader['page'] = async (mount, path, cursor, context) => {
    const directory = asDirectory(path)
    const scope = cursorScope(`directory ${mount.uriOf(canonicalPath(directory))}`, context.principal)
    const [number, after] = cursor === undefined ? [0] : await resume(mount, cursor, scope, context)
    const builder = createPageBuilder<Resource>(state.paging, number)
    let last = after
    for await (const child of iterateChildren(mount.list(context), directory, after)) {
      context.signal.throwIfAborted()
      const resource = childResource(mount, child)
      if (!builder.add(resource, itemSizeBound(resource)))
        return {
          items: builder.items,
          nextCursor: state.seal.seal(scope, JSON.stringify([number + 1, last])),
          cache: mount.cache,
        }
      last = child.path
    }
    if (builder.items.length === 0 && (cursor === undefined || mayHaveOtherSpellings(directory))) {
      const spelling = await requireDirectory(mount, directory, context)
      if (spelling !== directory) return page(mount, spelling, cursor, context)
    }
    return { items: builder.items, cache: mount.cache }
  }

  const list: DirectoryReader['list'] = async (mount, uri, path, context) => {
    const directory = asDirectory(path)
    const lines: string[] = []
    let length = 0
    let more = false
    for await (const child of iterateChildren(mount.list(context), directory)) {
      context.signal.throwIfAborted()
      const line = formatChildLine(child)
      length += line.length + 1
      if (length > maxListingLength) {
        more = true
        lines.push('… more: page through them with resources/directory/read')
        break
      }
      lines.push(line)
    }
    if (lines.length === 0) {
      const spelling = await requireDirectory(mount, directory, context)
      if (spelling !== directory) return list(mount, uri, spelling, context)
    }
    const text = lines.map((line) => `${line}\n`).join('')
    const name = directory === '' ? mount.name : baseName(directory)
    return [{ uri, name, mimeType: directoryMimeType, text, ...(more ? { meta: truncated() } : {}) }]
  }

  const expand: DirectoryReader['expand'] = async (mount, uri, path, context) => {
    const directory = asDirectory(path)
    const contents: ResourceContent[] = []
    let remainingBytes = maxWholeBytes
    for await (const child of iterateChildren(mount.list(context), directory)) {
      context.signal.throwIfAborted()
      if (contents.length === maxChildren) {
        const last = contents.pop()
        if (last !== undefined) contents.push({ ...last, meta: { ...last.meta, ...truncated() } })
        break
      }
      const name = baseName(child.path)
      // Keep the client's spelling of the directory, since hosts compare URIs.
      const at = `${uri}/${encodeSegment(name)}`
      if (child.entry === undefined) {
        contents.push({ uri: at, name, mimeType: directoryMimeType, text: '' })
        continue
      }
      const content = await readUpTo(mount, child.entry, remainingBytes, context)
      if (content === undefined) continue
      remainingBytes -= byteLength(content)
      contents.push({ ...content, uri: at, name })
    }
    if (contents.length > 0) return contents
    const spelling = await requireDirectory(mount, directory, context)
    if (spelling !== directory) return expand(mount, uri, spelling, context)
    // An empty directory exists: an empty answer would mean that it does not.
    return [{ uri, name: directory === '' ? mount.name : baseName(directory), mimeType: directoryMimeType, text: '' }]
  }

  return { page, list, expand }
}

const asDirectory = (path: string) => (path === '' || path.endsWith('/') ? path : `${path}/`)

const truncated = () => ({ [metaKeys.truncated]: true })

function childResource(mount: Mounted, child: Child): Resource {
  if (child.entry !== undefined) return mount.resourceOf(child.entry)
  const title = child.title === undefined ? {} : { title: child.title }
  return { uri: mount.uriOf(child.path), name: baseName(child.path), ...title, mimeType: directoryMimeType }
}

function formatChildLine({ path, entry }: Child): string {
  if (entry === undefined) return `${baseName(path)}/  directory`
  const facts = [
    baseName(path),
    ...(entry.size === undefined ? [] : [entry.size === 1 ? '1 byte' : `${entry.size} bytes`]),
    ...(entry.modified === undefined ? [] : [`${new Date(entry.modified).toISOString().slice(0, 16)}Z`]),
    ...(entry.mimeType === undefined ? [] : [entry.mimeType]),
    ...(entry.title === undefined ? [] : [JSON.stringify(entry.title)]),
  ]
  return facts.join('  ')
}

/**
 * Returns the path under which the source lists a directory: the path itself, or one that is canonically equivalent.
 * @throws ResourceError `not-found` if the directory does not exist, `invalid` if it is a file.
 */
async function requireDirectory(mount: Mounted, directory: string, context: Context): Promise<string> {
  if (directory === '') {
    if (mount.access(context.principal, '')) return directory
    throw notFound('nothing in the mount is visible')
  }
  const entry = await mount.find(directory, context)
  if (entry !== undefined) return canonicalPath(entry.path) === canonicalPath(directory) ? entry.path : directory
  if ((await mount.find(directory.slice(0, -1), context)) !== undefined)
    throw invalid('This resource is not a directory. Read it with resources/read.', 'not-a-directory')
  throw notFound('no such directory')
}

/** Reads an entry whole if it fits into `budget` bytes, otherwise its beginning. Undefined when it no longer exists or is too large. */
async function readUpTo(mount: Mounted, entry: Entry, budget: number, context: Context): Promise<Content | undefined> {
  const whole = entry.size !== undefined && entry.size <= budget
  const length = whole ? budget : Math.max(budget, beginningBytes)
  try {
    const range = whole ? {} : { range: { start: 0, end: length } }
    const [content] = await mount.provider.read({ path: entry.path, params: new Map(), ...range }, context)
    if (content === undefined) throw new ResourceError('internal', 'the provider answered a read with nothing')
    return truncateContent(content, entry, length)
  } catch (error) {
    if (isOverReadLimit(error)) throw error
    if (isResourceError(error, 'not-found') || isResourceError(error, 'too-large')) return undefined
    throw error
  }
}

function truncateContent(content: Content, entry: Entry, length: number): Content {
  const size = content.size ?? entry.size
  const truncatedMeta = {
    meta: { ...content.meta, ...truncated(), ...(size === undefined ? {} : { [metaKeys.size]: size }) },
  }
  const partial = content.range !== undefined && (size === undefined || content.range.end < size)
  if ('text' in content) {
    const bytes = Buffer.from(content.text)
    if (bytes.length <= length) return partial ? { ...content, ...truncatedMeta } : content
    return { ...content, text: new TextDecoder().decode(bytes.subarray(0, length), { stream: true }), ...truncatedMeta }
  }
  if ('bytes' in content) {
    if (content.bytes.length <= length) return partial ? { ...content, ...truncatedMeta } : content
    return { ...content, bytes: content.bytes.subarray(0, length), ...truncatedMeta }
  }
  // A stream is not read for a directory.
  const { stream: _, length: __, ...facts } = content
  return { ...facts, bytes: new Uint8Array(), ...truncatedMeta }
}

function byteLength(content: Content): number {
  if ('text' in content) return Buffer.byteLength(content.text)
  return 'bytes' in content ? content.bytes.length : 0
}
