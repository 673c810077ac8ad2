import { compileGlob } from '../../src/core/glob.ts'
import type { SearchDocument, SearchFilter, SearchHit, SearchIndex, Suggestion } from '../../src/search/search-index.ts'

/** A simple search index in memory: a line is a passage, and its score is the number of matching words. */
export function memoryIndex(): SearchIndex & { readonly all: ReadonlyMap<string, SearchDocument> } {
  const all = new Map<string, SearchDocument>()
  const sorted = () => [...all.values()].sort((a, b) => Buffer.compare(Buffer.from(a.uri), Buffer.from(b.uri)))

  return {
    all,
    put: async (documents) => {
      for (const document of documents) all.set(document.uri, document)
    },
    remove: async (uris) => {
      for (const uri of uris)
        if (uri.endsWith('/')) for (const known of all.keys()) known.startsWith(uri) && all.delete(known)
        else all.delete(uri)
    },
    documents: async ({ prefix = '', after, limit }) =>
      sorted()
        .filter(({ uri }) => uri.startsWith(prefix) && (after === undefined || uri > after))
        .slice(0, limit)
        .map(({ uri, version }) => ({ uri, version })),
    search: async function* ({ text, where = {}, allows = () => true }) {
      const words = wordsOf(text)
      const hits = sorted()
        .filter((document) => allows(document) && passes(document, where))
        .flatMap((document) => hitsIn(document, words))
        .sort((a, b) => b.score - a.score)
      const seen = new Set<string>()
      for (const hit of hits) {
        if (seen.has(hit.snippet.text)) continue
        seen.add(hit.snippet.text)
        yield hit
      }
    },
    suggest: async function* ({ prefix, allows = () => true }) {
      const found = new Map<string, string[]>()
      for (const document of sorted().filter(allows))
        for (const word of new Set(wordsOf(`${document.title ?? ''} ${document.text}`)))
          if (word.startsWith(prefix.toLowerCase())) found.set(word, [...(found.get(word) ?? []), document.uri])
      yield* suggestions(found)
    },
    mimeTypes: async ({ allows = () => true } = {}) => {
      const types = sorted().flatMap((document) => (allows(document) ? (document.mimeType ?? []) : []))
      return [...new Set(types)].sort()
    },
    mounts: async (addresses, { allows = () => true } = {}) => {
      const seen = new Set(sorted().flatMap((document) => (allows(document) ? document.mount : [])))
      return addresses.filter((address) => seen.has(address)).sort()
    },
    size: async () => ({ documents: all.size, passages: all.size, bytes: 0 }),
    embedding: async () => undefined,
    close: async () => {},
  }
}

function* suggestions(found: ReadonlyMap<string, readonly string[]>): Generator<Suggestion> {
  for (const text of [...found.keys()].sort()) yield { text, uris: found.get(text) ?? [] }
}

function wordsOf(text: string): readonly string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
}

function passes(
  { mount, uri, mimeType = '', audience, priority, modified }: SearchDocument,
  where: SearchFilter,
): boolean {
  const { mounts, mimeType: wanted, path } = where
  return (
    (mounts === undefined || mounts.includes(mount)) &&
    (wanted === undefined ||
      (wanted.endsWith('/*') ? mimeType.startsWith(wanted.slice(0, -1)) : mimeType === wanted)) &&
    (where.audience === undefined || audience === undefined || audience.includes(where.audience)) &&
    (where.minPriority === undefined || (priority ?? 0) >= where.minPriority) &&
    (where.since === undefined || (modified ?? 0) >= where.since) &&
    (path === undefined || compileGlob(path)(decodeURIComponent(uri.slice(mount.length + 1))))
  )
}

function hitsIn({ text, version: _, ...facts }: SearchDocument, words: readonly string[]): readonly SearchHit[] {
  return text.split('\n').flatMap((line, index) => {
    const lower = line.toLowerCase()
    const found = words.filter((word) => lower.includes(word))
    if (found.length === 0) return []
    const marks = found
      .map((word) => [lower.indexOf(word), lower.indexOf(word) + word.length] as const)
      .sort((a, b) => a[0] - b[0])
      .filter(([start], at, all) => start >= (all[at - 1]?.[1] ?? 0))
    const lines = { start: index + 1, end: index + 1 }
    return [{ ...facts, score: found.length, lines, snippet: { text: line, line: lines.start, marks } }]
  })
}
