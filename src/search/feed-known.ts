import { defined } from '../core/kit/defined.ts'
import type { SearchIndex } from './search-index.ts'

/** Number of versions requested at once. */
const pageSize = 1000

/** How many of these are indexed. */
export async function countKnown(index: SearchIndex, uris: readonly string[]): Promise<number> {
  let known = 0
  for (const uri of uris) {
    // Nothing that begins with it comes before it.
    const [first] = await index.documents({ prefix: uri, limit: 1 })
    if (first?.uri === uri) known++
  }
  return known
}

/** The versions of what is indexed at a URI and below it. */
export async function knownBelow(index: SearchIndex, base: string, signal: AbortSignal): Promise<Map<string, string>> {
  const known = new Map<string, string>()
  // Nothing that begins with it comes before it.
  const [first] = await index.documents({ prefix: base, limit: 1 })
  if (first?.uri === base) known.set(first.uri, first.version)
  const prefix = base.endsWith('/') ? base : `${base}/`
  let after: string | undefined
  for (;;) {
    signal.throwIfAborted()
    const page = await index.documents({ prefix, limit: pageSize, ...defined({ after }) })
    for (const { uri, version } of page) known.set(uri, version)
    after = page.at(-1)?.uri
    if (page.length < pageSize) return known
  }
}
