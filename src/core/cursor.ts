import { createCipheriv, createDecipheriv, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import { invalid } from './errors.ts'

/**
 * Seals cursors: a cursor carries the state of a listing to the client and back, authenticated and encrypted.
 *
 * It is encrypted because a page can end on an entry that the principal may not see. It is deterministic, so the same page always
 * ends in the same cursor: a synthetic initialisation vector (HMAC-SHA-256 over scope and text, as in RFC 5297) is both the tag
 * and the counter of AES-256-CTR.
 *
 * `scope` binds a cursor to its origin (which listing, which principal with which roles): it opens only under the same scope and
 * secret. Replicas that share the secret accept each other's cursors.
 */
export interface CursorSeal {
  seal(scope: readonly string[], text: string): string
  /** @throws ResourceError `invalid` with reason `cursor`, for every fault. */
  open(scope: readonly string[], cursor: string): string
}

/** Maximum length of a cursor, in characters. A cursor holds a path of at most 8 KiB. */
const maxCursorLength = 16_384
const tagLength = 16

/**
 * @param secret Seals and opens.
 * @param earlier Secrets that only open: cursors that were sealed before the secret was changed remain valid.
 */
export function createCursorSeal(secret: Uint8Array, earlier: readonly Uint8Array[] = []): CursorSeal {
  const current = sealWith(secret)
  const seals = [current, ...earlier.map(sealWith)]
  return {
    seal: current.seal,
    open: (scope, cursor) => {
      for (const { open } of seals) {
        const text = open(scope, cursor)
        if (text !== undefined) return text
      }
      throw invalid('The cursor is not one that this listing gave to you. Begin again.', 'cursor')
    },
  }
}

interface Seal {
  readonly seal: CursorSeal['seal']
  /** Returns undefined for a cursor that was not sealed with this secret under this scope. */
  readonly open: (scope: readonly string[], cursor: string) => string | undefined
}

function sealWith(secret: Uint8Array): Seal {
  const derive = (use: string) => Buffer.from(hkdfSync('sha256', secret, 'hikidashi', `cursor ${use}`, 32))
  const macKey = derive('tag')
  const textKey = derive('text')

  const tagOf = (scope: readonly string[], text: Buffer) => {
    // JSON of an array of strings is unambiguous: ['a:b', 'c'] and ['a', 'b:c'] differ.
    const bound = JSON.stringify(scope)
    return createHmac('sha256', macKey)
      .update(`${Buffer.byteLength(bound)}:${bound}`)
      .update(text)
      .digest()
      .subarray(0, tagLength)
  }

  return {
    seal(scope, text) {
      const plain = Buffer.from(text)
      const tag = tagOf(scope, plain)
      const cipher = createCipheriv('aes-256-ctr', textKey, tag)
      return Buffer.concat([tag, cipher.update(plain), cipher.final()]).toString('base64url')
    },
    open(scope, cursor) {
      if (cursor.length > maxCursorLength) return undefined
      const bytes = Buffer.from(cursor, 'base64url')
      // Node skips characters outside base64url; only the canonical spelling is accepted.
      if (bytes.length < tagLength || bytes.toString('base64url') !== cursor) return undefined
      const tag = bytes.subarray(0, tagLength)
      const decipher = createDecipheriv('aes-256-ctr', textKey, tag)
      const plain = Buffer.concat([decipher.update(bytes.subarray(tagLength)), decipher.final()])
      return timingSafeEqual(tag, tagOf(scope, plain)) ? plain.toString() : undefined
    },
  }
}
