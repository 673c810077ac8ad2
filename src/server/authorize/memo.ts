/** Remembers some answers for a while. What several ask for at once is found out once. */
export interface Memo<T> {
  /** What is remembered under a key, or what `find` finds. It is remembered up to `until`, in milliseconds since 1970. */
  get(key: string, find: () => Promise<{ readonly value: T; readonly until: number }>): Promise<T>
}

/** @param most Beyond so many, the oldest are forgotten. */
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
