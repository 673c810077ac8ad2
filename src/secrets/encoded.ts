import type { Span } from './spans.ts'

/** Maximum number of decompressed bytes that are searched. A secret after that is not found. */
const maxUnpacked = 1024 * 1024
/** Maximum depth of base64 in base64. */
const maxDepth = 3

/** Whether a text that was decoded holds a secret. */
type Finder = (text: string) => boolean

/**
 * Finds runs of base64, base64url and hexadecimal that contain a secret after decoding, up to three levels deep, also if gzip or
 * zlib compresses it. A run is secret as a whole, because nothing can be removed from its middle.
 */
export function findEncoded(text: string, holdsSecret: Finder): readonly Span[] {
  const found: Span[] = []
  for (const { 0: run, index } of text.matchAll(/[A-Za-z0-9+/_-]{20,}={0,2}/g))
    if (holdsEncoded(run, holdsSecret, 1)) found.push({ start: index, end: index + run.length })
  for (const { 0: run, index } of text.matchAll(/(?:[0-9a-fA-F]{2}[ :,]?){16,}/g))
    if (holdsHex(run, holdsSecret, 1)) found.push({ start: index, end: index + run.trimEnd().length })
  return found
}

function holdsEncoded(run: string, holdsSecret: Finder, depth: number): boolean {
  // Text before base64 may look like a part of it: a path, a name with an underscore.
  const starts = new Set([0, 1, 2, 3, run.lastIndexOf('/') + 1, run.lastIndexOf('_') + 1, run.lastIndexOf('-') + 1])
  for (const start of starts) {
    if (run.length - start < 16) continue
    if (holdsBytes(Buffer.from(run.slice(start), 'base64'), holdsSecret, depth)) return true
  }
  return false
}

function holdsHex(run: string, holdsSecret: Finder, depth: number): boolean {
  const digits = run.replace(/[^0-9a-fA-F]/g, '')
  return holdsBytes(Buffer.from(digits, 'hex'), holdsSecret, depth)
}

function holdsBytes(bytes: Buffer, holdsSecret: Finder, depth: number): boolean {
  const plain = unpack(bytes)
  for (const text of textsIn(plain)) {
    if (holdsSecret(text)) return true
    if (depth >= maxDepth) continue
    for (const [run] of text.matchAll(/[A-Za-z0-9+/_-]{20,}={0,2}/g))
      if (holdsEncoded(run, holdsSecret, depth + 1)) return true
    for (const [run] of text.matchAll(/(?:[0-9a-fA-F]{2}){16,}/g))
      if (holdsHex(run, holdsSecret, depth + 1)) return true
  }
  return false
}

function unpack(bytes: Buffer): Buffer {
  const isGzip = bytes[0] === 0x1f && bytes[1] === 0x8b
  const isZlib = bytes[0] === 0x78 && [0x01, 0x5e, 0x9c, 0xda].includes(bytes[1] ?? 0)
  if (!isGzip && !isZlib) return bytes
  // Loaded at its first use: every process loads this module at its start, and hardly ever decompresses anything.
  const { gunzipSync, inflateSync } = process.getBuiltinModule('node:zlib')
  try {
    return (isGzip ? gunzipSync : inflateSync)(bytes, { maxOutputLength: maxUnpacked })
  } catch {
    // Not compressed, truncated, or too large.
    return bytes
  }
}

/** Runs of 12 printable characters or more in bytes, as ASCII and, where every other byte is zero, as UTF-16. */
export function textsIn(bytes: Buffer): readonly string[] {
  const texts = printable(bytes.toString('latin1'))
  let zeros = 0
  for (let at = 0; at < Math.min(bytes.length, 4096); at++) if (bytes[at] === 0) zeros++
  if (zeros < 8) return texts
  return [...texts, ...printable(bytes.toString('utf16le')), ...printable(bytes.subarray(1).toString('utf16le'))]
}

const printable = (text: string) => text.match(/[\t\r\n\x20-\x7e]{12,}/g) ?? []
