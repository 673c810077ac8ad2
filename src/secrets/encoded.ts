import { errorCodeOf } from '../core/errors.ts'
import type { Span } from '../core/kit/sorted.ts'
import { beginsLikePrivateKey } from './der.ts'

/** Maximum number of decompressed bytes that are searched. Of longer data, the beginning is. */
const maxUnpackedBytes = 1024 * 1024
/** Maximum depth of nested encodings. */
const maxDepth = 3

type HoldsSecret = (text: string) => boolean

/**
 * Finds runs of base64, base64url and hexadecimal that contain a secret after decoding, up to three levels deep, also if gzip or zlib
 * compresses it. A run is secret as a whole; one that contains a private key in DER, from the beginning of the key.
 */
export function findEncoded(text: string, holdsSecret: HoldsSecret): readonly Span[] {
  const spans: Span[] = []
  for (const { 0: run, index } of text.matchAll(/[A-Za-z0-9+/_-]{20,}={0,2}/g))
    if (holdsEncoded(run, holdsSecret, 1)) spans.push({ start: index, end: index + run.length })
    else {
      const start = beginOfKey(run)
      if (start !== undefined) spans.push({ start: index + start, end: index + run.length })
    }
  for (const { 0: run, index } of text.matchAll(/(?:[0-9a-fA-F]{2}[ :,]?){16,}/g))
    if (holdsHex(run, holdsSecret, 1)) spans.push({ start: index, end: index + run.trimEnd().length })
  return spans
}

/** The first bytes of DER (a sequence of up to 64 KiB) and of the stores of Java, in base64. */
const beginsOfKeys = /M[A-I]|\/u3\+7Q|zs7Ozg/g

function beginOfKey(run: string): number | undefined {
  for (const { index } of run.matchAll(beginsOfKeys))
    if (beginsLikePrivateKey(Buffer.from(run.slice(index, index + 88), 'base64'))) return index
  return undefined
}

function holdsEncoded(run: string, holdsSecret: HoldsSecret, depth: number): boolean {
  // Text before base64 may look like a part of it: a path, a name with an underscore.
  const starts = new Set([0, 1, 2, 3, run.lastIndexOf('/') + 1, run.lastIndexOf('_') + 1, run.lastIndexOf('-') + 1])
  return Array.from(starts).some(
    (start) => run.length - start >= 16 && holdsBytes(Buffer.from(run.slice(start), 'base64'), holdsSecret, depth),
  )
}

function holdsHex(run: string, holdsSecret: HoldsSecret, depth: number): boolean {
  const digits = run.replace(/[^0-9a-fA-F]/g, '')
  return holdsBytes(Buffer.from(digits, 'hex'), holdsSecret, depth)
}

function holdsBytes(bytes: Buffer, holdsSecret: HoldsSecret, depth: number): boolean {
  const plain = unpack(bytes)
  if (beginsLikePrivateKey(plain)) return true
  for (const text of findPrintableTexts(plain)) {
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
  // Loaded at its first use, because a start seldom decompresses anything.
  const { constants, gunzipSync, inflateSync } = process.getBuiltinModule('node:zlib')
  const options = { maxOutputLength: maxUnpackedBytes, finishFlush: constants.Z_SYNC_FLUSH }
  for (let end = bytes.length; end > 0; end = Math.floor(end / 2))
    try {
      return (isGzip ? gunzipSync : inflateSync)(bytes.subarray(0, end), options)
    } catch (error) {
      if (errorCodeOf(error) !== 'ERR_BUFFER_TOO_LARGE') return bytes
    }
  return bytes
}

/** Returns the runs of 12 printable characters or more in bytes, as ASCII and, if some of the first bytes are zero, as UTF-16. */
export function findPrintableTexts(bytes: Buffer): readonly string[] {
  const texts = printable(bytes.toString('latin1'))
  let zeros = 0
  for (let at = 0; at < Math.min(bytes.length, 4096); at++) if (bytes[at] === 0) zeros++
  if (zeros < 8) return texts
  return [...texts, ...printable(bytes.toString('utf16le')), ...printable(bytes.subarray(1).toString('utf16le'))]
}

const printable = (text: string) => text.match(/[\t\r\n\x20-\x7e]{12,}/g) ?? []
