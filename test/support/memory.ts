import { notFound } from '../../src/core/errors.ts'
import { comparePaths } from '../../src/core/path.ts'
import type { Entry, Provider, Template } from '../../src/core/provider.ts'

export interface MemoryEntry extends Omit<Entry, 'path'> {
  readonly text?: string
  readonly bytes?: Uint8Array
}

export interface Memory extends Provider {
  readonly entries: Map<string, MemoryEntry>
  /** Number of calls of each method, and of yielded entries. */
  readonly calls: { list: number; read: number; yielded: number }
}

/** A provider over a map, which counts its calls. */
export function memory(
  entries: Readonly<Record<string, MemoryEntry | string>>,
  templates?: readonly Template[],
): Memory {
  const map = new Map(
    Object.entries(entries).map(([path, entry]) => [path, typeof entry === 'string' ? { text: entry } : entry]),
  )
  const calls = { list: 0, read: 0, yielded: 0 }
  let sorted: readonly string[] = []
  let sortedFor = -1
  const paths = () => {
    if (sortedFor !== map.size) sorted = [...map.keys()].sort(comparePaths)
    sortedFor = map.size
    return sorted
  }
  const entryOf = (path: string, { text: _, bytes: __, ...facts }: MemoryEntry): Entry => ({ path, ...facts })
  return {
    entries: map,
    calls,
    async *list({ prefix = '', after }) {
      calls.list++
      const all = paths()
      let low = 0
      let high = all.length
      while (low < high) {
        const middle = (low + high) >> 1
        if (after !== undefined && comparePaths(all[middle] ?? '', after) <= 0) low = middle + 1
        else high = middle
      }
      for (const path of all.slice(low)) {
        const entry = map.get(path)
        if (entry === undefined || !path.startsWith(prefix)) continue
        calls.yielded++
        yield entryOf(path, entry)
      }
    },
    async stat(path) {
      const entry = map.get(path)
      if (entry === undefined) throw notFound()
      return entryOf(path, entry)
    },
    async read({ path }) {
      calls.read++
      const entry = map.get(path)
      if (entry === undefined) throw notFound()
      const { mimeType, version, text = '', bytes } = entry
      const facts = { ...(mimeType ? { mimeType } : {}), ...(version ? { version } : {}) }
      return [bytes === undefined ? { ...facts, text } : { ...facts, bytes }]
    },
    templates: async () => templates ?? [{ template: '{+path}', name: 'All' }],
  }
}
