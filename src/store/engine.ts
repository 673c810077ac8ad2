import type { WholeRow } from './rules.ts'
import type { Condition, Row, RowQuery, Store } from './store.ts'
import type { CheckedText, TextSet, Texts, WeighedPart } from './texts.ts'

/** Operations on rows, each of them atomic. The caller has checked the arguments. */
export interface Operations {
  get(collection: string, key: string): Row | undefined
  put(collection: string, row: WholeRow, condition?: Condition): Row | undefined
  delete(collection: string, key: string, condition?: Condition): boolean
  list(collection: string, query: RowQuery): readonly Row[]
  similar(collection: string, terms: readonly string[], limit: number): readonly { key: string; shared: number }[]
  size(collection: string): { rows: number; bytes: number }
  /** Does a part of the work, so that other callers do not wait for long. The work is done when it returns no keys. */
  evict(collection: string, bounds: Bounds): readonly string[]
  takeLease(name: string, holder: string, ttlMs: number): boolean
  /** `false`: the caller no longer holds it. */
  renewLease(name: string, holder: string, ttlMs: number): boolean
  dropLease(name: string, holder: string): void
}

/** Operations on texts: the same as {@link Texts}, each with the name of the text collection. */
export interface TextOperations {
  textsPut(name: string, texts: readonly CheckedText[]): void
  /** Does a part of the work, so that other callers do not wait for long. Returns false when there was nothing left to do. */
  textsRemove(name: string, keys: readonly string[]): boolean
  textsList(name: string, query: Parameters<Texts['list']>[0]): Awaited<ReturnType<Texts['list']>>
  textsEntries(name: string, after: number, limit: number): Awaited<ReturnType<Texts['entries']>>
  textsIds(name: string): readonly number[]
  textsMimeTypes(name: string, among?: TextSet): readonly string[]
  textsCounts(
    name: string,
    terms: readonly string[],
    among?: TextSet,
    beginnings?: readonly string[],
  ): readonly number[]
  textsFind(name: string, query: Parameters<Texts['find']>[0]): readonly number[]
  textsWeigh(name: string, query: Parameters<Texts['weigh']>[0]): readonly WeighedPart[]
  textsRead(name: string, ids: readonly number[]): Awaited<ReturnType<Texts['read']>>
  textsSize(name: string, model?: string): Awaited<ReturnType<Texts['size']>>
  textsUnembedded(name: string, model: string, after: number, limit: number): Awaited<ReturnType<Texts['unembedded']>>
  textsEmbed(name: string, model: string, vectors: Parameters<Texts['embed']>[1]): void
  textsVectors(name: string, model: string, after: number, limit: number): Awaited<ReturnType<Texts['vectors']>>
}

export interface Bounds {
  readonly rows?: number
  readonly bytes?: number
  readonly age?: number
}

/** The same, asynchronous: the engine is in another thread, or on a server. */
export type Remote<Of> = {
  readonly [Name in keyof Of]: Of[Name] extends (...args: infer Args) => infer Result
    ? (...args: Args) => Promise<Result>
    : never
}

export interface Engine extends Remote<Operations>, Remote<TextOperations> {
  watch: Store['watch']
  close(): Promise<void>
}
