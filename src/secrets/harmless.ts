import { createHash } from 'node:crypto'
import { createRecent } from '../core/kit/lru.ts'

/**
 * A cache of contents in which no secret was found, so that the same content at the same path is not scanned again. The keys are
 * SHA-256 hashes: the cache holds no part of a content. A content with a secret is never cached.
 */
interface Harmless {
  /** Returns the end of the harmless part of a content; `undefined` when the content is unknown. */
  get(key: string): number | undefined
  add(key: string, cut: number): void
}

/** Maximum number of cached contents. Each takes about 150 bytes. */
const maxContents = 16_384

export function createHarmless(): Harmless {
  const cuts = createRecent<number>(maxContents)
  return { get: cuts.get, add: cuts.set }
}

/**
 * The key of a content and of everything else on which the result depends.
 *
 * @param job Written as JSON. Different settings of the search must have different JSON.
 */
export function keyOf(job: readonly unknown[], content: string | Uint8Array): string {
  const hash = createHash('sha256').update(`${JSON.stringify(job)}\n`)
  // Hash UTF-16, in which different texts have different bytes. In UTF-8 all lone surrogates have the same bytes.
  return (typeof content === 'string' ? hash.update(content, 'utf16le') : hash.update(content)).digest('base64')
}
