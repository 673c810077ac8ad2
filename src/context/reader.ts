import { hash } from 'node:crypto'
import { isResourceError } from '../core/errors.ts'
import { compileGlob, escapeGlob } from '../core/glob.ts'
import { defined } from '../core/kit/object.ts'
import { isText } from '../core/kit/utf8.ts'
import { metaKeys } from '../core/meta.ts'
import { baseName } from '../core/path.ts'
import { parseAddress, withParameter } from '../core/uri.ts'
import type { Resource, ResourceContent, View } from '../core/view.ts'
import { termsIn } from '../text/analyser.ts'
import type { TextReading } from './memory.ts'
import type { AssembleOptions, ContextLimits } from './types.ts'

/** Content of a resource as text, or the reason why there is none. */
export type ReadOutcome = TextReading | ReadFault

interface ReadFault {
  readonly fault: 'not-found' | 'too-large' | 'not-text' | 'unreadable' | 'unavailable'
  /** Value of `?as=` with which the source reads a binary document as text. */
  readonly form?: string
}

/**
 * Reads resources, each once, few at a time, within the limit of bytes.
 *
 * @param isExcluded Whether to leave out a resource that is read along with others, such as a child of a folder.
 */
export function createContextReader(
  view: View,
  limits: ContextLimits,
  isExcluded: (uri: string) => boolean,
  { signal, memory }: Pick<AssembleOptions, 'signal' | 'memory'>,
) {
  const resourcesByUri = new Map<string, Resource>()
  const outcomes = new Map<string, ReadOutcome>()
  /** Cached resources, which count as read. */
  const terms = new Set<string>()
  let totalBytes = 0
  let readsDocuments = true
  const readOne = async (uri: string): Promise<ReadOutcome> => {
    const resource = resourcesByUri.get(uri)
    const remembered = resource === undefined ? undefined : memory?.reading(resource)
    if (remembered !== undefined && Buffer.byteLength(remembered.text) <= limits.item) return remembered
    const reading = await readAsIs(uri, resource)
    if (!readsDocuments || !('fault' in reading) || reading.form === undefined) return reading
    // The source itself caches the texts of documents.
    const text = await readAsIs(withParameter(uri, 'as', reading.form), undefined)
    return 'text' in text ? { ...text, isOfDocument: true } : text
  }
  const readAsIs = async (uri: string, resource: Resource | undefined): Promise<ReadOutcome> => {
    try {
      const { contents } = await view.read(uri, defined({ signal }))
      const resourceContents: ResourceContent[] = []
      for (const content of contents) {
        if (!isExcluded(content.uri)) resourceContents.push(content)
        else if ('stream' in content) await leave(content.stream)
      }
      const form = chooseReadingForm(resourceContents)
      if (form !== undefined) {
        for (const content of resourceContents) if ('stream' in content) await leave(content.stream)
        return { fault: 'not-text', form }
      }
      const reading = await readingOf(resourceContents, limits.item)
      const isWhole = resourceContents.length === 1 && contents.length === 1
      if (isWhole && resource !== undefined && 'text' in reading) memory?.keepReading(resource, reading)
      return reading
    } catch (error) {
      signal?.throwIfAborted()
      if (isResourceError(error, 'too-large')) return { fault: 'too-large' }
      if (isResourceError(error, 'invalid') && error.detail.reason === 'unreadable') return { fault: 'unreadable' }
      if (isResourceError(error, 'not-found') || isResourceError(error, 'invalid')) return { fault: 'not-found' }
      return { fault: 'unavailable' }
    }
  }
  const readAll = async (uris: readonly string[], unitsOf: (uri: string) => number | undefined): Promise<void> => {
    const unknown = [...new Set(uris)].filter((uri) => !outcomes.has(uri))
    // In batches, so that the effect of the limit does not depend on which read was faster.
    for (let at = 0; at < unknown.length; at += limits.concurrency) {
      const isFull = totalBytes >= limits.bytes
      const batch: string[] = []
      for (const uri of unknown.slice(at, at + limits.concurrency)) {
        const units = terms.has(uri) ? undefined : unitsOf(uri)
        if (!isFull && units !== undefined) {
          terms.add(uri)
          totalBytes += 2 * units
        } else if (!isFull || terms.has(uri)) batch.push(uri)
      }
      // The reads of a batch begin together, so a source need not check for changes before each of them.
      const readings = await Promise.all(batch.map(readOne))
      for (const [index, uri] of batch.entries()) {
        const reading = readings[index]
        if (reading === undefined) continue
        outcomes.set(uri, reading)
        if ('text' in reading && !terms.has(uri)) totalBytes += 2 * reading.text.length
      }
    }
  }
  return {
    /** Passes the listed entries, so that a text of the same version is taken from the cache. */
    expect: (resources: readonly Resource[]): void => {
      if (memory === undefined) return
      for (const resource of resources) if (resource.version !== undefined) resourcesByUri.set(resource.uri, resource)
    },
    /** Returns readings in the order of the URIs; `undefined` beyond the limit of bytes. */
    read: async (uris: readonly string[]): Promise<readonly (ReadOutcome | undefined)[]> => {
      // The search for words does not read documents, because extraction is slow. Documents that were chosen are read here.
      readsDocuments = true
      for (const uri of uris) {
        const before = outcomes.get(uri)
        if (before !== undefined && 'fault' in before && before.form !== undefined) outcomes.delete(uri)
      }
      await readAll(uris, () => undefined)
      return uris.map((uri) => outcomes.get(uri))
    },
    /**
     * Like `read`, but skips cached resources, and the texts of documents.
     *
     * @param unitsOf The length of a cached text, in UTF-16 units. `undefined`: it is not cached.
     */
    readOthers: async (
      uris: readonly string[],
      unitsOf: (uri: string) => number | undefined,
    ): Promise<readonly (ReadOutcome | 'remembered' | undefined)[]> => {
      readsDocuments = false
      await readAll(
        uris.filter((uri) => !terms.has(uri)),
        unitsOf,
      )
      return uris.map((uri) => outcomes.get(uri) ?? (terms.has(uri) ? 'remembered' : undefined))
    },
  }
}

