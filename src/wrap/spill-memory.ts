import { randomBytes } from 'node:crypto'
import {
  bytesIn,
  factsOf,
  type LongResult,
  type LongResultBounds,
  type LongResults,
  makingRoom,
  type ResultFile,
} from '../core/long-results.ts'

interface Kept extends LongResult {
  readonly owner: string
  readonly bytes: number
  readonly bodies: ReadonlyMap<string, ResultFile['body']>
}

/** Keeps long results in the memory of this process. */
export function resultsInMemory(bounds: LongResultBounds, now: () => number = Date.now): LongResults {
  /** The results, oldest first. */
  const results = new Map<string, Kept>()
  let timer: NodeJS.Timeout | undefined

  /** Drops the results whose time is over. */
  const sweep = (): void => {
    clearTimeout(timer)
    for (const { id, expires } of results.values()) {
      if (expires > now()) {
        timer = setTimeout(sweep, Math.min(expires - now() + 1, 2 ** 30))
        timer.unref()
        return
      }
      results.delete(id)
    }
  }
  const find = (owner: string, id: string): Kept | undefined => {
    sweep()
    const result = results.get(id)
    return result?.owner === owner ? result : undefined
  }

  return {
    put: async (owner, files) => {
      sweep()
      const bytes = bytesIn(files)
      if (bytes > Math.min(bounds.maxBytes, bounds.maxTotalBytes)) return undefined
      for (const { id } of makingRoom([...results.values()], { owner, bytes }, bounds)) results.delete(id)
      const made = now()
      const result = {
        ...{ id: randomBytes(16).toString('base64url'), owner, bytes, made, expires: made + bounds.keepMs },
        files: files.map(factsOf),
        bodies: new Map(files.map(({ name, body }) => [name, body])),
      }
      results.set(result.id, result)
      sweep()
      return result
    },
    list: async (owner) => {
      sweep()
      return [...results.values()].filter((result) => result.owner === owner)
    },
    get: async (owner, id) => find(owner, id),
    body: async (owner, id, name) => find(owner, id)?.bodies.get(name),
    has: (owner, id, name) => find(owner, id)?.bodies.has(name) ?? false,
    close: async () => {
      clearTimeout(timer)
      results.clear()
    },
  }
}
