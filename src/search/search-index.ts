import type { Reach } from '../core/glob.ts'
import type { Origin } from '../core/origin.ts'
import type { Audience } from '../core/provider.ts'

/**
 * The texts of one search address, kept in a store: documents cut into passages, found by their words. It knows nothing of who
 * may see what: whoever asks says it ({@link Allows}), and is answered as by an index that holds nothing else.
 *
 * Every method throws only ResourceError, as a store does, and recovers by itself.
 *
 * Mended since it was first written: a version is empty where the document was cut by older rules (put it again); a search tells
 * why it has only words to go by (`degraded`); how far the vectors are can be asked (`embedding`); and what may not be seen has no part in any answer.
 */
export interface SearchIndex {
  /** Puts documents in the place of what was there under their URIs: each of them wholly or not at all. */
  put(documents: readonly SearchDocument[]): Promise<void>
  /** A URI that ends in `/` stands for everything below it. Unknown URIs are skipped. */
  remove(uris: readonly string[]): Promise<void>
  /** Returns indexed documents in the order of the URIs' bytes, after `after`, for a comparison with the listings of the sources. */
  documents(query: {
    readonly prefix?: string
    readonly after?: string
    readonly limit: number
  }): Promise<readonly IndexedDocument[]>
  /** Yields the passages found, best first, lazily: the caller may stop at any time. At most a few of one document, and no two of the same text. */
  search(query: SearchQuery): AsyncIterable<SearchHit>
  /** Words and titles that begin with what is typed, best first, lazily; each with documents that it stands in. */
  suggest(query: SuggestQuery): AsyncIterable<Suggestion>
  /** The MIME types of what may be seen, in order. */
  mimeTypes(query?: VisibleQuery): Promise<readonly string[]>
  /** Those of some mounts of which something that may be seen is indexed, in order. By their addresses. */
  mounts(addresses: readonly string[], query?: VisibleQuery): Promise<readonly string[]>
  size(): Promise<{ readonly documents: number; readonly passages: number; readonly bytes: number }>
  /** How far the vectors are. `undefined`: there are none. */
  embedding(): Promise<EmbeddingState | undefined>
  close(): Promise<void>
}

/** Facts of a document besides its text. */
export interface DocumentFacts extends Origin {
  readonly uri: string
  readonly title?: string
  readonly mimeType?: string
  readonly audience?: readonly Audience[]
  readonly priority?: number
  readonly size?: number
  readonly modified?: number
}

export interface SearchDocument extends DocumentFacts {
  /** Version of the source, or a digest, which changes with the document. */
  readonly version: string
  /** The address of the mount that it is of. */
  readonly mount: string
  /** Decoded and redacted, as a client would read it. Empty: only its path and title are found. */
  readonly text: string
}

export interface IndexedDocument {
  readonly uri: string
  /** As it was put. Empty where it was cut and folded by older rules than those of today: it is found still, and is to be put again. */
  readonly version: string
}

export interface EmbeddingState {
  /** Passages that have no vector yet. */
  readonly waiting: number
  /** Why there is none just now, in a sentence for the operator. */
  readonly failing?: string
}

/** Whether a caller may see a document. */
export interface Allows {
  (document: Pick<DocumentFacts, 'uri'> & { readonly mount: string }): boolean
  /**
   * Visibility of mounts, by address; other mounts are invisible. When undefined, each document is checked for
   * each query.
   */
  readonly mounts?: ReadonlyMap<string, MountVisibility>
}

export interface MountVisibility {
  /** Of a mount whose `reach` is `all` or `none`, no document is judged. */
  readonly reach: Reach
  /**
   * Callers with the same one see the same documents of the mount, now and later, and what was judged for one holds for the others.
   * Left out: what may be seen can change at any time.
   */
  readonly callers?: string
}

export interface VisibleQuery {
  /**
   * Which documents count: any other is as if it were not indexed. It has no part in what is found, nor in scores, orders and
   * snippets. By default all count.
   */
  readonly allows?: Allows
  readonly signal?: AbortSignal
}

export interface SearchQuery extends VisibleQuery {
  /** Words; what stands in `"…"` has to stand in the passage as it is. Without any word nothing is found. */
  readonly text: string
  readonly where?: SearchFilter
  /** How many hits the caller wants: the more, the more passages are ranked among each other. By default 20. */
  readonly limit?: number
  /** Told before the first hit that the vectors had no part in it, though there should be some: why, in a sentence for the caller. */
  readonly degraded?: (why: string) => void
  /** Called before the first hit where no passage has the words, and the hits have only single characters of them: a sentence for the caller. */
  readonly fallback?: (why: string) => void
}

export interface SearchFilter {
  /** Addresses of mounts. */
  readonly mounts?: readonly string[]
  /** A MIME type, or `text/*`. */
  readonly mimeType?: string
  readonly audience?: Audience
  readonly minPriority?: number
  /** Milliseconds since 1970: not modified before. Documents without a time are left out then. */
  readonly since?: number
  /** A glob on the path below the mount. */
  readonly path?: string
}

export interface SearchHit extends DocumentFacts {
  readonly mount: string
  /** Greater is better. It depends on nothing but the query and what of the index may be seen. */
  readonly score: number
  /** Lines of the text, from 1, both inclusive. */
  readonly lines: { readonly start: number; readonly end: number }
  /** The heading, function or the like that the passage stands under. */
  readonly heading?: string
  readonly snippet: Snippet
}

export interface Snippet {
  readonly text: string
  /** Matching ranges of `text`: half-open, in UTF-16 units, in order, not overlapping. */
  readonly marks: readonly (readonly [start: number, end: number])[]
}

export interface SuggestQuery extends VisibleQuery {
  readonly prefix: string
  readonly where?: SearchFilter
}

export interface Suggestion {
  readonly text: string
  /** Lazily: some of the documents that it stands in, for whoever asks to see whether the caller may see one of them. */
  readonly uris: AsyncIterable<string>
}
