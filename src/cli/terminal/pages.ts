import { ResourceError } from '../../core/errors.ts'
import type { Page } from '../../core/view.ts'

/** All pages of a listing, one after the other. */
export async function* pagesOf<T>(
  fetch: (query: { readonly cursor?: string }) => Promise<Page<T>>,
): AsyncGenerator<Page<T>> {
  let cursor: string | undefined
  for (;;) {
    const page = await fetch(cursor === undefined ? {} : { cursor })
    yield page
    if (page.nextCursor === undefined) return
    // A third-party server may return the same cursor again. Without this check the listing would never end.
    if (page.nextCursor === cursor) throw new ResourceError('internal', 'The server gave the same cursor twice.')
    cursor = page.nextCursor
  }
}
