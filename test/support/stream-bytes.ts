import type { Readable } from 'node:stream'

/** Returns everything that was written to a stream so far. In Node 26 a call of `read()` returns one chunk only. */
export function bytesSoFar(stream: Readable): Buffer {
  const chunks: Buffer[] = []
  for (let chunk: unknown = stream.read(); chunk !== null; chunk = stream.read())
    chunks.push(Buffer.from(chunk as Buffer))
  return Buffer.concat(chunks)
}
