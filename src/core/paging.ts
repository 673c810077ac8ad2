import { createCipheriv, createDecipheriv, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import type { EarlierTexts } from './earlier.ts'
import { foreignCursorError, invalid } from './errors.ts'
import type { Log } from './log.ts'
import type { Mounted } from './mount.ts'
import { comparePaths } from './path.ts'
import type { Context, Entry } from './provider.ts'

/** Maximum length of a cursor, in characters. A cursor holds a path of at most 8 KiB. */
const maxCursorLength = 16_384
const tagLength = 16

/**
 * Creates the seal of cursors. A cursor carries the state of a listing to the client and back, authenticated and
 * encrypted, since a page can end on an entry that the principal may not see. The same page ends in the same cursor: a
 * synthetic initialisation vector (HMAC-SHA-256 over scope and text, as in RFC 5297) is both the tag and the counter of
 * AES-256-CTR.
 * A cursor opens only under the scope (which listing, which principal with which roles) and a secret with which it was
 * sealed.
 * @param secret The secret that seals and opens cursors.
 * @param earlier Secrets that only open.
 */
export function createCursorSeal(secret: Uint8Array, earlier: readonly Uint8Array[] = []) {
  const current = sealWith(secret)
  const seals = [current, ...earlier.map(sealWith)]
  return {
    seal: current.seal,
    /**
     * @throws ResourceError `invalid` (reason `cursor`) for a cursor that was not sealed under this scope with one of
     * the secrets.
     */
    open: (scope: readonly string[], cursor: string): string => {
      for (const { open } of seals) {
        const text = open(scope, cursor)
        if (text !== undefined) return text
      }
      throw foreignCursorError()
    },
  }
}

function sealWith(secret: Uint8Array) {
  const derive = (use: string) => Buffer.from(hkdfSync('sha256', secret, 'hikidashi', `cursor ${use}`, 32))
  const macKey = derive('tag')
  const textKey = derive('text')

  const tagOf = (scope: readonly string[], text: Buffer) => {
    // JSON of an array of strings is unambiguous: `['a:b', 'c']` and `['a', 'b:c']` differ.
    const bound = JSON.stringify(scope)
    return createHmac('sha256', macKey)
      .update(`${Buffer.byteLength(bound)}:${bound}`)
      .update(text)
      .digest()
      .subarray(0, tagLength)
  }

  return {
    seal(scope: readonly string[], text: string): string {
      const plain = Buffer.from(text)
      const tag = tagOf(scope, plain)
      const cipher = createCipheriv('aes-256-ctr', textKey, tag)
      return Buffer.concat([tag, cipher.update(plain), cipher.final()]).toString('base64url')
    },
    /** Undefined for a cursor that was not sealed with this secret under this scope. */
    open(scope: readonly string[], cursor: string): string | undefined {
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

/** State that the parts of a catalog share. */
export interface CatalogState {
  readonly earlier: () => Promise<EarlierTexts>
  /** Sorted by address. */
  readonly mounts: readonly Mounted[]
  readonly seal: ReturnType<typeof createCursorSeal>
  readonly paging: Paging
  readonly log: Log
}

export interface Paging {
  /** Number of entries on the first page. Each next page has 32 times as many, up to `most`. */
  readonly first: number
  readonly most: number
  /** Approximate maximum size of a page, in bytes of JSON. An entry that is larger has a page of its own. */
  readonly bytes: number
  /** Maximum number of entries that are read for one page. The page then ends, even if the principal may see none of them. */
  readonly scan: number
}

/**
 * Most projects fit on the first page, since some hosts show one page only. Then pages grow at once: the 64 pages that
 * the official client follows hold 1,024 + 63 × 16,000 = 1,009,024 entries.
 */
const defaults: Paging = { first: 1024, most: 16_000, bytes: 4 * 1024 * 1024, scan: 100_000 }
const growth = 32

/** @throws ResourceError `invalid` (reason `configuration`) for a value that is not a positive whole number. */
export function completePaging(options: Partial<Paging> = {}): Paging {
  const paging = { ...defaults, ...options }
  for (const [name, value] of Object.entries(paging))
    if (!Number.isSafeInteger(value) || value < 1)
      throw invalid(`pages.${name} must be a whole number, at least 1.`, 'configuration')
  return { ...paging, most: Math.max(paging.first, paging.most) }
}

/** Returns the number of entries of a page, by its number from 0 up. */
export function pageLength(paging: Paging, page: number): number {
  return Math.min(paging.most, paging.first * growth ** Math.min(page, 8))
}

/** Creates a builder that collects one page, and reports when it is full. */
export function createPageBuilder<T>(paging: Paging, page: number) {
  const items: T[] = []
  const length = pageLength(paging, page)
  let bytes = 0
  let lookCount = 0
  return {
    items: items as readonly T[],
    /** Adds an item. Returns false when the item did not fit: then the page is full. */
    add: (item: T, size: number): boolean => {
      if (items.length > 0 && (items.length >= length || bytes + size > paging.bytes)) return false
      items.push(item)
      bytes += size
      return true
    },
    /** Counts an entry that was read. Returns false when too many were read for one page. */
    look: () => ++lookCount <= paging.scan,
  }
}

/** The sort key of a resource in a selection. */
export type Rank = readonly [priority: number, derived: 0 | 1, depth: number, address: string, path: string]

interface Ranked {
  readonly rank: Rank
  readonly mount: Mounted
  readonly entry: Entry
}

const noPriority = 0.5

/**
 * Compares two ranks by importance: the priority, highest first; then entries of mounts that are not derived; then
 * entries that are higher in their tree; then the address and path.
 */
function compareRanks(a: Rank, b: Rank): number {
  return (
    b[0] - a[0] ||
    a[1] - b[1] ||
    a[2] - b[2] ||
    Buffer.compare(Buffer.from(a[3]), Buffer.from(b[3])) ||
    comparePaths(a[4], b[4])
  )
}

/**
 * Returns the most important entries that the caller may see, best first: at most `most`, strictly after `after`.
 * Mounts share the comparisons equally. A mount leaves the unused part of its share to the next ones, of which those
 * that are not derived come last.
 * @param bounds `visible`: maximum number of visible entries that are compared, of all mounts together. `scan`: maximum
 * number of entries that are read of one mount, visible or not.
 * @param onUnavailable Called with the error of a mount that cannot be listed. Unless it throws, the selection
 * continues with the others.
 */
export async function selectEntries(
  mounts: readonly Mounted[],
  most: number,
  after: Rank | undefined,
  bounds: { readonly visible: number; readonly scan: number },
  context: Context,
  onUnavailable: (mount: Mounted, error: unknown) => void,
): Promise<readonly Ranked[]> {
  let best: Ranked[] = []
  /** Entries after this rank are not among the best. */
  let bar: Rank | undefined
  const trim = () => {
    best = best.sort((a, b) => compareRanks(a.rank, b.rank)).slice(0, most)
    bar = best.length === most ? best.at(-1)?.rank : undefined
  }
  let left = bounds.visible
  const order = mounts.toSorted((a, b) => Number(b.derived) - Number(a.derived))
  for (const [index, mount] of order.entries()) {
    let share = Math.ceil(left / (order.length - index))
    let lookCount = 0
    try {
      for await (const entry of mount.provider.list({}, context)) {
        context.signal.throwIfAborted()
        if (++lookCount > bounds.scan) break
        if (!mount.access(context.principal, entry.path)) continue
        const rank = rankOf(mount, entry)
        left--
        const isBehind = after === undefined || compareRanks(rank, after) > 0
        if (isBehind && (bar === undefined || compareRanks(rank, bar) < 0)) best.push({ rank, mount, entry })
        if (best.length >= 2 * most) trim()
        if (--share <= 0) break
      }
    } catch (error) {
      onUnavailable(mount, error)
    }
  }
  trim()
  return best
}

function rankOf(mount: Mounted, { path, priority = noPriority }: Entry): Rank {
  const depth = path.split('/').length
  return [Number.isFinite(priority) ? priority : noPriority, mount.derived ? 1 : 0, depth, mount.address.text, path]
}
