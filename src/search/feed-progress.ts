import { defined } from '../core/kit/object.ts'
import type { IndexGaps } from '../core/tool.ts'
import { isCutVersion, scanState } from './feed-documents.ts'
import type { SearchDocument } from './search-index.ts'

/** A running comparison of a directory (`''`: everything) with its documents in the index. */
export interface Comparison {
  readonly directory: string
  readonly known: number
  /** Number of documents that were compared. */
  looked: number
  /** Number of all listed documents. Undefined until the listing has ended. */
  of?: number
}

/** Counts the documents of a mount: those of the index, those written, and those of a running comparison. */
export function createFeedCounts() {
  /** Number of documents in the index. Undefined until everything has been compared once. */
  let total: number | undefined
  let indexed = 0
  let comparison: Comparison | undefined
  return {
    indexed: () => indexed,
    addIndexed: (count: number): void => {
      indexed += count
    },
    addLooked: (count: number): void => {
      if (comparison !== undefined) comparison.looked += count
    },
    isTotalKnown: () => total !== undefined,
    addToTotal: (count: number): void => {
      if (total !== undefined) total += count
    },
    /** Whether a path lies in the directory that is being compared. */
    isCompared: (path: string) => comparison !== undefined && path.startsWith(comparison.directory),
    begin: (directory: string, indexedCount: number): Comparison => {
      comparison = { directory, known: indexedCount, looked: 0 }
      return comparison
    },
    /** Ends a comparison. `now` is the number of documents of its directory in the index. */
    end: ({ directory, known }: Comparison, now: number): void => {
      if (directory === '') total = now
      else if (total !== undefined) total += now - known
      comparison = undefined
    },
    /** Returns the number of compared documents, and of all if it is known. */
    progress: (): { readonly looked: number; readonly of?: number } => {
      if (comparison === undefined) return total === undefined ? { looked: 0 } : { looked: total, of: total }
      const { directory, known, looked, of } = comparison
      if (directory === '' || total === undefined) return { looked, ...defined({ of }) }
      const others = total - known
      return { looked: others + looked, of: others + (of ?? Math.max(known, looked)) }
    },
  }
}

export type FeedCounts = ReturnType<typeof createFeedCounts>

/** Records which entries of a mount are indexed only in part. */
export function createGapTracker({ maxBytes, maxParts }: { readonly maxBytes: number; readonly maxParts: number }) {
  /** Paths of the entries of which some parts are not indexed. */
  const cutEntries = new Set<string>()
  /** URIs of the entries without parts of which only the first page is indexed. */
  const firstPages = new Set<string>()
  /** URIs of the documents of which only the beginning is indexed. */
  const cutTexts = new Set<string>()
  /** URIs of the documents with pages that hold only pictures or unreadable text. */
  const scans = new Map<string, ReturnType<typeof scanState>>()
  const gaps = (): IndexGaps | undefined => {
    if (cutEntries.size + cutTexts.size + scans.size === 0) return undefined
    const waiting = [...scans.values()].filter((scan) => scan === 'waiting').length
    return {
      ...(cutEntries.size === 0 ? {} : { entries: cutEntries.size, limit: maxParts }),
      ...(cutTexts.size === 0 ? {} : { texts: cutTexts.size, maxBytes }),
      ...(scans.size === 0 ? {} : { scans: scans.size }),
      ...(waiting === 0 ? {} : { waitingScans: waiting }),
    }
  }
  return {
    noteText: ({ uri, version }: Pick<SearchDocument, 'uri' | 'version'>): void => {
      if (isCutVersion(version, maxBytes)) cutTexts.add(uri)
      else cutTexts.delete(uri)
      const scan = scanState(version)
      if (scan === undefined) scans.delete(uri)
      else scans.set(uri, scan)
    },
    noteFirstPage: (uri: string, isFirstPage: boolean): void => {
      if (isFirstPage) firstPages.add(uri)
      else firstPages.delete(uri)
    },
    noteParts: (path: string, isCut: boolean): void => {
      if (isCut) cutEntries.add(path)
      else cutEntries.delete(path)
    },
    /** Forgets the texts at a URI, and below it if it ends with a slash. */
    forget: (uri: string): void => {
      firstPages.delete(uri)
      cutTexts.delete(uri)
      scans.delete(uri)
      if (!uri.endsWith('/')) return
      for (const below of cutTexts) if (below.startsWith(uri)) cutTexts.delete(below)
      for (const below of scans.keys()) if (below.startsWith(uri)) scans.delete(below)
    },
    progress: () => ({
      ...defined({ partial: gaps() }),
      ...(firstPages.size === 0 ? {} : { firstPages: firstPages.size }),
    }),
  }
}

export type GapTracker = ReturnType<typeof createGapTracker>
