import { isResourceError } from '../../../core/errors.ts'
import { metaKeys } from '../../../core/meta.ts'
import type { ReadResult } from '../../../core/view.ts'
import { codes, ProtocolError } from '../../protocol/messages.ts'
import type { LinkFor } from './link.ts'

/**
 * Returns the error of a read with a link to the whole content in its data (`link`), if the content is too large. A URI with
 * parameters asks for a part or another reading, of which there is no link.
 */
export function linkedError(error: unknown, uri: string, linkFor: LinkFor): unknown {
  // Other reasons, such as what a service exports at most, hold for a link as well.
  if (!isResourceError(error, 'too-large') || error.detail.reason !== 'too-large' || uri.includes('?')) return error
  const link = linkFor(uri)
  if (link === undefined) return error
  return new ProtocolError(codes.invalidParams, error.message, { ...error.detail, link })
}

/**
 * Adds the link to the metadata of a content of which only the beginning was read. A link of the source itself, such as a signed URL
 * of a bucket, stays. The answer then holds for one principal alone.
 */
export function linkedResult(result: ReadResult, uri: string, linkFor: LinkFor): ReadResult {
  const [content, ...others] = result.contents
  if (content === undefined || content.meta?.[metaKeys.link] !== undefined || uri.includes('?')) return result
  const link = linkFor(uri)
  if (link === undefined) return result
  return {
    contents: [{ ...content, meta: { ...content.meta, [metaKeys.link]: link } }, ...others],
    cache: { ttlMs: 0, scope: 'private' },
  }
}
