import { createHash } from 'node:crypto'
import { isResourceError } from '../core/errors.ts'
import { isText } from '../core/utf8.ts'
import type { ResourceContent, View } from '../core/view.ts'
import type { Limits } from './types.ts'

/** What a resource holds, as text; or why that is not known. */
export type Reading =
  | { readonly text: string; readonly sha256: string; readonly mimeType?: string; readonly version?: string }
  | { readonly fault: 'not-found' | 'too-large' | 'not-text' | 'unavailable' }

/** Reads resources, each once, few at a time, and no more bytes than may be held. */
export interface Reader {
  /** In the order of the URIs. What is beyond the limit is `undefined`: the same URIs in the same order are read the same. */
  read(uris: readonly string[]): Promise<readonly (Reading | undefined)[]>
}

/** @param isExcluded What is left out of a resource that is read along with others, such as the children of a folder. */
export function createReader(
  view: View,
  limits: Limits,
  isExcluded: (uri: string) => boolean,
  signal?: AbortSignal,
): Reader {
  const known = new Map<string, Reading>()
  let held = 0
  const readOne = async (uri: string): Promise<Reading> => {
    try {
      const { contents } = await view.read(uri, { bare: true, ...(signal === undefined ? {} : { signal }) })
      const shown: ResourceContent[] = []
      for (const content of contents) {
        if (!isExcluded(content.uri)) shown.push(content)
        else if ('stream' in content) await leave(content.stream)
      }
      return await readingOf(shown, limits.item)
    } catch (error) {
      signal?.throwIfAborted()
      if (isResourceError(error, 'too-large')) return { fault: 'too-large' }
      if (isResourceError(error, 'not-found') || isResourceError(error, 'invalid')) return { fault: 'not-found' }
      return { fault: 'unavailable' }
    }
  }
  return {
    read: async (uris) => {
      const unknown = [...new Set(uris)].filter((uri) => !known.has(uri))
      // Batch by batch, so that what is beyond the limit does not depend on which read was faster.
      for (let at = 0; at < unknown.length && held < limits.bytes; at += limits.concurrency) {
        const batch = unknown.slice(at, at + limits.concurrency)
        const readings = await Promise.all(batch.map(readOne))
        for (const [index, uri] of batch.entries()) {
          const reading = readings[index]
          if (reading === undefined) continue
          known.set(uri, reading)
          if ('text' in reading) held += 2 * reading.text.length
        }
      }
      return uris.map((uri) => known.get(uri))
    },
  }
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
    ...(mimeType === undefined ? {} : { mimeType }),
    ...(version === undefined ? {} : { version }),
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

/** A stream that is not read to its end holds something open. */
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
