import type { Log } from '../core/log.ts'
import type { NewText, Store } from '../store/index.ts'
import { edition } from '../text/tokenizer.ts'
import type { EmbedderOptions } from './embedder.ts'
import { openEmbedding } from './embedding.ts'
import { findPassages } from './find.ts'
import { textOf } from './part.ts'
import type { SearchDocument, SearchIndex } from './search-index.ts'
import { suggestWords } from './suggest.ts'
import { createVisibility } from './visible.ts'

export { openStore, type PostgresStore, type SqliteStore, type Store, type StoreOptions } from '../store/index.ts'
export type { EmbedderOptions } from './embedder.ts'
export type {
  Allows,
  DocumentFacts,
  EmbeddingState,
  IndexedDocument,
  MountVisibility,
  SearchDocument,
  SearchFilter,
  SearchHit,
  SearchIndex,
  SearchQuery,
  Snippet,
  Suggestion,
  SuggestQuery,
  VisibleQuery,
} from './search-index.ts'

export interface SearchIndexOptions {
  /** The opener closes it, after the index. */
  readonly store: Store
  /** Name of the index within the store, such as `docs`. */
  readonly name: string
  /** Source of vectors. By default there are none, and nothing is sent anywhere. */
  readonly embedder?: EmbedderOptions
  readonly log?: Log
}

/** How much text is put in one write: a write is to be over soon. In UTF-16 units. */
const oneWrite = 500_000
/** How long others wait at most while texts are cut, in milliseconds. */
const oneTurn = 8

/** Opens an index in a store: what was put before is there. */
export async function openSearchIndex(options: SearchIndexOptions): Promise<SearchIndex> {
  const texts = options.store.texts(`search/${options.name}`)
  const log = options.log ?? (() => {})
  const visibility = createVisibility(texts)
  const embedding = options.embedder && (await openEmbedding(texts, options.embedder, log))

  return {
    put: async (documents) => {
      for await (const some of writesOf(documents)) {
        await texts.put(some)
        embedding?.wake()
      }
    },
    remove: (uris) => texts.remove(uris),
    documents: async (query) => {
      const found = await texts.list(query)
      return found.map(({ key, version, edition: made }) => ({ uri: key, version: made < edition ? '' : version }))
    },
    search: (query) => findPassages(texts, visibility, query, embedding?.nearest(query.degraded)),
    suggest: (query) => suggestWords(texts, visibility, query),
    mimeTypes: async ({ allows, signal } = {}) => texts.mimeTypes((await visibility.of(allows, signal))?.set),
    mounts: async (addresses, { allows, signal } = {}) => {
      const visible = await visibility.of(allows, signal)
      if (visible !== undefined) return addresses.filter((address) => visible.mounts.has(address)).sort()
      const found = await Promise.all(
        addresses.map(async (address) => {
          // Nothing that begins with the address comes before it.
          const [[at], [below]] = await Promise.all([
            texts.list({ prefix: address, limit: 1 }),
            texts.list({ prefix: `${address}/`, limit: 1 }),
          ])
          return at?.key === address || below !== undefined ? [address] : []
        }),
      )
      return found.flat().sort()
    },
    size: async () => {
      const { texts: documents, parts, bytes } = await texts.size()
      return { documents, passages: parts, bytes }
    },
    embedding: async () => embedding?.state(),
    close: async () => embedding?.close(),
  }
}

/** Documents as the store takes them, as many at once as one write bears. */
async function* writesOf(documents: readonly SearchDocument[]): AsyncGenerator<readonly NewText[]> {
  let since = performance.now()
  const pause = async () => {
    if (performance.now() - since < oneTurn) return
    await new Promise((resolve) => setImmediate(resolve))
    since = performance.now()
  }
  let some: NewText[] = []
  let size = 0
  for (const document of documents) {
    some.push(await textOf(document, pause))
    size += document.text.length
    if (size < oneWrite && some.length < 500) continue
    yield some
    some = []
    size = 0
  }
  if (some.length > 0) yield some
}
