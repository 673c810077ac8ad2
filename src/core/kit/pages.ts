import { ResourceError } from '../errors.ts'

interface PagesOptions {
  /** Default: no limit. */
  readonly maxPages?: number
  /** How the listing ends if a cursor comes again: without an end, a faulty server would be asked for ever. Default `throw`. */
  readonly repeated?: 'throw' | 'end'
}

/**
 * The pages of a listing, one after the other.
 *
 * @throws ResourceError `internal` if the server gives the same cursor twice.
 */
export async function* pagesOf<Page extends { readonly nextCursor?: string }>(
  fetch: (query: { readonly cursor?: string }) => Promise<Page>,
  { maxPages = Number.POSITIVE_INFINITY, repeated = 'throw' }: PagesOptions = {},
): AsyncGenerator<Page> {
  const seen = new Set<string>()
  let cursor: string | undefined
  for (let pages = 0; pages < maxPages; pages++) {
    const page = await fetch(cursor === undefined ? {} : { cursor })
    yield page
    cursor = page.nextCursor
    if (cursor === undefined) return
    if (seen.has(cursor)) {
      if (repeated === 'end') return
      throw new ResourceError('internal', 'The server gave the same cursor twice.')
    }
    seen.add(cursor)
  }
}
