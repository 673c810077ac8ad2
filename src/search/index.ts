import { defined } from '../core/kit/object.ts'
import type { Log } from '../core/log.ts'
import type { NewText, Store, Texts } from '../store/index.ts'
import { analyserVersion } from '../text/analyser.ts'
import { createEmbedder, createVectorIndex, type EmbedderOptions, packVector, type VectorRanking } from './embedder.ts'
import { findPassages } from './find.ts'
import { textOfPart, toNewText } from './part.ts'
import type { EmbeddingState, SearchDocument, SearchIndex } from './search-index.ts'
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
  /** The caller closes the store, after the index. */
  readonly store: Store
  readonly name: string
  /** Source of vectors. By default there are none, and nothing is sent anywhere. */
  readonly embedder?: EmbedderOptions
  readonly log?: Log
}

/** Maximum size of one write, in UTF-16 units of text and in documents. */
const oneWrite = { units: 64_000, documents: 64 }
/** Time slice for cutting texts, in milliseconds. */
const sliceMs = 8

/** Opens an index in a store. Earlier documents are still in it. */
export async function openSearchIndex(options: SearchIndexOptions): Promise<SearchIndex> {
  const texts = options.store.texts(`search/${options.name}`)
  const log = options.log ?? (() => {})
  const visibility = createVisibility(texts)
  const embedding = options.embedder && (await openEmbedding(texts, options.embedder, log))

  return {
    put: async (documents) => {
      // While the store writes, one more write waits for it, and the documents of the next are cut.
      let waiting: Promise<void> | undefined
      let writing: Promise<void> | undefined
      try {
        for await (const some of writesOf(documents)) {
          await writing
          writing = waiting
          waiting = texts.put(some).then(() => embedding?.wake())
          waiting.catch(() => {})
        }
      } finally {
        await Promise.allSettled([writing, waiting])
      }
      await Promise.all([writing, waiting])
    },
    remove: (uris) => texts.remove(uris),
    documents: async (query) => {
      const listedTexts = await texts.list(query)
      return listedTexts.map(({ key, version, edition: newEdition }) => ({
        uri: key,
        version: newEdition < analyserVersion ? '' : version,
      }))
    },
    search: (query) => findPassages(texts, visibility, query, embedding?.vectors(query.degraded)),
    suggest: (query) => suggestWords(texts, visibility, query),
    mimeTypes: async ({ allows, signal } = {}) => texts.mimeTypes((await visibility.of(allows, signal))?.set),
    mounts: async (addresses, { allows, signal } = {}) => {
      const visible = await visibility.of(allows, signal)
      if (visible !== undefined) return addresses.filter((address) => visible.mounts.has(address)).sort()
      const uriLists = await Promise.all(
        addresses.map(async (address) => {
          // No URI with this prefix comes before the address itself.
          const [[at], [below]] = await Promise.all([
            texts.list({ prefix: address, limit: 1 }),
            texts.list({ prefix: `${address}/`, limit: 1 }),
          ])
          return at?.key === address || below !== undefined ? [address] : []
        }),
      )
      return uriLists.flat().sort()
    },
    size: async () => {
      const { texts: documents, parts, bytes } = await texts.size()
      return { documents, passages: parts, bytes }
    },
    embedding: async () => embedding?.state(),
    close: async () => embedding?.close(),
  }
}

/** Groups documents, in the format of the store, so that each write stays short. */
async function* writesOf(documents: readonly SearchDocument[]): AsyncGenerator<readonly NewText[]> {
  let since = performance.now()
  const pause = async () => {
    if (performance.now() - since < sliceMs) return
    await new Promise((resolve) => setImmediate(resolve))
    since = performance.now()
  }
  let some: NewText[] = []
  let size = 0
  for (const document of documents) {
    some.push(await toNewText(document, pause))
    size += document.text.length
    if (size < oneWrite.units && some.length < oneWrite.documents) continue
    yield some
    some = []
    size = 0
  }
  if (some.length > 0) yield some
}

