import { invalid, notFound, ResourceError } from '../../src/core/errors.ts'
import { isText, wholeCharacters } from '../../src/core/kit/utf8.ts'
import { comparePaths } from '../../src/core/path.ts'
import type { Content, Provider } from '../../src/core/provider.ts'

export interface Ranged extends Provider {
  /** Number of bytes read of each path. */
  readonly read: Provider['read']
  readonly bytesRead: Map<string, number>
}

/** A provider over a map that reads ranges like files, and counts the read bytes. */
export function ranged(
  contents: Readonly<Record<string, string | Uint8Array>>,
  limit = Number.POSITIVE_INFINITY,
): Ranged {
  const held = new Map(Object.entries(contents).map(([path, content]) => [path, Buffer.from(content)]))
  const bytesRead = new Map<string, number>()
  const entryOf = (path: string, bytes: Buffer) => ({ path, size: bytes.length, version: `v${bytes.length}` })
  return {
    bytesRead,
    list: async function* ({ prefix = '', after }, { signal }) {
      for (const [path, bytes] of [...held].sort(([a], [b]) => comparePaths(a, b))) {
        signal.throwIfAborted()
        if (path.startsWith(prefix) && (after === undefined || comparePaths(path, after) > 0))
          yield entryOf(path, bytes)
      }
    },
    stat: async (path, { signal }) => {
      signal.throwIfAborted()
      const bytes = held.get(path)
      if (bytes === undefined) throw notFound()
      return entryOf(path, bytes)
    },
    read: async ({ path, range }, { signal }) => {
      signal.throwIfAborted()
      const all = held.get(path)
      if (all === undefined) throw notFound()
      const facts = { version: `v${all.length}`, size: all.length }
      const start = range?.start ?? 0
      if (range !== undefined && start > 0 && start >= all.length) throw invalid('behind the end', 'range')
      const part = all.subarray(start, range?.end)
      bytesRead.set(path, (bytesRead.get(path) ?? 0) + part.length)
      if (part.length > limit) throw tooLarge(all.length, limit)
      const { from, to } = range === undefined ? { from: 0, to: part.length } : wholeCharacters(part)
      const text = isText(all) && (to > from || part.length === 0)
      const place = text ? { start: start + from, end: start + to } : { start, end: start + part.length }
      const where = range === undefined ? {} : { range: place }
      const body: Content = text ? { text: part.toString('utf8', from, to) } : { bytes: part }
      return [{ ...facts, ...where, ...body }]
    },
  }
}

function tooLarge(size: number, max: number) {
  return new ResourceError('too-large', 'too large', { size, limit: max })
}
