import { createHash } from 'node:crypto'
import { isResourceError, notFound, ResourceError } from '../../core/errors.ts'
import { createRecent } from '../../core/recent.ts'
import { createBreath } from '../files/breath.ts'
import { type Batch, createBatch, damaged } from './batch.ts'
import type { Found } from './batch-reader.ts'
import type { Launcher } from './launch.ts'

export type ObjectFormat = 'sha1' | 'sha256'

/** The objects of the repository, by full id only. Every call ends in time by itself. */
export interface Objects {
  /** What an object is. `name` is an id, or `id^{type}`. `undefined` where there is none. */
  info(name: string): Promise<Found | undefined>
  /**
   * An object of at most `limit` bytes; of a larger one, the facts alone. Its contents have been compared with its id.
   * With `keep` they are remembered for a while, as far as they are small: more parts of it will be read.
   *
   * @throws ResourceError `not-found` (see {@link isMissing}) where there is none, `unavailable` for a damaged one.
   */
  read(name: string, limit: number, keep?: boolean): Promise<Found>
  /** Starts again with what lies on disk now: packs come and go. */
  restart(): void
  close(): void
}

/** So many processes answer with contents, as they are needed; one more tells sizes and types. */
const readers = 3
/** A process that is busy with one object for longer, in milliseconds, is passed over. */
const patience = 60
/** So many objects are remembered with their type and size, and so many bytes of small contents. */
const maxFacts = 50_000
/** So many bytes are hashed before it is seen whether it is time for others. */
const hashedAtOnce = 1024 * 1024
const maxTooMuch = 1000
const maxKept = 32 * 1024 * 1024
const keeps = 4 * 1024 * 1024

export function createObjects(launcher: Launcher, format: ObjectFormat, timeoutMs: number): Objects {
  const make = (mode: '--batch' | '--batch-check') => createBatch({ mode, start: launcher.start, timeoutMs })
  const contents = Array.from({ length: readers }, () => make('--batch'))
  const checker = make('--batch-check')
  const known = createRecent<Found>(maxFacts)
  /** Objects that git cannot make within its memory: it would end over each of them again. */
  const tooMuch = createRecent<{ readonly error: ResourceError }>(maxTooMuch)
  const kept = createRecent<Found>(maxKept, ({ size }) => size + 200)

  /**
   * One process does most of the work, since it remembers what the next object is made from. Another one takes over while
   * the first is busy with something large.
   */
  const readiest = (): Batch => {
    const quick = contents.find((batch) => batch.delay() < patience)
    return quick ?? contents.reduce((best, batch) => (batch.delay() < best.delay() ? batch : best))
  }

  const check = async (name: string, { bytes, oid, type, size }: Found): Promise<void> => {
    if (bytes === undefined) return
    const hash = createHash(format).update(`${type} ${size}\0`)
    const breath = createBreath()
    for (let at = 0; at < bytes.length; at += hashedAtOnce) {
      hash.update(bytes.subarray(at, at + hashedAtOnce))
      if (breath.due()) await breath.take()
    }
    if (hash.digest('hex') !== oid || (oid !== name && !name.includes('^')))
      throw damaged(`The contents of the object ${oid} are not what its id says.`)
  }

  return {
    info: async (name) => {
      const remembered = known.get(name)
      if (remembered !== undefined) return remembered
      const found = await checker.ask(name, 0)
      if (found !== undefined) known.set(name, found)
      return found
    },
    read: async (name, limit, keep = false) => {
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
      // A copy: the bytes may be a part of a larger piece of output.
      if (keep && found.bytes !== undefined && found.size <= keeps)
        kept.set(name, { ...found, bytes: Buffer.from(found.bytes) })
      return found
    },
    restart: () => {
      for (const batch of [...contents, checker]) batch.restart()
    },
    close: () => {
      for (const batch of [...contents, checker]) batch.close()
      known.clear()
      kept.clear()
    },
  }
}

const missingReason = 'missing-object'

/** See {@link isMissing}. */
export function missing(name: string): ResourceError {
  return new ResourceError('not-found', `the object ${name} is not in the repository`, { reason: missingReason })
}

/** Whether an object was not there: it may have been packed or pruned meanwhile, or never fetched. */
export function isMissing(error: unknown): boolean {
  return isResourceError(error, 'not-found') && error.detail.reason === missingReason
}

/** The contents of an object that is read as a whole or not at all. */
export function wholeBytes({ oid, bytes }: Found): Buffer {
  if (bytes !== undefined) return bytes
  throw notFound(`the object ${oid} is too large for what it is`)
}