/** Number of passages per request to the embedding service. */
const batch = 16
/** Maximum length of a passage or a query in a request, in UTF-16 units. */
const mostUnits = 2000
/** The first and the longest pause after a failure, in milliseconds (backoff). */
const retryMs = { first: 1000, most: 60_000 }
/** Interval of checks for passages that another process has written, in milliseconds. */
const checkIntervalMs = 5000
/** Weight of the vectors, unless the configuration has another. */
const defaultWeight = 0.3
/** Maximum number of nearest passages per answer. */
const mostNear = 100

/** Makes the vectors of the passages of one index in the background. */
async function openEmbedding(texts: Texts, options: EmbedderOptions, log: Log) {
  const embedder = await createEmbedder(options)
  const vectors = createVectorIndex(texts, embedder.model)
  const abort = new AbortController()
  let failing: string | undefined
  let wakeUp: () => void = () => {}
  let woken = false
  let restingUntil = 0
  let waitMs: number = retryMs.first

  const sent = async (passages: readonly string[], kind: 'query' | 'passage', signal: AbortSignal) => {
    try {
      const vectors = await embedder.embed(passages, kind, signal)
      if (failing !== undefined) log('info', 'The embedder answers again.')
      failing = undefined
      waitMs = retryMs.first
      restingUntil = 0
      return vectors
    } catch (error) {
      if (signal.aborted && abort.signal.aborted) throw error
      const why = error instanceof Error ? error.message : 'It failed.'
      if (failing === undefined) log('warn', `The embedder fails: the search uses words alone. ${why}`)
      failing = why
      restingUntil = performance.now() + waitMs
      waitMs = Math.min(2 * waitMs, retryMs.most)
      throw error
    }
  }

  const embedSome = async (after: number): Promise<number | undefined> => {
    const some = await texts.unembedded(embedder.model, after, batch)
    const last = some.at(-1)
    if (last === undefined) return undefined
    const plain = some.map(({ value }) => truncateForEmbedder(textOfPart(value)))
    const vectors = await sent(plain, 'passage', abort.signal)
    await texts.embed(
      embedder.model,
      some.map(({ id }, index) => ({ id, vector: packVector(vectors[index] ?? []) })),
    )
    return last.id
  }

  const run = async () => {
    while (!abort.signal.aborted) {
      let pauseMs = checkIntervalMs
      woken = false
      try {
        for (let after: number | undefined = 0; after !== undefined && !abort.signal.aborted; )
          after = await embedSome(after)
      } catch {
        pauseMs = Math.max(50, restingUntil - performance.now())
      }
      if (woken && failing === undefined) continue
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pauseMs)
        timer.unref()
        wakeUp = () => {
          // New documents do not cut short the pause of a failing service.
          if (failing !== undefined && !abort.signal.aborted) return
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }
  const running = run()

  return {
    /** @param degraded Called with the reason if the answer is without vectors. */
    vectors: (degraded: (why: string) => void = () => {}): VectorRanking => ({
      weight: options.weight ?? defaultWeight,
      nearest: async (text, has, signal) => {
        if (failing !== undefined && performance.now() < restingUntil) {
          degraded('The embedder fails: the hits are found by words alone.')
          return []
        }
        try {
          const both = signal === undefined ? abort.signal : AbortSignal.any([signal, abort.signal])
          const [vector] = await sent([truncateForEmbedder(text)], 'query', both)
          return await vectors.nearest(vector ?? [], mostNear, has)
        } catch {
          signal?.throwIfAborted()
          degraded('The embedder fails: the hits are found by words alone.')
          return []
        }
      },
    }),
    state: async (): Promise<EmbeddingState> => {
      const { parts, embedded } = await texts.size(embedder.model)
      const waiting = Math.max(0, parts - embedded)
      return { waiting, ...defined({ failing }) }
    },
    /** Must be called after new passages were written. */
    wake: (): void => {
      woken = true
      wakeUp()
    },
    close: async () => {
      abort.abort()
      wakeUp()
      await running
      await embedder.close()
    },
  }
}

function truncateForEmbedder(text: string): string {
  return text.slice(0, mostUnits).toWellFormed()
}