export type ContextReader = ReturnType<typeof createContextReader>

/**
 * The form in which a single document is read: Markdown if its source supports it. `undefined`: it is not such a document.
 */
function chooseReadingForm(contents: readonly ResourceContent[]): string | undefined {
  const [content, ...others] = contents
  if (content === undefined || others.length > 0) return undefined
  // The source of a page is text for people; that of a notebook, or of a PDF in ASCII, is not.
  if ('text' in content && /html/.test(content.mimeType ?? 'html')) return undefined
  const readingFacts = content.meta?.[metaKeys.reading]
  const forms: unknown =
    typeof readingFacts === 'object' && readingFacts !== null && 'forms' in readingFacts
      ? readingFacts.forms
      : undefined
  if (!Array.isArray(forms)) return undefined
  return ['markdown', 'text'].find((form) => forms.includes(form))
}

async function readingOf(contents: readonly ResourceContent[], limit: number): Promise<ReadOutcome> {
  const texts: string[] = []
  let remaining = limit
  for (const content of contents) {
    const fault = await readContentText(content, remaining)
    if (typeof fault !== 'string') return fault
    remaining -= Buffer.byteLength(fault)
    if (remaining < 0) return { fault: 'too-large' }
    texts.push(fault.toWellFormed())
  }
  if (texts.length === 0) return { fault: 'not-text' }
  const text = texts.join('\n')
  const { mimeType, version } = contents[0] ?? {}
  return {
    text,
    sha256: hash('sha256', text),
    ...defined({ mimeType, version }),
  }
}

async function readContentText(
  content: ResourceContent,
  limit: number,
): Promise<string | Exclude<ReadOutcome, { text: string }>> {
  if ('text' in content) return content.text
  if ('stream' in content && content.length > limit) {
    await leave(content.stream)
    return { fault: 'too-large' }
  }
  const bytes = 'bytes' in content ? content.bytes : await collectStream(content.stream, limit)
  if (bytes === undefined || bytes.length > limit) return { fault: 'too-large' }
  return isText(bytes) ? Buffer.from(bytes).toString('utf8') : { fault: 'not-text' }
}

/** Ends a stream that is not read to its end. */
async function leave(stream: AsyncIterable<Uint8Array>): Promise<void> {
  await stream[Symbol.asyncIterator]().return?.()
}

