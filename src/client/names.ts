/**
 * The URIs that are listened to. They are a stranger's: nothing is parsed or rewritten in them, they are compared as text
 * and cut at slashes.
 */
export interface Names {
  readonly size: number
  all(): Iterable<string>
  /** Adds a URI once more. */
  add(uri: string): void
  /** Takes it away once. */
  remove(uri: string): void
  /** Those that a change of `uri` is a change of: its own spellings, and those of the directories above it. */
  of(uri: string): Iterable<string>
}

export function createNames(): Names {
  const counts = new Map<string, number>()
  const spellings = new Map<string, Set<string>>()
  return {
    get size() {
      return counts.size
    },
    all: () => counts.keys(),
    add: (uri) => {
      counts.set(uri, (counts.get(uri) ?? 0) + 1)
      const key = keyOf(uri)
      const known = spellings.get(key) ?? new Set<string>()
      spellings.set(key, known.add(uri))
    },
    remove: (uri) => {
      const left = (counts.get(uri) ?? 0) - 1
      if (left > 0) return void counts.set(uri, left)
      counts.delete(uri)
      const key = keyOf(uri)
      const known = spellings.get(key)
      known?.delete(uri)
      if (known?.size === 0) spellings.delete(key)
    },
    of: function* (uri) {
      for (let key = keyOf(uri); ; key = key.slice(0, key.lastIndexOf('/'))) {
        yield* spellings.get(key) ?? []
        if (!key.includes('/')) return
      }
    },
  }
}

/** What is the same for all spellings of a URI: servers that parse URIs escape them in their own way. */
export function keyOf(uri: string): string {
  const bare = uri.endsWith('/') ? uri.slice(0, -1) : uri
  return bare
    .replace(/^[^:/?#]+:(?:\/\/[^/?#]*)?/, (start) => start.toLowerCase())
    .replace(/(?:%[0-9A-Fa-f]{2})+/g, (escaped) => {
      try {
        return decodeURIComponent(escaped)
      } catch {
        return escaped.toUpperCase()
      }
    })
}
