import { type Body, openBody } from '../../core/body.ts'
import { base64Of } from '../../core/entry.ts'
import type { ResourceError } from '../../core/errors.ts'
import type { ResourceContent, View } from '../../core/view.ts'
import type { Output } from '../terminal/io.ts'

/** Writes one content: its text in UTF-8, or its bytes. */
export async function writeContent(out: Output, content: ResourceContent): Promise<void> {
  if ('text' in content) await out.write(content.text)
  else if ('bytes' in content) await out.write(content.bytes)
  else for await (const chunk of content.stream) await out.write(chunk)
}

/** Writes contents as JSON: `{ "uri": …, "contents": [{ "uri": …, "text" or "blob" (base64): … }] }`. */
export async function writeContentsJson(out: Output, uri: string, contents: readonly ResourceContent[]): Promise<void> {
  await out.write(`{\n"uri": ${JSON.stringify(uri)},\n"contents": [`)
  for (const [i, content] of contents.entries()) {
    await out.write(i === 0 ? '\n' : ',\n')
    await writeContentJson(out, content)
  }
  await out.write(contents.length === 0 ? ']\n}\n' : '\n]\n}\n')
}

async function writeContentJson(out: Output, content: ResourceContent): Promise<void> {
  if ('text' in content) {
    const { text, ...facts } = content
    return out.write(JSON.stringify({ ...facts, text }))
  }
  if ('bytes' in content) {
    const { bytes, ...facts } = content
    return out.write(JSON.stringify({ ...facts, blob: base64Of(bytes) }))
  }
  const { stream, length: _, ...facts } = content
  await out.write(`${JSON.stringify(facts).slice(0, -1)},"blob":"`)
  // Three bytes make four characters of base64, so the remainder is put in front of the next chunk.
  let rest: Uint8Array = new Uint8Array()
  for await (const chunk of stream) {
    const bytes = Buffer.concat([rest, chunk])
    const whole = bytes.length - (bytes.length % 3)
    rest = bytes.subarray(whole)
    await out.write(base64Of(bytes.subarray(0, whole)))
  }
  await out.write(`${base64Of(rest)}"}`)
}

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
