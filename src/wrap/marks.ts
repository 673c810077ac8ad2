/** Position at which a line begins in one version of a resource. */
export interface Mark {
  readonly version: string | undefined
  readonly line: number
  readonly at: number
}

/** Remembers where lines begin, so that reading a resource part after part does not count it all again each time. */
export interface Marks {
  /** The last known beginning of a line at or before one; that of the first line, where nothing is known. */
  before(key: string, line: number): Mark
  set(key: string, mark: Mark): void
  forget(key: string): void
}

const maxResources = 200
const maxMarks = 1024

export function createMarks(): Marks {
  const resources = new Map<string, Mark[]>()
  return {
    before: (key, line) =>
      resources.get(key)?.findLast((mark) => mark.line <= line) ?? { version: undefined, line: 1, at: 0 },
    set: (key, mark) => {
      const known = resources.get(key) ?? []
      const same = known[0]?.version === mark.version ? known : []
      const last = same.at(-1)
      if (last === undefined || last.line < mark.line) same.push(mark)
      // Half of them are as good, over twice the way.
      const kept = same.length > maxMarks ? same.filter((_, i) => i % 2 === 1) : same
      resources.delete(key)
      resources.set(key, kept)
      for (const oldest of resources.keys()) {
        if (resources.size <= maxResources) break
        resources.delete(oldest)
      }
    },
    forget: (key) => resources.delete(key),
  }
}
