import type { Change } from './provider.ts'

/** A lease: one process at a time has it. */
export interface SharedLease {
  /** Aborts when the lease is lost. */
  readonly signal: AbortSignal
  release(): Promise<void>
}

/**
 * The changes of which several processes with one configuration (replicas) notify each other. A source is named by its address,
 * which is the same in each of them.
 */
export interface SharedChanges {
  /**
   * Notifies the other processes. Resolves once they can learn of the changes: to true; or to false after two seconds, for
   * example while the database does not answer. Then it is retried until it succeeds.
   */
  publish(source: string, changes: readonly Change[]): Promise<boolean>
  /**
   * Calls `hear` with the changes of a source that the other processes publish. Resolves when it receives every change from then
   * on, or one that covers it, to a function that ends this.
   */
  follow(source: string, hear: (changes: readonly Change[]) => void): Promise<() => void>
  /** Resolves when every change that was published before this call has been passed on. Rejects while the database does not answer. */
  catchUp(): Promise<void>
  /** Takes the lease of a name. Undefined when another process has it. Rejects while the database does not answer. */
  lease(name: string): Promise<SharedLease | undefined>
  /** Whether changes of the others cannot be learned at the moment. */
  readonly behind: boolean
  close(): Promise<void>
}

/** A file of a long result. */
export interface ResultFile {
  /** Last segment of its path. */
  readonly name: string
  readonly title: string
  readonly mimeType: string
  readonly body: string | Uint8Array
}

/** A file of a long result, without its content. */
export interface ResultFileFacts extends Omit<ResultFile, 'body'> {
  /** Size of the content in bytes. */
  readonly size: number
  readonly isText: boolean
}

/** A long result that is kept. Times are in milliseconds since 1970. */
export interface LongResult {
  readonly id: string
  readonly made: number
  readonly expires: number
  readonly files: readonly ResultFileFacts[]
}

export interface LongResultBounds {
  /** How long a result is kept, in milliseconds. */
  readonly keepMs: number
  /** Maximum number of results of one principal. The oldest make room. */
  readonly maxResults: number
  /** Maximum size of the results of one principal, in bytes. A larger result is not kept. */
  readonly maxBytes: number
  /** Maximum size of all results, in bytes. The principal with the most loses its oldest. */
  readonly maxTotalBytes: number
}

/**
 * The long results of tools, in memory or in a store that replicas share. An owner is the id of a principal: it reaches the results
 * that were put for it, and no others.
 *
 * Every method throws ResourceError `unavailable` while the store does not answer.
 */
export interface LongResults {
  /** Keeps a result. Undefined when it is too large. */
  put(owner: string, files: readonly ResultFile[]): Promise<LongResult | undefined>
  /** Returns the results of an owner, oldest first. */
  list(owner: string): Promise<readonly LongResult[]>
  get(owner: string, id: string): Promise<LongResult | undefined>
  /** Returns the content of a file of a result. Undefined when the result was removed meanwhile. */
  body(owner: string, id: string, name: string): Promise<string | Uint8Array | undefined>
  /** Whether an owner has such a file. Left out for results in a store, because the answer would take a request to the store. */
  has?(owner: string, id: string, name: string): boolean
  close(): Promise<void>
}

/** A result as the bounds see it. */
export interface SizedResult {
  readonly id: string
  readonly owner: string
  readonly bytes: number
}

export function bytesIn(files: readonly ResultFile[]): number {
  return files.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0)
}

export function factsOf({ body, ...facts }: ResultFile): ResultFileFacts {
  return { ...facts, size: Buffer.byteLength(body), isText: typeof body === 'string' }
}

/**
 * Returns the results that make room for a new one: the oldest of its owner, and then the oldest of the owner with the most bytes,
 * so that nobody can push out the results of others.
 *
 * @param kept The other results, oldest first.
 */
export function makingRoom<Kept extends SizedResult>(
  kept: readonly Kept[],
  { owner, bytes }: Omit<SizedResult, 'id'>,
  { maxResults, maxBytes, maxTotalBytes }: LongResultBounds,
): readonly Kept[] {
  const left = new Map<string, Kept[]>()
  for (const one of kept) {
    const own = left.get(one.owner)
    if (own === undefined) left.set(one.owner, [one])
    else own.push(one)
  }
  const sizes = new Map(Array.from(left, ([name, results]) => [name, sizeOf(results)]))
  let total = sizeOf(kept)
  const dropped: Kept[] = []
  const dropOldestOf = (name: string): void => {
    const oldest = left.get(name)?.shift()
    if (oldest === undefined) return
    dropped.push(oldest)
    sizes.set(name, (sizes.get(name) ?? 0) - oldest.bytes)
    total -= oldest.bytes
  }
  const own = left.get(owner) ?? []
  while (own.length > 0 && (own.length >= maxResults || (sizes.get(owner) ?? 0) + bytes > maxBytes)) dropOldestOf(owner)
  while (total > 0 && total + bytes > maxTotalBytes) {
    const [largest = ['', 0]] = [...sizes].sort((a, b) => b[1] - a[1])
    dropOldestOf(largest[0])
  }
  return dropped
}

function sizeOf(results: readonly SizedResult[]): number {
  return results.reduce((sum, { bytes }) => sum + bytes, 0)
}
