import { isText } from '../../core/kit/utf8.ts'
import { metaKeys } from '../../core/meta.ts'
import type { Content } from '../../core/provider.ts'
import { decodeBytes, labelOf } from '../../text/encoding/decode.ts'

/** A media type without its parameters, in lower case, and its charset; undefined when missing or malformed. */
export interface MediaType {
  readonly mimeType: string | undefined
  readonly charset: string | undefined
}

/** Parses a `Content-Type`. */
export function mediaTypeOf(header: string | undefined): MediaType {
  const [, name] = /^\s*([\w!#$&^.+-]{1,100}\/[\w!#$&^.+-]{1,100})\s*(?:;|$)/.exec(header ?? '') ?? []
  const [, quoted, plain] = /;\s*charset\s*=\s*(?:"([^"]{1,60})"|([^\s;"]{1,60}))/i.exec(header ?? '') ?? []
  return { mimeType: name?.toLowerCase(), charset: quoted ?? plain }
}

/** Number of bytes of an HTML page that are searched for its charset (HTML Standard, 13.2.3.2). */
const prescan = 1024

/**
 * Converts bytes of a media type to a content. Valid UTF-8 is text. For other text types a declared charset is used if it can decode every
 * byte: that of the header, otherwise that of the page. Everything else stays bytes, whose encoding may still be detected later.
 */
export function contentOf(bytes: Buffer, { mimeType, charset }: MediaType): Content {
  const facts = mimeType === undefined ? {} : { mimeType }
  if (isText(bytes)) return { ...facts, text: bytes.toString().replace(/^\ufeff/, '') }
  const label = isTextual(mimeType) ? labelOf(charset ?? charsetIn(bytes, mimeType) ?? '') : undefined
  // Invalid bytes in declared UTF-8 have no known encoding.
  const text = label === undefined || label === 'utf-8' ? undefined : decodeBytes(bytes, label, 'strict')
  if (label === undefined || text === undefined || !text.isWellFormed()) return { ...facts, bytes }
  return { ...facts, text, meta: { [metaKeys.encoding]: label } }
}

function charsetIn(bytes: Buffer, mimeType: string | undefined): string | undefined {
  const start = bytes.toString('latin1', 0, prescan)
  if (mimeType?.endsWith('xml')) return /^<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{1,40})["']/.exec(start)?.[1]
  return /<meta\b[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]{1,40})/i.exec(start)?.[1]
}

function isTextual(mimeType: string | undefined): boolean {
  return mimeType === undefined || /^text\/|[/+](?:json|xml)$|javascript/.test(mimeType)
}
