import type { Reach } from '../core/glob.ts'
import type { DocumentOrigin } from '../core/meta.ts'
import type { Audience } from '../core/provider.ts'
import type { Resource } from '../core/view.ts'

/**
 * The texts of one search address, kept in a store: documents cut into passages, found by their words. It has no access rules: the caller
 * passes what may be seen ({@link Allows}). Its methods throw ResourceError.
 */
export interface SearchIndex {
  /** Replaces the documents at their URIs, each wholly or not at all. */
  put(documents: readonly SearchDocument[]): Promise<void>
  /** Removes the documents at these URIs. A URI that ends in `/` stands for everything below it. Unknown URIs are skipped. */
  remove(uris: readonly string[]): Promise<void>
  /** Returns indexed documents in the order of the URIs' bytes, after `after`. */
  documents(query: {
    readonly prefix?: string
    readonly after?: string
    readonly limit: number
  }): Promise<readonly IndexedDocument[]>
  search(query: SearchQuery): AsyncIterable<SearchHit>
  /** Words and titles that begin with the typed text, best first, lazily. */
  suggest(query: SuggestQuery): AsyncIterable<Suggestion>
  /** The MIME types of visible documents, in order. */
  mimeTypes(query?: VisibleQuery): Promise<readonly string[]>
  /** The addresses of those of the given mounts that have a visible document, in order. */
  mounts(addresses: readonly string[], query?: VisibleQuery): Promise<readonly string[]>
  size(): Promise<{ readonly documents: number; readonly passages: number; readonly bytes: number }>
  /** The progress of the vectors. `undefined`: there are no vectors. */
  embedding(): Promise<EmbeddingState | undefined>
  close(): Promise<void>
}

/** Facts of a document besides its text. */
export type DocumentFacts = DocumentOrigin & Omit<Resource, 'name' | 'version' | 'description' | 'icons' | 'meta'>

export interface SearchDocument extends DocumentFacts {
  /** Version of the source, or a digest, which changes with the document. */
  readonly version: string
  /** Address of the document's mount. */
  readonly mount: string
  /** Text of the document, decoded and redacted, as a client would read it. If it is empty, only path and title can be found. */
  readonly text: string
  /** Number of the first line of the text in the document. Default 1. */
  readonly firstLine?: number
}

export interface IndexedDocument {
  readonly uri: string
  /** The version that was put with the document. Empty if older rules cut the document into passages: it can still be found. */
  readonly version: string
}

export interface EmbeddingState {
  readonly waiting: number
  /** Why no vectors can be made now, in a sentence for the operator. */
  readonly failing?: string
}

/** Whether a caller may see a document. */
export interface Allows {
  (document: Pick<DocumentFacts, 'uri'> & { readonly mount: string }): boolean
  /** Visibility of mounts, by address; other mounts are invisible. When undefined, each document is checked for each query. */
  readonly mounts?: ReadonlyMap<string, MountVisibility>
}

export interface MountVisibility {
  /** If the `reach` of a mount is `all` or `none`, its documents are not checked. */
  readonly reach: Reach
  /** Callers with the same key see the same documents of the mount, now and later. Undefined: the visibility can change at any time. */
  readonly callers?: string
}

export interface VisibleQuery {
  /** Which documents count. Any other document has no influence on the answer. By default all count. */
  readonly allows?: Allows
  readonly signal?: AbortSignal
}

export interface SearchQuery extends VisibleQuery {
  /** Words; text in `"…"` must occur in the passage, its title or its heading, if there are at most two other words. */
  readonly text: string
  readonly where?: SearchFilter
  /** Number of hits that the caller wants. By default 20. */
  readonly limit?: number
  /** Called before the first hit if vectors should have been used, but were not, with the reason in a sentence. */
  readonly degraded?: (why: string) => void
  /** Called before the first hit if the hits match only in part, with a sentence for the caller. */
  readonly fallback?: (why: string) => void
}

export interface SearchFilter {
  /** Addresses of mounts. */
  readonly mounts?: readonly string[]
  /** A MIME type, or `text/*`. */
  readonly mimeType?: string
  readonly audience?: Audience
  readonly minPriority?: number
  /** Time in milliseconds since 1970: only documents that were modified since then. Documents without a time are left out. */
  readonly since?: number
  /** A glob on the path below the mount. */
  readonly path?: string
}

export interface SearchHit extends DocumentFacts {
  readonly mount: string
  readonly score: number
  /** Lines of the text, from 1, both inclusive. */
  readonly lines: { readonly start: number; readonly end: number }
  /** The heading, function or similar that contains the passage. */
  readonly heading?: string
  readonly snippet: Snippet
}

export interface Snippet {
  readonly text: string
  /** Matching ranges of `text`: half-open, in UTF-16 units, in order, not overlapping. */
  readonly marks: readonly (readonly [start: number, end: number])[]
  /** Number of the document's line in which the text begins. */
  readonly line?: number
}

export interface SuggestQuery extends VisibleQuery {
  readonly prefix: string
  readonly where?: SearchFilter
}

export interface Suggestion {
  readonly text: string
  /** Some of the documents that contain the suggestion, for a check whether one of them is visible. */
  readonly uris: readonly string[]
}
