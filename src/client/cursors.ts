import { createHash } from 'node:crypto'
import { invalid, ResourceError } from '../core/errors.ts'

/**
 * Position of a walk through the pages of a server. A cursor of this client consists of the server's cursor and of the data that
 * detects a cycle: the number of pages so far, and the hash of an earlier cursor. They travel in the cursor because a view holds
 * no state.
 */
export interface Position {
  /** The server's own cursor; undefined for the first page. */
  readonly cursor?: string
  readonly pages: number
  readonly mark: string
}

/** Maximum number of pages of a listing. No real listing has as many. */
const maxPages = 100_000

const start: Position = { pages: 0, mark: '' }

/** @throws ResourceError `invalid` for a cursor that this client did not make. */
export function openCursor(cursor: string | undefined): Position {
  if (cursor === undefined) return start
  const parts = /^(\d{1,6})\.([\w-]{12})\.(.*)$/s.exec(cursor)
  const [, pages, mark, raw] = parts ?? []
  if (pages === undefined || mark === undefined || raw === undefined)
    throw invalid('The cursor is not one that this listing gave to you. Begin again.', 'cursor')
  return { cursor: raw, pages: Number(pages), mark }
}

/**
 * Returns the cursor of the page after the one at `position`; nothing when the server named none.
 *
 * Cycles are found by Brent's algorithm: each cursor is compared with the one of the last page whose number is a power of two, so
 * a cycle shows within three times its length.
 *
 * @throws ResourceError `internal` for a cursor that repeats, or a listing without an end.
 */
export function nextCursor(position: Position, raw: string | undefined): { readonly nextCursor?: string } {
  if (raw === undefined) return {}
  const pages = position.pages + 1
  const mark = createHash('sha256').update(raw).digest('base64url').slice(0, 12)
  if (mark === position.mark || raw === position.cursor)
    throw new ResourceError('internal', `The server leads in a circle: a cursor repeats after ${pages} pages.`)
  if (pages > maxPages)
    throw new ResourceError('internal', `The server's listing has no end: it was left after ${maxPages} pages.`)
  const isPowerOfTwo = (pages & (pages - 1)) === 0
  return { nextCursor: `${pages}.${isPowerOfTwo ? mark : position.mark}.${raw}` }
}