async function collectStream(stream: AsyncIterable<Uint8Array>, limit: number): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of stream) {
    size += chunk.length
    if (size > limit) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** The canonical spelling of a URI. A URI with a query, and an invalid one, stay unchanged. */
export function canonicalUri(uri: string): string {
  try {
    const { text } = parseAddress(uri)
    return uri.endsWith('/') ? `${text}/` : text
  } catch {
    return uri
  }
}

/** Creates a test whether a URI is one of these, or lies below one that ends in `/`. All spellings of a resource are equal. */
export function createUriMatcher(uris: readonly string[]): (uri: string) => boolean {
  if (uris.length === 0) return () => false
  const all = uris.map(canonicalUri)
  const exact = new Set(all)
  const folders = all.filter((uri) => uri.endsWith('/'))
  return (raw) => {
    const uri = canonicalUri(raw)
    // A part or a form of a resource counts as that resource.
    const [bare = uri] = uri.split(/[?#]/)
    const isBelow = (one: string) => folders.some((folder) => one.startsWith(folder) || `${one}/` === folder)
    return [uri, canonicalUri(bare)].some((one) => exact.has(one) || isBelow(one))
  }
}

/**
 * Resolves to the test of URIs that are left out ({@link createUriMatcher}). A text with an asterisk is a glob: over the paths in all mounts,
 * or below the scheme and host that it names.
 *
 * @throws ResourceError `invalid` (reason `argument`) for a malformed glob.
 */
export async function createExcluder(
  view: View,
  { excludes = [], signal }: Pick<AssembleOptions, 'excludes' | 'signal'>,
): Promise<(uri: string) => boolean> {
  const isGlob = (text: string) => text.includes('*')
  const isNamed = createUriMatcher(excludes.filter((text) => !isGlob(text)))
  const globs = excludes.filter(isGlob).map((text) => {
    const [, origin, path = text] = /^([a-z][a-z0-9+.-]*:\/\/[^/]*)\/(.*)$/is.exec(text) ?? []
    return { origin, matches: compileGlob(origin === undefined ? path : decodedGlob(path)) }
  })
  if (globs.length === 0) return isNamed
  const within = createAddressFinder((await view.mounts(defined({ signal }))).map(({ uri }) => uri))
  const matchesBelow = (place: string | undefined, uri: string, matches: (path: string) => boolean) =>
    place !== undefined && uri.startsWith(place) && matches(decodeUriPath(uri.slice(place.length).replace(/^\//, '')))
  return (raw) => {
    if (isNamed(raw)) return true
    const uri = canonicalUri(raw)
    const mount = within(uri)
    return globs.some(({ origin, matches }) => matchesBelow(origin ?? mount, uri, matches))
  }
}

/** Decodes a glob in which names are percent-encoded, as in a URI. A name without special characters is taken literally. */
function decodedGlob(glob: string): string {
  return glob
    .split('/')
    .map((segment) => (/[*[{]/.test(segment) ? decodeUriPath(segment) : escapeGlob(decodeUriPath(segment))))
    .join('/')
}

/** Returns a function that finds the first of the addresses that contains a URI; undefined if none does. */
export function createAddressFinder(addresses: readonly string[]): (uri: string) => string | undefined {
  const mounts = addresses.map((address) => {
    const root = address.endsWith('/') ? address.slice(0, -1) : address
    return { address, root, prefix: `${root}/` }
  })
  return (uri) => mounts.find(({ root, prefix }) => uri.startsWith(prefix) || uri === root)?.address
}

/** The folder of a URI, with its `/`. */
export function folderOf(uri: string): string {
  const [path = ''] = uri.split(/[?#]/)
  return path.slice(0, path.lastIndexOf('/') + 1)
}

/** Returns a URI without its query and fragment, percent-decoded if that is possible. */
export function decodeUriPath(uri: string): string {
  const [path = ''] = uri.split(/[?#]/)
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

const histories = /^(?:change(?:s|log)?|history|news|releases?|release[-_]?notes)(?:[-_.].*)?$/i
/** Names without an extension, and names of prose files: `changes.ts` is source code. */
const prose = /^[^.]+$|\.(?:md|mdx|markdown|rst|txt|adoc)$/i

/** Whether a resource is a history of changes, such as a changelog, which none of the terms names. */
export function isHistory(uri: string, terms: ReadonlySet<string>): boolean {
  if (terms.size === 0) return false
  const name = baseName(decodeUriPath(uri))
  if (!histories.test(name) || !prose.test(name)) return false
  return !termsIn(name.replace(/\.[^.]*$/, '')).some((term) => terms.has(term))
}
