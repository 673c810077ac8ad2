/**
 * A map of paths that never blocks the event loop for long as it grows: it is split into several maps. A single map of a million keys is
 * rehashed in one step when it is full, which takes 80 ms.
 */
export interface PathMap<V> {
  readonly size: number
  get(path: string): V | undefined
  has(path: string): boolean
  set(path: string, value: V): void
  delete(path: string): void
  keys(): IterableIterator<string>
  [Symbol.iterator](): IterableIterator<readonly [path: string, value: V]>
}

const maxParts = 256
/** Maximum number of paths in a single map. */
const maxUndivided = 16_384

export function createPathMap<V>(): PathMap<V> {
  let maps: readonly Map<string, V>[] = [new Map()]
  let size = 0
  const mapFor = (path: string) => maps[hash(path) % maps.length] as Map<string, V>
  const divide = () => {
    const [all] = maps
    maps = Array.from({ length: maxParts }, () => new Map())
    for (const [path, value] of all ?? []) mapFor(path).set(path, value)
  }
  return {
    get size() {
      return size
    },
    get: (path) => mapFor(path).get(path),
    has: (path) => mapFor(path).has(path),
    set: (path, value) => {
      if (size === maxUndivided && maps.length === 1) divide()
      const map = mapFor(path)
      if (!map.has(path)) size++
      map.set(path, value)
    },
    delete: (path) => {
      if (mapFor(path).delete(path)) size--
    },
    keys: function* () {
      for (const map of maps) yield* map.keys()
    },
    *[Symbol.iterator]() {
      for (const map of maps) yield* map
    },
  }
}

/** Hashes the last characters, because the first ones are often the same. Not negative. */
function hash(path: string): number {
  let value = 0
  for (let i = Math.max(0, path.length - 32); i < path.length; i++) value = (value * 31 + path.charCodeAt(i)) | 0
  return (value ^ (value >>> 8) ^ (value >>> 16)) >>> 0
}
