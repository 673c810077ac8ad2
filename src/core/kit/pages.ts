import { ResourceError } from '../errors.ts'

interface PagesOptions {
  /** Maximum number of pages. Without it, the same cursor twice ends the listing: a faulty server would be asked for ever. */
  readonly maxPages?: number
  /** Whether the same cursor twice is an error, or only the end. Default `throw`. */
  readonly repeated?: 'throw' | 'end'
}

/**
 * The pages of a listing, one after the other.
 *
 * @throws ResourceError `internal` if the server gives the same cursor twice, unless `maxPages` or `repeated` says otherwise.
 */
export async function* pagesOf<Page extends { readonly nextCursor?: string }>(
  fetch: (query: { readonly cursor?: string }) => Promise<Page>,
  { maxPages, repeated = 'throw' }: PagesOptions = {},
): AsyncGenerator<Page> {
  const seen = new Set<string>()
  let cursor: string | undefined
  for (let pages = 0; pages < (maxPages ?? Number.POSITIVE_INFINITY); pages++) {
    const page = await fetch(cursor === undefined ? {} : { cursor })
    yield page
    cursor = page.nextCursor
    if (cursor === undefined) return
    if (maxPages === undefined && seen.has(cursor)) {
      if (repeated === 'end') return
      throw new ResourceError('internal', 'The server gave the same cursor twice.')
    }
    seen.add(cursor)
  }
}
