/** A binary heap: the value that precedes all others is removed first. */
interface Heap<T> {
  push(value: T): void
  pop(): T | undefined
}

export function createHeap<T>(precedes: (a: T, b: T) => boolean): Heap<T> {
  const values: T[] = []
  return {
    push: (value) => {
      let index = values.length
      values.push(value)
      while (index > 0) {
        const above = (index - 1) >> 1
        const parent = values[above]
        if (parent === undefined || !precedes(value, parent)) break
        values[index] = parent
        index = above
      }
      values[index] = value
    },
    pop: () => {
      const [first] = values
      const last = values.pop()
      if (last === undefined || values.length === 0) return first
      let index = 0
      for (;;) {
        let below = 2 * index + 1
        let child = values[below]
        if (child === undefined) break
        const other = values[below + 1]
        if (other !== undefined && precedes(other, child)) {
          child = other
          below++
        }
        if (!precedes(child, last)) break
        values[index] = child
        index = below
      }
      values[index] = last
      return first
    },
  }
}
