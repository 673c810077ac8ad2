import { type Body, openBody } from '../../core/body.ts'
import type { ResourceError } from '../../core/errors.ts'
import type { View } from '../../core/view.ts'

/** A content that is too large for an answer, as a stream of bytes. */
type Whole = Pick<Body, 'length'> & { readonly bytes: AsyncIterable<Uint8Array> }

/**
 * Opens a content that is too large for an answer: by the link in the error, when the server at `url` gave one, otherwise in parts.
 *
 * @throws the error itself for a resource without parts.
 */
export async function openWhole(
  view: View,
  uri: string,
  error: ResourceError,
  url: string | undefined,
): Promise<Whole> {
  if (url !== undefined) {
    const { contentLinkOf } = await import('../../client/errors.ts')
    const link = contentLinkOf(error, url)
    const linked = link === undefined ? undefined : await openLink(link)
    if (linked !== undefined) return linked
  }
  const body = await openBody((place, options) => view.read(place, options), uri, {}, error)
  return { length: body.length, bytes: body.bytes() }
}

/** Undefined if the link no longer works: the content is then read in parts. */
async function openLink(link: URL): Promise<Whole | undefined> {
  const response = await fetch(link, { redirect: 'error' }).catch(() => undefined)
  if (response === undefined || !response.ok || response.body === null) {
    await response?.body?.cancel()
    return undefined
  }
  const length = response.headers.get('content-length')
  return { length: length === null ? undefined : Number(length), bytes: response.body }
}
