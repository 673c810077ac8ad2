import { createHash } from 'node:crypto'
import { isResourceError, notFound, ResourceError } from '../../core/errors.ts'
import { breath } from '../../core/kit/breath.ts'
import { createRecent } from '../../core/kit/lru.ts'
import { type Batch, type BatchObject, createBatch, damaged } from './batch.ts'
import type { Launcher } from './launch.ts'

export type ObjectFormat = 'sha1' | 'sha256'

/** Maximum number of processes that return contents, started on demand; one more returns sizes and types. */
const readers = 3
/** Time in milliseconds after which a process that is busy with one object gets no further requests. */
const busyTimeoutMs = 60
/** Maximum number of cached types and sizes. `maxKeptBytes` bounds the cached bytes of small contents. */
const maxFacts = 50_000
/** Number of bytes that are hashed between two checks whether to yield to the event loop. */
const hashPieceBytes = 1024 * 1024
const maxTooMuch = 1000
const maxKeptBytes = 32 * 1024 * 1024
const maxKeptObjectBytes = 4 * 1024 * 1024

/** Reads the objects of the repository, only by full id. Every call has a time-out of its own. */
export function createObjects(launcher: Launcher, format: ObjectFormat, timeoutMs: number) {
  const make = (mode: '--batch' | '--batch-check') => createBatch(mode, launcher.start, timeoutMs)
  const contents = Array.from({ length: readers }, () => make('--batch'))
  const checker = make('--batch-check')
  const known = createRecent<BatchObject>(maxFacts)
  /** Objects that exceed git's memory limit: git would die over each of them again. */
  const tooMuch = createRecent<{ readonly error: ResourceError }>(maxTooMuch)
  const kept = createRecent<BatchObject>(maxKeptBytes, ({ size }) => size + 200)

  /**
   * One process does most of the work, because it caches the base objects of deltas. Another one takes over while the first is busy with a
   * large object.
   */
  const readiest = (): Batch => {
    const quick = contents.find((batch) => batch.delay() < busyTimeoutMs)
    return quick ?? contents.reduce((best, batch) => (batch.delay() < best.delay() ? batch : best))
  }

  const check = async (name: string, { bytes, oid, type, size }: BatchObject): Promise<void> => {
    if (bytes === undefined) return
    const hash = createHash(format).update(`${type} ${size}\0`)
    for (let at = 0; at < bytes.length; at += hashPieceBytes) {
      hash.update(bytes.subarray(at, at + hashPieceBytes))
      if (breath.due()) await breath.take()
    }
    if (hash.digest('hex') !== oid || (oid !== name && !name.includes('^')))
      throw damaged(`The contents of the object ${oid} are not what its id says.`)
  }

  return {
    /** Returns the type and size of an object. `name` is an id, or `id^{type}`. Undefined when it does not exist. */
    info: async (name: string): Promise<BatchObject | undefined> => {
      const remembered = known.get(name)
      if (remembered !== undefined) return remembered
      const found = await checker.ask(name, 0)
      if (found !== undefined) known.set(name, found)
      return found
    },
    /**
     * Reads an object of at most `limit` bytes; for a larger one, only its metadata. Verifies the contents against the id. With `keep`, small
     * contents are cached for a while, because more ranges will be read.
     *
     * @throws ResourceError `not-found` (see {@link isMissing}) when it does not exist, `unavailable` for a damaged object.
     */
    read: async (name: string, limit: number, keep = false): Promise<BatchObject> => {
      const remembered = kept.get(name)
      if (remembered !== undefined && remembered.size <= limit) return remembered
      const facts = known.get(name)
      if (facts !== undefined && facts.size > limit) return facts
      const failed = tooMuch.get(name)
      if (failed !== undefined) throw failed.error
      const found = await readiest()
        .ask(name, limit)
        .catch((error: unknown) => {
          if (isResourceError(error, 'too-large')) tooMuch.set(name, { error })
          throw error
        })
      if (found === undefined) throw missing(name)
      await check(name, found)
      known.set(name, { oid: found.oid, type: found.type, size: found.size })
      // A copy: the bytes may be a slice of a larger chunk of output.
      if (keep && found.bytes !== undefined && found.size <= maxKeptObjectBytes)
        kept.set(name, { ...found, bytes: Buffer.from(found.bytes) })
      return found
    },
    /** Restarts the processes, so that they see the packs that are on disk now. */
    restart: (): void => {
      for (const batch of [...contents, checker]) batch.restart()
    },
    close: (): void => {
      for (const batch of [...contents, checker]) batch.close()
      known.clear()
      kept.clear()
    },
  }
}

export type Objects = ReturnType<typeof createObjects>

const missingReason = 'missing-object'

/** Returns the error for a missing object: see {@link isMissing}. */
export function missing(name: string): ResourceError {
  return new ResourceError('not-found', `the object ${name} is not in the repository`, { reason: missingReason })
}

/** Whether an error means a missing object: it may have been packed or pruned meanwhile, or never fetched. */
export function isMissing(error: unknown): boolean {
  return isResourceError(error, 'not-found') && error.detail.reason === missingReason
}

/** Returns the contents of an object that must be read as a whole. */
export function wholeBytes({ oid, bytes }: BatchObject): Buffer {
  if (bytes !== undefined) return bytes
  throw notFound(`the object ${oid} is too large for what it is`)
}
