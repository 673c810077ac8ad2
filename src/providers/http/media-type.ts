import { metaKeys } from '../../core/meta.ts'
import type { Content } from '../../core/provider.ts'
import { isText } from '../../core/utf8.ts'
import { decodeBytes, labelOf } from '../../wrap/encoding/decode.ts'

/** A media type without its parameters, in lower case, and its charset. `undefined` for what is none. */
export interface MediaType {
  readonly mimeType: string | undefined
  readonly charset: string | undefined
}

/** Reads a `Content-Type`. */
export function mediaTypeOf(header: string | undefined): MediaType {
  const [, name] = /^\s*([\w!#$&^.+-]{1,100}\/[\w!#$&^.+-]{1,100})\s*(?:;|$)/.exec(header ?? '') ?? []
  const [, quoted, plain] = /;\s*charset\s*=\s*(?:"([^"]{1,60})"|([^\s;"]{1,60}))/i.exec(header ?? '') ?? []
  return { mimeType: name?.toLowerCase(), charset: quoted ?? plain }
}

/** The charset that a page of HTML says itself to be in: so far into it that is looked for (HTML Standard, 13.2.3.2). */
const prescan = 1024

/**
 * Bytes of a media type as a content. UTF-8 proves itself. Of other text the charset is believed where it fits every byte: first that
 * of the header, then the one that a page says itself. What is neither stays bytes, of which the encoding can still be found.
 */
export function contentOf(bytes: Buffer, { mimeType, charset }: MediaType): Content {
  const facts = mimeType === undefined ? {} : { mimeType }
  if (isText(bytes)) return { ...facts, text: bytes.toString().replace(/^\ufeff/, '') }
  const label = isTextual(mimeType) ? labelOf(charset ?? charsetIn(bytes, mimeType) ?? '') : undefined
  // What is said to be UTF-8 and is not has no encoding that anybody said.
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
