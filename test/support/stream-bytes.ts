import type { Readable } from 'node:stream'

/** Returns all that was written to a stream so far. A call of `read()` returns one chunk of it in Node 26. */
export function bytesSoFar(stream: Readable): Buffer {
  const chunks: Buffer[] = []
  for (let chunk: unknown = stream.read(); chunk !== null; chunk = stream.read())
    chunks.push(Buffer.from(chunk as Buffer))
  return Buffer.concat(chunks)
}
