import type { BigIntStats } from 'node:fs'
import type { Shared } from './pool.ts'

/**
 * A file or directory that was found, held so that what was decided of it and what is read from it are the same thing.
 * On Linux it is a descriptor (`O_PATH`): whatever becomes of its name, the place stays what it was.
 */
export interface Place extends Shared {
  /** A path of the system by which this very place is opened, and its children are reached (`${at}/${name}`). */
  readonly at: string
  /** As they were when it was found. */
  readonly stats: BigIntStats
  /** Whether it lies on a file system of this machine, so that a call on it answers at once. */
  readonly local: boolean
  /** Which mount of the system it lies on, where that is known. */
  readonly mount: string | undefined
}

/** A file that is open for reading. */
export interface Handle {
  /** Fills a part of the buffer from a position in the file. Answers how many bytes it read; 0 at the end. */
  read(
    buffer: Uint8Array,
    at: { offset: number; length: number; position: number },
    signal: AbortSignal,
  ): Promise<number>
  stat(signal: AbortSignal): Promise<BigIntStats>
  close(): void
}

export interface Steps {
  /** Whether a directory is expected: only then is its mount looked at, before anything else of it. */
  readonly directory: boolean
  /**
   * Whether anything but a directory, a symbolic link too, is then refused as if nothing were there: at once, so that the
   * time does not tell the two apart.
   */
  readonly only?: boolean
  /** Follows a symbolic link, to wherever it leads. Only to learn where that is: nothing there is opened for reading. */
  readonly follow?: boolean
}

/** How a root and what is in it are reached. Every method throws `not-found` or `unavailable`, or what an abort says. */
export interface Places {
  /** The path by which the root was opened, without symbolic links. It may have another one by now. */
  readonly real: string
  /**
   * The root as it is now. It is opened again by its path, in which no symbolic link is followed, when it was deleted, when its
   * file system is no longer mounted, and when another one is mounted over it. `unavailable` when it is gone.
   */
  root(signal: AbortSignal): Promise<Place>
  /** A child of a directory. A symbolic link is a place of its own, unless it is to be followed. */
  child(parent: Place, name: string, steps: Steps, signal: AbortSignal): Promise<Place>
  /** Where a place is at this moment, relative to the root; `undefined` where it lies outside, or is deleted. */
  where(place: Place, signal: AbortSignal): Promise<string | undefined>
  /** Opens a regular file for reading. */
  open(place: Place, signal: AbortSignal): Promise<Handle>
  close(): void
}
