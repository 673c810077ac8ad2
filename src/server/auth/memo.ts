/** A cache with expiry. Concurrent look-ups of one key share one call (single-flight). */
export interface Memo<T> {
  /** Returns the cached value of a key, or the result of `find`, which is cached until `until`, in milliseconds since 1970. */
  get(key: string, find: () => Promise<{ readonly value: T; readonly until: number }>): Promise<T>
}

/** @param most Maximum number of entries. Beyond it, the oldest are removed. */
export function createMemo<T>(most: number): Memo<T> {
  const known = new Map<string, { readonly value: T; readonly until: number }>()
  const finding = new Map<string, Promise<T>>()

  const findOut = async (key: string, find: () => Promise<{ value: T; until: number }>): Promise<T> => {
    try {
      const found = await find()
      known.delete(key)
      if (found.until > Date.now()) known.set(key, found)
      for (const oldest of known.keys()) {
        if (known.size <= most) break
        known.delete(oldest)
      }
      return found.value
    } finally {
      finding.delete(key)
    }
  }

  return {
    get: async (key, find) => {
      const remembered = known.get(key)
      if (remembered !== undefined && remembered.until > Date.now()) return remembered.value
      let asked = finding.get(key)
      if (asked === undefined) {
        asked = findOut(key, find)
        finding.set(key, asked)
      }
      return asked
    },
  }
}
