import type { Content, Provider, ReadRequest } from '../../src/core/provider.ts'
import { readOne } from '../support/folder.ts'

/** Form in which a source holds a resource. `reads` counts the calls. */
export type Shape = 'text' | 'bytes' | 'stream' | 'ranges of bytes' | 'ranges of text' | 'ranges without a size'
export const shapes: readonly Shape[] = [
  'text',
  'bytes',
  'stream',
  'ranges of bytes',
  'ranges of text',
  'ranges without a size',
]

export interface Source extends Provider {
  bytes: Buffer
  version: string
  reads: ReadRequest[]
}

export function source(shape: Shape, content: string | Uint8Array, mimeType = 'text/plain'): Source {
  const answer = (self: Source, { range }: ReadRequest): Content => {
    const { bytes, version } = self
    const facts = { mimeType, version }
    if (shape === 'text') return { ...facts, text: bytes.toString() }
    if (shape === 'bytes') return { ...facts, bytes }
    if (shape === 'stream') return { ...facts, stream: pieces(bytes), length: bytes.length }
    const [start, end] = [range?.start ?? 0, Math.min(range?.end ?? bytes.length, bytes.length)]
    const part = bytes.subarray(start, end)
    const size = shape === 'ranges without a size' ? {} : { size: bytes.length }
    if (shape !== 'ranges of text') return { ...facts, ...size, range: { start, end }, bytes: part }
    const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(
      part.subarray(part.findIndex((byte) => (byte & 0xc0) !== 0x80)),
      { stream: true },
    )
    const from =
      start +
      Math.max(
        0,
        part.findIndex((byte) => (byte & 0xc0) !== 0x80),
      )
    return { ...facts, ...size, range: { start: from, end: from + Buffer.byteLength(text) }, text }
  }
  const self: Source = {
    bytes: Buffer.from(content),
    version: '1',
    reads: [],
    list: async function* () {},
    read: async (request) => {
      self.reads.push(request)
      return [answer(self, request)]
    },
  }
  return self
}

async function* pieces(bytes: Buffer) {
  for (let at = 0; at < bytes.length; at += 5) yield bytes.subarray(at, at + 5)
}

export const read = (provider: Provider, params: Record<string, string>, path = 'a') =>
  readOne(provider, path, { params })
export const factsOf = (content: Content) => content.meta?.['dev.hikidashi/part'] as Record<string, unknown>
export const contentOf = (content: Content) =>
  'text' in content ? content.text : 'bytes' in content ? Buffer.from(content.bytes) : undefined
export const refusal = (provider: Provider, params: Record<string, string>, path = 'a') =>
  read(provider, params, path).then(
    () => 'answered',
    (error: { kind: string; detail: { reason?: string }; message: string }) =>
      `${error.kind} ${error.detail.reason}: ${error.message}`,
  )
