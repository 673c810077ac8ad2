/**
 * Texts that are found by their terms: the second kind of data in a store, besides rows. A text has parts, and each part a set of terms.
 * The writer makes the terms, and gives each part a value.
 */
export interface Texts {
  /** Adds texts, or replaces those with the same keys: all of them or none. */
  put(texts: readonly NewText[]): Promise<void>
  /** Removes texts by key. A key that ends in `/` removes all keys with this prefix. Missing keys are ignored. */
  remove(keys: readonly string[]): Promise<void>
  /** Lists texts in the byte order of their keys, strictly after `after`. */
  list(query: TextsQuery): Promise<readonly ListedText[]>
  /** Texts in the order of their ids, after an id. A text that is put again gets a new id, greater than all before. */
  entries(after: number, limit: number): Promise<readonly TextEntry[]>
  ids(): Promise<readonly number[]>
  mimeTypes(among?: TextSet): Promise<readonly string[]>
  /**
   * The number of parts with each of the terms.
   *
   * @param beginnings Prefixes by which an engine may look up all terms of a prefix at once.
   */
  counts(terms: readonly string[], among?: TextSet, beginnings?: readonly string[]): Promise<readonly number[]>
  /** The ids of the parts that have any of the terms, those with the greatest sum of weights first. Of equal parts, the older come first. */
  find(query: PartQuery): Promise<readonly number[]>
  /** The same parts as `find`, each with its sum of weights and its text. */
  weigh(query: PartQuery): Promise<readonly WeighedPart[]>
  /** Parts, in the order of the ids; missing ones are left out. */
  read(ids: readonly number[]): Promise<readonly FoundPart[]>
  size(model?: string): Promise<TextsSize>
  /** Parts without a vector of `model`, the older first, after an id. */
  unembedded(model: string, after: number, limit: number): Promise<readonly Pick<FoundPart, 'id' | 'value'>[]>
  /** Stores vectors. Parts that no longer exist are ignored. */
  embed(model: string, vectors: readonly PartVector[]): Promise<void>
  /** Vectors of a model, in the order in which they were stored, after a position in that order. */
  vectors(model: string, after: number, limit: number): Promise<readonly KeptVector[]>
}

export interface NewText {
  /** Unique in its texts, compared by UTF-8 bytes. At most 8 KiB. */
  readonly key: string
  readonly version: string
  /** Edition of the rules that made the terms. */
  readonly edition: number
  readonly labels: TextLabels
  /** Value that the writer chooses. The store does not read it. */
  readonly value: string
  readonly parts: readonly NewPart[]
}

interface TextLabels {
  readonly mount: string
  readonly mimeType?: string
  /** Undefined: the text is for everybody. */
  readonly audience?: readonly string[]
  readonly priority?: number
  readonly modified?: number
}

interface NewPart {
  readonly value: string
  readonly terms: readonly string[]
  readonly length: number
}

export interface CheckedText extends Omit<NewText, 'parts'> {
  readonly parts: readonly CheckedPart[]
}

interface CheckedPart extends Omit<NewPart, 'terms'> {
  readonly terms: string
}

interface TextsQuery {
  readonly prefix?: string
  readonly after?: string
  readonly mimeType?: string
  readonly limit: number
}

type ListedText = Pick<NewText, 'key' | 'version' | 'edition'>

export interface TextEntry {
  /** Id of the text. It is never reused for another text. */
  readonly id: number
  readonly key: string
  readonly mount: string
  readonly parts: number
  /** Sum of the lengths of the parts. */
  readonly length: number
}

/** A set of texts. If it is given, texts outside of it do not count. */
export interface TextSet {
  /** A number that differs for each content that a set has had in this process. */
  readonly version: number
  /** The id of the first bit. */
  readonly first: number
  /** One bit for each id from `first` on, the lowest bit of each byte first: 1 for those in the set. */
  readonly bits: Uint8Array
}

export interface PartQuery {
  readonly terms: readonly WeightedTerm[]
  readonly where?: TextFilter
  readonly among?: TextSet
  readonly limit: number
}

export interface WeightedTerm {
  readonly term: string
  /** Weight of the term: an integer, so that a sum does not depend on the order. */
  readonly weight: number
  /** Whether the term stands for all terms that begin with it. */
  readonly prefix?: boolean
}

export interface WeighedPart extends Pick<FoundPart, 'id' | 'key' | 'mount' | 'parts'> {
  readonly weight: number
}

/** Condition for texts, as in `SearchFilter`. A text without a label that the condition names is left out. */
export interface TextFilter {
  readonly mounts?: readonly string[]
  readonly mimeType?: string
  readonly audience?: string
  readonly minPriority?: number
  readonly since?: number
}

export interface FoundPart {
  /** Id of the part. It is never reused for another part. */
  readonly id: number
  /** Key and mount of the text that contains the part. */
  readonly key: string
  readonly mount: string
  /** The index of the part in its text, from 0. */
  readonly place: number
  readonly value: string
  readonly length: number
  /** Value of the text that contains the part. */
  readonly text: string
  /** Number of parts of that text. */
  readonly parts: number
}

interface TextsSize {
  readonly texts: number
  readonly parts: number
  readonly length: number
  readonly bytes: number
  /** Changes with each put and removal. */
  readonly revision: number
  /** Differs once the file or the schema was created again: revisions and ids then begin again, and belong to other texts. */
  readonly opening: number
  readonly embedded: number
}

interface PartVector {
  readonly id: number
  readonly vector: Uint8Array
}

interface KeptVector extends PartVector {
  readonly order: number
  /** The id of the text of the part. */
  readonly text: number
}

export function isInSet({ first, bits }: Pick<TextSet, 'first' | 'bits'>, id: number): boolean {
  const bit = id - first
  return bit >= 0 && (((bits[bit >> 3] ?? 0) >> (bit & 7)) & 1) === 1
}
