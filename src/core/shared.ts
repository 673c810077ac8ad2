import type { Change } from './provider.ts'
import type { JsonObject } from './tool.ts'

/** A lease, which one process at a time holds. */
export interface SharedLease {
  /** Aborts when the lease is lost. */
  readonly signal: AbortSignal
  release(): Promise<void>
}

/**
 * The changes that several processes with one configuration (replicas) report to each other. A source is named by its
 * address.
 */
export interface SharedChanges {
  /**
   * Publishes changes to the other processes. Resolves to true once they can receive the changes; to false after two seconds, for
   * example while the database does not answer. The publication is then retried until it succeeds.
   */
  publish(source: string, changes: readonly Change[]): Promise<boolean>
  /**
   * Calls `hear` with the changes of a source that the other processes publish. Resolves to a function that ends this, as soon as
   * `hear` receives every later change, or one that covers it.
   */
  follow(source: string, hear: (changes: readonly Change[]) => void): Promise<() => void>
  /**
   * Resolves when the changes that were published before this call have been delivered. Rejects while the database does
   * not answer.
   */
  catchUp(): Promise<void>
  /** Acquires the lease of a name. Resolves to undefined when another process holds it. Rejects while the database does not answer. */
  lease(name: string): Promise<SharedLease | undefined>
  /** Whether changes of the other processes cannot be received at the moment. */
  readonly behind: boolean
  close(): Promise<void>
}

/** One attempt to send a message of a webhook, without its content. */
export interface Delivery {
  /** Time at which the attempt ended (ISO 8601). */
  readonly time: string
  /** The id of the webhook's subscription, as `hikidashi events` prints it. */
  readonly subscription: string
  readonly principal: string
  /** Scheme, host and port of the endpoint: its path may be a secret. */
  readonly origin: string
  /** Name of the type of events. */
  readonly name: string
  /** Id of the message: the same at each attempt. */
  readonly message: string
  readonly kind: 'event' | 'verification' | 'gap' | 'terminated'
  readonly attempt: number
  /** `ok`, or why the endpoint did not take the message. */
  readonly outcome: string
  /** Duration, in milliseconds. */
  readonly ms: number
}

/** A subscription of a webhook as it is stored, so that a later process can continue it. */
export interface KeptSubscription {
  readonly id: string
  /** Name of the type of events. */
  readonly name: string
  readonly given: JsonObject
  readonly url: string
  readonly secret: string
  readonly principal: string
  /** Digest of the credentials of the caller: they are checked again before anything is delivered. */
  readonly credential: string
  /** Time at which the subscription ends, in milliseconds since 1970. */
  readonly until: number
  /** The position up to which every event was delivered or given up. */
  readonly position: string
}

/** Keeps subscriptions for a later process. A failure is only logged: the subscriptions then end with this process. */
export interface SubscriptionKeeper {
  put(one: KeptSubscription): void
  remove(id: string): void
  /** Resolves when every earlier call has been stored, or has failed. */
  written(): Promise<void>
  /** Returns the subscriptions, once no other process delivers to them. None when the signal aborts before that. */
  all(signal: AbortSignal): Promise<readonly KeptSubscription[]>
}

export interface ResultFile {
  /** The last segment of its path. */
  readonly name: string
  readonly title: string
  readonly mimeType: string
  readonly body: string | Uint8Array
}

export interface ResultFileMetadata extends Omit<ResultFile, 'body'> {
  readonly size: number
  readonly isText: boolean
}

/** A stored long result of a tool. */
export interface LongResult {
  readonly id: string
  /** Time at which the result was stored, in milliseconds since 1970. */
  readonly made: number
  /** Time at which the result expires, in milliseconds since 1970. */
  readonly expires: number
  readonly files: readonly ResultFileMetadata[]
}

export interface LongResultBounds {
  /** Time for which a result is stored, in milliseconds. */
  readonly keepMs: number
  /** Maximum number of results of one principal. The oldest are removed to make room. */
  readonly maxResults: number
  /** Maximum size of the results of one principal, in bytes. A larger result is not stored. */
  readonly maxBytes: number
  /** Maximum size of all results, in bytes. Beyond it, the principal with the most bytes loses its oldest results. */
  readonly maxTotalBytes: number
}

/**
 * The long results of tools, in memory or in a store that replicas share. An owner is the id of a principal, and can
 * access the results that were stored for it. Methods throw ResourceError `unavailable` while the store does not
 * answer.
 */
export interface LongResults {
  /** Stores a result. Resolves to undefined when it is too large. */
  put(owner: string, files: readonly ResultFile[]): Promise<LongResult | undefined>
  /** Returns the results of an owner, oldest first. */
  list(owner: string): Promise<readonly LongResult[]>
  get(owner: string, id: string): Promise<LongResult | undefined>
  /** Returns the content of a file of a result. Undefined when the result was removed meanwhile. */
  body(owner: string, id: string, name: string): Promise<string | Uint8Array | undefined>
  /** Whether an owner has such a file. Undefined for results in a store, because the answer would take a request to the store. */
  has?(owner: string, id: string, name: string): boolean
  close(): Promise<void>
}

/** The facts of a stored result by which {@link LongResultBounds} are checked. */
export interface SizedResult {
  readonly id: string
  readonly owner: string
  readonly bytes: number
}

export function totalFileBytes(files: readonly ResultFile[]): number {
  return files.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0)
}

export function resultFileMetadata({ body, ...facts }: ResultFile): ResultFileMetadata {
  return { ...facts, size: Buffer.byteLength(body), isText: typeof body === 'string' }
}

/**
 * Returns the results to remove to make room for a new one: the oldest of its owner, and then the oldest of the owner
 * with the most bytes.
 * @param others The other results, oldest first.
 */
export function resultsToRemove<Kept extends SizedResult>(
  others: readonly Kept[],
  { owner, bytes }: Omit<SizedResult, 'id'>,
  { maxResults, maxBytes, maxTotalBytes }: LongResultBounds,
): readonly Kept[] {
  const resultsByOwner = new Map<string, Kept[]>()
  for (const one of others) {
    const own = resultsByOwner.get(one.owner)
    if (own === undefined) resultsByOwner.set(one.owner, [one])
    else own.push(one)
  }
  const sizes = new Map(Array.from(resultsByOwner, ([name, results]) => [name, sumResultBytes(results)]))
  let total = sumResultBytes(others)
  const dropped: Kept[] = []
  const dropOldestOf = (name: string): void => {
    const oldest = resultsByOwner.get(name)?.shift()
    if (oldest === undefined) return
    dropped.push(oldest)
    sizes.set(name, (sizes.get(name) ?? 0) - oldest.bytes)
    total -= oldest.bytes
  }
  const own = resultsByOwner.get(owner) ?? []
  while (own.length > 0 && (own.length >= maxResults || (sizes.get(owner) ?? 0) + bytes > maxBytes)) dropOldestOf(owner)
  while (total > 0 && total + bytes > maxTotalBytes) {
    const [largest = ['', 0]] = [...sizes].sort((a, b) => b[1] - a[1])
    dropOldestOf(largest[0])
  }
  return dropped
}

function sumResultBytes(results: readonly SizedResult[]): number {
  return results.reduce((sum, { bytes }) => sum + bytes, 0)
}
