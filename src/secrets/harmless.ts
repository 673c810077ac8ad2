import { createHash } from 'node:crypto'
import { createRecent } from '../core/kit/lru.ts'

/**
 * Remembers contents in which no secret was found, so that the same content at the same path is not looked through again. A content is known
 * by its SHA-256: neither the content nor anything of it is kept. A content with a secret is never remembered.
 */
export interface Harmless {
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
 * @param job As JSON. It must tell every setting of the search from every other.
 */
export function keyOf(job: readonly unknown[], content: string | Uint8Array): string {
  const hash = createHash('sha256').update(`${JSON.stringify(job)}\n`)
  // In UTF-16 no two texts have the same bytes; in UTF-8 all lone surrogates have.
  return (typeof content === 'string' ? hash.update(content, 'utf16le') : hash.update(content)).digest('base64')
}
