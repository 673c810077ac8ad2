import { createHash } from 'node:crypto'
import { isResourceError } from '../core/errors.ts'
import { defined } from '../core/kit/defined.ts'
import { isText } from '../core/kit/utf8.ts'
import { metaKeys } from '../core/meta.ts'
import { withParameter } from '../core/uri.ts'
import type { Resource, ResourceContent, View } from '../core/view.ts'
import type { TextReading } from './memory.ts'
import type { AssembleOptions, Limits } from './types.ts'

/** Content of a resource as text, or the reason why there is none. */
export type Reading = TextReading | Fault

interface Fault {
  readonly fault: 'not-found' | 'too-large' | 'not-text' | 'unavailable'
  /** The value of `?as=` with which its source reads a binary document. */
  readonly form?: string
}

/** Reads resources, each once, few at a time, within the limit of bytes. */
export interface Reader {
  /** Passes the listed entries, so that a text of the same version is taken from the cache. */
  expect(resources: readonly Resource[]): void
  /** Returns readings in the order of the URIs. Beyond the limit they are undefined; the same URIs in the same order give the same readings. */
  read(uris: readonly string[]): Promise<readonly (Reading | undefined)[]>
  /**
   * Like `read`, but skips cached resources. These count as read, so that the limit has the same effect with and without the
   * cache.
   *
   * @param unitsOf The length of a cached text, in UTF-16 units. `undefined`: it is not cached.
   */
  readOthers(
    uris: readonly string[],
    unitsOf: (uri: string) => number | undefined,
  ): Promise<readonly (Reading | 'remembered' | undefined)[]>
}

/** @param isExcluded Whether to leave out a resource that is read along with others, such as a child of a folder. */
export function createReader(
  view: View,
  limits: Limits,
  isExcluded: (uri: string) => boolean,
  { signal, memory }: Pick<AssembleOptions, 'signal' | 'memory'>,
): Reader {
  const listed = new Map<string, Resource>()
  const known = new Map<string, Reading>()
  /** Cached resources, which count as read. */
  const counted = new Set<string>()
  let held = 0
  let readsDocuments = true
  const readOne = async (uri: string): Promise<Reading> => {
    const resource = listed.get(uri)
    const remembered = resource === undefined ? undefined : memory?.reading(resource)
    if (remembered !== undefined && Buffer.byteLength(remembered.text) <= limits.item) return remembered
    const reading = await readAsIs(uri, resource)
    if (!readsDocuments || !('fault' in reading) || reading.form === undefined) return reading
    // The source itself caches the texts of documents.
    const text = await readAsIs(withParameter(uri, 'as', reading.form), undefined)
    return 'text' in text ? { ...text, isOfDocument: true } : text
  }
  const readAsIs = async (uri: string, resource: Resource | undefined): Promise<Reading> => {
    try {
      const { contents } = await view.read(uri, { bare: true, ...defined({ signal }) })
      const shown: ResourceContent[] = []
      for (const content of contents) {
        if (!isExcluded(content.uri)) shown.push(content)
        else if ('stream' in content) await leave(content.stream)
      }
      const form = formOf(shown)
      if (form !== undefined) {
        for (const content of shown) if ('stream' in content) await leave(content.stream)
        return { fault: 'not-text', form }
      }
      const reading = await readingOf(shown, limits.item)
      const isWhole = shown.length === 1 && contents.length === 1
      if (isWhole && resource !== undefined && 'text' in reading) memory?.keepReading(resource, reading)
      return reading
    } catch (error) {
      signal?.throwIfAborted()
      if (isResourceError(error, 'too-large')) return { fault: 'too-large' }
      if (isResourceError(error, 'not-found') || isResourceError(error, 'invalid')) return { fault: 'not-found' }
      return { fault: 'unavailable' }
    }
  }
  const readAll = async (uris: readonly string[], unitsOf: (uri: string) => number | undefined): Promise<void> => {
    const unknown = [...new Set(uris)].filter((uri) => !known.has(uri))
    // In batches, so that the effect of the limit does not depend on which read was faster.
    for (let at = 0; at < unknown.length; at += limits.concurrency) {
      const isFull = held >= limits.bytes
      const batch: string[] = []
      for (const uri of unknown.slice(at, at + limits.concurrency)) {
        const units = counted.has(uri) ? undefined : unitsOf(uri)
        if (!isFull && units !== undefined) {
          counted.add(uri)
          held += 2 * units
        } else if (!isFull || counted.has(uri)) batch.push(uri)
      }
      const readings = await Promise.all(batch.map(readOne))
      for (const [index, uri] of batch.entries()) {
        const reading = readings[index]
        if (reading === undefined) continue
        known.set(uri, reading)
        if ('text' in reading && !counted.has(uri)) held += 2 * reading.text.length
      }
    }
  }
  return {
    expect: (resources) => {
      if (memory === undefined) return
      for (const resource of resources) if (resource.version !== undefined) listed.set(resource.uri, resource)
    },
    read: async (uris) => {
      // The search for words does not read documents, because each takes a second. Chosen documents are read here.
      readsDocuments = true
      for (const uri of uris) {
        const before = known.get(uri)
        if (before !== undefined && 'fault' in before && before.form !== undefined) known.delete(uri)
      }
      await readAll(uris, () => undefined)
      return uris.map((uri) => known.get(uri))
    },
    readOthers: async (uris, unitsOf) => {
      readsDocuments = false
      await readAll(
        uris.filter((uri) => !counted.has(uri)),
        unitsOf,
      )
      return uris.map((uri) => known.get(uri) ?? (counted.has(uri) ? 'remembered' : undefined))
    },
  }
}

