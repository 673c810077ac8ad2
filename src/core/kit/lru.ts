/**
 * Creates a cache that removes the least recently used values when the total weight exceeds its limit. The newest value
 * is kept, whatever its weight.
 */
export function createLruCache<V>(limit: number, weigh: (value: V) => number = () => 1) {
  const values = new Map<string, V>()
  let weight = 0

  const remove = (key: string): void => {
    const value = values.get(key)
    if (value === undefined) return
    weight -= weigh(value)
    values.delete(key)
  }

  return {
    get: (key: string): V | undefined => {
      const value = values.get(key)
      if (value === undefined) return undefined
      // A map keeps the order of insertion: the first key is the least recently used.
      values.delete(key)
      values.set(key, value)
      return value
    },
    set: (key: string, value: V): void => {
      remove(key)
      values.set(key, value)
      weight += weigh(value)
      for (const oldest of values.keys()) {
        if (weight <= limit || oldest === key) break
        remove(oldest)
      }
    },
    delete: remove,
    clear: (): void => {
      values.clear()
      weight = 0
    },
  }
}
