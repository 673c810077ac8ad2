import { comparePaths, notFound, type Provider } from 'hikidashi'

/** Serves texts and bytes that are held in memory. */
export function memory(contents: Readonly<Record<string, string | Uint8Array>>): Provider {
  const entries = Object.entries(contents).sort(([a], [b]) => comparePaths(a, b))
  const byPath = new Map(entries)
  return {
    async *list({ prefix = '', after }, { signal }) {
      for (const [path, content] of entries) {
        signal.throwIfAborted()
        if (!path.startsWith(prefix)) continue
        if (after !== undefined && comparePaths(path, after) <= 0) continue
        yield { path, size: Buffer.byteLength(content) }
      }
    },
    async read({ path }, { signal }) {
      signal.throwIfAborted()
      const content = byPath.get(path)
      if (content === undefined) throw notFound()
      return [typeof content === 'string' ? { text: content } : { bytes: content }]
    },
  }
}