/**
 * The form in which a single binary document is read: Markdown if its source supports it. `undefined`: it is not such a document.
 */
function formOf(contents: readonly ResourceContent[]): string | undefined {
  const [content, ...others] = contents
  if (content === undefined || others.length > 0 || 'text' in content) return undefined
  const told = content.meta?.[metaKeys.reading]
  const forms: unknown = typeof told === 'object' && told !== null && 'forms' in told ? told.forms : undefined
  if (!Array.isArray(forms)) return undefined
  return ['markdown', 'text'].find((form) => forms.includes(form))
}

async function readingOf(contents: readonly ResourceContent[], limit: number): Promise<Reading> {
  const texts: string[] = []
  let left = limit
  for (const content of contents) {
    const found = await textOf(content, left)
    if (typeof found !== 'string') return found
    left -= Buffer.byteLength(found)
    if (left < 0) return { fault: 'too-large' }
    texts.push(found.toWellFormed())
  }
  if (texts.length === 0) return { fault: 'not-text' }
  const text = texts.join('\n')
  const { mimeType, version } = contents[0] ?? {}
  return {
    text,
    sha256: createHash('sha256').update(text).digest('hex'),
    ...defined({ mimeType, version }),
  }
}

async function textOf(content: ResourceContent, limit: number): Promise<string | Exclude<Reading, { text: string }>> {
  if ('text' in content) return content.text
  if ('stream' in content && content.length > limit) {
    await leave(content.stream)
    return { fault: 'too-large' }
  }
  const bytes = 'bytes' in content ? content.bytes : await gather(content.stream, limit)
  if (bytes === undefined || bytes.length > limit) return { fault: 'too-large' }
  return isText(bytes) ? Buffer.from(bytes).toString('utf8') : { fault: 'not-text' }
}

/** A stream that is not read to its end would keep a file or connection open. */
async function leave(stream: AsyncIterable<Uint8Array>): Promise<void> {
  await stream[Symbol.asyncIterator]().return?.()
}

async function gather(stream: AsyncIterable<Uint8Array>, limit: number): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of stream) {
    size += chunk.length
    if (size > limit) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
