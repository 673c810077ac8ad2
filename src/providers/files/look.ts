import * as fs from 'node:fs'
import { isResourceError } from '../../core/errors.ts'
import { type Breath, createBreath } from './breath.ts'
import type { Place } from './place.ts'
import { failure, type Pool } from './pool.ts'

type Found = fs.BigIntStats | undefined

/**
 * Returns the stats of one child of a directory, without following links; undefined when it cannot be seen.
 *
 * @throws ResourceError `unavailable` when the file system fails.
 */
export async function lookAt(place: Place, name: string, pool: Pool, signal: AbortSignal): Promise<Found> {
  signal.throwIfAborted()
  return place.local ? lookNow(place, name) : lookInPool(place, [name], pool, signal).then(([found]) => found)
}

/**
 * Returns the stats of several children of a directory. On a local file system the calls run on this thread, which is faster,
 * until a slow disk shows: the rest then goes to the pool.
 */
export async function lookAtAll(
  place: Place,
  names: readonly string[],
  pool: Pool,
  signal: AbortSignal,
  breath: Breath = createBreath(),
): Promise<readonly Found[]> {
  const found: Found[] = []
  const start = performance.now()
  while (place.local && found.length < names.length) {
    // In 5 ms a thousand cached files could be examined, so these calls wait for the disk.
    if (found.length % 8 === 0 && performance.now() - start > 5) break
    found.push(lookNow(place, names[found.length] ?? ''))
  }
  if (breath.due()) await breath.take()
  signal.throwIfAborted()
  if (found.length === names.length) return found
  return found.concat(await lookInPool(place, names.slice(found.length), pool, signal))
}

/** Does the same as {@link lookAt} on this thread: for a place on a local file system. */
export function lookNow(place: Place, name: string): Found {
  try {
    return fs.lstatSync(`${place.at}/${name}`, { bigint: true, throwIfNoEntry: false })
  } catch (error) {
    return nothingOr(error)
  }
}

async function lookInPool(place: Place, names: readonly string[], pool: Pool, signal: AbortSignal) {
  // Four tasks, each of which examines its names one after the other: they share one wait for the signal.
  const size = Math.ceil(names.length / 4)
  const parts = Array.from({ length: Math.ceil(names.length / size) }, (_, i) => names.slice(i * size, (i + 1) * size))
  const one = (name: string): Promise<Found> =>
    fs.promises.lstat(`${place.at}/${name}`, { bigint: true }).catch(nothingOr)
  const all = async (part: readonly string[]) => {
    const found: Found[] = []
    for (const name of part) found.push(await one(name))
    return found
  }
  const found = await Promise.all(parts.map((part) => pool.run(() => all(part), { signal, hold: place })))
  return found.flat()
}

function nothingOr(error: unknown): undefined {
  const meaning = failure(error)
  if (!isResourceError(meaning, 'not-found')) throw meaning
}
