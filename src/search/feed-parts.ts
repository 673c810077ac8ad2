import { defined } from '../core/kit/defined.ts'
import type { MountReader } from '../core/mount-reader.ts'
import type { Entry, EntryPart } from '../core/provider.ts'
import type { Scrubber } from '../core/scrub.ts'
import { digestOf, nameOnly } from './feed-document.ts'
import type { SearchDocument } from './search-index.ts'

export interface PartsOptions {
  readonly mount: MountReader
  /** Key of the reading settings. Parts that were read with another key are read again. */
  readonly way: string
  /** Maximum number of indexed parts of one entry. */
  readonly maxParts: number
  readonly scrubber?: Scrubber
  /** Keeps documents in the index. Answers how many were kept. */
  readonly keep: (documents: readonly SearchDocument[]) => Promise<number>
}

/** Result of indexing the parts of one entry. */
export interface PartsFed {
  readonly looked: number
  readonly indexed: number
  /** Whether there are more than are indexed. */
  readonly isCut: boolean
}

/** Number of parts indexed at once. */
const batchSize = 200

/**
 * Indexes the parts of an entry that are new or have changed.
 *
 * @param known The versions of what is indexed, by URI. Parts that are there are taken out of it.
 */
export async function feedParts(
  parts: AsyncIterable<EntryPart>,
  known: Map<string, string>,
  options: PartsOptions,
  signal: AbortSignal,
): Promise<PartsFed> {
  let [looked, indexed] = [0, 0]
  let batch: SearchDocument[] = []
  for await (const part of parts) {
    signal.throwIfAborted()
    if (looked >= options.maxParts) return { looked, indexed: indexed + (await options.keep(batch)), isCut: true }
    looked++
    const document = partDocument(part, options)
    const version = known.get(document.uri)
    known.delete(document.uri)
    if (version === document.version) continue
    batch.push(document)
    if (batch.length < batchSize) continue
    indexed += await options.keep(batch)
    batch = []
  }
  return { looked, indexed: indexed + (await options.keep(batch)), isCut: false }
}

function partDocument(
  { path, title, mimeType, text }: EntryPart,
  { mount, way, scrubber }: PartsOptions,
): SearchDocument {
  const clean = (said: string) => scrubber?.scrub(said) ?? said
  return {
    uri: mount.uriOf(path),
    mount: mount.address,
    text: clean(text),
    version: digestOf(JSON.stringify([way, title, clean(text)])),
    ...(title === undefined ? {} : { title: clean(title) }),
    ...defined({ mimeType }),
  }
}

/** An entry whose parts are indexed: it is found by its name alone, since its text is theirs. */
export function entryWithParts(
  entry: Entry,
  options: Pick<PartsOptions, 'mount' | 'way' | 'scrubber'>,
): SearchDocument {
  const document = nameOnly(entry, options)
  return { ...document, version: digestOf(JSON.stringify([options.way, 'parts', document.title])) }
}
