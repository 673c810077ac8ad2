import { createLruCache } from '../core/kit/lru.ts'
import type { Resource } from '../core/view.ts'
import type { TermBag } from '../text/words.ts'

/**
 * Cache of the readings of one caller. Only resources whose listing has a version are cached, by URI and version: others may change without
 * notice.
 */
export interface ReadingCache {
  /** The terms of a resource. `undefined`: this version is not cached. `null`: it is not text. */
  bag(resource: Resource): TermBag | null | undefined
  keepBag(resource: Resource, bag: TermBag | null): void
  /** The text of a resource. `undefined`: this version is not cached. */
  reading(resource: Resource): TextReading | undefined
  /** Caches a text that was read after the resource was listed, if it has the listed version. */
  keepReading(resource: Resource, reading: TextReading): void
}

/** Maximum size, in bytes, of the caches for all callers of a server (terms, texts, and data of each text). */
const maxBytes = { bags: 32 * 2 ** 20, texts: 10 * 2 ** 20, readings: 8 * 2 ** 20 }
/** Estimated size of a key, a map entry and small objects, in bytes. */
const overheadBytes = 400
/**
 * Minimum age of a change before the resource is cached, in milliseconds. Time stamps of FAT have a resolution of two seconds, and two
 * changes within it have the same version.
 */
const unsettledMs = 2000

interface KnownReading extends Omit<TextReading, 'text'> {
  readonly keyLength: number
}

/** Creates the caches of all callers of a server. Each caller has its own, because callers may see different resources. */
export function createReadingCaches(): (caller: string) => ReadingCache {
  const bags = createLruCache<TermBag | { readonly bag: null }>(maxBytes.bags, (bag) =>
    'bag' in bag ? overheadBytes : overheadBytes + bag.hashes.byteLength + bag.counts.byteLength,
  )
  const readings = createLruCache<KnownReading>(maxBytes.readings, ({ keyLength }) => overheadBytes + keyLength)
  const texts = createLruCache<{ readonly text: string; readonly bytes: number }>(maxBytes.texts, ({ bytes }) => bytes)
  return (caller) => {
    const keyOf = ({ uri, version }: Resource) =>
      version === undefined ? undefined : JSON.stringify([caller, uri, version])
    const keyToKeep = (resource: Resource) => {
      const { modified } = resource
      return modified === undefined || Math.abs(Date.now() - modified) > unsettledMs ? keyOf(resource) : undefined
    }
    return {
      bag: (resource) => {
        const key = keyOf(resource)
        const bag = key === undefined ? undefined : bags.get(key)
        return bag !== undefined && 'bag' in bag ? null : bag
      },
      keepBag: (resource, bag) => {
        const key = keyToKeep(resource)
        if (key !== undefined) bags.set(key, bag ?? { bag })
      },
      reading: (resource) => {
        const key = keyOf(resource)
        const reading = key === undefined ? undefined : readings.get(key)
        const text = reading === undefined ? undefined : texts.get(reading.sha256)
        if (reading === undefined || text === undefined) return undefined
        const { keyLength: _, ...facts } = reading
        return { ...facts, text: text.text }
      },
      keepReading: (resource, { text, ...facts }) => {
        const key = facts.version === resource.version ? keyToKeep(resource) : undefined
        if (key === undefined) return
        readings.set(key, { ...facts, keyLength: key.length })
        if (texts.get(facts.sha256) === undefined)
          texts.set(facts.sha256, { text, bytes: overheadBytes + textMemoryBytes(text) })
      },
    }
  }
}

/** Returns the memory of a text in bytes: V8 stores Latin-1 text in one byte per character, other text in two. */
function textMemoryBytes(text: string): number {
  return Buffer.byteLength(text) === text.length ? text.length : 2 * text.length
}

/** Content of a resource as text. */
export interface TextReading {
  readonly text: string
  /** Digest of the text in UTF-8. */
  readonly sha256: string
  readonly mimeType?: string
  readonly version?: string
  readonly isOfDocument?: true
}
