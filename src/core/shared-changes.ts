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
