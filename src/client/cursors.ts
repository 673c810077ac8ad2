import { createHash } from 'node:crypto'
import { invalid, ResourceError } from '../core/errors.ts'

/**
 * Where a walk through a server's pages stands. A cursor of ours is the server's, with what it takes to notice that the
 * server leads in a circle: the number of pages so far, and the mark of one cursor further back. A view holds no state, so
 * they travel in the cursor.
 */
export interface Position {
  /** The server's own cursor; absent for the first page. */
  readonly cursor?: string
  readonly pages: number
  readonly mark: string
}

/** More pages than any listing has. */
const maxPages = 100_000

const start: Position = { pages: 0, mark: '' }

/** @throws ResourceError `invalid` for a cursor that is none of ours. */
export function openCursor(cursor: string | undefined): Position {
  if (cursor === undefined) return start
  const parts = /^(\d{1,6})\.([\w-]{12})\.(.*)$/s.exec(cursor)
  const [, pages, mark, raw] = parts ?? []
  if (pages === undefined || mark === undefined || raw === undefined)
    throw invalid('The cursor is not one that this listing gave to you. Begin again.', 'cursor')
  return { cursor: raw, pages: Number(pages), mark }
}

/**
 * The cursor of the page after the one at `position`, where the server named one.
 *
 * A circle is found by Brent's algorithm: each cursor is compared with the one of the last page whose number was a power of
 * two, so any circle shows within three times its length.
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
