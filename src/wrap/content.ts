import type { Content, ContentFacts } from '../core/provider.ts'

/** The bytes of a content; those of a text in UTF-8. */
export async function bytesOf(content: Content): Promise<Buffer> {
  if ('text' in content) return Buffer.from(content.text)
  if ('bytes' in content) return Buffer.from(content.bytes.buffer, content.bytes.byteOffset, content.bytes.byteLength)
  const pieces: Uint8Array[] = []
  for await (const piece of content.stream) pieces.push(piece)
  return Buffer.concat(pieces)
}

/** Returns the facts of a content without its payload. */
export function factsOf(content: Content): ContentFacts {
  const { text, bytes, stream, length, ...facts } = content as ContentFacts & Readonly<Record<Payload, unknown>>
  return facts
}

type Payload = 'text' | 'bytes' | 'stream' | 'length'
