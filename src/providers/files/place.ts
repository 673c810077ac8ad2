import type { BigIntStats } from 'node:fs'
import type { Shared } from './pool.ts'

/**
 * A file or directory that was found, held open so that access checks and reads refer to the same object. On Linux it is a descriptor
 * (`O_PATH`): it stays valid when its name changes.
 */
export interface Place extends Shared {
  /** A path of the system that opens exactly this object; its children are at `${at}/${name}`. */
  readonly at: string
  /** Stats at the time when it was found. */
  readonly stats: BigIntStats
  /** Whether it lies on a local file system, so that a call on it answers at once. */
  readonly local: boolean
  /** The mount of the system that it lies on, if known. */
  readonly mount: string | undefined
  /** Returns its stats now, on this thread. Undefined if the call might have to wait, or would ask for a name. */
  readonly statNow?: () => BigIntStats
}

/** A file that is open for reading. */
export interface Handle {
  /** Fills a part of the buffer from a position in the file. Returns the number of bytes read; 0 at the end. */
  read(
    buffer: Uint8Array,
    at: { offset: number; length: number; position: number },
    signal: AbortSignal,
  ): Promise<number>
  stat(signal: AbortSignal): Promise<BigIntStats>
  /** Stats of the same file from before it was opened. Undefined if its path may have led to another file meanwhile. */
  readonly found?: BigIntStats
  close(): void
}

interface Steps {
  /** Whether a directory is expected: only then is its mount checked, before everything else. */
  readonly directory: boolean
  /**
   * Whether everything but a directory (symbolic links too) is refused as if it did not exist: at once, so that the time does not tell the two
   * apart.
   */
  readonly only?: boolean
  /** Whether to follow a symbolic link, wherever it leads. Only for finding out its target: nothing there is opened for reading. */
  readonly follow?: boolean
}

/** Access to a root and its contents. Every method throws `not-found` or `unavailable`, or the reason of the abort. */
export interface Places {
  /** The path at which the root was opened, without symbolic links. The root may have moved since. */
  readonly real: string
  /**
   * Returns the current root. It is opened again by its path, without following symbolic links, when it was deleted, when its file system is
   * unmounted, and when another one is mounted over it. Throws `unavailable` when it is gone.
   */
  root(signal: AbortSignal): Promise<Place>
  /** Opens a child of a directory. A symbolic link is a place of its own, unless `follow` is set. */
  child(parent: Place, name: string, steps: Steps, signal: AbortSignal): Promise<Place>
  /** Returns the current path of a place relative to the root; undefined when it lies outside or is deleted. */
  where(place: Place, signal: AbortSignal): Promise<string | undefined>
  /** Opens a regular file for reading. */
  open(place: Place, signal: AbortSignal): Promise<Handle>
  close(): void
}
