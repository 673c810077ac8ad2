import { invalid, isLater, isResourceError, notFound, ResourceError } from './errors.ts'
import { cursorScope, isVisible, sizeOf } from './listing.ts'
import { metaKeys } from './meta.ts'
import type { Mounted } from './mount.ts'
import { createPageBuilder } from './paging.ts'
import { baseName } from './path.ts'
import type { Content, Context, Entry } from './provider.ts'
import type { CatalogState } from './state.ts'
import { type Child, children } from './tree.ts'
import { encodeSegment } from './uri.ts'
import { directoryMimeType, type Page, type Resource, type ResourceContent } from './view.ts'

/** The three ways to look into a directory. Each is `not-found` where the principal sees no such directory. */
export interface DirectoryReader {
  /** A page of its children. */
  page(mount: Mounted, path: string, cursor: string | undefined, context: Context): Promise<Page<Resource>>
  /** Its listing as one text, a line for each child, made for a model to read. */
  list(mount: Mounted, uri: string, path: string, context: Context): Promise<readonly ResourceContent[]>
  /** Its children as contents of their own. */
  expand(mount: Mounted, uri: string, path: string, context: Context): Promise<readonly ResourceContent[]>
}

/** The longest listing as one text, in characters. What does not fit is counted on its last line as "more". */
const maxListing = 1024 * 1024
/** How many bytes of files a directory answers with as a whole; behind it, each file has its beginning only. */
const maxWhole = 256 * 1024
const beginning = 256
/** How many children a directory answers with as contents. */
const maxChildren = 2000

export function createDirectoryReader(state: CatalogState): DirectoryReader {
  /** Where a cursor resumes. Of a mount that the principal may not see, it is not judged: that would tell of the mount. */
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
    const scope = cursorScope(`directory ${mount.uriOf(directory)}`, context.principal)
    const [number, after] = cursor === undefined ? [0] : await resume(mount, cursor, scope, context)
    const builder = createPageBuilder<Resource>(state.paging, number)
    let last = after
    for await (const child of children(mount.list(context), directory, after)) {
      context.signal.throwIfAborted()
      const resource = resourceOf(mount, child)
      if (!builder.add(resource, sizeOf(resource)))
        return {
          items: builder.items,
          nextCursor: state.seal.seal(scope, JSON.stringify([number + 1, last])),
          cache: mount.cache,
        }
      last = child.path
    }
    if (builder.items.length === 0 && cursor === undefined) await requireDirectory(mount, directory, context)
    return { items: builder.items, cache: mount.cache }
  }

  const list: DirectoryReader['list'] = async (mount, uri, path, context) => {
    const directory = asDirectory(path)
    const lines: string[] = []
    let length = 0
    let more = false
    for await (const child of children(mount.list(context), directory)) {
      context.signal.throwIfAborted()
      const line = lineOf(child)
      length += line.length + 1
      if (length > maxListing) {
        more = true
        lines.push('… more: page through them with resources/directory/read')
        break
      }
      lines.push(line)
    }
    if (lines.length === 0) await requireDirectory(mount, directory, context)
    const text = lines.map((line) => `${line}\n`).join('')
    const name = directory === '' ? mount.name : baseName(directory)
    return [{ uri, name, mimeType: directoryMimeType, text, ...(more ? { meta: truncated() } : {}) }]
  }

  const expand: DirectoryReader['expand'] = async (mount, uri, path, context) => {
    const directory = asDirectory(path)
    const contents: ResourceContent[] = []
    let left = maxWhole
    for await (const child of children(mount.list(context), directory)) {
      context.signal.throwIfAborted()
      if (contents.length === maxChildren) {
        const last = contents.pop()
        if (last !== undefined) contents.push({ ...last, meta: { ...last.meta, ...truncated() } })
        break
      }
      const name = baseName(child.path)
      // Spelled as the client spelled the directory, since hosts compare.
      const at = `${uri}/${encodeSegment(name)}`
      if (child.entry === undefined) {
        contents.push({ uri: at, name, mimeType: directoryMimeType, text: '' })
        continue
      }
      const content = await readUpTo(mount, child.entry, left, context)
      if (content === undefined) continue
      left -= byteLength(content)
      contents.push({ ...content, uri: at, name })
    }
    if (contents.length > 0) return contents
    await requireDirectory(mount, directory, context)
    // An empty directory is there: an empty answer would say that it is not.
    return [{ uri, name: directory === '' ? mount.name : baseName(directory), mimeType: directoryMimeType, text: '' }]
  }

  return { page, list, expand }
}

const asDirectory = (path: string) => (path === '' || path.endsWith('/') ? path : `${path}/`)

const truncated = () => ({ [metaKeys.truncated]: true })

function resourceOf(mount: Mounted, child: Child): Resource {
  if (child.entry !== undefined) return mount.resourceOf(child.entry)
  const title = child.title === undefined ? {} : { title: child.title }
  return { uri: mount.uriOf(child.path), name: baseName(child.path), ...title, mimeType: directoryMimeType }
}

/** `name  size  date  type`, or `name/  directory`. */
function lineOf({ path, entry }: Child): string {
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

/** That a directory without visible children is there all the same; else the error that says what is wrong. */
async function requireDirectory(mount: Mounted, directory: string, context: Context): Promise<void> {
  if (directory === '') {
    if (mount.access(context.principal, '')) return
    throw notFound('nothing in the mount is visible')
  }
  if ((await mount.find(directory, context)) !== undefined) return
  if ((await mount.find(directory.slice(0, -1), context)) !== undefined)
    throw invalid('This resource is not a directory.', 'not-a-directory')
  throw notFound('no such directory')
}

/** The whole content of an entry that fits into `budget` bytes, else its beginning. `undefined`: it is gone by now. */
async function readUpTo(mount: Mounted, entry: Entry, budget: number, context: Context): Promise<Content | undefined> {
  const whole = entry.size !== undefined && entry.size <= budget
  const length = whole ? budget : Math.max(budget, beginning)
  try {
    const range = whole ? {} : { range: { start: 0, end: length } }
    const [content] = await mount.provider.read({ path: entry.path, params: new Map(), ...range }, context)
    if (content === undefined) throw new ResourceError('internal', 'the provider answered a read with nothing')
    return cut(content, entry, length)
  } catch (error) {
    if (isLater(error)) throw error
    if (isResourceError(error, 'not-found') || isResourceError(error, 'too-large')) return undefined
    throw error
  }
}

/** Cuts a content to so many bytes, and marks it where it is not whole. */
function cut(content: Content, entry: Entry, length: number): Content {
  const size = content.size ?? entry.size
  const marked = {
    meta: { ...content.meta, ...truncated(), ...(size === undefined ? {} : { [metaKeys.size]: size }) },
  }
  const partial = content.range !== undefined && (size === undefined || content.range.end < size)
  if ('text' in content) {
    const bytes = Buffer.from(content.text)
    if (bytes.length <= length) return partial ? { ...content, ...marked } : content
    return { ...content, text: new TextDecoder().decode(bytes.subarray(0, length), { stream: true }), ...marked }
  }
  if ('bytes' in content) {
    if (content.bytes.length <= length) return partial ? { ...content, ...marked } : content
    return { ...content, bytes: content.bytes.subarray(0, length), ...marked }
  }
  // A stream is not read for a directory: the client reads the resource itself.
  const { stream: _, length: __, ...facts } = content
  return { ...facts, bytes: new Uint8Array(), ...marked }
}

function byteLength(content: Content): number {
  if ('text' in content) return Buffer.byteLength(content.text)
  return 'bytes' in content ? content.bytes.length : 0
}
