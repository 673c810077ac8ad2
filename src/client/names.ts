/**
 * The URIs that are listened to, each with the number of its listeners. The URIs belong to the server: they are never parsed or
 * rewritten, only compared as text and split at slashes.
 */
export interface Names {
  readonly size: number
  all(): Iterable<string>
  /** Counts one more listener of a URI. */
  add(uri: string): void
  /** Counts one listener less. */
  remove(uri: string): void
  /** Returns the URIs that a change of `uri` concerns: its own spellings, and those of the directories above it. */
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

/** Returns a key that all spellings of a URI share: servers that parse URIs escape them in their own way. */
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
